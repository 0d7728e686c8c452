"""Adapted g of the inverse temperature: a flat marginal by quadrature, and unbiased answers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import inv_temp_interval_masses
from harness.fit import Fit
from harness.model.python_target import function_target
from harness.path import gaussian_base
from harness.samplers.flat_weights import FlatInvTemp, FlatWeights
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.gibbs_tempering import gibbs_tempering
from harness.samplers.joint_hmc import joint_density, joint_hmc
from harness.samplers.kernels import Hmc

# Two modes far apart, under a base that is not matched, with a guess at Z that is off by 5 nats.
WEIGHT, CENTRE, SD = np.array([0.7, 0.3]), np.array([-3.0, 4.0]), np.array([0.6, 0.8])
LOG_Z, LOG_ZETA = 2.0, -3.0
BASE = gaussian_base([0.0], [[16.0]], log_zeta=LOG_ZETA)
MEAN = float(WEIGHT @ CENTRE)
INTERVALS = 16


def log_gamma(x: FloatArray) -> FloatArray:
    height = np.log(WEIGHT) + norm.logpdf(x[..., None], CENTRE, SD)
    return np.asarray(LOG_Z + logsumexp(height, axis=-1))


def with_gradient(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    height = np.log(WEIGHT) + norm.logpdf(x, CENTRE, SD)
    share = np.exp(height - logsumexp(height, axis=1, keepdims=True))
    slope = (share * (CENTRE - x) / SD**2).sum(axis=1, keepdims=True)
    return log_gamma(x[:, 0]), slope


TARGET = function_target("two modes", with_gradient, 1)


def log_path_mass(beta: float) -> float:
    """Log of the integral of gamma_beta, by quadrature."""

    def density(x: float) -> float:
        rise = beta * (log_gamma(np.array(x)) - LOG_ZETA)
        return float(np.exp(rise + (1 - beta) * norm.logpdf(x, 0, 4)))

    return float(np.log(quad(density, -30, 30, points=[-3, 0, 4], limit=200)[0]))


def sampled(kind: str) -> Fit:
    sampler: Any = {"gibbs": gibbs_tempering, "joint": joint_hmc}[kind]
    fit: Fit = sampler(
        TARGET, BASE, chains=50, draws=200, warmup=400, kernel=Hmc(8), flat_intervals=INTERVALS,
        seed=3,
    )  # fmt: skip
    return fit


def test_interval_masses_are_integrals() -> None:
    log_g = np.array([[0.0, 0.3], [0.2, -1.0], [0.7, 2.0], [1.0, 0.0]])
    for delta in (-40.0, 0.0, 3.0, 500.0):

        def density(beta: float, delta: float = delta) -> float:
            return float(np.exp(np.interp(beta, *log_g.T) - beta * delta - max(0.0, -delta)))

        pieces = np.array([quad(density, *ends)[0] for ends in pairwise(log_g[:, 0])])
        np.testing.assert_allclose(
            inv_temp_interval_masses(delta, log_g), pieces / pieces.sum(), rtol=1e-6, atol=1e-12
        )


def test_joint_density_with_a_g() -> None:
    """Values by the formula, slopes by differences away from the knots."""
    log_g = np.array([[0.0, 0.4], [0.3, -2.0], [1.0, 1.0]])
    path = GeometricPath(TARGET, BASE)
    flat = joint_density(with_gradient, path)
    biased = joint_density(with_gradient, path, log_g)
    points = np.random.default_rng(0).normal(0, 1.5, (8, 2))
    beta = 1 / (1 + np.exp(-points[:, 1]))
    expected = flat(points)[0] + np.interp(beta, [0, 0.3, 1], [0.4, -2.0, 1.0])
    np.testing.assert_allclose(biased(points)[0], expected, rtol=1e-12)
    assert np.abs(beta - 0.3).min() > 1e-3
    for k, step in enumerate(1e-5 * np.eye(2)):
        difference = (biased(points + step)[0] - biased(points - step)[0]) / 2e-5
        np.testing.assert_allclose(biased(points)[1][:, k], difference, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["gibbs", "joint"])
def test_marginal_is_flat_and_log_z_right(kind: str) -> None:
    fit = sampled(kind)
    log_g = np.array(fit.settings["log_g"])
    assert log_g.shape == (INTERVALS + 1, 2)
    # The density of beta is g times the path's mass.  With g = 1 it would span 5 nats and more.
    log_mass = np.array([log_path_mass(beta) for beta in log_g[:, 0]])
    height = log_g[:, 1] + log_mass
    assert np.ptp(log_mass) > 4
    # The last 1/t gains average about 50 chains times 300 iterations; the knots' own noise is a
    # few per cent, and half a nat leaves no doubt that it learned.
    assert np.ptp(height) < 0.5
    extended = fit.extended
    assert extended is not None
    beta = extended["inv_temp"].to_numpy()
    expected = np.exp(height - height.max())
    for low, high in ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.0)):
        grid = np.linspace(low, high, 201)
        inside = np.trapezoid(np.exp(np.interp(grid, log_g[:, 0], np.log(expected))), grid)
        whole = np.trapezoid(expected, log_g[:, 0])
        of_chain = ((beta >= low) & (beta < high)).mean(axis=1)
        # Chains are independent given g: five standard errors of the spread of their shares.
        assert abs(of_chain.mean() - inside / whole) < 5 * of_chain.std() / np.sqrt(50) + 0.01
    evidence = fit.log_evidence
    assert abs(evidence.value - LOG_Z) < 4.5 * evidence.mcse < 0.5
    mean = fit.expectation(lambda p: p["x"])
    assert abs(float(mean.value[0]) - MEAN) < 4.5 * float(mean.mcse[0])


def test_fixed_point_of_two_parts() -> None:
    """Part 1 has e^3 times the mass of part 0: its weight ends 3 nats lower."""
    rng, weights = np.random.default_rng(1), FlatWeights(np.array([0.5, 0.5]), 2000)
    for _ in range(2000):
        height = weights.value + np.array([0.0, 3.0])
        share = np.exp(height - logsumexp(height))
        weights.learn(rng.multinomial(1, share, size=4).astype(float))
    # With optimal gains 1/t the variance is that of 1 / (p_0 p_1 n) = 4 / 8,000 at most.
    assert weights.value[1] == pytest.approx(-3, abs=5 * np.sqrt(4 / 4000))


def test_refusals() -> None:
    with pytest.raises(DataError, match="shares"):
        FlatWeights(np.array([0.5, 0.6]), 10)
    with pytest.raises(DataError, match="2 intervals"):
        FlatInvTemp(np.array([[0.0, 0.0], [1.0, 0.0]]), 1, 10)
