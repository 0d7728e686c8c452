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
        count = len(particles.key)
        deal = self._directions(others, population, parent)
        state = particles.copy()
        log_height = state.log_prior + floor.log_share(state.log_likelihood)
        slices = _Slices(state.points)
        begun = np.zeros(count, dtype=np.intp)
        tries, finished = np.zeros(2), np.zeros(2)
        rows = fresh = np.arange(count)
        # A particle begins its next slice while others are still at their last one, so that each
        # call of the densities has as many points as possible.
        while rows.size:
            self._check_time()
            if fresh.size:
                near = rng.random(fresh.size) < 0.5
                width = np.exp(self._log_width[near.astype(np.intp)])
                level = log_height[fresh] - rng.standard_exponential(fresh.size)
                slices.begin(
                    fresh, state.points[fresh], deal(fresh, near, rng), near, width, level, rng
                )
                begun[fresh] += 1
            points, shift = slices.tries(rows, rng)
            found = self._accept(state, log_height, floor, slices.level, rows, points)
            stuck = ~found & (slices.count[rows] >= _MOST_TRIES)
            over = found | stuck
            slices.shrink(rows[~over], shift[~over])
            ended = rows[over]
            kind = slices.near[ended].astype(np.intp)
            tries += np.bincount(kind, weights=slices.count[ended], minlength=2)
            finished += np.bincount(kind, minlength=2)
            self.refused += int(np.count_nonzero(stuck))
            fresh = ended[begun[ended] < self._steps]
            rows = np.concatenate([rows[~over], fresh])
        self.tried += self._steps * count
        # Twice as wide an interval takes one try more.
        mean = tries / np.maximum(finished, 1)
        self._log_width += np.where(finished > 0, np.clip(0.5 * (_TRIES - mean), -1, 1), 0)
        state.key[:] = floor.draw_key(state.log_likelihood, rng)
        return state

    def _directions(
        self, others: list[FloatArray], population: Rows, parent: Rows
    ) -> Callable[[Rows, BoolArray, np.random.Generator], FloatArray]:
        """Return what deals out directions (n, D) to rows (n,), between neighbours or any two."""
        return _Differences(others, population, parent)

    def _accept(
        self,
        state: Particles,
        log_height: FloatArray,
        floor: Floor,
        level: FloatArray,
        rows: Rows,
        points: FloatArray,
    ) -> BoolArray:
        """Move those rows to their points, in place, that lie on their slices; return which."""
        found = np.zeros(rows.size, dtype=np.bool_)
        log_prior, slope = self._space.log_prior(points)
        high = np.flatnonzero(log_prior >= level[rows])
        if high.size:
            which = rows[high]
            log_likelihood, _ = self._space.log_likelihood(
                points[high], log_prior[high], slope[high]
            )
            height = log_prior[high] + floor.take(which).log_share(log_likelihood)
            inside = height >= level[which]
            new, at = which[inside], high[inside]
            state.points[new], state.log_prior[new] = points[at], log_prior[at]
            state.log_likelihood[new] = log_likelihood[inside]
            log_height[new] = height[inside]
            found[at] = True
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

    def _directions(
        self, others: list[FloatArray], population: Rows, parent: Rows
    ) -> Callable[[Rows, BoolArray, np.random.Generator], FloatArray]:
        return _Axes(others, population, random=self._order == "random")


class _Slices:
    """The slice that each particle is at: its interval, and how often it was tried."""

    def __init__(self, points: FloatArray) -> None:
        size = len(points)
        self._origin, self._direction = points.copy(), np.empty_like(points)
        self._left, self._right = np.empty(size), np.empty(size)
        self.level, self.count = np.empty(size), np.zeros(size)
        self.near = np.zeros(size, dtype=np.bool_)

    def begin(
        self,
        rows: Rows,
        points: FloatArray,
        direction: FloatArray,
        near: BoolArray,
        width: FloatArray,
        level: FloatArray,
        rng: np.random.Generator,
    ) -> None:
        """Place an interval at random around each point."""
        self._origin[rows], self._direction[rows] = points, direction
        self.near[rows], self.level[rows], self.count[rows] = near, level, 0
        self._left[rows] = left = -width * rng.random(rows.size)
        self._right[rows] = left + width

    def tries(self, rows: Rows, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw points on the intervals; return them, and their places on these."""
        self.count[rows] += 1
        left = self._left[rows]
        shift = left + (self._right[rows] - left) * rng.random(rows.size)
        return self._origin[rows] + shift[:, None] * self._direction[rows], shift

    def shrink(self, rows: Rows, shift: FloatArray) -> None:
        """Shrink intervals to what is left of places that were not on the slice."""
        self._left[rows] = np.where(shift < 0, shift, self._left[rows])
        self._right[rows] = np.where(shift < 0, self._right[rows], shift)


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
    """Deals out differences of two particles of a population, neither of them a clone's parent."""

    def __init__(self, others: list[FloatArray], population: Rows, parent: Rows) -> None:
        self._size = min(len(points) for points in others)
        self._points = np.stack([points[: self._size] for points in others])
        self._population, self._parent = population, parent
        near = max(self._points.shape[2] + 1, self._size // _LOCAL)
        self._near = min(near, self._size - 2)
        self._neighbours = np.stack([_nearest(points, self._near) for points in self._points])

    def __call__(self, rows: Rows, near: BoolArray, rng: np.random.Generator) -> FloatArray:
        """Return directions of some rows, shape (n, D), of neighbours where ``near``."""
        count, size = len(rows), self._size
        parent, population = self._parent[rows], self._population[rows]
        between = rng.integers(size - 1, size=count)
        first = (parent + 1 + between) % size
        second = (between + 1 + rng.integers(size - 2, size=count)) % (size - 1)
        second = (parent + 1 + second) % size
        rank = rng.integers(self._near, size=count)
        beside = self._neighbours[population, first, rank]
        again = beside == parent
        next_rank = (rank[again] + 1) % self._near
        beside[again] = self._neighbours[population[again], first[again], next_rank]
        second = np.where(near, beside, second)
        direction: FloatArray = self._points[population, first] - self._points[population, second]
        return direction


class _Axes:
    """Deals out axes in turn, as long as the range of the other particles along each."""

    def __init__(self, others: list[FloatArray], population: Rows, *, random: bool) -> None:
        self._range = np.stack([np.ptp(points, axis=0) for points in others])[population]
        count, dimension = self._range.shape
        self._axes = np.tile(np.arange(dimension), (count, 1))
        self._dealt = np.zeros(count, dtype=np.intp)
        self._random = random

    def __call__(self, rows: Rows, near: BoolArray, rng: np.random.Generator) -> FloatArray:
        """Return directions of some rows, shape (n, D), whether ``near`` or not."""
        dimension = self._axes.shape[1]
        place = self._dealt[rows] % dimension
        begun = rows[place == 0]
        if self._random:
            self._axes[begun] = rng.permuted(self._axes[begun], axis=1)
        axis = self._axes[rows, place]
        self._dealt[rows] += 1
        direction = np.zeros((len(rows), dimension))
        direction[np.arange(len(rows)), axis] = self._range[rows, axis]
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
