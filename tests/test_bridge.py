"""Bridges on arrays: the root, its error from both sides, halves, reshuffled blocks, odds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from calibration import mean_square_bounds
from scipy.integrate import quad
from scipy.stats import norm

from harness import evidence
from harness.arrays import FloatArray, LogDensity
from harness.errors import DataError
from harness.evidence import BridgeEstimate, LogEvidence
from harness.user import bridged as bridged_module
from harness.user.bridged import bridged_in_time
from harness.user.bridges import Bridged, Bridges

LOG_Z = 3.0


def log_ratio(x: FloatArray, mean: float = 0.5, sd: float = 1.2) -> FloatArray:
    """Of exp(3) N(mean, sd^2) to N(0, 1)."""
    return np.asarray(LOG_Z + norm.logpdf(x, mean, sd) - norm.logpdf(x))


def a_bridge(rng: np.random.Generator, draws: int = 400, base: int = 800) -> BridgeEstimate:
    target = 0.5 + 1.2 * rng.standard_normal((4, draws))
    return evidence.bridge_sampling(log_ratio(target), log_ratio(rng.standard_normal(base)))


def test_root_balances_both_sides_of_the_identity() -> None:
    """Z = mean_b[l / (s1 l + s0 Z)] / mean_r[1 / (s1 l + s0 Z)], written out without logs."""
    rng = np.random.default_rng(1)
    target, base = rng.normal(0.5, 1.2, (2, 300)), rng.standard_normal(500)
    found = evidence.bridge_sampling(log_ratio(target), log_ratio(base))
    z, s1 = math.exp(found.log_evidence.value), found.share
    over, under = np.exp(log_ratio(base)), np.exp(log_ratio(target))
    right = np.mean(over / (s1 * over + (1 - s1) * z)) / np.mean(1 / (s1 * under + (1 - s1) * z))
    assert z == pytest.approx(float(right), rel=1e-8)
    # As many as the effective draws say, which for independent draws are about all of them.
    assert s1 == pytest.approx(found.effective / (found.effective + 500))


def test_overlap_is_the_integral_that_it_names() -> None:
    found = a_bridge(np.random.default_rng(2), 4000, 16000)
    s1 = found.share

    def integrand(x: float) -> float:
        p, b = norm.pdf(x, 0.5, 1.2), norm.pdf(x)
        return float(p * b / (s1 * p + (1 - s1) * b))

    exact = quad(integrand, -12, 12)[0]
    # The mean of 16,000 terms, none of which is below 0 or above 1 / s1.
    assert abs(found.overlap - exact) < 4 * 0.5 / s1 / math.sqrt(16000)


def _excursions(rng: np.random.Generator) -> FloatArray:
    """Four chains of 500 draws of 0.9 N(0, 1) + 0.1 N(3, 0.3^2), which rarely change between both.

    A chain leaves the narrow part with probability 0.04, and is in it for a tenth of the time.
    """
    leave, u = 0.04, rng.random((4, 500))
    narrow = np.empty((4, 500), dtype=bool)
    narrow[:, 0] = u[:, 0] < 0.1
    for t in range(1, 500):
        narrow[:, t] = np.where(narrow[:, t - 1], u[:, t] > leave, u[:, t] < leave / 9)
    noise = rng.normal(size=(4, 500))
    return np.where(narrow, 3 + 0.3 * noise, noise)


def test_effective_draws_of_other_draws_leave_no_bias() -> None:
    """A chain that stays in the narrow part has few effective draws itself, and draws log Z away.

    Bounds: four standard errors of the mean over the runs.
    """
    rng = np.random.default_rng(3)

    def ratio(x: FloatArray) -> FloatArray:
        target = np.logaddexp(
            math.log(0.9) + norm.logpdf(x), math.log(0.1) + norm.logpdf(x, 3, 0.3)
        )
        return np.asarray(target - norm.logpdf(x, 0.3, 1.35))

    right, higher = [], []
    for _ in range(400):
        target, base = ratio(_excursions(rng)), ratio(0.3 + 1.35 * rng.normal(size=4000))
        effective = evidence.effective_in_bridge(ratio(_excursions(rng)))
        found = evidence.bridge_sampling(target, base, effective=effective)
        right.append(found.log_evidence.value)
        higher.append(right[-1] - evidence.bridge_sampling(target, base).log_evidence.value)
    error, of_difference = (np.std(each) / math.sqrt(400) for each in (right, higher))
    assert abs(np.mean(right)) < 4 * error
    assert np.mean(higher) > 4 * of_difference


@pytest.mark.parametrize("gap", [0.0, 5.0, 50.0, 700.0, 5000.0])
def test_it_ends_however_far_the_densities_are_apart(gap: float) -> None:
    """A fixed-point iteration would take ever longer; the root of a monotone function does not."""
    rng = np.random.default_rng(3)
    target, base = gap + rng.standard_normal((4, 50)), -gap + rng.standard_normal(100)
    found = evidence.bridge_sampling(target, base)
    assert math.isfinite(found.log_evidence.value)
    assert -gap - 5 < found.log_evidence.value < gap + 5
    if gap >= 5:
        assert found.overlap < 0.05


def test_base_draws_where_the_target_is_zero_count() -> None:
    """Exponential from a normal: half of the base's draws have no density; Z = 1."""
    rng = np.random.default_rng(4)
    z = []
    for _ in range(40):
        draws, base = rng.exponential(size=(4, 500)), rng.standard_normal(2000)
        at_base = np.where(base > 0, -base - norm.logpdf(base), -np.inf)
        found = evidence.bridge_sampling(-draws - norm.logpdf(draws), at_base).log_evidence
        z.append(found.value / found.mcse)
    low, high = mean_square_bounds(40)
    assert low < np.mean(np.square(z)) < high


def test_tails_are_seen_only_where_they_can_matter() -> None:
    rng = np.random.default_rng(5)
    near = a_bridge(rng)
    assert near.k_target == -math.inf
    assert near.k_base == -math.inf
    # A base four standard deviations away: a few draws of either side dominate.
    draws, base = rng.standard_normal((4, 500)), 4 + 0.7 * rng.standard_normal(2000)

    def ratio(x: FloatArray) -> FloatArray:
        return np.asarray(norm.logpdf(x) - norm.logpdf(x, 4, 0.7))

    far = evidence.bridge_sampling(ratio(draws), ratio(base))
    assert far.overlap < 0.1
    assert math.isfinite(far.k_target)
    assert math.isfinite(far.k_base)


def test_halves_are_joined_with_what_fitted_moments_have_in_common() -> None:
    def half(value: float, overlap: float) -> BridgeEstimate:
        return BridgeEstimate(
            LogEvidence(value, 0.05), 0.0016, 0.0009, -math.inf, -math.inf, overlap, 1000.0, 0.5
        )

    joined = evidence.joined_halves(half(1.0, 0.5), half(1.2, 0.5), 0.0)
    assert joined.log_evidence.value == pytest.approx(1.1)
    assert joined.log_evidence.mcse == pytest.approx(0.5 * math.hypot(0.05, 0.05))
    assert joined.score == pytest.approx(0.2 / math.hypot(0.05, 0.05))
    # 1 - overlap = s1 s0 k / n: all of what is seen comes from the fitted moments.
    whole = evidence.joined_halves(half(1.0, 0.975), half(1.2, 0.975), 100.0)
    assert whole.log_evidence.mcse == pytest.approx(0.5 * math.sqrt(2 * 0.0025 + 2 * 0.0016))


def test_reshuffled_spread_of_estimates_with_right_errors_and_with_wrong_ones() -> None:
    """Bridges to random halves of 20 blocks of the same draws, with new draws of the base."""
    rng = np.random.default_rng(6)
    ratios = []
    for _ in range(20):
        blocks = 0.5 + 1.2 * rng.standard_normal((20, 4, 40))
        estimates = []
        for _ in range(10):
            half = np.concatenate(blocks[rng.permutation(20)[:10]], axis=1)
            base = rng.standard_normal(800)
            estimates.append(evidence.bridge_sampling(log_ratio(half), log_ratio(base)))
        spread = evidence.reshuffled_spread(estimates)
        assert not spread.too_wide
        ratios.append(spread.ratio)
    # 20 x 9 degrees of freedom, of estimates that share draws within each of the 20.
    low, high = mean_square_bounds(20 * 9)
    assert low < np.mean(np.square(ratios)) < high
    wrong = [
        BridgeEstimate(LogEvidence(v, 0.01), 5e-5, 5e-5, 0.0, 0.0, 0.9, 100.0, 0.5)
        for v in rng.normal(0, 0.1, 10)
    ]
    assert evidence.reshuffled_spread(wrong).too_wide
    with pytest.raises(DataError, match="three"):
        evidence.reshuffled_spread(wrong[:2])


def test_draws_that_an_error_takes() -> None:
    assert evidence.draws_for_error(LogEvidence(0.0, 0.02), 0.01) == pytest.approx(4)
    with pytest.raises(DataError, match="positive"):
        evidence.draws_for_error(LogEvidence(0.0, 0.02), 0.0)


def test_bad_ratios_are_refused() -> None:
    with pytest.raises(DataError, match="not zero"):
        evidence.bridge_sampling(np.zeros((2, 10)), np.full(7, -np.inf))


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (2.9, "bare mention"),
        (1 / 2.5, "bare mention"),
        (4.0, "positive"),
        (19.0, "positive"),
        (21.0, "strong"),
        (149.0, "very strong"),
        (147.0, "strong"),
        (0.0001, "very strong"),
    ],
)
def test_words_of_kass_and_raftery(factor: float, words: str) -> None:
    """Their limits 2, 6 and 10 of 2 log B are Bayes factors of 2.7, 20 and 148."""
    if factor == 2.9:
        assert evidence.strength(math.log(factor)) == "positive"
    else:
        assert words in evidence.strength(math.log(factor))
    assert evidence.strength(math.log(factor)) == evidence.strength(-math.log(factor))


def test_bayes_factor_has_the_interval_of_two_independent_errors() -> None:
    found = evidence.bayes_factor(LogEvidence(-10.0, 0.03), LogEvidence(-12.0, 0.04))
    assert found.log == pytest.approx((2.0, 0.05))
    assert found.interval == pytest.approx((2 - 1.959964 * 0.05, 2 + 1.959964 * 0.05))
    assert found.words == "positive"


def test_probabilities_of_models() -> None:
    sure = evidence.model_odds([LogEvidence(0.0, 0.0), LogEvidence(math.log(3), 0.0)], [2, 1])
    assert [each.value for each in sure.posterior] == pytest.approx([0.4, 0.6])
    assert [each.low for each in sure.posterior] == pytest.approx([0.4, 0.6])
    assert sure.best == (0.0, 1.0)
    unsure = evidence.model_odds([LogEvidence(0.0, 0.3), LogEvidence(0.2, 0.4)])
    # P(first is better) = P(N(-0.2, 0.5^2) > 0), by 20,000 draws: error 0.0034.
    assert abs(unsure.best[0] - norm.cdf(-0.4)) < 4 * 0.0034
    low, high = unsure.posterior[0].low, unsure.posterior[0].high
    for bound, quantile in ((low, 0.025), (high, 0.975)):
        logit = -0.2 + 0.5 * norm.ppf(quantile)
        # A quantile of 20,000 draws: its error on the scale of the logit.
        density = norm.pdf(norm.ppf(quantile)) / 0.5
        error = math.sqrt(quantile * (1 - quantile) / 20000) / density
        assert abs(math.log(bound / (1 - bound)) - logit) < 4 * error


@pytest.mark.parametrize("prior", [[1.0], [1.0, 0.0], [1.0, math.inf], [1.0, -2.0]])
def test_bad_prior_odds_are_refused(prior: list[float]) -> None:
    with pytest.raises(DataError, match="prior odds"):
        evidence.model_odds([LogEvidence(0.0, 0.1), LogEvidence(1.0, 0.1)], prior)


@pytest.mark.parametrize(("error", "reliable"), [(0.1, True), (0.9, False), (np.nan, False)])
def test_a_bridge_whose_error_is_large_or_unknown_cannot_be_relied_on(
    error: float, reliable: bool
) -> None:
    half = BridgeEstimate(LogEvidence(-3.0, error), 5e-5, 5e-5, 0.0, 0.0, 0.9, 100.0, 0.5)
    bridged = Bridged("gaussian", LogEvidence(-3.0, error), (half, half), 0.0)
    assert (not bridged.problems()) == reliable


def skewed(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logs of three gamma variables with shape 9, whose density integrates to 8!^3."""
    return (9 * x - np.exp(x)).sum(axis=1), 9 - np.exp(x)


@pytest.mark.parametrize(
    ("milliseconds", "precise", "most"),
    # Of 8,000 draws a fast density takes 1,000 or all.  At 1 ms there is time for 750 in 12 s, of
    # which 112 would be too few to begin with, so that it begins with 200.
    [(1e-4, 0.1, 1000), (1e-4, 1e-6, 8000), (1.0, 0.1, 228), (1.0, 1e-6, 728)],
)
def test_a_bridge_in_time_begins_with_few_draws(
    monkeypatch: pytest.MonkeyPatch, milliseconds: float, precise: float, most: int
) -> None:
    sizes = []

    def bridged(density: LogDensity, draws: FloatArray, **options: Any) -> Bridges:
        sizes.append(draws.shape[0] * draws.shape[1])
        return without_patch(density, draws, **options)

    without_patch = bridged_module.bridged
    monkeypatch.setattr(bridged_module, "bridged", bridged)
    monkeypatch.setattr(bridged_module, "_FEW_PRECISE", precise)
    monkeypatch.setattr(bridged_module, "seconds_a_point", lambda *_: 1e-3 * milliseconds)
    draws = np.log(np.random.default_rng(1).gamma(9.0, size=(4, 2000, 3)))
    found = bridged_in_time(skewed, draws, most_seconds=12, seed=1)
    assert sizes[-1] <= most
    assert len(sizes) == (2 if precise < 1e-3 else 1)
    log_z = found.bridges.log_evidence
    assert abs(log_z.value - 3 * math.lgamma(9)) < 4 * log_z.mcse
