"""Where two samples of log ratios balance, against exact arithmetic and by bisection."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.arrays import FloatArray
from harness.evidence.balance import balance


def test_two_ratios_by_hand() -> None:
    """f(a - c) = odds f(c - b) is a quadratic equation in exp(c)."""
    a, b, odds = 0.7, -1.9, 2.5
    # exp(a) / (exp(a) + z) = odds z / (z + exp(b)), with z = exp(c)
    p, q, r = odds, (odds - 1) * math.exp(a), -math.exp(a + b)
    z = (-q + math.sqrt(q * q - 4 * p * r)) / (2 * p)
    found = balance(np.array([a]), np.array([b]), math.log(odds))
    assert found == pytest.approx(math.log(z), abs=1e-10)


def by_bisection(falling: FloatArray, rising: FloatArray, log_odds: float) -> float:
    """Halve an interval until nothing is left of it; logs of sums, as the equation has them."""
    low, high = -1.5e300, 1.5e300

    def side(values: FloatArray) -> float:
        terms = [-float(np.logaddexp(0.0, -v)) for v in values]
        return float(np.logaddexp.reduce(terms)) - math.log(len(values))

    while True:
        middle = low / 2 + high / 2
        if middle in (low, high):
            return middle
        if side(falling - middle) - side(middle - rising) > log_odds:
            low = middle
        else:
            high = middle


def random_ratios(seed: int) -> tuple[FloatArray, FloatArray, float]:
    """Ratios as densities make them that are far apart, with outliers, overflows and zeros."""
    rng = np.random.default_rng([20261125, seed])
    falling, rising = rng.normal(size=(2, 12)) * 10.0 ** rng.uniform(-2, 2)
    rising += rng.choice([0.0, 3.0, 100.0])
    largest = rng.choice([3.0, 20.0, 150.0, 299.0])
    far = rng.random(12) < rng.choice([0.0, 0.5, 1.0])
    falling[far] = -(10.0 ** rng.uniform(0, largest, far.sum()))
    if rng.random() < 0.5:
        rising[0] = -(10.0 ** rng.uniform(0, largest))
    if rng.random() < 0.3:
        rising[1] = 10.0 ** rng.uniform(0, largest)
    if rng.random() < 0.3:
        falling[0], rising[2] = -np.inf, np.inf
    return falling, rising, float(rng.normal())


@pytest.mark.parametrize("seed", range(60))
def test_any_ratios_balance_where_bisection_says(seed: int) -> None:
    falling, rising, log_odds = random_ratios(seed)
    expected = by_bisection(falling, rising, log_odds)
    assert balance(falling, rising, log_odds) == pytest.approx(expected, abs=1e-9, rel=1e-12)


@pytest.mark.parametrize("size", [1e140, 1e300, 1.7e308])
def test_ratios_near_the_largest_number_end(size: float) -> None:
    """Log densities of 1e140 below the rest took more steps than were allowed."""
    near = np.array([0.3, -0.4, 1.2])
    far = -size * np.array([0.2, 0.5, 1.0])
    both = balance(np.concatenate([near, far]), near)
    # Ratios that never count are as good as zeros of the density.
    assert both == pytest.approx(balance(np.array([*near, *[-np.inf] * 3]), near), abs=1e-9)
    assert math.isfinite(balance(far, np.array([*near, size])))
