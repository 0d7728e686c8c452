"""Numbers that say whether weighted draws can be trusted, against known answers."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import (
    Estimate,
    constant,
    effective_draws,
    largest_r_hat,
    pareto_k,
    r_hat,
    r_hat_by_chance,
    round_trips,
    slowest,
    standard_deviation,
    weighted_expectation,
    z_scores,
)


def autoregression(rng: np.random.Generator, rho: float, shape: tuple[int, int]) -> FloatArray:
    x = np.empty(shape)
    x[:, 0] = rng.normal(size=shape[0])
    for t in range(1, shape[1]):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * rng.normal(size=shape[0])
    return x


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_effective_draws_of_equal_weights(rho: float) -> None:
    """That of an autoregression is n (1 - rho) / (1 + rho); MCSE's error as in test_weights."""
    x = autoregression(np.random.default_rng(1), rho, (4, 10_000))
    known = x.size * (1 - rho) / (1 + rho)
    assert float(effective_draws(x, np.zeros(x.shape))) == pytest.approx(known, rel=0.3)
    # And those of a multiple and of each entry by itself.
    both = np.stack([x, 3 * x - 7], axis=-1)
    np.testing.assert_allclose(
        effective_draws(both, np.zeros(x.shape)),
        np.broadcast_to(effective_draws(x, np.zeros(x.shape)), 2),
        rtol=1e-6,
    )


@pytest.mark.parametrize("pseudo_samples", [1, 3])
def test_draws_whose_squares_overflow(pseudo_samples: int) -> None:
    """They are multiples of draws that do not; 2^1000 has one bit, so that nothing is rounded."""
    rng = np.random.default_rng(3)
    x = np.exp(autoregression(rng, 0.5, (4, 500 * pseudo_samples)).reshape(4, 500, -1))
    log_weight = rng.normal(size=x.shape)
    if pseudo_samples == 1:
        x, log_weight = x[..., 0], log_weight[..., 0]
    large = 2.0**1000
    plain, huge = (weighted_expectation(each, log_weight) for each in (x, large * x))
    np.testing.assert_allclose(huge.value / large, plain.value, rtol=1e-12)
    np.testing.assert_allclose(huge.mcse / large, plain.mcse, rtol=1e-12)
    count = effective_draws(large * x, log_weight)
    np.testing.assert_allclose(count, effective_draws(x, log_weight), rtol=1e-9)
    found = standard_deviation(large * x, x.ndim)
    np.testing.assert_allclose(found / large, x.std(), rtol=1e-12)
    # Infinite draws have no mean that is a number, and finite ones beside them have theirs.
    x[0, 0] = np.inf
    both = np.stack([x, np.full_like(x, large)], axis=-1)
    with np.errstate(invalid="ignore"):
        assert np.isinf(weighted_expectation(both, log_weight).value[0])
        assert weighted_expectation(both, log_weight).value[1] == pytest.approx(large)


def test_effective_draws_of_importance_weights() -> None:
    """N(0, 1) to N(1, 1): n E_target[(f - mean)^2] / E_target[w (f - mean)^2] = n exp(-1) / 2."""
    x = np.random.default_rng(2).normal(size=(4, 25_000))
    known = x.size * math.exp(-1) / 2
    assert float(effective_draws(x, norm.logpdf(x, 1) - norm.logpdf(x))) == pytest.approx(
        known, rel=0.3
    )


def test_effective_draws_of_pseudo_samples() -> None:
    """N equal pseudo-samples are worth one, N independent ones N."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(4, 5000, 3))
    same = np.repeat(x[..., :1], 3, axis=-1)
    weight = np.zeros(x.shape)
    assert float(effective_draws(x, weight)) == pytest.approx(60_000, rel=0.15)
    assert float(effective_draws(same, weight)) == pytest.approx(20_000, rel=0.15)


def test_effective_draws_where_one_draw_dominates() -> None:
    x = np.random.default_rng(4).normal(size=(2, 500))
    log_weight = np.zeros(x.shape)
    log_weight[0, 3], log_weight[1, 7] = 40.0, 40.0
    assert float(effective_draws(x, log_weight)) < 10
    assert math.isnan(float(effective_draws(np.ones((2, 500)), log_weight)))
    # A single one leaves a mean from which nothing that counts differs.
    log_weight[1, 7] = 0.0
    assert 1 <= float(effective_draws(x, log_weight)) <= 10 + 1e-9


@pytest.mark.parametrize("k", [0.2, 0.5, 0.8, 1.2])
def test_pareto_k_of_pareto_weights(k: float) -> None:
    """The estimate's error is about (1 + k) / sqrt(tail of 600 draws), and a prior near 0.5."""
    weight = np.random.default_rng(5).pareto(1 / k, 40_000) + 1
    estimate = pareto_k(np.log(weight).reshape(4, -1) + 1e4)
    assert estimate == pytest.approx(k, abs=4 * (1 + k) / math.sqrt(600))


def test_pareto_k_of_bounded_weights_is_not_positive() -> None:
    weight = np.random.default_rng(6).random(40_000)
    assert pareto_k(np.log(weight)) < 0


@pytest.mark.parametrize("size", [25, 100, 4000])
def test_pareto_k_of_degenerate_weights(size: int) -> None:
    log_weight = np.full(size, -1e4)
    assert math.isnan(pareto_k(log_weight))  # all equal
    log_weight[3] = 0.0
    assert pareto_k(log_weight) == math.inf  # one has everything
    assert math.isnan(pareto_k(np.zeros(24)))
    assert pareto_k(np.linspace(0, -1e5, size)) > 1


@pytest.mark.filterwarnings("error")
def test_pareto_k_of_repeated_weights_says_nothing_aloud() -> None:
    """Draws that a sampler repeats leave ties in the tail."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        log_weight = np.repeat(rng.normal(0, 2, 40), rng.integers(1, 30, 40))
        assert not pareto_k(log_weight) < -10


def test_r_hat_of_chains_that_agree() -> None:
    x = np.random.default_rng(7).normal(size=(4, 1000, 5))
    value = r_hat(x)
    assert value.shape == (5,)
    assert np.all((value > 0.99) & (value < 1.01))


def test_r_hat_of_chains_that_do_not() -> None:
    rng = np.random.default_rng(8)
    apart = rng.normal(size=(4, 500)) + np.array([[0], [0], [0], [4]])
    assert float(r_hat(apart)) > 1.3
    # Another width alone, which the folded ranks see.
    wide = rng.normal(size=(4, 500)) * np.array([[1], [1], [1], [6]])
    assert float(r_hat(wide)) > 1.2
    # A single chain that drifts.
    assert float(r_hat(rng.normal(size=(1, 500)) + np.linspace(0, 5, 500))) > 1.3
    assert float(r_hat(rng.normal(size=(1, 2000)))) < 1.02


@pytest.mark.parametrize("value", [1.0, -0.1, 3e-100, 1e100])
def test_what_rounding_leaves_of_a_constant_is_no_variance(value: float) -> None:
    """Under weights that differ, and of a number that is computed anew for each draw."""
    rng = np.random.default_rng(4)
    log_weight = rng.normal(size=(4, 500))
    noise = rng.integers(-1, 2, size=(4, 500)) * np.finfo(np.float64).eps
    for same in (np.full((4, 500), value), value * (1 + noise)):
        values = np.stack([same, rng.normal(size=(4, 500))], axis=2)
        assert constant(values).tolist() == [True, False]
        found = effective_draws(values, log_weight)
        # The mean and its error by something else, as of modes that masses weigh.
        by_masses = Estimate(np.array([value, 0.0]) * (1 + 1e-16), np.array([1e-17, 0.1]))
        with np.errstate(over="ignore"):
            others = effective_draws(values, log_weight, by_masses)
        for each in (found, others):
            assert np.isnan(each[0])
            assert np.isfinite(each[1])
        assert np.isnan(r_hat(values)[0])
        assert slowest(values, log_weight).tolist() == [1, 0]
    assert not constant(np.array([[0.0, np.nan]]))
    assert not constant(np.array([[1.0, 1.0 + 1e-12]]))
    assert constant(np.zeros((2, 3)))


@pytest.mark.filterwarnings("error")
def test_r_hat_of_chains_that_stand_still() -> None:
    assert np.isnan(r_hat(np.ones((4, 50))))
    assert r_hat(np.repeat([[1.0], [2.0]], 50, axis=1)) > 1e3
    with pytest.raises(DataError, match="8 draws"):
        r_hat(np.zeros((4, 7)))


@pytest.mark.parametrize("odd", ["location", "width", "heavy tails", "a chain that stands still"])
def test_the_largest_r_hat_of_many_coordinates(odd: str) -> None:
    """The one that is off is found among 700, wherever it is; among equals any may be largest."""
    rng = np.random.default_rng(9)
    x = rng.normal(size=(4, 1000, 7, 100))
    alike = largest_r_hat(x)
    every = r_hat(x)
    # 64 of 700 have at least the 91st percentile, unless the rough measure orders them at random.
    assert np.quantile(every, 0.9) < alike <= every.max() < 1.01
    one = x[:, :, 4, 33]
    if odd == "location":
        one[2] += 0.5
    elif odd == "width":
        one[2] *= 2
    elif odd == "heavy tails":  # whose variances and means tell nothing
        one[:] = rng.standard_cauchy(one.shape)
        one[2] += 2
    else:
        one[2] = 0.1
    x[:, :, 0, 0] = 3.0  # has no R-hat
    assert largest_r_hat(x) == r_hat(one) > 1.02
    assert np.isnan(largest_r_hat(np.ones((4, 50, 100))))


def test_the_largest_r_hat_of_long_chains() -> None:
    """Independent draws are the worst case for leaving some of them out."""
    rng = np.random.default_rng(10)
    x = rng.normal(size=(4, 40_001, 3))
    # Eight halves of n = 1,818 draws: R-hat is about 1 + (chi2_7 / 7 - 1) / 2n, and chi2_7 is below
    # 29 but once in 8,000 times.
    assert abs(largest_r_hat(x) - 1) < 3.2 / (2 * 1818)
    x[3, :, 1] += 0.4
    assert largest_r_hat(x) == pytest.approx(r_hat(x).max(), abs=5e-3)
    assert r_hat(x).max() > 1.01


@pytest.mark.parametrize(
    ("chains", "draws", "kind"),
    [
        (1, 200, "normal"),
        (2, 50, "normal"),
        (4, 100, "normal"),
        (4, 100, "binary"),
        (8, 16, "heavy"),
    ],
)
def test_the_largest_r_hat_that_chance_makes(chains: int, draws: int, kind: str) -> None:
    """One in a hundred goes beyond it: of 40 at most three, but once in 800 times."""
    rng = np.random.default_rng(13)
    shape = (40, chains, draws, 300)
    many: FloatArray = rng.standard_cauchy(shape) if kind == "heavy" else rng.standard_normal(shape)
    if kind == "binary":
        many = (many > 0.5).astype(np.float64)
    limit = r_hat_by_chance(chains, draws, 300)
    found = np.array([largest_r_hat(each) for each in many])
    assert np.count_nonzero(found > limit) <= 3
    # And it is no wider than need be: what one in two exceeds is closer to 1 by a third or so.
    assert np.median(found) - 1 > 0.5 * (limit - 1)


@pytest.mark.parametrize("weighted", ["", "across draws", "within draws"])
def test_the_slowest_of_many_coordinates(weighted: str) -> None:
    """Two slow ones are found among 2,200, more than are compared at a time, in their order."""
    rng = np.random.default_rng(11)
    shape: tuple[int, ...] = (4, 500, 2) if weighted == "within draws" else (4, 500)
    x = rng.normal(size=(*shape, 2200))
    for k, rho in ((7, 0.8), (2105, 0.95)):
        slow = autoregression(rng, rho, (4, 500))
        x[..., k] = slow[..., None] if len(shape) == 3 else slow
    x[..., 3], x[..., 1500] = 2.0, np.nan
    log_weight = rng.normal(scale=0.5, size=shape) if weighted else np.zeros(shape)
    if weighted == "within draws":
        log_weight -= np.logaddexp.reduce(log_weight, axis=-1, keepdims=True)
    found = slowest(x, log_weight)
    # By the means of batches of 31 draws the error is about 8, 19 and 1 times that of independent
    # draws, in squares, give or take sqrt(2 / 64) of itself.
    assert found[:2].tolist() == [2105, 7]
    exact = effective_draws(x[..., [2105, 7, 5]], log_weight)
    assert exact[0] < exact[1] < exact[2]
    assert len(found) == 64
    assert set(slowest(x, log_weight, 2200)[-2:]) == {3, 1500}
    assert slowest(x[..., :0], log_weight).size == 0


@pytest.mark.parametrize(
    ("path", "trips"),
    [
        ([0.05, 0.95, 0.05], 1),
        ([0.5, 0.5, 0.5], 0),
        ([0.05, 0.95, 0.95, 0.5, 0.92], 0),
        ([0.95, 0.05, 0.95], 0),
        ([0.95, 0.05, 0.95, 0.05], 1),
        ([0.05, 0.5, 0.05, 0.89, 0.11, 0.05], 0),
        ([0.05, 0.95] * 7, 6),
        ([0.95, 0.05] * 7, 6),
        ([0.1, 0.9, 0.1, 0.9], 0),
        ([], 0),
    ],
)
def test_round_trips(path: list[float], trips: int) -> None:
    assert round_trips(np.array([path])).tolist() == [trips]


def test_round_trips_of_each_chain_and_pseudo_sample() -> None:
    rng = np.random.default_rng(9)
    beta = rng.random((3, 200, 2))
    count: npt.NDArray[np.intp] = round_trips(beta)
    assert count.shape == (3, 2)
    for c in range(3):
        for i in range(2):
            assert count[c, i] == round_trips(beta[c : c + 1, :, i])[0] > 0
    assert np.all(round_trips(beta, lower=0.3, upper=0.7) > count)


def test_z_scores() -> None:
    estimate = Estimate(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, 0.1, 0.0, 0.0]))
    assert z_scores(estimate, [0.0, 2.5, 3.0, 3.0]).tolist() == [2.0, -5.0, 0.0, math.inf]
