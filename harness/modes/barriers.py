"""Whether a log density has a barrier between two points, along a line or a path that bends."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, LogDensity, values_of
from harness.modes.climb import Box, climb

BARRIER = 1.0
"""Nats by which the log density falls below the lower of two points if a barrier is between them.

Two unit normals with equal weights in one dimension have such a barrier from 3.7 standard
deviations on.
"""
_HALVINGS = 4
_BENDS = 3
_MOST_NUMBERS = 4_000_000
"""Numbers of the points whose densities are evaluated in one call."""
SAME = 0.02
"""Two points are the same if no coordinate differs by more than so many of its scales."""


def same(one: FloatArray, other: FloatArray, scale: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether points, (..., D) each, are nearly the same."""
    near: npt.NDArray[np.bool_] = np.all(np.abs(one - other) <= SAME * scale, axis=-1)
    return near


def lowest_between(
    one: FloatArray,
    other: FloatArray,
    enough: FloatArray,
    log_density: LogDensity,
    *,
    halvings: int = _HALVINGS,
) -> FloatArray:
    """Return the lowest log density on the lines between points (n, D), their ends left out.

    The middle of a line is looked at first, then the middles of its halves, and so on: where there
    is a barrier it is mostly there.

    Parameters
    ----------
    one, other
        Shape (n, D) each.
    enough
        Shape (n,): a line of which one point is below this has a barrier, and is looked at no
        further.
    log_density
        Log density at many points.
    halvings
        How often each line is halved; 2^h - 1 points of it are looked at.
    """
    values = values_of(log_density)
    count, dimension = one.shape
    lowest: FloatArray = np.full(count, np.inf)
    for level in range(halvings):
        share = (np.arange(2**level) + 0.5) / 2**level
        rows = max(1, _MOST_NUMBERS // (len(share) * dimension))
        left = np.flatnonzero(lowest >= enough)
        for first in range(0, len(left), rows):
            at = left[first : first + rows]
            line = one[at, None] + share[:, None] * (other[at] - one[at])[:, None]
            value = values(line.reshape(-1, dimension))
            value = np.where(np.isnan(value), -np.inf, value)
            lowest[at] = np.minimum(lowest[at], value.reshape(-1, len(share)).min(axis=1))
    return lowest


def lowest_by_paths(
    one: FloatArray,
    other: FloatArray,
    heights: tuple[FloatArray, FloatArray],
    log_density: LogDensity,
    *,
    scale: FloatArray,
    box: Box,
) -> FloatArray:
    """Return the lowest log density on a path between each two points that bends a few times.

    Where the line has a barrier, the path goes over the place to which a climb from its middle
    leads; each half may bend again.  So curved ridges and shells are seen to be in one piece.  If
    no such path avoids the barrier, the value is -inf.

    Parameters
    ----------
    one, other
        Shape (n, D) each.
    heights
        Their log densities, shape (n,) each.
    log_density
        Log density at many points.
    scale, box
        As for :func:`harness.modes.climb.climb`.
    """
    lowest: FloatArray = np.full(len(one), np.inf)
    # What counts is the lower end of the whole path, not that of one of its parts.
    floor = np.minimum(*heights) - BARRIER
    pair = np.arange(len(one))
    for _ in range(_BENDS + 1):
        value = lowest_between(one, other, floor[pair], log_density)
        free = value >= floor[pair]
        np.minimum.at(lowest, pair[free], value[free])
        one, other, pair = one[~free], other[~free], pair[~free]
        if not pair.size:
            return lowest
        middle = climb(0.5 * (one + other), log_density, scale=scale, box=box)
        stuck = same(middle.points, one, scale) | same(middle.points, other, scale)
        stuck |= ~(middle.height >= floor[pair])
        lowest[pair[stuck]] = -np.inf
        left = lowest[pair] > -np.inf
        one, other, at = one[left], other[left], middle.points[left]
        pair = np.concatenate([pair[left]] * 2)
        one, other = np.concatenate([one, at]), np.concatenate([at, other])
    lowest[pair] = -np.inf
    return lowest
