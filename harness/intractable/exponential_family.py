"""A doubly intractable problem from a Stan program with sufficient statistics.

The program declares the sufficient statistics s(y) as data, and its density is

    log p(theta) + eta(theta)' s + a(theta)   with log f(y; theta) = eta(theta)' s(y) + a(theta),

for instance, for an Ising model with J and h,

    data { vector[2] s; }
    parameters { real<lower=0, upper=0.4> J; real<lower=-1, upper=1> h; }
    model { target += J * s[1] + h * s[2]; }

So a program is what a user writes anyway who leaves Z(theta) out.  A Stan program with other data
is a new instance, but this density is affine in s: it is known for every y from its values at s = 0
and at the unit vectors.  These instances are made once, and each point is evaluated once in each of
them.  Priors, constraints and Jacobians are those of the program, and the fit has its parameters.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.errors import DataError
from harness.intractable.problem import IntractableProblem

_REMEMBERED = 4
"""Arrays of points whose values are kept: a step asks for the current and the proposed ones."""


def exponential_family(
    program: str | Path | StanProgram,
    data: Mapping[str, Any],
    observed: Any,
    *,
    statistic: str,
    statistics: Callable[[FloatArray], Any],
    simulate: Callable[..., Any],
    many: bool = False,
) -> IntractableProblem:
    """Make a problem from a Stan program whose data are the sufficient statistics of y.

    Parameters
    ----------
    program
        The program, or its file.
    data
        All its data but the statistics.
    observed
        The data y, an array of any shape S.
    statistic
        Name of the program's data variable for the statistics, a vector.
    statistics
        Data (n, *S) of many data sets to their statistics (n, number of statistics).
    simulate
        ``simulate(parameters, rng)``: the program's parameters by name, and a generator, to an
        exact draw of y, shape S.
    many
        Whether ``simulate`` takes parameters with a first axis n and returns (n, *S).

    Raises
    ------
    DataError
        If the statistics have another shape than (n, number), the program refuses its data, or its
        density is not affine in the statistics.
    ToolchainError
        If there is neither stanli nor a C++ compiler.
    """
    if not isinstance(program, StanProgram):
        program = StanProgram(Path(program))
    y = np.asarray(observed, dtype=np.float64)
    seen = np.asarray(statistics(y[None]), dtype=np.float64)
    if seen.ndim != 2 or len(seen) != 1:
        raise DataError(
            f"the statistics of one data set must have shape (1, number); got {seen.shape}"
        )
    family = _AffineDensity(program, data, statistic, seen[0])

    def drawn(points: FloatArray, rng: np.random.Generator) -> FloatArray:
        values = family.parameters(points)
        if many:
            return np.asarray(simulate(values, rng))
        each = [
            np.asarray(simulate({name: value[k] for name, value in values.items()}, rng))
            for k in range(len(points))
        ]
        wrong = next((one.shape for one in each if one.shape != y.shape), None)
        if wrong is not None:
            raise DataError(f"the simulator returned data of shape {wrong}; y has {y.shape}")
        return np.stack(each)

    return IntractableProblem(
        program.name,
        y,
        family.dimension,
        log_prior=family.at_zero,
        log_factor=lambda points, sets: np.einsum(
            "ns,ns->n", family.slopes(points), np.asarray(statistics(sets), dtype=np.float64)
        ),
        simulate=drawn,
        parameters=family.parameters,
        point_of=family.point_of,
        data={**data, statistic: seen[0]},
        engine=family.engine,
    )


class _AffineDensity:
    """A program's log density as an affine function of a vector of its data."""

    def __init__(
        self, program: StanProgram, data: Mapping[str, Any], statistic: str, seen: FloatArray
    ) -> None:
        corners = np.vstack([np.zeros_like(seen), np.eye(len(seen))])
        self._densities = [BatchedDensity(program, {**data, statistic: each}) for each in corners]
        self.dimension = self._densities[0].dimension
        self.engine = self._densities[0].engine
        self._known: OrderedDict[bytes, tuple[FloatArray, FloatArray]] = OrderedDict()
        points = np.random.default_rng(0).normal(size=(4, self.dimension))
        direct = BatchedDensity(program, {**data, statistic: seen})(points)[0]
        built = self.at_zero(points) + self.slopes(points) @ seen
        both = np.isfinite(direct) & np.isfinite(built)
        if not both.any() or not np.allclose(direct[both], built[both], rtol=1e-9, atol=1e-9):
            raise DataError(
                f"the density of {program.name} is not affine in its data '{statistic}': it must "
                "be a log prior plus a sum of functions of the parameters times these statistics"
            )

    def _values(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        key = points.tobytes()
        if key not in self._known:
            zero, *others = (density(points)[0] for density in self._densities)
            inside = np.isfinite(zero)
            with np.errstate(invalid="ignore"):
                slopes = np.where(inside[:, None], np.stack(others, axis=1) - zero[:, None], 0.0)
            self._known[key] = zero, slopes
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return self._known[key]

    def at_zero(self, points: FloatArray) -> FloatArray:
        """Return the log density at points (n, D) without the statistics, (n,)."""
        return self._values(points)[0]

    def slopes(self, points: FloatArray) -> FloatArray:
        """Return eta at points (n, D), shape (n, number of statistics)."""
        return self._values(points)[1]

    def parameters(self, points: FloatArray) -> dict[str, FloatArray]:
        """Return the program's parameters at points (..., D), each (..., *shape)."""
        flat = points.reshape(-1, self.dimension)
        values = self._densities[0].constrain(flat)
        ahead = points.shape[:-1]
        return {name: value.reshape(*ahead, *value.shape[1:]) for name, value in values.items()}

    def point_of(self, values: Mapping[str, Any]) -> FloatArray:
        """Return the point (D,) of parameters by name."""
        return self._densities[0].unconstrain(values)
