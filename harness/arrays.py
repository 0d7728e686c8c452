"""Types of arrays, and of functions of them, that every room shares."""

from __future__ import annotations

from collections.abc import Callable

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
