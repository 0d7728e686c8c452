"""Types of arrays, and of functions of them, that every room shares."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
"""Doubles, of any shape."""

LogDensity = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Points (n, D) to log densities (n,), -inf outside the support, and their gradients (n, D)."""
