"""The metric of one mode, from points in it, with which NUTS needs no warm-up to learn it.

Stan starts with a unit metric, and adds 0.001 times 5 / (n + 5) to the variances of n draws.  In a
mode that is a thousandth wide, steps are short until the end of warm-up, and often after it.
"""

from __future__ import annotations

import numpy as np

from harness import evidence
from harness.arrays import FloatArray
from harness.diagnosis import R_HAT_PROBLEM
from harness.engine.nuts import NutsSettings

_POINTS_A_DIMENSION = 10
"""Fewest points for each dimension that tell a covariance.

If they are independent, the variance in any direction is then between half and twice the true one,
roughly: (1 - sqrt(1 / 10))^2 and (1 + sqrt(1 / 10))^2 times (Marchenko and Pastur 1967).
"""
USUAL = 32.0
"""Gradients of an iteration in such a metric at most, unless a mode is far from a Gaussian."""


def mode_metric(points: FloatArray) -> FloatArray | None:
    """Return the covariance of points in one mode, as an inverse metric that NUTS keeps.

    Parameters
    ----------
    points
        On the unconstrained space, shape (n, D).

    Returns
    -------
    FloatArray or None
        Shape (D, D); None if there are too few points, or they lie in a plane.
    """
    own = np.unique(points, axis=0)
    n, dimension = own.shape
    if n < _POINTS_A_DIMENSION * dimension:
        return None
    covariance = np.atleast_2d(np.cov(own, rowvar=False))
    try:
        np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return None
    return covariance


def mixes(draws: FloatArray, metric: FloatArray | None) -> bool:
    """Whether chains agree in each coordinate, and in each direction of a metric that they kept.

    In a metric that is far too narrow in some direction chains hardly move there, which their
    coordinates need not show.

    Parameters
    ----------
    draws
        Shape (chains, draws, D).
    metric
        Shape (D, D); None if they had their own.
    """
    if evidence.largest_r_hat(draws) > R_HAT_PROBLEM:
        return False
    if metric is None:
        return True
    flat = draws.reshape(-1, draws.shape[2])
    directions = np.linalg.solve(np.linalg.cholesky(metric), (flat - flat.mean(axis=0)).T).T
    return bool(evidence.largest_r_hat(directions.reshape(draws.shape)) <= R_HAT_PROBLEM)


def in_metric(settings: NutsSettings, metric: FloatArray | None) -> NutsSettings:
    """Return settings of NUTS with no more warm-up than a known metric needs."""
    return settings if metric is None else settings.for_kept_metric
