"""The geometric path that a pilot's particles follow, given by functions of points."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, LogDensity, values_of
from harness.path.gaussian import GaussianBase


class PilotPath:
    """The geometric path; it counts the evaluations of the target's density."""

    def __init__(self, log_density: LogDensity, base: GaussianBase) -> None:
        self._log_density, self._log_values = log_density, values_of(log_density)
        self.base = base
        self.gradients = self.infinite = 0

    def target(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the target's log density and gradient; NaN counts as outside the support."""
        self.gradients += len(points)
        value, gradient = self._log_density(points)
        value = self._usable(value)
        usable = np.isfinite(value)[:, None] & np.isfinite(gradient)
        return value, np.where(usable, gradient, 0.0)

    def values(self, points: FloatArray) -> FloatArray:
        """Return the target's log density, in less time than with its gradient."""
        self.gradients += len(points)
        return self._usable(self._log_values(points))

    def _usable(self, value: FloatArray) -> FloatArray:
        """Return log densities with -inf for NaN and for +inf, which is counted."""
        self.infinite += int(np.count_nonzero(value == np.inf))
        usable: FloatArray = np.where(value < np.inf, value, -np.inf)
        return usable

    def log_ratio(self, points: FloatArray) -> FloatArray:
        """Return log gamma minus log zeta and log b, the path's derivative in beta."""
        ratio: FloatArray = self.values(points) - self.base.log_zeta - self.base.log_density(points)
        return ratio

    def at(self, beta: float) -> PilotRung:
        """Return the log density and gradient at an inverse temperature."""
        return PilotRung(self, beta)


class PilotRung:
    """The path's log density and gradient at one inverse temperature."""

    def __init__(self, path: PilotPath, beta: float) -> None:
        self._path, self._beta = path, beta

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the log density and its gradient."""
        value, gradient = self._path.target(points)
        base, slope = self._path.base.log_density_and_gradient(points)
        tempered, inside = self._tempered(value, base)
        slope = np.where(inside[:, None], slope, 0.0)
        return tempered, self._beta * gradient + (1 - self._beta) * slope

    def values(self, points: FloatArray) -> FloatArray:
        """Return the log density without its gradient."""
        return self._tempered(self._path.values(points), self._path.base.log_density(points))[0]

    def _tempered(
        self, value: FloatArray, base: FloatArray
    ) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """Return the log density, by those of target and base, and whether the base has any."""
        inside = np.isfinite(base)  # elsewhere every density of the path is zero
        weighted = np.where(inside, (1 - self._beta) * np.where(inside, base, 0.0), -np.inf)
        return self._beta * (value - self._path.base.log_zeta) + weighted, inside
