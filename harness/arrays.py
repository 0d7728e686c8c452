"""Types of arrays, and of functions of them, that every room shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
"""Doubles, of any shape."""

LogDensity = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Points (n, D) to log densities (n,), -inf outside the support, and their gradients (n, D)."""

LogValues = Callable[[FloatArray], FloatArray]
"""The same without gradients."""


def values_of(log_density: LogDensity) -> LogValues:
    """Return a density's own method ``values``, or else the density without its gradients.

    Densities that take less time without gradients have such a method.
    """
    own: LogValues | None = getattr(log_density, "values", None)
    return own or (lambda points: log_density(points)[0])


def rows_of(values: Mapping[str, FloatArray]) -> FloatArray:
    """Return the values of several names, each (n, *shape), as rows (n, M), one after the other."""
    return np.concatenate(
        [value.reshape(len(value), math.prod(value.shape[1:])) for value in values.values()], axis=1
    )


class Counted:
    """A log density that counts the points at which it is evaluated, with a gradient or without.

    Attributes
    ----------
    gradients
        The number of points so far.
    """

    def __init__(self, log_density: LogDensity) -> None:
        self._log_density, self._values = log_density, values_of(log_density)
        self.gradients = 0

    def __call__(self, points: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """Return log densities (n,) and gradients (n, D) at points (n, D)."""
        self.gradients += len(points)
        return self._log_density(points)

    def values(self, points: FloatArray, /) -> FloatArray:
        """Return log densities (n,) alone at points (n, D)."""
        self.gradients += len(points)
        return self._values(points)
