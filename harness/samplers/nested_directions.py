"""Directions of the slices of nested sampling: differences of other particles, or axes.

References
----------
ter Braak, C. J. F. (2006). A Markov chain Monte Carlo version of the genetic algorithm differential
evolution: easy Bayesian computing for real parameter spaces. Statistics and Computing 16, 239-249
(differences of other particles as directions).
"""

from __future__ import annotations

import numpy as np

from harness.arrays import FloatArray
from harness.samplers.nested_particles import BoolArray, Rows

_LOCAL = 10  # a tenth of the particles are neighbours


class Differences:
    """Deals out differences of two particles of a population, neither of them a clone's parent.

    All are chosen beforehand, as they do not depend on where particles move to.

    Parameters
    ----------
    others, population, parent
        As for :meth:`harness.samplers.nested_moves.Mover.move`.
    near
        Whether two neighbours are wanted, for each slice of each clone, shape (n, steps).
    rng
        Source of randomness.
    """

    def __init__(
        self,
        others: list[FloatArray],
        population: Rows,
        parent: Rows,
        near: BoolArray,
        rng: np.random.Generator,
    ) -> None:
        size = min(len(points) for points in others)
        dimension = others[0].shape[1]
        self._points = np.concatenate([points[:size] for points in others])
        start, own = (population * size)[:, None], parent[:, None]
        between = rng.integers(size - 1, size=near.shape)
        first = (own + 1 + between) % size
        second = (between + 1 + rng.integers(size - 2, size=near.shape)) % (size - 1)
        second = (own + 1 + second) % size
        count = min(max(dimension + 1, size // _LOCAL), size - 2)
        neighbours = np.concatenate([_nearest(points[:size], count) for points in others])
        clone, _ = np.nonzero(near)
        point = (start + first)[near]
        rank = rng.integers(count, size=len(point))
        beside = neighbours[point, rank]
        again = np.flatnonzero(beside == parent[clone])
        beside[again] = neighbours[point[again], (rank[again] + 1) % count]
        second[near] = beside
        self._first, self._second = (start + first).ravel(), (start + second).ravel()

    def __call__(self, slots: Rows) -> FloatArray:
        """Return directions (n, D) of slices, numbered clone by clone."""
        direction = self._points.take(self._first.take(slots), axis=0)
        direction -= self._points.take(self._second.take(slots), axis=0)
        return direction


class Axes:
    """Deals out axes in turn, as long as the range of the other particles along each."""

    def __init__(
        self,
        others: list[FloatArray],
        population: Rows,
        steps: int,
        rng: np.random.Generator,
        *,
        random: bool,
    ) -> None:
        self._range = np.stack([np.ptp(points, axis=0) for points in others])[population]
        self._steps = steps
        count, dimension = self._range.shape
        axes = np.tile(np.arange(dimension), (count, -(-steps // dimension), 1))
        if random:
            axes = rng.permuted(axes, axis=2)
        self._axis = axes.reshape(count, -1)[:, :steps].ravel()

    def __call__(self, slots: Rows) -> FloatArray:
        """Return directions (n, D) of slices, numbered clone by clone."""
        axis = self._axis.take(slots)
        direction = np.zeros((len(slots), self._range.shape[1]))
        direction[np.arange(len(slots)), axis] = self._range[slots // self._steps, axis]
        return direction


def _nearest(points: FloatArray, count: int) -> Rows:
    """Return the nearest others of each point, in standard deviations, shape (M, count)."""
    spread = points.std(axis=0)
    scaled = points / np.where(spread > 0, spread, 1.0)
    square = np.square(scaled).sum(axis=1)
    distance = square[:, None] + square - 2 * scaled @ scaled.T
    np.fill_diagonal(distance, np.inf)
    return np.argpartition(distance, count - 1, axis=1)[:, :count]
