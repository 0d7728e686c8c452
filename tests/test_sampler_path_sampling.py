"""Path sampling: the integral from exact draws, g that warm-up finds, log Z with honest errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from known_targets import KNOWN, one_dimensional_mixture
from log_gaussian import log_gaussian
from scipy.stats import chi2

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import expectation
from harness.model.python_target import function_target
from harness.path import gaussian_base
from harness.samplers.kernels import Hmc
from harness.samplers.path_sampling import (
    PATH_SAMPLING,
    Curve,
    flattening,
    integrand,
    path_sampling,
)

LOG_Z = 0.5 * np.log(1 / 4)  # of b N(0, 1) and gamma = exp(-2 x^2) / sqrt(2 pi)


def gaussian_path(rng: np.random.Generator, draws: int) -> tuple[FloatArray, FloatArray]:
    """Exact draws of beta, with density 2 (1 - beta / 2) / 1.5, and of U given beta."""
    uniform = rng.random((4, draws))
    beta = 2 - np.sqrt(4 - 3 * uniform)
    x = rng.standard_normal(beta.shape) / np.sqrt(1 + 3 * beta)
    return -1.5 * x**2, beta


def test_the_integral_of_exact_draws() -> None:
    slope, beta = gaussian_path(np.random.default_rng(1), 20_000)
    curve = integrand(slope, beta, 25)
    mcse = float(expectation(curve.residual).mcse)
    assert 0.001 < mcse < 0.01
    assert abs(curve.integral[-1] - LOG_Z) < 4 * mcse
    # E[U | beta] = -1.5 / (1 + 3 beta) and Var = 4.5 / (1 + 3 beta)^2 in the middle of each band.
    middle = (curve.edges[1:] + curve.edges[:-1]) / 2
    error = curve.spread / np.sqrt(80_000 / 25)
    assert np.all(np.abs(curve.height + 1.5 / (1 + 3 * middle)) < 4.5 * error + 2e-3)
    np.testing.assert_allclose(curve.spread, np.sqrt(4.5) / (1 + 3 * middle), rtol=0.15)
    # The residual series is centred: it adds nothing to the estimate.
    assert abs(curve.residual.mean()) < 1e-12


def test_the_integrals_error_is_honest() -> None:
    rng = np.random.default_rng(5)
    z = np.empty(40)
    for run in range(40):
        slope, beta = gaussian_path(rng, 1000)
        curve = integrand(slope, beta, 12)
        z[run] = (curve.integral[-1] - LOG_Z) / float(expectation(curve.residual).mcse)
    assert 0.5 < np.mean(z**2) < 1.8


def test_flattened_g_of_a_known_path() -> None:
    """Of a path whose U has spread 2 and then 1, and slope -1 throughout."""
    curve = Curve(
        np.array([0.0, 0.5, 1.0]), np.array([-1.0, -1.0]), np.array([2.0, 1.0]), np.empty(0)
    )
    knots = flattening(curve, 4)
    # Half of beta has two thirds of the length: knots at each third of it.
    np.testing.assert_allclose(knots[:, 0], [0, 0.25, 0.5, 1], atol=1e-12)
    # Log g = log sd - log Z, with log Z = -beta.
    log_sd = np.log([2.0, 2.0, np.sqrt(2.0), 1.0])
    np.testing.assert_allclose(knots[:, 1], log_sd + knots[:, 0], atol=1e-12)


@pytest.mark.parametrize("name", KNOWN)
def test_log_evidence_and_mean(name: str) -> None:
    known = KNOWN[name]()
    fit = path_sampling(known.target, known.base, draws=1000, warmup=400, seed=3)
    estimate = fit.log_evidence
    assert 0 < estimate.mcse < 0.15
    assert abs(estimate.value - known.log_z) < 4 * estimate.mcse
    mean = fit.expectation(lambda draws: draws["x"])
    assert np.all(np.abs(mean.value - known.mean) < 4.5 * mean.mcse)
    # The ratio of weights, path sampling with beta averaged out, has the same draws.
    averaged = fit.tempered.log_evidence()
    assert abs(averaged.value - known.log_z) < 4 * averaged.mcse
    assert abs(averaged.value - estimate.value) < 4 * estimate.mcse


@pytest.mark.slow
def test_reported_errors_are_honest() -> None:
    known = one_dimensional_mixture()
    z = np.empty(40)
    for seed in range(40):
        fit = path_sampling(
            known.target,
            known.base,
            bands=10,
            chains=16,
            draws=200,
            warmup=100,
            kernel=Hmc(leapfrog_steps=3),
            seed=seed,
        )
        z[seed] = (fit.log_evidence.value - known.log_z) / fit.log_evidence.mcse
    # Mean squares of 40 z scores: chi^2_40 / 40 lies outside with 0.8% and 0.1%.
    assert chi2.cdf(40 * 0.5, 40) < 0.01
    assert chi2.sf(40 * 1.8, 40) < 0.01
    assert 0.5 < np.mean(z**2) < 1.8


def test_warm_up_makes_beta_move_evenly() -> None:
    """Between the knots of the g that it finds, a Gaussian's chain spends equal times."""
    known = KNOWN["gaussian"]()
    fits = [
        path_sampling(
            known.target, known.base, bands=8, adapt_g=adapt, draws=1000, warmup=1000, seed=1
        )
        for adapt in (False, True)
    ]
    assert fits[0].settings["log_g"] == [[0.0, 0.0], [1.0, 0.0]]
    knots = np.array(fits[1].settings["log_g"])
    assert knots.shape == (9, 2)
    # The base is wide and the log normaliser deep: unadapted, the chain stays at one end.
    uneven, even = (
        np.histogram(fit.extended["inv_temp"], knots[:, 0])[0] / 16_000  # type: ignore[index]
        for fit in fits
    )
    assert np.abs(even - 1 / 8).max() < 0.08
    assert np.abs(uneven - 1 / 8).max() > 2 * np.abs(even - 1 / 8).max()


def test_a_base_that_the_support_cuts_off() -> None:
    def half_normal(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        value = -0.5 * np.square(points[:, 0])
        return np.where(points[:, 0] > 0, value, -np.inf), -points

    fit = path_sampling(
        function_target("half", half_normal, 1), gaussian_base([0.5], [[2.0]]), bands=5, seed=1
    )
    estimate = fit.log_evidence
    assert 0.01 < estimate.mcse < 0.1
    assert abs(estimate.value - 0.5 * np.log(np.pi / 2)) < 4 * estimate.mcse


def test_same_seed_same_draws_and_cost() -> None:
    known = one_dimensional_mixture()

    def run(seed: int) -> FloatArray:
        fit = path_sampling(
            known.target, known.base, bands=3, chains=4, draws=40, warmup=32, seed=seed
        )
        assert fit.gradients == 4 + 4 * 5 * 72
        assert fit.tree.attrs["densities"] == 4 + 4096
        return np.asarray(fit.tree["extended"]["x"])

    first = run(8)
    np.testing.assert_array_equal(first, run(8))
    assert not np.array_equal(first, run(9))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"bands": 0}, "1 band"),
        ({"chains": 0}, "1 chain"),
        ({"draws": 3}, "4 draws"),
        ({"warmup": -1}, "warm-up"),
        ({"chains": 1, "draws": 100}, "too few for 20 bands"),
        ({"log_g": ((0.0, 0.0), (0.5, 0.0))}, "from beta = 0 to 1"),
        ({"log_g": ()}, "knots"),
    ],
)
def test_bad_settings_are_one_clear_error(settings: dict[str, Any], says: str) -> None:
    known = one_dimensional_mixture()
    given: dict[str, Any] = {"seed": 1} | settings
    with pytest.raises(DataError, match=says):
        path_sampling(known.target, known.base, **given)


def test_an_experiment_runs_it_on_a_model() -> None:
    pytest.importorskip("stanli", reason="stanli, which evaluates Stan programs, is missing")
    model, truth = log_gaussian()
    base = gaussian_base(truth.mean + 0.3, 2 * truth.covariance)
    fit = PATH_SAMPLING.sample(
        model, nuts=None, seed=1, compiled=None, base=base, chains=8, draws=300, warmup=100
    )
    assert fit.tree.attrs["method"] == PATH_SAMPLING.name
    assert set(fit.posterior) == {"x", "scale"}
    assert abs(fit.log_evidence.value - truth.log_zeta) < 4 * fit.log_evidence.mcse
    mean = fit.expectation(lambda draws: draws["x"])
    exact = truth.mean[:4].reshape(2, 2).T  # column-major
    # 4 standard errors of four coordinates, and a quarter for what they are known to.
    assert np.all(np.abs(mean.value - exact) < 5 * mean.mcse)
    assert np.all(mean.mcse < 0.3)
