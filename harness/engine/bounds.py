"""Unconstrained values of parameters whose only constraints are fixed bounds.

stanli takes about a microsecond for each value that it unconstrains, sixty times as long as the
other way, so the draws of a program with 2,000 parameters would take 8 seconds.  Most parameters of
such programs have no constraint, or a fixed bound.  Which bounds these are is read off the library:
nothing here parses a program, and what does not have this form is left to
:mod:`harness.engine.blocks` or to the library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray

Constrain = Callable[[FloatArray], FloatArray]
"""Constrained values at unconstrained points, both (n, D); NaN in a row that is rejected."""

FAR = 800.0
"""Where exp and the logistic function have their limits in double precision."""
PROBES = 8
CLOSE = 1e-10
"""Relative difference that rounding explains."""


@dataclass(frozen=True)
class Bounds:
    """Fixed bounds of all of a program's parameters.

    Stan's transforms are log(x - lower), log(upper - x), and their difference where there are both
    (Stan Reference Manual, Constraint Transforms).

    Attributes
    ----------
    lower, upper
        Of each column of values, shape (D,); infinite where there is none.
    place
        Number of the unconstrained coordinate of each column, shape (D,).  Columns run fastest in
        the first index, and the coordinates of an array of vectors in the last.
    """

    lower: FloatArray
    upper: FloatArray
    place: npt.NDArray[np.intp]

    def unconstrain(self, values: FloatArray) -> FloatArray:
        """Return the unconstrained points of values (n, D); NaN outside the bounds."""
        free = values.copy()
        below, above = np.isfinite(self.lower), np.isfinite(self.upper)
        with np.errstate(divide="ignore", invalid="ignore"):  # on a bound, and beyond it
            from_lower = np.log((values - self.lower)[:, below])
            from_upper = np.log((self.upper - values)[:, above])
        free[:, below] = from_lower
        free[:, above] = from_upper
        both = below & above
        free[:, both] = from_lower[:, above[below]] - from_upper[:, below[above]]
        points = np.empty_like(free)
        points[:, self.place] = free
        return points

    @property
    def size(self) -> FloatArray:
        """Size of each column's bounds, shape (D,), which its values are rounded to."""
        return _size(self.lower) + _size(self.upper)

    def explain(
        self, values: FloatArray, points: FloatArray, constrain: Constrain
    ) -> npt.NDArray[np.bool_]:
        """Whether each point is that of its values by the library as well, shape (n,)."""
        size = np.abs(values) + self.size
        with np.errstate(invalid="ignore"):  # infinite values
            agree = np.abs(constrain(points) - values) <= CLOSE * size
        rows: npt.NDArray[np.bool_] = np.all(agree, axis=1)
        return rows


def fixed_bounds(constrain: Constrain, dimension: int) -> Bounds | None:
    """Read the bounds of all parameters off the library.

    Parameters
    ----------
    constrain
        The library's own transform.
    dimension
        Number D of parameters, constrained or not.

    Returns
    -------
    Bounds or None
        None if some constraint has another form, as a simplex has, or depends on parameters.
    """
    low, high = constrain(np.array([[-FAR], [FAR]]) * np.ones(dimension))
    upside_down = high == -np.inf
    place = _places(constrain, dimension, upside_down)
    if place is None:
        return None
    bounds = bounds_of_ends(low, high, place)
    points = np.random.default_rng(0).standard_normal((PROBES, dimension))
    values = constrain(points)
    found = bounds.unconstrain(values)
    near = np.abs(found - points) <= 1e-6 * (1 + np.abs(points))
    sound = np.all(near) and np.all(bounds.explain(values, found, constrain))
    return bounds if sound else None


def bounds_of_ends(low: FloatArray, high: FloatArray, place: npt.NDArray[np.intp]) -> Bounds:
    """Return the bounds of columns, given their values at -800 and at 800, shape (D,) each."""
    free = (low == -FAR) & (high == FAR)
    # A lone upper bound is the limit at -800, too: x = upper - exp(u).
    upside_down = high == -np.inf
    return Bounds(
        place=place,
        lower=np.where(free | upside_down, -np.inf, low),
        upper=np.where(free, np.inf, np.where(upside_down, low, high)),
    )


def _places(
    constrain: Constrain, dimension: int, upside_down: npt.NDArray[np.bool_]
) -> npt.NDArray[np.intp] | None:
    """Return the number of each column's coordinate; None if columns have none of their own.

    All coordinates move at once, in one direction or the other by a binary digit of their number.
    """
    digits = np.arange(max(dimension - 1, 1).bit_length())
    moved = np.where(np.arange(dimension) >> digits[:, None] & 1, 0.5, -0.5)
    up = constrain(moved) > constrain(np.zeros((1, dimension)))
    place: npt.NDArray[np.intp] = ((up != upside_down) << digits[:, None]).sum(axis=0)
    whole = np.array_equal(np.sort(place), np.arange(dimension))
    return place if whole else None


def _size(bound: FloatArray) -> FloatArray:
    return np.where(np.isfinite(bound), np.abs(bound), 0.0)
