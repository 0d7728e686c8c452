"""Integrated autocorrelation times on series whose time is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import autocorrelation_times


def autoregression(phi: float, walkers: int, draws: int, seed: int) -> FloatArray:
    """Stationary AR(1) with unit variance, whose time is (1 + phi) / (1 - phi)."""
    rng = np.random.default_rng(seed)
    noise = np.sqrt(1 - phi**2) * rng.standard_normal((walkers, draws))
    noise[:, 0] = rng.standard_normal(walkers)
    return np.asarray(lfilter([1.0], [1.0, -phi], noise, axis=1))


@pytest.mark.parametrize(("phi", "known"), [(0.9, 19.0), (0.99, 199.0)])
@pytest.mark.parametrize("walkers", [1, 20])
def test_autoregression(phi: float, known: float, walkers: int) -> None:
    values = autoregression(phi, walkers, 1_000_000 // walkers, seed=1)
    times = autocorrelation_times(values)
    # Relative standard errors are 1.4% and 4.5%; the window of 5 tau cuts off exp(-10).
    assert times.own.value == pytest.approx(known, rel=0.1)
    assert abs(times.own.value - known) < 3 * times.own.error
    assert times.own.closed


def test_the_mean_of_independent_walkers_has_their_time() -> None:
    values = autoregression(0.9, 16, 100_000, seed=2)
    times = autocorrelation_times(values)
    assert abs(times.mean.value - 19) < 3 * times.mean.error
    # The mean is one series, the walkers are 16.
    assert times.mean.error > 3 * times.own.error


def test_walkers_that_move_together() -> None:
    """Each walker has fast noise of its own and shares a slow part, which the mean shows."""
    slow, rng = autoregression(0.99, 1, 200_000, seed=3), np.random.default_rng(4)
    values = slow + rng.standard_normal((32, 200_000))
    times = autocorrelation_times(values)
    # By the variances: own (1 + 199) / 2, mean (1 / 32 + 199) / (1 / 32 + 1).  The slow part is
    # one series, so the error of the own time is that of one walker.
    assert abs(times.own.value - 100) < 3 * 32**0.5 * times.own.error
    assert abs(times.mean.value - 193) < 3 * times.mean.error


def test_errors_are_honest() -> None:
    """The spread of 200 estimates is what their errors say."""
    values = autoregression(0.8, 200, 5000, seed=5)
    times = [autocorrelation_times(row[None]).own for row in values]
    spread = np.std([each.value for each in times], ddof=1)
    claimed = np.mean([each.error for each in times])
    # A standard deviation from 200 values is good to 5%, so three times that; and Wolff's formula,
    # which is for windows much longer than tau, is some 10% too large at ours.
    assert 0.85 < claimed / spread < 1.25


def test_trailing_axes_constants_and_short_runs() -> None:
    values = np.stack([autoregression(0.9, 4, 4000, seed=6), np.ones((4, 4000))], axis=-1)
    times = autocorrelation_times(values)
    assert times.own.value.shape == (2,)
    assert np.isnan(times.own.value[1])
    alone = autocorrelation_times(values[:, :, 0])
    assert times.own.value[0] == alone.own.value
    assert not autocorrelation_times(autoregression(0.999, 1, 1000, seed=7)).own.closed


@pytest.mark.parametrize(
    ("values", "window", "said"),
    [
        (np.zeros((2, 15)), 5.0, "16 draws"),
        (np.zeros(100), 5.0, "axes"),
        (np.full((1, 20), np.nan), 5.0, "finite"),
        (np.zeros((1, 20)), 0.0, "window"),
    ],
)
def test_bad_input(values: FloatArray, window: float, said: str) -> None:
    with pytest.raises(DataError, match=said):
        autocorrelation_times(values, window=window)
