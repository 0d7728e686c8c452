"""The log-Gaussian Cox process: block densities against Stan and against the equation; data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import expon, multivariate_normal, poisson

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.model.density import TargetDensity
from harness.models.log_gaussian_cox import (
    FIELD_MEAN,
    Distance,
    LogGaussianCox,
    generate,
    load_log_gaussian_cox,
    true_field,
)

DISTANCES: tuple[Distance, ...] = ("unit_square", "cells")


def points(data: LogGaussianCox, count: int = 4) -> FloatArray:
    """Points (log sigma2, log range, x)."""
    rng = np.random.default_rng(1)
    theta = rng.normal(-0.5, 0.4, (count, 2))
    return np.hstack([theta, FIELD_MEAN + rng.normal(size=(count, data.size))])


@pytest.mark.parametrize("side", [16, 32])
@pytest.mark.parametrize("distance", DISTANCES)
def test_the_stored_points_are_those_of_the_seed(side: int, distance: Distance) -> None:
    stored = load_log_gaussian_cox(side, distance)
    np.testing.assert_array_equal(stored.points, generate(side, distance).points)
    assert stored.distance == distance


def test_totals_of_many_seeds() -> None:
    """The mean total is exp(field_mean + sigma2 / 2) = 126.

    Of 400 seeds at distances in cells its standard error is 1.3, as measured; 5 of these.
    """
    totals = np.array([generate(8, "cells", seed).points.sum() for seed in range(400)])
    error = totals.std() / 20
    assert abs(totals.mean() - 126) < 5 * error
    assert error < 5


def test_the_true_field_is_that_of_the_points() -> None:
    """Totals of points given their fields are Poisson: the chi square of 200 of them is near 200.

    Its standard deviation is 20 and a little more for small means; of fields that belong to other
    seeds it is above 1,000.
    """
    expected = np.array([np.exp(true_field(4, "cells", seed)).sum() / 16 for seed in range(200)])
    totals = np.array([generate(4, "cells", seed).points.sum() for seed in range(200)])
    assert abs((np.square(totals - expected) / expected).sum() - 200) < 5 * 21
    assert (np.square(np.roll(totals, 1) - expected) / expected).sum() > 1000


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_density_is_that_of_the_equation(distance: Distance) -> None:
    """Every factor by SciPy; distances written out cell by cell."""
    side = 3
    data = generate(side, distance)
    point = points(data, 1)[0]
    sigma2, reach, x = np.exp(point[0]), np.exp(point[1]), point[2:]
    step = 1 / (side - 1) if distance == "unit_square" else 1
    covariance = np.empty((9, 9))
    for a in range(9):
        for b in range(9):
            apart = np.hypot(a // side - b // side, a % side - b % side) * step
            covariance[a, b] = sigma2 * np.exp(-apart / (side * reach))
    expected = (
        poisson(np.exp(x) / 9).logpmf(data.points.reshape(-1)).sum()
        + multivariate_normal(np.full(9, FIELD_MEAN), covariance).logpdf(x)
        + expon().logpdf([sigma2, reach]).sum()
        + point[0]
        + point[1]
    )
    found, _ = TargetDensity(data.model("cox", centred=True))(point[None])
    assert found[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("distance", DISTANCES)
def test_blocks_add_up_to_the_stan_programs(distance: Distance) -> None:
    """The centred program up to one constant, and the whitened one with its Jacobian."""
    data = generate(4, distance)
    at = points(data)
    theta, x = at[:, :2], at[:, 2:]
    centred, gradient = TargetDensity(data.model("cox", centred=True))(at)
    ours, our_gradient = data.log_density(at)
    np.testing.assert_allclose(np.ptp(centred - ours), 0, atol=1e-10)
    np.testing.assert_allclose(our_gradient, gradient, rtol=1e-9, atol=1e-9)
    precision = np.stack([data.precision(point) for point in theta])
    latent, latent_slope = data.latent_log_density(x, precision)
    np.testing.assert_allclose(latent_slope, gradient[:, 2:], rtol=1e-9, atol=1e-9)
    hyper, hyper_slope = data.hyper_log_density(theta, x)
    np.testing.assert_allclose(hyper_slope, gradient[:, :2], rtol=1e-9, atol=1e-9)
    # p(theta, x | y) once as a density of x, once as one of theta: what they share cancels.
    other = np.roll(x, 1, axis=0)
    mixed = np.hstack([theta, other])
    np.testing.assert_allclose(
        data.latent_log_density(other, precision)[0] - latent, data.log_density(mixed)[0] - ours
    )
    np.testing.assert_allclose(
        data.hyper_log_density(theta, other)[0] - hyper,
        data.log_density(mixed)[0]
        - data.log_likelihood(other)[0]
        - ours
        + data.log_likelihood(x)[0],
    )
    whitened, volume = at.copy(), np.empty(len(at))
    for w, point in enumerate(at):
        field = data.field(point[:2])
        factor = np.linalg.cholesky(field.covariance)
        whitened[w, 2:] = np.linalg.solve(factor, point[2:] - FIELD_MEAN)
        volume[w] = 0.5 * field.log_determinant
    value, _ = TargetDensity(data.model("cox"))(whitened)
    np.testing.assert_allclose(value, centred + volume, rtol=1e-12)


def test_gradients_by_differences() -> None:
    data = generate(3, "unit_square")
    at = points(data, 1)
    gradient = data.log_density(at)[1][0]

    def value(point: FloatArray) -> float:
        return float(data.log_density(point[None])[0][0])

    found = approx_fprime(at[0], value, 1e-7)
    # Rounding is 1e-13 / 1e-7; half a step times a curvature below 1e3 is 5e-5.
    np.testing.assert_allclose(gradient, found, atol=1e-4)


def test_slopes_of_the_covariance_by_differences() -> None:
    data, step = generate(3, "unit_square"), 1e-5
    low, at, high = (data.field(np.array([0.3, -1.0 + s])) for s in (-step, 0, step))
    # Central differences are off by step^2 times third derivatives, which are below 10, and
    # rounding: 1e-16 / step = 1e-11.
    np.testing.assert_allclose((high.covariance - low.covariance) / (2 * step), at.slope, atol=1e-8)
    np.testing.assert_allclose((high.slope - low.slope) / (2 * step), at.curvature, atol=1e-8)
    np.testing.assert_allclose(at.covariance @ at.precision, np.eye(9), atol=1e-10)
    assert at.log_determinant == pytest.approx(np.linalg.slogdet(at.covariance)[1], rel=1e-10)


def test_far_away_the_densities_are_minus_infinity() -> None:
    data = generate(3, "unit_square")
    x = np.full((2, 9), FIELD_MEAN)
    x[0] = 800
    value, gradient = data.latent_log_density(x, np.eye(9))
    assert value[0] == -np.inf
    assert not gradient[0].any()
    assert np.isfinite(value[1])
    theta = np.array([[0.0, 90.0], [np.nan, 0.0], [0.0, 200.0], [0.0, -1.0]])
    value, gradient = data.hyper_log_density(theta, x[1])
    assert np.all(value[:3] == -np.inf)  # all cells alike is a singular covariance
    assert not gradient[:3].any()
    assert np.isfinite(value[3])
    whole = np.hstack([theta[[0, 3]], x[[1, 1]]])
    value, gradient = data.log_density(whole)
    assert value[0] == -np.inf
    assert not gradient[0].any()
    assert np.isfinite(value[1])


@pytest.mark.parametrize(
    ("counts", "options", "message"),
    [
        (np.zeros((2, 3), dtype=int), {}, r"2 x 2 cells or more is needed; got shape \(2, 3\)"),
        (np.zeros((1, 1), dtype=int), {}, "2 x 2 cells or more"),
        (np.zeros((2, 2)), {}, "whole numbers"),
        (np.full((2, 2), -1), {}, "0 or more"),
        (np.zeros((2, 2), dtype=int), {"distance": "km"}, "unit_square, cells; got 'km'"),
        (np.zeros((2, 2), dtype=int), {"field_mean": np.inf}, "must be finite; got inf"),
    ],
)
def test_bad_data_are_refused(counts: np.ndarray, options: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        LogGaussianCox(counts, **options)  # type: ignore[arg-type]


def test_sizes_that_are_not_stored_are_refused() -> None:
    with pytest.raises(DataError, match="no stored points of 8 x 8 cells"):
        load_log_gaussian_cox(8)
