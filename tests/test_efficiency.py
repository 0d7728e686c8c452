"""Errors over runs and equivalent draws against draws that are independent in fact."""

from __future__ import annotations

import math

import numpy as np
import pytest

from harness.errors import DataError
from harness.experiment.efficiency import efficiency


def test_means_of_independent_draws_are_worth_their_number() -> None:
    rng = np.random.default_rng(2)
    runs, draws = 4000, 50
    errors = 3.0 * rng.normal(size=(runs, 2, draws)).mean(axis=2)
    found = efficiency(errors, 9.0, np.full(runs, 2.0), np.full(runs, 500.0))
    # The mean of 8,000 squares is known to sqrt(2 / 8000), 1.6%; four of these.
    assert found.per_second == pytest.approx(draws / 2.0, rel=0.064)
    assert found.per_kilogradient == pytest.approx(draws / 0.5, rel=0.064)
    low, high = found.per_second_interval
    assert low < found.per_second < high
    # 5% and 95% of a normal lie 3.29 standard errors apart.
    assert (high - low) / found.per_second == pytest.approx(3.29 * 0.0158, rel=0.15)


def test_without_gradients_there_is_no_rate_of_them() -> None:
    found = efficiency([1.0, 2.0], 1.0, [1.0, 1.0], [0.0, 0.0])
    assert math.isnan(found.per_kilogradient)
    assert math.isnan(found.per_kilogradient_interval[0])
    assert found.per_second == pytest.approx(0.4)


def test_bad_input_is_refused() -> None:
    with pytest.raises(DataError, match="two runs or more"):
        efficiency([1.0], 1.0, [1.0], [1.0])
    with pytest.raises(DataError, match="as many"):
        efficiency([1.0, 2.0], 1.0, [1.0], [1.0])
