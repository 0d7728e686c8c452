"""Log density and gradient of a Stan program, with no compile, through the stanli package.

What is driven from Python asks here: the pilot, and samplers that NUTS is compared with.  stanli
is optional and imported only when a density is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.coordinates import Shapes, StanCoordinates, flatten, unflatten
from harness.errors import DataError
from harness.model import LogDensity, Model, StanProgram
from harness.stanli_package import (
    FAULTY_PASSES,
    HOW_TO_INSTALL_STANLI,
    column_major,
    require_stanli,
    stan_model,
)
from harness.weights import FloatArray

__all__ = [
    "FAULTY_PASSES",
    "HOW_TO_INSTALL_STANLI",
    "StanDensity",
    "TargetDensity",
    "column_major",
    "per_point",
    "require_stanli",
    "stan_model",
]


class StanDensity:
    """Log density and gradient of a Stan program with its data, on Stan's unconstrained space.

    Jacobian and constants are included.

    Parameters
    ----------
    program
        The program.
    data
        All its data.

    Raises
    ------
    ToolchainError
        If stanli is not installed.
    DataError
        If stanli refuses the program or its data; the message is its own.
    """

    def __init__(self, program: StanProgram, data: Mapping[str, Any]) -> None:
        self._model = stan_model(program, data)
        self.dimension = int(self._model.n_unconstrained)

    def __call__(self, unconstrained: npt.ArrayLike) -> tuple[float, FloatArray]:
        """Return the log density and its gradient at a point of shape (D,).

        Raises
        ------
        RuntimeError
            Where the program rejects the point.
        """
        value, gradient = self._model.log_prob_grad(np.asarray(unconstrained, dtype=np.float64))
        return float(value), np.asarray(gradient, dtype=np.float64)

    def value(self, unconstrained: npt.ArrayLike) -> float:
        """Return the log density at a point of shape (D,)."""
        return self(unconstrained)[0]

    def unconstrain(self, values: Mapping[str, Any]) -> FloatArray:
        """Return the unconstrained point of parameter values, in Stan's column-major order."""
        return np.asarray(self._model.unconstrain(column_major(values)), dtype=np.float64)

    def shapes(self, names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
        """Shape of each of these parameters, () for a real."""
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(names, ())
        for column in self._model.constrained_names:
            name, *index = re.split(r"[\[\],.]+", column.rstrip("]"))
            if name in shapes and index:
                before = shapes[name] or (0,) * len(index)
                shapes[name] = tuple(map(max, before, map(int, index)))
        return shapes


class TargetDensity:
    """Log density and gradient of a model's target on base coordinates.

    A :data:`LogDensity`: takes points (n, D), and is -inf where a point is outside the support
    or the program rejects it.  It integrates to Z over base coordinates: the Jacobian of every
    map that Stan makes and base coordinates do not is taken out again.

    Parameters
    ----------
    model
        The model.

    Raises
    ------
    ToolchainError
        If stanli is not installed.
    DataError
        If the model's dimension, transforms or bounds are not those of its program.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._stan = StanDensity(model.program("target"), model.data)
        self.shapes: Shapes = self._stan.shapes(model.parameters)
        if self._stan.dimension != model.dimension:
            raise DataError(
                f"{model.name} says it has dimension {model.dimension}; its program has "
                f"{self._stan.dimension}"
            )
        self._coordinates = StanCoordinates(model, self.shapes)
        self._check_transforms()

    @property
    def dimension(self) -> int:
        """Number of base coordinates, D."""
        return self.model.dimension

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities (n,) and gradients (n, D) at points (n, D)."""
        base = np.asarray(points, dtype=np.float64)
        if base.ndim != 2 or base.shape[1] != self.dimension:
            raise DataError(
                f"{self.model.name} takes points of shape (n, {self.dimension}); got {base.shape}"
            )
        value = np.full(len(base), -np.inf)
        gradient = np.zeros(base.shape)
        inside = np.flatnonzero(self._coordinates.inside(base))
        stan = self._coordinates.to_stan(base[inside])
        for row, point in zip(inside, stan, strict=True):
            try:
                value[row], gradient[row] = self._stan(point)
            except RuntimeError:  # as Stan's own sampler: the density there is zero
                value[row] = -np.inf
        carried = self._coordinates.density_on_base(stan, value[inside], gradient[inside])
        value[inside], gradient[inside] = carried
        usable = np.isfinite(value) & np.all(np.isfinite(gradient), axis=1)
        value[~usable], gradient[~usable] = -np.inf, 0.0
        return value, gradient

    def parameters(self, points: npt.ArrayLike) -> dict[str, FloatArray]:
        """Parameters by name, each (..., *shape), of base coordinates (..., D)."""
        return unflatten(self.model, points, self.shapes)

    def _check_transforms(self) -> None:
        """Compare our way from parameters to Stan's unconstrained space with the program's own."""
        stan = np.random.default_rng(0).normal(size=self.dimension)
        try:
            values = self.parameters(self._coordinates.to_base(stan))
            agrees = np.allclose(self._stan.unconstrain(values), stan, rtol=1e-8, atol=1e-8)
            flatten(self.model, values, leading=0)
        except (RuntimeError, ValueError):
            agrees = False
        if not agrees:
            raise DataError(
                f"the transforms and bounds of {self.model.name} are not those that its program "
                f"declares for its parameters (which are reals, vectors or matrices, in the "
                f"program's order)"
            )


def per_point(log_density: Callable[[FloatArray], tuple[float, FloatArray]]) -> LogDensity:
    """Turn a density of one point (D,) into a :data:`LogDensity` of many."""

    def of_points(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = [log_density(point) for point in points]
        return (
            np.array([value for value, _ in values], dtype=np.float64),
            np.array([gradient for _, gradient in values], dtype=np.float64).reshape(points.shape),
        )

    return of_points
