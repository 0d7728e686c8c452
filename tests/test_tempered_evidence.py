"""Log Z by the complement identity and from both sides: by enumeration and from exact draws."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from calibration import few_and_many, mean_square_bounds
from scipy.special import logsumexp
from scipy.stats import beta as beta_distribution
from scipy.stats import norm

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import (
    LogG,
    complement_log_weight,
    expectation,
    inv_temp_log_conditionals,
    log_evidence,
    log_path_weight,
    normalised_weights,
    two_sided_log_evidence,
    weighted_expectation,
)

UNIFORM: LogG = ((0.0, 0.0), (1.0, 0.0))
KNOTTED: LogG = ((0.0, 0.6), (0.3, -0.4), (1.0, 0.9))


def rule(log_g: LogG, count: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights on (0, 1), piece by piece of log g."""
    nodes, share = np.polynomial.legendre.leggauss(count)
    pieces = [
        (a + (b - a) * (nodes + 1) / 2, (b - a) / 2 * share) for (a, _), (b, _) in pairwise(log_g)
    ]
    beta, weight = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return beta, weight


@pytest.mark.parametrize("num", [2, 3])
@pytest.mark.parametrize("log_g", [UNIFORM, KNOTTED], ids=["uniform", "knotted"])
@pytest.mark.parametrize("log_zeta", [-1.0, 2.5])
def test_complement_identity_by_enumeration(num: int, log_g: LogG, log_zeta: float) -> None:
    """Eq. 8 summed over every state of N pseudo-samples on three points, beta by quadrature."""
    base = np.array([0.5, 0.3, 0.2])
    gamma = np.array([0.4, 3.0, 7.5])
    beta, share = rule(log_g, 14 if num == 2 else 8)
    log_g_at = np.interp(beta, *np.array(log_g).T)
    log_pi = np.log(6 * beta * (1 - beta))  # not g
    log_gamma, log_base = np.log(gamma), np.log(base)
    log_path = beta * (log_gamma[:, None] - log_zeta) + (1 - beta) * log_base[:, None]
    log_q = (log_path + log_g_at).ravel()
    log_target = (log_gamma[:, None] + log_pi).ravel()
    log_measure = np.broadcast_to(np.log(share), log_path.shape).ravel()
    delta = np.repeat(log_base + log_zeta - log_gamma, beta.size)

    # Every combination of states, one axis a pseudo-sample.
    state = np.stack(np.meshgrid(*[np.arange(log_q.size)] * num, indexing="ij"), axis=-1)
    state = state.reshape(1, -1, num)
    log_weight = (log_target - log_q)[state]
    log_density = logsumexp(log_weight, axis=-1) - np.log(num) + log_q[state].sum(axis=-1)
    log_mass = log_density + log_measure[state].sum(axis=-1)

    complement = complement_log_weight(log_weight)
    np.testing.assert_allclose(
        np.exp(complement), 1 - normalised_weights(log_weight), rtol=1e-9, atol=1e-12
    )
    # E_q[h] for the density q, against E[sum (1 - w) h] / (N - 1).
    q = np.exp(log_q + log_measure)
    total = np.exp(log_mass - logsumexp(log_mass))
    for h in (np.repeat([1.0, -2.0, 5.0], beta.size), np.tile(beta, 3), delta**2):
        average = (total[..., None] * np.exp(complement) * h[state]).sum() / (num - 1)
        assert average == pytest.approx((q * h).sum() / q.sum(), rel=1e-10)
    # Log Z, the draws being states with their masses.
    weighted = complement + log_mass[..., None]
    log_w1, log_w0 = inv_temp_log_conditionals(delta[state], log_g)
    estimate = log_evidence(
        log_w1 + weighted,
        log_w0 + weighted,
        log_zeta=log_zeta,
        log_g_ratio=log_g[-1][1] - log_g[0][1],
    )
    assert estimate.value == pytest.approx(np.log(gamma.sum()), abs=1e-8)
    # Moments of the base.
    point = np.repeat(np.eye(3), beta.size, axis=0)
    moments = weighted_expectation(point[state], weighted + log_w0)
    np.testing.assert_allclose(moments.value, base, atol=1e-8)
    moments = weighted_expectation(point[state], weighted + log_w1)
    np.testing.assert_allclose(moments.value, gamma / gamma.sum(), atol=1e-8)


@pytest.mark.parametrize("lowest", [0.0, 0.2])
def test_log_z_of_a_path_that_starts_above_the_base(lowest: float) -> None:
    """With g zero below the lowest beta the path weights still lead to beta = 0 and 1."""
    base, gamma, log_zeta = np.array([0.5, 0.3, 0.2]), np.array([0.4, 3.0, 7.5]), 0.7
    log_g = ((lowest, 0.3), (0.5, -0.2), (1.0, 0.4))
    delta = np.log(base) + log_zeta - np.log(gamma)
    beta, share = rule(log_g, 20)
    log_mass = np.log(base) + logsumexp(
        np.interp(beta, *np.array(log_g).T) + np.log(share) - beta * delta[:, None], axis=1
    )
    one, zero = (log_path_weight(delta, end, log_g) for end in (1.0, 0.0))
    assert logsumexp(log_mass + zero) == pytest.approx(0, abs=1e-12)
    assert log_zeta + logsumexp(log_mass + one) == pytest.approx(np.log(gamma.sum()), abs=1e-12)


@pytest.mark.parametrize(
    ("log_weight", "expected"),
    [
        ([0.0, 0.0], [0.5, 0.5]),
        ([0.0, np.log(3)], [0.75, 0.25]),
        ([0.0, -50.0], [np.exp(-50), 1.0]),  # 1 - w would be 0
        ([1e5, 1e5 - 40, 1e5 - 40], [2 * np.exp(-40), 1.0, 1.0]),
        ([0.0, -np.inf, 0.0], [0.5, 1.0, 0.5]),
    ],
)
def test_complement_of_extreme_weights(log_weight: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(np.exp(complement_log_weight(log_weight)), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("log_weight", "message"),
    [
        ([[0.0]], "N >= 2"),
        (np.zeros((4, 0)), "N >= 1"),
        ([[0.0, np.nan]], "finite"),
        ([[-np.inf, -np.inf]], "finite"),
    ],
)
def test_complement_refuses(log_weight: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        complement_log_weight(log_weight)


# A one-dimensional path with unequal modes, from which everything can be drawn exactly.
LOG_Z, LOG_ZETA = 2.0, 1.2
BASE = norm(-0.6, 1.46)
GRID = np.linspace(-12, 12, 100_001)


def log_gamma(x: FloatArray) -> FloatArray:
    """Log of exp(LOG_Z) times a mixture of two Gaussians."""
    one, two = np.log(0.7) + norm.logpdf(x, -1.5, 0.5), np.log(0.3) + norm.logpdf(x, 1.5, 0.25)
    return np.asarray(LOG_Z + np.logaddexp(one, two), dtype=np.float64)


def delta_of(x: FloatArray) -> FloatArray:
    return np.asarray(BASE.logpdf(x) + LOG_ZETA - log_gamma(x), dtype=np.float64)


def draw_path(
    rng: np.random.Generator, shape: tuple[int, ...], slope: float
) -> tuple[FloatArray, FloatArray]:
    """Draw (x, beta) from the path with log g(beta) = -slope beta, by inversion."""
    log_g = ((0.0, 0.0), (1.0, -slope))
    log_density = BASE.logpdf(GRID) - log_path_weight(delta_of(GRID), 0.0, log_g)
    cumulative = np.exp(log_density).cumsum()
    x = np.interp(rng.random(shape), cumulative / cumulative[-1], GRID)
    rate = delta_of(x) + slope
    rate = np.where(np.abs(rate) < 1e-9, 1e-9, rate)
    u = rng.random(shape)
    # The inverse of (1 - exp(-rate beta)) / (1 - exp(-rate)), for either sign of the rate.
    size = np.abs(rate)
    t = -np.log1p(u * np.expm1(-size)) / size
    return x, np.where(rate > 0, t, 1 - t)


def draw_pseudo_extended(
    rng: np.random.Generator, shape: tuple[int, int], num: int, slope: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw from eq. 8 exactly: one pseudo-sample from target and pi, the others from q."""
    x, beta = draw_path(rng, (*shape, num), slope)
    index = rng.integers(0, num, shape)[..., None]
    lower = rng.random((*shape, 1)) < 0.7
    target = np.where(lower, rng.normal(-1.5, 0.5, (*shape, 1)), rng.normal(1.5, 0.25, (*shape, 1)))
    np.put_along_axis(x, index, target, axis=-1)
    np.put_along_axis(beta, index, rng.beta(2, 1.5, (*shape, 1)), axis=-1)
    log_q = beta * (log_gamma(x) - LOG_ZETA) + (1 - beta) * BASE.logpdf(x) - slope * beta
    return x, beta, log_gamma(x) + beta_distribution.logpdf(beta, 2, 1.5) - log_q


@few_and_many(10, 80)
@pytest.mark.parametrize(("num", "slope"), [(2, 0.0), (2, 1.5), (4, 0.0)])
def test_the_error_of_the_complement_estimate_is_honest(num: int, slope: float, runs: int) -> None:
    """Exact independent draws of the extended target: z-scores have variance one."""
    rng = np.random.default_rng(20 + num)
    log_g = ((0.0, 0.0), (1.0, -slope))
    z: dict[str, list[float]] = {"log Z": [], "base": [], "target": [], "plain": []}
    for _ in range(runs):
        x, _, log_weight = draw_pseudo_extended(rng, (2, 1500), num, slope)
        complement = complement_log_weight(log_weight)
        log_w1, log_w0 = inv_temp_log_conditionals(delta_of(x), log_g)
        one, zero = complement + log_w1, complement + log_w0
        log_z = log_evidence(one, zero, log_zeta=LOG_ZETA, log_g_ratio=-slope)
        z["log Z"].append((log_z.value - LOG_Z) / log_z.mcse)
        for name, exact, log_w in (("base", -0.6, zero), ("target", -0.6, one)):
            estimate = weighted_expectation(x, log_w)
            z[name].append(float((estimate.value - exact) / estimate.mcse))
        # The usual estimate, from the weights themselves, of the same mean.
        plain = expectation((normalised_weights(log_weight) * x).sum(axis=-1))
        z["plain"].append(float((plain.value + 0.6) / plain.mcse))
    low, high = mean_square_bounds(runs)
    for name, scores in z.items():
        # Estimated errors scatter by some percent more.
        assert low * 0.95 < np.mean(np.square(scores)) < high * 1.05, (name, scores)
        assert abs(np.mean(scores)) < 4 / np.sqrt(runs), (name, scores)


def two_sided(
    rng: np.random.Generator, shape: tuple[int, int], num: int | None, slope: float
) -> Any:
    log_g = ((0.0, 0.0), (0.4, -0.4 * slope), (1.0, -slope))
    if num is None:
        x, beta = draw_path(rng, shape, slope)
        log_weight = None
    else:
        x, beta, weight = draw_pseudo_extended(rng, shape, num, slope)
        log_weight = complement_log_weight(weight)
    return two_sided_log_evidence(
        delta_of(x), beta, log_zeta=LOG_ZETA, log_g=log_g, log_weight=log_weight
    )


@few_and_many(10, 80)
@pytest.mark.parametrize(("num", "slope"), [(None, 0.0), (None, -2.0), (2, 1.5)])
def test_both_sides_are_honest(num: int | None, slope: float, runs: int) -> None:
    rng = np.random.default_rng(30)
    found = [two_sided(rng, (2, 1500), num, slope) for _ in range(runs)]
    low, high = mean_square_bounds(runs)
    for scores in (
        [(run.forward.value - LOG_Z) / run.forward.mcse for run in found],
        [(run.backward.value - LOG_Z) / run.backward.mcse for run in found],
        [float(run.gap.value / run.gap.mcse) for run in found],
    ):
        # The stones' edges are drawn too, and ratios of 150 draws are biased a little.
        assert low * 0.9 < np.mean(np.square(scores)) < high * 1.1, scores
        assert abs(np.mean(scores)) < 5 / np.sqrt(runs), scores
    for run in found:
        assert run.gap.value == pytest.approx(run.backward.value - run.forward.value, abs=1e-12)


@few_and_many(10, 80)
def test_both_sides_of_a_ladder(runs: int) -> None:
    """Rungs drawn with their log weights; x exactly at each."""
    rng = np.random.default_rng(33)
    log_g = [(0.0, 0.3), (0.05, 0.0), (0.2, -0.5), (0.5, -0.4), (0.8, 0.1), (1.0, -0.6)]
    log_density = BASE.logpdf(GRID) - np.multiply.outer([b for b, _ in log_g], delta_of(GRID))
    mass = np.exp(log_density + np.array(log_g)[:, 1:])
    cumulative = mass.cumsum(axis=1)
    probability = cumulative[:, -1] / cumulative[:, -1].sum()
    found = []
    for _ in range(runs):
        rung = rng.choice(len(log_g), (2, 1000), p=probability)
        x = np.empty(rung.shape)
        for k, row in enumerate(cumulative):
            x[rung == k] = np.interp(rng.random((rung == k).sum()), row / row[-1], GRID)
        beta = np.array(log_g)[rung, 0]
        run = two_sided_log_evidence(delta_of(x), beta, log_zeta=LOG_ZETA, log_g=log_g, ladder=True)
        assert run is not None
        found.append(run)
        one, zero = inv_temp_log_conditionals(delta_of(x), log_g, ladder=True)
        whole = log_evidence(one, zero, log_zeta=LOG_ZETA, log_g_ratio=-0.9)
        assert abs(whole.value - LOG_Z) < 5 * whole.mcse
    low, high = mean_square_bounds(runs)
    for scores in (
        [(run.forward.value - LOG_Z) / run.forward.mcse for run in found],
        [(run.backward.value - LOG_Z) / run.backward.mcse for run in found],
        [float(run.gap.value / run.gap.mcse) for run in found],
    ):
        assert low * 0.9 < np.mean(np.square(scores)) < high * 1.1, scores
        assert abs(np.mean(scores)) < 5 / np.sqrt(runs), scores


def test_a_phase_seen_on_one_side_only_opens_the_gap() -> None:
    """Draws below the middle of the path know the wide mode alone, those above it the narrow."""
    rng = np.random.default_rng(31)
    beta = rng.random((2, 5000))
    x = np.where(beta < 0.5, rng.normal(0, 1, beta.shape), rng.normal(2, 1e-5, beta.shape))
    log_target = np.logaddexp(
        np.log(0.1) + norm.logpdf(x, 0, 1), np.log(0.9) + norm.logpdf(x, 2, 1e-5)
    )
    delta = norm.logpdf(x, 0, 1.5) - log_target
    run = two_sided_log_evidence(delta, beta, log_zeta=0.0, log_g=UNIFORM)
    assert run is not None
    # One step of 1/20 in beta, over which Delta falls by about log(1e5).
    assert float(run.gap.value) == pytest.approx(np.log(1e5) / 20, abs=0.15)
    assert float(run.gap.value) > 8 * float(run.gap.mcse)


def test_too_few_draws_for_two_sides() -> None:
    rng = np.random.default_rng(32)
    assert two_sided(rng, (2, 49), None, 0.0) is None
    assert two_sided(rng, (2, 50), None, 0.0) is not None


@pytest.mark.parametrize("shape", [(8,), (1, 2, 3, 4)])
def test_two_sides_refuse_bad_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="one shape"):
        two_sided_log_evidence(np.zeros(shape), np.zeros(shape), log_zeta=0, log_g=UNIFORM)
    for wrong in product([(2, 200), (2, 200, 2)], [(2, 201), (2, 200, 1), (200, 2)]):
        with pytest.raises(DataError, match="one shape"):
            two_sided_log_evidence(*map(np.zeros, wrong), log_zeta=0, log_g=UNIFORM)
    with pytest.raises(DataError, match="one shape"):
        two_sided_log_evidence(
            np.zeros((2, 99)), np.zeros((2, 99)), log_zeta=0, log_g=UNIFORM, log_weight=np.zeros(99)
        )
