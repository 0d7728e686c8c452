"""A log-Gaussian Cox process on a square grid: synthetic data, and densities of its two blocks.

    points_c ~ Poisson(exp(x_c) / n^2),  x ~ N(field_mean, sigma2 exp(-distance / (n range))),
    sigma2, range ~ Exponential(1),

for the n x n cells of a square.  The paper counts distances in cells, and prints priors without
their rates, which are our choice.  The program that it cites puts the cells on the unit square, but
divides by n range all the same, which makes a smooth field; both readings are here.

References
----------
Leimkuhler, B., Matthews, C. and Weare, J. (2018). Ensemble preconditioning for Markov chain Monte
Carlo simulation. Statistics and Computing 28, 277-290, section 4.2 and appendix 4.
Girolami, M. and Calderhead, B. (2011). Riemann manifold Langevin and Hamiltonian Monte Carlo
methods. Journal of the Royal Statistical Society B 73, 123-214, section 9.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.folders import shipped
from harness.model import Model, TrueValue, Truth
from harness.model.truth import Expectations
from harness.models.log_gaussian_cox_exact import LARGEST, CoxPosterior, exact_posterior

Distance = Literal["unit_square", "cells"]
"""Whether neighbouring cells are 1 / (n - 1) or 1 apart."""

TRUE_SIGMA2 = 1.91
TRUE_RANGE = 1 / 33
FIELD_MEAN = float(np.log(126) - TRUE_SIGMA2 / 2)
"""Mean of the log intensity, which is fixed, also where its variance is sampled."""

SEED = 20184
"""Seed of the stored data; see :func:`generate`."""


@dataclass(frozen=True)
class LogGaussianCox:
    """Numbers of points in the cells of a square.

    Attributes
    ----------
    points
        Number of points in each cell, shape (n, n), n at least 2.
    distance
        How distances between cells are measured.
    field_mean
        Mean of the log intensity.

    Raises
    ------
    DataError
        If the points are not whole numbers from 0, their array is not square or is too small, the
        distance is unknown, or the mean is not finite.
    """

    points: npt.NDArray[np.int64]
    distance: Distance = "unit_square"
    field_mean: float = FIELD_MEAN

    def __post_init__(self) -> None:
        shape = self.points.shape
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
            raise DataError(f"a square of 2 x 2 cells or more is needed; got shape {shape}")
        if not np.issubdtype(self.points.dtype, np.integer) or self.points.min() < 0:
            raise DataError("the numbers of points must be whole numbers, 0 or more")
        if self.distance not in get_args(Distance):
            known = ", ".join(get_args(Distance))
            raise DataError(f"the distance must be one of {known}; got '{self.distance}'")
        if not np.isfinite(self.field_mean):
            raise DataError(f"the mean of the log intensity must be finite; got {self.field_mean}")

    @property
    def side(self) -> int:
        """Number n of cells on a side."""
        return len(self.points)

    @property
    def size(self) -> int:
        """Number N = n^2 of cells."""
        return self.points.size

    @cached_property
    def counts(self) -> FloatArray:
        """Number of points in each cell, row by row, shape (N,)."""
        return self.points.reshape(-1).astype(np.float64)

    @cached_property
    def cells(self) -> FloatArray:
        """Row and column of each cell, from 0, shape (N, 2)."""
        return _cells(self.side)

    @cached_property
    def scaled_distance(self) -> FloatArray:
        """Distances divided by n, whose ratio to the range is minus a log correlation, (N, N)."""
        return _scaled_distance(self.side, self.distance)

    def log_likelihood(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return sum_c (y_c x_c - exp(x_c) / N) of log intensities (W, N), and its gradients."""
        with np.errstate(over="ignore"):
            expected = np.exp(x) / self.size
        return x @ self.counts - expected.sum(axis=1), self.counts - expected

    def latent_log_density(
        self, x: FloatArray, precision: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return log p(x | theta) up to a constant of theta, (W,), and gradients (W, N).

        Parameters
        ----------
        x
            Log intensities, shape (W, N).
        precision
            Inverse covariance of x given theta, for each point (W, N, N) or for all (N, N).
        """
        value, gradient = self.log_likelihood(x)
        away = x - self.field_mean
        pull = np.matmul(precision, away[..., None])[..., 0]
        value = value - 0.5 * (away * pull).sum(axis=1)
        usable = np.isfinite(value)
        return np.where(usable, value, -np.inf), np.where(usable[:, None], gradient - pull, 0)

    def precision(self, theta: FloatArray) -> FloatArray:
        """Return the inverse covariance (N, N) of x at theta = (log sigma2, log range), (2,)."""
        return self.field(theta).precision

    def field(self, theta: FloatArray) -> Field:
        """Return covariance, inverse and slopes at theta = (log sigma2, log range), shape (2,).

        Raises
        ------
        numpy.linalg.LinAlgError
            If the covariance is not positive definite in doubles.
        """
        return Field(float(theta[0]), float(theta[1]), self.scaled_distance)

    def hyper_log_density(self, theta: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log p(theta | x) up to a constant of x, (W,), and gradients (W, 2).

        Parameters
        ----------
        theta
            log sigma2 and log range, shape (W, 2); the density is one of these logarithms.
        x
            Log intensities, for each point (W, N) or for all (N,).
        """
        value, gradient = np.full(len(theta), -np.inf), np.zeros((len(theta), 2))
        for w, (point, latent) in enumerate(
            zip(theta, np.broadcast_to(x, (len(theta), self.size)), strict=True)
        ):
            at = self._hyper(point, latent)
            if at is not None:
                value[w], gradient[w] = at
        return value, gradient

    def _hyper(self, theta: FloatArray, x: FloatArray) -> tuple[float, FloatArray] | None:
        if not np.all(np.abs(theta) < 100):
            return None
        try:
            field = self.field(theta)
        except np.linalg.LinAlgError:
            return None
        away = x - self.field_mean
        pull = field.precision @ away
        scales = np.exp(theta)
        value = -0.5 * away @ pull - 0.5 * field.log_determinant - scales.sum() + theta.sum()
        gradient = np.array(
            [
                -0.5 * self.size + 0.5 * away @ pull,
                -0.5 * np.vdot(field.precision, field.slope) + 0.5 * pull @ field.slope @ pull,
            ]
        )
        return (float(value), gradient - scales + 1) if np.isfinite(value) else None

    def log_density(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the centred log posterior up to a constant, (W,), and gradients (W, N + 2).

        Parameters
        ----------
        points
            log sigma2, log range and the log intensities, shape (W, N + 2).
        """
        theta, x = points[:, :2], points[:, 2:]
        prior, hyper = self.hyper_log_density(theta, x)
        likelihood, latent = self.log_likelihood(x)
        gradient = np.zeros_like(points)
        value = prior + likelihood
        for w in np.flatnonzero(np.isfinite(value)):
            pull = self.precision(theta[w]) @ (x[w] - self.field_mean)
            gradient[w] = np.concatenate([hyper[w], latent[w] - pull])
        return np.where(np.isfinite(value), value, -np.inf), gradient

    def model(self, name: str, *, centred: bool = False) -> Model:
        """Return the posterior as a model with N + 2 parameters.

        Likelihood and prior of its program keep their constants, so that its normalising constant
        is the evidence.

        Parameters
        ----------
        name
            Name of the model.
        centred
            Whether the log intensities themselves are parameters, ``x``, in place of the whitened
            ones, ``z``.  The posterior and its evidence are the same, and so are the tempered ones
            that start at the prior.
        """
        data: dict[str, Any] = {
            "n": self.side,
            "cell": self.cells,
            "points": self.points.reshape(-1),
            "unit_square": int(self.distance == "unit_square"),
            "field_mean": self.field_mean,
        }
        latent = "x" if centred else "z"
        return Model(
            name,
            shipped("stan") / ("log_gaussian_cox_centred" if centred else "log_gaussian_cox"),
            data,
            ("sigma2", "range", latent),
            self.size + 2,
            transforms={"sigma2": "log", "range": "log"},
            own_base="prior",
            shapes={"sigma2": (), "range": (), latent: (self.size,)},
            truth=self.truth,
        )

    @property
    def truth(self) -> Truth:
        """Log evidence and expectations in up to 64 cells; of more nothing is known.

        The expectations are of ``sigma2``, ``range``, ``log_sigma2``, ``log_range``; ``x`` and
        ``x_squared`` of the log intensity; and ``z``, the whitened one.  They take seconds.  Their
        errors are mostly standard errors of draws: :mod:`harness.models.log_gaussian_cox_exact`.
        """
        if self.size > LARGEST:
            return Truth("unknown")
        return Truth(
            "quadrature over variance and range, the field integrated out by weighted draws",
            self._log_evidence,
            self._expectations,
        )

    @cached_property
    def _exact(self) -> CoxPosterior:
        return exact_posterior(self.counts, self.scaled_distance, self.field_mean)

    def _log_evidence(self) -> TrueValue[float]:
        return self._exact.log_evidence

    def _expectations(self) -> Expectations:
        return self._exact.mean


class Field:
    """The log intensity's covariance at log sigma2 and log range, and what depends on it.

    Attributes
    ----------
    covariance, precision
        Covariance of the log intensity and its inverse, shape (N, N).
    log_determinant
        Log determinant of the covariance.
    slope
        Derivative of the covariance by log range, shape (N, N).

    Raises
    ------
    numpy.linalg.LinAlgError
        If the covariance is not positive definite in doubles.
    """

    def __init__(self, log_sigma2: float, log_range: float, scaled_distance: FloatArray) -> None:
        self.steepness: FloatArray = scaled_distance * np.exp(-log_range)
        self.covariance: FloatArray = np.exp(log_sigma2 - self.steepness)
        factor = cho_factor(self.covariance, lower=True)
        self.log_determinant = 2 * float(np.log(np.diag(factor[0])).sum())
        self.precision: FloatArray = cho_solve(factor, np.eye(len(scaled_distance)))
        self.slope: FloatArray = self.covariance * self.steepness

    @cached_property
    def curvature(self) -> FloatArray:
        """Second derivative of the covariance by log range, shape (N, N)."""
        return self.slope * (self.steepness - 1)


def _cells(side: int) -> FloatArray:
    return np.stack(np.divmod(np.arange(side**2), side), axis=1).astype(np.float64)


def _scaled_distance(side: int, distance: Distance) -> FloatArray:
    cells = _cells(side)
    return cdist(cells, cells) / (side * (side - 1 if distance == "unit_square" else 1))


def generate(side: int, distance: Distance, seed: int = SEED) -> LogGaussianCox:
    """Draw a field and its points at the paper's sigma2 = 1.91 and range = 1 / 33.

    The stored data of :func:`load_log_gaussian_cox` are those of :data:`SEED`.
    """
    return LogGaussianCox(_draw(side, distance, seed)[1], distance)


def true_field(side: int, distance: Distance, seed: int = SEED) -> FloatArray:
    """Return the log intensity (side, side) that the points of :func:`generate` were drawn with."""
    return _draw(side, distance, seed)[0]


def _draw(side: int, distance: Distance, seed: int) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Draw a log intensity and its points, both (side, side)."""
    rng = np.random.default_rng([seed, side])
    covariance = TRUE_SIGMA2 * np.exp(-_scaled_distance(side, distance) / TRUE_RANGE)
    x = FIELD_MEAN + np.linalg.cholesky(covariance) @ rng.standard_normal(side**2)
    points: npt.NDArray[np.int64] = rng.poisson(np.exp(x) / side**2)
    return x.reshape(side, side), points.reshape(side, side)


def load_log_gaussian_cox(side: int = 16, distance: Distance = "unit_square") -> LogGaussianCox:
    """Return the stored numbers of points, which are ours: the paper does not publish its own.

    Parameters
    ----------
    side
        Number of cells on a side: 16, or 32 as in the paper.
    distance
        Reading of the distance, which the points were drawn with.

    Raises
    ------
    DataError
        If there are no such data.
    """
    path = shipped("data") / "log_gaussian_cox" / f"{distance}_{side}.csv"
    try:
        points = np.loadtxt(path, delimiter=",", dtype=np.int64, ndmin=2)
    except OSError:
        raise DataError(
            f"there are no stored points of {side} x {side} cells with the distance '{distance}': "
            f"there are 16 and 32, with the distances {', '.join(get_args(Distance))}"
        ) from None
    return LogGaussianCox(points, distance)
