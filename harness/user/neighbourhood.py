"""Which places count as visited: those near draws of a posterior."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from harness.arrays import FloatArray

_NEAR = 1.5
"""Multiple of the distances between draws within which a place counts as visited."""
_DRAWS_TO_COMPARE = 1500
_DRAWS_A_DIMENSION = 10
"""Fewest draws for each dimension that tell their covariance.

With about as many draws as dimensions some directions look far too narrow, and a mode seems to be
elsewhere.
"""


class Neighbourhood:
    """Places near draws, in coordinates in which the draws have mean 0 and the unit covariance.

    Where draws are too few to tell the covariance, the standard deviations are 1 at least.

    Parameters
    ----------
    draws
        Draws on the unconstrained space, shape (n, D).
    others
        Further points (n, D), whose surroundings count as visited, too.
    """

    def __init__(self, draws: FloatArray, others: Iterable[FloatArray] = ()) -> None:
        self._mean, self.spread = draws.mean(axis=0), np.maximum(draws.std(axis=0), 1e-12)
        self._root = self._roots(draws)
        compared = self.whitened(_thinned(draws))
        apart = np.asarray(cKDTree(compared).query(compared, k=2)[0])[:, 1]
        self._near = _NEAR * float(np.quantile(apart, 0.99))
        self._tree = cKDTree(
            np.concatenate([compared, *(self.whitened(_thinned(each)) for each in others)])
        )

    def _roots(self, draws: FloatArray) -> FloatArray | None:
        """Return what turns scaled points into whitened ones; None if draws are too few to tell."""
        if len(draws) < _DRAWS_A_DIMENSION * draws.shape[1]:
            return None
        scaled = (draws - self._mean) / self.spread
        value, vector = np.linalg.eigh(np.atleast_2d(np.cov(scaled, rowvar=False)))
        root: FloatArray = vector / np.sqrt(np.maximum(value, 1e-10))
        return root

    def holds(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether there are draws near each point (n, D)."""
        apart = np.asarray(self._tree.query(self.whitened(points))[0])
        near: npt.NDArray[np.bool_] = apart <= self._near
        return near

    def gaussian(self, count: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Sample the Gaussian that is standard in these coordinates.

        Returns
        -------
        ndarray, ndarray
            Points, shape (count, D), and their log density, shape (count,).
        """
        z = rng.standard_normal((count, len(self.spread)))
        log_volume = float(np.log(self.spread).sum())
        scaled: FloatArray = z
        if self._root is not None:
            scaled = np.asarray(np.linalg.solve(self._root.T, z.T).T, dtype=np.float64)
            log_volume -= float(np.linalg.slogdet(self._root)[1])
        log_density: FloatArray = (
            -0.5 * np.square(z).sum(axis=1) - 0.5 * z.shape[1] * np.log(2 * np.pi) - log_volume
        )
        return self._mean + scaled * self.spread, log_density

    def whitened(self, points: FloatArray) -> FloatArray:
        """Return points (n, D) in these coordinates."""
        scaled: FloatArray = (points - self._mean) / self.spread
        return scaled if self._root is None else scaled @ self._root


def _thinned(points: FloatArray) -> FloatArray:
    return points[:: max(1, len(points) // _DRAWS_TO_COMPARE)]
