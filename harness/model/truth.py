"""What is known of a target without sampling it: log Z and expectations, with their errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import xarray as xr

from harness.arrays import FloatArray
from harness.errors import DataError

Value = TypeVar("Value", float, FloatArray)


class TrueValue(NamedTuple, Generic[Value]):
    """A number, or an array of numbers, with what it may be off by."""

    value: Value
    """The number or the numbers."""
    error: Value
    """Size of the absolute error, as the source estimates it, of the value's shape; 0 for what is
    exact but for rounding."""


Expectations = Mapping[str, TrueValue[FloatArray]]


@dataclass(frozen=True)
class ModeTest:
    """Events whose posterior probabilities are known: a sampler that loses a mode gets them wrong.

    Attributes
    ----------
    names
        Short names of the M events, such as ``"beta > delta"``.
    happens
        Takes the parameters' draws, a dataset with axes (chain, draw, ...), and returns whether
        each event happens, 0 or 1, or with which probability it does given the draw: shape (chain,
        draw, M), as :meth:`harness.fit.Fit.expectation` takes it.
    probabilities
        Their probabilities and the errors of these, shape (M,).
    exclusive
        Whether exactly one of the events happens in each draw, so that the events are modes and
        their probabilities add up to 1.
    """

    names: tuple[str, ...]
    happens: Callable[[xr.Dataset], xr.DataArray]
    probabilities: TrueValue[FloatArray]
    exclusive: bool = False


@dataclass(frozen=True)
class Truth:
    """True answers for a target; they are computed when they are first asked for.

    Attributes
    ----------
    source
        Where they come from, in words, such as "quadrature over the three scales".
    find_log_evidence
        Returns log Z, in nats; None if it is not known.
    find_expectations
        Returns expectations by name; None if none are known.  ``x`` is the expectation of the
        parameter x, ``x_squared`` that of its squares, elementwise, and ``x_outer`` that of xx';
        the model says what others there are.
    mode_test
        Events whose probabilities show whether a mode is lost; None if there are none.
    draw
        Returns n exact and independent draws of the target, shape (n, D), with the parameters one
        after another in the model's order and in row-major order within each; None if nobody knows
        how to draw them.
    """

    source: str
    find_log_evidence: Callable[[], TrueValue[float]] | None = None
    find_expectations: Callable[[], Expectations] | None = None
    mode_test: ModeTest | None = None
    draw: Callable[[int, np.random.Generator], FloatArray] | None = None

    @cached_property
    def log_evidence(self) -> TrueValue[float]:
        """Log Z, the log of the density's integral, in nats.

        Raises
        ------
        DataError
            If it is not known.
        """
        if self.find_log_evidence is None:
            raise DataError(f"the true log Z of this target is not known (truth: {self.source})")
        return self.find_log_evidence()

    @cached_property
    def expectations(self) -> Expectations:
        """Expectations by name.

        Raises
        ------
        DataError
            If none are known.
        """
        if self.find_expectations is None:
            raise DataError(f"no true expectation of this target is known (truth: {self.source})")
        return self.find_expectations()

    def expected(self, name: str) -> FloatArray:
        """Return the value of an expectation.

        Raises
        ------
        DataError
            If it is not known.
        """
        if name not in self.expectations:
            known = ", ".join(self.expectations)
            raise DataError(f"the expectation '{name}' is not known (known: {known})")
        return self.expectations[name].value


def without_error(value: FloatArray) -> TrueValue[FloatArray]:
    """Return values in closed form, which are exact but for rounding."""
    return TrueValue(value, np.zeros_like(value))


def normalised() -> TrueValue[float]:
    """Return log Z = 0 of a density that integrates to 1."""
    return TrueValue(0.0, 0.0)


UNKNOWN = Truth("unknown")
"""Of a target of which nothing is known."""
