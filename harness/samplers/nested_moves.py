"""Moves of nested sampling, which leave the prior above a floor of the likelihood invariant.

All particles move at once.  What a move is tuned with (directions, widths, step sizes, covariances)
comes from the other particles and from earlier iterations, never from where the particle is.

References
----------
Neal, R. M. (2003). Slice sampling. Annals of Statistics 31, 705-767.

ter Braak, C. J. F. (2006). A Markov chain Monte Carlo version of the genetic algorithm differential
evolution: easy Bayesian computing for real parameter spaces. Statistics and Computing 16, 239-249
(differences of other particles as directions).

Betancourt, M. (2011). Nested sampling with constrained Hamiltonian Monte Carlo. AIP Conference
Proceedings 1305, 165-172.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London, sections 4.7.1 and 4.8.1.

Skilling, J. (2012). Bayesian computation in big spaces: nested sampling and Galilean Monte Carlo.
AIP Conference Proceedings 1443, 145-156.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.samplers.nested_particles import (
    BoolArray,
    Floor,
    Particles,
    PriorAndLikelihood,
    Rows,
)

NestedExplorer = Literal["slice", "hmc", "axes"]
"""Slice sampling along differences of particles, Hamiltonian trajectories that are reflected, or
slice sampling along the axes, in a random order."""

_MOST_TRIES = 60  # an interval shrinks by half on average, so it is then as narrow as rounding
_LOOK = 10  # tries after which particles are looked for that have had so many
_TRIES = 2.5  # on average of a slice, which its width is tuned to
_LOCAL = 10  # a tenth of the particles are neighbours
_ACCEPTANCE = 0.7
_LEAPFROG = 8
_SWEEPS = 5
_JITTER = 0.3


class OutOfTime(Exception):
    """The time ran out within the moves of one iteration, which are then dropped."""


class Mover(Protocol):
    """A way to draw from the prior above floors, near enough, from clones of other particles.

    Attributes
    ----------
    refused, tried
        Moves that left a particle where it was, and all of them.
    """

    refused: int
    tried: int

    def move(
        self,
        particles: Particles,
        floor: Floor,
        others: list[FloatArray],
        population: Rows,
        parent: Rows,
        rng: np.random.Generator,
    ) -> Particles:
        """Return the particles (n) after their moves, with keys drawn anew.

        Parameters
        ----------
        particles
            Clones, each of which lies above its floor.
        floor
            The floor of each.
        others
            Points of each population's surviving particles, each (M, D), which stay.
        population, parent
            Population of each clone, and which of the others it is a clone of, shape (n,).
        """


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
        Is called between evaluations, and may raise :class:`OutOfTime`.

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
        """See :class:`Mover`."""
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
        """Return what deals out directions: see :class:`_Differences`."""
        return _Differences(others, population, parent, near, rng)

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
        return _Axes(others, population, near.shape[1], rng, random=self._order == "random")


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


class ReflectingHmc:
    """Hamiltonian trajectories in the prior that are reflected where they leave the floor.

    In the middle of each step the momentum gets the prior's force if the point lies above the
    floor; otherwise it is reflected at the likelihood's gradient there.  Both maps keep volumes and
    are undone by turning the momentum, and so is the trajectory, which is accepted by its energy if
    it ends above the floor (Betancourt 2011).

    Parameters
    ----------
    space, steps, check_time
        As for :class:`SliceMoves`; the steps are trajectories of each new particle.

    Attributes
    ----------
    refused, tried
        Trajectories that were not accepted, and all of them.
    """

    def __init__(
        self, space: PriorAndLikelihood, steps: int, check_time: Callable[[], None]
    ) -> None:
        self._space, self._steps, self._check_time = space, steps, check_time
        self._log_step = np.log(0.3)
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
        """See :class:`Mover`."""
        count = len(particles.key)
        cholesky = np.stack([_cholesky(points) for points in others])[population]
        state = particles.copy()
        log_height = state.log_prior + floor.log_share(state.log_likelihood)
        accepted = 0
        for _ in range(self._steps):
            self._check_time()
            jitter = 1 + _JITTER * (2 * rng.random(count) - 1)
            step = (np.exp(self._log_step) * jitter)[:, None]
            momentum = rng.standard_normal(state.points.shape)
            end, height, after = self._trajectory(state, floor, cholesky, step, momentum)
            change = 0.5 * (np.square(after) - np.square(momentum)).sum(axis=1)
            log_ratio = height - log_height - change
            taken = np.flatnonzero(rng.random(count) < np.exp(np.minimum(log_ratio, 0)))
            state.put(taken, end.take(taken))
            log_height[taken] = height[taken]
            accepted += taken.size
        tried = self._steps * count
        self.tried += tried
        self.refused += tried - accepted
        self._log_step += 0.5 * (accepted / tried - _ACCEPTANCE)
        state.key[:] = floor.draw_key(state.log_likelihood, rng)
        return state

    def _trajectory(
        self,
        state: Particles,
        floor: Floor,
        cholesky: FloatArray,
        step: FloatArray,
        momentum: FloatArray,
    ) -> tuple[Particles, FloatArray, FloatArray]:
        """Return where trajectories end, log heights there (n,), and momenta (n, D)."""
        points = state.points
        for number in range(_LEAPFROG):
            points = points + (0.5 * step if number == 0 else step) * _across(cholesky, momentum)
            inside, force, normal = self._above(points, floor)
            kick = momentum + step * _along(cholesky, force)
            normal = _along(cholesky, normal)
            square = np.square(normal).sum(axis=1, keepdims=True)
            share = np.divide(
                2 * (momentum * normal).sum(axis=1, keepdims=True),
                square,
                out=np.zeros_like(square),
                where=square > 0,
            )
            # Without a gradient, as on a plateau, a particle goes back where it came from.
            mirrored = np.where(square > 0, momentum - share * normal, -momentum)
            momentum = np.where(inside[:, None], kick, mirrored)
        points = points + 0.5 * step * _across(cholesky, momentum)
        log_prior, slope = self._space.log_prior(points)
        log_likelihood, _ = self._space.log_likelihood(points, log_prior, slope)
        height = log_prior + floor.log_share(log_likelihood)
        return Particles(points, log_prior, log_likelihood, state.key), height, momentum

    def _above(self, points: FloatArray, floor: Floor) -> tuple[BoolArray, FloatArray, FloatArray]:
        """Return whether points lie above floors, the prior's slopes and the likelihood's."""
        log_prior, slope = self._space.log_prior(points)
        log_likelihood, normal = self._space.log_likelihood(points, log_prior, slope)
        share = floor.log_share(log_likelihood)
        return np.isfinite(log_prior) & np.isfinite(share), slope, normal


MOVES: dict[NestedExplorer, type[SliceMoves] | type[ReflectingHmc]] = {
    "slice": SliceMoves,
    "hmc": ReflectingHmc,
    "axes": AxisSlices,
}


def default_steps(explorer: NestedExplorer, dimension: int, survivors: int) -> int:
    """Return the number of moves of each new particle that calibrated runs need.

    Trajectories are as many as there are dimensions, and 6 or more.  Slices along axes make five
    sweeps.  Other slices are three for each
    dimension and some more.  With few particles a dimension, their differences lie mostly along
    some directions, and slices hardly move along others: the inverse of the covariance of M draws
    in D dimensions is about M / (M - D) times too large on average.  The number of slices grows
    with the square of that, as it had to where it was measured (20 dimensions: about 260 with 30
    survivors, 65 with 60).

    Parameters
    ----------
    explorer
        What moves new particles.
    dimension
        D.
    survivors
        M, particles of a population that survive an iteration, more than D.
    """
    if explorer == "hmc":
        return max(6, dimension)
    if explorer == "axes":
        return _SWEEPS * dimension
    inverse = survivors / (survivors - dimension)
    return 5 + math.ceil(dimension * max(3.0, 1.5 * inverse**2))


class _Differences:
    """Deals out differences of two particles of a population, neither of them a clone's parent.

    All are chosen beforehand, as they do not depend on where particles move to.

    Parameters
    ----------
    others, population, parent
        As for :meth:`Mover.move`.
    near
        Whether two neighbours are wanted, for each slice of each clone, shape (n, steps).
    rng
        Source of randomness.
    """

    def __init__(
        self,
        others: list[FloatArray],
        population: Rows,
        parent: Rows,
        near: BoolArray,
        rng: np.random.Generator,
    ) -> None:
        size = min(len(points) for points in others)
        dimension = others[0].shape[1]
        self._points = np.concatenate([points[:size] for points in others])
        start, own = (population * size)[:, None], parent[:, None]
        between = rng.integers(size - 1, size=near.shape)
        first = (own + 1 + between) % size
        second = (between + 1 + rng.integers(size - 2, size=near.shape)) % (size - 1)
        second = (own + 1 + second) % size
        count = min(max(dimension + 1, size // _LOCAL), size - 2)
        neighbours = np.concatenate([_nearest(points[:size], count) for points in others])
        clone, _ = np.nonzero(near)
        point = (start + first)[near]
        rank = rng.integers(count, size=len(point))
        beside = neighbours[point, rank]
        again = np.flatnonzero(beside == parent[clone])
        beside[again] = neighbours[point[again], (rank[again] + 1) % count]
        second[near] = beside
        self._first, self._second = (start + first).ravel(), (start + second).ravel()

    def __call__(self, slots: Rows) -> FloatArray:
        """Return directions (n, D) of slices, numbered clone by clone."""
        direction = self._points.take(self._first.take(slots), axis=0)
        direction -= self._points.take(self._second.take(slots), axis=0)
        return direction


class _Axes:
    """Deals out axes in turn, as long as the range of the other particles along each."""

    def __init__(
        self,
        others: list[FloatArray],
        population: Rows,
        steps: int,
        rng: np.random.Generator,
        *,
        random: bool,
    ) -> None:
        self._range = np.stack([np.ptp(points, axis=0) for points in others])[population]
        self._steps = steps
        count, dimension = self._range.shape
        axes = np.tile(np.arange(dimension), (count, -(-steps // dimension), 1))
        if random:
            axes = rng.permuted(axes, axis=2)
        self._axis = axes.reshape(count, -1)[:, :steps].ravel()

    def __call__(self, slots: Rows) -> FloatArray:
        """Return directions (n, D) of slices, numbered clone by clone."""
        axis = self._axis.take(slots)
        direction = np.zeros((len(slots), self._range.shape[1]))
        direction[np.arange(len(slots)), axis] = self._range[slots // self._steps, axis]
        return direction


def _nearest(points: FloatArray, count: int) -> Rows:
    """Return the nearest others of each point, in standard deviations, shape (M, count)."""
    spread = points.std(axis=0)
    scaled = points / np.where(spread > 0, spread, 1.0)
    square = np.square(scaled).sum(axis=1)
    distance = square[:, None] + square - 2 * scaled @ scaled.T
    np.fill_diagonal(distance, np.inf)
    return np.argpartition(distance, count - 1, axis=1)[:, :count]


def _cholesky(points: FloatArray) -> FloatArray:
    """Return the Cholesky factor of the points' covariance, also where that is singular."""
    covariance = np.atleast_2d(np.cov(points, rowvar=False))
    ridge = 1e-9 * np.maximum(np.diag(covariance), np.finfo(np.float64).tiny * 1e12)
    return np.asarray(np.linalg.cholesky(covariance + np.diag(ridge)), dtype=np.float64)


def _across(cholesky: FloatArray, momentum: FloatArray) -> FloatArray:
    """Return L p of each row."""
    across: FloatArray = np.einsum("nij,nj->ni", cholesky, momentum)
    return across


def _along(cholesky: FloatArray, slope: FloatArray) -> FloatArray:
    """Return L^T g of each row."""
    along: FloatArray = np.einsum("nij,ni->nj", cholesky, slope)
    return along
