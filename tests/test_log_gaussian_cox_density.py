"""Tempered programs of the log-Gaussian Cox process against SciPy, whitened and centred."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from path_densities import Ends, check_collapsed, check_joint, check_pseudo_extended
from scipy.stats import expon, multivariate_normal, norm, poisson

from harness.arrays import FloatArray
from harness.models.log_gaussian_cox import LogGaussianCox
from harness.path import gaussian_base

DATA = LogGaussianCox(np.array([[3, 0], [7, 2]]), field_mean=1.5)
DIMENSION = DATA.size + 2
MODELS = {each: DATA.model(f"cox, {each}", centred=each) for each in (False, True)}
BASE = gaussian_base(np.linspace(-0.5, 1, DIMENSION), 0.5 * np.eye(DIMENSION) + 0.3, log_zeta=-9.5)
GAUSSIAN = multivariate_normal(BASE.mean, BASE.covariance)
KNOTTED = ((0.0, 1.0), (0.2, -0.5), (0.7, 0.4), (1.0, 2.0))
PATHS: dict[str, dict[str, Any]] = {
    "prior": {"log_zeta": -8.0},
    "Gaussian, knotted g": {"base": BASE, "log_g": KNOTTED},
}
CENTRED = pytest.mark.parametrize("centred", [False, True], ids=["whitened", "centred"])
PATH = pytest.mark.parametrize("name", PATHS)
POINTS: FloatArray = np.random.default_rng(4).normal(0, 0.6, (4, DIMENSION))


def covariance(sigma2: float, reach: float) -> FloatArray:
    """Of four cells whose centres span the unit square, written out."""
    found = np.empty((4, 4))
    for a in range(4):
        for b in range(4):
            found[a, b] = np.hypot(a // 2 - b // 2, a % 2 - b % 2)
    return np.asarray(sigma2 * np.exp(-found / (2 * reach)))


def ends_of(name: str, *, centred: bool) -> Ends:
    """Log target and log base of (log sigma2, log range, z or x), by SciPy."""

    def ends(u: FloatArray) -> tuple[float, float]:
        sigma2, reach = np.exp(u[:2])
        sigma = covariance(sigma2, reach)
        x = u[2:] if centred else 1.5 + np.linalg.cholesky(sigma) @ u[2:]
        log_prior = np.sum(expon.logpdf([sigma2, reach])) + u[:2].sum()
        log_prior += (
            multivariate_normal.logpdf(x, np.full(4, 1.5), sigma)
            if centred
            else np.sum(norm.logpdf(u[2:]))
        )
        log_likelihood = np.sum(poisson.logpmf([3, 0, 7, 2], np.exp(x) / 4))
        log_base = log_prior if name == "prior" else GAUSSIAN.logpdf(u)
        return float(log_likelihood + log_prior), float(log_base)

    return ends


@CENTRED
@PATH
@pytest.mark.parametrize("inv_temp", [None, 0.0, 0.35, 1.0])
def test_joint_tempering(centred: bool, name: str, inv_temp: float | None) -> None:
    ends = ends_of(name, centred=centred)
    check_joint(MODELS[centred], ends, PATHS[name], inv_temp, POINTS[:3])


@CENTRED
@PATH
@pytest.mark.parametrize("ladder", [False, True])
def test_collapsed_tempering(centred: bool, name: str, ladder: bool) -> None:
    ends = ends_of(name, centred=centred)
    check_collapsed(MODELS[centred], ends, PATHS[name], POINTS[:3], ladder=ladder)


@CENTRED
@PATH
@pytest.mark.parametrize("ladder", [None, [0.0, 0.8]])
def test_pseudo_extended(centred: bool, name: str, ladder: list[float] | None) -> None:
    ends = ends_of(name, centred=centred)
    pairs = POINTS.reshape(2, 2, DIMENSION)
    check_pseudo_extended(MODELS[centred], ends, PATHS[name], ladder, pairs, [1, 1, DATA.size])
