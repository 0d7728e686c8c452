"""Slice sampling of many points along lines, and along differences of others, without tuning.

:func:`slice_along_lines` steps out and shrinks, whatever the lines and the density are.  Along
differences a particle's line is parallel to the difference of two particles of other populations.
Where particles are in several modes, or in a neck and a mouth, such differences have the scales and
directions of all of them, which no one metric has.  They are differences of the places where those
particles were at first, so that a population's updates leave the density invariant, however many
follow each other.  Particles of the same population would not do: after resampling some have one
parent, and a line through a particle's own parent leads to the other one too often.

References
----------
Neal, R. M. (2003). Slice sampling. Annals of Statistics 31, 705-767.

Karamanis, M. and Beutler, F. (2021). Ensemble slice sampling. Statistics and Computing 31, 61.

ter Braak, C. J. F. (2006). A Markov chain Monte Carlo version of the genetic algorithm differential
evolution. Statistics and Computing 16, 239-249.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, LogDensity, LogValues, values_of

_MOST_WIDTHS = 8
MOST_SHRINKS = 60
"""Beyond which an interval has shrunk to the point itself, in double precision."""

Rows = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]
_There = TypeVar("_There")


def slice_along_differences(
    log_density: LogDensity,
    points: FloatArray,
    guides: FloatArray,
    populations: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Update every particle once.

    Parameters
    ----------
    log_density
        Log density, whose gradient is not used, nor computed if it has a way without
        (:func:`harness.arrays.values_of`).
    points
        Particles where the density is positive, population after population, equally many in each,
        shape (n, D).
    guides
        Places that the differences are of: where the particles were before the first of such
        updates, shape (n, D).
    populations
        Number of populations, independent of each other; at least 2.
    rng
        Source of randomness.

    Returns
    -------
    FloatArray
        Where they are then, shape (n, D).
    """
    each = len(points) // populations
    own = np.repeat(each * np.arange(populations), each)  # where a population begins
    count = len(points) - each
    first = rng.integers(count, size=len(points))
    second = (first + rng.integers(1, count, size=len(points))) % count
    one, other = (chosen + each * (chosen >= own) for chosen in (first, second))
    return _along(values_of(log_density), points, guides[one] - guides[other], rng)


def _along(
    log_values: LogValues, points: FloatArray, direction: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Update each point along its own direction, whose length is the interval's first width."""
    moved = points.copy()
    level = log_values(points) - rng.standard_exponential(len(points))

    def on_slice(rows: Rows, shift: FloatArray) -> tuple[FloatArray, Flags]:
        there = points[rows] + shift[:, None] * direction[rows]
        return there, log_values(there) >= level[rows]

    def move(rows: Rows, there: FloatArray, found: Rows) -> None:
        moved[rows] = there[found]

    width = np.ones(len(points))
    slice_along_lines(on_slice, move, width, _MOST_WIDTHS, rng, most_shrinks=MOST_SHRINKS)
    return moved


def slice_along_lines(
    on_slice: Callable[[Rows, FloatArray], tuple[_There, Flags]],
    move: Callable[[Rows, _There, Rows], None],
    width: FloatArray,
    most_widths: int,
    rng: np.random.Generator,
    *,
    most_shrinks: int | None = None,
) -> None:
    """Update n points by slice sampling, each along a line through it (Neal 2003, figs. 3 and 5).

    The interval is stepped out at random from either end, and shrunk until a point on the slice is
    found.  Points that are done take no part in later evaluations.

    Parameters
    ----------
    on_slice
        Evaluates the places of some rows at their shifts along the line, and says which of these
        are on their slices.
    move
        Moves some rows to places that were just evaluated: the rows, the places, and which of the
        places, one for each of the rows.
    width
        First width of each interval, shape (n,).
    most_widths
        Largest interval, in widths (m in Neal's figure 3).
    rng
        Source of randomness.
    most_shrinks
        After so many a point stays where it is.  It does anyway if its interval has shrunk to
        nothing.
    """
    count = len(width)
    left = -width * rng.random(count)
    # Both ends at once: a row for each.
    end = np.concatenate([left, left + width])
    sign = np.repeat([-1.0, 1.0], count)
    most_left = np.floor(most_widths * rng.random(count))
    most = np.concatenate([most_left, most_widths - 1 - most_left])
    rows = np.flatnonzero(most > 0)
    while rows.size:
        rows = rows[on_slice(rows % count, end[rows])[1]]
        end[rows] += sign[rows] * width[rows % count]
        most[rows] -= 1
        rows = rows[most[rows] > 0]
    left, right = end[:count], end[count:]
    rows, shrinks = np.arange(count), 0
    while rows.size and shrinks != most_shrinks:
        shift = left[rows] + (right[rows] - left[rows]) * rng.random(rows.size)
        there, found = on_slice(rows, shift)
        move(rows[found], there, np.flatnonzero(found))
        # An interval that has shrunk to nothing is where the point stands.
        found = found | (shift == 0) | (left[rows] == right[rows])
        rows, shift, shrinks = rows[~found], shift[~found], shrinks + 1
        left[rows] = np.where(shift < 0, shift, left[rows])
        right[rows] = np.where(shift < 0, right[rows], shift)
