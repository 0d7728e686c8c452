"""Hamiltonian moves of many particles at once, adapted to the particles themselves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray, LogDensity

MOST_DENSE = 200
"""Dimensions up to which the metric has correlations.

They take five particles a dimension, and then each leapfrog step takes time in proportion to D^3.
"""
DIVERGENT = 1000.0
"""Error of the energy from which a trajectory counts as divergent, as for Stan's NUTS."""
FARTHEST = 10.0
"""Standard deviations of all that is moved, in a coordinate, that a leapfrog step leads at most.

A trajectory with a longer step goes astray, and its next place would be far from everything: where
a rate is e^20, a differential equation takes seconds, or never ends.  A step is as long in either
direction of time, so that ending there changes no density.  Steps of a Gaussian are up to two
standard deviations times a normal momentum.
"""
_TARGET_ACCEPTANCE = 0.8
_LARGEST_CHANGE = 0.5  # of the log of the step size, per move


class Moved(NamedTuple):
    """Particles after a move."""

    points: FloatArray
    """Shape (n, D)."""
    acceptance: float
    """Mean acceptance probability."""


def lowest_height(before: FloatArray, drawn: FloatArray) -> FloatArray:
    """Return the log density less kinetic energy below which trajectories end, as divergent.

    It is below what would be accepted by :data:`DIVERGENT`.  Further on, some densities take a
    thousand times as long: those of differential equations do.  Whether a trajectory ends is
    decided by the places on its way and by a level that is drawn first, so it is the same in both
    directions (Hoffman and Gelman 2014, section 3.1, of the slice of NUTS).

    Parameters
    ----------
    before
        The same at the trajectories' starts, shape (n,).
    drawn
        Uniform numbers, shape (n,): a trajectory is accepted if its is below the probability.
    """
    with np.errstate(divide="ignore"):
        lowest: FloatArray = before + np.log(drawn) - DIVERGENT
    return lowest


class HmcMoves:
    """HMC transitions of populations of particles, whose metric and step size adapt themselves.

    The metric is the particles' precision.  Each population has the metric of the others: a
    transition with a metric that depends on the particle itself does not leave the density
    invariant.  In 26 dimensions, 256 particles that shared one metric had a log Z that was too low
    by 0.4 at the end of their ladder.

    In more than :data:`MOST_DENSE` dimensions it is the precision of each coordinate alone.

    Parameters
    ----------
    dimension
        Number D of coordinates.
    leapfrog_steps
        Leapfrog steps of each trajectory.
    populations
        Number P of populations, 2 or more.
    step_size
        The first step size, in units of the particles' standard deviations; by default
        D^(-1/4), about right for a Gaussian.
    """

    def __init__(
        self,
        dimension: int,
        leapfrog_steps: int,
        populations: int,
        *,
        step_size: float | None = None,
    ) -> None:
        self._leapfrog_steps, self._populations = leapfrog_steps, populations
        self._log_step = float(np.log(step_size or dimension**-0.25))
        self._dense = dimension <= MOST_DENSE
        scale = np.eye(dimension) if self._dense else np.ones((1, dimension))
        self._scale: FloatArray = np.tile(scale, (populations, 1, 1))

    def adapt_to(self, points: FloatArray, share: FloatArray) -> None:
        """Compute each population's metric from the particles of the others.

        Parameters
        ----------
        points
            Particles, population after population and equally many in each, shape (n, D).
        share
            Their normalised weights, shape (n,).
        """
        population = np.repeat(np.arange(self._populations), len(points) // self._populations)
        others = [population != own for own in range(self._populations)]
        self._scale = np.array([self._scale_of(points[each], share[each]) for each in others])

    def _scale_of(self, points: FloatArray, share: FloatArray) -> FloatArray:
        """Return a root of the covariance of some particles, or their standard deviations."""
        total = share.sum()
        # All the weight may be in the population that is left out.
        weight = share / total if total > 0 else np.full(len(share), 1 / len(share))
        deviation = points - weight @ points
        if not self._dense:
            variance = weight @ np.square(deviation)
            return np.sqrt(variance + _floor(variance))[None]
        covariance = (weight * deviation.T) @ deviation
        # Adding a thousandth of the variances keeps a cloud usable that has collapsed onto a plane;
        # the metric only affects efficiency.
        spread = np.diag(covariance)
        covariance += np.diag(1e-3 * spread + _floor(spread))
        return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)

    def move(self, log_density: LogDensity, points: FloatArray, rng: np.random.Generator) -> Moved:
        """Make one transition of every particle (n, D), then adapt the step size.

        Each particle has its own step size, drawn around the common one, so that no trajectory
        length is a period of the target.  Trajectories end at :func:`lowest_height`, and before a
        step that is longer than :data:`FARTHEST`.
        """
        count, dimension = points.shape
        step = np.exp(self._log_step) * rng.uniform(0.5, 1.5, size=(count, 1))
        momentum = rng.standard_normal((count, dimension))
        value, gradient = log_density(points)
        before = value - 0.5 * np.square(momentum).sum(axis=1)
        drawn = rng.random((count,))
        lowest = lowest_height(before, drawn)
        place, going = points, np.ones(count, dtype=np.bool_)
        # A trajectory that diverges overflows and is rejected.
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(self._leapfrog_steps):
                momentum = momentum + 0.5 * step * self._whitened(gradient)
                place = place + step * self._scaled(momentum)
                going &= np.abs(step * momentum).max(axis=1) <= FARTHEST
                if going.all():
                    value, gradient = log_density(place)
                elif going.any():
                    value, gradient = value.copy(), gradient.copy()
                    value[going], gradient[going] = log_density(place[going])
                momentum = momentum + 0.5 * step * self._whitened(gradient)
                after = value - 0.5 * np.square(momentum).sum(axis=1)
                going &= ~(np.isfinite(after) & (after < lowest))
            probability = np.exp(np.minimum(0.0, after - before))
        probability = np.where(np.isfinite(probability) & going, probability, 0.0)
        accepted = drawn < probability
        acceptance = float(probability.mean())
        change = acceptance - _TARGET_ACCEPTANCE
        self._log_step += float(np.clip(change, -_LARGEST_CHANGE, _LARGEST_CHANGE))
        return Moved(np.where(accepted[:, None], place, points), acceptance)

    def _scaled(self, momentum: FloatArray) -> FloatArray:
        """Return momenta (n, D) of unit variance as velocities."""
        own = self._by_population(momentum)
        scaled = own @ np.swapaxes(self._scale, 1, 2) if self._dense else own * self._scale
        return scaled.reshape(momentum.shape)

    def _whitened(self, gradient: FloatArray) -> FloatArray:
        """Return gradients (n, D) along the axes of those momenta."""
        own = self._by_population(gradient)
        whitened = own @ self._scale if self._dense else own * self._scale
        return whitened.reshape(gradient.shape)

    def _by_population(self, vectors: FloatArray) -> FloatArray:
        """Return vectors (n, D) as (P, n / P, D)."""
        return vectors.reshape(self._populations, -1, vectors.shape[1])


def _floor(variance: FloatArray) -> float:
    """Return what keeps coordinates usable that do not vary."""
    return max(float(variance.max()), np.finfo(np.float64).tiny) * 1e-12
