"""Slice sampling above a floor of the likelihood, for all new particles of nested sampling at once.

References
----------
Neal, R. M. (2003). Slice sampling. Annals of Statistics 31, 705-767.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London, sections 4.7.1 and 4.8.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.samplers.nested_directions import Axes, Differences
from harness.samplers.nested_particles import BoolArray, Floor, Particles, PriorAndLikelihood, Rows

_MOST_TRIES = 60  # an interval shrinks by half on average, so it is then as narrow as rounding
_LOOK = 10  # tries after which particles are looked for that have had so many
_TRIES = 2.5  # on average of a slice, which its width is tuned to


class SliceMoves:
    """Slice sampling along differences of two other particles, half of them near neighbours.

    The interval is placed at random around the particle and shrinks towards it until a point is
    found, without stepping out (Neal 2003, section 4.1 with m = 1), so no move is refused.  The
    prior is evaluated first, and the likelihood only where that is high enough.

    Parameters
    ----------
    space
        Prior and likelihood.
    steps
        Slices of each new particle.
    check_time
        Is called between evaluations, and may raise
        :class:`~harness.samplers.nested_moves.OutOfTime`.

    Attributes
    ----------
    refused, tried
        Slices in which the interval shrank to nothing, and all of them.
    """

    def __init__(
        self, space: PriorAndLikelihood, steps: int, check_time: Callable[[], None]
    ) -> None:
        self._space, self._steps, self._check_time = space, steps, check_time
        self._log_width = np.zeros(2)  # of differences of any two, and of neighbours
        self.refused = self.tried = 0

    def move(
        self,
        particles: Particles,
        floor: Floor,
        others: list[FloatArray],
        population: Rows,
        parent: Rows,
        rng: np.random.Generator,
    ) -> Particles:
        """See :class:`~harness.samplers.nested_moves.Mover`."""
        near = rng.random((len(particles.key), self._steps)) < 0.5
        deal = self._deal(others, population, parent, near, rng)
        width = np.exp(self._log_width)[near.astype(np.intp)]
        slices = _Slices(particles.copy(), floor, deal, width, rng)
        # A particle begins its next slice while others are still at their last one, so that each
        # call of the densities has as many points as possible.
        while slices.row.size:
            self._check_time()
            points = slices.points(rng)
            slices.end(self._accept(slices, points))
        self.refused += slices.refused
        self.tried += near.size
        # Twice as wide an interval takes one try more.
        tries = slices.tries()
        for kind in (0, 1):
            of_kind = tries[near == kind]
            if of_kind.size:
                self._log_width[kind] += np.clip(0.5 * (_TRIES - of_kind.mean()), -1, 1)
        state = slices.state
        state.key[:] = floor.draw_key(state.log_likelihood, rng)
        return state

    def _deal(
        self,
        others: list[FloatArray],
        population: Rows,
        parent: Rows,
        near: BoolArray,
        rng: np.random.Generator,
    ) -> Callable[[Rows], FloatArray]:
        """Return what deals out directions: see :class:`Differences`."""
        return Differences(others, population, parent, near, rng)

    def _accept(self, slices: _Slices, points: FloatArray) -> Rows:
        """Move the rows to their points that lie on their slices; return which."""
        log_prior = self._space.log_prior_alone(points)
        high: Rows = (log_prior >= slices.level).nonzero()[0]
        if not high.size:
            return high
        if high.size < len(points):
            points, log_prior = points.take(high, axis=0), log_prior.take(high)
        log_likelihood = self._space.log_likelihood_alone(points, log_prior)
        # Above the floor's likelihood S is 1, and the prior alone is high enough.
        lowest = slices.floor.log_likelihood.take(high)
        above, height = log_likelihood > lowest, log_prior
        (tied,) = (log_likelihood == lowest).nonzero()
        if tied.size:
            share = slices.floor.take(high[tied]).log_share(log_likelihood[tied])
            height = log_prior.copy()
            height[tied] += share
            above[tied] = height[tied] >= slices.level[high[tied]]
        inside: Rows = above.nonzero()[0]
        found: Rows = high.take(inside)
        slices.particles.points[found] = points.take(inside, axis=0)
        slices.particles.log_prior[found] = log_prior.take(inside)
        slices.particles.log_likelihood[found] = log_likelihood.take(inside)
        slices.log_height[found] = height.take(inside)
        return found


class AxisSlices(SliceMoves):
    """Slice sampling along one axis after the other, with widths from the range of the particles.

    It suits targets whose axes are hardly correlated, and needs no more particles in more
    dimensions.  Murray (2007, section 4.8.1) moves particles so.  Each particle takes the axes in
    an order of its own, drawn afresh for every sweep: a clone starts near the floor, and in a fixed
    order the first axis would become more constrained than the last (section 4.7.1).

    Parameters
    ----------
    space, steps, check_time
        As for :class:`SliceMoves`.
    order
        ``random``, or ``fixed`` to see what goes wrong.

    Attributes
    ----------
    refused, tried
        The same as for :class:`SliceMoves`.
    """

    def __init__(
        self,
        space: PriorAndLikelihood,
        steps: int,
        check_time: Callable[[], None],
        order: Literal["random", "fixed"] = "random",
    ) -> None:
        super().__init__(space, steps, check_time)
        self._order = order

    def _deal(
        self,
        others: list[FloatArray],
        population: Rows,
        parent: Rows,
        near: BoolArray,
        rng: np.random.Generator,
    ) -> Callable[[Rows], FloatArray]:
        return Axes(others, population, near.shape[1], rng, random=self._order == "random")


class _Slices:
    """The slices that particles are at, of those that have not finished all of theirs.

    These lie in adjacent rows, so that most operations need no indices; and what does not depend on
    where particles are is drawn beforehand for all slices, which are numbered particle by particle.

    Parameters
    ----------
    state
        All particles, which are moved in place as they finish.
    floor
        The floor of each.
    deal
        Returns directions of slices.
    width
        Width of the interval of each slice of each particle, shape (n, steps).
    rng
        Source of randomness.

    Attributes
    ----------
    state
        All particles.
    row
        Which of them each of the others (m) is.
    particles, floor, log_height
        Where these are, their floors, and the heights of what the slices are of.
    level
        Height that a point must have to lie on the slice.
    refused
        Slices in which the interval shrank to nothing.
    """

    def __init__(
        self,
        state: Particles,
        floor: Floor,
        deal: Callable[[Rows], FloatArray],
        width: FloatArray,
        rng: np.random.Generator,
    ) -> None:
        count, steps = width.shape
        self.state, self._deal = state, deal
        begin = -width * rng.random(width.shape)
        self._begin, self._stop = begin.ravel(), (begin + width).ravel()
        self._fall = rng.standard_exponential(width.size)
        self._ended = np.zeros(width.shape, dtype=np.intp)  # by the number of the try
        self._now = self.refused = 0
        self.row = np.arange(count)
        self._slot = steps * self.row
        self._last = self._slot + steps - 1
        self.particles, self.floor = state.copy(), floor
        self.log_height = state.log_prior + floor.log_share(state.log_likelihood)
        self._direction = deal(self._slot)
        self._left, self._right = self._begin[self._slot], self._stop[self._slot]
        self.level = self.log_height - self._fall[self._slot]
        self._began = np.zeros(count, dtype=np.intp)

    def points(self, rng: np.random.Generator) -> FloatArray:
        """Draw points on the intervals (m, D), and shrink these to them.

        Where a point turns out to lie on its slice, the interval is not needed any more.
        """
        self._now += 1
        shift = self._right - self._left
        shift *= rng.random(shift.size)
        shift += self._left
        drawn: FloatArray = self._direction * shift[:, None]
        drawn += self.particles.points
        below = shift < 0
        np.copyto(self._left, shift, where=below)
        np.copyto(self._right, shift, where=~below)
        return drawn

    def end(self, rows: Rows) -> None:
        """End slices of rows that have moved, or that cannot; begin the next ones."""
        if self._now % _LOOK == 0:
            stuck = self._began <= self._now - _MOST_TRIES
            stuck[rows] = False
            self.refused += int(np.count_nonzero(stuck))
            rows = np.concatenate([rows, *stuck.nonzero()])
        slot = self._slot.take(rows)
        self._ended.put(slot, self._now)
        finished = slot == self._last.take(rows)
        if finished.any():
            done, going = rows[finished], ~finished
            self._begin_next(rows[going], slot[going] + 1)
            self.state.put(self.row[done], self.particles.take(done))
            kept = np.ones(len(self.row), dtype=np.bool_)
            kept[done] = False
            self._keep(*kept.nonzero())
        else:
            self._begin_next(rows, slot + 1)

    def tries(self) -> npt.NDArray[np.intp]:
        """Return how many points were drawn on each slice of each particle, shape (n, steps)."""
        return np.diff(self._ended, axis=1, prepend=0)

    def _begin_next(self, rows: Rows, slot: Rows) -> None:
        self._slot[rows], self._began[rows] = slot, self._now
        self._direction[rows] = self._deal(slot)
        self._left[rows], self._right[rows] = self._begin.take(slot), self._stop.take(slot)
        self.level[rows] = self.log_height.take(rows) - self._fall.take(slot)

    def _keep(self, rows: Rows) -> None:
        self.row, self._slot = self.row.take(rows), self._slot.take(rows)
        self._last, self._began = self._last.take(rows), self._began.take(rows)
        self.particles, self.floor = self.particles.take(rows), self.floor.take(rows)
        self.log_height, self.level = self.log_height.take(rows), self.level.take(rows)
        self._left, self._right = self._left.take(rows), self._right.take(rows)
        self._direction = self._direction.take(rows, axis=0)
