"""The Gaussian mixture: exact moments, log density in Python and in Stan, bad data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_normal, norm
from stan_density import StanDensity, into_box, log_box_jacobian

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.models.gaussian_mixture import GaussianMixture, Scenario, kou_mixture

LOWER, UPPER = -12.0, 17.0


def random_mixture(dimension: int, components: int, seed: int, scale: float = 1) -> GaussianMixture:
    rng = np.random.default_rng(seed)
    weight = rng.dirichlet(np.full(components, 2.0))
    mean = rng.uniform(-1, 6, (components, dimension))
    return GaussianMixture(weight, mean, scale * rng.uniform(0.2, 1.0, components))


def scipy_log_density(mixture: GaussianMixture, x: FloatArray) -> FloatArray:
    """Difference form of the log density, by SciPy."""
    dimension = mixture.mean.shape[1]
    components = [
        np.log(w) + multivariate_normal(mu, sd**2 * np.eye(dimension)).logpdf(x)
        for w, mu, sd in zip(mixture.weight, mixture.mean, mixture.sd, strict=True)
    ]
    return np.asarray(logsumexp(components, axis=0), dtype=np.float64)


def gradient(mixture: GaussianMixture, x: FloatArray) -> FloatArray:
    """Gradient of the log density: sum_k P(k | x) (mu_k - x) / sigma_k^2."""
    log_component = [
        np.log(w) + norm.logpdf(x, mu, sd).sum()
        for w, mu, sd in zip(mixture.weight, mixture.mean, mixture.sd, strict=True)
    ]
    share = np.exp(np.array(log_component) - logsumexp(log_component))
    towards: FloatArray = (mixture.mean - x) / mixture.sd[:, None] ** 2
    return np.asarray(share @ towards, dtype=np.float64)


def target_density(
    mixture: GaussianMixture, lower: float = LOWER, upper: float = UPPER
) -> StanDensity:
    model = mixture.model("mixture", lower=lower, upper=upper)
    return StanDensity(model.program("target"), model.data)


def test_moments_match_quadrature_in_one_dimension() -> None:
    mixture = random_mixture(1, 3, seed=1)
    x = np.linspace(-12, 17, 20_001)
    density = sum(
        w * norm.pdf(x, mu, sd)
        for w, mu, sd in zip(mixture.weight, mixture.mean[:, 0], mixture.sd, strict=True)
    )
    assert np.trapezoid(density, x) == pytest.approx(1, rel=1e-12)
    assert mixture.truth.expected("x")[0] == pytest.approx(np.trapezoid(x * density, x), rel=1e-11)
    assert mixture.truth.expected("x_squared")[0] == pytest.approx(
        np.trapezoid(x**2 * density, x), rel=1e-11
    )


def test_moments_match_quadrature_in_two_dimensions() -> None:
    mixture = random_mixture(2, 3, seed=2)
    side = np.linspace(-9, 14, 601)
    points = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)
    density = np.exp(scipy_log_density(mixture, points)) * (side[1] - side[0]) ** 2
    assert density.sum() == pytest.approx(1, rel=1e-10)
    for axis in (0, 1):
        first = np.sum(points[..., axis] * density)
        second = np.sum(points[..., axis] ** 2 * density)
        assert mixture.truth.expected("x")[axis] == pytest.approx(first, rel=1e-10)
        assert mixture.truth.expected("x_squared")[axis] == pytest.approx(second, rel=1e-10)


@pytest.mark.parametrize(
    ("scenario", "first", "second", "digits"),
    [("a", (4.478, 4.905), (25.605, 33.920), 3), ("b", (4.6876, 5.0302), (25.6677, 31.4877), 4)],
)
def test_moments_of_the_published_mixture(
    scenario: Scenario, first: tuple[float, float], second: tuple[float, float], digits: int
) -> None:
    mixture = kou_mixture(scenario)
    assert mixture.mean.shape == (20, 2)
    half_a_digit = 0.5000001 * 10**-digits
    np.testing.assert_allclose(mixture.truth.expected("x"), first, rtol=0, atol=half_a_digit)
    np.testing.assert_allclose(
        mixture.truth.expected("x_squared"), second, rtol=0, atol=half_a_digit
    )


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_log_density_matches_scipy(dimension: int) -> None:
    mixture = random_mixture(dimension, 4, seed=dimension)
    x = np.random.default_rng(0).uniform(-10, 15, (5, 7, dimension))
    ours = mixture.log_density(x)
    assert ours.shape == (5, 7)
    np.testing.assert_allclose(ours, scipy_log_density(mixture, x), rtol=1e-12)


def test_log_density_far_away_is_finite() -> None:
    mixture = random_mixture(2, 3, seed=3, scale=1e-3)
    far = np.array([1e3, -1e3])
    assert mixture.log_density(far) == pytest.approx(float(scipy_log_density(mixture, far)))
    assert -1e15 < mixture.log_density(far) < -1e10


ONE = np.array([1.0])


@pytest.mark.parametrize(
    ("weight", "mean", "sd", "message"),
    [
        (ONE, np.array([0.0]), ONE, r"shape \(K, D\)"),
        (ONE, np.empty((1, 0)), ONE, r"shape \(K, D\)"),
        (np.empty(0), np.empty((0, 2)), np.empty(0), r"shape \(K, D\)"),
        (np.array([0.5, 0.5]), np.zeros((1, 2)), ONE, "as many weights"),
        (ONE, np.zeros((1, 2)), np.ones(2), "as many weights"),
        (ONE, np.zeros((1, 2)), np.ones((1, 2)), "as many weights"),
        (np.array([np.nan]), np.zeros((1, 1)), ONE, "weight has a value that is not finite"),
        (ONE, np.array([[np.nan]]), ONE, "mean has a value that is not finite"),
        (ONE, np.array([[-np.inf]]), ONE, "mean has a value that is not finite"),
        (ONE, np.zeros((1, 1)), np.array([np.inf]), "sd has a value that is not finite"),
        (np.array([0.0, 1.0]), np.zeros((2, 1)), np.ones(2), "positive"),
        (np.array([-0.5, 1.5]), np.zeros((2, 1)), np.ones(2), "positive"),
        (ONE, np.zeros((1, 1)), np.array([0.0]), "positive"),
        (ONE, np.zeros((1, 1)), np.array([-1.0]), "positive"),
        (np.array([0.5, 0.6]), np.zeros((2, 1)), np.ones(2), "sum to one; they sum to 1.1"),
        (np.array([0.5, 0.5 - 1e-7]), np.zeros((2, 1)), np.ones(2), "sum to one"),
    ],
)
def test_bad_mixtures_are_refused(
    weight: FloatArray, mean: FloatArray, sd: FloatArray, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        GaussianMixture(weight, mean, sd)


@pytest.mark.parametrize(
    ("lower", "upper"), [(-1.99, 20.0), (-20.0, 3.99), (5.0, 6.0), (20.0, -20.0), (np.nan, 20.0)]
)
def test_a_box_near_the_modes_is_refused(lower: float, upper: float) -> None:
    mixture = GaussianMixture(np.array([0.5, 0.5]), np.array([[0.0], [1.0]]), np.array([0.2, 0.3]))
    with pytest.raises(DataError, match="10 standard deviations"):
        mixture.model("tight", lower=lower, upper=upper)


def test_the_box_may_be_as_small_as_ten_standard_deviations() -> None:
    mixture = GaussianMixture(np.array([0.5, 0.5]), np.array([[0.0], [1.0]]), np.array([0.2, 0.3]))
    assert mixture.model("close", lower=-2.01, upper=4.01).data["D"] == 1


def test_an_unknown_scenario_is_refused() -> None:
    with pytest.raises(DataError, match="got 'c'"):
        kou_mixture("c")  # type: ignore[arg-type]


def test_an_unknown_variant_is_refused_with_those_there_are() -> None:
    model = kou_mixture("a").model("mixture", lower=-10, upper=20)
    said = r"no variant 'tempered' \(it has: .*pseudo_extended, target"
    with pytest.raises(DataError, match=said):
        model.program("tempered")


def rounding(mixture: GaussianMixture, x: FloatArray) -> float:
    """Bound on the error of the affine form: a few roundings of its largest term."""
    largest = np.max((np.square(mixture.mean).sum(axis=1) + x @ x) / mixture.sd**2)
    return 10 * float(np.finfo(float).eps) * float(largest)


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("scale", [1.0, 1e-3], ids=["wide", "narrow"])
def test_stan_target_matches_scipy_with_the_box(dimension: int, scale: float) -> None:
    mixture = random_mixture(dimension, 4, seed=10 + dimension, scale=scale)
    density = target_density(mixture)
    assert density.dimension == dimension
    rng = np.random.default_rng(dimension)
    points = rng.normal(0, 2, (20, dimension))
    at_modes = (mixture.mean + 0.5 * mixture.sd[:, None] - LOWER) / (UPPER - LOWER)
    far = np.full((1, dimension), -9.0)  # within 0.004 of the box's edge
    for u in np.concatenate([points, np.log(at_modes / (1 - at_modes)), far]):
        value, slope = density(u)
        x = into_box(u, LOWER, UPPER)
        expected = float(scipy_log_density(mixture, x)) + log_box_jacobian(u, LOWER, UPPER)
        assert value == pytest.approx(expected, rel=1e-10, abs=rounding(mixture, x))
        s = expit(u)
        expected_slope = gradient(mixture, x) * (UPPER - LOWER) * s * (1 - s) + 1 - 2 * s
        # At a mode the two terms of the gradient nearly cancel: allow rounding of each.
        size = (UPPER - LOWER) * np.max(
            (np.abs(mixture.mean) + np.abs(x)) / mixture.sd[:, None] ** 2
        )
        np.testing.assert_allclose(
            slope, expected_slope, rtol=1e-9, atol=max(1e-10, rounding(mixture, x), 1e-14 * size)
        )


@pytest.mark.parametrize("scenario", ["a", "b"])
def test_affine_form_loses_nothing_on_the_published_mixture(scenario: Scenario) -> None:
    mixture = kou_mixture(scenario)
    density = target_density(mixture, -10, 20)
    rng = np.random.default_rng(7)
    near = mixture.mean[:, None] + 3 * mixture.sd[:, None, None] * rng.normal(size=(20, 20, 2))
    points = np.concatenate([near.reshape(-1, 2), rng.uniform(-9.9, 19.9, (200, 2))])
    error = []
    for point in points:
        u = density.unconstrain({"x": point})
        x = into_box(u, -10, 20)
        np.testing.assert_allclose(x, point, rtol=1e-12, atol=1e-12)
        difference = float(mixture.log_density(x)) + log_box_jacobian(u, -10, 20)
        error.append(abs(density.value(u) - difference))
    assert max(error) < 1e-9
