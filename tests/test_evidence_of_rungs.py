"""Log Z by ratios of neighbouring rungs: exact draws, honest errors, densities of zero."""

from __future__ import annotations

import numpy as np
import pytest
from calibration import mean_square_bounds
from scipy.stats import norm

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogEvidence, RungEvidence, joined_evidence, rung_evidence

LADDER = np.linspace(0, 1, 5)
LOG_Z = 0.4 + 0.5 * np.log(2 * np.pi / 4)


def differences(rng: np.random.Generator, draws: int) -> tuple[FloatArray, FloatArray]:
    """Of independent draws between N(0, 1) and exp(0.4 - 2 x^2): every rung is Gaussian."""
    x = rng.standard_normal((5, 2, draws)) / np.sqrt(1 + 3 * LADDER)[:, None, None]
    log_ratio = 0.4 - 2 * x**2 - norm.logpdf(x)
    step = np.diff(LADDER)[:, None, None]
    return step * log_ratio[:-1], step * log_ratio[1:]


def test_errors_are_honest() -> None:
    rng = np.random.default_rng(3)
    runs = 150
    z = np.empty((3, runs))
    for each in range(runs):
        found = rung_evidence(*differences(rng, 200))
        z[:, each] = [(one.value - LOG_Z) / one.mcse for one in found[:3]]
    low, high = mean_square_bounds(runs)
    for scores in z:
        assert low < np.mean(scores**2) < high
        assert abs(scores.mean()) < 4 / np.sqrt(runs)


STOCK = 100


def from_a_stock(rng: np.random.Generator, draws: int) -> tuple[FloatArray, FloatArray]:
    """As above, but the first rung has each of a few draws many times."""
    up, down = differences(rng, draws)
    x = rng.permutation(np.repeat(rng.standard_normal(STOCK), 2 * draws // STOCK))
    up[0] = (LADDER[1] * (0.4 - 2 * x**2 - norm.logpdf(x))).reshape(2, draws)
    return up, down


def test_a_stock_of_draws_is_worth_no_more_than_itself() -> None:
    """Its draws alone give a ratio with a large error, which their number would hide."""
    rng = np.random.default_rng(6)
    runs = 150
    known, hidden = np.empty((4, runs)), np.empty(runs)
    for each in range(runs):
        up, down = from_a_stock(rng, 2000)
        found = rung_evidence(up, down, distinct=STOCK)
        other = rung_evidence(*differences(rng, 2000))
        estimates = (*found[:3], joined_evidence(found, other).log_evidence)
        known[:, each] = [(one.value - LOG_Z) / one.mcse for one in estimates]
        one = rung_evidence(up, down).log_evidence
        hidden[each] = (one.value - LOG_Z) / one.mcse
    low, high = mean_square_bounds(runs)
    for scores in known:
        assert low < np.mean(scores**2) < high
    assert np.mean(hidden**2) > high


def test_both_neighbours_together_are_best_for_a_step() -> None:
    """Bennett's estimate has the least variance of all that use the same draws (his section 4)."""
    rng = np.random.default_rng(4)
    log_z = 0.4 * LADDER[:2] - (1 - LADDER[:2]) / 2 * np.log(2 * np.pi)
    log_z += 0.5 * np.log(2 * np.pi / (1 + 3 * LADDER[:2]))
    apart = np.empty((3, 150))
    for each in range(150):
        up, down = differences(rng, 200)
        found = rung_evidence(up[:1], down[:1])
        apart[:, each] = [one.value - np.diff(log_z)[0] for one in found[:3]]
    both, forward, backward = np.square(apart).mean(axis=1)
    assert both < min(forward, backward)


def test_two_draws_by_hand() -> None:
    """One step, where both neighbours have one log ratio: that is the ratio's logarithm."""
    same = np.full((1, 2, 4), 0.7)
    found = rung_evidence(same, same)
    for estimate in found[:3]:
        assert estimate == pytest.approx((0.7, 0), abs=1e-9)
    # up 0 or log 3, down log 3: f(-c) + f(log 3 - c) = 2 f(c - log 3).
    up = np.array([[[0, np.log(3)] * 4]])
    c = rung_evidence(up, np.full((1, 1, 8), np.log(3))).log_evidence.value
    r = np.exp(c)
    assert 1 / (1 + r) + 3 / (3 + r) == pytest.approx(2 * r / (3 + r))


def test_a_part_without_density_counts() -> None:
    """A quarter of the first rung's draws have density at the next one; of those all is known."""
    rng = np.random.default_rng(1)
    up = np.where(rng.random((1, 4, 5000)) < 0.25, 0.5, -np.inf)
    down = np.full((1, 4, 5000), 0.5)
    for estimate in rung_evidence(up, down)[:3]:
        assert abs(estimate.value - (0.5 + np.log(0.25))) < 4 * estimate.mcse
        # That of a share of one quarter, for its logarithm: sqrt(3 / 20000).
        assert estimate.mcse == pytest.approx(np.sqrt(3 / 20_000), rel=0.1)


def test_joined_estimates() -> None:
    """Two independent ones, the second with twice the error, and a constant to take away."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((2, 4, 4000))

    def of(value: float, series: FloatArray) -> RungEvidence:
        error = float(series.std() / np.sqrt(series.size))
        estimate = LogEvidence(value, error)
        return RungEvidence(estimate, estimate, estimate, series)

    both = joined_evidence(of(1.0, x[0]), of(2.0, 2 * x[1]))
    assert both.log_evidence.value == pytest.approx(1.2, abs=0.02)
    error = np.sqrt(0.8 / 16_000)
    assert both.log_evidence.mcse == pytest.approx(error, rel=0.1)
    assert float(both.gap.value) == 1
    assert float(both.gap.mcse) == pytest.approx(np.sqrt(5 / 16_000), rel=0.1)
    # The same draws twice: there is nothing to gain, and no error in the difference.
    assert joined_evidence(of(1.0, x[0]), of(1.0, x[0])).log_evidence.mcse == pytest.approx(
        np.sqrt(1 / 16_000), rel=0.1
    )
    rough = joined_evidence(of(1.0, x[0]), of(5.0, x[1]), LogEvidence(4.0, 3.0))
    assert rough.log_evidence.value == pytest.approx(1, abs=1e-3)
    assert rough.log_evidence.mcse == pytest.approx(np.sqrt(1 / 16_000), rel=0.1)


@pytest.mark.parametrize(
    ("up", "down", "says"),
    [
        (np.zeros((1, 2)), np.zeros((1, 2)), "shape"),
        (np.zeros((1, 2, 4)), np.zeros((2, 2, 4)), "shape"),
        (np.full((1, 2, 4), np.nan), np.zeros((1, 2, 4)), "no density there"),
        (np.full((1, 2, 4), -np.inf), np.zeros((1, 2, 4)), "no draw of rungs 0 and 1"),
        (np.full((1, 2, 4), -1e4), np.full((1, 2, 4), 1e4), "rungs 0 and 1 have no draws"),
    ],
)
def test_unusable_ratios_are_refused(up: FloatArray, down: FloatArray, says: str) -> None:
    with pytest.raises(DataError, match=says):
        rung_evidence(up, down)
