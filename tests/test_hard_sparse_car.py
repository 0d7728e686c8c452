"""Sparse CAR: its density from the multivariate normal that it is, log Z by nested integrals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hard_target import Parts
from scipy.special import gammaln, logsumexp
from scipy.stats import gamma, multivariate_normal, norm, poisson

from harness.arrays import FloatArray
from harness.models.hard.sparse_car import sparse_car

MODEL = sparse_car()
DATA = {name: np.array(value) for name, value in MODEL.data.items()}
NEIGHBOURS = np.zeros((56, 56))
NEIGHBOURS[tuple(DATA["edge"].T - 1)] = 1
NEIGHBOURS += NEIGHBOURS.T
DEGREE = NEIGHBOURS.sum(axis=0)
FREEDOM = 30
"""Degrees of freedom of the proposals."""


def test_density(tmp_path: Path) -> None:
    parts = Parts(MODEL, tmp_path)
    rng = np.random.default_rng(3)
    for alpha, tau, size in ((0.93, 1.6, 0.5), (1e-9, 30.0, 0.1), (1 - 1e-7, 1e-4, 6.0)):
        slope, intercept, *phi = size * rng.normal(size=58)
        precision = tau * (np.diag(DEGREE) - alpha * NEIGHBOURS)
        prior = (
            gamma(2, scale=1 / 2).logpdf(tau)
            + np.sum(norm.logpdf([slope, intercept]))
            + multivariate_normal(np.zeros(56), np.linalg.inv(precision)).logpdf(phi)
        )
        rate = DATA["E"] * np.exp(intercept + slope * DATA["x"] + phi)
        values = {"alpha": alpha, "tau": tau, "slope": slope, "intercept": intercept, "phi": phi}
        log_prior, likelihood = parts.at(values)
        # SciPy inverts a matrix twice whose condition is 10^8 at the last point.
        assert log_prior == pytest.approx(prior, rel=1e-6)
        assert likelihood == pytest.approx(poisson(rate).logpmf(DATA["y"]).sum(), rel=1e-9)


def log_integrals(alpha: float, tau: float, normal: FloatArray, chi: FloatArray) -> FloatArray:
    """Log of the integral over slope, intercept and phi by importance sampling with a Student t.

    It is centred at the mode, which Newton's method finds, and has the curvature there.  Returned
    are the log weights of the given standard variables.
    """
    design = np.column_stack([DATA["x"], np.ones(56), np.eye(56)])
    precision = np.eye(58)
    precision[2:, 2:] = tau * (np.diag(DEGREE) - alpha * NEIGHBOURS)
    at = np.zeros(58)
    for _ in range(25):
        rate = DATA["E"] * np.exp(design @ at)
        slope = design.T @ (DATA["y"] - rate) - precision @ at
        curvature = precision + design.T @ (rate[:, None] * design)
        step = np.linalg.solve(curvature, slope)
        at = at + step / max(1.0, np.abs(step).max())
    root = np.linalg.cholesky(np.linalg.inv(curvature))
    scaled = normal / np.sqrt(chi / FREEDOM)[:, None]
    points = at + scaled @ root.T
    predictor = points @ design.T + np.log(DATA["E"])
    log_target = (
        poisson.logpmf(DATA["y"], np.exp(predictor)).sum(axis=1)
        - 0.5 * np.einsum("ni,ij,nj->n", points, precision, points)
        + 0.5 * np.linalg.slogdet(precision / (2 * np.pi))[1]
    )
    return np.asarray(log_target - log_t(scaled) + np.log(np.diag(root)).sum())


def log_t(x: FloatArray) -> FloatArray:
    """Log density of a standard Student t in 58 dimensions."""
    constant = gammaln((FREEDOM + 58) / 2) - gammaln(FREEDOM / 2) - 29 * np.log(FREEDOM * np.pi)
    return np.asarray(constant - (FREEDOM + 58) / 2 * np.log1p(np.sum(x**2, axis=1) / FREEDOM))


def test_truth() -> None:
    """Gauss-Legendre in -log(1 - alpha) and trapezoids in log tau, sampling within.

    Both rules converge fast: with 16 and 17 nodes nothing changes but the noise.
    """
    rng = np.random.default_rng(1)
    draws = 300
    node, weight = np.polynomial.legendre.leggauss(12)
    u, log_tau = 7 * (node + 1), np.linspace(-1.8, 2.2, 11)
    alpha, tau = -np.expm1(-u), np.exp(log_tau)
    log_cell = np.add.outer(
        np.log(7 * weight) - u, gamma(2, scale=1 / 2).logpdf(tau) + log_tau + np.log(0.4)
    )
    error = np.empty((12, 11))
    for (row, column), _ in np.ndenumerate(error):
        standard = rng.normal(size=(draws, 58)), rng.chisquare(FREEDOM, draws)
        log_weight = log_integrals(float(alpha[row]), float(tau[column]), *standard)
        log_mean = logsumexp(log_weight) - np.log(draws)
        log_cell[row, column] += log_mean
        error[row, column] = np.std(np.exp(log_weight - log_mean)) / np.sqrt(draws)
    log_z = logsumexp(log_cell)
    share = np.exp(log_cell - log_z)
    se = np.sqrt(np.sum((share * error) ** 2))
    assert se < 0.05
    truth = MODEL.truth
    assert abs(log_z - truth.log_evidence.value) < 4 * np.hypot(se, truth.log_evidence.error)
    for name, values in (("alpha", alpha[:, None]), ("tau", tau[None])):
        mean = np.sum(share * values)
        spread = np.sqrt(np.sum((share * error * (values - mean)) ** 2))
        expected = truth.expectations[name]
        assert abs(mean - expected.value) < 4 * np.hypot(spread, expected.error)
