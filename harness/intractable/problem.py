"""What a user supplies for a doubly intractable posterior: prior, unnormalised likelihood, draws.

The likelihood is p(y | theta) = f(y; theta) / Z(theta), where f can be evaluated and Z cannot.  The
samplers of this room ask for log f of many pairs (theta, y), and for exact draws of y given theta.
They never ask for Z.

There are two ways to supply them.  If f has sufficient statistics,
:func:`harness.intractable.exponential_family.exponential_family` takes a Stan program.  Any other f
is a NumPy function in an :class:`IntractableProblem`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError

Simulate = Callable[[FloatArray, np.random.Generator], FloatArray]
"""Points (n, D) and random numbers to exact draws of y, one for each point: (n, *shape of y)."""


def _coordinates(points: FloatArray) -> Mapping[str, FloatArray]:
    return {"theta": points}


@dataclass(frozen=True)
class IntractableProblem:
    """A posterior proportional to p(theta) f(y; theta) / Z(theta), with an unknown Z(theta).

    Attributes
    ----------
    name
        Name for messages and fits.
    observed
        The data y, of any shape S.
    dimension
        Number D of coordinates of theta.
    log_prior
        Points (n, D) to log p(theta), up to a constant, shape (n,); -inf outside the support.
        Nothing else is asked for at a point where it is -inf.
    log_factor
        Points (n, D) and data (n, *S) to log f, a row of the data for each point, shape (n,).
        Factors of f that depend on y alone may be left out, those of theta may not.  It is -inf
        where y is impossible.
    simulate
        Points (n, D) and a generator to exact independent draws of y, (n, *S).  Draws from a Markov
        chain that has not been proven to have converged make the posterior wrong.  Wrap a simulator
        of one data set in :func:`one_at_a_time`.
    parameters
        Turns points (..., D) into parameters by name, each (..., *shape), which the fit holds; by
        default theta itself.
    point_of
        Turns parameters by name into a point (D,), so that starts may be given by name; None if
        there is no other name than the coordinates.
    data
        Data that the fit stores.
    engine
        What evaluates log f, for the fit.

    Raises
    ------
    DataError
        If the dimension is below 1, or the data are not finite.
    """

    name: str
    observed: FloatArray
    dimension: int
    log_prior: Callable[[FloatArray], FloatArray]
    log_factor: Callable[[FloatArray, FloatArray], FloatArray]
    simulate: Simulate
    parameters: Callable[[FloatArray], Mapping[str, FloatArray]] = _coordinates
    point_of: Callable[[Mapping[str, Any]], FloatArray] | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    engine: str = "numpy"

    def __post_init__(self) -> None:
        if self.dimension < 1:
            raise DataError(f"{self.name} needs 1 parameter or more; got {self.dimension}")
        if not np.isfinite(self.observed).all():
            raise DataError(f"the data of {self.name} must be finite")

    def prior(self, points: FloatArray) -> FloatArray:
        """Return the checked log prior at points (n, D), shape (n,)."""
        return self._checked(self.log_prior(points), len(points), "log prior")

    def likelihood(self, points: FloatArray, data: FloatArray | None = None) -> FloatArray:
        """Return the checked log f at points (n, D) of data (n, *S), by default the observed."""
        if data is None:
            data = np.broadcast_to(self.observed, (len(points), *self.observed.shape))
        return self._checked(self.log_factor(points, data), len(points), "log f")

    def draw(self, points: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return checked draws (n, *S) of data at points (n, D), and log f of each, (n,).

        Raises
        ------
        DataError
            If the simulator returns another shape, values that are not finite, or data that are
            impossible at its own parameters.
        """
        data = np.asarray(self.simulate(points, rng))
        wanted = (len(points), *self.observed.shape)
        if data.shape != wanted:
            raise DataError(
                f"the simulator of {self.name} returned an array of shape {data.shape} for "
                f"{len(points)} points; it must return {wanted}, one data set like y for each "
                "(wrap a simulator of one data set in one_at_a_time)"
            )
        if not np.isfinite(data).all():
            raise DataError(f"the simulator of {self.name} returned a value that is not finite")
        log_f = self.likelihood(points, data)
        if np.isneginf(log_f).any():
            raise DataError(
                f"the simulator of {self.name} returned data that log f calls impossible at the "
                "same parameters: simulator and density are of different models"
            )
        return data, log_f

    def _checked(self, values: Any, count: int, what: str) -> FloatArray:
        checked = np.asarray(values, dtype=np.float64)
        if checked.shape != (count,):
            raise DataError(
                f"the {what} of {self.name} has shape {checked.shape} at {count} points; it must "
                f"be ({count},)"
            )
        if np.isnan(checked).any() or np.isposinf(checked).any():
            raise DataError(f"the {what} of {self.name} is NaN or infinite at a point")
        return checked


def one_at_a_time(simulate: Callable[[FloatArray, np.random.Generator], Any]) -> Simulate:
    """Make a simulator of many data sets from one that takes theta (D,) and returns one data set.

    Raises
    ------
    DataError
        When it is called, if data sets have different shapes.
    """

    def many(points: FloatArray, rng: np.random.Generator) -> FloatArray:
        drawn = [np.asarray(simulate(point, rng), dtype=np.float64) for point in points]
        shapes = {each.shape for each in drawn}
        if len(shapes) > 1:
            raise DataError(f"the simulator returned data of different shapes: {sorted(shapes)}")
        return np.stack(drawn)

    return many
