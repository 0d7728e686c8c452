"""Sequential Monte Carlo as a method: log Z, moments, and errors that populations know of."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from log_gaussian import log_gaussian
from scipy.stats import norm
from tempered_truth import MIXTURE, MIXTURE_BASE, gaussian_target, mixture_case

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.fit import Fit
from harness.model.python_target import Target, numpy_target
from harness.models.boltzmann import generate, relax
from harness.models.boltzmann_mean_field import mean_field_base
from harness.path import GaussianBase, PilotSettings, gaussian_base, pilot_of_density
from harness.samplers.sequential_monte_carlo import (
    SEQUENTIAL_MONTE_CARLO,
    sequential_monte_carlo,
)

SMALL = PilotSettings(particles=512, leapfrog_steps=5)


class Known(NamedTuple):
    target: Target
    base: GaussianBase
    log_z: float
    mean: FloatArray


def mixture() -> Known:
    return Known(mixture_case().target, MIXTURE_BASE, 0.0, MIXTURE.truth.expected("x"))


def gaussian() -> Known:
    target, mean, _ = gaussian_target(10, log_z=-4.2)
    return Known(target, gaussian_base(np.zeros(10), 2.0 * np.eye(10)), -4.2, mean)


def boltzmann() -> Known:
    rng = np.random.default_rng(5)
    relaxation = relax(generate(10, rng))
    truth = relaxation.exact()
    target = numpy_target(relaxation.model("boltzmann"), relaxation.log_density_and_gradient)
    return Known(target, mean_field_base(relaxation, rng), truth.log_z, truth.expected_x)


@pytest.mark.parametrize("make", [mixture, gaussian, boltzmann])
def test_log_z_and_means_are_within_their_errors(make: Callable[[], Known]) -> None:
    known = make()
    fit = sequential_monte_carlo(known.target, known.base, settings=SMALL, seed=3)
    assert 0 < fit.log_evidence.mcse < 0.3
    assert abs(fit.log_evidence.value - known.log_z) < 4 * fit.log_evidence.mcse
    estimate = fit.expectation(lambda draws: draws["x"])
    bound = norm.isf(5e-5 / known.mean.size)
    assert np.all(np.abs(estimate.value - known.mean) < bound * estimate.mcse)


def test_it_is_the_pilot() -> None:
    known = gaussian()
    fit = sequential_monte_carlo(known.target, known.base, settings=SMALL, seed=7)
    made = pilot_of_density(known.target.log_density, known.base, settings=SMALL, seed=7)
    assert fit.log_evidence == made.log_evidence
    assert fit.gradients == made.gradients
    assert fit.provenance()["inverse_temperatures"] == made.inv_temp.tolist()
    assert fit.extended is not None
    assert np.array_equal(fit.extended["x"].to_numpy(), made.particles)
    # Points of the pilot are its particles, resampled by the populations' weights.
    ours = {tuple(row) for row in made.particles.reshape(-1, 10)}
    assert {tuple(row) for row in made.points} <= ours


def test_posterior_draws_follow_the_populations_weights() -> None:
    """A population is drawn as often as its weight says, by systematic resampling to within 1."""
    known = mixture()
    few = PilotSettings(particles=128, populations=8, conditional_ess=0.3, moves=1)
    fit = sequential_monte_carlo(known.target, known.base, settings=few, seed=2)
    assert fit.extended is not None
    particles = fit.extended["x"].to_numpy()
    weight = np.exp(fit.extended["log_w1"].to_numpy()[:, 0])
    expected = 128 * weight / weight.sum()
    assert np.ptp(expected) > 4
    drawn = fit.posterior["x"].to_numpy().ravel()
    for own, often in zip(particles, expected, strict=True):
        assert abs(np.isin(drawn, own).sum() - often) <= 1


@pytest.fixture(scope="module")
def runs() -> list[Fit]:
    known = mixture()
    settings = PilotSettings(particles=512, leapfrog_steps=4, moves=2)
    return [
        sequential_monte_carlo(known.target, known.base, settings=settings, seed=seed)
        for seed in range(40)
    ]


def test_reported_errors_are_honest(runs: list[Fit]) -> None:
    """Variance of 40 z scores: within 0.5 and 1.8, which 39 degrees of freedom leave once in 500.

    The 0.001 and 0.999 quantiles of chi-squared_39 / 39 are 0.45 and 1.85.
    """
    known = mixture()
    z = []
    for fit in runs:
        mean = fit.expectation(lambda draws: draws["x"])
        z.append(
            [
                (fit.log_evidence.value - known.log_z) / fit.log_evidence.mcse,
                float((mean.value[0] - known.mean[0]) / mean.mcse[0]),
            ]
        )
    variance = np.var(z, axis=0, ddof=1)
    assert np.all(variance > 0.5)
    assert np.all(variance < 1.8)
    assert np.all(np.abs(np.mean(z, axis=0)) < 4 * np.sqrt(variance / 40))


def test_same_seed_same_fit() -> None:
    known = mixture()
    first, again, other = (
        sequential_monte_carlo(known.target, known.base, settings=SMALL, seed=seed)
        for seed in (1, 1, 2)
    )
    assert first.posterior.equals(again.posterior)
    assert first.log_evidence == again.log_evidence != other.log_evidence


def test_bad_input_is_one_clear_error() -> None:
    with pytest.raises(DataError, match="dimension"):
        sequential_monte_carlo(gaussian().target, MIXTURE_BASE, seed=1)
    with pytest.raises(DataError, match="particles"):
        PilotSettings(particles=0)


def test_an_experiment_runs_it_on_a_model() -> None:
    model, truth = log_gaussian()
    base = gaussian_base(truth.mean + 0.3, 2 * truth.covariance)
    few = PilotSettings(particles=64, populations=4)
    fit = SEQUENTIAL_MONTE_CARLO.sample(
        model, nuts=None, seed=1, compiled=None, base=base, settings=few
    )
    assert abs(fit.log_evidence.value - truth.log_zeta) < 4 * fit.log_evidence.mcse
    assert set(fit.posterior) == {"x", "scale"}
    assert float(fit.posterior["scale"].min()) > 0
