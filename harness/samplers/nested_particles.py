"""Particles of nested sampling: prior and likelihood apart, and the order that also breaks ties.

Particles are ordered by their likelihood and, where likelihoods are equal, by a key that is uniform
on [0, 1] and independent of everything else.  The pair has no ties, so that a plateau of the
likelihood is a range of it like any other.  A likelihood of zero is a plateau too.

References
----------
Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London, section 4.4.6.

Skilling, J. (2006). Nested sampling for general Bayesian computation. Bayesian Analysis 1, 833-859.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, LogDensity, values_of

Rows = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

_GRID = 2.0**-30
"""Log likelihoods are rounded to multiples of this: they are differences of log densities, and
rounding errors of those must not turn a plateau into a rugged surface."""


@dataclass(frozen=True)
class Particles:
    """Points and what is known there.

    Attributes
    ----------
    points
        Shape (n, D).
    log_prior, log_likelihood
        Shape (n,); the likelihood may be -inf.
    key
        What orders particles of one likelihood, shape (n,), in [0, 1].
    """

    points: FloatArray
    log_prior: FloatArray
    log_likelihood: FloatArray
    key: FloatArray

    def take(self, rows: Rows | slice) -> Particles:
        """Return some rows, in some order, perhaps repeatedly."""
        return Particles(
            self.points[rows], self.log_prior[rows], self.log_likelihood[rows], self.key[rows]
        )

    def put(self, rows: Rows, other: Particles) -> None:
        """Replace some rows by those of another, one each."""
        self.points[rows] = other.points
        self.log_prior[rows] = other.log_prior
        self.log_likelihood[rows] = other.log_likelihood
        self.key[rows] = other.key

    def copy(self) -> Particles:
        """Return the same rows in arrays of their own."""
        return self.take(np.arange(len(self.key)))

    def order(self) -> Rows:
        """Return the rows, the lowest likelihood first, shape (n,)."""
        return np.lexsort((self.key, self.log_likelihood))


def joined(particles: list[Particles]) -> Particles:
    """Return the rows of several, one after the other."""
    return Particles(
        np.concatenate([each.points for each in particles]),
        np.concatenate([each.log_prior for each in particles]),
        np.concatenate([each.log_likelihood for each in particles]),
        np.concatenate([each.key for each in particles]),
    )


@dataclass(frozen=True)
class Floor:
    """What new particles must lie above, each its own.

    The prior restricted to that has the density pi(x) S(x) up to a constant, in which S, the share
    of keys that are allowed, is 1 if the likelihood lies above the floor's, 1 - key if it is equal,
    and 0 otherwise (Murray 2007, eq. 4.32).

    Attributes
    ----------
    log_likelihood, key
        Shape (n,).
    """

    log_likelihood: FloatArray
    key: FloatArray

    def take(self, rows: Rows) -> Floor:
        """Return the floors of some rows."""
        return Floor(self.log_likelihood[rows], self.key[rows])

    def log_share(self, log_likelihood: FloatArray) -> FloatArray:
        """Return log S of each row's likelihood, shape (n,); floors and likelihoods broadcast."""
        share = np.where(log_likelihood > self.log_likelihood, 0.0, -np.inf)
        tied = log_likelihood == self.log_likelihood
        if tied.any():
            with np.errstate(divide="ignore"):
                return np.where(tied, np.log1p(-self.key), share)
        return share

    def draw_key(self, log_likelihood: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw keys given likelihoods, uniform on what is allowed (Murray 2007, eq. 4.33)."""
        lowest = np.where(log_likelihood == self.log_likelihood, self.key, 0.0)
        drawn: FloatArray = lowest + (1 - lowest) * rng.random(len(lowest))
        return drawn


def no_floor(count: int) -> Floor:
    """Return floors that keep nobody out."""
    return Floor(np.full(count, -np.inf), np.zeros(count))


class PriorAndLikelihood:
    """A prior and a likelihood, the latter as the ratio of the target's density to the prior's.

    A value that is not finite counts as no density.  Moves that need no gradients ask for values
    alone, which some densities return in half the time.

    Parameters
    ----------
    prior, target
        Log densities and gradients, which need not be normalised.

    Attributes
    ----------
    evaluations
        Points at which the target was evaluated so far.
    """

    def __init__(self, prior: LogDensity, target: LogDensity) -> None:
        self._prior, self._target = prior, target
        self._prior_values, self._target_values = values_of(prior), values_of(target)
        self.evaluations = 0

    def log_prior(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log prior densities (n,) and their gradients (n, D)."""
        value, gradient = self._prior(points)
        usable = np.isfinite(value)
        if usable.all():
            return value, gradient
        return np.where(usable, value, -np.inf), np.where(usable[:, None], gradient, 0.0)

    def log_prior_alone(self, points: FloatArray) -> FloatArray:
        """Return log prior densities (n,)."""
        return _below_infinity(self._prior_values(points))

    def log_likelihood_alone(self, points: FloatArray, log_prior: FloatArray) -> FloatArray:
        """Return log likelihoods (n,), given what the prior has there, which is not zero."""
        self.evaluations += len(points)
        ratio = self._target_values(points) - log_prior
        ratio /= _GRID
        np.rint(ratio, out=ratio)
        ratio *= _GRID
        return _below_infinity(ratio)

    def log_likelihood(
        self, points: FloatArray, log_prior: FloatArray, prior_gradient: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return log likelihoods (n,) and gradients (n, D), given what the prior has there."""
        self.evaluations += len(points)
        value, gradient = self._target(points)
        usable = np.isfinite(value) & np.isfinite(log_prior)
        if usable.all():
            return np.rint((value - log_prior) / _GRID) * _GRID, gradient - prior_gradient
        ratio = np.where(usable, value, 0.0) - np.where(usable, log_prior, 0.0)
        return (
            np.where(usable, np.rint(ratio / _GRID) * _GRID, -np.inf),
            np.where(usable[:, None], gradient - prior_gradient, 0.0),
        )

    def particles(self, points: FloatArray, rng: np.random.Generator) -> Particles:
        """Evaluate points (n, D), and draw their keys."""
        log_prior = self.log_prior_alone(points)
        with np.errstate(invalid="ignore"):
            log_likelihood = self.log_likelihood_alone(points, log_prior)
        return Particles(points, log_prior, log_likelihood, rng.random(len(points)))


def _below_infinity(value: FloatArray) -> FloatArray:
    """Return values with -inf for those that are not finite."""
    if value.max(initial=-np.inf) < np.inf:  # NaN is not
        return value
    return np.where(value < np.inf, value, -np.inf)
