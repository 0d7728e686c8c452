"""Log density and gradient of a Stan program at many points in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.engine.blocks import Blocks, blocks
from harness.engine.bounds import Bounds, fixed_bounds
from harness.engine.instances import Instances
from harness.engine.patience import NeverReturned, may_not_return
from harness.engine.patient_rows import PatientRows
from harness.engine.program import StanProgram
from harness.engine.stan_library import (
    DATA_SEED,
    Message,
    Variable,
    address_of,
    from_columns,
    to_columns,
)
from harness.engine.stan_rows import CompiledRows, RowEvaluator, rows_from_python
from harness.engine.stan_source import stan_instance
from harness.engine.toolchain.row_loop import row_loop
from harness.engine.unit_vectors import Lengths, unit_vectors, with_lengths
from harness.errors import DataError, SamplingError

_FEW = 16
"""Draws that the library unconstrains sooner than it tells the parameters' bounds."""


class BatchedDensity:
    """Log density and gradient of a Stan program with its data, on Stan's unconstrained space.

    This is a :data:`harness.arrays.LogDensity`.  It includes the Jacobian and all constants, except
    those that ``~`` leaves out.

    If the program rejects a point, the value is NaN, or the point itself is not finite, the value
    becomes -inf and the gradient zero.  The same happens if the value is finite and its gradient is
    not, because no sampler that uses gradients could move there.  A value of +inf stays, with a
    gradient of zero, for the caller to refuse.

    Parameters
    ----------
    program
        The program.
    data
        All its data.
    threads
        Largest number of threads that a call uses if there is enough work; results do not depend
        on it.
    native
        Whether to use the compiled loop over rows, if there is a compiler to build it with; results
        are the same without it.
    data_seed
        Seed of random numbers in ``transformed data``.

    Attributes
    ----------
    dimension
        Number D of unconstrained parameters.

    Raises
    ------
    ToolchainError
        If there is neither stanli nor a C++ compiler; see :mod:`harness.engine.stan_source`.
    DataError
        If the program or its data are refused; the message comes from whatever evaluates them.
    """

    def __init__(
        self,
        program: StanProgram,
        data: Mapping[str, Any],
        *,
        threads: int = 1,
        native: bool = True,
        data_seed: int = DATA_SEED,
    ) -> None:
        if threads < 1:
            raise DataError(f"a density takes 1 thread or more; got {threads}")
        self.name = program.name
        self.threads = threads
        loop = row_loop() if native else None
        rows: RowEvaluator = rows_from_python if loop is None else CompiledRows(loop)
        self._rows = PatientRows(rows) if may_not_return(program) else rows
        first = stan_instance(program, data, data_seed=data_seed)
        self._source = first.source
        self.dimension = first.dimension
        self._parameters = first.variables()
        self._instances = Instances(first)
        self._transforms: Bounds | Blocks | Literal["unknown"] | None = "unknown"

    @property
    def engine(self) -> str:
        """What evaluates the program: ``stanli``, or ``cmdstan`` if it is compiled."""
        return self._source.engine

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each parameter, () for a real; parameters without values are left out."""
        return {name: variable.shape for name, variable in self._parameters.items()}

    def __call__(self, points: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return log densities (n,) and gradients (n, D) at points (n, D).

        Raises
        ------
        DataError
            If the points have another shape.
        SamplingError
            If the program has a solver or a loop that does not end.
        """
        at = self._checked(points)
        value, gradient = np.empty(len(at)), np.empty(at.shape)
        self._evaluate(at, value, gradient)
        return value, gradient

    def values(self, points: npt.ArrayLike) -> FloatArray:
        """Return log densities (n,) at points (n, D), in down to half the time of a gradient.

        They are the same as with gradients, except that a finite value may stay where its gradient
        is not finite.  A compiled library evaluates the gradients all the same.

        Raises
        ------
        DataError
            If the points have another shape.
        """
        at = self._checked(points)
        value = np.empty(len(at))
        self._evaluate(at, value, None)
        return value

    def _evaluate(self, at: FloatArray, value: FloatArray, gradient: FloatArray | None) -> None:
        wanted = max(1, min(self.threads, len(at)))
        instances = [self._instances.take()]
        try:
            while len(instances) < wanted and (other := self._instances.one_more()) is not None:
                instances.append(other)
            self._rows(instances, at, value, gradient)
        except NeverReturned:
            self._instances.lose(len(instances))
            instances.clear()  # the thread that was left behind works on them
            raise
        finally:
            self._instances.put_back(*instances)

    def at(self, point: npt.ArrayLike) -> tuple[float, FloatArray]:
        """Return the log density and its gradient at one point (D,), as the program computes them.

        Raises
        ------
        RuntimeError
            If the program rejects the point; the message is Stan's.
        DataError
            If the point has another shape.
        """
        (row,) = self._checked(np.asarray(point, dtype=np.float64)[None])
        instance = self._instances.take()
        try:
            return instance.at(row)
        finally:
            self._instances.put_back(instance)

    def unconstrain(self, values: Mapping[str, npt.ArrayLike]) -> FloatArray:
        """Return the unconstrained point (D,) of parameter values, each of its own shape.

        It is Stan's own, where the vector behind a unit vector has length 1.

        Raises
        ------
        DataError
            For the same reasons as in :meth:`unconstrain_draws`.
        """
        one = {name: np.asarray(value)[None] for name, value in values.items()}
        draws = self.unconstrain_draws(one, lengths="one")
        return draws.reshape(-1)

    def unconstrain_draws(
        self, values: Mapping[str, npt.ArrayLike], *, lengths: Lengths = "drawn"
    ) -> FloatArray:
        """Return the unconstrained points (n, D) of n draws of the parameters, each (n, *shape).

        Parameters
        ----------
        values
            The draws.  Names that are not parameters of the program are ignored.
        lengths
            Of the vectors behind unit vectors, which draws do not record: ``drawn`` from their
            distribution, so that the points are draws of the density on the unconstrained space, or
            ``one``, as Stan has them; see :mod:`harness.engine.unit_vectors`.

        Raises
        ------
        DataError
            If a parameter is missing, has another shape, or lies outside its support.
        """
        columns = to_columns(values, self._parameters, self.name)
        known = self._known_transforms() if len(columns) >= _FEW else None
        if known is None:
            points = self._unconstrained(columns)
            return points if lengths == "one" else with_lengths(points, self.unit_vectors)
        points = known.unconstrain(columns)
        other = ~known.explain(columns, points, self._constrained)
        points[other] = self._unconstrained(columns[other])
        return points

    def _unconstrained(self, columns: FloatArray) -> FloatArray:
        """Return the unconstrained points (n, D) of values (n, columns) by the library."""
        points = np.empty((len(columns), self.dimension))
        message, instance = Message(self._source.library), self._instances.take()
        try:
            for row, point in zip(columns, points, strict=True):
                if self._source.library.unconstrain(
                    instance.pointer, address_of(row), address_of(point), message.room
                ):
                    raise DataError(f"{self.name}: {message.take()}")
        finally:
            self._instances.put_back(instance)
        return points

    @cached_property
    def unit_vectors(self) -> tuple[slice, ...]:
        """The unconstrained coordinates behind each unit vector."""
        return unit_vectors(lambda points: self.constrain(points, rejected="nan"), self.dimension)

    def _known_transforms(self) -> Bounds | Blocks | None:
        """Return the transforms of the parameters if all are of a known kind.

        Those of unit vectors are not: they do not tell the lengths of what is behind them.
        """
        if isinstance(self._transforms, str):
            same = sum(int(np.prod(shape)) for shape in self.shapes.values()) == self.dimension
            found = fixed_bounds(self._constrained, self.dimension) if same else None
            self._transforms = found or blocks(self._constrained, self.dimension)
        return self._transforms

    def _constrained(self, points: FloatArray) -> FloatArray:
        """Return values (n, columns) at points (n, D), NaN where the program rejects one."""
        return to_columns(self.constrain(points, rejected="nan"), self._parameters, self.name)

    def constrain(
        self,
        points: npt.ArrayLike,
        *,
        transformed: bool = False,
        seed: int | None = None,
        rejected: Literal["refuse", "nan"] = "refuse",
        after_each: Callable[[], None] | None = None,
    ) -> dict[str, FloatArray]:
        """Return the parameters at points (n, D), each (n, *shape).

        Parameters
        ----------
        points
            Shape (n, D).
        transformed
            Return transformed parameters too.
        seed
            Return generated quantities too, with random numbers from this seed, 0 to 2^32 - 1.
        rejected
            ``nan``: all values are NaN at a point that the program rejects.  stanli rejects points
            for their generated quantities also if these are not wanted.
        after_each
            Is called after each point, and may raise what ends it all.

        Raises
        ------
        DataError
            If the points have another shape.
        SamplingError
            If the program rejects one, and that is refused; the message is Stan's.
        """
        at = self._checked(points)
        library, instance, message = (
            self._source.library,
            self._instances.take(),
            Message(self._source.library),
        )
        generated = seed is not None
        random = library.make_random(seed, None) if generated else None
        try:
            variables: Mapping[str, Variable] = instance.variables(
                transformed=transformed, generated=generated
            )
            last = max((variable.columns.stop for variable in variables.values()), default=0)
            values = np.empty((len(at), last))
            for point, row in zip(at, values, strict=True):
                if library.constrain(
                    *(instance.pointer, transformed, generated),
                    *(address_of(point), address_of(row), random, message.room),
                ):
                    reason = message.take()
                    if rejected == "refuse":
                        raise SamplingError(f"{self.name}: a point was rejected: {reason}")
                    row[:] = np.nan
                if after_each is not None:
                    after_each()
        finally:
            self._instances.put_back(instance)
            if random is not None:
                library.end_random(random)
        return from_columns(values, variables)

    def _checked(self, points: npt.ArrayLike) -> FloatArray:
        at = np.ascontiguousarray(points, dtype=np.float64)
        if at.ndim != 2 or at.shape[1] != self.dimension:
            raise DataError(
                f"{self.name} takes points of shape (n, {self.dimension}); got {at.shape}"
            )
        return at
