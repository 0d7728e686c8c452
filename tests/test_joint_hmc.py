"""Joint continuous tempering by HMC: its density by differences, its answers in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.model.python_target import function_target, target_of
from harness.models.boltzmann import generate, relax
from harness.models.boltzmann_mean_field import mean_field_base
from harness.path import gaussian_base
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.joint_hmc import joint_density, joint_hmc
from harness.samplers.kernels import Hmc

RELAXATION = relax(generate(8, np.random.default_rng(3)))
MODEL = RELAXATION.model("boltzmann-8")
BASE = mean_field_base(RELAXATION, np.random.default_rng(0), starts=50)


def test_joint_density_and_gradient() -> None:
    path = GeometricPath(target_of(MODEL), BASE)
    density = joint_density(RELAXATION.log_density_and_gradient, path)
    points = np.random.default_rng(1).normal(0, 1.5, (6, MODEL.dimension + 1))
    value, slope = density(points)
    log_base = multivariate_normal(BASE.mean, BASE.covariance).logpdf(points[:, :-1])
    log_gamma = RELAXATION.log_density_and_gradient(points[:, :-1])[0]
    beta = 1 / (1 + np.exp(-points[:, -1]))
    expected = beta * (log_gamma - BASE.log_zeta) + (1 - beta) * log_base
    np.testing.assert_allclose(value, expected + np.log(beta * (1 - beta)), rtol=1e-10)
    for k, step in enumerate(1e-5 * np.eye(points.shape[1])):
        difference = (density(points + step)[0] - density(points - step)[0]) / 2e-5
        np.testing.assert_allclose(slope[:, k], difference, rtol=1e-5, atol=1e-6)


def test_log_z_and_moments_of_a_relaxation() -> None:
    """Within five of the run's own standard errors of exact answers."""
    fit = joint_hmc(MODEL, BASE, chains=20, draws=1000, warmup=200, seed=5)
    truth = RELAXATION.exact()
    evidence = fit.log_evidence
    assert abs(evidence.value - truth.log_z) < 5 * evidence.mcse < 0.5
    mean, mcse = fit.expectation(lambda draws: draws["x"])
    assert np.all(np.abs(mean - truth.expected_x) < 5 * mcse)
    assert fit.gradients == 20 * (2 + 20 * 1200)
    extended = fit.extended
    assert extended is not None
    assert 0 < float(extended["inv_temp"].min()) < 0.05 < 0.95 < float(extended["inv_temp"].max())


def test_where_target_and_base_agree_beta_is_uniform() -> None:
    base = gaussian_base(np.zeros(2), np.eye(2), log_zeta=1.0)

    def standard(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return base.log_density(x) + 1.0, base.log_density_gradient(x)

    fit = joint_hmc(
        function_target("normal", standard, 2), base, chains=50, draws=400, kernel=Hmc(8),
        step_size=0.5, seed=1,
    )  # fmt: skip
    assert fit.log_evidence.value == pytest.approx(1.0, abs=1e-9)  # all weights are one
    extended = fit.extended
    assert extended is not None
    beta = extended["inv_temp"].to_numpy()
    # Chains are independent: five standard errors of the spread of their means.
    of_chain = beta.mean(axis=1)
    assert abs(of_chain.mean() - 0.5) < 5 * of_chain.std() / np.sqrt(50)
    squares = np.square(beta - 0.5).mean(axis=1)
    assert abs(squares.mean() - 1 / 12) < 5 * squares.std() / np.sqrt(50)


def test_seed_and_refusals() -> None:
    first, second = (joint_hmc(MODEL, BASE, chains=2, draws=5, warmup=50, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.posterior["x"], second.posterior["x"])
    for wrong in ({"chains": 0}, {"draws": 0}, {"warmup": -1}):
        with pytest.raises(DataError, match="joint tempering needs"):
            joint_hmc(MODEL, BASE, **wrong, seed=1)  # type: ignore[arg-type]
