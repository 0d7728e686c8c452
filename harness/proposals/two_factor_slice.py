"""Slice sampling with a height for each of two factors, of which the cheap one is tested first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray
from harness.path.slices import _along as slice_along
from harness.proposals.chains import Density


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
    dimension = points.shape[1]
    heights = np.stack([prior(points), likelihood(points)], axis=1)
    heights -= rng.standard_exponential(heights.shape)
    calls = np.array([len(points), len(points)])
    # Each point takes its heights along, so that points that are done can be left out.
    start = np.concatenate([points, heights], axis=1)

    def on_slice(places: FloatArray) -> tuple[FloatArray, FloatArray]:
        value = np.zeros(len(places))
        if places is not start:
            x, (low, lowest) = places[:, :dimension], places[:, dimension:].T
            passes = np.flatnonzero(prior(x) >= low)
            calls[:] += len(x), len(passes)
            value[:] = -np.inf
            value[passes] = np.where(likelihood(x[passes]) >= lowest[passes], 0.0, -np.inf)
        return value, np.zeros_like(places)

    moved = slice_along(
        on_slice, start, np.concatenate([direction, np.zeros_like(heights)], axis=1), rng
    )
    return Sliced(moved[:, :dimension], int(calls[0]), int(calls[1]))
