"""Proposals of bridges: a shrunk Gaussian, and a mixture of Gaussians by EM."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from harness.arrays import FloatArray
from harness.errors import DataError, SamplingError
from harness.path import GaussianBase
from harness.path.proposals import Mixture, fitted_mixture, fitted_proposal


def test_gaussian_has_the_moments_of_the_draws_in_few_dimensions() -> None:
    rng = np.random.default_rng(1)
    covariance = np.array([[4.0, 1.5], [1.5, 1.0]])
    draws = rng.multivariate_normal([1.0, -2.0], covariance, (4, 1000))
    found = fitted_proposal(draws)
    flat = draws.reshape(-1, 2)
    np.testing.assert_allclose(found.mean, flat.mean(axis=0))
    # With 4,000 draws held-out draws ask for hardly any shrinkage.
    np.testing.assert_allclose(found.covariance, np.cov(flat, rowvar=False), rtol=0.04)


def test_independent_coordinates_in_many_dimensions_are_shrunk_to_their_variances() -> None:
    """The divergence from the truth is that of D means and variances, far below D^2 / 4n."""
    rng = np.random.default_rng(2)
    scale = np.geomspace(0.1, 10, 150)
    found = fitted_proposal(rng.standard_normal((4, 150, 150)) * scale)
    covariance = found.covariance / np.outer(scale, scale)
    log_det = np.linalg.slogdet(covariance)[1]
    divergence = 0.5 * (np.trace(np.linalg.inv(covariance)) - 150 + log_det)
    assert divergence < 0.2 * 150**2 / (4 * 600)


def test_curvature_of_the_target_replaces_correlations_in_many_dimensions() -> None:
    """A correlated Gaussian of 120 dimensions from 600 draws: only 120 variances are fitted."""
    rng = np.random.default_rng(8)
    root = np.tril(rng.normal(0, 0.2, (120, 120)), -1) + np.diag(rng.uniform(0.5, 2, 120))
    precision = np.linalg.inv(root @ root.T)
    draws = rng.standard_normal((4, 150, 120)) @ root.T + 3.0

    def log_density(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        slope = -(points - 3.0) @ precision
        return 0.5 * np.sum(slope * (points - 3.0), axis=1), slope

    def divergence(found: GaussianBase) -> float:
        """From the fitted Gaussian to the target, in nats."""
        between = found.mean - 3.0
        trace = np.trace(precision @ found.covariance)
        log_det = np.linalg.slogdet(precision @ found.covariance)[1]
        return float(0.5 * (trace - 120 - log_det + between @ precision @ between))

    # 120 means and 120 variances from 600 draws: 0.1 + 0.1 nats with little spread; a whole
    # covariance matrix would cost 120 * 121 / (4 * 600) = 6.
    assert divergence(fitted_proposal(draws, log_density)) < 0.6
    assert divergence(fitted_proposal(draws)) > 3


def test_mixture_finds_two_groups_and_is_a_density() -> None:
    rng = np.random.default_rng(3)
    draws = np.where(rng.random((4, 500, 1)) < 0.3, -3.0, 2.0) + rng.standard_normal((4, 500, 1))
    found = fitted_mixture(draws, 1)
    assert isinstance(found, Mixture)
    grid = np.linspace(-15, 15, 6001)
    density = np.exp(found.log_density(grid[:, None]))
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=1e-6)
    # The share below -0.5, where the groups meet; its standard error is below sqrt(.21 / 2000).
    exact = 0.3 * 0.99379 + 0.7 * 0.00621
    assert abs(np.trapezoid(density[grid < -0.5], grid[grid < -0.5]) - exact) < 4 * 0.0103
    sampled = found.sample(np.random.default_rng(4), 5000)
    assert abs(np.mean(sampled < -0.5) - exact) < 4 * (0.0103 + 0.0065)


def test_density_of_a_mixture_is_the_sum_of_its_parts() -> None:
    rng = np.random.default_rng(5)
    group = rng.integers(2, size=(4, 600, 1))
    draws = rng.standard_normal((4, 600, 2)) * [1.0, 0.3] + 6.0 * group
    found = fitted_mixture(draws, 1)
    assert found is not None
    points = rng.normal(3, 4, (7, 2))
    exact = sum(
        w * multivariate_normal(part.mean, part.covariance).pdf(points)
        for w, part in zip(found.weight, found.parts, strict=True)
    )
    np.testing.assert_allclose(found.log_density(points), np.log(exact))


def exact_mixture(modes: FloatArray, root: FloatArray) -> Mixture:
    parts = tuple(GaussianBase(each, root, 0.0) for each in modes)
    return Mixture(np.full(len(modes), 1 / len(modes)), parts)


@pytest.mark.parametrize("case", ["needles", "six"])
def test_modes_that_are_far_apart_in_few_directions_have_parts_of_their_own(case: str) -> None:
    """The divergence from the truth is that of the fitted numbers, half a nat / n for each."""
    rng = np.random.default_rng(7)
    if case == "needles":  # correlated, and 50 standard deviations apart in one direction of five
        root = np.tril(rng.normal(0, 1, (5, 5)), -1) + np.diag(np.geomspace(0.01, 1, 5))
        modes = np.outer([-25, 25], root[:, 0])
    else:  # as where the labels of three components switch
        root = np.diag([0.2, 1.0, 0.5])
        modes = np.array([[a, b, 6.0 - a - b] for a, b in ((1, 2), (2, 3), (3, 1))] * 2)
        modes[3:] = modes[3:, ::-1]
        modes *= 4.0
    truth = exact_mixture(modes, root)
    draws = truth.sample(rng, 4000).reshape(4, 1000, -1)
    found = fitted_mixture(draws, 1)
    assert found is not None
    fresh = truth.sample(rng, 20_000)
    gap = truth.log_density(fresh) - found.log_density(fresh)
    dimension = draws.shape[2]
    numbers = len(found.parts) * (1 + dimension * (dimension + 3) / 2)
    # Three times what is expected: 0.5 numbers / n, and the shrinkage of D + 2 draws.
    assert gap.mean() - 3 * gap.std() / np.sqrt(len(gap)) < 3 * 0.5 * numbers / 4000
    assert len(found.parts) >= len(modes)


def test_a_needle_beside_a_ball_stays_narrow() -> None:
    """A twentieth of the ball's covariance would make it ten times too wide along some axes."""
    rng = np.random.default_rng(6)
    dimension = 12
    turn = np.linalg.qr(rng.normal(size=(dimension, dimension)))[0]
    needle = np.linalg.cholesky((turn * np.geomspace(0.02, 5, dimension) ** 2) @ turn.T)
    parts = (
        GaussianBase(np.full(dimension, 6.0), needle, 0.0),
        GaussianBase(np.full(dimension, -2.0), np.eye(dimension), 0.0),
    )
    truth = Mixture(np.array([0.4, 0.6]), parts)
    draws = truth.sample(rng, 4000).reshape(4, 1000, dimension)
    found = fitted_mixture(draws, 1)
    assert found is not None
    fresh = truth.sample(rng, 20_000)
    gap = truth.log_density(fresh) - found.log_density(fresh)
    numbers = len(found.parts) * (1 + dimension * (dimension + 3) / 2)
    # As above: half a nat / n for each fitted number is what is expected.
    assert gap.mean() - 3 * gap.std() / np.sqrt(len(gap)) < 3 * 0.5 * numbers / 4000


def test_gradient_of_a_mixture_is_that_of_its_log_density() -> None:
    rng = np.random.default_rng(8)
    root = np.array([[1.0, 0.0], [0.4, 0.7]])
    mixture = exact_mixture(rng.normal(0, 2, (3, 2)), root).widened(1.3)
    points = rng.normal(0, 3, (6, 2))
    value, gradient = mixture.log_density_and_gradient(points)
    np.testing.assert_allclose(value, mixture.log_density(points), rtol=1e-12)
    exact = sum(
        multivariate_normal(each.mean, 1.3**2 * root @ root.T).pdf(points) / 3
        for each in mixture.parts
    )
    np.testing.assert_allclose(value, np.log(exact), rtol=1e-10)
    step = 1e-5
    for axis in range(2):
        shift = step * np.eye(2)[axis]
        change = mixture.log_density(points + shift) - mixture.log_density(points - shift)
        # The error of a central difference is of order step^2.
        np.testing.assert_allclose(gradient[:, axis], change / (2 * step), rtol=1e-6, atol=1e-8)


def test_points_beyond_all_parts_have_a_density() -> None:
    """Far out all terms underflow but one; the gradient still leads back."""
    mixture = exact_mixture(np.array([[-5.0], [5.0]]), np.eye(1))
    value, gradient = mixture.log_density_and_gradient(np.array([[200.0], [-200.0]]))
    assert np.all(np.isfinite(value))
    np.testing.assert_allclose(gradient[:, 0], [-195.0, 195.0])


def test_one_gaussian_is_enough_for_gaussian_draws() -> None:
    draws = np.random.default_rng(6).standard_normal((4, 500, 3))
    assert fitted_mixture(draws, 1) is None


def test_draws_that_no_proposal_fits_are_refused() -> None:
    rng = np.random.default_rng(7)
    stuck = rng.standard_normal((2, 50, 2)) * [1.0, 0.0]
    with pytest.raises(SamplingError, match="do not move"):
        fitted_proposal(stuck)
    with pytest.raises(SamplingError, match="not finite"):
        fitted_proposal(np.full((2, 50, 1), np.nan))
    with pytest.raises(DataError, match="more draws"):
        fitted_proposal(rng.standard_normal((1, 2, 1)))
