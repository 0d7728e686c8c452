"""What a density integrates to at most where its draws are, by the entropy of a Gaussian."""

from __future__ import annotations

import math

import numpy as np

from harness.arrays import FloatArray

_FEWEST = 20.0
"""Independent draws that tell a variance well enough."""
_FOR_COVARIANCE = 2.0
"""Independent draws for each dimension, from which on a covariance counts, not only variances."""


def log_mass_at_most(log_density: FloatArray, points: FloatArray, worth: float) -> float:
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

    Returns
    -------
    float
        The bound; infinite if there are too few draws, or a density is not finite.

    References
    ----------
    Cover, T. M. and Thomas, J. A. (2006). Elements of Information Theory, theorems 8.6.5 and
    17.9.2.
    """
    covariance: FloatArray = np.atleast_2d(np.cov(points, rowvar=False))
    variance = np.diag(covariance)
    if not worth >= _FEWEST or not np.all(np.isfinite(log_density)) or not np.all(variance > 0):
        return math.inf
    dimension = len(variance)
    # The mean of the log of a variance by m draws is about 1 / m too low.
    log_determinant = float(np.sum(np.log(variance))) + dimension / worth
    if worth >= _FOR_COVARIANCE * dimension:
        sign, value = np.linalg.slogdet(covariance)
        # That of a determinant is too low by the sum of such terms for m, m - 1, ... draws.
        bias = float(np.sum(1 / (worth - np.arange(dimension))))
        if sign > 0:
            log_determinant = min(log_determinant, float(value) + bias)
    entropy = 0.5 * (dimension * math.log(2 * math.pi * math.e) + log_determinant)
    return float(np.mean(log_density)) + entropy
