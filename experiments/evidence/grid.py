"""Rows of Table 4.2, our own beside them, and repeated runs for Figure 4.5."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.engine.nuts import NutsSettings
from harness.forms.method import Method
from harness.plan.spec import Cell, Profile
from harness.samplers.kernels import Hmc
from harness.samplers.ladders import geometric_ladder
from harness.samplers.multicanonical import MULTICANONICAL
from harness.samplers.nested_sampling import NESTED_SAMPLING
from harness.samplers.parallel_tempering import PARALLEL_TEMPERING

from .annealed import Anneal
from .multicanonical import analytic_weights
from .nested import Nest
from .samplers import ANNEALED_BY_SWEEPS, NESTED_BY_SWEEPS
from .targets import (
    AS_PRINTED,
    DECEPTIVE,
    DISTRIBUTIONS,
    GAUSSIAN_A,
    GAUSSIAN_B,
    STUDENT,
    TWO_MODES,
)
from .tempered import TEMPERED

TABLE, OURS, FIGURE = "Table 4.2", "ours", "Figure 4.5"
"""Parts of the experiment."""


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes
    ----------
    distribution
        One of :data:`experiments.evidence.targets.DISTRIBUTIONS`.
    key, label
        For names of cells, and for tables; the key is that of the published row, if there is one.
    how
        Nested sampling or annealing.
    cost
        Evaluations that it takes, about, with those of its schedule.
    """

    distribution: str
    key: str
    label: str
    how: Nest | Anneal
    cost: float


def _nest(distribution: str, particles: int, steps: int, cost: float) -> Row:
    many = "s" if steps > 1 else ""
    label = f"Nest N={particles}, {steps} step{many}"
    return Row(distribution, f"nest-{particles}-{steps}", label, Nest(particles, steps), cost)


def _by_nest(
    distribution: str,
    key: str,
    group: tuple[int, int],
    error: float,
    particles: int,
    cost: float,
) -> Row:
    label = f"AIS {group[0]},{group[1]} ({error:g}, nest N={particles})"
    return Row(distribution, key, label, Anneal(*group, "nest", 0, error, particles), cost)


def _known(distribution: str, schedule: Any, rungs: int, cost: float) -> Row:
    key = f"ais-{schedule.split()[0]}"
    label = f"AIS 1,100 ({schedule}, K={rungs})"
    return Row(distribution, key, label, Anneal(1, 100, schedule, rungs), cost)


ROWS: tuple[Row, ...] = (
    _nest(GAUSSIAN_A, 1, 1, 2098),
    _nest(GAUSSIAN_A, 1, 10, 30_000),
    _nest(GAUSSIAN_A, 1, 100, 349_570),
    _nest(GAUSSIAN_A, 19, 1, 29_969),
    _nest(GAUSSIAN_A, 19, 10, 300_755),
    _nest(GAUSSIAN_A, 212, 1, 320_983),
    _nest(GAUSSIAN_A, 212, 10, 3_216_381),
    _by_nest(GAUSSIAN_A, "ais-1-1", (1, 1), 0.3, 212, 505_000),
    _by_nest(GAUSSIAN_A, "ais-10-1", (10, 1), 0.3, 212, 510_000),
    _by_nest(GAUSSIAN_A, "ais-100-1", (100, 1), 0.3, 212, 560_000),
    _by_nest(GAUSSIAN_A, "ais-1-10", (1, 10), 0.3, 212, 380_000),
    _by_nest(GAUSSIAN_A, "ais-1-100", (1, 100), 0.1, 212, 914_000),
    _known(GAUSSIAN_A, "linear", 122, 594_301),
    _known(GAUSSIAN_A, "fourth power", 122, 592_592),
    _nest(GAUSSIAN_B, 200, 1, 531_556),
    _nest(STUDENT, 10, 1, 11_426),
    _nest(STUDENT, 93, 1, 97_847),
    _nest(STUDENT, 946, 1, 989_453),
    _by_nest(STUDENT, "ais-1-100", (1, 100), 0.03, 10, 989_000),
    _known(STUDENT, "linear", 193, 973_347),
    _known(STUDENT, "fourth power", 193, 952_803),
    _nest(AS_PRINTED, 93, 1, 141_000),
    _nest(TWO_MODES, 10, 1, 8212),
    _nest(TWO_MODES, 158, 1, 115_968),
    _nest(TWO_MODES, 1455, 1, 1_197_722),
    _nest(TWO_MODES, 1849, 1, 1_573_194),
    _nest(TWO_MODES, 7000, 1, 5_972_352),
    _by_nest(TWO_MODES, "ais-1-100", (1, 100), 0.1, 1849, 1_893_000),
    _by_nest(TWO_MODES, "ais-1-1000", (1, 1000), 0.1, 1849, 1_993_000),
    _by_nest(TWO_MODES, "ais-1-1000-long", (1, 1000), 0.02, 1849, 7_900_000),
    _nest(DECEPTIVE, 1000, 1, 640_000),
    _nest(DECEPTIVE, 16_000, 1, 10_046_143),
    _by_nest(DECEPTIVE, "ais-1-1000", (1, 1000), 0.02, 4523, 12_900_000),
)
"""The published rows of nested sampling and annealing, and two that are not published: one with the
base that the text gives for the t distribution, and one of the deceptive one that takes seconds."""

_MULTICANONICAL: tuple[tuple[str, str, str, int, float], ...] = (
    (GAUSSIAN_A, "multi-nest", "Multicanonical (nest N=212)", 1000, 900_000),
    (GAUSSIAN_A, "multi-nest-long", "Multicanonical (nest N=212), longer", 10_000, 7_000_000),
    (GAUSSIAN_A, "multi-analytic", "Multicanonical (analytic)", 1000, 600_000),
    (GAUSSIAN_A, "multi-analytic-long", "Multicanonical (analytic), longer", 10_000, 6_000_000),
    (GAUSSIAN_B, "multi-analytic-long", "Multicanonical (analytic), longer", 10_000, 6_000_000),
)
"""Its rows: distribution, key, label, draws of each of ten chains, and cost."""

_LOWEST: Mapping[str, float] = {
    GAUSSIAN_A: 1e-3,
    GAUSSIAN_B: 1e-5,
    STUDENT: 1e-2,
    TWO_MODES: 1e-4,
    DECEPTIVE: 1e-10,
}
"""Lowest inverse temperature from which warm-up adapts the ladder of parallel tempering."""


@dataclass(frozen=True)
class Size:
    """How much a profile runs.

    Attributes
    ----------
    replications
        Fits of each cell.
    most
        Largest cost of a row.
    distributions
        Which of them; those of the table.
    several
        Evaluations that a fit may take to hold more than one run of a row, and most runs of it.
    draws, warmup, particles
        Of each chain of our forms; of each population of their pilots.
    swaps
        Iterations of parallel tempering, in warm-up and after it.
    library
        Particles in each of four populations of the library's own nested sampling.
    repeated
        Runs of each point of Figure 4.5, in each of two fits.
    nest, errors
        Its particles of nested sampling, and target errors of annealing.
    multicanonical
        Settings of our multicanonical rows, beside the draws, where the defaults are not taken.
    """

    replications: int
    most: float
    distributions: tuple[str, ...]
    several: tuple[float, int]
    draws: int
    warmup: int
    particles: int
    swaps: int
    library: int
    repeated: int
    nest: tuple[int, ...]
    errors: tuple[float, ...] = field(default=())
    multicanonical: Mapping[str, int] = field(default_factory=dict)


_ALL = tuple(DISTRIBUTIONS)
SIZES: dict[Profile, Size] = {
    "smoke": Size(
        replications=1,
        most=12_500,
        distributions=(GAUSSIAN_A, STUDENT, TWO_MODES, DECEPTIVE),
        several=(0, 1),
        draws=40,
        warmup=40,
        particles=64,
        swaps=40,
        library=32,
        repeated=2,
        nest=(10,),
        errors=(0.5,),
        multicanonical={"particles": 32, "pilots": 1, "pilot_draws": 40},
    ),
    "quick": Size(
        replications=2,
        most=650_000,
        distributions=_ALL,
        several=(2e5, 8),
        draws=500,
        warmup=300,
        particles=256,
        swaps=300,
        library=250,
        repeated=10,
        nest=(10, 30, 90),
        errors=(0.3, 0.17, 0.1),
    ),
    "paper": Size(
        replications=2,
        most=2e7,
        distributions=_ALL,
        several=(4e5, 8),
        draws=2000,
        warmup=1000,
        particles=1024,
        swaps=1500,
        library=1000,
        repeated=50,
        nest=(10, 30, 90, 270),
        errors=(0.3, 0.17, 0.1, 0.055),
    ),
}


def grid(profile: Profile) -> tuple[Cell, ...]:
    """All cells of a profile."""
    size = SIZES[profile]
    return (*_table(size), *_multicanonical(size), *_ours(size), *_figure(size))


def _cell(
    size: Size,
    part: str,
    distribution: str,
    key: str,
    label: str,
    method: Method,
    settings: dict[str, Any],
) -> Cell:
    kind = DISTRIBUTIONS[distribution]
    return Cell(
        f"{part.split()[0].lower()}-{kind.key}-{key}",
        f"{distribution}: {label}",
        {"part": part, "distribution": distribution, "row": key, "method": label},
        kind.make(),
        method,
        {"base": kind.base(), **settings},
        NutsSettings(),
        size.replications,
    )


def _swept(
    size: Size, part: str, distribution: str, key: str, label: str, how: Nest | Anneal, runs: int
) -> Cell:
    nested = isinstance(how, Nest)
    method = NESTED_BY_SWEEPS if nested else ANNEALED_BY_SWEEPS
    settings: dict[str, Any] = {"nest" if nested else "anneal": how, "runs": runs}
    settings["events"] = DISTRIBUTIONS[distribution].events
    return _cell(size, part, distribution, key, label, method, settings)


def _table(size: Size) -> Iterator[Cell]:
    total, most = size.several
    for row in ROWS:
        if row.distribution in size.distributions and row.cost <= size.most:
            runs = max(1, min(int(total / row.cost), most))
            yield _swept(size, TABLE, row.distribution, row.key, row.label, row.how, runs)


def _multicanonical(size: Size) -> Iterator[Cell]:
    """Ten chains from the base, without warm-up or corrections of the weights."""
    for distribution, key, label, draws, cost in _MULTICANONICAL:
        if distribution not in size.distributions or cost > size.most:
            continue
        settings: dict[str, Any] = {"chains": 10, "draws": draws, "warmup": 0, "pilots": 0}
        if "analytic" in key:
            kind = DISTRIBUTIONS[distribution]
            settings["weights"] = analytic_weights(kind.make().dimension, kind.base_sd)
        else:
            settings |= {"flat": "energy", "particles": 212}
        yield _cell(size, TABLE, distribution, key, label, MULTICANONICAL, settings)


def _ours(size: Size) -> Iterator[Cell]:
    nuts = {"particles": size.particles, "warmup": size.warmup, "draws": size.draws}
    for distribution, lowest in _LOWEST.items():
        if distribution not in size.distributions:
            continue
        ladder = geometric_ladder(16, lowest=lowest)
        swaps = {"ladder": ladder, "chains": 8, "kernel": Hmc()}
        swaps |= {"warmup": size.swaps, "draws": size.swaps}
        volume = {"flat": "volume", "draws": size.draws, "warmup": size.warmup // 2}
        volume |= size.multicanonical
        rows: list[tuple[str, str, Method, dict[str, Any]]] = [
            ("collapsed", "Collapsed tempering", TEMPERED, {"form": "collapsed", **nuts}),
            ("joint", "Joint tempering", TEMPERED, {"form": "joint", **nuts}),
            ("pt", "Parallel tempering", PARALLEL_TEMPERING, swaps),
            (
                "nested",
                f"Nested sampling, 4 x {size.library}",
                NESTED_SAMPLING,
                {"particles": size.library, "populations": 4},
            ),
            ("multi", "Multicanonical, even in log volume", MULTICANONICAL, volume),
        ]
        for key, label, method, settings in rows:
            yield _cell(size, OURS, distribution, key, label, method, settings)


def _figure(size: Size) -> Iterator[Cell]:
    for particles in size.nest:
        label = f"Nest, N={particles}"
        how: Nest | Anneal = Nest(particles)
        yield _swept(size, FIGURE, STUDENT, f"nest-{particles}", label, how, size.repeated)
    for chains in (10, 100):
        for error in size.errors:
            label = f"AIS 1,{chains}, error {error:g}"
            key = f"ais-{chains}-{str(error).replace('.', '')}"
            how = Anneal(1, chains, "nest", 0, error, 10)
            yield _swept(size, FIGURE, STUDENT, key, label, how, size.repeated)
