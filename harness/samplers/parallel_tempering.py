"""Parallel tempering over many independent ladders at once.

Every rung of a ladder has a replica that moves by HMC or another kernel, the base's by independent
draws; then
neighbours swap, even pairs and odd pairs in turn, whether or not the last swap succeeded, so that
replicas travel along the ladder rather than diffuse.  Warm-up tunes a step size a rung and moves
the rungs until neighbours reject equally often.

References
----------
Geyer, C. J. (1991). Markov chain Monte Carlo maximum likelihood. Computing Science and
Statistics: Proceedings of the 23rd Symposium on the Interface, 156-163.

Syed, S., Bouchard-Cote, A., Deligiannidis, G. and Doucet, A. (2021). Non-reversible parallel
tempering: a scalable highly parallel MCMC scheme. Journal of the Royal Statistical Society B 84,
321-350.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.fit import Fit, chain_evidence_attributes
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import Target, target_of
from harness.path.gaussian import GaussianBase
from harness.samplers.geometric_path import GeometricPath, State
from harness.samplers.kernels import Hmc, Kernel, StepSizes
from harness.samplers.ladders import checked_ladder, equal_rejection_ladder
from harness.samplers.result import plain_fit
from harness.samplers.rungs import stepping_stones, thermodynamic_integration
from harness.samplers.swaps import Travels, even_odd_swaps

# Shares of warm-up after which the rungs are moved; what remains tunes the step sizes alone.
_ROUNDS = (1 / 32, 1 / 32, 1 / 16, 1 / 8, 1 / 4)
_INITIAL_STEP = 0.1

METHOD = "parallel_tempering"


def parallel_tempering(
    what: Model | Target,
    base: GaussianBase,
    *,
    ladder: npt.ArrayLike,
    chains: int = 16,
    draws: int = 1000,
    warmup: int = 1000,
    adapt_ladder: bool = True,
    kernel: Kernel | None = None,
    seed: int,
) -> Fit:
    """Sample a target by parallel tempering from a Gaussian base.

    The fit's draws are those at beta = 1, a chain a ladder.  Its log Z comes from stepping
    stones up the ladder and down it, averaged; attributes hold both, that of thermodynamic
    integration, and what the swaps did:

    - ``ladder``, the inverse temperatures (K,) that the draws were made with;
    - ``swap_rejection``, of each pair of neighbours (K - 1,), and their sum, the
      ``communication_barrier`` Lambda: a ladder of about 2 Lambda + 1 rungs is best;
    - ``round_trips``, of each chain's replicas from the base to the target and back;
    - ``step_size``, of each rung above the base (K - 1,), in the base's standard deviations;
    - ``chain_log_evidence``, from each ladder by itself, so that ladders can be taken apart.

    Parameters
    ----------
    what
        Model, through its Stan program, or target.
    base
        Base at beta = 0, which is cut to the target's support.
    ladder
        Inverse temperatures, ascending from 0 to 1; where warm-up starts from if it adapts them.
    chains
        Independent ladders.
    draws, warmup
        Iterations, of one move a rung and one round of swaps, to keep and before.
    adapt_ladder
        Whether warm-up moves the rungs, so that neighbours reject equally often.
    kernel
        Moves of every rung; by default :class:`~harness.samplers.kernels.Hmc`.
    seed
        Seed.

    Raises
    ------
    DataError
        If the ladder does not ascend from 0 to 1, a count is too small, or hardly any of the
        base lies within the target's support.
    """
    start = checked_ladder(ladder)
    if chains < 1 or draws < 4 or warmup < 0:
        raise DataError(
            f"parallel tempering needs 1 chain, 4 draws and 0 iterations of warm-up or more; got "
            f"{chains}, {draws} and {warmup}"
        )
    moves = kernel or Hmc()
    path = GeometricPath(target_of(what), base)
    rng = np.random.default_rng(seed)
    replicas = Replicas(path, moves, start, chains, rng)
    _warm_up(replicas, warmup, adapt_ladder)
    kept = _sample(replicas, draws)
    stones = stepping_stones(kept.delta, replicas.ladder, base.log_zeta, kept.inside)
    of_ladders = [
        stepping_stones(
            kept.delta[..., [c]], replicas.ladder, base.log_zeta, kept.inside[:, [c]]
        ).log_evidence
        for c in range(chains)
    ]
    integral = thermodynamic_integration(kept.delta, replicas.ladder, base.log_zeta, kept.inside)
    rejection = 1 - kept.swap.mean(axis=(0, 2))
    return plain_fit(
        METHOD,
        path,
        np.ascontiguousarray(kept.points.transpose(1, 0, 2)),
        settings={
            "initial_ladder": start.tolist(),
            "chains": chains,
            "draws": draws,
            "warmup": warmup,
            "adapt_ladder": adapt_ladder,
            "kernel": repr(moves),
            "log_zeta": base.log_zeta,
        },
        seed=seed,
        stats={
            "lp": kept.log_gamma.T,
            "acceptance_rate": kept.acceptance.T,
            "swap_rate": kept.swap.mean(axis=1).T,
        },
        log_evidence=stones.log_evidence,
        found={
            "ladder": replicas.ladder,
            "swap_rejection": rejection,
            "communication_barrier": float(rejection.sum()),
            "round_trips": replicas.travels.round_trips[0],
            "step_size": replicas.step_size,
            "log_evidence_forward": stones.forward.value,
            "log_evidence_forward_mcse": stones.forward.mcse,
            "log_evidence_backward": stones.backward.value,
            "log_evidence_backward_mcse": stones.backward.mcse,
            "log_evidence_integral": integral.log_evidence.value,
            "log_evidence_integral_mcse": integral.log_evidence.mcse,
            "log_evidence_integral_correction": integral.correction,
            **chain_evidence_attributes(of_ladders),
        },
    )


class Replicas:
    """States of all ladders, row k C + c that of rung k of chain c, and their travels."""

    def __init__(
        self,
        path: GeometricPath,
        kernel: Kernel,
        ladder: FloatArray,
        chains: int,
        rng: np.random.Generator,
    ) -> None:
        self.path = path
        self.ladder = ladder
        self.step_size: FloatArray = np.full(len(ladder) - 1, _INITIAL_STEP)
        self.travels = Travels(len(ladder), chains, len(ladder) - 1)
        self.kernel = kernel
        self._rng = rng
        self.chains = chains
        self.state: State = path.start_at_base(rng, chains * len(ladder))
        self._parity = 0
        self._column = np.arange(chains)

    def iterate(self) -> Iteration:
        """Move every replica at its rung, then swap neighbours."""
        chains, path = self.chains, self.path
        fresh = path.state(path.base.sample(self._rng, chains))
        inside = np.isfinite(fresh.log_gamma)
        bottom = fresh.where(inside, self.state.take(slice(chains)))
        moved = self.kernel.move(
            path,
            self.state.take(slice(chains, None)),
            np.repeat(self.ladder[1:], chains),
            np.repeat(self.step_size, chains),
            self._rng,
        )
        state = bottom.followed_by(moved.state)
        delta = path.delta(state).reshape(-1, chains)
        log_ratio = np.diff(self.ladder)[:, None] * np.diff(delta, axis=0)
        swaps = even_odd_swaps(log_ratio, self._parity, self._rng)
        self._parity = 1 - self._parity
        self.state = state.take((swaps.source * chains + self._column).ravel())
        self.travels.follow(swaps.source)
        return Iteration(
            moved.acceptance.reshape(-1, chains),
            swaps.probability,
            np.take_along_axis(delta, swaps.source, axis=0),
            inside,
        )


class Iteration(NamedTuple):
    """What an iteration of all ladders did."""

    acceptance: FloatArray
    """Acceptance probabilities of the moves above the base, shape (K - 1, C)."""
    swap: FloatArray
    """Probabilities that neighbours swap, shape (K - 1, C)."""
    delta: FloatArray
    """Delta after the swaps, shape (K, C)."""
    inside: npt.NDArray[np.bool_]
    """Whether the base's new draws lie within the target's support, shape (C,)."""


class _Kept(NamedTuple):
    """Draws; T iterations, C chains, K rungs."""

    points: FloatArray
    """At beta = 1, shape (T, C, D)."""
    log_gamma: FloatArray
    """There, shape (T, C)."""
    acceptance: FloatArray
    """Acceptance probability of the moves at beta = 1, shape (T, C)."""
    swap: FloatArray
    """Swap probabilities, shape (T, K - 1, C)."""
    delta: FloatArray
    """Shape (T, K, C)."""
    inside: npt.NDArray[np.bool_]
    """Shape (T, C)."""


def _warm_up(replicas: Replicas, warmup: int, adapt_ladder: bool) -> None:
    """Tune step sizes, and between rounds the ladder."""
    rounds = [int(warmup * share) for share in _ROUNDS] if adapt_ladder else []
    for length in filter(None, rounds):
        swap = _tune(replicas, length)
        old = replicas.ladder
        replicas.ladder = equal_rejection_ladder(old, 1 - swap)
        # Step sizes go with inverse temperatures, about as powers of them.
        replicas.step_size = np.exp(
            np.interp(np.log(replicas.ladder[1:]), np.log(old[1:]), np.log(replicas.step_size))
        )
    if warmup > sum(rounds):
        _tune(replicas, warmup - sum(rounds))


def _tune(replicas: Replicas, length: int) -> FloatArray:
    """Tune step sizes for some iterations; return the swap rates."""
    pairs, chains = len(replicas.ladder) - 1, replicas.chains
    sizes = StepSizes(pairs, replicas.step_size, replicas.kernel.target_acceptance)
    rung = np.arange(pairs)
    group = np.repeat(rung, chains)
    swap = np.zeros(pairs)
    for _ in range(length):
        replicas.step_size = sizes.current(rung)
        made = replicas.iterate()
        sizes.learn(group, made.acceptance.ravel())
        swap += made.swap.mean(axis=1)
    replicas.step_size = sizes.tuned(rung)
    return swap / length


def _sample(replicas: Replicas, draws: int) -> _Kept:
    rungs, chains = len(replicas.ladder), replicas.chains
    dimension = replicas.state.points.shape[1]
    kept = _Kept(
        np.empty((draws, chains, dimension)),
        np.empty((draws, chains)),
        np.empty((draws, chains)),
        np.empty((draws, rungs - 1, chains)),
        np.empty((draws, rungs, chains)),
        np.empty((draws, chains), dtype=np.bool_),
    )
    replicas.travels.forget()
    for t in range(draws):
        made = replicas.iterate()
        kept.points[t] = replicas.state.points[-chains:]
        kept.log_gamma[t] = replicas.state.log_gamma[-chains:]
        kept.acceptance[t] = made.acceptance[-1]
        kept.swap[t], kept.delta[t], kept.inside[t] = made.swap, made.delta, made.inside
    return kept


PARALLEL_TEMPERING = python_method(METHOD, parallel_tempering)
