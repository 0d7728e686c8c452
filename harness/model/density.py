"""Log density and gradient of a Stan program, with no compile, through the stanli package.

What is driven from Python asks here: the pilot, and samplers that NUTS is compared with.  stanli
is optional and imported only when a density is made.
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

    As the program has them, rejections and what is not finite included.  For more points than a
    few, :class:`harness.engine.batched.BatchedDensity` does all in one call.

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
        self.batched = BatchedDensity(program, data)
        self.dimension = self.batched.dimension

    def __call__(self, unconstrained: npt.ArrayLike) -> tuple[float, FloatArray]:
        """Return the log density and its gradient at a point of shape (D,).

        Raises
        ------
        RuntimeError
            Where the program rejects the point.
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

    A :data:`harness.arrays.LogDensity`: takes points (n, D), and is -inf where a point is outside
    the support or the program rejects it.  It integrates to Z over base coordinates: the Jacobian
    of every map that Stan makes and base coordinates do not is taken out again.

    Parameters
    ----------
    model
        The model.
    threads
        Most threads that a call takes.

    Raises
    ------
    ToolchainError
        If stanli is not installed.
    DataError
        If the model's dimension, transforms or bounds are not those of its program.
    """

    def __init__(self, model: Model, *, threads: int = 1) -> None:
        self.model = model
        self._stan = BatchedDensity(model.program("target"), model.data, threads=threads)
        found = self._stan.shapes
        self.shapes: Shapes = {name: found.get(name, ()) for name in model.parameters}
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
        if not self.model.bounds:  # then the two spaces are one
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
        except (DataError, ValueError):
            agrees = False
        if not agrees:
            raise DataError(
                f"the transforms and bounds of {self.model.name} are not those that its program "
                f"declares for its parameters (which are reals, vectors or matrices, in the "
                f"program's order)"
            )
