"""Simple Monte Carlo: log Z against the closed form, and what its weights show where it fails."""

from __future__ import annotations

import numpy as np
import pytest
from calibration import mean_square_bounds
from known_targets import one_dimensional_mixture, ten_dimensional_gaussian
from log_gaussian import log_gaussian

from harness.arrays import FloatArray
from harness.diagnosis import Severity, diagnose
from harness.errors import DataError
from harness.model.python_target import function_target
from harness.path import gaussian_base
from harness.samplers.simple_monte_carlo import SIMPLE_MONTE_CARLO, simple_monte_carlo


def test_log_z_and_mean_of_a_mixture() -> None:
    known, runs, z, means = one_dimensional_mixture(), 60, [], []
    for seed in range(runs):
        fit = simple_monte_carlo(known.target, known.base, draws=1000, seed=seed)
        z.append((fit.log_evidence.value - known.log_z) / fit.log_evidence.mcse)
        mean = fit.expectation(lambda draws: draws["x"][..., 0])
        means.append((float(mean.value) - known.mean[0]) / float(mean.mcse))
    low, high = mean_square_bounds(2 * runs)
    for scores in (z, means):
        assert low < np.mean(np.square(scores)) < high
        assert abs(np.mean(scores)) < 4 / np.sqrt(runs)


def test_the_weights_are_the_ratio_of_target_and_base() -> None:
    known = ten_dimensional_gaussian()
    fit = simple_monte_carlo(known.target, known.base, draws=20_000, seed=1)
    points = fit.tree["extended"]["x"].to_numpy()[0]
    expected = known.target.log_density(points)[0] - known.base.log_density(points)
    assert fit.tree["extended"]["log_w1"].to_numpy()[0] == pytest.approx(expected)
    assert fit.tree.attrs["densities"] == 20_000
    again = simple_monte_carlo(known.target, known.base, draws=20_000, seed=1)
    assert again.log_evidence == fit.log_evidence


def test_a_prior_that_is_far_too_wide_is_a_finding() -> None:
    target = function_target("far", lambda x: (-0.5 * np.square(x).sum(axis=1), -x), 6)
    fit = simple_monte_carlo(target, gaussian_base(np.zeros(6), 1e4 * np.eye(6)), seed=1)
    assert max(finding.severity for finding in diagnose(fit)) is Severity.PROBLEM


def test_an_experiment_runs_it_on_a_model() -> None:
    model, truth = log_gaussian()
    base = gaussian_base(truth.mean + 0.3, 2 * truth.covariance)
    fit = SIMPLE_MONTE_CARLO.sample(model, nuts=None, seed=1, compiled=None, base=base, draws=50)
    assert set(fit.posterior) == {"x", "scale"}


def test_bad_input_is_one_clear_error() -> None:
    known = one_dimensional_mixture()
    with pytest.raises(DataError, match="4 draws"):
        simple_monte_carlo(known.target, known.base, draws=3, seed=1)
    with pytest.raises(DataError, match="dimension"):
        simple_monte_carlo(known.target, gaussian_base(np.zeros(2), np.eye(2)), seed=1)

    def nowhere(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full(len(x), np.nan), np.zeros_like(x)

    with pytest.raises(DataError, match="another base"):
        simple_monte_carlo(function_target("nowhere", nowhere, 1), known.base, draws=9, seed=1)
