"""What a sampler draws from: a model's Stan program or a function, and what it cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.coordinates import Shapes, StanCoordinates, unflatten
from harness.density import LogDensity, TargetDensity
from harness.errors import DataError
from harness.model import Model
from harness.weights import FloatArray


@dataclass(frozen=True)
class Target:
    """A density to sample, on base coordinates.

    Attributes
    ----------
    name
        Name of the target.
    dimension
        Number D of coordinates.
    log_density
        Log densities (n,) and gradients (n, D) at points (n, D).
    parameters
        Parameters by name, each (..., *shape), of coordinates (..., D).
    data
        Data of the model, for the fit.
    """

    name: str
    dimension: int
    log_density: LogDensity
    parameters: Callable[[FloatArray], Mapping[str, FloatArray]]
    data: Mapping[str, Any] = field(default_factory=dict)


def target_of(what: Model | Target) -> Target:
    """Return a model's target through its Stan program; a target as it is.

    Raises
    ------
    ToolchainError
        If a model is given and stanli, which evaluates Stan programs, is not installed.
    """
    if isinstance(what, Target):
        return what
    density = TargetDensity(what)
    return Target(what.name, what.dimension, density, density.parameters, what.data)


def function_target(
    name: str, log_density: LogDensity, dimension: int, *, parameter: str = "x"
) -> Target:
    """Make a target of a NumPy log density of many points; its parameter is one vector.

    Raises
    ------
    DataError
        If the dimension is less than 1.
    """
    if dimension < 1:
        raise DataError(f"a target needs a dimension of 1 or more; got {dimension}")
    return Target(name, dimension, log_density, lambda points: {parameter: points})


def numpy_target(model: Model, log_density: LogDensity, *, shapes: Shapes | None = None) -> Target:
    """Make a target of a model whose density is at hand as a NumPy function as well.

    The function stands for the model's Stan program: the same density, constants included, on
    base coordinates.

    Parameters
    ----------
    model
        The model; outside its bounds the density is -inf, whatever the function says.
    log_density
        Log densities (n,) and gradients (n, D) at points (n, D) inside the bounds, such as
        :meth:`harness.models.boltzmann.BoltzmannRelaxation.log_density_and_gradient`.
    shapes
        Shape of each parameter; if not given, the model has one, a vector.

    Raises
    ------
    DataError
        If the shapes do not add up to the model's dimension.
    """
    known = dict(shapes) if shapes is not None else {model.parameters[0]: (model.dimension,)}
    coordinates = StanCoordinates(model, known)

    def bounded(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        value, gradient = log_density(points)
        with np.errstate(invalid="ignore"):  # a gradient that is not finite makes its row's sum so
            usable = np.isfinite(value + gradient.sum(axis=1))
        if model.bounds or not usable.all():
            usable &= coordinates.inside(points)
            value = np.where(usable, value, -np.inf)
            gradient = np.where(usable[:, None], gradient, 0.0)
        return value, gradient

    def parameters(points: FloatArray) -> dict[str, FloatArray]:
        return unflatten(model, points, known)

    return Target(model.name, model.dimension, bounded, parameters, model.data)


class Cost:
    """What a run has cost so far: evaluations over all chains, and seconds since it began."""

    def __init__(self) -> None:
        self.gradients = 0
        self.densities = 0
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall time since the run began."""
        return time.perf_counter() - self._started
