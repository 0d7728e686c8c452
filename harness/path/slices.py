"""Slice sampling of many particles along the differences of others, which needs no tuning.

A particle moves along the line through it that is parallel to the difference of two particles from
the other half of its population.  Where particles are in several modes, or in a neck and a mouth,
such differences have the scales and directions of all of them, which no one metric has.  Given the
other half, the update leaves the density invariant, and so does updating one half after the other.

References
----------
Neal, R. M. (2003). Slice sampling. Annals of Statistics 31, 705-767.

Karamanis, M. and Beutler, F. (2021). Ensemble slice sampling. Statistics and Computing 31, 61.

ter Braak, C. J. F. (2006). A Markov chain Monte Carlo version of the genetic algorithm differential
evolution. Statistics and Computing 16, 239-249.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, LogDensity

_MOST_WIDTHS = 8
_MOST_SHRINKS = 60
"""Beyond which an interval has shrunk to the point itself, in double precision."""

Rows = npt.NDArray[np.intp]


def slice_along_differences(
    log_density: LogDensity, points: FloatArray, populations: int, rng: np.random.Generator
) -> FloatArray:
    """Update every particle once; the halves of each population take turns.

    Parameters
    ----------
    log_density
        Log density; its gradient is not used.
    points
        Particles where the density is positive, population after population, equally many in each
        and at least 4, shape (n, D).
    populations
        Number of populations, which share nothing.
    rng
        Source of randomness.

    Returns
    -------
    FloatArray
        Where they are then, shape (n, D).
    """
    each = len(points) // populations
    moved = points.copy()
    shuffled = rng.permuted(np.arange(len(points)).reshape(populations, each), axis=1)
    halves = shuffled[:, : each // 2], shuffled[:, each // 2 :]
    for moving, others in (halves, halves[::-1]):
        count = others.shape[1]
        first = rng.integers(count, size=moving.shape)
        second = (first + rng.integers(1, count, size=moving.shape)) % count
        population = np.arange(populations)[:, None]
        one, other = others[population, first].ravel(), others[population, second].ravel()
        rows = moving.ravel()
        moved[rows] = _along(log_density, moved[rows], moved[one] - moved[other], rng)
    return moved


def _along(
    log_density: LogDensity, points: FloatArray, direction: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Update each point along its own direction, whose length is the interval's first width.

    The interval is stepped out at random from either end, at most eight widths in all, and shrunk
    until a point on the slice is found (Neal 2003, figures 3 and 5).
    """
    count = len(points)
    moved = points.copy()
    level = log_density(points)[0] - rng.standard_exponential(count)

    def on_slice(rows: Rows, shift: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        there = points[rows] + shift[:, None] * direction[rows]
        return there, log_density(there)[0] >= level[rows]

    left = -rng.random(count)
    end = np.concatenate([left, left + 1])
    sign = np.repeat([-1.0, 1.0], count)
    most_left = np.floor(_MOST_WIDTHS * rng.random(count))
    most = np.concatenate([most_left, _MOST_WIDTHS - 1 - most_left])
    rows = np.flatnonzero(most > 0)
    while rows.size:
        rows = rows[on_slice(rows % count, end[rows])[1]]
        end[rows] += sign[rows]
        most[rows] -= 1
        rows = rows[most[rows] > 0]
    left, right = end[:count], end[count:]
    rows = np.arange(count)
    for _ in range(_MOST_SHRINKS):
        shift = left[rows] + (right[rows] - left[rows]) * rng.random(rows.size)
        there, found = on_slice(rows, shift)
        moved[rows[found]] = there[found]
        rows, shift = rows[~found], shift[~found]
        if not rows.size:
            break
        left[rows] = np.where(shift < 0, shift, left[rows])
        right[rows] = np.where(shift < 0, right[rows], shift)
    return moved
