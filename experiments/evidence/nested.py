"""Nested sampling as in Algorithm 4.2 of Murray (2007), moved by sweeps of slice sampling.

Several independent runs go on side by side, so that each call of the densities has more points.
Where a run has 20 particles or more, a twentieth of them are removed at once, and their volumes
have the exact laws of that; it saves 2 % of the evaluations.

The thesis ends a run when "the remaining prior mass appeared to contribute a fraction of only
10^-6".  Here a run ends when the last removed particle's own term does.  That takes about as many
evaluations as the thesis prints for its Gaussians, the t distribution and the two modes, but only
0.6 times as many on the deceptive target.  What is left at the end counts here, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.samplers.nested_particles import (
    Floor,
    Particles,
    PriorAndLikelihood,
    Rows,
    joined,
)
from harness.samplers.nested_volumes import Removed, integrate, log_widths

from .sweep import slice_sweep, widths

_REMAINING = 1e-6
_AT_ONCE = 20  # a twentieth
_PATHS = 1000
_FEWEST_PATHS = 60
_MOST_NUMBERS = 2e7  # of all volumes that are drawn


@dataclass(frozen=True)
class Nest:
    """How a run is done.

    Attributes
    ----------
    particles
        N, 1 or more.
    steps
        Sweeps of each new particle.

    Raises
    ------
    DataError
        If either is less than 1.
    """

    particles: int
    steps: int = 1

    def __post_init__(self) -> None:
        if self.particles < 1 or self.steps < 1:
            raise DataError(
                f"nested sampling takes 1 particle and 1 step or more; got {self.particles} and "
                f"{self.steps}"
            )


def nested_runs(
    space: PriorAndLikelihood, points: FloatArray, nest: Nest, rng: np.random.Generator
) -> tuple[list[Removed], FloatArray]:
    """Run nested sampling from draws of the prior, several runs side by side.

    A new particle starts at one of those that stay, or where it was if there is no other.  A run
    stops when the last removed particle has added less than 1e-6 of Z.

    Parameters
    ----------
    space
        Prior and likelihood.
    points
        Draws of the prior, shape (R, N, D).
    nest
        Its settings; N is that of the points.
    rng
        Source of randomness.

    Returns
    -------
    tuple
        What each run removed, with those that were left at the end one by one; and the share of
        the evaluations that belongs to each run, shape (R,), in proportion to its iterations.
    """
    runs, count, dimension = points.shape
    batch = max(1, count // _AT_ONCE)
    live = space.particles(points.reshape(-1, dimension), rng)
    removed: list[list[Particles]] = [[] for _ in range(runs)]
    log_z, log_volume = np.full(runs, -np.inf), 0.0
    fall = 1 / (count - np.arange(batch))
    log_share = np.log(-np.expm1(-fall)) - np.concatenate([[0.0], np.cumsum(fall)[:-1]])
    active = np.arange(runs)
    iterations = np.zeros(runs)
    while active.size:
        row = active[:, None] * count + np.arange(count)
        order = np.lexsort((live.key[row], live.log_likelihood[row]), axis=-1)
        order = np.take_along_axis(row, order, axis=1)
        low, stay = order[:, :batch], order[:, batch:]
        for run, which in zip(active, low, strict=True):
            removed[run].append(live.take(which))
        part = live.log_likelihood[low] + log_volume + log_share
        log_z[active] = np.logaddexp(log_z[active], np.logaddexp.reduce(part, axis=1))
        log_volume -= float(fall.sum())
        _replace(space, live, low, stay, nest.steps, rng)
        iterations[active] += 1
        active = active[part[:, -1] - log_z[active] > np.log(_REMAINING)]
    finished = []
    for number in range(runs):
        own = live.take(slice(number * count, (number + 1) * count))
        alive = np.tile(count - np.arange(batch), len(removed[number]))
        finished.append(
            Removed(
                joined([*removed[number], own.take(own.order())]),
                np.concatenate([alive, np.arange(count, 0, -1)]).astype(np.intp),
            )
        )
    return finished, iterations / iterations.sum()


def _replace(
    space: PriorAndLikelihood,
    live: Particles,
    low: Rows,
    stay: Rows,
    steps: int,
    rng: np.random.Generator,
) -> None:
    """Put clones of particles that stay, each moved above its run's floor, where the lowest were.

    ``low`` has shape (A, b), the last of which is the floor, and ``stay`` (A, N - b).
    """
    groups, batch = low.shape
    parent = rng.permuted(stay, axis=1)[:, :batch] if stay.shape[1] else low
    new = live.take(parent.ravel())
    floor = Floor(
        np.repeat(live.log_likelihood[low[:, -1]], batch), np.repeat(live.key[low[:, -1]], batch)
    )

    def height(log_prior: FloatArray, log_likelihood: FloatArray, rows: Rows) -> FloatArray:
        return log_prior + floor.take(rows).log_share(log_likelihood)

    width = np.repeat(widths(live.points[stay]), batch, axis=0).reshape(groups * batch, -1)
    for _ in range(steps):
        slice_sweep(space, height, new, width, rng)
    new.key[:] = floor.draw_key(new.log_likelihood, rng)
    live.put(low.ravel(), new)


def log_evidence_of(run: Removed, rng: np.random.Generator) -> tuple[float, float, FloatArray]:
    """Return log Z, its error and posterior log weights (S,), from up to 1,000 drawn volumes."""
    found = integrate(run, rng, paths=_paths(run))
    return found.log_evidence.value, found.log_evidence.mcse, found.log_weight


def shares_of(run: Removed, events: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return posterior probabilities of events (S, M) and their errors from volumes, (2, M)."""
    drawn = []
    for _ in range(_paths(run)):
        log_volume = -np.cumsum(rng.standard_exponential(len(run.alive)) / run.alive)
        log_weight = run.particles.log_likelihood + log_widths(log_volume)
        weight = np.exp(log_weight - log_weight.max())
        drawn.append(weight @ events / weight.sum())
    return np.stack([np.mean(drawn, axis=0), np.std(drawn, axis=0, ddof=1)])


def _paths(run: Removed) -> int:
    return int(np.clip(_MOST_NUMBERS / len(run.alive), _FEWEST_PATHS, _PATHS))
