"""The integral of a density around one peak, by importance sampling from a t distribution there."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from harness.arrays import FloatArray
from harness.evidence import LogEvidence, effective_number
from harness.modes.target import Target

_DEGREES = 5.0
_ROUGH = 1e-3  # difference for second derivatives, in scales
_FEWEST_EFFECTIVE = 50.0


def local_log_mass(
    peak: FloatArray, target: Target, *, scale: FloatArray, count: int, seed: int
) -> LogEvidence | None:
    """Estimate the log of the integral of a density around a peak.

    The proposal is a t distribution with five degrees of freedom, whose scales come from the second
    derivatives at the peak.

    Parameters
    ----------
    peak
        Where the density has a maximum, shape (D,).
    target
        Log density and gradient at many points.
    scale
        Size of each coordinate, for differences of gradients, shape (D,).
    count
        Number of points.
    seed
        Seed.

    Returns
    -------
    LogEvidence or None
        None if there is no maximum at the peak, or the weights are worth fewer than 50 points.
    """
    dimension = len(peak)
    shift = _ROUGH * np.eye(dimension)
    near = peak + np.concatenate([shift, -shift]) * scale
    up, down = np.split(target(near)[1] * scale, 2)
    precision = (down - up) / (2 * _ROUGH)
    try:
        root = np.linalg.cholesky(0.5 * (precision + precision.T))
    except np.linalg.LinAlgError:
        return None
    rng = np.random.default_rng([seed, 11])
    normal = rng.normal(size=(count, dimension))
    stretch = np.sqrt(_DEGREES / rng.chisquare(_DEGREES, size=count))
    z = normal * stretch[:, None]
    points = peak + np.linalg.solve(root.T, z.T).T * scale
    log_height = (
        gammaln(0.5 * (_DEGREES + dimension))
        - gammaln(0.5 * _DEGREES)
        - 0.5 * dimension * np.log(_DEGREES * np.pi)
        + float(np.log(np.diag(root)).sum())
        - float(np.log(scale).sum())
    )
    log_q = log_height - 0.5 * (_DEGREES + dimension) * np.log1p(
        np.square(z).sum(axis=1) / _DEGREES
    )
    log_weight = target(points)[0] - log_q
    if not np.all(log_weight < np.inf) or not np.any(log_weight > -np.inf):
        return None
    effective = float(effective_number(log_weight))
    if effective < _FEWEST_EFFECTIVE:
        return None
    value = float(np.logaddexp.reduce(log_weight)) - np.log(count)
    # The relative variance of the mean weight, 1 / effective - 1 / count.
    return LogEvidence(float(value), float(np.sqrt(max(1 / effective - 1 / count, 0.0))))
