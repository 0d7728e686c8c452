"""Types of arrays, and of functions of them, that every room shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
"""Doubles, of any shape."""

LogDensity = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Points (n, D) to log densities (n,), -inf outside the support, and their gradients (n, D)."""

LogValues = Callable[[FloatArray], FloatArray]
"""The same without gradients."""


@runtime_checkable
class GivesValues(Protocol):
    """A log density that takes less time without gradients."""

    def values(self, points: FloatArray, /) -> FloatArray:
        """Return log densities (n,) at points (n, D)."""


def values_of(log_density: LogDensity) -> LogValues:
    """Return a density's own :meth:`GivesValues.values`, or the density without its gradients."""
    if isinstance(log_density, GivesValues):
        return log_density.values
    return lambda points: log_density(points)[0]
