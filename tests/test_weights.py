"""Weights, expectations with their errors, and the choice among pseudo-samples."""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import softmax
from scipy.stats import chi2

from harness.errors import DataError
from harness.evidence import (
    draw_index,
    effective_pseudo_samples,
    expectation,
    normalised_weights,
)


def test_weights_are_the_softmax_of_each_draw() -> None:
    log_weight = np.random.default_rng(1).normal(0, 3, (3, 50, 4))
    weight = normalised_weights(log_weight)
    np.testing.assert_allclose(weight, softmax(log_weight, axis=-1), rtol=1e-14)
    np.testing.assert_allclose(weight.sum(axis=-1), 1, rtol=1e-15)


def test_a_constant_of_each_draw_cancels() -> None:
    rng = np.random.default_rng(2)
    log_weight = rng.normal(0, 3, (3, 50, 4))
    shifted = log_weight + rng.normal(0, 1e3, (3, 50, 1))
    # The shift rounds each log weight by up to 1e3 * 1e-16.
    np.testing.assert_allclose(
        normalised_weights(shifted), normalised_weights(log_weight), rtol=5e-12
    )


@pytest.mark.parametrize(
    ("log_weight", "expected"),
    [
        ([0.0, -np.inf], [1, 0]),
        ([-np.inf, np.log(3), 0.0], [0, 0.75, 0.25]),
        ([1e5, -1e5], [1, 0]),
        ([1e5, 1e5 + np.log(4)], [0.2, 0.8]),
        ([-1e5, -1e5 - np.log(4)], [0.8, 0.2]),
        ([-1e5], [1]),
        ([1e308, 1e308], [0.5, 0.5]),
    ],
)
def test_extreme_log_weights(log_weight: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(normalised_weights(log_weight), expected, rtol=1e-10, atol=0)


def test_a_single_pseudo_sample_has_all_the_weight() -> None:
    log_weight = np.random.default_rng(3).normal(0, 1e4, (2, 30, 1))
    assert np.all(normalised_weights(log_weight) == 1)
    assert np.all(draw_index(log_weight, np.random.default_rng(0)) == 0)
    assert np.all(effective_pseudo_samples(log_weight) == 1)


@pytest.mark.parametrize(
    ("log_weight", "message"),
    [
        (0.0, "last axis"),
        (np.empty((4, 0)), "last axis"),
        ([[0.0, 1.0], [0.0, np.nan]], "1 draws are not"),
        ([[np.nan, 1.0], [0.0, np.inf]], "2 draws are not"),
        ([[0.0, 1.0], [-np.inf, -np.inf]], "1 draws are not"),
    ],
)
def test_bad_log_weights_are_refused(log_weight: npt.ArrayLike, message: str) -> None:
    for function in (normalised_weights, effective_pseudo_samples):
        with pytest.raises(DataError, match=message):
            function(log_weight)
    with pytest.raises(DataError, match=message):
        draw_index(log_weight, np.random.default_rng(0))


def test_log_weights_are_not_changed_in_place() -> None:
    log_weight = np.array([[0.0, 2.0]])
    normalised_weights(log_weight)
    assert log_weight.tolist() == [[0.0, 2.0]]


def test_expectation_of_independent_draws() -> None:
    draws = np.random.default_rng(4).normal(3, 2, (4, 2000))
    value, mcse = expectation(draws)
    assert value == pytest.approx(draws.mean(), rel=1e-14)
    # The error of the error: the variance has relative error sqrt(2/n) = 0.016, and the
    # autocorrelation time, a sum of 2W + 1 estimated autocorrelations each with variance 1/n,
    # sqrt(2 (2W + 1) / n) = 0.04 to 0.07 for a window W of 3 to 10 lags.  The MCSE is a square
    # root, which halves it: 0.035, and five of these are 0.18.
    assert float(mcse) == pytest.approx(2 / np.sqrt(8000), rel=0.18)


@pytest.mark.parametrize("rho", [0.5, 0.9, -0.5])
def test_expectation_of_an_autoregression(rho: float) -> None:
    chains, count = 4, 10_000
    rng = np.random.default_rng(5)
    noise = rng.normal(0, np.sqrt(1 - rho**2), (chains, count))
    series = np.empty_like(noise)
    series[:, 0] = rng.normal(size=chains)
    for t in range(1, count):
        series[:, t] = rho * series[:, t - 1] + noise[:, t]
    value, mcse = expectation(series)
    known = np.sqrt((1 + rho) / (1 - rho)) / np.sqrt(chains * count)
    # Relative error of the autocorrelation time sqrt(2 (2W + 1) / n) (Madras and Sokal 1988);
    # the window W ends where rho^W sinks into noise of size n^(-1/2), at W = log(n) / (-2 log
    # |rho|) = 50 for 0.9: 0.07, halved by the square root, and five of these are 0.18.
    window = np.log(chains * count) / (-2 * np.log(abs(rho)))
    error = 0.5 * np.sqrt(2 * (2 * window + 1) / (chains * count))
    assert float(mcse) == pytest.approx(known, rel=5 * error)
    assert abs(float(value)) < 5 * known


def test_expectation_works_entry_by_entry() -> None:
    series = np.random.default_rng(6).normal(size=(2, 100, 3, 2))
    value, mcse = expectation(series)
    assert value.shape == mcse.shape == (3, 2)
    for i in range(3):
        for j in range(2):
            alone = expectation(series[:, :, i, j])
            assert value[i, j] == pytest.approx(float(alone.value), rel=1e-12)
            assert mcse[i, j] == pytest.approx(float(alone.mcse), rel=1e-12)


@pytest.mark.parametrize("shape", [(), (10,), (4, 3), (4, 0)])
def test_too_few_draws_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="4 draws or more"):
        expectation(np.zeros(shape))


def test_index_has_the_probabilities_of_the_weights() -> None:
    probability = np.array([0.02, 0.5, 0.08, 0.3, 0.1])
    count = 100_000
    log_weight = np.broadcast_to(np.log(probability) + 17, (count, 5))
    index = draw_index(log_weight, np.random.default_rng(7))
    observed = np.bincount(index, minlength=5)
    statistic = np.sum((observed - count * probability) ** 2 / (count * probability))
    assert statistic < chi2.ppf(1 - 1e-6, df=4)


def test_index_follows_the_weights_of_its_own_draw() -> None:
    rng = np.random.default_rng(8)
    log_weight = rng.normal(0, 2, (4, 20_000, 3))
    weight = normalised_weights(log_weight)
    index = draw_index(log_weight, rng)
    assert index.shape == (4, 20_000)
    for i in range(3):
        # Indicator minus its probability, correlated with the probability: mean zero.
        residual = ((index == i) - weight[..., i]) * np.stack(
            [np.ones_like(weight[..., i]), weight[..., i]]
        )
        variance = (
            weight[..., i]
            * (1 - weight[..., i])
            * np.stack([np.ones_like(weight[..., i]), weight[..., i] ** 2])
        )
        z = residual.sum(axis=(1, 2)) / np.sqrt(variance.sum(axis=(1, 2)))
        assert np.all(np.abs(z) < 5)


def test_index_is_the_same_for_the_same_seed() -> None:
    log_weight = np.random.default_rng(9).normal(size=(2, 500, 4))
    first, again, other = (draw_index(log_weight, np.random.default_rng(s)) for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_index_is_certain_where_a_weight_is_one() -> None:
    chosen = np.random.default_rng(10).integers(0, 5, 2000)
    log_weight = np.full((2000, 5), -np.inf)
    log_weight[np.arange(2000), chosen] = 3.0
    assert np.array_equal(draw_index(log_weight, np.random.default_rng(0)), chosen)


class OneNumber:
    """Stands in for a generator whose every uniform number is the same."""

    def __init__(self, number: float) -> None:
        self.number = number

    def random(self, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        return np.full(shape, self.number)


@pytest.mark.parametrize("uniform", [0.0, np.nextafter(1, 0)], ids=["smallest", "largest"])
@pytest.mark.parametrize("count", [1, 3, 6, 10, 49])
def test_a_weight_of_zero_is_never_chosen(uniform: float, count: int) -> None:
    log_weight = np.concatenate([[-np.inf], np.zeros(count), [-np.inf]])
    generator = cast(np.random.Generator, OneNumber(uniform))
    assert log_weight[draw_index(log_weight, generator)] == 0


def test_effective_number_of_pseudo_samples() -> None:
    log_weight = np.log(
        [[0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 1e-300, 1e-300], [0.7, 0.1, 0.1, 0.1]]
    )
    np.testing.assert_allclose(effective_pseudo_samples(log_weight), [4, 2, 1 / 0.52], rtol=1e-14)
