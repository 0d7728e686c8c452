"""Log density and gradient of a Stan program, evaluated in Python.

The pilot and the samplers that are driven from Python use these densities.
:mod:`harness.engine.stan_source` decides what evaluates them: the optional package stanli, which
needs no compiler, or a library that is compiled from the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.errors import DataError
from harness.model import Model
from harness.model.coordinates import Shapes, StanCoordinates, flatten, unflatten


class StanDensity:
    """Log density and gradient of a Stan program at one point of Stan's unconstrained space.

    The values are those that the program computes: a rejection is an error, and values that are not
    finite are returned.  For more than a few points, use
    :class:`harness.engine.batched.BatchedDensity`, which evaluates all of them in one call.

    Parameters
    ----------
    program
        The program.
    data
        All its data.

    Raises
    ------
    ToolchainError
        If there is neither stanli nor a C++ compiler.
    DataError
        If the program or its data are refused; the message comes from whatever evaluates them.
    """

    def __init__(self, program: StanProgram, data: Mapping[str, Any]) -> None:
        self.batched = BatchedDensity(program, data)
        self.dimension = self.batched.dimension

    def __call__(self, unconstrained: npt.ArrayLike) -> tuple[float, FloatArray]:
        """Return the log density and its gradient at a point of shape (D,).

        Raises
        ------
        RuntimeError
            If the program rejects the point.
        """
        return self.batched.at(unconstrained)

    def value(self, unconstrained: npt.ArrayLike) -> float:
        """Return the log density at a point of shape (D,)."""
        return self(unconstrained)[0]

    def unconstrain(self, values: Mapping[str, Any]) -> FloatArray:
        """Return the unconstrained point (D,) of parameters, each of its own shape."""
        return self.batched.unconstrain(values)


class TargetDensity:
    """Log density and gradient of a model's target on base coordinates.

    This is a :data:`harness.arrays.LogDensity`: it takes points (n, D), and its value is -inf where
    a point is outside the support or the program rejects it.  It integrates to Z over base
    coordinates: where Stan's map to the unconstrained space differs from ours, Stan's Jacobian is
    taken out again.

    Parameters
    ----------
    model
        The model.
    threads
        Largest number of threads that a call may use.

    Raises
    ------
    ToolchainError
        If there is neither stanli nor a C++ compiler.
    DataError
        If the model's dimension, transforms or bounds differ from those of its program.
    """

    def __init__(self, model: Model, *, threads: int = 1) -> None:
        self.model = model
        self._stan = BatchedDensity(model.program("target"), model.data, threads=threads)
        found = self._stan.shapes
        self.shapes: Shapes = {name: found.get(name, ()) for name in model.parameters}
        if self._stan.dimension != model.dimension:
            raise DataError(
                f"{model.name} says that it has dimension {model.dimension}, but its program has "
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
        if not self.model.bounds:  # then the two spaces are the same
            value, gradient = self._stan(base)
            value[value == np.inf] = -np.inf
            return value, gradient
        inside = self._coordinates.inside(base)
        stan = self._coordinates.to_stan(base if inside.all() else base[inside])
        value, gradient = self._coordinates.density_on_base(stan, *self._stan(stan))
        usable = np.isfinite(value) & np.isfinite(gradient).all(axis=1)
        if len(stan) == len(base) and usable.all():
            return value, gradient
        known, slope = value[usable], gradient[usable]
        inside[inside] = usable
        value, gradient = np.full(len(base), -np.inf), np.zeros(base.shape)
        value[inside], gradient[inside] = known, slope
        return value, gradient

    def values(self, points: FloatArray) -> FloatArray:
        """Return log densities (n,) at points (n, D), in less time if there are no bounds.

        See :meth:`harness.engine.batched.BatchedDensity.values`.
        """
        if self.model.bounds:
            return self(points)[0]
        value = self._stan.values(points)
        value[value == np.inf] = -np.inf
        return value

    def parameters(self, points: npt.ArrayLike) -> dict[str, FloatArray]:
        """Turn base coordinates (..., D) into parameters by name, each (..., *shape)."""
        return unflatten(self.model, points, self.shapes)

    def _check_transforms(self) -> None:
        """Compare our map from parameters to Stan's unconstrained space with the program's own."""
        stan = np.random.default_rng(0).normal(size=self.dimension)
        try:
            values = self.parameters(self._coordinates.to_base(stan))
            agrees = np.allclose(self._stan.unconstrain(values), stan, rtol=1e-8, atol=1e-8)
            flatten(self.model, values, leading=0)
        except (DataError, ValueError):
            agrees = False
        if not agrees:
            raise DataError(
                f"the transforms and bounds of {self.model.name} differ from those that its "
                f"program declares for its parameters (which must be reals, vectors or matrices, "
                f"in the order of the program)"
            )
