"""The metric of one mode, from points in it, with which NUTS needs no warm-up to learn it.

Stan starts with a unit metric, and adds 0.001 times 5 / (n + 5) to the variances of n draws.  In a
mode that is a thousandth wide, steps are short until the end of warm-up, and often after it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from harness.arrays import FloatArray
from harness.engine.nuts import ADAPTS_METRIC, NutsSettings

_POINTS_A_DIMENSION = 10
"""Fewest points for each dimension that tell a covariance.

In any direction the variance is then between half and twice the true one, roughly: (1 - sqrt(1 /
10))^2 and (1 + sqrt(1 / 10))^2 times (Marchenko and Pastur 1967).
"""
_WARMUP = ADAPTS_METRIC - 1
"""Most iterations of warm-up that adapt the step size only."""
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


def in_metric(settings: NutsSettings, metric: FloatArray | None) -> NutsSettings:
    """Return settings of NUTS with no more warm-up than a known metric needs."""
    if metric is None:
        return settings
    return replace(settings, warmup=min(settings.warmup, _WARMUP))
