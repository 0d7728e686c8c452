"""Which mode a point is in, judged by draws whose modes are known.

The nearest draw alone does not tell: in many dimensions the draws of a wide mode are far from each
other, and may be nearer to those of a narrow one.  So modes are also taken as Gaussians with the
moments of their draws.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.spatial import cKDTree
from scipy.stats import chi2

from harness.arrays import FloatArray
from harness.modes import FoundModes

_DRAWS_A_DIMENSION = 10
"""Fewest draws for each dimension that tell the moments of a mode."""
_QUANTILE = 0.999
"""Of a Gaussian, beyond which a point is outside of it."""


class InWhichMode:
    """Modes of points.

    Parameters
    ----------
    found
        Modes with draws in them.  A mode that has no final draws is known by other points in it.
    """

    def __init__(self, found: FoundModes) -> None:
        self._scale = found.scale
        lacking = [k for k, mode in enumerate(found.table.modes) if mode.probability == 0]
        points = [found.points, *(found.inside[k] for k in lacking)]
        numbers = [found.numbers, *(np.full(len(found.inside[k]), k) for k in lacking)]
        known, self._numbers = np.concatenate(points) / found.scale, np.concatenate(numbers)
        self._tree = cKDTree(known)
        self._count, dimension = len(found.table.modes), known.shape[1]
        self._reach = float(chi2.ppf(_QUANTILE, dimension))
        self._gaussians: dict[int, tuple[FloatArray, FloatArray, float]] = {}
        for k in range(self._count):
            own = known[self._numbers == k]
            if len(own) < _DRAWS_A_DIMENSION * dimension:
                continue
            covariance = np.atleast_2d(np.cov(own, rowvar=False)) + 1e-12 * np.eye(dimension)
            root = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
            height = float(np.log(len(own)) - np.log(np.diag(root)).sum())
            self._gaussians[k] = np.asarray(own.mean(axis=0)), root, height

    def of(self, points: FloatArray) -> npt.NDArray[np.intp]:
        """Return the mode of each point (n, D).

        It is that of the draw at the point, if there is one, and else the one whose Gaussian is the
        most probable, or that of the nearest draw if too few draws of that one are known.
        """
        apart, nearest = self._nearest(points)
        best = np.argmax(self._scores(self._distances(points)), axis=1)
        sure = (apart == 0) | ~np.isin(nearest, list(self._gaussians))
        return np.where(sure, nearest, best)

    def elsewhere(self, points: FloatArray, numbers: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Whether points (n, D) are outside of some modes, by the nearest draw and by Gaussians."""
        _, nearest = self._nearest(points)
        distances = self._distances(points)
        other = np.delete(distances, numbers, axis=1).min(axis=1, initial=np.inf) <= self._reach
        if any(number in self._gaussians for number in numbers):
            other &= ~np.isin(np.argmax(self._scores(distances), axis=1), numbers)
        return np.asarray(~np.isin(nearest, numbers) & other)

    def near(self, points: FloatArray) -> npt.NDArray[np.intp]:
        """Return the mode that each point (n, D) is near to, -1 if it is near to none.

        It is that of the nearest draw, unless a point is outside of its Gaussian: then it is the
        mode whose Gaussian the point is in, if there is one.
        """
        _, nearest = self._nearest(points)
        distances = self._distances(points)
        rows = np.arange(len(points))
        unknown = ~np.isin(nearest, list(self._gaussians))
        best = np.argmax(self._scores(distances), axis=1)
        other = np.where(distances[rows, best] <= self._reach, best, -1)
        return np.where(unknown | (distances[rows, nearest] <= self._reach), nearest, other)

    def _nearest(self, points: FloatArray) -> tuple[FloatArray, npt.NDArray[np.intp]]:
        apart, row = self._tree.query(points / self._scale)
        return np.asarray(apart), np.asarray(self._numbers[row], dtype=np.intp)

    def _distances(self, points: FloatArray) -> FloatArray:
        """Return squared distances from each mode's Gaussian, (n, K), infinite if it has none."""
        found = np.full((len(points), self._count), np.inf)
        for k, (mean, root, _) in self._gaussians.items():
            z = solve_triangular(root, (points / self._scale - mean).T, lower=True)
            found[:, k] = np.square(z).sum(axis=0)
        return found

    def _scores(self, distances: FloatArray) -> FloatArray:
        height = np.zeros(self._count)
        for k, (_, _, own) in self._gaussians.items():
            height[k] = own
        return height - 0.5 * distances
