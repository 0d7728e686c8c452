"""Rows of both halves by profile: the papers' methods, and ours beside them.

Graham and Storkey integrate with an identity mass matrix; so do the rows from a pilot
(``unit_e``), since no density on the path is curved more than the standard Gaussians that the
relaxation mixes: one step size suits all inverse temperatures.  The Python-driven samplers are
whitened by the base and tune a step size a band instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from harness.engine.nuts import NutsSettings
from harness.forms.continuous_tempering import JOINT_TEMPERING
from harness.forms.extended_hamiltonian import EXTENDED_HAMILTONIAN
from harness.forms.folded import FOLDED
from harness.forms.from_pilot import (
    COLLAPSED_PSEUDO_EXTENDED_FROM_PILOT,
    COLLAPSED_TEMPERING_FROM_PILOT,
    PSEUDO_EXTENDED_FROM_PILOT,
)
from harness.forms.nuts import PLAIN_NUTS
from harness.forms.pseudo_extended import PSEUDO_EXTENDED
from harness.path import PilotSettings
from harness.plan.spec import Cell, Profile
from harness.samplers.annealed_importance import ANNEALED_IMPORTANCE
from harness.samplers.gibbs_tempering import GIBBS_TEMPERING
from harness.samplers.kernels import Hmc
from harness.samplers.ladders import uniform_ladder
from harness.samplers.parallel_tempering import PARALLEL_TEMPERING
from harness.samplers.sequential_monte_carlo import SEQUENTIAL_MONTE_CARLO
from harness.samplers.simulated_tempering import SIMULATED_TEMPERING

from .cells import Row
from .extra_rows import flat_g, other_moves, public_range
from .figure_two import figure_two
from .instances import Instance, ct_instance, pe_instance

LOWEST = 0.1
"""Lowest inverse temperature of pure tempering, whose mass is infinite down to 0."""
PILOT = PilotSettings(particles=512, moves=2)
_PURE = ((LOWEST, 0.0), (1.0, 0.0))
_WIDE = ((0.001, 0.0), (1.0, 0.0))


@dataclass(frozen=True)
class Size:
    """How much a profile runs.

    Attributes
    ----------
    pseudo_samples, fixed
        N of the pseudo-extended rows, and the fixed inverse temperatures (N = 2).
    warmup, draws
        Of the one chain of each NUTS row of the papers.
    replications, long_replications
        Of a cell; and of those that take long.
    chains, draws_each
        Of the rows of ours.
    particles
        Chains of annealed importance sampling in the pseudo-extended half.
    rungs
        Rungs of its ladders and of simulated tempering's.
    tempering
        Warm-up and draws of each of the ten chains of Python-driven samplers.
    instances
        Of the continuous-tempering half.
    ct_draws, ct_replications
        Draws of its NUTS rows, and replications of all its rows.
    """

    pseudo_samples: tuple[int, ...]
    fixed: tuple[float, ...]
    warmup: int
    draws: int
    replications: int
    long_replications: int
    chains: int
    draws_each: int
    particles: int
    rungs: int
    tempering: tuple[int, int]
    instances: int
    ct_draws: int
    ct_replications: int


_TENTHS = tuple(round(0.1 * k, 1) for k in range(1, 10))
SIZES: dict[Profile, Size] = {
    "smoke": Size((2,), (0.5,), 100, 100, 2, 2, 2, 100, 20, 20, (40, 20), 1, 200, 2),
    "quick": Size(
        (2, 5, 10), (0.1, 0.5, 0.9), 500, 2500, 6, 3, 16, 400, 512, 200, (100, 250), 3, 2500, 3,
    ),
    "paper": Size(
        (2, 5, 10, 15, 20), _TENTHS, 1000, 10_000, 10, 10, 16, 2000, 1000, 1000, (500, 1000), 10,
        10_000, 10,
    ),
}  # fmt: skip


def pe_rows(instance: Instance, size: Size) -> Iterator[tuple[Row, int]]:
    """Rows of the pseudo-extended half with their replications, the longest first."""
    nuts = NutsSettings(chains=1, warmup=size.warmup, draws=size.draws)
    for n in sorted(size.pseudo_samples, reverse=True):
        settings = {"num_pseudo_samples": n, "log_g": _PURE}
        row = Row(
            f"pe-{n}", f"PE N={n}", "PE", PSEUDO_EXTENDED, settings, nuts, n, needs_base=False
        )
        yield row, size.replications if n <= 5 else size.long_replications
    numbers = (2, 5) if size.draws >= 10_000 else (2,)
    for row in public_range(numbers, LOWEST, nuts):
        yield row, size.long_replications
    warmup, draws = size.tempering
    ten = {"chains": 10, "draws": draws, "warmup": warmup}
    ladder = uniform_ladder(size.rungs)
    yield (
        Row(
            "ais", "AIS", "AIS", ANNEALED_IMPORTANCE,
            {"ladder": ladder, "chains": size.particles, "kernel": Hmc(5)}, number=size.rungs,
        ),
        size.replications,
    )  # fmt: skip
    yield (
        Row(
            "st", "ST", "ST", SIMULATED_TEMPERING,
            {"ladder": ladder, "pilot_draws": 2 * warmup // 10, "kernel": Hmc(20), **ten},
            number=size.rungs,
        ),
        size.replications,
    )  # fmt: skip
    yield Row("ct", "CT", "CT", JOINT_TEMPERING, nuts=nuts), size.replications
    for beta in size.fixed:
        settings = {"num_pseudo_samples": 2, "inv_temp": beta}
        row = Row(
            f"fixed-{round(100 * beta)}", f"PE N=2, β = {beta:g}", "PE fixed", PSEUDO_EXTENDED,
            settings, nuts, 2, needs_base=False,
        )  # fmt: skip
        yield row, size.long_replications
    wide = {"num_pseudo_samples": 2, "log_g": _WIDE}
    yield (
        Row(
            "pe-wide", "PE N=2, β from 0.001", "PE wide", PSEUDO_EXTENDED, wide, nuts, 2,
            needs_base=False, ours=True,
        ),
        size.long_replications,
    )  # fmt: skip
    yield Row("hmc", "HMC", "HMC", PLAIN_NUTS, {}, nuts, needs_base=False), size.replications
    for row in our_rows(size):
        yield row, size.replications
    for row in (
        *other_moves(LOWEST, warmup, draws // 2),
        *flat_g(64, size.draws_each // 4, size.draws_each),
    ):
        yield row, size.long_replications
    yield folded(instance, size), size.replications


def our_rows(size: Size) -> Iterator[Row]:
    """Rows that are not in the papers, on the pseudo-extended half's instance."""
    one = NutsSettings(chains=1, warmup=size.warmup, draws=size.draws)
    yield Row(
        "pe-base-2", "PE N=2, Gaussian base", "PE base", PSEUDO_EXTENDED,
        {"num_pseudo_samples": 2}, one, 2, ours=True,
    )  # fmt: skip
    many = unit_metric(size.chains, size.draws_each)
    pilot = {"settings": PILOT}
    yield Row(
        "pe-pilot-2", "PE N=2, from a pilot", "PE pilot", PSEUDO_EXTENDED_FROM_PILOT, pilot,
        many, 2, ours=True,
    )  # fmt: skip
    yield Row(
        "collapsed-pe-2", "Collapsed PE N=2, from a pilot", "collapsed PE",
        COLLAPSED_PSEUDO_EXTENDED_FROM_PILOT, {**pilot, "rungs": 8}, many, 2, ours=True,
    )  # fmt: skip
    yield collapsed_tempering(size)
    yield Row(
        "gibbs", "Gibbs CT, 64 chains", "Gibbs CT", GIBBS_TEMPERING,
        {"chains": 64, "draws": size.draws_each, "warmup": size.draws_each // 4, "kernel": Hmc(5)},
        ours=True,
    )  # fmt: skip
    yield Row(
        "pt", "Parallel tempering", "PT", PARALLEL_TEMPERING,
        {"ladder": uniform_ladder(8), "chains": 32, "draws": size.draws_each,
         "warmup": size.draws_each // 4, "kernel": Hmc(5)}, ours=True,
    )  # fmt: skip
    yield Row("smc", "SMC", "SMC", SEQUENTIAL_MONTE_CARLO, {"settings": PilotSettings()}, ours=True)


def collapsed_tempering(size: Size) -> Row:
    """Collapsed continuous tempering from a pilot, our best form without knowledge of modes."""
    return Row(
        "collapsed-ct", "Collapsed CT, from a pilot", "collapsed CT",
        COLLAPSED_TEMPERING_FROM_PILOT, {"settings": PILOT, "rungs": 8, "highest": 0.9},
        unit_metric(size.chains, size.draws_each), ours=True,
    )  # fmt: skip


def folded(instance: Instance, size: Size) -> Row:
    """The target folded by mean-field fixed points: of all rows the one that knows the modes."""
    nuts = NutsSettings(
        chains=size.chains, warmup=100, draws=max(100, size.draws_each * 3 // 5),
        max_treedepth=3, metric="unit_e", target_accept=0.7,
    )  # fmt: skip
    return Row(
        "fold", "Folded target", "fold", FOLDED, {"fold": instance.fold}, nuts,
        needs_base=False, ours=True,
    )  # fmt: skip


def unit_metric(chains: int, draws: int) -> NutsSettings:
    """Many short chains from a pilot's particles, whose warm-up tunes the step size alone."""
    return NutsSettings(chains=chains, warmup=100, draws=draws, max_treedepth=4, metric="unit_e")


def ct_rows(profile: Profile) -> Iterator[Row]:
    """Rows of the continuous-tempering half: the paper's, and then others beside them."""
    size = SIZES[profile]
    yield from figure_two(profile, size.ct_replications)
    nuts = NutsSettings(chains=1, warmup=size.warmup, draws=size.ct_draws)
    yield Row("joint", "Joint CT, NUTS", "joint CT", JOINT_TEMPERING, nuts=nuts, ours=True)
    yield Row(
        "extended", "Extended Hamiltonian", "extended Hamiltonian", EXTENDED_HAMILTONIAN,
        {"lowest_inv_temp": 0.1}, nuts, ours=True,
    )  # fmt: skip
    yield collapsed_tempering(size)


def pe_cells(instance: Instance, size: Size, half: str = "PE") -> tuple[Cell, ...]:
    """Cells of the pseudo-extended half."""
    return tuple(row.cell(instance, half, number) for row, number in pe_rows(instance, size))


def ct_cells(instances: list[Instance], profile: Profile, half: str = "CT") -> tuple[Cell, ...]:
    """Cells of the continuous-tempering half, method by method."""
    return tuple(
        row.cell(instance, half, SIZES[profile].ct_replications)
        for row in ct_rows(profile)
        for instance in instances
    )


@cache
def grid(profile: Profile) -> tuple[Cell, ...]:
    """Both halves; made once, since bases and the fold are fitted for it."""
    size = SIZES[profile]
    instances = [ct_instance(number) for number in range(size.instances)]
    return pe_cells(pe_instance(), size) + ct_cells(instances, profile)
