"""Slice sampling with a height for each of two factors, of which the cheap one is tested first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray
from harness.path.slices import Flags, Rows, slice_along_lines
from harness.proposals.chains import Density

_MOST_WIDTHS = 8
_MOST_SHRINKS = 60
"""Beyond which an interval has shrunk to the point itself, in double precision."""


class Sliced(NamedTuple):
    """Points after an update, and what it cost."""

    points: FloatArray
    """Shape (n, D)."""
    prior_calls: int
    """Evaluations of the first factor."""
    likelihood_calls: int
    """Evaluations of the second."""


def two_factor_slice(
    prior: Density,
    likelihood: Density,
    points: FloatArray,
    direction: FloatArray,
    rng: np.random.Generator,
) -> Sliced:
    """Update each point along a direction of its own, within the slices of both factors.

    With h1 uniform below pi(x) and h2 uniform below L(x), the new point is uniform on a bracket's
    part where pi >= h1 and L >= h2, and L is only evaluated where pi passes (Murray 2007, section
    2.4.2, eq. 2.17).  That slice lies within the one of the product, so that the chain may mix more
    slowly.

    Parameters
    ----------
    prior, likelihood
        Log factors pi and L of the target's density, up to constants.
    points
        Where both are positive, shape (n, D).
    direction
        Direction of each point's line, shape (n, D); its length is the bracket's first width.
    rng
        Source of randomness.
    """
    count, moved = len(points), points.copy()
    low, lowest = (
        factor(points) - rng.standard_exponential(count) for factor in (prior, likelihood)
    )
    calls = np.array([count, count])

    def on_slice(rows: Rows, shift: FloatArray) -> tuple[FloatArray, Flags]:
        x = points[rows] + shift[:, None] * direction[rows]
        on = prior(x) >= low[rows]
        passes = np.flatnonzero(on)
        calls[:] += len(x), len(passes)
        on[passes] = likelihood(x[passes]) >= lowest[rows[passes]]
        return x, on

    def move(rows: Rows, there: FloatArray, found: Rows) -> None:
        moved[rows] = there[found]

    width = np.ones(count)
    slice_along_lines(on_slice, move, width, _MOST_WIDTHS, rng, most_shrinks=_MOST_SHRINKS)
    return Sliced(moved, int(calls[0]), int(calls[1]))
