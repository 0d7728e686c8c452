"""Gaussian copulas: normalised, drawn from exactly, and near draws with margins of any shape."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import wells
from calibration import few_and_many, mean_square_bounds
from scipy.integrate import trapezoid
from scipy.stats import ks_1samp, lognorm, norm

from harness import evidence
from harness.arrays import FloatArray
from harness.errors import SamplingError
from harness.path.copula import fitted_copula
from harness.user.bridged import bridged


def two_peaks(rng: np.random.Generator, count: int, gap: float) -> FloatArray:
    right = rng.random(count) < 0.3
    return np.where(right, rng.normal(gap, 0.2, count), rng.standard_normal(count))


@pytest.mark.parametrize("gap", [3.0, 40.0])
def test_a_margin_is_normalised(gap: float) -> None:
    """By quadrature, also where the density between two peaks is next to nothing."""
    rng = np.random.default_rng(1)
    found = fitted_copula(two_peaks(rng, 4000, gap).reshape(4, -1, 1))
    knots = found.margins[0].knots
    # The density is smooth between knots and jumps there.
    edges = np.concatenate([[knots[0] - 30], knots, [knots[-1] + 30]])
    total = 0.0
    for low, high in itertools.pairwise(edges):
        inner = low + (high - low) * np.linspace(1e-9, 1 - 1e-9, 2001)
        total += float(trapezoid(np.exp(found.log_density(inner[:, None])), inner))
    assert total == pytest.approx(1.0, abs=1e-5)


def test_draws_belong_to_the_density() -> None:
    """E[r / q] = 1 for any density r, here a Gaussian that q is wider than."""
    rng = np.random.default_rng(2)
    x = two_peaks(rng, 8000, 3.0)
    y = 0.6 * x + rng.standard_normal(8000)
    found = fitted_copula(np.stack([x, y], axis=1).reshape(4, -1, 2))
    points = found.sample(rng, 40_000)
    inside = norm.logpdf(points[:, 0], 0.2, 0.5) + norm.logpdf(points[:, 1], 0.1, 0.6)
    weight = np.exp(inside - found.log_density(points))
    error = float(weight.std()) / math.sqrt(len(weight))
    assert error < 0.02
    assert abs(weight.mean() - 1) < 4 * error


def test_scores_and_values_are_inverse_to_each_other() -> None:
    rng = np.random.default_rng(3)
    margin = fitted_copula(two_peaks(rng, 2000, 40.0).reshape(4, -1, 1)).margins[0]
    score = np.linspace(-8, 8, 1001)
    np.testing.assert_allclose(margin.score(margin.value(score))[0], score, atol=1e-7)


def test_independent_margins_of_any_shape_are_found() -> None:
    """Draws of the copula against the margins themselves, by Kolmogorov and Smirnov's test.

    A fit to 20,000 draws is off by about 1 / sqrt(20,000), a seventh of what 400 draws can tell.
    """
    rng = np.random.default_rng(4)
    a = wells.exact_draws(rng, 20_000, 1)[:, 0]
    skewed = np.exp(0.7 * rng.standard_normal(20_000))
    found = fitted_copula(np.stack([a, skewed], axis=1).reshape(4, -1, 2))
    drawn = found.sample(rng, 400)
    assert ks_1samp(drawn[:, 0], lambda x: np.interp(x, wells.GRID, wells.BELOW)).pvalue > 1e-3
    assert ks_1samp(drawn[:, 1], lognorm(0.7).cdf).pvalue > 1e-3


def test_it_is_a_gaussian_where_draws_are_gaussian() -> None:
    """Correlations and all: the divergence from the truth is that of what is fitted, in nats.

    A margin may take more parts than one, which held-out draws cannot tell from one; the gain that
    suggests it is chance.  Five numbers of parts, five coordinates: 0.01 nats.
    """
    rng = np.random.default_rng(5)
    root = np.tril(rng.normal(0, 0.5, (5, 5)), -1) + np.diag(rng.uniform(0.5, 2, 5))
    found = fitted_copula((rng.standard_normal((8000, 5)) @ root.T).reshape(4, -1, 5))
    z = rng.standard_normal((20_000, 5))
    true = norm.logpdf(z).sum(axis=1) - np.log(np.diag(root)).sum()
    assert 0 < (true - found.log_density(z @ root.T)).mean() < 0.02


def test_a_bridge_to_wells_is_precise() -> None:
    """Sixteen wells have 65,536 modes: all other proposals are far from them, a copula is near."""
    rng = np.random.default_rng(8)
    draws = wells.exact_draws(rng, 1000, 16).reshape(4, -1, 32)
    found = bridged(wells.wells, draws, seed=1)
    assert found.sound
    assert found.chosen.proposal == "copula"
    assert found.log_evidence.mcse < 0.03
    assert abs(found.log_evidence.value - wells.log_z(16)) < 4 * found.log_evidence.mcse
    assert all(each.problems() for each in found.each if each.proposal != "copula")


@few_and_many(40, 200)
def test_errors_of_its_bridge_are_honest(runs: int) -> None:
    """Where sides of wells persist for ten draws, in the fit and in what it is used on."""
    z = np.empty(runs)
    for seed in range(runs):
        rng = np.random.default_rng([seed, 10])
        fit, used = wells.slow_chains(rng, (8, 300), 0.9).reshape(2, 4, 300, 8)
        proposal = fitted_copula(fit)
        base = proposal.sample(rng, 2400)
        known = wells.wells(used.reshape(-1, 8))[0].reshape(4, 300)
        found = evidence.bridge_sampling(
            known - proposal.log_density(used),
            wells.wells(base)[0] - proposal.log_density(base),
        ).log_evidence
        z[seed] = (found.value - wells.log_z(4)) / found.mcse
    low, high = mean_square_bounds(runs)
    assert low < np.square(z).mean() < high


def test_no_copula_is_fitted_where_another_bridge_is_precise() -> None:
    rng = np.random.default_rng(9)

    def gaussian(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -0.5 * np.square(points).sum(axis=1), -points

    found = bridged(gaussian, rng.standard_normal((4, 500, 3)), seed=1)
    assert found.sound
    assert {each.proposal for each in found.each} == {"gaussian", "warp3"}


@pytest.mark.parametrize("fault", [np.inf, np.nan])
def test_draws_that_are_not_finite_are_refused(fault: float) -> None:
    draws = np.random.default_rng(7).standard_normal((4, 100, 2))
    draws[1, 3, 0] = fault
    with pytest.raises(SamplingError, match="not finite"):
        fitted_copula(draws)


def test_draws_that_do_not_move_are_refused() -> None:
    draws = np.random.default_rng(8).standard_normal((4, 100, 2))
    draws[..., 1] = 2.0
    with pytest.raises(SamplingError, match="do not move"):
        fitted_copula(draws)
