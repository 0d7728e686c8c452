"""Folding: points and densities of a fold, the fit to particles, bridge sampling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from harness.arrays import FloatArray
from harness.errors import DataError, SamplingError
from harness.evidence.bridge import bridge_sampling
from harness.models.gaussian_mixture import GaussianMixture, kou_mixture
from harness.path.fold import Fold
from harness.path.modes import FoldSettings, fit_fold

MIXTURE = GaussianMixture(
    np.array([0.5, 0.3, 0.2]),
    np.array([[0.0, 0.0], [6.0, 1.0], [-4.0, 5.0]]),
    np.array([0.5, 1.0, 0.3]),
)


def some_fold(shared: bool = False) -> Fold:
    rng = np.random.default_rng(1)
    return Fold(
        np.array([0.2, 0.5, 0.3]),
        rng.normal(size=(3, 2)),
        rng.normal(size=(1 if shared else 3, 2, 2)) + 2 * np.eye(2),
        np.array([1.0, -1.0, 1.0]),
    )


@pytest.mark.parametrize("shared", [False, True])
def test_a_folds_density_and_places_by_hand(shared: bool) -> None:
    fold, rng = some_fold(shared), np.random.default_rng(2)
    x, y = rng.normal(size=(4, 2)), rng.normal(size=(5, 2))
    scale = np.broadcast_to(fold.scale, (3, 2, 2))
    expected = logsumexp(
        [
            np.log(w) + multivariate_normal(m, s @ s.T).logpdf(x)
            for w, m, s in zip(fold.weight, fold.mean, scale, strict=True)
        ],
        axis=0,
    )
    np.testing.assert_allclose(fold.log_density(x), expected, rtol=1e-12)
    placed = fold.points(y)
    for n in range(5):
        for f in range(3):
            by_hand = fold.mean[f] + fold.sign[f] * (scale[f] @ y[n])
            np.testing.assert_allclose(placed[n, f], by_hand, rtol=1e-12)


def test_the_folded_density_has_the_targets_mass_and_moments() -> None:
    """By quadrature over y, for a fold that is far from the target."""
    target = GaussianMixture(np.array([0.7, 0.3]), np.array([[-1.0], [2.0]]), np.array([0.6, 0.4]))
    fold = Fold(
        np.array([0.5, 0.5]),
        np.array([[-0.5], [1.5]]),
        np.array([[[1.2]], [[0.9]]]),
        np.array([1.0, -1.0]),
    )
    y = np.linspace(-9, 9, 20_001)[:, None]
    log_weight = fold.log_weight(y, target.log_density_and_gradient)
    log_ratio = logsumexp(log_weight, axis=1)
    density = np.exp(norm.logpdf(y[:, 0]) + log_ratio)
    assert np.trapezoid(density, y[:, 0]) == pytest.approx(1, rel=1e-9)
    share = np.exp(log_weight - log_ratio[:, None])
    for power, exact in (
        (1, target.truth.expected("x")[0]),
        (2, target.truth.expected("x_squared")[0]),
    ):
        averaged = (share * fold.points(y)[..., 0] ** power).sum(axis=1)
        assert np.trapezoid(density * averaged, y[:, 0]) == pytest.approx(exact, rel=1e-9)


def exact_draws(mixture: GaussianMixture, count: int, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    component = rng.choice(len(mixture.weight), count, p=mixture.weight)
    noise = rng.normal(size=(count, mixture.mean.shape[1]))
    return np.asarray(mixture.mean[component] + mixture.sd[component, None] * noise)


def test_a_fit_to_draws_finds_the_components() -> None:
    points = exact_draws(MIXTURE, 4000, seed=3)
    fitted = fit_fold(
        points, MIXTURE.log_density_and_gradient, settings=FoldSettings(searches=60, widen=1.0)
    )
    assert len(fitted.fold.weight) == 3
    order = np.argsort(-fitted.fold.weight)
    fold = fitted.fold
    # Weights to 4.5 standard errors of a count of 4000; means and variances likewise.
    error = np.sqrt(MIXTURE.weight * (1 - MIXTURE.weight) / 4000)
    assert np.all(np.abs(fold.weight[order] - MIXTURE.weight) < 4.5 * error)
    own = 4000 * MIXTURE.weight
    apart = np.abs(fold.mean[order] - MIXTURE.mean)
    assert np.all(apart < 4.5 * (MIXTURE.sd / np.sqrt(own))[:, None])
    covariance = (fold.scale @ fold.scale.transpose(0, 2, 1))[order]
    relative = covariance / MIXTURE.sd[:, None, None] ** 2 - np.eye(2)
    assert np.all(np.abs(relative) < 4.5 * np.sqrt(2 / own)[:, None, None])
    widened = fit_fold(
        points, MIXTURE.log_density_and_gradient, settings=FoldSettings(searches=60, widen=1.5)
    )
    np.testing.assert_allclose(widened.fold.scale, np.sqrt(1.5) * fold.scale, rtol=1e-10)


def test_all_twenty_modes_of_scenario_a_are_found_and_their_cost_counted() -> None:
    mixture, calls = kou_mixture("a"), 0

    def counting(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        nonlocal calls
        calls += len(points)
        return mixture.log_density_and_gradient(points)

    fitted = fit_fold(exact_draws(mixture, 1024, seed=4), counting)
    assert len(fitted.fold.weight) == 20
    distance = np.linalg.norm(fitted.fold.mean[:, None] - mixture.mean, axis=-1).min(axis=1)
    # Each mean is one of some 51 draws of standard deviation 0.1; 40 coordinates.
    assert distance.max() < 5 * 0.1 / np.sqrt(30)
    assert fitted.gradients == calls


def test_a_target_without_a_mode_is_refused() -> None:
    def slope(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return points[:, 0], np.tile([1.0, 0.0], (len(points), 1))

    with pytest.raises(SamplingError, match="ended at a mode"):
        fit_fold(np.random.default_rng(0).normal(size=(50, 2)), slope)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"weight": np.array([0.5, 0.5])}, "as many weights"),
        ({"weight": np.array([0.5, 0.6, 0.2])}, "sum to one"),
        ({"weight": np.array([0.5, np.nan, 0.2])}, "not finite"),
        ({"mean": np.zeros(3)}, "have shape"),
        ({"scale": np.zeros((2, 2, 2))}, "scale matrices"),
        ({"scale": np.zeros((1, 2, 2))}, "singular"),
        ({"sign": np.array([1.0, 0.5, 1.0])}, "1 or -1"),
    ],
)
def test_bad_folds_are_refused(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=says):
        Fold(**(vars(some_fold()) | changed))


def test_bad_settings_are_refused() -> None:
    for bad in ({"searches": 0}, {"iterations": -1}):
        with pytest.raises(DataError, match="one search"):
            FoldSettings(**bad)
    with pytest.raises(DataError, match="positive"):
        FoldSettings(widen=0.0)


def test_bridge_sampling_of_known_densities_with_honest_errors() -> None:
    """Of exp(3) N(0.8, 1.3^2) from N(0, 1), independent draws and correlated ones."""
    rng, z = np.random.default_rng(6), np.empty((40, 2))
    for run in range(40):
        base = rng.normal(size=500)
        for column, memory in enumerate((0.0, 0.8)):
            noise = rng.normal(size=(4, 400))
            walk = np.empty_like(noise)
            walk[:, 0] = noise[:, 0]
            for t in range(1, 400):
                walk[:, t] = memory * walk[:, t - 1] + np.sqrt(1 - memory**2) * noise[:, t]
            draws = 0.8 + 1.3 * walk

            def log_ratio(x: FloatArray) -> FloatArray:
                return np.asarray(3 + norm.logpdf(x, 0.8, 1.3) - norm.logpdf(x))

            found = bridge_sampling(log_ratio(draws), log_ratio(base)).log_evidence
            z[run, column] = (found.value - 3) / found.mcse
    # 40 chi-squared values: their mean is 1 with standard deviation sqrt(2 / 40) = 0.22.
    assert np.all(np.abs(np.mean(z**2, axis=0) - 1) < 4 * 0.22)
    assert np.all(np.mean(z**2, axis=0) > 0.4)
    assert np.all(np.abs(z.mean(axis=0)) < 4 / np.sqrt(40))


def test_bridge_sampling_of_one_density_is_exact() -> None:
    found = bridge_sampling(np.full((2, 10), 1.5), np.full(7, 1.5)).log_evidence
    assert found.value == pytest.approx(1.5)
    assert found.mcse == pytest.approx(0, abs=1e-12)


def test_bad_ratios_are_refused() -> None:
    with pytest.raises(DataError, match="shapes"):
        bridge_sampling(np.zeros(10), np.zeros(10))
    with pytest.raises(DataError, match="finite"):
        bridge_sampling(np.full((2, 10), np.nan), np.zeros(10))
