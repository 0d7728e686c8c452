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

Skilling, J. (2012). Bayesian computation in big spaces: nested sampling and Galilean Monte Carlo.
AIP Conference Proceedings 1443, 145-156.
"""

from __future__ import annotations

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

NestedExplorer = Literal["slice", "hmc"]
"""Slice sampling along differences of particles, or Hamiltonian trajectories that are reflected."""

_MOST_TRIES = 60  # an interval shrinks by half on average, so it is then as narrow as rounding
_TRIES = 2.5  # on average of a slice, which its width is tuned to
_LOCAL = 10  # a tenth of the particles are neighbours
_ACCEPTANCE = 0.7
_LEAPFROG = 8
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
        Is called before each slice, and may raise :class:`OutOfTime`.

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
        deal = _Differences(others, population, parent)
        state = particles.copy()
        log_height = state.log_prior + floor.log_share(state.log_likelihood)
        tries, slices = np.zeros(2), np.zeros(2)
        for _ in range(self._steps):
            self._check_time()
            near = rng.random(count) < 0.5
            direction = deal(near, rng)
            width = np.exp(self._log_width[near.astype(np.intp)])
            own = self._along(state, log_height, floor, direction, width, rng)
            np.add.at(tries, near.astype(np.intp), own)
            slices += np.bincount(near, minlength=2)
        # Twice as wide an interval takes one try more.
        mean = tries / np.maximum(slices, 1)
        self._log_width += np.where(slices > 0, np.clip(0.5 * (_TRIES - mean), -1, 1), 0)
        state.key[:] = floor.draw_key(state.log_likelihood, rng)
        return state

    def _along(
        self,
        state: Particles,
        log_height: FloatArray,
        floor: Floor,
        direction: FloatArray,
        width: FloatArray,
        rng: np.random.Generator,
    ) -> FloatArray:
        """Move particles along directions, in place; return how many tries each took."""
        count = len(width)
        level = log_height - rng.standard_exponential(count)
        left = -width * rng.random(count)
        right = left + width
        tries, rows = np.zeros(count), np.arange(count)
        origin = state.points.copy()
        for _ in range(_MOST_TRIES):
            shift = left[rows] + (right[rows] - left[rows]) * rng.random(rows.size)
            points = origin[rows] + shift[:, None] * direction[rows]
            tries[rows] += 1
            log_prior, slope = self._space.log_prior(points)
            high = np.flatnonzero(log_prior >= level[rows])
            found = np.zeros(rows.size, dtype=np.bool_)
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
            rows, shift = rows[~found], shift[~found]
            if not rows.size:
                break
            left[rows] = np.where(shift < 0, shift, left[rows])
            right[rows] = np.where(shift < 0, right[rows], shift)
        self.refused += rows.size
        self.tried += count
        return tries


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
}


def default_steps(explorer: NestedExplorer, dimension: int) -> int:
    """Return the number of moves of each new particle: what calibrated runs need, and some more."""
    return 5 + 3 * dimension if explorer == "slice" else 6


class _Differences:
    """Deals out differences of two particles of a population, neither of them a clone's parent."""

    def __init__(self, others: list[FloatArray], population: Rows, parent: Rows) -> None:
        self._size = min(len(points) for points in others)
        self._points = np.stack([points[: self._size] for points in others])
        self._population, self._parent = population, parent
        near = max(self._points.shape[2] + 1, self._size // _LOCAL)
        self._near = min(near, self._size - 2)
        self._neighbours = np.stack([_nearest(points, self._near) for points in self._points])

    def __call__(self, near: BoolArray, rng: np.random.Generator) -> FloatArray:
        """Return directions (n, D), of neighbours where ``near``."""
        count, size = len(near), self._size
        first = (self._parent + 1 + rng.integers(size - 1, size=count)) % size
        between = (first - self._parent - 1) % size  # 0 ... size - 2
        second = (between + 1 + rng.integers(size - 2, size=count)) % (size - 1)
        second = (self._parent + 1 + second) % size
        rank = rng.integers(self._near, size=count)
        beside = self._neighbours[self._population, first, rank]
        again = beside == self._parent
        beside[again] = self._neighbours[
            self._population[again], first[again], (rank[again] + 1) % self._near
        ]
        second = np.where(near, beside, second)
        own = self._points[self._population, first]
        direction: FloatArray = own - self._points[self._population, second]
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
