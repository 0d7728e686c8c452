"""What a density integrates to at most where its draws are, by the entropy of a Gaussian."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import digamma

from harness.arrays import FloatArray
from harness.evidence.diagnostics import effective_draws
from harness.evidence.evidence import LogEvidence

NEGLIGIBLE_AT_MOST = 1e-4
"""Probability below which a part of a posterior hardly counts, if that is what it has at most.  The
draws need not have seen all of that part, so it is less than what matters."""
_ERRORS = 4.0
"""Standard errors by which log Z may be too high."""
_A_DRAW = 3.0
"""Different particles of a population that are taken for one independent draw."""
_FEWEST = 20.0
"""Independent draws that tell a variance well enough."""
_FOR_COVARIANCE = 2.0
"""Independent draws for each dimension, from which on a covariance counts, not only variances."""


def log_mass_at_most(
    log_density: FloatArray, points: FloatArray, worth: float | None = None
) -> float:
    """Return the most that a density integrates to where some draws of it are, as a log.

    With draws of p = gamma / Z, log Z is the mean of log gamma plus the entropy of p, and no
    density has a larger entropy than the Gaussian with its covariance.  Nor is the determinant of a
    covariance larger than the product of its variances (Hadamard), for which a few draws do.

    Parameters
    ----------
    log_density
        Log of the density, not normalised, at the draws, shape (n,).
    points
        The draws, shape (n, D).  They may be those of a chain that stays in a part of the target:
        the bound is for that part.
    worth
        Number of independent draws that they are worth, in the coordinate that moves most slowly.
        By default they are particles of a population, some of which may be alike or have moved
        from one place, and a third of the different ones count.

    Returns
    -------
    float
        The bound; infinite if there are too few draws, or a density is not finite.

    References
    ----------
    Cover, T. M. and Thomas, J. A. (2006). Elements of Information Theory, theorems 8.6.5 and
    17.9.2.
    """
    if worth is None:
        worth = len(np.unique(points, axis=0)) / _A_DRAW
    if len(points) < 2 or not worth >= _FEWEST or not np.all(np.isfinite(log_density)):
        return math.inf
    covariance: FloatArray = np.atleast_2d(np.cov(points, rowvar=False))
    variance = np.diag(covariance)
    if not np.all(variance > 0):
        return math.inf
    dimension = len(variance)
    # With m draws a variance has m - 1 degrees of freedom, and a determinant is a product of
    # chi-squared numbers with m - 1, m - 2, ... of them, each over m - 1.
    several = worth >= _FOR_COVARIANCE * dimension
    free = worth - 1 - (np.arange(dimension) if several else np.zeros(dimension))
    too_low = float(np.sum(np.log((worth - 1) / 2) - digamma(free / 2)))
    sign, value = np.linalg.slogdet(covariance) if several else (1.0, np.sum(np.log(variance)))
    if not sign > 0:
        return math.inf
    log_determinant = float(value) + too_low
    entropy = 0.5 * (dimension * math.log(2 * math.pi * math.e) + log_determinant)
    return float(np.mean(log_density)) + entropy


def log_masses_at_most(
    log_density: FloatArray, chains: FloatArray, worth: Sequence[float] | None = None
) -> FloatArray:
    """Return the bounds for the parts of a density that chains are in.

    Parameters
    ----------
    log_density
        As for :func:`log_mass_at_most`, at the draws, shape (chains, n).
    chains
        The draws, shape (chains, n, D).
    worth
        Of each chain, by default as :func:`independent_draws` tells it.

    Returns
    -------
    FloatArray
        Shape (chains,).
    """
    each_worth = worth or [independent_draws(each) for each in chains]
    several = zip(log_density, chains, each_worth, strict=True)
    return np.array([log_mass_at_most(*each) for each in several])


def independent_draws(chain: FloatArray) -> float:
    """Return how many independent draws a chain (n, D) is worth in its slowest coordinate.

    A chain that has hardly moved does not tell how wide the place is where it is.
    """
    worth = effective_draws(chain[None], np.zeros((1, len(chain))))
    return float(min(np.min(worth), len(chain)))


def shares_at_most(log_mass: npt.ArrayLike, log_integral: LogEvidence) -> FloatArray:
    """Return the probabilities that parts of a posterior have at most, by their masses at most.

    Parameters
    ----------
    log_mass
        Their logs, shape (n,), or one of them.
    log_integral
        Log of what the density integrates to.
    """
    least = log_integral.value - _ERRORS * float(log_integral.mcse)
    shares: FloatArray = np.exp(np.minimum(np.asarray(log_mass) - least, 0.0))
    return shares
