"""Riemannian HMC of the log-Gaussian Cox process: reversible, volume kept, posterior unchanged."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.ensemble.riemannian import (
    Surface,
    energy,
    generalised_leapfrog,
    hyper_surface,
    latent_metric,
    move_hyper,
    move_latent,
)
from harness.arrays import FloatArray
from harness.models.log_gaussian_cox import FIELD_MEAN, LogGaussianCox, generate

PROCESS = generate(2, "unit_square")
X = FIELD_MEAN + np.array([0.5, -1.0, 0.3, 1.2])
THETA = np.array([0.2, -0.7])


def surface(theta: FloatArray) -> Surface:
    found = hyper_surface(PROCESS, X)(theta)
    assert found is not None
    return found


MOMENTUM = np.linalg.cholesky(surface(THETA).metric) @ np.array([0.8, -0.6])


def test_slope_of_the_metric_by_differences() -> None:
    step, at = 1e-5, surface(THETA)
    for j in range(2):
        moved = [surface(THETA + sign * step * np.eye(2)[j]).metric for sign in (1, -1)]
        # Rounding 1e-15 / step, and step^2 times a third derivative of order 10.
        np.testing.assert_allclose((moved[0] - moved[1]) / (2 * step), at.slope[j], atol=1e-8)


def test_the_metric_is_the_expected_curvature() -> None:
    """Over fields x drawn at theta, the covariance of the score is the Fisher information.

    Of 4,000 fields each entry has a standard error, which is measured; 4.5 of them.
    """
    rng = np.random.default_rng(5)
    field = PROCESS.field(THETA)
    x = FIELD_MEAN + rng.standard_normal((4000, 4)) @ np.linalg.cholesky(field.covariance).T
    _, gradient = PROCESS.hyper_log_density(np.tile(THETA, (4000, 1)), x)
    score = gradient - (1 - np.exp(THETA))  # without the prior's part
    products = score[:, :, None] * score[:, None]
    fisher = surface(THETA).metric - np.diag(np.exp(THETA))
    error = products.std(axis=0) / np.sqrt(4000)
    assert np.all(np.abs(products.mean(axis=0) - fisher) < 4.5 * error)


def test_a_step_is_reversible() -> None:
    at = hyper_surface(PROCESS, X)
    root = np.linalg.cholesky(surface(THETA).metric)
    for p in np.random.default_rng(2).normal(size=(5, 2)) @ root.T:
        there = generalised_leapfrog(THETA, p, 0.1, at)
        assert there is not None
        assert np.abs(there.q - THETA).max() > 5e-3
        back = generalised_leapfrog(there.q, -there.p, 0.1, at)
        assert back is not None
        np.testing.assert_allclose(back.q, THETA, atol=1e-9)
        np.testing.assert_allclose(back.p, -p, atol=1e-9)


def test_a_step_keeps_volume() -> None:
    """Determinant of the finite-difference Jacobian; of the explicit leapfrog it would differ."""
    at, step = hyper_surface(PROCESS, X), 1e-5
    start = np.array([*THETA, *MOMENTUM])

    def flow(z: FloatArray) -> FloatArray:
        there = generalised_leapfrog(z[:2], z[2:], 0.3, at)
        assert there is not None
        return np.concatenate([there.q, there.p])

    jacobian = np.stack(
        [(flow(start + e) - flow(start - e)) / (2 * step) for e in step * np.eye(4)], axis=1
    )
    # The implicit equations are solved to 1e-11, so that differences are good to 1e-6.
    assert np.linalg.det(jacobian) == pytest.approx(1, abs=1e-5)

    # A metric whose slope is left out does not keep it.
    def flat(theta: FloatArray) -> Surface:
        found = surface(theta)
        return found._replace(slope=0.5 * found.slope)

    def wrong(z: FloatArray) -> FloatArray:
        there = generalised_leapfrog(z[:2], z[2:], 0.3, flat)
        assert there is not None
        return np.concatenate([there.q, there.p])

    jacobian = np.stack(
        [(wrong(start + e) - wrong(start - e)) / (2 * step) for e in step * np.eye(4)], axis=1
    )
    assert abs(np.linalg.det(jacobian) - 1) > 1e-3


def test_the_energy_error_falls_with_the_third_power_of_the_step() -> None:
    at = hyper_surface(PROCESS, X)
    p = np.linalg.cholesky(surface(THETA).metric) @ np.array([-1, 0.2])
    before = energy(surface(THETA), p)
    errors = []
    for step in (0.1, 0.05, 0.025):
        there = generalised_leapfrog(THETA, p, step, at)
        assert there is not None
        errors.append(abs(there.energy - before))
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all((slopes > 2.5) & (slopes < 3.6)), slopes


def test_where_the_density_is_zero_nothing_moves() -> None:
    assert generalised_leapfrog(np.array([0.0, 500.0]), np.zeros(2), 0.1,
                                hyper_surface(PROCESS, X)) is None  # fmt: skip
    moved = move_hyper(PROCESS, np.array([0.0, 500.0]), X, 0.1, 1, np.random.default_rng(1))
    assert moved.acceptance == 0


def exact_hyper(process: LogGaussianCox, count: int, rng: np.random.Generator) -> FloatArray:
    """Draw theta given X from a grid, each draw uniform within its cell's place."""
    axis = [np.linspace(-6, 4, 51), np.linspace(-8, 4, 51)]
    grid = np.stack(np.meshgrid(*axis, indexing="ij"), axis=-1).reshape(-1, 2)
    value, _ = process.hyper_log_density(grid, X)
    weight = np.exp(value - value.max())
    return grid[rng.choice(len(grid), count, p=weight / weight.sum())]


def test_a_move_of_the_two_scales_keeps_their_posterior() -> None:
    """Draws from a fine grid, one move each: paired changes of moments are within their errors.

    Five functions; 4 standard errors of each happen by chance in 3e-4 of cases.  The grid's cells,
    0.2 and 0.24 wide, are small against the posterior, whose density changes little in them.
    """
    rng = np.random.default_rng(3)
    before = exact_hyper(PROCESS, 150, rng)
    moves = [move_hyper(PROCESS, theta, X, 0.3, 1, rng) for theta in before]
    after = np.stack([move.q for move in moves])
    assert np.mean([move.acceptance for move in moves]) > 0.5
    changed = functions(after) - functions(before)
    score = changed.mean(axis=0) / (changed.std(axis=0) / np.sqrt(len(before)))
    assert np.all(np.abs(score) < 4), score


def functions(theta: FloatArray) -> FloatArray:
    a, b = theta.T
    return np.stack([a, b, a * b, a**2, b**2], axis=1)


def test_a_move_of_the_field_keeps_its_posterior() -> None:
    """Draws by importance resampling, one move each, as above: means and squares of four cells."""
    rng = np.random.default_rng(4)
    precision = PROCESS.precision(THETA)
    field = PROCESS.field(THETA)
    prior = FIELD_MEAN + rng.standard_normal((500_000, 4)) @ np.linalg.cholesky(field.covariance).T
    log_weight, _ = PROCESS.log_likelihood(prior)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    # So few of so many that hardly any prior draw is chosen twice.
    assert 1 / np.square(weight).sum() > 2500
    before = prior[rng.choice(len(prior), 800, p=weight)]
    moves = [move_latent(PROCESS, x, THETA, 0.5, 3, rng) for x in before]
    after = np.stack([move.q for move in moves])
    assert np.mean([move.acceptance for move in moves]) > 0.5
    changed = np.hstack([after - before, (after - FIELD_MEAN) ** 2 - (before - FIELD_MEAN) ** 2])
    score = changed.mean(axis=0) / (changed.std(axis=0) / np.sqrt(len(before)))
    assert np.all(np.abs(score) < 4), score
    metric = latent_metric(PROCESS, THETA)
    np.testing.assert_allclose(metric - np.diag(np.diag(metric)),
                               precision - np.diag(np.diag(precision)))  # fmt: skip
