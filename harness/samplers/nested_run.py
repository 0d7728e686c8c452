"""The loop of nested sampling over several independent populations of particles at once.

In each iteration a share of every population, its lowest particles, is removed at once; clones of
particles that survive take their place and move above the last one that was removed, those of all
populations together.

References
----------
Skilling, J. (2006). Nested sampling for general Bayesian computation. Bayesian Analysis 1, 833-859.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London, section 4.4.

Fowlie, A., Handley, W. and Su, L. (2020). Nested sampling cross-checks using order statistics.
Monthly Notices of the Royal Astronomical Society 497, 5256-5263.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogEvidence
from harness.samplers.nested_moves import (
    MOVES,
    Mover,
    NestedExplorer,
    OutOfTime,
    default_steps,
)
from harness.samplers.nested_particles import (
    Floor,
    Particles,
    PriorAndLikelihood,
    joined,
    no_floor,
)
from harness.samplers.nested_volumes import Integrated, Removed, Together, integrate, together

_BATCH = 4  # a quarter: the variance of log Z is 1 % above that of single removals at equal cost
_PATHS_OF_EACH = 100


def default_particles(dimension: int) -> int:
    """Return the number of particles of a population: 250, or 5 for each dimension."""
    return max(250, 5 * dimension)


@dataclass(frozen=True)
class NestedSettings:
    """Settings of a run.

    Attributes
    ----------
    particles
        N, in each population.
    populations
        Independent populations.
    explorer
        What moves new particles.
    steps
        Moves of each new particle; None for :func:`~harness.samplers.nested_moves.default_steps`.
    remaining
        A population stops once what is left could add no more than this share to Z, if its highest
        likelihood held everywhere there.
    most_seconds
        Wall time after which the run ends unfinished.

    Raises
    ------
    DataError
        If a setting is out of its range.
    """

    particles: int = 250
    populations: int = 4
    explorer: NestedExplorer = "slice"
    steps: int | None = None
    remaining: float = 1e-3
    most_seconds: float = math.inf

    def __post_init__(self) -> None:
        few_steps = self.steps is not None and self.steps < 1
        if self.particles < 8 or self.populations < 1 or few_steps:
            raise DataError(
                "nested sampling needs 8 particles, 1 population and 1 step or more; got "
                f"{self.particles}, {self.populations} and {self.steps}"
            )
        if self.explorer not in MOVES:
            raise DataError(
                f"the explorer must be one of {', '.join(MOVES)}; got '{self.explorer}'"
            )
        if not 0 < self.remaining < 1:
            raise DataError(f"the remaining share lies between 0 and 1; got {self.remaining}")
        if not self.most_seconds > 0:
            raise DataError(f"a run needs more than 0 seconds; got {self.most_seconds}")

    @property
    def survivors(self) -> int:
        """Particles of a population that survive an iteration."""
        return self.particles - self.particles // _BATCH

    def refuse_too_few(self, dimension: int) -> None:
        """Raise an error if the particles that survive an iteration do not span the space.

        Raises
        ------
        DataError
            If there are too few.
        """
        if self.survivors < dimension + 2:
            needed = math.ceil((dimension + 2) * _BATCH / (_BATCH - 1)) + 1
            raise DataError(
                f"nested sampling needs more particles than dimensions: each population has "
                f"{self.particles} in {dimension} dimensions; give it {needed} or more"
            )


@dataclass(frozen=True)
class NestedRun:
    """What a run leaves behind.

    Attributes
    ----------
    removed
        The particles of each population.
    finished
        Whether every population stopped because next to nothing was left.
    left
        Largest share that what was left in a population could have added to Z.
    iterations
        Iterations of all populations together.
    evaluations
        Points at which the target was evaluated.
    refused
        Share of moves that left a particle where it was.
    p_value
        That the ranks of new particles among the others are uniform, as they are if these are
        independent draws (Fowlie et al. 2020); NaN if none were made.
    steps
        Moves of each new particle.
    """

    removed: tuple[Removed, ...]
    finished: bool
    left: float
    iterations: int
    evaluations: int
    refused: float
    p_value: float
    steps: int


class Summary(NamedTuple):
    """What a run says of the target, with all populations together."""

    whole: Together
    found: Integrated
    by_population: tuple[LogEvidence, ...]
    """Log Z of each population alone."""

    @property
    def disagreement(self) -> float:
        """Probability that sound populations differ as much in log Z; 1 for a single one."""
        value, error = np.array(self.by_population).T
        if len(value) < 2 or not error.all():
            return 1.0
        weight = error**-2
        spread = weight @ np.square(value - weight @ value / weight.sum())
        return float(stats.chi2.sf(spread, len(value) - 1))


def summary(run: NestedRun, seed: int) -> Summary:
    """Draw prior volumes of a run, of all populations together and of each alone."""
    rng = np.random.default_rng([seed, 1])
    whole = together(run.removed)
    return Summary(
        whole,
        integrate(whole, rng),
        tuple(
            integrate(each, rng, paths=_PATHS_OF_EACH).log_evidence
            for each in run.removed
            if np.isfinite(each.particles.log_likelihood).any()
        ),
    )


class _Population:
    """The particles of one population, and those that were removed from it."""

    def __init__(self, particles: Particles, batch: int) -> None:
        self.particles, self._batch = particles, batch
        self._removed: list[Particles] = []
        self._alive: list[int] = []
        self._log_volume = 0.0
        self._log_z = -np.inf
        self.left = math.inf

    def remove(self) -> tuple[Particles, Particles]:
        """Remove the lowest particles; return the last of them and those that survive."""
        order = self.particles.order()
        lowest = self.particles.take(order[: self._batch])
        self._removed.append(lowest)
        count = len(order)
        for number, log_likelihood in enumerate(lowest.log_likelihood.tolist()):
            alive = count - number
            self._alive.append(alive)
            log_width = self._log_volume + math.log(1 / alive)
            self._log_z = np.logaddexp(self._log_z, log_likelihood + log_width)
            self._log_volume -= 1 / alive
        self.particles = self.particles.take(order[self._batch :])
        return lowest.take(slice(-1, None)), self.particles

    def assess(self) -> float:
        """Return the largest share of Z that what is left could add."""
        live = self.particles.log_likelihood
        if live.max() == -np.inf:
            self.left = 1.0  # other populations have found what this one has not yet
        elif live.min() == live.max():
            self.left = 0.0  # nothing is left to find on one plateau, as far as can be seen
        else:
            mean = np.logaddexp.reduce(live) - math.log(live.size)
            log_z = np.logaddexp(self._log_z, self._log_volume + mean)
            share = self._log_volume + float(live.max()) - float(log_z)
            self.left = math.exp(min(share, 0.0))
        return self.left

    def result(self) -> Removed:
        """Return all particles, the last ones as if they were removed one by one."""
        last = self.particles.take(self.particles.order())
        alive = [*self._alive, *range(len(last.key), 0, -1)]
        return Removed(joined([*self._removed, last]), np.array(alive, dtype=np.intp))


def nested_run(
    space: PriorAndLikelihood,
    points: FloatArray,
    settings: NestedSettings,
    *,
    mix_first: bool = False,
    begin_round: Callable[[str], None] = lambda _: None,
    make_mover: Callable[[PriorAndLikelihood, int, Callable[[], None]], Mover] | None = None,
    seed: int,
) -> NestedRun:
    """Run nested sampling.

    Parameters
    ----------
    space
        Prior and likelihood.
    points
        Draws of the prior, shape (populations, particles, D).
    settings
        Settings of the run.
    mix_first
        Whether the draws move in the prior before the run, because they are not independent.
    begin_round
        Is given a few words on how far the run is.
    make_mover
        What moves particles in place of the explorer; its arguments are those of
        :class:`~harness.samplers.nested_moves.SliceMoves`.
    seed
        Seed.

    Raises
    ------
    DataError
        If there are too few particles for the dimension, the prior has no density at a draw, or the
        likelihood is zero at all draws.
    """
    dimension = points.shape[2]
    settings.refuse_too_few(dimension)
    ends = time.perf_counter() + settings.most_seconds
    rng = np.random.default_rng([seed, 2])
    steps = settings.steps or default_steps(settings.explorer, dimension, settings.survivors)

    def check_time() -> None:
        if time.perf_counter() > ends:
            raise OutOfTime

    mover = (make_mover or MOVES[settings.explorer])(space, steps, check_time)
    batch = settings.particles // _BATCH
    start = space.particles(points.reshape(-1, dimension), rng)
    if not np.isfinite(start.log_prior).all():
        raise DataError("nested sampling starts from draws of the prior; one has no density there")
    if not np.isfinite(start.log_likelihood).any():
        raise DataError(
            f"nested sampling cannot start, because the likelihood is zero at all "
            f"{len(start.key):,} draws of the prior: take more draws, or a prior nearer to the data"
        )
    if mix_first:
        start = _mixed(start, settings, mover, rng)
    populations = [
        _Population(start.take(slice(first, first + settings.particles)), batch)
        for first in range(0, len(start.key), settings.particles)
    ]
    ranks: list[FloatArray] = []
    iterations, said = 0, -1
    active = [each for each in populations if each.assess() > settings.remaining]
    try:
        while active:
            check_time()
            ranks.append(_iterate(active, batch, mover, rng))
            iterations += 1
            active = [each for each in active if each.assess() > settings.remaining]
            volume = -iterations * math.log1p(-1 / _BATCH)
            if int(volume / 5) > said:
                said = int(volume / 5)
                begin_round(f"nested sampling, {volume:.0f} nats of prior volume")
    except OutOfTime:
        pass
    return NestedRun(
        tuple(each.result() for each in populations),
        finished=not active,
        left=max(each.left for each in populations),
        iterations=iterations,
        evaluations=space.evaluations,
        refused=mover.refused / max(mover.tried, 1),
        p_value=float(stats.kstest(np.concatenate(ranks), "uniform").pvalue) if ranks else math.nan,
        steps=steps,
    )


def _mixed(
    start: Particles, settings: NestedSettings, mover: Mover, rng: np.random.Generator
) -> Particles:
    """Move draws of the prior in the prior, each half of a population in turn."""
    half = settings.particles // 2
    row = np.arange(len(start.key)).reshape(-1, settings.particles)
    for moving, staying in ((row[:, :half], row[:, half:]), (row[:, half:], row[:, :half])):
        rows = moving.ravel()
        count = moving.shape[1]
        population = np.repeat(np.arange(len(row)), count)
        parent = np.tile(np.arange(count) % staying.shape[1], len(row))
        others = [start.points[each] for each in staying]
        try:
            moved = mover.move(
                start.take(rows), no_floor(rows.size), others, population, parent, rng
            )
        except OutOfTime:
            return start
        start.put(rows, moved)
    return start


def _iterate(
    active: Sequence[_Population], batch: int, mover: Mover, rng: np.random.Generator
) -> FloatArray:
    """Replace the lowest particles of each population; return their ranks, uniform on [0, 1]."""
    floors, survivors = zip(*(each.remove() for each in active), strict=True)
    parents = [rng.permutation(len(each.key))[:batch] for each in survivors]
    clones = joined([each.take(rows) for each, rows in zip(survivors, parents, strict=True)])
    floor = Floor(
        np.concatenate([np.repeat(each.log_likelihood, batch) for each in floors]),
        np.concatenate([np.repeat(each.key, batch) for each in floors]),
    )
    moved = mover.move(
        clones,
        floor,
        [each.points for each in survivors],
        np.repeat(np.arange(len(active)), batch),
        np.concatenate(parents),
        rng,
    )
    ranks = []
    for number, (population, others) in enumerate(zip(active, survivors, strict=True)):
        new = moved.take(slice(number * batch, (number + 1) * batch))
        population.particles = joined([others, new])
        ranks.append(_ranks(population.particles, batch, rng))
    return np.concatenate(ranks)


def _ranks(particles: Particles, new: int, rng: np.random.Generator) -> FloatArray:
    """Return the rank of each of the last particles among those before it, between 0 and 1.

    A rank is spread evenly over its cell, so that ranks of independent draws are independent and
    uniform.
    """
    count = len(particles.key)
    place = np.empty(count, dtype=np.intp)
    place[particles.order()] = np.arange(count)
    own = place[-new:]
    below = np.searchsorted(np.sort(place[:-new]), own)
    below = below + np.tril(own[None, :] < own[:, None], -1).sum(axis=1)
    cells = count - new + 1 + np.arange(new)
    ranks: FloatArray = (below + rng.random(new)) / cells
    return ranks
