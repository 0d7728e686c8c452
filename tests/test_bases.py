"""Gaussian bases: from moments, mixtures, weighted points and fits; and what is refused."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from tempered_fit import tempered_fit

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.forms.bootstrap import bootstrap_base
from harness.path import (
    GaussianBase,
    gaussian_base,
    matched_base,
    mixed_base,
    symmetrised_divergence,
    weighted_base,
    without_duplicates,
)


def random_base(rng: np.random.Generator, dimension: int, log_zeta: float = 0.0) -> GaussianBase:
    root = rng.normal(size=(dimension, dimension))
    covariance = root @ root.T + 0.5 * np.eye(dimension)
    return gaussian_base(rng.normal(size=dimension), covariance, log_zeta=log_zeta)


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_a_base_keeps_its_moments(dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    root = rng.normal(size=(dimension, dimension))
    mean, covariance = rng.normal(size=dimension), root @ root.T + np.eye(dimension)
    base = gaussian_base(mean, covariance, log_zeta=-3)
    assert np.array_equal(base.mean, mean)
    assert base.cholesky.shape == (dimension, dimension)
    assert np.array_equal(base.cholesky, np.tril(base.cholesky))
    assert np.all(np.diag(base.cholesky) > 0)
    np.testing.assert_allclose(base.cholesky @ base.cholesky.T, covariance, rtol=1e-12)
    np.testing.assert_allclose(base.covariance, covariance, rtol=1e-12)
    assert base.log_zeta == -3
    assert isinstance(base.log_zeta, float)


def test_a_cholesky_factor_by_hand() -> None:
    base = gaussian_base([1, 2], [[4, 2], [2, 10]])
    np.testing.assert_allclose(base.cholesky, [[2, 0], [1, 3]], rtol=1e-15)
    assert base.mean.dtype == np.float64
    assert base.log_zeta == 0


def test_rounding_does_not_make_a_covariance_asymmetric() -> None:
    covariance = np.array([[1.0, 0.3], [0.3 * (1 + 1e-13), 1.0]])
    assert gaussian_base([0, 0], covariance).covariance[0, 1] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("mean", "covariance", "log_zeta", "message"),
    [
        (0.0, [[1.0]], 0, r"got \(\) and \(1, 1\)"),
        ([0.0], 1.0, 0, r"got \(1,\) and \(\)"),
        ([0.0], [1.0], 0, "mean"),
        ([0.0, 1.0], [[1.0]], 0, r"got \(2,\) and \(1, 1\)"),
        ([0.0, 1.0], [1.0, 1.0], 0, r"\(D, D\)"),
        ([[0.0]], [[1.0]], 0, "mean"),
        ([0.0], [[1.0, 0.0]], 0, "mean"),
        ([np.nan], [[1.0]], 0, "finite"),
        ([np.inf], [[1.0]], 0, "finite"),
        ([0.0], [[np.nan]], 0, "finite"),
        ([0.0], [[np.inf]], 0, "finite"),
        ([0.0], [[1.0]], np.nan, "finite"),
        ([0.0], [[1.0]], -np.inf, "finite"),
        ([0.0, 0.0], [[1.0, 0.5], [0.4, 1.0]], 0, "not symmetric"),
        ([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]], 0, "not symmetric"),
        ([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]], 0, "not positive definite"),
        ([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]], 0, "not positive definite"),
        ([0.0], [[-1.0]], 0, "not positive definite"),
        ([0.0], [[0.0]], 0, "not positive definite"),
    ],
)
def test_bad_moments_are_refused(
    mean: npt.ArrayLike, covariance: npt.ArrayLike, log_zeta: float, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        gaussian_base(mean, covariance, log_zeta=log_zeta)


def test_a_base_does_not_change_with_the_callers_array() -> None:
    mean = np.zeros(2)
    base = gaussian_base(mean, np.eye(2))
    mean[0] = 7.0
    assert np.array_equal(base.mean, [0, 0])


def test_a_base_without_dimensions_is_refused() -> None:
    with pytest.raises(DataError, match="mean"):
        gaussian_base([], np.empty((0, 0)))


@pytest.mark.parametrize("dimension", [1, 3])
def test_log_density_and_gradient_are_the_normal_ones(dimension: int) -> None:
    rng = np.random.default_rng(7 + dimension)
    base = random_base(rng, dimension)
    points = rng.normal(scale=3, size=(4, 2, dimension))
    reference = multivariate_normal(base.mean, base.covariance)
    value = reference.logpdf(points.reshape(-1, dimension)).reshape(4, 2)
    np.testing.assert_allclose(base.log_density(points), value, rtol=1e-12)
    gradient = -(points - base.mean) @ np.linalg.inv(base.covariance)
    np.testing.assert_allclose(base.log_density_gradient(points), gradient, rtol=1e-10)
    whitened = base.whiten(points)
    np.testing.assert_allclose(base.mean + whitened @ base.cholesky.T, points, rtol=1e-10)


def test_points_of_another_dimension_are_refused() -> None:
    with pytest.raises(DataError, match="has dimension 2"):
        gaussian_base([0, 0], np.eye(2)).log_density(np.zeros((5, 3)))


def test_draws_have_the_moments_of_the_base() -> None:
    rng = np.random.default_rng(3)
    base, n = random_base(rng, 3), 20_000
    draws = base.sample(rng, n)
    assert draws.shape == (n, 3)
    variance = np.diag(base.covariance)
    assert np.all(np.abs(draws.mean(axis=0) - base.mean) < 4 * np.sqrt(variance / n))
    # Var of a sample covariance: (s_ii s_jj + s_ij^2) / n.
    error = np.sqrt((np.outer(variance, variance) + base.covariance**2) / n)
    assert np.all(np.abs(np.cov(draws.T) - base.covariance) < 4 * error)


def test_a_mixture_in_one_dimension_matched_by_hand() -> None:
    # Weights 1/4 and 3/4: mean 3, variance (2 + 3 * 6) / 4 + (1/4)(3/4) 4^2 = 8.
    base = matched_base([[0.0], [4.0]], [[[2.0]], [[6.0]]], np.log([0.5, 1.5]) - 20)
    np.testing.assert_allclose(base.mean, [3.0], rtol=1e-14)
    np.testing.assert_allclose(base.covariance, [[8.0]], rtol=1e-14)
    assert base.log_zeta == pytest.approx(np.log(2) - 20, rel=1e-14)


def test_a_mixture_is_matched_in_mean_and_covariance() -> None:
    rng = np.random.default_rng(11)
    fits = [random_base(rng, 3, log_zeta) for log_zeta in (800.0, 801.5, 799.0)]
    base = mixed_base(fits)
    weight = np.exp([fit.log_zeta - 800 for fit in fits])
    weight /= weight.sum()
    first = sum(w * fit.mean for w, fit in zip(weight, fits, strict=True))
    second = sum(
        w * (fit.covariance + np.outer(fit.mean, fit.mean))
        for w, fit in zip(weight, fits, strict=True)
    )
    np.testing.assert_allclose(base.mean, first, rtol=1e-12)
    np.testing.assert_allclose(
        base.covariance, second - np.outer(first, first), rtol=1e-10, atol=1e-12
    )
    assert base.log_zeta == pytest.approx(logsumexp([800, 801.5, 799]), rel=1e-14)


def test_a_mixture_of_one_is_that_one_and_no_evidence_leaves_a_fit_out() -> None:
    fit = random_base(np.random.default_rng(2), 2, -4.0)
    base = matched_base(
        [fit.mean, fit.mean + 9], [fit.covariance, 2 * fit.covariance], [-4.0, -np.inf]
    )
    np.testing.assert_allclose(base.mean, fit.mean, rtol=1e-14)
    np.testing.assert_allclose(base.covariance, fit.covariance, rtol=1e-12)
    assert base.log_zeta == -4.0


@pytest.mark.parametrize(
    ("means", "covariances", "log_evidences", "message"),
    [
        (np.empty((0, 2)), np.empty((0, 2, 2)), [], r"\(K, D\)"),
        ([0.0, 1.0], np.ones((2, 1, 1)), [0, 0], r"\(K, D\)"),
        ([[0.0], [1.0]], np.ones((2, 2, 2)), [0, 0], "as many covariances"),
        ([[0.0], [1.0]], np.ones((2, 1, 1)), [0], "log evidences"),
        ([[0.0], [1.0]], [[[1.0]], [[-1.0]]], [0, 0], "not positive definite"),
        ([[0.0], [np.nan]], np.ones((2, 1, 1)), [0, 0], "finite"),
        ([[0.0], [1.0]], np.ones((2, 1, 1)), [0, np.nan], "finite"),
        ([[0.0], [1.0]], np.ones((2, 1, 1)), [-np.inf, -np.inf], "finite"),
    ],
)
def test_bad_mixtures_are_refused(
    means: npt.ArrayLike, covariances: npt.ArrayLike, log_evidences: npt.ArrayLike, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        matched_base(means, covariances, log_evidences)


def test_fits_of_different_dimensions_are_not_mixed() -> None:
    with pytest.raises(DataError, match="the same dimension"):
        mixed_base([gaussian_base([0], [[1]]), gaussian_base([0, 0], np.eye(2))])
    with pytest.raises(DataError, match="one or more"):
        mixed_base([])


def test_of_fits_of_one_mode_the_one_with_most_evidence_stays() -> None:
    # Standard deviation 2: the second lies 0.9 of it from the first, the third 1.1.
    fits = [
        gaussian_base([at, 0.0], 4 * np.eye(2), log_zeta=log_zeta)
        for at, log_zeta in ((1.8, -3.0), (0.0, -1.0), (-2.2, -2.0), (50.0, -9.0))
    ]
    kept = without_duplicates(fits)
    assert [fit.mean[0] for fit in kept] == [0.0, -2.2, 50.0]
    assert [fit.mean[0] for fit in without_duplicates(fits, separation=0.5)][:2] == [0.0, -2.2]
    assert len(without_duplicates(fits, separation=0.5)) == 4
    with pytest.raises(DataError, match="must be positive"):
        without_duplicates(fits, separation=0)


def test_equal_weights_give_the_sample_moments() -> None:
    points = np.random.default_rng(4).normal(size=(50, 3)) @ np.diag([1.0, 5.0, 0.1])
    base = weighted_base(points, log_zeta=2.5)
    np.testing.assert_allclose(base.mean, points.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(base.covariance, np.cov(points.T), rtol=1e-10, atol=1e-12)
    assert base.log_zeta == 2.5


def test_weights_count_as_they_should() -> None:
    points = np.random.default_rng(5).normal(size=(40, 2))
    weight = np.random.default_rng(6).uniform(0.2, 1, size=40)
    base = weighted_base(points, np.log(weight) + 700)
    np.testing.assert_allclose(base.mean, np.average(points, axis=0, weights=weight), rtol=1e-12)
    np.testing.assert_allclose(base.covariance, np.cov(points.T, aweights=weight), rtol=1e-10)


@pytest.mark.parametrize(
    ("points", "log_weight", "message"),
    [
        (np.zeros(3), None, r"\(n, D\)"),
        (np.full((9, 2), np.nan), None, "finite"),
        (np.ones((9, 2)), np.zeros(8), "as many log weights"),
        (np.random.default_rng(0).normal(size=(3, 2)), None, "3.0 effective points"),
        (
            np.random.default_rng(0).normal(size=(99, 2)),
            np.r_[0, np.full(98, -50)],
            "1.0 effective points",
        ),
        (np.ones((9, 2)), None, "not positive definite"),
    ],
)
def test_points_that_make_no_base_are_refused(
    points: FloatArray, log_weight: FloatArray | None, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        weighted_base(points, log_weight)


def kullback_leibler(p: GaussianBase, q: GaussianBase) -> float:
    precision = np.linalg.inv(q.covariance)
    shift = q.mean - p.mean
    log_det = np.log(np.linalg.det(q.covariance) / np.linalg.det(p.covariance))
    trace = np.trace(precision @ p.covariance)
    return float(0.5 * (trace + shift @ precision @ shift - p.mean.size + log_det))


def test_the_divergence_of_two_bases_is_kullback_and_leiblers_both_ways() -> None:
    rng = np.random.default_rng(8)
    one, other = random_base(rng, 3, 5.0), random_base(rng, 3)
    expected = kullback_leibler(one, other) + kullback_leibler(other, one)
    assert symmetrised_divergence(one, other) == pytest.approx(expected, rel=1e-10)
    assert symmetrised_divergence(one, one) == pytest.approx(0, abs=1e-12)
    with pytest.raises(DataError, match="dimension"):
        symmetrised_divergence(one, random_base(rng, 2))


def test_the_divergence_of_two_fits_to_one_target_is_what_the_draws_allow() -> None:
    rng = np.random.default_rng(9)
    truth, n, dimension = random_base(rng, 3), 500, 3
    values = [
        symmetrised_divergence(
            weighted_base(truth.sample(rng, n)), weighted_base(truth.sample(rng, n))
        )
        for _ in range(200)
    ]
    expected = dimension * (dimension + 3) / n
    # First order in 1/n: the next term is about a hundredth of it.
    assert abs(np.mean(values) - expected) < 4 * np.std(values) / np.sqrt(200) + 0.02 * expected


def test_the_bootstrap_takes_the_targets_moments_and_evidence() -> None:
    model, fit, truth = tempered_fit()
    base = bootstrap_base(model, fit)
    draws = fit.tree["extended"]
    weight = np.exp(draws["log_w1"].to_numpy()).ravel()
    # Base coordinates by hand: x in column-major order, then log scale.
    points = np.column_stack(
        [
            *(draws["x"].to_numpy()[..., i, j].ravel() for j in range(2) for i in range(2)),
            np.log(draws["scale"].to_numpy()).ravel(),
        ]
    )
    np.testing.assert_allclose(base.mean, np.average(points, axis=0, weights=weight), rtol=1e-10)
    np.testing.assert_allclose(
        base.covariance, np.cov(points.T, aweights=weight), rtol=1e-8, atol=1e-10
    )
    assert base.log_zeta == fit.log_evidence.value
    assert abs(base.log_zeta - truth.log_zeta) < 4 * fit.log_evidence.mcse
    effective = weight.sum() ** 2 / (weight**2).sum()
    error = np.sqrt(np.diag(truth.covariance) / effective)
    assert np.all(np.abs(base.mean - truth.mean) < 4 * error)


def test_the_bootstrap_refuses_fits_that_do_not_say() -> None:
    model, fit, _ = tempered_fit()
    fixed = tempered_fit(inv_temp=0.5)[1]
    with pytest.raises(DataError, match="temperatures were fixed"):
        bootstrap_base(model, fixed)
    other = type(model)("another", model.folder, model.data, model.parameters, model.dimension)
    with pytest.raises(DataError, match="not of another"):
        bootstrap_base(other, fit)
    with pytest.raises(DataError, match="not continuously tempered"):
        bootstrap_base(model, tempered_fit(extended=False)[1])
