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


class Neighbourhood:
    """Places near draws, in coordinates in which the draws have mean 0 and the unit covariance.

    Parameters
    ----------
    draws
        Draws on the unconstrained space, shape (n, D).
    others
        Further points (n, D), whose surroundings count as visited, too.
    """

    def __init__(self, draws: FloatArray, others: Iterable[FloatArray] = ()) -> None:
        self._mean, self.spread = draws.mean(axis=0), np.maximum(draws.std(axis=0), 1e-12)
        scaled = (draws - self._mean) / self.spread
        value, vector = np.linalg.eigh(np.atleast_2d(np.cov(scaled, rowvar=False)))
        self._root = vector / np.sqrt(np.maximum(value, 1e-10))
        compared = self.whitened(_thinned(draws))
        apart = np.asarray(cKDTree(compared).query(compared, k=2)[0])[:, 1]
        self._near = _NEAR * float(np.quantile(apart, 0.99))
        self._tree = cKDTree(
            np.concatenate([compared, *(self.whitened(_thinned(each)) for each in others)])
        )

    def holds(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether there are draws near each point (n, D)."""
        apart = np.asarray(self._tree.query(self.whitened(points))[0])
        near: npt.NDArray[np.bool_] = apart <= self._near
        return near

    def whitened(self, points: FloatArray) -> FloatArray:
        """Return points (n, D) in these coordinates."""
        whitened: FloatArray = ((points - self._mean) / self.spread) @ self._root
        return whitened


def _thinned(points: FloatArray) -> FloatArray:
    return points[:: max(1, len(points) // _DRAWS_TO_COMPARE)]
