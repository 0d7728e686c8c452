"""Hamiltonian trajectories in the prior of nested sampling, reflected at a floor of the likelihood.

References
----------
Betancourt, M. (2011). Nested sampling with constrained Hamiltonian Monte Carlo. AIP Conference
Proceedings 1305, 165-172.

Skilling, J. (2012). Bayesian computation in big spaces: nested sampling and Galilean Monte Carlo.
AIP Conference Proceedings 1443, 145-156.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harness.arrays import FloatArray
from harness.samplers.nested_particles import BoolArray, Floor, Particles, PriorAndLikelihood, Rows

_ACCEPTANCE = 0.7
_LEAPFROG = 8
_JITTER = 0.3


class ReflectingHmc:
    """Hamiltonian trajectories in the prior that are reflected where they leave the floor.

    In the middle of each step the momentum gets the prior's force if the point lies above the
    floor; otherwise it is reflected at the likelihood's gradient there.  Both maps keep volumes and
    are undone by turning the momentum, and so is the trajectory, which is accepted by its energy if
    it ends above the floor (Betancourt 2011).

    Parameters
    ----------
    space, steps, check_time
        As for :class:`~harness.samplers.nested_slices.SliceMoves`; the steps are trajectories of
        each new particle.

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
        """See :class:`~harness.samplers.nested_moves.Mover`."""
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
