"""The most that a density integrates to where its draws are, against integrals in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.arrays import FloatArray
from harness.evidence import (
    LogEvidence,
    independent_draws,
    log_mass_at_most,
    log_masses_at_most,
    shares_at_most,
)


def gaussian_draws(rng: np.random.Generator, count: int, dimension: int) -> FloatArray:
    """Correlated, with covariance A A'."""
    mixing = np.eye(dimension) + 0.3 * np.ones((dimension, dimension))
    return rng.normal(size=(count, dimension)) @ mixing.T


@pytest.mark.parametrize("dimension", [1, 3, 12])
def test_for_a_gaussian_it_is_the_integral(dimension: int) -> None:
    """The entropy is that of the Gaussian itself.

    The mean of log gamma over n draws has variance D / (2 n), and half the log determinant of their
    covariance about D / (2 n) as well, of the same sign in each draw; the allowance for n draws is
    at most D (D + 1) / (2 n) above.
    """
    rng = np.random.default_rng([31, dimension])
    count = 4000
    points = gaussian_draws(rng, count, dimension)
    mixing = np.eye(dimension) + 0.3 * np.ones((dimension, dimension))
    standard = np.linalg.solve(mixing, points.T).T
    log_gamma = 7.0 - 0.5 * np.square(standard).sum(axis=1)
    log_z = 7.0 + 0.5 * dimension * math.log(2 * math.pi) + math.log(np.linalg.det(mixing))
    bound = log_mass_at_most(log_gamma, points, worth=count)
    error = 2 * math.sqrt(dimension / (2 * count))
    assert -4 * error < bound - log_z < 4 * error + dimension * (dimension + 1) / (2 * count)
    # By variances alone, it is larger by what correlations tell, and never smaller.
    rough = log_mass_at_most(log_gamma, points, worth=20)
    assert rough >= bound - 1e-9


@pytest.mark.parametrize(("dimension", "count"), [(3, 25), (12, 25), (12, 60), (40, 100)])
def test_few_draws_do_not_make_it_too_low(dimension: int, count: int) -> None:
    """On average over 300 sets of draws; once it was 1.1 too low in 40 dimensions."""
    rng = np.random.default_rng([34, dimension, count])
    log_z = 0.5 * dimension * math.log(2 * math.pi)
    off = []
    for _ in range(300):
        points = rng.normal(size=(count, dimension))
        log_gamma = -0.5 * np.square(points).sum(axis=1)
        off.append(log_mass_at_most(log_gamma, points, worth=count) - log_z)
    error = float(np.std(off) / math.sqrt(len(off)))
    assert np.mean(off) > -4 * error
    assert np.mean(off) < 4 * error


@pytest.mark.parametrize("kind", ["exponential", "two modes", "uniform", "heavy"])
def test_for_others_it_is_more(kind: str) -> None:
    """Known entropies below that of a Gaussian: the bound exceeds log Z = 0 by the difference."""
    rng = np.random.default_rng(32)
    count = 20_000
    if kind == "exponential":
        x = rng.exponential(size=count)
        log_p = -x
        excess = 0.5 * math.log(2 * math.pi * math.e) - 1
    elif kind == "uniform":
        x = rng.random(count)
        log_p = np.zeros(count)
        excess = 0.5 * math.log(2 * math.pi * math.e / 12)
    elif kind == "heavy":  # Laplace
        x = rng.laplace(size=count)
        log_p = -np.abs(x) - math.log(2)
        excess = 0.5 * math.log(4 * math.pi * math.e) - 1 - math.log(2)
    else:  # so far apart that the entropy is that of one and log 2
        x = rng.normal(size=count) + np.where(rng.random(count) < 0.5, -20.0, 20.0)
        log_p = np.logaddexp(-0.5 * (x + 20) ** 2, -0.5 * (x - 20) ** 2) - math.log(
            2 * math.sqrt(2 * math.pi)
        )
        excess = 0.5 * math.log(401) - math.log(2)
    # Of the mean of log p (a variance of about 1) and of half the log of a variance, whose relative
    # error is sqrt((kurtosis - 1) / n), with a kurtosis of 9 at most.
    error = math.sqrt(1 / count) + 0.5 * math.sqrt(8 / count)
    bound = log_mass_at_most(log_p, x[:, None], worth=count)
    assert bound == pytest.approx(excess, abs=4 * error)
    assert excess > 0


def test_what_does_not_tell() -> None:
    """A chain that does not move or has moved slowly, a few draws, a density of zero."""
    points = gaussian_draws(np.random.default_rng(33), 100, 2)
    log_gamma = -0.5 * np.square(points).sum(axis=1)
    assert math.isfinite(log_mass_at_most(log_gamma, points, worth=50))
    assert log_mass_at_most(log_gamma, points, worth=5) == math.inf
    assert log_mass_at_most(log_gamma, points, worth=math.nan) == math.inf
    stands = points.copy()
    stands[:, 1] = 0.5
    assert log_mass_at_most(log_gamma, stands, worth=50) == math.inf
    log_gamma[3] = -math.inf
    assert log_mass_at_most(log_gamma, points, worth=50) == math.inf


@pytest.mark.parametrize("draws", [0, 1])
def test_a_single_draw_tells_nothing(draws: int) -> None:
    """A mode may have one draw only, however many it is said to be worth."""
    assert log_mass_at_most(np.zeros(draws), np.zeros((draws, 3)), 100.0) == math.inf


def test_a_third_of_the_different_particles_counts() -> None:
    """Unless it is known what draws are worth; particles that are alike are one."""
    rng = np.random.default_rng(8)
    points = rng.normal(size=(300, 2))
    log_gamma = -0.5 * np.square(points).sum(1)
    twice = np.concatenate([points, points])
    known = log_mass_at_most(log_gamma, points, worth=100)
    assert log_mass_at_most(log_gamma, points) == known
    again = log_mass_at_most(np.concatenate([log_gamma, log_gamma]), twice)
    # The covariance of 600 points divides by 599, that of 300 by 299: in two dimensions log Z falls
    # by the difference of the logs of 299/300 and 599/600.
    assert again == pytest.approx(known + math.log((300 / 299) ** -1 * (600 / 599)), abs=1e-12)


def test_shares_at_most_allow_for_four_errors_of_the_whole() -> None:
    whole = LogEvidence(2.0, 0.25)
    shares = shares_at_most(np.array([-3.0, 0.5, 1.5]), whole)
    np.testing.assert_allclose(shares, [math.exp(-4), math.exp(-0.5), 1.0])


def test_bounds_of_chains_count_what_each_is_worth() -> None:
    """One moves freely, one has draws that correlate by 0.9, and one does not move at all."""
    rng = np.random.default_rng(36)
    noise = rng.normal(size=(3, 1000, 2))
    chains = noise.copy()
    for t in range(1, 1000):
        chains[1, t] = 0.9 * chains[1, t - 1] + math.sqrt(1 - 0.81) * noise[1, t]
    chains[2] = chains[2, :1]
    heights = -0.5 * np.square(chains).sum(axis=2)
    worth = [independent_draws(each) for each in chains]
    # Effective draws of a mean are n (1 - r) / (1 + r).
    assert worth[0] == pytest.approx(1000, rel=0.3)
    assert worth[1] == pytest.approx(1000 * 0.1 / 1.9, rel=0.6)
    bounds = log_masses_at_most(heights, chains)
    assert bounds[2] == math.inf
    for k in (0, 1):
        assert bounds[k] == log_mass_at_most(heights[k], chains[k], worth[k])
        assert bounds[k] == pytest.approx(math.log(2 * math.pi), abs=0.5)
    assert log_masses_at_most(heights[:1], chains[:1], [5.0])[0] == math.inf
