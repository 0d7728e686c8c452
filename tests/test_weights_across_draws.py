"""Weights that compare draws with each other: resampling, weighted means and log Z."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import softmax
from scipy.stats import chi2, norm

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import (
    LogEvidence,
    between_runs,
    expectation,
    log_evidence,
    resample,
    standard_error,
    weighted_expectation,
)

RUNS = 200
# Of RUNS squares of standard normals, the mean lies outside with probability 1e-4.
BOUNDS = np.asarray(chi2.ppf([5e-5, 1 - 5e-5], RUNS)) / RUNS


def counts(index: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """How often each draw of each chain was chosen."""
    return np.array([np.bincount(row, minlength=index.shape[1]) for row in index], dtype=np.intp)


@pytest.mark.parametrize("spread", [0.0, 0.5, 3.0, 200.0])
def test_each_draw_is_chosen_as_often_as_its_weight_says(spread: float) -> None:
    """Systematic resampling: the count is the expected one rounded down or up, in every chain."""
    rng = np.random.default_rng(1)
    log_weight = rng.normal(0, spread, (4, 500)) + np.array([[0.0], [1e4], [-1e4], [3.0]])
    index = resample(log_weight, rng)
    assert index.shape == (4, 500)
    assert np.all(np.diff(index, axis=1) >= 0)
    expected = 500 * softmax(log_weight, axis=1)
    assert np.all(np.abs(counts(index) - expected) < 1 + 1e-9)


def test_equal_weights_keep_every_draw_once() -> None:
    for seed in range(20):
        index = resample(np.full((3, 97), -5.0), np.random.default_rng(seed))
        assert np.array_equal(index, np.tile(np.arange(97), (3, 1)))


def test_counts_have_the_right_mean() -> None:
    """Over many uniform numbers the mean count is draws times weight: no bias from rounding."""
    log_weight = np.log(np.array([[0.05, 0.6, 0.13, 0.22], [0.3, 0.3, 0.399, 0.001]]))
    rng = np.random.default_rng(2)
    total = np.mean([counts(resample(log_weight, rng)) for _ in range(20_000)], axis=0)
    expected = 4 * np.exp(log_weight)
    # A count is one of two neighbours: its variance is at most 1/4.
    part = expected % 1
    error = np.sqrt(part * (1 - part) / 20_000)
    assert np.all(np.abs(total - expected) < 4.5 * error + 1e-12)


def test_chains_are_resampled_each_by_itself() -> None:
    """A chain whose weights are all small next to another's keeps all its draws."""
    rng = np.random.default_rng(3)
    log_weight = rng.normal(size=(2, 50))
    shifted = log_weight + np.array([[0.0], [-500.0]])
    one = resample(log_weight, np.random.default_rng(4))
    assert np.array_equal(one, resample(shifted, np.random.default_rng(4)))
    # Each with a uniform number of its own: equal chains are resampled differently.
    same = np.tile(rng.normal(0, 2, 500), (2, 1))
    index = resample(same, rng)
    assert not np.array_equal(index[0], index[1])


def test_resampling_is_the_same_for_the_same_seed() -> None:
    log_weight = np.random.default_rng(5).normal(0, 2, (3, 300))
    one, again, other = (resample(log_weight, np.random.default_rng(s)) for s in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("uniform", [0.0, np.nextafter(1, 0)])
@pytest.mark.parametrize("place", [0, 3, 6])
def test_a_draw_of_weight_zero_is_never_chosen(uniform: float, place: int) -> None:
    class Stuck(np.random.Generator):
        def random(self, size: tuple[int, ...], *_: Any, **__: Any) -> Any:  # type: ignore[override]
            return np.full(size, uniform)

    log_weight = np.full((2, 7), 0.3)
    log_weight[:, place] = -np.inf
    index = resample(log_weight, Stuck(np.random.PCG64(0)))
    assert index.min() >= 0
    assert index.max() < 7
    assert not np.any(index == place)


def test_weighted_expectation_is_the_ratio_of_sums() -> None:
    rng = np.random.default_rng(6)
    values, log_weight = rng.normal(size=(3, 40, 2, 5)), rng.normal(0, 2, (3, 40))
    weight = np.exp(log_weight)
    value, mcse = weighted_expectation(values, log_weight)
    expected = np.einsum("cd,cd...->...", weight, values) / weight.sum()
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    # The error: that of the mean of w (f - fhat) / mean(w).
    z = (weight / weight.mean())[..., None, None] * (values - expected)
    np.testing.assert_allclose(mcse, expectation(z).mcse, rtol=1e-9)
    assert value.shape == mcse.shape == (2, 5)


@pytest.mark.parametrize("constant", [1e4, -1e4, 700.0])
def test_a_common_constant_of_the_log_weights_cancels(constant: float) -> None:
    rng = np.random.default_rng(7)
    values, log_weight = rng.normal(size=(2, 50)), rng.normal(0, 2, (2, 50))
    for shifted, plain in zip(
        weighted_expectation(values, log_weight + constant),
        weighted_expectation(values, log_weight),
        strict=True,
    ):
        np.testing.assert_allclose(shifted, plain, rtol=1e-10)


def test_a_constant_of_one_chain_does_not_cancel() -> None:
    values = np.repeat([[1.0], [3.0]], 10, axis=1) + np.linspace(-0.1, 0.1, 10)
    log_weight = np.repeat([[0.0], [np.log(3.0)]], 10, axis=1)
    assert weighted_expectation(values, log_weight).value == pytest.approx(2.5, rel=1e-12)


def test_equal_weights_give_the_plain_expectation() -> None:
    values = np.random.default_rng(8).normal(size=(4, 100, 3))
    weighted = weighted_expectation(values, np.full((4, 100), -3.7))
    plain = expectation(values)
    np.testing.assert_allclose(weighted.value, plain.value, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(weighted.mcse, plain.mcse, rtol=1e-10)


def test_a_weight_of_zero_counts_for_nothing() -> None:
    rng = np.random.default_rng(9)
    values, log_weight = rng.normal(size=(2, 20)), np.zeros((2, 20))
    log_weight[0, 3], values[0, 3] = -np.inf, 1e9
    kept = np.delete(values.ravel(), 3)
    assert weighted_expectation(values, log_weight).value == pytest.approx(kept.mean(), rel=1e-6)


def autoregression(rng: np.random.Generator, rho: float, draws: int) -> FloatArray:
    """Standard normal series (RUNS, draws), each started in its own distribution."""
    x = np.empty((RUNS, draws))
    x[:, 0] = rng.normal(size=RUNS)
    for t in range(1, draws):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * rng.normal(size=RUNS)
    return x


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_the_error_of_a_weighted_mean_is_honest(rho: float) -> None:
    """Draws of N(0, 1) reweighted to N(0.5, 0.8^2): z-scores have variance one."""
    x = autoregression(np.random.default_rng(10), rho, 4000)
    log_weight = norm.logpdf(x, 0.5, 0.8) - norm.logpdf(x)
    for f, exact in ((x, 0.5), (x**2, 0.25 + 0.64)):
        runs = [
            weighted_expectation(f[r].reshape(2, -1), log_weight[r].reshape(2, -1))
            for r in range(RUNS)
        ]
        z = np.array([(run.value - exact) / run.mcse for run in runs])
        # Estimated errors of autocorrelated series scatter by some percent more.
        assert BOUNDS[0] * 0.95 < np.mean(z**2) < BOUNDS[1] * 1.05
        assert abs(z.mean()) < 4 / np.sqrt(RUNS)


@pytest.mark.parametrize(
    ("values", "log_weight", "message"),
    [
        (np.zeros((2, 8)), np.zeros(16), "match"),
        (np.zeros((2, 8)), np.zeros((2, 7)), "match"),
        (np.zeros((2, 8)), np.zeros((8, 2)), "match"),
        (np.zeros((2, 8, 3)), np.zeros((2, 8, 2)), "match"),
        (np.zeros((2, 8, 3, 2)), np.zeros((2, 8, 3, 2)), "match"),
        (np.zeros(8), np.zeros((1, 8)), "match"),
        (np.zeros((2, 8)), np.full((2, 8), np.nan), "finite"),
        (np.zeros((2, 8)), np.full((2, 8), -np.inf), "finite"),
        (np.zeros((2, 8)), np.where(np.arange(8) == 3, np.inf, np.zeros((2, 8))), "finite"),
        (np.zeros((2, 8)), np.where(np.arange(8) == 3, np.nan, np.zeros((2, 8))), "finite"),
        (np.zeros((2, 3)), np.zeros((2, 3)), "4 draws"),
        (np.zeros((0, 8)), np.zeros((0, 8)), "N >= 1"),
    ],
)
def test_bad_weights_are_refused(values: FloatArray, log_weight: FloatArray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        weighted_expectation(values, log_weight)


@pytest.mark.parametrize(
    "log_weight",
    [
        np.full((2, 5), -np.inf),
        np.array([[0.0, 0.0], [-np.inf, -np.inf]]),
        np.array([[0.0, np.nan]]),
        np.array([[0.0, np.inf]]),
        np.empty((2, 0)),
        np.float64(0),
        np.zeros(5),
        np.zeros((2, 5, 3)),
    ],
)
def test_resampling_bad_weights_is_refused(log_weight: FloatArray) -> None:
    with pytest.raises(DataError):
        resample(log_weight, np.random.default_rng(0))


def test_nothing_is_changed_in_place() -> None:
    rng = np.random.default_rng(11)
    values, one, zero = rng.normal(size=(3, 2, 20))
    before = [array.copy() for array in (values, one, zero)]
    weighted_expectation(values, one)
    log_evidence(one, zero, log_zeta=0.0)
    resample(one, rng)
    for array, kept in zip((values, one, zero), before, strict=True):
        assert np.array_equal(array, kept)


def test_the_standard_error_of_a_series() -> None:
    """Of a first-order autoregression the variance of the mean is (1 + rho) / (1 - rho) / n."""
    series = autoregression(np.random.default_rng(15), 0.6, 5000)[:4]
    exact = np.sqrt(1.6 / 0.4 / series.size)
    # Over the other chains, four by four, the estimate scatters by 2.7 %; five times that.
    assert standard_error(series) == pytest.approx(exact, rel=0.14)
    assert standard_error(np.full((2, 8), 1e5)) == 0
    with pytest.raises(DataError, match="4 draws"):
        standard_error(np.zeros((2, 3)))


def test_log_evidence_by_hand() -> None:
    one, zero = np.log([[1.0, 2.0, 3.0, 6.0]]), np.log([[1.0, 1.0, 0.5, 1.5]])
    estimate = log_evidence(one, zero, log_zeta=0.25, log_g_ratio=-1.5)
    assert isinstance(estimate, LogEvidence)
    assert isinstance(estimate.value, float)
    assert isinstance(estimate.mcse, float)
    assert estimate.value == pytest.approx(0.25 + np.log(3.0) + 1.5, rel=1e-14)
    difference = np.exp(one) / 3 - np.exp(zero)
    assert estimate.mcse == pytest.approx(standard_error(difference), rel=1e-12)


@pytest.mark.parametrize("constant", [1e5, -1e5])
def test_log_evidence_of_extreme_weights(constant: float) -> None:
    rng = np.random.default_rng(12)
    one, zero = rng.normal(size=(2, 2, 100))
    plain = log_evidence(one, zero, log_zeta=0.0)
    shifted = log_evidence(one + constant, zero, log_zeta=0.0)
    assert shifted.value == pytest.approx(plain.value + constant, rel=1e-12)
    assert shifted.mcse == pytest.approx(plain.mcse, rel=1e-8)


@pytest.mark.parametrize(
    ("one", "zero", "message"),
    [
        (np.zeros((2, 8)), np.zeros((2, 7)), "one shape"),
        (np.zeros(8), np.zeros(8), "one shape"),
        (np.zeros((2, 8, 1, 1)), np.zeros((2, 8, 1, 1)), "one shape"),
        (np.zeros((2, 8)), np.zeros((1, 8)), "one shape"),
        (np.full((2, 8), np.nan), np.zeros((2, 8)), "finite"),
        (np.zeros((2, 8)), np.full((2, 8), np.inf), "finite"),
        (np.zeros((2, 8)), np.full((2, 8), -np.inf), "finite"),
        (np.full((2, 8), -np.inf), np.zeros((2, 8)), "finite"),
        (np.zeros((2, 3)), np.zeros((2, 3)), "4 draws"),
    ],
)
def test_log_evidence_refuses_bad_weights(one: FloatArray, zero: FloatArray, message: str) -> None:
    with pytest.raises(DataError, match=message):
        log_evidence(one, zero, log_zeta=0.0)


@pytest.mark.parametrize("shape", [(0, 8), (2, 0)])
def test_log_evidence_refuses_no_draws(shape: tuple[int, int]) -> None:
    with pytest.raises(DataError):
        log_evidence(np.zeros(shape), np.zeros(shape), log_zeta=0.0)


GRID = np.linspace(-12, 12, 200_001)
LOG_Z, LOG_ZETA = 2.0, 1.2


def mixture(x: FloatArray) -> FloatArray:
    """Log of exp(LOG_Z) times a mixture of two Gaussians."""
    one, two = np.log(0.7) + norm.logpdf(x, -1.5, 0.5), np.log(0.3) + norm.logpdf(x, 1.5, 0.25)
    return np.asarray(LOG_Z + np.logaddexp(one, two), dtype=np.float64)


def log_weights(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log density of x with beta integrated out, log w1 and log w0 for the uniform g."""
    log_base = norm.logpdf(x, -0.6, 1.46)
    delta = log_base + LOG_ZETA - mixture(x)
    safe = np.where(np.abs(delta) < 1e-8, 1e-8, delta)
    log_integral = np.log(-np.expm1(-safe) / safe)
    return log_base + log_integral, -delta - log_integral, -log_integral


def exact_draws(rng: np.random.Generator, shape: tuple[int, int]) -> FloatArray:
    """Draw from the collapsed density by inverting its distribution function."""
    cumulative = np.exp(log_weights(GRID)[0]).cumsum()
    return np.interp(rng.random(shape), cumulative / cumulative[-1], GRID)


def test_log_evidence_from_exact_draws() -> None:
    x = exact_draws(np.random.default_rng(13), (4, 20_000))
    _, log_w1, log_w0 = log_weights(x)
    estimate = log_evidence(log_w1, log_w0, log_zeta=LOG_ZETA)
    assert abs(estimate.value - LOG_Z) < 4 * estimate.mcse
    assert 0 < estimate.mcse < 0.02
    # The weights of the same draws give the moments of both ends.
    for log_w, f, exact in (
        (log_w1, x, 0.7 * -1.5 + 0.3 * 1.5),
        (log_w1, x**2, 0.7 * 2.5 + 0.3 * (2.25 + 0.0625)),
        (log_w0, x, -0.6),
        (log_w0, (x + 0.6) ** 2, 1.46**2),
    ):
        value, mcse = weighted_expectation(f, log_w)
        assert abs(value - exact) < 4 * mcse


def test_the_error_of_log_evidence_is_honest() -> None:
    x = exact_draws(np.random.default_rng(14), (RUNS, 4000))
    _, log_w1, log_w0 = log_weights(x)
    runs = [
        log_evidence(log_w1[r].reshape(2, -1), log_w0[r].reshape(2, -1), log_zeta=LOG_ZETA)
        for r in range(RUNS)
    ]
    z = np.array([(run.value - LOG_Z) / run.mcse for run in runs])
    assert BOUNDS[0] < np.mean(z**2) < BOUNDS[1]
    assert abs(z.mean()) < 4 / np.sqrt(RUNS)


def test_runs_whose_draws_share_ancestors_tell_the_error_by_their_spread() -> None:
    """Each of four runs is off by something of its own, which no order of its draws shows."""
    rng, log_weight = np.random.default_rng(9), np.zeros((4, 200))
    alone, together = [], []
    for _ in range(2000):
        x = rng.normal(size=(4, 200)) + rng.normal(0, 0.5, size=(4, 1))
        estimate = weighted_expectation(x, log_weight, separate=True)
        together.append(float(estimate.value / estimate.mcse))
        plain = weighted_expectation(x, log_weight)
        alone.append(float(plain.value / plain.mcse))
        assert estimate.mcse >= plain.mcse
    # Twice the error, or rather 1.96 times, holds in 95 % of the cases, up to 4 errors of a share.
    outside = np.mean(np.abs(together) > 1.96)
    assert abs(outside - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 2000)
    assert np.mean(np.abs(alone) > 1.96) > outside
    series = rng.normal(size=(3, 50, 2))
    means = series.mean(axis=1)
    # The 97.5 % point of Student's t with two degrees of freedom is 4.303.
    expected = 4.303 / 1.960 * means.std(axis=0, ddof=1) / np.sqrt(3)
    assert between_runs(series) == pytest.approx(expected, rel=1e-3)
    assert np.array_equal(between_runs(series[:1]), [0, 0])


def test_the_spread_of_independent_systems_shows_in_errors() -> None:
    """Of 16 chains that change between 0 and 1 once in 60 draws, joined to four.

    The mean square of z is 1 where errors are right: the tails of what few changes tell make it
    larger, and the more so if it is not known where one chain ends and the next begins.
    """
    rng = np.random.default_rng(11)
    z = []
    for _ in range(300):
        states = (
            np.cumsum(rng.random((16, 250)) < 1 / 60, axis=1) + rng.integers(2, size=(16, 1))
        ) % 2
        joined = states.reshape(4, 1000).astype(float)
        both = [expectation(joined), expectation(joined, systems=4)]
        assert both[0].value == both[1].value
        assert both[1].mcse >= between_runs(states.astype(float))
        assert both[1].mcse >= expectation(states).mcse
        z.append([(float(each.value) - 0.5) / float(each.mcse) for each in both])
    blind, seeing = np.mean(np.square(z), axis=0)
    assert seeing < 0.9 * blind
    assert seeing < 1.5
    # Nothing changes where a run has no four draws, or runs are not equally long.
    assert expectation(joined, systems=300) == expectation(joined)
    assert expectation(joined, systems=3) == expectation(joined)
