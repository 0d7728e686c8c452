"""Exact evidence and posterior moments of the radon regression, by quadrature.

Given the three scales (sigma_a, sigma_b, eps), everything else in the model is Gaussian and is
integrated out in closed form: the intercepts county by county, then mu_a and beta.  The homes
enter through sufficient statistics, so one evaluation costs O(J).  There remains an integral over
the logarithms of the scales, for which the trapezoidal rule converges exponentially, because the
integrand is analytic and falls exponentially in every direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.model.truth import Expectations, TrueValue

PRIOR_SCALE = 2.5
"""Scale of the half-Cauchy priors of sigma_a, sigma_b and eps."""

# The grid of the log scales extends this far from the bulk of the posterior, except where the
# integrand is below exp(-this) of its peak; the tails fall like exp(-distance) or faster.
_REACH = 40.0
# Steps in units of the posterior's own widths: for locating it, and for the coarser of the two
# resolutions that are compared.
_LOCATE = 0.5
_COARSE = 0.125


class Homes(Protocol):
    """The data: see :class:`harness.models.radon.RadonData`, which has them."""

    @property
    def log_radon(self) -> FloatArray:
        """Log of the radon measured, shape (H,)."""

    @property
    def first_floor(self) -> FloatArray:
        """1 on the first floor, 0 in the basement, shape (H,)."""

    @property
    def log_uranium(self) -> FloatArray:
        """Log of the uranium in the soil, shape (H,)."""

    @property
    def county(self) -> npt.NDArray[np.intp]:
        """Index of each home's county, shape (H,)."""

    @property
    def county_names(self) -> tuple[str, ...]:
        """Names of the J counties."""


class ExactPosterior(NamedTuple):
    """Posterior moments by quadrature, under the names of the Stan program's parameters.

    There are two more names, ``alpha`` = mu_a + sigma_a n and ``beta`` = mu_b + sigma_b m.
    """

    mean: dict[str, FloatArray]
    """Means: scalars have shape (), ``n`` and ``alpha`` (J,), ``m`` and ``beta`` (2,)."""
    sd: dict[str, FloatArray]
    """Standard deviations, of the same shapes."""
    error: float
    """Largest difference of a mean or sd from the coarser resolution, in units of the sd."""


@dataclass(frozen=True)
class _Statistics:
    """Sufficient statistics of 1, floor, uranium and log radon, times the inverse temperature."""

    total: float  # homes
    homes: FloatArray  # (J,)
    means: FloatArray  # county means, (J, 4)
    scatter: FloatArray  # sums of products within counties, (4, 4)

    @property
    def residual(self) -> float:
        """Sum of squares within counties that floor and uranium do not explain."""
        x, y = self.scatter[1:3, 1:3], self.scatter[1:3, 3]
        explained = y @ np.linalg.pinv(x, hermitian=True) @ y
        return float(self.scatter[3, 3] - explained)


def _statistics(data: Homes, inv_temp: float) -> _Statistics:
    columns = np.column_stack(
        [
            np.ones(len(data.log_radon)),
            data.first_floor,
            data.log_uranium,
            data.log_radon,
        ]
    )
    homes = np.bincount(data.county).astype(np.float64)
    means = np.zeros((len(homes), 4))
    np.add.at(means, data.county, columns)
    means /= homes[:, None]
    within = columns - means[data.county]
    return _Statistics(
        inv_temp * len(columns), inv_temp * homes, means, inv_temp * within.T @ within
    )


class _Gaussians:
    """The model without its Gaussian parameters, at A values of sigma_a, E of eps, B of sigma_b.

    Given the scales, the intercepts are integrated out county by county, then mu_a, then beta.
    Let S be the precision that the data give to beta, and P = 11' + sigma_b^2 I its prior
    covariance, both 2 x 2.  Then det(I + P S) = 1 + tr(P S) + det P det S and (P^-1 + S)^-1 =
    (P + det P adj S) / det(I + P S).  These are sums of positive terms, exact for tiny and for huge
    scales.
    """

    def __init__(
        self, statistics: _Statistics, sigma_a: FloatArray, eps: FloatArray, sigma_b: FloatArray
    ) -> None:
        means = statistics.means
        ratio = statistics.homes * (sigma_a[:, None, None] / eps[:, None]) ** 2
        #: homes sigma_a^2 / (eps^2 + homes sigma_a^2), shape (A, E, J)
        self.shrinkage = ratio / (1 + ratio)
        products = (means[:, :, None] * means[:, None, :]).reshape(-1, 16)
        gram = (statistics.homes / (1 + ratio) @ products + statistics.scatter.ravel()) / (
            eps[:, None] ** 2
        )
        # Precision-weighted products of (1, floor, uranium, log radon), shape (A, E, 1, 4, 4).
        self._gram = gram.reshape(*gram.shape[:2], 4, 4)[:, :, None]
        _, _, left = self._without_mu_a()
        s_11, s_12, s_22 = left[..., 1, 1], left[..., 1, 2], left[..., 2, 2]
        t_1, t_2 = left[..., 1, 3], left[..., 2, 3]
        variance = sigma_b**2
        det_prior = variance * (2 + variance)
        determinant = (
            1
            + variance * (s_11 + s_22)
            + (s_11 + 2 * s_12 + s_22)
            + det_prior * (s_11 * s_22 - s_12**2)
        )
        self._cov_11 = (1 + variance + det_prior * s_22) / determinant
        self._cov_22 = (1 + variance + det_prior * s_11) / determinant
        self._cov_12 = (1 - det_prior * s_12) / determinant
        self._mean_1 = self._cov_11 * t_1 + self._cov_12 * t_2
        self._mean_2 = self._cov_12 * t_1 + self._cov_22 * t_2
        constant = statistics.total * np.log(2 * np.pi * eps[:, None] ** 2)
        constant = constant + np.log1p(ratio).sum(axis=-1, keepdims=True)
        constant = constant + np.log1p(self._gram[..., 0, 0])
        quadratic = left[..., 3, 3] - t_1 * self._mean_1 - t_2 * self._mean_2
        #: marginal log likelihood, shape (A, E, B)
        self.log_likelihood: FloatArray = -0.5 * (constant + np.log(determinant) + quadratic)

    def _without_mu_a(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return mu_a's variance given the rest, its slopes, and the products that remain."""
        g = self._gram
        variance = 1 / (1 + g[..., 0, 0])
        slope = g[..., 0, :] * variance[..., None]
        return variance, slope, g - g[..., 0, :, None] * slope[..., None, :]

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Return means and second moments of (mu_a, beta_1, beta_2).

        Shapes (A, E, B, 3) and (A, E, B, 3, 3).
        """
        variance, slope, _ = self._without_mu_a()
        b_1, b_2 = slope[..., 1], slope[..., 2]
        mean_a = slope[..., 3] - b_1 * self._mean_1 - b_2 * self._mean_2
        cov_a1 = -b_1 * self._cov_11 - b_2 * self._cov_12
        cov_a2 = -b_1 * self._cov_12 - b_2 * self._cov_22
        cov_aa = variance - b_1 * cov_a1 - b_2 * cov_a2
        mean = np.stack([mean_a, self._mean_1, self._mean_2], axis=-1)
        rows = (
            (cov_aa, cov_a1, cov_a2),
            (cov_a1, self._cov_11, self._cov_12),
            (cov_a2, self._cov_12, self._cov_22),
        )
        covariance = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
        return mean, covariance + mean[..., :, None] * mean[..., None, :]


def marginal_log_likelihood(
    data: Homes, sigma_a: float, sigma_b: float, eps: float, *, inv_temp: float = 1.0
) -> float:
    """Return the log likelihood with all Gaussian parameters integrated out, given the scales.

    Parameters
    ----------
    data
        Homes.
    sigma_a, sigma_b, eps
        Standard deviations of intercepts, coefficients and measurements, positive.
    inv_temp
        Power to which the likelihood is raised before it is integrated.

    Returns
    -------
    float
        Log likelihood in nats.
    """
    scales = (np.array([each]) for each in (sigma_a, eps, sigma_b))
    return float(_Gaussians(_statistics(data, inv_temp), *scales).log_likelihood[0, 0, 0])


@dataclass(frozen=True)
class _Rule:
    """Trapezoidal rule in t for the logarithm u = centre + width sinh(t) of a scale.

    It is dense around the posterior and sparse in the tails.
    """

    log_scale: FloatArray
    log_weight: FloatArray  # includes the prior density of the logarithm

    @classmethod
    def make(cls, step: float, centre: float, width: float, low: float, high: float) -> _Rule:
        low = np.arcsinh((max(low, centre - _REACH) - centre) / width)
        high = np.arcsinh((min(high, centre + _REACH) - centre) / width)
        t = step * np.arange(np.floor(low / step), np.ceil(high / step) + 1)
        u = centre + width * np.sinh(t)
        # Half-Cauchy: the density of log sigma is sech(log(sigma / 2.5)) / pi.
        v = np.abs(u - np.log(PRIOR_SCALE))
        log_prior = np.log(2 / np.pi) - v - np.log1p(np.exp(-2 * v))
        return cls(u, np.log(step * width * np.cosh(t)) + log_prior)


class _Grid(NamedTuple):
    """Rules for the logarithms of the scales."""

    sigma_a: _Rule
    eps: _Rule
    sigma_b: _Rule

    @property
    def scales(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Nodes of sigma_a (A,), eps (E,) and sigma_b (B,)."""
        a, e, b = (np.exp(rule.log_scale) for rule in self)
        return a, e, b

    def log_mass(self, log_likelihood: FloatArray) -> FloatArray:
        """Return the log of likelihood times prior times the rule's weights, shape (A, E, B)."""
        a, e, b = (rule.log_weight for rule in self)
        mass: FloatArray = log_likelihood + a[:, None, None] + e[:, None] + b
        return mass


def _log_masses(statistics: _Statistics, grid: _Grid) -> FloatArray:
    return grid.log_mass(_Gaussians(statistics, *grid.scales).log_likelihood)


def _log_sum(log_mass: FloatArray) -> float:
    largest = log_mass.max()
    return float(largest + np.log(np.exp(log_mass - largest).sum()))


def _grids(statistics: _Statistics) -> tuple[_Grid, _Grid]:
    """Locate the posterior of the log scales, and return grids of both resolutions."""
    low, high = np.full(3, -np.inf), np.full(3, np.inf)
    if statistics.total > 0:
        if statistics.residual <= 1e-12 * statistics.scatter[3, 3]:
            raise DataError(
                "the exact evidence needs a county with homes whose radon differs by more than "
                "floor and uranium explain: without one the likelihood grows without bound as "
                "eps goes to 0; take more homes"
            )
        # Below it, exp(-residual / (2 eps^2)) underflows, whatever the other factors are.
        low[1] = 0.5 * np.log(statistics.residual / (2 * (800 + 50 * statistics.total)))
    centre, width = np.zeros(3), np.ones(3)

    def grid(step: float) -> _Grid:
        return _Grid(*map(_Rule.make, [step] * 3, centre, width, low, high))

    for _ in range(20):
        now = grid(_LOCATE)
        log_mass = _log_masses(statistics, now)
        log_mass -= log_mass.max()
        mass = np.exp(log_mass) / np.exp(log_mass).sum()
        before = centre.copy(), width.copy()
        for axis, rule in enumerate(now):
            others = tuple({0, 1, 2} - {axis})
            share = mass.sum(axis=others)
            centre[axis] = share @ rule.log_scale
            spread = np.sqrt(share @ (rule.log_scale - centre[axis]) ** 2)
            # A peak between two nodes seems to have no spread, so narrow the width step by step.
            width[axis] = min(max(spread, width[axis] / 4), 1.0)
        moved = np.abs(centre - before[0]) / width + np.abs(np.log(width / before[1]))
        if moved.max() < 0.2:
            break
    for axis, rule in enumerate(now):
        peak = log_mass.max(axis=tuple({0, 1, 2} - {axis}))
        alive = np.flatnonzero(peak > -_REACH)
        low[axis] = max(low[axis], rule.log_scale[max(alive[0] - 1, 0)])
        high[axis] = min(high[axis], rule.log_scale[min(alive[-1] + 1, len(peak) - 1)])
    return grid(_COARSE), grid(_COARSE / 2)


def exact_log_evidence(data: Homes, *, inv_temp: float = 1.0) -> TrueValue[float]:
    """Return the log of the integral of prior times likelihood, by quadrature over the scales.

    The error is the difference from the coarser resolution, which has twice the step.

    Parameters
    ----------
    data
        Homes; at least one county must have homes that floor and uranium do not explain.
    inv_temp
        Power to which the likelihood is raised.  The result is then the log normalising constant of
        the power posterior, 0 at 0 and the log evidence at 1.

    Raises
    ------
    DataError
        If the inverse temperature is outside [0, 1], floor and uranium are proportional, or no
        county has homes that differ.
    """
    if not 0 <= inv_temp <= 1:
        raise DataError(f"an inverse temperature must lie in [0, 1]; got {inv_temp}")
    regressors = np.column_stack([data.first_floor, data.log_uranium])
    if np.all(regressors.any(axis=0)) and np.linalg.matrix_rank(regressors) < 2:
        raise DataError("floor and uranium are proportional in these homes; take more homes")
    statistics = _statistics(data, inv_temp)
    coarse, fine = (_log_sum(_log_masses(statistics, grid)) for grid in _grids(statistics))
    return TrueValue(fine, abs(fine - coarse))


def exact_posterior(data: Homes) -> ExactPosterior:
    """Return posterior means and standard deviations of all parameters, by the same quadrature.

    Parameters
    ----------
    data
        Homes in two counties or more, with floor and uranium that both vary and are not
        proportional; otherwise the scales have no second moment.

    Raises
    ------
    DataError
        If a second moment does not exist, or no county has homes that differ.
    """
    columns = np.column_stack([np.ones(len(data.log_radon)), data.first_floor, data.log_uranium])
    if len(data.county_names) < 2 or np.linalg.matrix_rank(columns) < 3:
        raise DataError(
            "posterior moments need homes in two counties or more, with floor and uranium that "
            "vary and are not proportional: the scales have no variance otherwise"
        )
    statistics = _statistics(data, 1.0)
    (mean, sd), (fine_mean, fine_sd) = (_moments(statistics, grid) for grid in _grids(statistics))
    error = max(
        float(np.max(np.abs(fine - coarse) / fine_sd[name]))
        for found, before in ((fine_mean, mean), (fine_sd, sd))
        for name, fine in found.items()
        for coarse in (before[name],)
    )
    return ExactPosterior(fine_mean, fine_sd, error)


def exact_expectations(data: Homes) -> Expectations:
    """Return posterior expectations by name, as :class:`harness.model.Truth` has them.

    ``NAME`` and ``NAME_squared`` for every name of :class:`ExactPosterior`.

    Raises
    ------
    DataError
        See :func:`exact_posterior`.
    """
    mean, sd, error = exact_posterior(data)
    first = {name: TrueValue(value, error * sd[name]) for name, value in mean.items()}
    # Of m^2 + s^2, whose parts are both off by at most error s.
    second = {
        f"{name}_squared": TrueValue(
            np.square(value) + np.square(sd[name]),
            2 * error * sd[name] * (np.abs(value) + sd[name]),
        )
        for name, value in mean.items()
    }
    return first | second


def _moments(
    statistics: _Statistics, grid: _Grid
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Return means and standard deviations of all parameters on a grid."""
    sigma_a, eps, sigma_b = grid.scales
    gaussians = _Gaussians(statistics, *grid.scales)
    log_mass = grid.log_mass(gaussians.log_likelihood)
    mass = np.exp(log_mass - _log_sum(log_mass))
    by_scales = mass.sum(axis=2)
    mean, square = gaussians.moments()
    # Summed over sigma_b, shapes (A, E, 3[, 3]), and over the other two, (B, 3[, 3]): everything
    # else depends on one or the other.
    c = np.einsum("aeb,aebi->aei", mass, mean)
    cc = np.einsum("aeb,aebij->aeij", mass, square)
    d = np.einsum("aeb,aebi->bi", mass, mean)
    dd = np.einsum("aeb,aebij->bij", mass, square)
    moments: dict[str, tuple[FloatArray, FloatArray]] = {}

    for name, value, axes in (
        ("sigma_a", sigma_a, (1, 2)),
        ("eps", eps, (0, 2)),
        ("sigma_b", sigma_b, (0, 1)),
    ):
        share = mass.sum(axis=axes)
        moments[name] = share @ value, share @ value**2
    moments["mu_a"] = d[:, 0].sum(), dd[:, 0, 0].sum()
    moments["beta"] = d[:, 1:].sum(axis=0), np.einsum("bii->i", dd[:, 1:, 1:])

    # Given beta: E[mu_b] = (1, 1)'beta / (2 + sigma_b^2), E[m] = (beta - E[mu_b]) / sigma_b.
    total, share = 2 + sigma_b**2, mass.sum(axis=(0, 1))
    on_mu_b = np.ones((len(total), 1, 2)) / total[:, None, None]
    on_m = (np.eye(2) - on_mu_b) / sigma_b[:, None, None]
    for name, on, variance in (("mu_b", on_mu_b, sigma_b**2 / total), ("m", on_m, 1 / total)):
        moments[name] = (
            np.einsum("bki,bi->k", on, d[:, 1:]),
            np.einsum("bki,bij,bkj->k", on, dd[:, 1:, 1:], on) + share @ variance,
        )
    moments["mu_b"] = moments["mu_b"][0][0], moments["mu_b"][1][0]

    # Given mu_a and beta: sigma_a n_c ~ N(k_c (y_c - mu_a - x_c'beta), sigma_a^2 (1 - k_c)).
    k, regressors, y = gaussians.shrinkage, statistics.means[:, :3], statistics.means[:, 3]
    fitted = c @ regressors.T
    deviation = by_scales[..., None] * y - fitted
    fitted_squared = np.einsum("ji,aeil,jl->aej", regressors, cc, regressors, optimize=True)
    deviation_squared = by_scales[..., None] * y**2 - 2 * y * fitted + fitted_squared
    own = by_scales[..., None] * (1 - k)
    a = sigma_a[:, None, None]
    moments["n"] = (
        (k / a * deviation).sum(axis=(0, 1)),
        (own + (k / a) ** 2 * deviation_squared).sum(axis=(0, 1)),
    )
    with_mu_a = c[..., :1] * y - cc[..., 0, :] @ regressors.T  # mu_a times the deviation
    moments["alpha"] = (
        (c[..., :1] + k * deviation).sum(axis=(0, 1)),
        (cc[..., 0, :1] + 2 * k * with_mu_a + k**2 * deviation_squared + a**2 * own).sum(
            axis=(0, 1)
        ),
    )
    means = {name: np.asarray(first, dtype=np.float64) for name, (first, _) in moments.items()}
    sd = {name: np.sqrt(second - means[name] ** 2) for name, (_, second) in moments.items()}
    return means, {name: np.asarray(value, dtype=np.float64) for name, value in sd.items()}
