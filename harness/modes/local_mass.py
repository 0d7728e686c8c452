"""The integral of a density around one peak: by Laplace's approximation and importance sampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln
from scipy.stats import chi2

from harness.arrays import FloatArray, LogDensity, values_of
from harness.evidence import LogEvidence, effective_number

_DEGREES = 5.0
_ROUGH = 1e-3
"""Difference for second derivatives, in widths."""
_FEWEST_EFFECTIVE = 50.0
AROUND = 0.999
"""Of a Gaussian, beyond which a point is not around its peak."""


@dataclass(frozen=True)
class LocalGaussian:
    """The Gaussian that fits a density at a peak (Laplace's approximation).

    Attributes
    ----------
    peak
        Where the density has a maximum, shape (D,).
    height
        Log density there.
    scale
        Size of each coordinate, shape (D,).
    root
        Lower Cholesky factor of the precision of the scaled coordinates, shape (D, D).
    """

    peak: FloatArray
    height: float
    scale: FloatArray
    root: FloatArray

    @property
    def log_volume(self) -> float:
        """Log of the product of its standard deviations along principal axes."""
        return float(np.log(self.scale).sum() - np.log(np.diag(self.root)).sum())

    @property
    def widths(self) -> FloatArray:
        """Standard deviation of each coordinate, given all others, shape (D,)."""
        return self.scale / _steepness(self.root)

    @property
    def log_mass(self) -> float:
        """Log of its integral: what the density integrates to around the peak, roughly."""
        return self.height + 0.5 * len(self.peak) * float(np.log(2 * np.pi)) + self.log_volume

    def at(self, z: FloatArray) -> FloatArray:
        """Return the points (n, D) at standardised ones (n, D)."""
        points: FloatArray = self.peak + np.linalg.solve(self.root.T, z.T).T * self.scale
        return points

    def standardised(self, points: FloatArray) -> FloatArray:
        """Return points (n, D) as standardised ones (n, D), which :meth:`at` turns back."""
        z: FloatArray = ((points - self.peak) / self.scale) @ self.root
        return z

    def around(self, points: FloatArray, part: float = AROUND) -> npt.NDArray[np.bool_]:
        """Whether points (n, D) are where this part of the Gaussian's mass is, about its peak."""
        distance = np.linalg.norm(self.standardised(points), axis=1)
        return np.asarray(distance <= reach_of(len(self.peak), part))


def reach_of(dimension: int, part: float = AROUND) -> float:
    """Return the standard deviations from a peak within which this part of a Gaussian's mass is."""
    return float(np.sqrt(chi2.ppf(part, dimension)))


def local_gaussian(
    peak: FloatArray, log_density: LogDensity, *, scale: FloatArray, flattest: float = 0.0
) -> LocalGaussian | None:
    """Fit a Gaussian to a density at a peak, by the second derivatives of its log there.

    Parameters
    ----------
    peak
        Where the density has a maximum, shape (D,).
    log_density
        Log density and gradient at many points.
    scale
        Size of each coordinate, shape (D,).  If the peak is narrower, a second look is closer.
    flattest
        Least precision of scaled coordinates, in any direction: if it is positive, there is a
        Gaussian also where a climb has not quite got to a maximum.

    Returns
    -------
    LocalGaussian or None
        None if there is no maximum.
    """
    root = _root(peak, log_density, scale, flattest)
    if root is None:
        return None
    closer = scale / np.maximum(_steepness(root), 1.0)
    root = _root(peak, log_density, closer, flattest)
    height = float(log_density(peak[None])[0][0])
    return None if root is None else LocalGaussian(peak, height, closer, root)


def _steepness(root: FloatArray) -> FloatArray:
    """Return the root of the precision of each scaled coordinate, from its Cholesky factor."""
    precision: FloatArray = np.square(root).sum(axis=1)
    return np.sqrt(precision)


def _root(
    peak: FloatArray, log_density: LogDensity, scale: FloatArray, flattest: float
) -> FloatArray | None:
    """Return the Cholesky factor of the precision of scaled coordinates; None if there is none."""
    shift = _ROUGH * np.eye(len(peak))
    near = peak + np.concatenate([shift, -shift]) * scale
    up, down = np.split(log_density(near)[1] * scale, 2)
    precision = (down - up) / (2 * _ROUGH)
    if not np.all(np.isfinite(precision)):
        return None
    precision = 0.5 * (precision + precision.T)
    if flattest:
        value, along = np.linalg.eigh(precision)
        precision = along * np.maximum(value, flattest) @ along.T
    try:
        return np.asarray(np.linalg.cholesky(precision))
    except np.linalg.LinAlgError:
        return None


def local_log_mass(
    peak: FloatArray, log_density: LogDensity, *, scale: FloatArray, count: int, seed: int
) -> LogEvidence | None:
    """Estimate the log of the integral of a density around a peak, by importance sampling.

    The proposal is a t distribution with five degrees of freedom, whose scales are those of the
    Gaussian that fits there.

    Parameters
    ----------
    peak
        Where the density has a maximum, shape (D,).
    log_density
        Log density and gradient at many points.
    scale
        Size of each coordinate, shape (D,).
    count
        Number of points.
    seed
        Seed.

    Returns
    -------
    LogEvidence or None
        None if there is no maximum at the peak, or the weights are worth fewer than 50 points.
    """
    local = local_gaussian(peak, log_density, scale=scale)
    return None if local is None else mass_around(local, log_density, count=count, seed=seed)


def mass_around(
    local: LocalGaussian,
    log_density: LogDensity,
    *,
    count: int,
    seed: int,
    within: float = np.inf,
) -> LogEvidence | None:
    """Do the same around a peak whose Gaussian is known.

    Parameters
    ----------
    local
        The Gaussian that fits there.
    log_density, count, seed
        The same as for :func:`local_log_mass`.
    within
        Standard deviations from the peak beyond which nothing counts.

    Returns
    -------
    LogEvidence or None
        None if the weights are worth fewer than 50 points.
    """
    dimension = len(local.peak)
    rng = np.random.default_rng([seed, 11])
    normal = rng.normal(size=(count, dimension))
    stretch = np.sqrt(_DEGREES / rng.chisquare(_DEGREES, size=count))
    z = normal * stretch[:, None]
    log_height = (
        gammaln(0.5 * (_DEGREES + dimension))
        - gammaln(0.5 * _DEGREES)
        - 0.5 * dimension * np.log(_DEGREES * np.pi)
        - local.log_volume
    )
    log_q = log_height - 0.5 * (_DEGREES + dimension) * np.log1p(
        np.square(z).sum(axis=1) / _DEGREES
    )
    log_weight = values_of(log_density)(local.at(z)) - log_q
    log_weight[np.square(z).sum(axis=1) > within**2] = -np.inf
    if not np.all(log_weight < np.inf) or not np.any(log_weight > -np.inf):
        return None
    effective = float(effective_number(log_weight))
    if effective < _FEWEST_EFFECTIVE:
        return None
    value = float(np.logaddexp.reduce(log_weight)) - np.log(count)
    # The relative variance of the mean weight, 1 / effective - 1 / count.
    return LogEvidence(float(value), float(np.sqrt(max(1 / effective - 1 / count, 0.0))))
