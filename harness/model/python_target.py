"""A target with its density in Python: of a model's Stan program, or of a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.arrays import FloatArray, LogDensity
from harness.errors import DataError
from harness.model import Model
from harness.model.coordinates import Shapes
from harness.model.numpy_density import NumpyDensity, target_density


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
    engine
        What evaluates the density, for the fit: ``numpy`` or ``stanli``.
    """

    name: str
    dimension: int
    log_density: LogDensity
    parameters: Callable[[FloatArray], Mapping[str, FloatArray]]
    data: Mapping[str, Any] = field(default_factory=dict)
    engine: str = "numpy"


def target_of(what: Model | Target) -> Target:
    """Return a model's target by its density in Python, or a target as it is.

    See :func:`harness.model.numpy_density.target_density`.

    Raises
    ------
    ToolchainError
        If it takes stanli, which evaluates Stan programs, and that is not installed.
    """
    if isinstance(what, Target):
        return what
    density = target_density(what)
    return Target(
        what.name,
        what.dimension,
        density,
        density.parameters,
        what.data,
        engine="numpy" if isinstance(density, NumpyDensity) else "stanli",
    )


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
    density = NumpyDensity(model, log_density, shapes)
    return Target(model.name, model.dimension, density, density.parameters, model.data)
