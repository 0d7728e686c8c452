"""Log density of a Stan program on the unconstrained space, with no compile, through stanli."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit

from harness.model import StanProgram
from harness.weights import FloatArray

stanli: Any = pytest.importorskip(
    "stanli", reason="stanli, which evaluates Stan programs with no compile, is not installed"
)


class StanDensity:
    """Log density (Jacobian included) and gradient of a Stan program with its data."""

    def __init__(self, program: StanProgram, data: Mapping[str, Any]) -> None:
        plain = {name: np.asarray(value).tolist() for name, value in data.items()}
        self._model = stanli.Model(
            str(program.path),
            data=plain,
            include_paths=[str(path) for path in program.include_paths],
        )
        self.dimension = int(self._model.n_unconstrained)

    def __call__(self, unconstrained: npt.ArrayLike) -> tuple[float, FloatArray]:
        """Return the log density and its gradient at an unconstrained point."""
        value, gradient = self._model.log_prob_grad(np.asarray(unconstrained, dtype=np.float64))
        return float(value), np.asarray(gradient, dtype=np.float64)

    def value(self, unconstrained: npt.ArrayLike) -> float:
        """Return the log density at an unconstrained point."""
        return self(unconstrained)[0]

    def unconstrain(self, values: Mapping[str, Any]) -> FloatArray:
        """Return the unconstrained point of parameter values, in Stan's column-major order."""
        flat = {name: np.ravel(value, order="F").tolist() for name, value in values.items()}
        return np.asarray(self._model.unconstrain(flat), dtype=np.float64)


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
