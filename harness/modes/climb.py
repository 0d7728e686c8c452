"""Climb a log density from many points at the same time, as far as a box around the draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, LogDensity

_MEMORY = 8
_SMALL = 8
"""As many steps in a row that promise little make a climb start anew, or end."""
_MOST_STEPS = 300
_GAIN = 1e-3
"""Nats that a quadratic model must promise, or the climb starts anew with another model."""
_GAINED = 0.01
"""A climb has arrived if it gains less than so many nats from one new start to the next."""
LONGEST_STEP = 0.5
"""Of a step, in scales and times the root of the dimension, so that no step crosses a barrier."""
_LONGER = 8.0
"""How much longer steps may become after some that were cut short."""
_STALE, _SHORTEST = 0.01, 1e-9
"""Shares of a step below which the model of the surroundings is given up, and the climb itself."""
_STEEP = 0.9  # share of the slope that is left after a step that was too short (Wolfe)
_TINY = 1e-100  # of squares, which must not vanish
_ENOUGH = 1e-4  # share of the promised gain that a step must bring (Armijo)


IsEnd = Callable[[FloatArray, FloatArray], npt.NDArray[np.bool_]]
"""Whether points (n, D) with log densities (n,) are at a maximum that is known."""
GoesOn = Callable[[int, FloatArray, FloatArray], npt.NDArray[np.bool_]]
"""Whether climbs go on after so many steps, which have led to points (n, D) with log densities
(n,)."""


class Climbed(NamedTuple):
    """Where climbs ended."""

    points: FloatArray
    """Shape (n, D)."""
    height: FloatArray
    """Log density there, shape (n,)."""
    arrived: npt.NDArray[np.bool_]
    """Whether a climb ended at a maximum, shape (n,); others left the box, took too long or were
    given up."""
    unfinished: npt.NDArray[np.bool_]
    """Whether a climb was still on its way when it had taken all of its steps, shape (n,)."""


class Box(NamedTuple):
    """Lower and upper ends of each coordinate, beyond which no climb goes."""

    lower: FloatArray
    upper: FloatArray


def everywhere(dimension: int) -> Box:
    """Return the box of all points."""
    return Box(np.full(dimension, -np.inf), np.full(dimension, np.inf))


class _Curvature:
    """The last steps of each climb, and the changes of slope that they brought (L-BFGS)."""

    def __init__(self, count: int, dimension: int) -> None:
        self._steps: FloatArray = np.zeros((_MEMORY, count, dimension))
        self._bends: FloatArray = np.zeros((_MEMORY, count, dimension))
        self._inverse: FloatArray = np.zeros((_MEMORY, count))
        self._first: FloatArray = np.zeros(count)

    def learn(self, rows: npt.NDArray[np.intp], step: FloatArray, bend: FloatArray) -> None:
        """Take in steps of some climbs, and by how much their slopes fell."""
        product = np.einsum("ij,ij->i", step, bend)
        size = np.einsum("ij,ij->i", bend, bend)
        length = np.einsum("ij,ij->i", step, step)
        concave = product > np.maximum(1e-10 * np.sqrt(size) * np.sqrt(length), _TINY)
        rows, step, bend = rows[concave], step[concave], bend[concave]
        for each in (self._steps, self._bends, self._inverse):
            each[:-1, rows] = each[1:, rows]
        self._steps[-1, rows], self._bends[-1, rows] = step, bend
        self._inverse[-1, rows] = 1 / product[concave]
        self._first[rows] = product[concave] / size[concave]

    def knows(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Whether anything is known of the surroundings of some climbs."""
        known: npt.NDArray[np.bool_] = self._first[rows] > 0
        return known

    def forget(self, rows: npt.NDArray[np.intp]) -> None:
        """Start anew for some climbs."""
        self._inverse[:, rows] = 0.0
        self._first[rows] = 0.0

    def direction(self, rows: npt.NDArray[np.intp], slope: FloatArray) -> FloatArray:
        """Return the step to the top of a quadratic model of each climb's surroundings."""
        along = slope.copy()
        shares = []
        steps, bends = self._steps[:, rows], self._bends[:, rows]
        inverses, first = self._inverse[:, rows], self._first[rows]
        for step, bend, inverse in zip(steps[::-1], bends[::-1], inverses[::-1], strict=True):
            share = inverse * np.einsum("ij,ij->i", step, along)
            along -= share[:, None] * bend
            shares.append(share)
        along *= np.where(first > 0, first, 1.0)[:, None]
        for step, bend, inverse, share in zip(steps, bends, inverses, shares[::-1], strict=True):
            back = inverse * np.einsum("ij,ij->i", bend, along)
            along += (share - back)[:, None] * step
        return along


def climb(
    start: FloatArray,
    log_density: LogDensity,
    *,
    scale: FloatArray,
    box: Box,
    longest_step: FloatArray | float = LONGEST_STEP,
    is_end: IsEnd | None = None,
    goes_on: GoesOn | None = None,
) -> Climbed:
    """Climb from each point by L-BFGS with short steps (Nocedal and Wright 2006, section 7.2).

    All climbs take their steps together, so each costs one call of the density.  A climb that would
    leave the box ends at its edge; so a density without an upper bound does no harm.

    Parameters
    ----------
    start
        Points where the density is above zero, shape (n, D).
    log_density
        Log density and gradient at many points.
    scale
        Size of each coordinate, within which the density changes by about a nat, shape (D,).
    box
        Where climbs end; the starting points are inside.
    longest_step
        How long steps may be at first, in scales and times the root of the dimension, shape (n,) or
        one for all.
    is_end
        Tells where a climb has arrived at a maximum that is known, which saves the steps that would
        make sure of it.
    goes_on
        Tells after each step which climbs are not given up.
    """
    count, dimension = start.shape
    longest = np.full(count, longest_step) * np.sqrt(dimension)
    most = _LONGER * longest
    curvature = _Curvature(count, dimension)
    points = start / scale
    lower, upper = box.lower / scale, box.upper / scale
    height, slope = log_density(start)
    with np.errstate(over="ignore"):
        height, slope = np.array(height), slope * scale
    length: FloatArray = np.ones(count)
    small = np.zeros(count, dtype=np.intp)
    before: FloatArray = np.full(count, -np.inf)
    arrived = np.zeros(count, dtype=np.bool_)
    active = np.flatnonzero(np.isfinite(height + slope.sum(axis=1)))
    for steps in range(_MOST_STEPS):
        if goes_on is not None:
            active = active[goes_on(steps, points[active] * scale, height[active])]
        if not active.size:
            break
        along = curvature.direction(active, slope[active])
        gain = np.einsum("ij,ij->i", along, slope[active])
        wrong = ~(gain >= 0)
        curvature.forget(active[wrong])
        along[wrong] = slope[active[wrong]]
        gain[wrong] = np.square(along[wrong]).sum(axis=1)
        small[active] = np.where(0.5 * gain < _GAIN, small[active] + 1, 0)
        again = small[active] >= _SMALL
        arrived[active] = again & (height[active] - before[active] < _GAINED)
        anew = active[again]
        before[anew] = height[anew]
        small[anew] = 0
        curvature.forget(anew)
        along[again] = slope[anew]
        gain[again] = np.square(slope[anew]).sum(axis=1)
        left = ~arrived[active]
        active, along, gain = active[left], along[left], gain[left]
        if not active.size:
            break
        with np.errstate(over="ignore"):  # an enormous slope: the step is then 0
            norm = np.maximum(np.linalg.norm(along, axis=1), _TINY)
        reach = np.minimum(length[active], longest[active] / norm)
        at_edge = _share_inside(points[active], reach[:, None] * along, lower, upper)
        reach *= at_edge
        proposed = points[active] + reach[:, None] * along
        new_height, new_slope = log_density(proposed * scale)
        with np.errstate(over="ignore", invalid="ignore"):
            new_slope = new_slope * scale
            better = (new_height >= height[active] + _ENOUGH * reach * gain) & (new_height < np.inf)
            better &= np.isfinite(new_slope.sum(axis=1))  # from there no direction leads anywhere
        bound = better & (length[active] * norm >= longest[active])
        longest[active] = np.where(
            bound, np.minimum(1.5 * longest[active], most[active]), longest[active]
        )
        left = np.einsum("ij,ij->i", along, new_slope)
        steep = better & (left > _STEEP * gain)
        length[active] = np.where(
            steep, 2 * length[active], np.where(better, 1.0, 0.3 * length[active])
        )
        stale = active[(length[active] < _STALE) & curvature.knows(active)]
        curvature.forget(stale)
        length[stale] = 1.0
        moved = active[better]
        curvature.learn(moved, proposed[better] - points[moved], slope[moved] - new_slope[better])
        points[moved], height[moved] = proposed[better], new_height[better]
        slope[moved] = new_slope[better]
        ended = (better & (at_edge < 1)) | (length[active] < _SHORTEST)
        if is_end is not None:
            known = better & ~ended
            known[known] = is_end(proposed[known] * scale, new_height[known])
            arrived[active[known]] = True
            ended |= known
        active = active[~ended]
    unfinished = np.zeros(count, dtype=np.bool_)
    unfinished[active] = True
    return Climbed(points * scale, height, arrived, unfinished)


def _share_inside(
    points: FloatArray, step: FloatArray, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    """Return the share of each step that stays in the box, at most 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(step > 0, (upper - points) / step, (lower - points) / step)
    room = np.where(step == 0, np.inf, room)
    share: FloatArray = np.clip(room.min(axis=1), 0.0, 1.0)
    return share
