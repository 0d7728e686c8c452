"""Moves of replicas at their rungs: Hamiltonian Monte Carlo and slice sampling, many at once.

Each replica has its rung's powers, scales and step size.  A move leaves the density of its rung
invariant, whatever those of other replicas are.

References
----------
Neal, R. M. (2011). MCMC using Hamiltonian dynamics. Handbook of Markov Chain Monte Carlo, 113-162.

Neal, R. M. (2003). Slice sampling. Annals of Statistics 31, 705-767.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.path.moves import DIVERGENT, FARTHEST, lowest_height
from harness.path.slices import Flags, slice_along_lines
from harness.samplers.rung_path import Densities, Places, Rows, log_height, slope

JITTER = 0.3
"""A step size is drawn between 1 - JITTER and 1 + JITTER times its rung's."""


class Bounds(NamedTuple):
    """Bounds of a slice update.

    Attributes
    ----------
    most_widths
        Largest interval, in widths.
    most_shrinks
        After so many a point stays where it is; None for no bound.
    """

    most_widths: int
    most_shrinks: int | None


_USUAL = Bounds(16, None)


class Moved(NamedTuple):
    """Where trajectories from n points led.

    Attributes
    ----------
    places
        Where the points are then.
    acceptance
        Acceptance probabilities, shape (n,).
    divergent
        Whether the trajectory went astray, shape (n,): its energy is off by :data:`DIVERGENT` or
        more, or its kinetic energy is where a step would be longer than :data:`FARTHEST`.  One that
        ends where there is no density does not count.
    """

    places: Places
    acceptance: FloatArray
    divergent: Flags


class _There(NamedTuple):
    """Points (n, D) and their log densities (n, 1 + R)."""

    points: FloatArray
    values: FloatArray


def hmc(
    densities: Densities,
    places: Places,
    powers: FloatArray,
    *,
    step_size: FloatArray,
    scale: FloatArray,
    spread: FloatArray,
    leapfrog_steps: npt.NDArray[np.intp],
    rng: np.random.Generator,
) -> Moved:
    """Move each of n points by a trajectory of its own length, and accept it or stay.

    Trajectories end at :func:`~harness.path.moves.lowest_height`, and before a step that is longer
    than :data:`~harness.path.moves.FARTHEST`.

    Parameters
    ----------
    densities
        What evaluates target and references.
    places
        Where the points are, with a density above zero.
    powers
        Powers at each point's rung, shape (n, 1 + R).
    step_size
        Shape (n,), in units of ``scale``; jittered, so that no length is a period of the target.
    scale
        Square roots of a diagonal inverse mass matrix, shape (n, D).
    spread
        Standard deviations of the density that is moved along, shape (n, D).
    leapfrog_steps
        Number of each, shape (n,), 1 or more.
    rng
        Source of randomness.
    """
    count = len(places.points)
    jittered = step_size * rng.uniform(1 - JITTER, 1 + JITTER, size=count)
    reach = jittered[:, None] * scale
    momentum = rng.standard_normal(places.points.shape)
    before = log_height(places.values, powers) - 0.5 * np.square(momentum).sum(axis=1)
    drawn = rng.random(count)
    lowest = lowest_height(before, drawn)
    end, astray, stopped = places.copy(), *np.zeros((2, count), dtype=np.bool_)
    # A trajectory that has gone astray overflows, and is refused.
    with np.errstate(over="ignore", invalid="ignore"):
        momentum += 0.5 * reach * slope(end.gradients, powers)
        for done in range(int(leapfrog_steps.max())):
            rows = np.flatnonzero((leapfrog_steps > done) & ~astray & ~stopped)
            step = reach[rows] * momentum[rows]
            near = (np.abs(step) <= FARTHEST * spread[rows]).all(axis=1)
            stopped[rows[~near]] = True
            rows, step = rows[near], step[near]
            if not rows.size:
                break
            there = densities(end.points[rows] + step)
            end.put(rows, there)
            push = reach[rows] * slope(there.gradients, powers[rows])
            kinetic = 0.5 * np.square(momentum[rows] + 0.5 * push).sum(axis=1)
            height = log_height(there.values, powers[rows]) - kinetic
            astray[rows] = np.isfinite(height) & (height < lowest[rows])
            momentum[rows] += np.where(leapfrog_steps[rows] == done + 1, 0.5, 1.0)[:, None] * push
        kinetic = 0.5 * np.square(momentum).sum(axis=1)
        astray |= stopped & (kinetic > DIVERGENT)
        change = np.where(astray, -2 * DIVERGENT, log_height(end.values, powers) - kinetic - before)
        change[stopped & ~astray] = -np.inf
        acceptance = np.exp(np.minimum(0.0, np.where(np.isnan(change), -np.inf, change)))
    accepted = drawn < acceptance
    moved = places.copy()
    moved.put(accepted, end.take(np.flatnonzero(accepted)))
    return Moved(moved, acceptance, np.isfinite(change) & (change < -DIVERGENT))


def slice_sweep(
    densities: Densities,
    places: Places,
    powers: FloatArray,
    *,
    width: FloatArray,
    rng: np.random.Generator,
    along: Flags | None = None,
    bounds: Bounds = _USUAL,
) -> Places:
    """Update each coordinate of each of n points once by slice sampling, in random order.

    The interval is stepped out at random from either end, and shrunk until a point on the slice is
    found (Neal 2003, figures 3 and 5).

    Parameters
    ----------
    densities, places, powers, rng
        As for :func:`hmc`.
    width
        First width of the interval in each coordinate, shape (n, D).
    along
        Which coordinates of each point are updated, shape (n, D); by default all.
    bounds
        Bounds of each update.
    """
    points, values = places.points.copy(), places.values.copy()
    for axis in rng.permutation(points.shape[1]):
        rows = np.arange(len(points)) if along is None else np.flatnonzero(along[:, axis])
        if rows.size:
            points[rows], values[rows] = slice_along_axis(
                densities,
                points[rows],
                values[rows],
                powers[rows],
                axis=int(axis),
                width=width[rows, axis],
                bounds=bounds,
                rng=rng,
            )
    return arrived(densities, places, points, powers)


def arrived(densities: Densities, places: Places, points: FloatArray, powers: FloatArray) -> Places:
    """Return places at new points (n, D), or where they were if there is no density with gradient.

    Parameters
    ----------
    densities, places, powers
        As for :func:`hmc`.
    points
        Where slices led, by log densities without gradients.
    """
    there = densities(points)
    moved = places.copy()
    # Where a gradient is not finite, as on a bound that rounding reached, a value may be.
    usable = np.isfinite(log_height(there.values, powers))
    moved.put(usable, there.take(np.flatnonzero(usable)))
    return moved


def slice_along_axis(
    densities: Densities,
    points: FloatArray,
    values: FloatArray,
    powers: FloatArray,
    *,
    axis: int,
    width: FloatArray,
    bounds: Bounds,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Update one coordinate of each of n points by slice sampling, without gradients.

    Parameters
    ----------
    densities, powers, rng
        As for :func:`hmc`.
    points, values
        Points (n, D), and their log densities (n, 1 + R).
    axis
        Index of the coordinate.
    width
        First width of each interval, shape (n,).
    bounds
        Bounds of the update.

    Returns
    -------
    tuple of FloatArray
        The points, and their log densities, in arrays of their own.
    """
    moved, there_values = points.copy(), values.copy()
    level = log_height(values, powers) - rng.standard_exponential(len(width))

    def on_slice(rows: Rows, shift: FloatArray) -> tuple[_There, Flags]:
        there = points[rows]
        there[:, axis] += shift
        found = densities.values(there)
        return _There(there, found), log_height(found, powers[rows]) >= level[rows]

    def move(rows: Rows, there: _There, found: Rows) -> None:
        moved[rows], there_values[rows] = there.points[found], there.values[found]

    slice_along_lines(
        on_slice, move, width, bounds.most_widths, rng, most_shrinks=bounds.most_shrinks
    )
    return moved, there_values
