"""Gaussian bases: made from moments, with densities, gradients and draws."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError


@dataclass(frozen=True)
class GaussianBase:
    """Gaussian base density with a guess at the target's log normalising constant.

    Attributes
    ----------
    mean
        Shape (D,).
    cholesky
        Lower Cholesky factor of the covariance, shape (D, D).
    log_zeta
        Guess at log Z, in nats.
    """

    mean: FloatArray
    cholesky: FloatArray
    log_zeta: float

    @property
    def covariance(self) -> FloatArray:
        """Covariance matrix, shape (D, D)."""
        covariance: FloatArray = self.cholesky @ self.cholesky.T
        return covariance

    @cached_property
    def _whitener(self) -> FloatArray:
        """Inverse of the Cholesky factor; computed once, as a base is evaluated at each step."""
        return np.asarray(np.linalg.inv(self.cholesky), dtype=np.float64)

    @cached_property
    def _log_det_and_constant(self) -> float:
        """Log determinant of the covariance, and D log(2 pi)."""
        log_det = 2 * np.log(np.diag(self.cholesky)).sum()
        return float(log_det + self.mean.size * np.log(2 * np.pi))

    def whiten(self, points: npt.ArrayLike) -> FloatArray:
        """Return z such that point = mean + cholesky z; z is standard normal under the base.

        Parameters
        ----------
        points
            Shape (..., D).

        Raises
        ------
        DataError
            If the size of the last axis is not the base's dimension.
        """
        x = np.asarray(points, dtype=np.float64)
        size = self.mean.size
        if x.ndim == 0 or x.shape[-1] != size:
            raise DataError(f"the base has dimension {size}; got points of shape {x.shape}")
        flat = (x - self.mean).reshape(-1, size)
        return np.asarray(flat @ self._whitener.T, dtype=np.float64).reshape(x.shape)

    def log_density(self, points: npt.ArrayLike) -> FloatArray:
        """Return the normalised log density at points of shape (..., D); shape (...)."""
        return self._log_density(self.whiten(points))

    def log_density_gradient(self, points: npt.ArrayLike) -> FloatArray:
        """Return the gradient of :meth:`log_density` at points (..., D); shape (..., D)."""
        return self.log_density_and_gradient(points)[1]

    def log_density_and_gradient(self, points: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return :meth:`log_density` and its gradient, which share most of the work."""
        z = self.whiten(points)
        return self._log_density(z), self._gradient(z)

    def _log_density(self, z: FloatArray) -> FloatArray:
        """Log density at whitened points."""
        value: FloatArray = -0.5 * (np.square(z).sum(axis=-1) + self._log_det_and_constant)
        return value

    def _gradient(self, z: FloatArray) -> FloatArray:
        """Gradient of the log density with respect to points, at whitened ones."""
        gradient = -z.reshape(-1, self.mean.size) @ self._whitener
        return np.asarray(gradient, dtype=np.float64).reshape(z.shape)

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw n points, shape (n, D)."""
        points: FloatArray = self.mean + rng.standard_normal((n, self.mean.size)) @ self.cholesky.T
        return points


def gaussian_base(
    mean: npt.ArrayLike, covariance: npt.ArrayLike, *, log_zeta: float = 0.0
) -> GaussianBase:
    """Make a Gaussian base from its moments.

    Parameters
    ----------
    mean
        Shape (D,).
    covariance
        Symmetric positive definite, shape (D, D).
    log_zeta
        Guess at log Z; a wrong one costs efficiency, not correctness.

    Raises
    ------
    DataError
        If shapes do not match, a number is not finite, or the covariance is not symmetric
        positive definite.
    """
    location = np.array(mean, dtype=np.float64)
    matrix = np.asarray(covariance, dtype=np.float64)
    if location.ndim != 1 or location.size == 0 or matrix.shape != (location.size, location.size):
        raise DataError(
            f"a Gaussian base needs a mean (D,) and a covariance (D, D); got {location.shape} "
            f"and {matrix.shape}"
        )
    if not (
        np.all(np.isfinite(location)) and np.all(np.isfinite(matrix)) and np.isfinite(log_zeta)
    ):
        raise DataError("the base's mean, covariance and log zeta must be finite")
    if not np.allclose(matrix, matrix.T, rtol=1e-10, atol=0):
        raise DataError("the base's covariance is not symmetric")
    try:
        cholesky: FloatArray = np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise DataError("the base's covariance is not positive definite") from None
    return GaussianBase(location, cholesky, float(log_zeta))


def symmetrised_divergence(one: GaussianBase, other: GaussianBase) -> float:
    """Return the symmetrised Kullback-Leibler divergence, KL(1|2) + KL(2|1), in nats.

    A bootstrap has converged when it is small: two Gaussians, each fitted to n independent draws of
    the same target, differ by about D (D + 3) / n.  The guesses at log Z are not compared.

    Raises
    ------
    DataError
        If the dimensions differ.
    """
    between = one.whiten(other.mean), other.whiten(one.mean)
    shift = 0.5 * sum(float(np.square(z).sum()) for z in between)
    ratio = np.linalg.solve(one.cholesky, other.cholesky)
    inverse = np.linalg.solve(other.cholesky, one.cholesky)
    scale = 0.5 * float(np.square(ratio).sum() + np.square(inverse).sum()) - one.mean.size
    return shift + scale
