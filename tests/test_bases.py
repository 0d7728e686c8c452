"""Gaussian bases: values, and what is refused."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from harness.bases import gaussian_base
from harness.errors import DataError


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
