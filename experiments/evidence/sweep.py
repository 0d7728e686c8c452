"""Univariate slice sampling of many points at once, each coordinate once in random order.

The interval is placed at random, stepped out by its first width until both ends are off the slice,
and shrunk until a point is found (Neal 2003, Annals of Statistics 31, figures 3 and 5; Murray 2007,
section 2.4.2).  Nested sampling and annealing use the same moves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harness.arrays import FloatArray
from harness.samplers.nested_particles import Particles, PriorAndLikelihood, Rows

Height = Callable[[FloatArray, FloatArray, Rows], FloatArray]
"""Log density of rows, up to a constant, from their log priors and log likelihoods, all (n,)."""


def slice_sweep(
    space: PriorAndLikelihood,
    height: Height,
    state: Particles,
    width: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Move each of n points along each axis once, in place; keys stay.

    Parameters
    ----------
    space
        Evaluates prior and likelihood.
    height
        The log density that the moves leave invariant; it is above -inf where the points are.
    state
        The points.
    width
        First width of the interval in each coordinate, above zero, shape (n, D).
    rng
        Source of randomness.  Each point has an order of its own (Murray 2007, section 4.7.1).
    """
    count, dimension = state.points.shape
    rows = np.arange(count)
    order = rng.permuted(np.tile(np.arange(dimension), (count, 1)), axis=1)
    for axis in order.T:
        _along(space, height, state, axis, width[rows, axis], rng)


def _along(
    space: PriorAndLikelihood,
    height: Height,
    state: Particles,
    axis: Rows,
    width: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Move each point along its axis; those that are done take no part in later evaluations."""
    count = len(width)
    everyone = np.arange(count)
    start = state.points.copy()
    level = height(state.log_prior, state.log_likelihood, everyone)
    level -= rng.standard_exponential(count)

    def tried(rows: Rows, shift: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, Rows]:
        """Return points, log priors, log likelihoods, and which points lie on their slices."""
        points = start.take(rows, axis=0)
        points[np.arange(rows.size), axis.take(rows)] += shift
        log_prior = space.log_prior_alone(points)
        log_likelihood = space.log_likelihood_alone(points, log_prior)
        (on,) = (height(log_prior, log_likelihood, rows) > level.take(rows)).nonzero()
        return points, log_prior, log_likelihood, on

    left = -width * rng.random(count)
    # Both ends at once: a row for each.
    end = np.concatenate([left, left + width])
    step = np.concatenate([-width, width])
    rows = np.arange(2 * count)
    while rows.size:
        *_, on = tried(rows % count, end.take(rows))
        rows = rows.take(on)
        end[rows] += step.take(rows)
    left, right = end[:count], end[count:]
    rows = everyone
    while rows.size:
        low, high = left.take(rows), right.take(rows)
        shift = low + (high - low) * rng.random(rows.size)
        points, log_prior, log_likelihood, on = tried(rows, shift)
        moved = rows.take(on)
        state.points[moved] = points.take(on, axis=0)
        state.log_prior[moved] = log_prior.take(on)
        state.log_likelihood[moved] = log_likelihood.take(on)
        # An interval that has shrunk to nothing is where the point stands.
        going = (shift != 0) & (low != high)
        going[on] = False
        rows, shift = rows[going], shift[going]
        below = shift < 0
        left[rows[below]], right[rows[~below]] = shift[below], shift[~below]


def widths(points: FloatArray) -> FloatArray:
    """Return the range of points of each group, shape (G, n, D), in each coordinate, (G, D).

    It is 1 where there is a single point (Murray 2007, section 4.8.1).
    """
    spread = np.asarray(np.ptp(points, axis=1)) if points.shape[1] else np.zeros(points.shape[::2])
    return np.where(spread > 0, spread, 1.0)
