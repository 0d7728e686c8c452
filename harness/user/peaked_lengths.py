"""A density whose lengths behind unit vectors have a mode, so that climbs end somewhere.

In Stan's density, exp(-r^2 / 2) times a function of the direction, the vector behind a unit vector
of K elements has no mode: at each direction the density is largest at length r = 0, where all
directions meet, and climbs from anywhere end there.  Another law of the lengths changes nothing
else, because lengths are independent of directions and of all other parameters.  With the factor
r^K, which has mean 2^(K/2) Gamma(K) / Gamma(K/2), r^2 is chi-square of 2K degrees of freedom
instead of K, the density is largest at r = sqrt(K), and every mode has the mass that it had.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.unit_vectors import Lengths, squared_lengths, with_lengths


class PeakedLengths:
    """A program's density with that factor for each unit vector; without any, the density itself.

    This is a :class:`harness.modes.target.Target`.

    Parameters
    ----------
    density
        The program's.
    """

    def __init__(self, density: BatchedDensity) -> None:
        self._density, self._vectors = density, density.unit_vectors
        self.shapes = density.shapes
        size = np.array([each.stop - each.start for each in self._vectors])
        log_means = size / 2 * np.log(2) + gammaln(size) - gammaln(size / 2)
        self._log_mean = float(log_means.sum())

    def __call__(self, points: npt.ArrayLike, /) -> tuple[FloatArray, FloatArray]:
        """Return log densities (n,) and gradients (n, D) at points (n, D)."""
        value, gradient = self._density(points)
        at = np.asarray(points, dtype=np.float64)
        inside = np.isfinite(value)
        for each in self._vectors:
            size, square = each.stop - each.start, squared_lengths(at[inside], [each])
            gradient[inside, each] += size * at[inside, each] / square[:, None]
        return self._with_lengths(value, at), gradient

    def values(self, points: npt.ArrayLike, /) -> FloatArray:
        """Return log densities (n,) alone at points (n, D)."""
        return self._with_lengths(self._density.values(points), np.asarray(points))

    def _with_lengths(self, value: FloatArray, at: FloatArray) -> FloatArray:
        """Add what lengths have to log densities, where these are finite."""
        inside = np.isfinite(value)
        for each in self._vectors:
            size, square = each.stop - each.start, squared_lengths(at[inside], [each])
            value[inside] += size / 2 * np.log(square)
        value[inside] -= self._log_mean
        return value

    def constrain(self, points: npt.ArrayLike, /) -> dict[str, FloatArray]:
        """Return the parameters at points (n, D), each (n, *shape)."""
        return self._density.constrain(points)

    def unconstrain_draws(
        self, values: Mapping[str, npt.ArrayLike], /, *, lengths: Lengths = "drawn"
    ) -> FloatArray:
        """Return the points (n, D) of parameters, each (n, *shape), with lengths of this density.

        Raises
        ------
        DataError
            If one lies outside its support.
        """
        points = self._density.unconstrain_draws(values, lengths="one")
        return points if lengths == "one" else self.of_draws(points)

    def of_draws(self, points: FloatArray) -> FloatArray:
        """Return points (..., D) with lengths of this density, whatever they had."""
        flat = points.reshape(-1, points.shape[-1])
        return with_lengths(flat, self._vectors, freedom=2).reshape(points.shape)
