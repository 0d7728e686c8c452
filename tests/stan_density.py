"""Log density of a Stan program on the unconstrained space, with no compile, through stanli."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit

from harness.arrays import FloatArray
from harness.engine.stanli_package import require_stanli
from harness.model.density import StanDensity

__all__ = ["StanDensity", "into_box", "log_box_jacobian", "stanli"]

stanli: Any = pytest.importorskip(
    "stanli", reason="stanli, which evaluates Stan programs with no compile, is not installed"
)
require_stanli()  # without its faulty passes, also where a test makes a model by itself


def into_box(unconstrained: npt.ArrayLike, lower: float, upper: float) -> FloatArray:
    """Map the real line onto the interval (lower, upper), as Stan does."""
    u = np.asarray(unconstrained, dtype=np.float64)
    return np.asarray(lower + (upper - lower) * expit(u), dtype=np.float64)


def log_box_jacobian(unconstrained: npt.ArrayLike, lower: float, upper: float) -> float:
    """Log derivative of :func:`into_box`, summed over coordinates."""
    u = np.asarray(unconstrained, dtype=np.float64)
    # s (1 - s) with s = 1 / (1 + exp(-u)), without overflow.
    log_slope = -np.abs(u) - 2 * np.log1p(np.exp(-np.abs(u)))
    return float(np.sum(np.log(upper - lower) + log_slope))
