"""Python-driven samplers where the target is zero on a part of the base: log Z, means, islands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, truncnorm

from harness.arrays import FloatArray
from harness.diagnosis import diagnose
from harness.fit import Fit
from harness.model.python_target import Target, function_target
from harness.path import gaussian_base
from harness.samplers.annealed_importance import annealed_importance, bidirectional
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.gibbs_tempering import gibbs_tempering
from harness.samplers.joint_hmc import joint_hmc
from harness.samplers.kernels import Hmc
from harness.samplers.ladders import uniform_ladder
from harness.samplers.parallel_tempering import parallel_tempering
from harness.samplers.path_sampling import path_sampling
from harness.samplers.sequential_monte_carlo import sequential_monte_carlo
from harness.samplers.simulated_tempering import log_rung_probabilities, simulated_tempering
from harness.samplers.tempered_transitions import tempered_transitions

# A normal distribution above an edge, nothing below it; 41 % of the base lies above.
EDGE, MEAN, SD = 1.0, 1.5, 0.8
LOG_Z = float(1.7 + norm.logsf(EDGE, MEAN, SD))
BASE = gaussian_base([0.4], [[6.25]], log_zeta=1.0)
MASS = float(norm.logsf(EDGE, 0.4, 2.5))
EXACT_MEAN = float(truncnorm((EDGE - MEAN) / SD, np.inf, MEAN, SD).mean())
LADDER = uniform_ladder(6)


def edged(inside: Callable[[FloatArray], Any], outside: float = -np.inf) -> Target:
    """The normal density where ``inside``, and elsewhere -inf with a gradient that is no number."""

    def log_density(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        x = points[:, 0]
        possible = inside(x)
        value = np.where(possible, 1.7 + norm.logpdf(x, MEAN, SD), outside)
        slope = np.where(possible, -(x - MEAN) / SD**2, np.nan)
        return value, slope[:, None]

    return function_target("edged", log_density, 1)


TARGET = edged(lambda x: x > EDGE)

SAMPLERS: dict[str, tuple[Callable[..., Fit], dict[str, Any]]] = {
    "gibbs": (gibbs_tempering, {"chains": 32, "draws": 1000}),
    "simulated": (simulated_tempering, {"ladder": LADDER, "chains": 32, "draws": 1000}),
    "joint": (joint_hmc, {"chains": 32, "draws": 1500, "step_size": 0.1, "kernel": Hmc(8)}),
    "path sampling": (path_sampling, {"chains": 32, "draws": 1000}),
    "parallel": (parallel_tempering, {"ladder": LADDER, "draws": 2000}),
    "annealed": (annealed_importance, {"ladder": uniform_ladder(30), "chains": 4000}),
    "particles": (sequential_monte_carlo, {}),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_log_z_of_a_target_with_an_edge(name: str) -> None:
    sampler, settings = SAMPLERS[name]
    fit = sampler(TARGET, BASE, seed=4, **settings)
    estimate = fit.log_evidence
    assert abs(estimate.value - LOG_Z) < 4 * estimate.mcse
    assert estimate.mcse < -MASS / 8
    mean = fit.posterior["x"].to_numpy().mean()
    assert mean == pytest.approx(EXACT_MEAN, abs=0.06)


@pytest.mark.parametrize("name", ["gibbs", "joint", "path sampling"])
def test_the_share_is_measured(name: str) -> None:
    """Without it log Z is too high by 0.9, as it was."""
    sampler, settings = SAMPLERS[name]
    settings = settings | {"draws": 200, "chains": 16, "warmup": 100}
    fit = sampler(TARGET, BASE, seed=5, **settings)
    mass = fit.tempered.base_mass
    assert abs(mass.value - MASS) < 4 * mass.mcse
    assert 0.01 < mass.mcse < 0.03
    if name != "joint":  # whose chains have not come to agree yet
        told = [each.sentence for each in diagnose(fit)]
        assert any("starts from that part alone" in each for each in told)


def test_rungs_that_are_reached_whole() -> None:
    """On a ladder the rung at 0 has all of the base; what is not a number is not reached."""
    settings: dict[str, Any] = {"ladder": LADDER, "chains": 16, "draws": 300, "warmup": 100}
    fit = simulated_tempering(TARGET, BASE, seed=6, **settings)
    assert fit.tempered.base_mass.value == 0
    extended = fit.tree["extended"]
    outside = extended["x"].to_numpy() < EDGE
    outside = outside.reshape(16, 300)
    assert 0.02 < outside.mean() < 0.9
    assert np.all(extended["inv_temp"].to_numpy()[outside] == 0)
    assert np.all(extended["delta"].to_numpy()[outside] == np.inf)
    assert np.all(extended["log_w1"].to_numpy()[outside] == -np.inf)
    assert np.all(extended["log_w0"].to_numpy()[outside] == 0)
    unknown = edged(lambda x: x > EDGE, outside=np.nan)
    cut = simulated_tempering(unknown, BASE, seed=6, **settings)
    mass = cut.tempered.base_mass
    assert abs(mass.value - MASS) < 4 * mass.mcse
    assert not np.any(cut.tree["extended"]["x"].to_numpy() < EDGE)


def test_parallel_temperings_own_estimates() -> None:
    """Up and down the ladder, and by the integral, which starts from what is left of the base."""
    sampler, settings = SAMPLERS["parallel"]
    attrs = sampler(TARGET, BASE, seed=7, **settings).tree.attrs
    for name in ("forward", "backward", "integral"):
        error = attrs[f"log_evidence_{name}_mcse"]
        curved = abs(attrs["log_evidence_integral_correction"]) if name == "integral" else 0.0
        assert abs(attrs[f"log_evidence_{name}"] - LOG_Z) < 4 * error + curved
        assert error < -MASS / 8


def test_both_ways_of_annealing() -> None:
    rng = np.random.default_rng(8)
    exact = truncnorm((EDGE - MEAN) / SD, np.inf, MEAN, SD).rvs((2000, 1), random_state=rng)
    both = bidirectional(TARGET, BASE, exact, ladder=uniform_ladder(30), seed=8)
    for side in (both.lower, both.upper):
        assert abs(side.value - LOG_Z) < 4 * side.mcse
    assert both.lower.mcse < -MASS / 8


@pytest.mark.parametrize("variant", ["paired", "forward", "single_pass"])
def test_tempered_transitions(variant: Any) -> None:
    fit = tempered_transitions(
        TARGET, BASE, ladder=uniform_ladder(12), variant=variant, chains=16, draws=400, seed=9
    )
    estimate = fit.expectation(lambda parameters: parameters["x"][..., 0])
    assert abs(float(estimate.value) - EXACT_MEAN) < 4 * float(estimate.mcse)
    assert float(estimate.mcse) < 0.05


def test_islands_are_joined_through_the_base() -> None:
    """No chain passes between them but at beta = 0, where what is between them is no obstacle."""
    target = edged(lambda x: (np.abs(x - 0.5) > 1.2) & (np.abs(x) < 6))
    fit = simulated_tempering(target, BASE, ladder=LADDER, chains=32, draws=1500, seed=10)
    low, high = -0.7, 1.7
    parts = np.array([norm.cdf(low, MEAN, SD) - norm.cdf(-6, MEAN, SD), norm.sf(high, MEAN, SD)])
    share = fit.expectation(lambda parameters: (parameters["x"][..., 0] > 0.5).astype(float))
    assert abs(float(share.value) - parts[1] / parts.sum()) < 4 * float(share.mcse)
    estimate = fit.log_evidence
    assert abs(estimate.value - 1.7 - np.log(parts.sum())) < 4 * estimate.mcse
    # Each chain has been on both of them.
    x = fit.raw["x"].to_numpy()[..., 0]
    assert np.all(np.any(x < low, axis=1) & np.any(x > high, axis=1))


def test_the_path_at_its_base() -> None:
    path = GeometricPath(TARGET, BASE)
    state = path.state(np.array([[-2.0], [2.0]]))
    base = BASE.log_density(state.points)
    np.testing.assert_array_equal(path.delta(state)[0], np.inf)
    np.testing.assert_allclose(path.log_density(state, 0.0), base, rtol=1e-12)
    assert path.log_density(state, 1e-12)[0] == -np.inf
    slope = BASE.log_density_gradient(state.points)
    np.testing.assert_allclose(path.gradient(state, 0.0), slope, rtol=1e-12)
    unknown = GeometricPath(edged(lambda x: x > EDGE, outside=np.nan), BASE)
    assert unknown.log_density(unknown.state(state.points), 0.0)[0] == -np.inf


def test_rung_probabilities_where_the_target_is_zero() -> None:
    log_g = np.array([[0.0, 0.4], [0.5, -0.1], [1.0, 0.2]])
    delta = np.array([np.inf, 0.7])
    near = np.exp(log_g[:, 1] - log_g[:, 0] * 0.7)
    expected = (np.array([1.0, 0.0, 0.0]) + near / near.sum()) / 2
    np.testing.assert_allclose(np.exp(log_rung_probabilities(delta, log_g)), expected, rtol=1e-12)
