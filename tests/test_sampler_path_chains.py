"""Gibbs continuous tempering and simulated tempering: invariance, truths, errors, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from known_targets import KNOWN, one_dimensional_mixture
from scipy.special import logsumexp
from scipy.stats import chisquare, kstest
from tempered_truth import MIXTURE, MIXTURE_BASE, MIXTURE_MODEL, mixture_case

from harness.arrays import FloatArray
from harness.diagnosis import diagnose
from harness.errors import DataError
from harness.fit import Fit
from harness.model.python_target import Target
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.gibbs_tempering import GIBBS_TEMPERING, gibbs_tempering
from harness.samplers.kernels import Hmc, RandomWalk
from harness.samplers.ladders import geometric_ladder, sigmoidal_ladder, uniform_ladder
from harness.samplers.path_chains import PathChains, Tour
from harness.samplers.simulated_tempering import (
    SIMULATED_TEMPERING,
    integrated_log_weights,
    log_rung_probabilities,
    simulated_tempering,
)

ERROR = 1e-3
"""Probability that a correct sampler fails a test, shared among its comparisons."""
LOG_G = np.array([(0.0, 0.5), (0.3, -0.4), (1.0, 1.2)])
GRID = np.linspace(-30, 30, 6001)[1:-1]


def gibbs(target: Target, base: Any, **settings: Any) -> Fit:
    return gibbs_tempering(target, base, kernel=Hmc(leapfrog_steps=3), **settings)


def simulated(target: Target, base: Any, **settings: Any) -> Fit:
    ladder = sigmoidal_ladder(30)
    return simulated_tempering(
        target, base, ladder=ladder, kernel=Hmc(leapfrog_steps=3), **{"chains": 64} | settings
    )


SAMPLERS: dict[str, Callable[..., Fit]] = {"gibbs": gibbs, "simulated": simulated}


def log_joint(inv_temp: FloatArray) -> FloatArray:
    """Height log b - beta Delta on the grid, at inverse temperatures (K,); shape (K, grid)."""
    log_gamma = MIXTURE.log_density(GRID[:, None])
    log_base = MIXTURE_BASE.log_density(GRID[:, None])
    beta = inv_temp[:, None]
    height: FloatArray = beta * (log_gamma - MIXTURE_BASE.log_zeta) + (1 - beta) * log_base
    return height


def cumulative(log_density: FloatArray) -> FloatArray:
    density = np.exp(log_density - log_density.max())
    mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return np.asarray(mass / mass[-1])


@pytest.mark.parametrize("ladder", [False, True])
def test_exact_draws_of_x_and_beta_stay_exact(ladder: bool) -> None:
    """From exact x, by quadrature, x and beta are exact after three iterations."""
    fine = np.linspace(0, 1, 301)
    values = LOG_G[:, 0] if ladder else fine
    log_weight = np.interp(values, *LOG_G.T)
    height = log_weight[:, None] + log_joint(values)
    # Rungs count alike; of the integral over beta the ends count half.
    share = np.ones(len(values)) if ladder else np.r_[0.5, np.ones(len(values) - 2), 0.5]
    mass_x = cumulative(logsumexp(height, b=share[:, None], axis=0))
    rng = np.random.default_rng(3 + ladder)
    starts = np.interp(rng.random(6000), mass_x, GRID)[:, None]
    runs = PathChains(
        GeometricPath(mixture_case().target, MIXTURE_BASE),
        Hmc(leapfrog_steps=2),
        log_g=LOG_G,
        ladder=ladder,
        bands=2,
        step_size=0.6,
        starts=starts,
        chains=6000,
        rng=rng,
    )
    kept = runs.sample(3)
    assert 0.3 < kept.acceptance.mean() < 0.98
    x, beta = kept.points[:, -1, 0], kept.inv_temp[:, -1]
    assert np.mean(x != starts[:, 0]) > 0.6
    assert kstest(np.interp(x, GRID, mass_x), "uniform").pvalue > ERROR / 4
    log_beta = logsumexp(height, axis=1)
    if ladder:
        probability = np.exp(log_beta - logsumexp(log_beta))
        count = np.array([np.sum(beta == each) for each in values])
        assert chisquare(count, 6000 * probability).pvalue > ERROR / 4
    else:
        exact = np.interp(beta, fine, cumulative(log_beta))
        assert kstest(exact, "uniform").pvalue > ERROR / 4


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_evidence_and_mean(sampler: str, name: str) -> None:
    known = KNOWN[name]()
    fit = SAMPLERS[sampler](known.target, known.base, draws=600, warmup=300, seed=11)
    found = fit.log_evidence
    assert found.mcse < 0.12
    assert abs(found.value - known.log_z) < 4 * found.mcse
    mean = fit.expectation(lambda draws: draws["x"])
    assert np.all(np.abs(mean.value - known.mean) < 4 * mean.mcse)
    both = fit.two_sided_log_evidence
    assert both is not None
    assert abs(both.gap.value) < 4 * both.gap.mcse
    # Tuned bands accept as they should, the step being smaller nearer the target.
    steps = fit.tree.attrs["band_step_size"]
    assert steps[-1] < steps[0]
    rate = fit.sample_stats["acceptance_rate"].to_numpy()
    beta = fit.extended["inv_temp"].to_numpy() if fit.extended is not None else rate
    for low, high in ((0.0, 0.3), (0.3, 0.7), (0.7, 1.01)):
        assert 0.7 < rate[(beta >= low) & (beta < high)].mean() < 0.95
    assert fit.gradients > 0


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_reported_errors_are_honest(sampler: str) -> None:
    """40 z scores of log Z and of E[x].

    39 times their variance is nearly chi-squared with 39 degrees of freedom, whose
    probabilities below 0.5 x 39 and above 1.8 x 39 are 0.004 and 0.0015.
    """
    known = one_dimensional_mixture()
    scores = []
    fewer = {"pilots": 3, "pilot_draws": 40} if sampler == "simulated" else {}
    for seed in range(40):
        fit = SAMPLERS[sampler](
            known.target, known.base, draws=200, warmup=100, chains=32, seed=seed, **fewer
        )
        evidence, mean = fit.log_evidence, fit.expectation(lambda draws: draws["x"])
        scores.append(
            [
                (evidence.value - known.log_z) / evidence.mcse,
                float(mean.value[0] - known.mean[0]) / float(mean.mcse[0]),
            ]
        )
    for z in np.array(scores).T:
        assert 0.5 < z.var(ddof=1) < 1.8
        assert abs(z.mean()) < 4 * z.std(ddof=1) / np.sqrt(40)


@pytest.mark.parametrize(
    "ladder", [uniform_ladder(25), sigmoidal_ladder(60), geometric_ladder(12, lowest=0.01)]
)
def test_pilot_runs_find_weights_that_make_rungs_even(ladder: FloatArray) -> None:
    """Even a guess at log Z that is off by 30 nats leaves them so."""
    known = one_dimensional_mixture()
    base = type(known.base)(known.base.mean, known.base.cholesky, known.log_z + 30)
    fit = simulated_tempering(known.target, base, ladder=ladder, chains=50, draws=300, seed=4)
    even = fit.tree.attrs["rung_probability"] * ladder.size
    assert np.all((even > 0.7) & (even < 1.4))
    log_g = np.array(fit.settings["log_g"])
    np.testing.assert_array_equal(log_g[:, 0], ladder)
    assert log_g[-1, 1] == pytest.approx(30, abs=0.3)
    assert fit.log_evidence.value == pytest.approx(
        base.log_zeta + fit.tree.attrs["log_normaliser"][-1], abs=1e-9
    )


def test_log_normalisers_of_all_rungs_by_quadrature() -> None:
    ladder = uniform_ladder(9)
    fit = simulated_tempering(
        mixture_case().target, MIXTURE_BASE, ladder=ladder, chains=64, draws=1000, seed=9
    )
    log_z = logsumexp(log_joint(ladder), axis=1) + np.log(GRID[1] - GRID[0])
    np.testing.assert_allclose(fit.tree.attrs["log_normaliser"], log_z - log_z[0], atol=0.1)
    error = fit.log_evidence.mcse
    assert abs(fit.log_evidence.value) < 4 * error < 0.1


def test_given_weights_are_used_as_they_are() -> None:
    known = one_dimensional_mixture()
    ladder = [0.0, 0.2, 0.5, 1.0]
    weights = [0.0, 0.3, -0.2, 1.0]
    fit = simulated_tempering(
        known.target, known.base, ladder=ladder, log_weights=weights, draws=50, warmup=40, seed=1
    )
    assert fit.settings["log_g"] == [list(pair) for pair in zip(ladder, weights, strict=True)]
    assert fit.settings["pilots"] == 0
    assert set(np.unique(fit.tree["extended"]["inv_temp"])) <= set(ladder)


def test_rung_probabilities_by_enumeration() -> None:
    log_g = np.array([(0.0, 0.2), (0.4, -1.0), (1.0, 3.0)])
    delta = np.array([[-2.0, 0.0, 700.0], [1.5, -40.0, 3.0]])
    expected = np.zeros(3)
    for each in delta.ravel():
        mass = np.array([np.exp(h - beta * each) for beta, h in log_g])
        expected += mass / mass.sum() / delta.size
    np.testing.assert_allclose(np.exp(log_rung_probabilities(delta, log_g)), expected, rtol=1e-12)


def test_integrated_weights_by_hand() -> None:
    """The mean of Delta is -2 + 6 beta: its integral is -2 beta + 3 beta^2."""
    rung = np.linspace(0, 1, 11)
    tour = Tour(np.array([0.0, 1.0]), np.array([-2.0, 4.0]))
    np.testing.assert_allclose(
        integrated_log_weights(rung, tour), -2 * rung + 3 * rung**2, atol=1e-12
    )
    nothing = Tour(np.empty(0), np.empty(0))
    np.testing.assert_array_equal(integrated_log_weights(rung, nothing), np.zeros(11))


def test_bands_hold_equally_many_intervals() -> None:
    known = one_dimensional_mixture()
    runs = PathChains(
        GeometricPath(known.target, known.base),
        Hmc(),
        log_g=np.column_stack([[0.0, 0.001, 0.01, 0.1, 1.0], np.zeros(5)]),
        ladder=False,
        bands=2,
        step_size=0.1,
        starts=None,
        chains=3,
        rng=np.random.default_rng(0),
    )
    place = np.array([0.0, 0.0099, 0.0101, 0.5, 1.0])
    np.testing.assert_array_equal(runs.band(place), [0, 0, 1, 1, 1])


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_same_seed_same_draws(sampler: str) -> None:
    known = one_dimensional_mixture()
    one, two, other = (
        SAMPLERS[sampler](known.target, known.base, draws=20, warmup=20, chains=5, seed=seed)
        .tree["extended"]
        .to_dataset()
        for seed in (1, 1, 2)
    )
    assert one.equals(two)
    assert not np.any(one["x"].to_numpy() == other["x"].to_numpy())
    first = one["x"].to_numpy()[:, -1, 0]
    assert len(np.unique(first)) == len(first)


@pytest.mark.parametrize("method", [GIBBS_TEMPERING, SIMULATED_TEMPERING])
def test_a_model_runs_through_its_stan_program(method: Any) -> None:
    """As a method of an experiment; the density is the model's, not its NumPy twin."""
    pytest.importorskip("stanli", reason="stanli, which evaluates Stan programs, is missing")
    settings: dict[str, Any] = {"base": MIXTURE_BASE, "chains": 8, "draws": 100}
    # Adaptation would amplify rounding errors: without it draws differ by them alone.
    settings |= {"warmup": 0, "kernel": RandomWalk(), "step_size": 0.5}
    if method is SIMULATED_TEMPERING:
        settings |= {"ladder": uniform_ladder(6), "log_weights": np.arange(6.0)}
    fit = method.sample(MIXTURE_MODEL, nuts=None, seed=3, compiled=None, **settings)
    twin = method.sample(mixture_case().target, nuts=None, seed=3, compiled=None, **settings)
    x, same = (each.tree["extended"]["x"].to_numpy() for each in (fit, twin))
    np.testing.assert_allclose(x, same, rtol=1e-7, atol=1e-7)
    assert fit.tree.attrs["method"] == method.name
    assert isinstance(diagnose(fit), list)


def test_bad_input_is_refused_before_any_work() -> None:
    known = one_dimensional_mixture()

    def never(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        raise AssertionError("the density was evaluated")

    idle = Target("idle", 1, never, known.target.parameters)
    bad: list[tuple[dict[str, Any], str]] = [
        ({"chains": 0}, "one chain"),
        ({"draws": 0}, "one draw"),
        ({"warmup": -1}, "warm-up"),
        ({"bands": 0}, "one band"),
        ({"step_size": 0.0}, "step size"),
        ({"starts": np.zeros((3, 1))}, "starting points"),
        ({"log_g": ()}, "knots"),
        ({"log_g": ((0.2, 0.0), (1.0, 0.0))}, "from beta = 0 to 1"),
        ({"log_g": ((0.0, 0.0), (0.5, 0.0), (0.4, 0.0), (1.0, 0.0))}, "ascend"),
    ]
    for settings, message in bad:
        with pytest.raises(DataError, match=message):
            gibbs_tempering(idle, known.base, seed=1, **settings)
    bad_ladders: list[tuple[list[float], dict[str, Any], str]] = [
        ([], {}, "ascends from 0 to 1"),
        ([0.0, 0.5], {}, "ascends from 0 to 1"),
        ([0.0, 1.0], {"log_weights": [0.0]}, "a finite log weight for each of 2 rungs"),
        ([0.0, 1.0], {"log_weights": [0.0, np.nan]}, "finite"),
        ([0.0, 1.0], {"chains": 0}, "one chain"),
        ([0.0, 1.0], {"pilot_draws": 0}, "pilot run"),
    ]
    for ladder, settings, message in bad_ladders:
        with pytest.raises(DataError, match=message):
            simulated_tempering(idle, known.base, ladder=ladder, seed=1, **settings)


def test_a_start_outside_the_support_is_refused() -> None:
    target = mixture_case().target
    with pytest.raises(DataError, match="not finite at 1 of 2"):
        gibbs_tempering(target, MIXTURE_BASE, chains=2, starts=np.array([[0.0], [31.0]]), seed=1)
