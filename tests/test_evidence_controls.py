"""The harmonic mean and Chib's method, by summing over a few states, and against a Gaussian."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from calibration import mean_square_bounds
from scipy.stats import norm

from harness.arrays import FloatArray
from harness.diagnosis import Severity, harmonic_mean_finding
from harness.errors import DataError
from harness.evidence import log_evidence_by_chib, log_evidence_by_harmonic_mean

# A grid of 2 by 3 states, on which the posterior counts in sixteenths.
POSTERIOR = np.array([[1, 2, 4], [3, 5, 1]]) / 16
PRIOR = np.array([[3, 1, 2], [1, 2, 1]]) / 10
LOG_Z = -1.3
LIKELIHOOD = POSTERIOR * np.exp(LOG_Z) / PRIOR
# Every state as often as the posterior says: means over these are expectations.
EXACT = np.repeat(np.arange(6), np.rint(16 * POSTERIOR.ravel()).astype(int))


def test_the_grid_is_what_the_tests_need() -> None:
    assert PRIOR.sum() == pytest.approx(1)
    assert (PRIOR * LIKELIHOOD).sum() == pytest.approx(np.exp(LOG_Z))
    assert np.bincount(EXACT) == pytest.approx(16 * POSTERIOR.ravel())


# The harmonic mean


def test_the_harmonic_mean_of_all_states_is_exact() -> None:
    found = log_evidence_by_harmonic_mean(np.log(LIKELIHOOD).ravel()[EXACT][None])
    assert found.value == pytest.approx(LOG_Z, abs=1e-13)


def test_the_mean_inverse_likelihood_is_unbiased_for_one_over_z() -> None:
    """Summed over all samples of four draws; log Z is then biased upwards (Jensen)."""
    log_likelihood, probability = np.log(LIKELIHOOD).ravel(), POSTERIOR.ravel()
    inverse = log_z = 0.0
    for sample in itertools.product(range(6), repeat=4):
        value = log_evidence_by_harmonic_mean(log_likelihood[list(sample)][None]).value
        inverse += probability[list(sample)].prod() * np.exp(-value)
        log_z += probability[list(sample)].prod() * value
    assert inverse == pytest.approx(np.exp(-LOG_Z), rel=1e-12)
    assert log_z > LOG_Z


def test_the_harmonic_mean_is_far_too_high_where_the_prior_is_wide() -> None:
    """A prior sd of 100 in 3 dimensions: log Z is nats too high, and the finding says why."""
    rng = np.random.default_rng(1)
    dimension, sd = 3, 100.0
    variance = sd**2 / (sd**2 + 1)
    truth = dimension * norm.logpdf(0, scale=np.sqrt(1 + sd**2))
    draws = np.sqrt(variance) * rng.standard_normal((4, 2500, dimension))
    log_likelihood = norm.logpdf(draws).sum(axis=-1)
    found = log_evidence_by_harmonic_mean(log_likelihood)
    # 1 / L has a tail with index 1.0001: the mean of 10,000 draws lacks what it needs to be right.
    assert found.value > truth + 3
    assert found.value > truth + 4 * found.mcse
    finding = harmonic_mean_finding(log_likelihood)
    assert finding.severity is Severity.PROBLEM
    assert "infinite variance" in finding.sentence
    assert finding.what_to_try


def test_a_harmonic_mean_is_never_fine() -> None:
    assert harmonic_mean_finding(np.zeros((2, 50))).severity is Severity.WARNING
    gentle = harmonic_mean_finding(np.random.default_rng(1).random((2, 500)))
    assert gentle.severity is Severity.WARNING
    assert "by any amount" in gentle.sentence


@pytest.mark.parametrize("bad", [np.zeros(5), np.zeros((1, 3)), np.array([[0, 1, 2, -np.inf]])])
def test_likelihoods_of_which_no_harmonic_mean_is_taken(bad: FloatArray) -> None:
    with pytest.raises(DataError):
        log_evidence_by_harmonic_mean(bad)


# Chib's method


def gibbs(density: FloatArray) -> FloatArray:
    """Transition matrix of a sweep on the grid: the row given the column, then the reverse."""
    matrix = np.zeros((*density.shape, *density.shape))
    for column in range(density.shape[1]):
        new_row = density[:, column] / density[:, column].sum()
        for row in range(density.shape[0]):
            new_column = density[row] / density[row].sum()
            matrix[:, column, row, :] = new_row[row] * new_column
    return matrix.reshape(density.size, density.size)


@pytest.mark.parametrize("state", range(6))
def test_chib_is_exact_with_gibbs_sweeps_from_all_states(state: int) -> None:
    transition = gibbs(POSTERIOR)
    assert POSTERIOR.ravel() @ transition == pytest.approx(POSTERIOR.ravel(), abs=1e-15)
    log_joint = float(np.log(PRIOR * LIKELIHOOD).ravel()[state])
    found = log_evidence_by_chib(log_joint, np.log(transition[EXACT, state])[None])
    assert found.value == pytest.approx(LOG_Z, abs=1e-13)


def test_chib_is_exact_and_without_error_if_the_transition_is_the_posterior() -> None:
    state = 2
    density = np.full((2, 50), np.log(POSTERIOR.ravel()[state]))
    found = log_evidence_by_chib(float(np.log(PRIOR * LIKELIHOOD).ravel()[state]), density)
    assert found.value == pytest.approx(LOG_Z)
    assert found.mcse == 0


def test_chib_with_draws_of_one_of_two_copies_is_wrong_by_log_two() -> None:
    """Neal (1999): the point's density within a mode is twice that in the posterior."""
    half = POSTERIOR / 2
    doubled = np.kron(np.eye(2), half)  # two copies, which no sweep connects
    transition = gibbs(doubled)[:, 0]
    seen = np.zeros_like(doubled)
    seen[:2, :3] = POSTERIOR
    draws = np.repeat(np.arange(24), np.rint(16 * seen.ravel()).astype(int))
    log_joint = float(np.log(half[0, 0]) + LOG_Z)
    found = log_evidence_by_chib(log_joint, np.log(transition[draws])[None])
    assert found.value == pytest.approx(LOG_Z - np.log(2), abs=1e-13)


def test_chib_for_a_gaussian_has_the_error_that_it_says() -> None:
    """Gibbs sweeps on two coordinates with a correlation of 0.8; the mode is the point."""
    rho, runs, log_z = 0.8, 60, 0.9
    spread = np.sqrt(1 - rho**2)
    log_joint = log_z - np.log(2 * np.pi * spread)
    rng, scores = np.random.default_rng(2), []
    x = rng.multivariate_normal(np.zeros(2), [[1, rho], [rho, 1]], size=(runs, 4))
    log_density = np.empty((runs, 4, 200))
    for draw in range(200):
        x[..., 0] = rho * x[..., 1] + spread * rng.standard_normal((runs, 4))
        x[..., 1] = rho * x[..., 0] + spread * rng.standard_normal((runs, 4))
        # The first coordinate moves to 0 given the draw's second; then the second to 0 given 0.
        log_density[..., draw] = norm.logpdf(0, rho * x[..., 1], spread) + norm.logpdf(0, 0, spread)
    for each in log_density:
        found = log_evidence_by_chib(float(log_joint), each)
        scores.append((found.value - log_z) / found.mcse)
    low, high = mean_square_bounds(runs)
    assert low < np.mean(np.square(scores)) < high
    assert abs(np.mean(scores)) < 4 / np.sqrt(runs)


@pytest.mark.parametrize(
    ("log_joint", "log_transition"),
    [
        (np.nan, np.zeros((1, 5))),
        (0.0, np.zeros(5)),
        (0.0, np.full((1, 5), -np.inf)),
        (0.0, np.array([[0.0, np.nan, 0.0, 0.0]])),
        (0.0, np.zeros((1, 3))),
    ],
)
def test_what_chib_refuses(log_joint: float, log_transition: FloatArray) -> None:
    with pytest.raises(DataError):
        log_evidence_by_chib(log_joint, log_transition)
