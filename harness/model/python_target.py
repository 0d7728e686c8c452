"""A target whose density is evaluated from Python: a model's, or that of a function."""

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
    """A density to sample, in base coordinates.

    Attributes
    ----------
    name
        Name of the target.
    dimension
        Number D of coordinates.
    log_density
        Log densities (n,) and gradients (n, D) at points (n, D).
    parameters
        Turns coordinates (..., D) into parameters by name, each (..., *shape).
    data
        Data of the model, which the fit stores.
    engine
        What evaluates the density, ``numpy`` or ``stanli``, which the fit records.
    """

    name: str
    dimension: int
    log_density: LogDensity
    parameters: Callable[[FloatArray], Mapping[str, FloatArray]]
    data: Mapping[str, Any] = field(default_factory=dict)
    engine: str = "numpy"


def target_of(what: Model | Target) -> Target:
    """Return the target of a model, with its density in Python; return a target unchanged.

    See :func:`harness.model.numpy_density.target_density`.

    Raises
    ------
    ToolchainError
        If the model has no NumPy density, and there is neither stanli nor a C++ compiler to
        evaluate its Stan program.
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
    """Make a target from a NumPy log density of many points; its only parameter is a vector.

    Raises
    ------
    DataError
        If the dimension is less than 1.
    """
    if dimension < 1:
        raise DataError(f"a target needs a dimension of 1 or more; got {dimension}")
    return Target(name, dimension, log_density, lambda points: {parameter: points})


def numpy_target(model: Model, log_density: LogDensity, *, shapes: Shapes | None = None) -> Target:
    """Make a target from a model and a NumPy function for its density.

    The function replaces the model's Stan program: it must be the same density, constants included,
    in base coordinates.

    Parameters
    ----------
    model
        The model.  Outside its bounds the density is -inf, whatever the function returns.
    log_density
        Log densities (n,) and gradients (n, D) at points (n, D) inside the bounds, such as
        :meth:`harness.models.boltzmann.BoltzmannRelaxation.log_density_and_gradient`.
    shapes
        Shape of each parameter; if it is not given, the model must have a single parameter, which
        is a vector.

    Raises
    ------
    DataError
        If the shapes do not add up to the model's dimension.
    """
    density = NumpyDensity(model, log_density, shapes)
    return Target(model.name, model.dimension, density, density.parameters, model.data)
