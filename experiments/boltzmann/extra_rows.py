"""Rows beside the papers' figures: the public program's range, other moves, ladders, adapted g."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.engine.nuts import NutsSettings
from harness.forms.pseudo_extended import PSEUDO_EXTENDED_BELOW_ONE
from harness.samplers.gibbs_tempering import GIBBS_TEMPERING
from harness.samplers.joint_hmc import JOINT_HMC
from harness.samplers.kernels import Hmc, Kernel, RandomWalk, Slice
from harness.samplers.pseudo_extended_moves import PSEUDO_EXTENDED_MOVES, Range, strata

from .cells import Row

HIGHEST = 0.9
"""Where the authors' public program ends the range of beta; it starts at 0.1, as ours does."""
LADDER = (0.2, 0.6)
"""Fixed inverse temperatures of the two pseudo-samples of a ladder."""
INTERVALS = 32
"""Intervals of an adapted log g."""
_STEPS = 20  # of a trajectory, and so of a random walk's moves in an iteration


def public_range(numbers: Iterable[int], lowest: float, nuts: NutsSettings) -> Iterator[Row]:
    """Pseudo-extended MCMC with the public program's range of inverse temperatures.

    Parameters
    ----------
    numbers
        Numbers N of pseudo-samples.
    lowest
        Where the range starts.
    nuts
        Of each row.
    """
    for n in numbers:
        yield Row(
            f"pe-public-{n}", f"PE N={n}, β to {HIGHEST:g}", "PE to 0.9", PSEUDO_EXTENDED_BELOW_ONE,
            {
                "num_pseudo_samples": n, "log_g": ((lowest, 0.0), (1.0, 0.0)),
                "highest_inv_temp": HIGHEST,
            },
            nuts, n, needs_base=False,
        )  # fmt: skip


def other_moves(lowest: float, warmup: int, draws: int) -> Iterator[Row]:
    """Moves other than NUTS on the pseudo-extended density of N = 2, twenty chains each.

    A random walk has as many moves in an iteration as a trajectory has steps.  A sweep of slices
    takes some twenty times as many evaluations, so that it gets a twentieth of the iterations.

    Parameters
    ----------
    lowest
        Lowest inverse temperature.
    warmup, draws
        Of each chain of HMC.
    """
    whole: tuple[Range, ...] = ((lowest, 1.0),) * 2
    fixed = tuple((beta, beta) for beta in LADDER)
    told = " and ".join(f"{beta:g}" for beta in LADDER)
    hmc = Hmc(_STEPS, jitter=0.0)
    few = {"warmup": max(2, warmup // 20), "draws": max(2, draws // 20), "step_size": 2.0}
    kinds: tuple[tuple[str, str, tuple[Range, ...], Kernel, dict[str, float]], ...] = (
        ("hmc", "HMC", whole, hmc, {}),
        ("walk", "random walk", whole, RandomWalk(), {"moves": _STEPS}),
        ("slice", "slices", whole, Slice(), few),
        ("strata", "stratified β, HMC", strata(2, lowest), hmc, {}),
        ("ladder", f"β = {told}, HMC", fixed, hmc, {}),
    )
    for key, label, ranges, kernel, own in kinds:
        yield Row(
            f"pe-{key}-2", f"PE N=2, {label}", f"PE {key}", PSEUDO_EXTENDED_MOVES,
            {"ranges": ranges, "kernel": kernel, "chains": 20, "warmup": warmup, "draws": draws}
            | own,
            number=2, needs_base=False, ours=True,
        )  # fmt: skip


def flat_g(chains: int, warmup: int, draws: int) -> Iterator[Row]:
    """Continuous tempering with and without a g that warm-up adapts.

    Parameters
    ----------
    chains, warmup, draws
        Of Gibbs continuous tempering; joint HMC, with trajectories four times as long, has half
        as many chains and draws.
    """
    gibbs = {"chains": chains, "warmup": warmup, "draws": draws, "kernel": Hmc(5)}
    half = {"chains": max(1, chains // 2), "warmup": warmup, "draws": max(1, draws // 2)}
    joint = {**half, "kernel": Hmc(_STEPS)}
    flat = {"flat_intervals": INTERVALS}
    yield Row(
        "gibbs-flat", "Gibbs CT, adapted g", "flat Gibbs CT", GIBBS_TEMPERING, gibbs | flat,
        ours=True,
    )  # fmt: skip
    yield Row("joint-g1", "Joint CT, HMC", "joint HMC", JOINT_HMC, joint, ours=True)
    yield Row(
        "joint-flat", "Joint CT, HMC, adapted g", "flat joint HMC", JOINT_HMC, joint | flat,
        ours=True,
    )  # fmt: skip
