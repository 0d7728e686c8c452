"""A model's target as a NumPy function of many points, used in place of its Stan program."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, LogDensity
from harness.model import Model
from harness.model.coordinates import Shapes, StanCoordinates, unflatten
from harness.model.density import TargetDensity


class NumpyDensity:
    """Log density and gradient of a model's target on base coordinates, from a NumPy function.

    This is a :data:`harness.arrays.LogDensity`, like
    :class:`harness.model.density.TargetDensity`, which runs the Stan program instead.

    Parameters
    ----------
    model
        The model.  Outside its bounds the density is -inf, whatever the function returns.
    log_density
        The same density as that of the model's Stan program, constants included.  It takes points
        (n, D) inside the bounds and returns log densities (n,) and gradients (n, D).
    shapes
        Shape of each parameter.  If neither this argument nor the model gives shapes, the model
        must have a single parameter, which is a vector.

    Raises
    ------
    DataError
        If the shapes do not add up to the model's dimension.
    """

    def __init__(self, model: Model, log_density: LogDensity, shapes: Shapes | None = None) -> None:
        self.model = model
        self.shapes: Shapes = shapes or model.shapes or {model.parameters[0]: (model.dimension,)}
        self._log_density = log_density
        self._coordinates = StanCoordinates(model, self.shapes)

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities (n,) and gradients (n, D) at points (n, D)."""
        value, gradient = self._log_density(points)
        with np.errstate(invalid="ignore"):  # if a gradient is not finite, neither is its row's sum
            usable = np.isfinite(value + gradient.sum(axis=1))
        if self.model.bounds or not usable.all():
            usable &= self._coordinates.inside(points)
            value = np.where(usable, value, -np.inf)
            gradient = np.where(usable[:, None], gradient, 0.0)
        return value, gradient

    def parameters(self, points: npt.ArrayLike) -> dict[str, FloatArray]:
        """Turn base coordinates (..., D) into parameters by name, each (..., *shape)."""
        return unflatten(self.model, points, self.shapes)


def target_density(model: Model) -> NumpyDensity | TargetDensity:
    """Return a model's target density: its NumPy function if it has one, else its Stan program.

    Raises
    ------
    ToolchainError
        If the model has no NumPy function, and there is neither stanli nor a C++ compiler to
        evaluate its Stan program.
    """
    if model.log_density is not None:
        return NumpyDensity(model, model.log_density)
    return TargetDensity(model)
