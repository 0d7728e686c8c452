"""Bases from the moments of weighted points and of mixtures of Gaussians."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import normalised_weights
from harness.path.gaussian import GaussianBase, gaussian_base


def matched_base(
    means: npt.ArrayLike, covariances: npt.ArrayLike, log_evidences: npt.ArrayLike
) -> GaussianBase:
    """Match one Gaussian in mean and covariance to a mixture of local Gaussians.

    The local fits are mixed with weights proportional to their evidences.  log zeta is the log of
    the sum of the evidences, the mixture's own estimate of log Z (Graham and Storkey 2017, 7.2).

    Parameters
    ----------
    means
        Shape (K, D).
    covariances
        Symmetric positive definite, shape (K, D, D).
    log_evidences
        Log normalising constant of each local fit, in nats, shape (K,); -inf leaves a fit out.

    Raises
    ------
    DataError
        If K = 0, shapes do not match, a number is not finite, or a covariance is not symmetric
        positive definite.
    """
    centre = np.asarray(means, dtype=np.float64)
    spread = np.asarray(covariances, dtype=np.float64)
    log_z = np.asarray(log_evidences, dtype=np.float64)
    if centre.ndim != 2 or 0 in centre.shape:
        raise DataError(f"local means must have shape (K, D); got {centre.shape}")
    number, dimension = centre.shape
    if spread.shape != (number, dimension, dimension) or log_z.shape != (number,):
        raise DataError(
            f"{number} local means in {dimension} dimensions need as many covariances (D, D) and "
            f"log evidences; got shapes {spread.shape} and {log_z.shape}"
        )
    for mean, covariance in zip(centre, spread, strict=True):
        gaussian_base(mean, covariance)  # raises an error if it is no covariance
    weight = normalised_weights(log_z)
    mean = weight @ centre
    deviation = centre - mean
    covariance = np.tensordot(weight, spread, axes=1) + (weight * deviation.T) @ deviation
    total = float(np.logaddexp.reduce(log_z))
    return gaussian_base(mean, _symmetric(covariance), log_zeta=total)


def weighted_base(
    points: npt.ArrayLike, log_weight: npt.ArrayLike | None = None, *, log_zeta: float = 0.0
) -> GaussianBase:
    """Make a Gaussian base with the mean and covariance of weighted points.

    Parameters
    ----------
    points
        Shape (n, D), in base coordinates.
    log_weight
        Log weights up to a constant, shape (n,); equal weights if not given.
    log_zeta
        Guess at log Z.

    Raises
    ------
    DataError
        If shapes do not match, a point is not finite, or the weights' effective number of
        points, (sum w)^2 / sum w^2, does not exceed D + 1, because the covariance would then be
        singular or nearly so.
    """
    x = np.asarray(points, dtype=np.float64)
    if x.ndim != 2 or 0 in x.shape:
        raise DataError(f"points must have shape (n, D); got {x.shape}")
    if not np.all(np.isfinite(x)):
        raise DataError("the points that a base is made of must be finite")
    log_w = np.zeros(len(x)) if log_weight is None else np.asarray(log_weight, dtype=np.float64)
    if log_w.shape != (len(x),):
        raise DataError(f"{len(x)} points need as many log weights; got shape {log_w.shape}")
    weight = normalised_weights(log_w)
    concentration = float(np.square(weight).sum())
    if 1 / concentration <= x.shape[1] + 1:
        raise DataError(
            f"the weights leave {1 / concentration:.1f} effective points, too few for a "
            f"covariance in {x.shape[1]} dimensions; use more draws, or a base that covers the "
            f"target better"
        )
    mean = weight @ x
    deviation = x - mean
    # This is the divisor of the sample covariance: equal weights give n - 1.
    covariance = (weight * deviation.T) @ deviation / (1 - concentration)
    return gaussian_base(mean, _symmetric(covariance), log_zeta=log_zeta)


def mixed_base(local_fits: Sequence[GaussianBase]) -> GaussianBase:
    """Match one Gaussian to local fits, whose log zeta are taken as their log evidences.

    See :func:`matched_base`; merge duplicates first (:func:`without_duplicates`).

    Raises
    ------
    DataError
        If there are none, or their dimensions differ.
    """
    if len({fit.mean.size for fit in local_fits}) != 1:
        raise DataError("local fits to mix must be one or more, all of the same dimension")
    return matched_base(
        [fit.mean for fit in local_fits],
        [fit.covariance for fit in local_fits],
        [fit.log_zeta for fit in local_fits],
    )


def without_duplicates(
    local_fits: Sequence[GaussianBase], *, separation: float = 1.0
) -> list[GaussianBase]:
    """Keep one local fit for each mode, the one with the most evidence.

    Two fits count as the same mode if their means are closer than ``separation`` standard
    deviations, the Mahalanobis distance under the mean of their covariances.  (The mixture of two
    Gaussians with equal weights and covariances has a single hump up to a distance of 2.)

    Returns
    -------
    list[GaussianBase]
        The fits that are kept, those with the most evidence first.

    Raises
    ------
    DataError
        If the separation is not positive.
    """
    if not separation > 0:
        raise DataError(f"the separation of modes must be positive; got {separation}")
    kept: list[GaussianBase] = []
    for fit in sorted(local_fits, key=lambda fit: -fit.log_zeta):
        if all(_distance(fit, other) >= separation for other in kept):
            kept.append(fit)
    return kept


def _distance(one: GaussianBase, other: GaussianBase) -> float:
    between = one.mean - other.mean
    covariance = 0.5 * (one.covariance + other.covariance)
    return float(np.sqrt(between @ np.linalg.solve(covariance, between)))


def _symmetric(matrix: FloatArray) -> FloatArray:
    """Remove the asymmetry that rounding leaves in a matrix."""
    symmetric: FloatArray = 0.5 * (matrix + matrix.T)
    return symmetric
