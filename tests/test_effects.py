"""Effect sizes: intervals against simulation, decisions against their definition."""

from __future__ import annotations

from math import exp, inf, log

import numpy as np
import pytest

from harness.errors import DataError
from harness.plan.effects import (
    Effect,
    Rmse,
    Undecided,
    all_hold,
    any_holds,
    each_lies,
    error_ratio,
    mean_effect,
    rmse,
    share,
)

OPEN = Undecided("20 runs")


def test_intervals_of_means_hold_the_truth() -> None:
    """2,000 intervals of 95 % from 40 normal values: 95 % and a little less, as s is estimated."""
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(2000):
        low, high = mean_effect(rng.normal(3.0, 2.0, 40)).interval()
        inside += low < 3.0 < high
    # P(|t| of 39 degrees < 1.96) = 0.943; the share of 2,000 is known to 0.0052.
    assert inside / 2000 == pytest.approx(0.943, abs=4 * 0.0052)


def test_intervals_of_ratios_hold_the_truth() -> None:
    """Errors of two methods with standard deviations 2 and 1, and three coordinates."""
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(2000):
        ratio = error_ratio(rng.normal(0, 2.0, (40, 3)), rng.normal(0, 1.0, (40, 3)))
        low, high = ratio.interval()
        inside += low < 2.0 < high
    # The delta method costs a percent or so of 95 %; the share is known to 0.005.
    assert 0.92 < inside / 2000 < 0.97


def test_a_ratio_by_hand() -> None:
    # Squared errors 1, 9 and 4, 4: means 5 and 4, standard deviations sqrt(32) and 0.
    found = error_ratio([1.0, -3.0], [2.0, -2.0])
    assert found.value == pytest.approx(np.sqrt(5 / 4))
    assert found.se == pytest.approx(np.sqrt(32) / np.sqrt(2) / (2 * 5))
    low, high = found.interval()
    assert log(found.value / low) == pytest.approx(log(high / found.value))
    assert exp(1.959964 * found.se) == pytest.approx(high / found.value, rel=1e-6)


def test_rmse_and_its_error_by_hand() -> None:
    found = rmse([3.0, 1.0, -1.0, 3.0])
    assert found.runs == 4
    assert found.value == pytest.approx(np.sqrt(5))  # squares 9, 1, 1, 9
    assert found.se == pytest.approx(np.sqrt(64 / 3) / 2 / (2 * np.sqrt(5)))
    assert rmse([[1.0, 3.0], [1.0, 3.0]]).value == pytest.approx(np.sqrt(5))
    assert rmse([0.0, 0.0]).se == 0
    assert rmse([-2.0]) == Rmse(2.0, inf, 1)


def test_the_error_of_the_rmse_is_honest() -> None:
    rng = np.random.default_rng(1)
    found = [rmse(rng.normal(size=40)) for _ in range(2000)]
    spread = np.std([one.value for one in found])
    # The delta method is good to about 1 / R here; the spread of 2,000 is known to 1.6%.
    assert np.mean([one.se for one in found]) == pytest.approx(spread, rel=0.06)


def test_several_together_have_wider_intervals() -> None:
    effect = Effect(0.0, 1.0, 10)
    assert effect.interval()[1] == pytest.approx(1.959964, rel=1e-6)
    # The 1 - 0.025 / 5 quantile of the normal distribution.
    assert effect.interval(of=5)[1] == pytest.approx(2.575829, rel=1e-6)


@pytest.mark.parametrize(
    ("value", "decision"), [(-3.0, True), (3.0, False), (0.5, None), (-0.5, None)]
)
def test_what_lies_below_a_bound(value: float, decision: bool | None) -> None:
    found = Effect(value, 1.0, 10).lies(below=0.0)
    if decision is None:
        assert isinstance(found, Undecided)
        # (1.96 / 0.5)^2 = 15.4 times as many runs.
        assert found.needs == "some 154 runs where there are 10"
    else:
        assert found is decision


def test_two_sided_bounds() -> None:
    low, high = 1 / 1.5, 1.5
    assert Effect(1.0, 0.1, 20, ratio=True).lies(above=low, below=high) is True
    assert Effect(3.0, 0.1, 20, ratio=True).lies(above=low, below=high) is False
    assert Effect(0.3, 0.1, 20, ratio=True).lies(above=low, below=high) is False
    assert isinstance(Effect(1.4, 0.1, 20, ratio=True).lies(above=low, below=high), Undecided)


def test_all_of_several_need_no_wider_intervals_and_one_beyond_does() -> None:
    # Intervals of 95 %: [0.04, 3.96] holds by itself, though not widened for two.
    assert each_lies([Effect(2.0, 1.0, 9), Effect(3.0, 1.0, 9)], above=0.0) == [True, True]
    assert Effect(2.0, 1.0, 9).lies(above=0.0, of=2) is not True
    # [-3.96, -0.04] is below zero by itself, but one of two may be so by chance.
    below, far = each_lies([Effect(-2.0, 1.0, 9), Effect(-3.0, 1.0, 9)], above=0.0)
    assert isinstance(below, Undecided)
    assert far is False
    assert each_lies([Effect(-2.0, 1.0, 9)], above=0.0) == [False]


def test_a_false_claim_about_all_is_seldom_taken_for_true() -> None:
    """Three true effects at 9 and one at the bound 0: all seem to lie above in 2.5 % at most."""
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(2000):
        found = [Effect(rng.normal(mean), 1.0, 9) for mean in (9.0, 9.0, 9.0, 0.0)]
        wrong += all_hold(each_lies(found, above=0.0)) is True
    # 2.5 % of 2,000 are known to 0.35 %.
    assert wrong / 2000 == pytest.approx(0.025, abs=4 * 0.0035)


def test_what_cannot_be_decided_by_any_number_of_runs_says_so() -> None:
    found = Effect(1.0, 0.1, 20, ratio=True).lies(below=1.0)
    assert isinstance(found, Undecided)
    assert found.needs.startswith("far more runs")
    one = mean_effect([2.0])
    assert one.interval() == (-inf, inf)
    assert one.lies(below=1.0) == Undecided("two runs or more of every method")


def test_several_parts() -> None:
    assert all_hold([True, True]) is True
    assert all_hold([True, OPEN]) == OPEN
    assert all_hold([False, OPEN]) is False
    assert any_holds([False, False]) is False
    assert any_holds([False, OPEN]) == OPEN
    assert any_holds([True, OPEN]) is True
    assert all_hold([OPEN, OPEN, Undecided("more")]) == Undecided("20 runs; more")


def test_of_several_parts_the_largest_number_of_runs_counts_or_the_smallest() -> None:
    few, many = Effect(0.5, 1.0, 10).lies(below=0.0), Effect(0.4, 1.0, 10).lies(below=0.0)
    assert isinstance(few, Undecided)
    assert isinstance(many, Undecided)
    # (1.96 / 0.5)^2 and (1.96 / 0.4)^2 times as many.
    assert (few.runs, many.runs) == (154, 241)
    assert all_hold([few, many, few, True]) == many
    assert any_holds([many, few, False]) == few
    assert all_hold([few, OPEN, many]) == Undecided(f"{OPEN.needs}; {many.needs}")
    assert all_hold([few, Effect(1e-9, 1.0, 10).lies(below=0.0)]) == Undecided(
        "far more runs than anybody can afford: the effect is as large as the bound"
    )


def test_shares_have_wilsons_interval() -> None:
    """The interval's ends solve |p - s| = z sqrt(p (1 - p) / n) for p."""
    found, low, high = share(3, 20)
    assert found == 0.15
    for end in (low, high):
        assert abs(end - found) == pytest.approx(1.959964 * np.sqrt(end * (1 - end) / 20), rel=1e-6)
    assert share(0, 20)[1] == 0
    assert share(20, 20)[2] == 1


def test_nothing_to_estimate_from_is_refused() -> None:
    with pytest.raises(DataError, match="there are none"):
        mean_effect([])
    with pytest.raises(DataError, match="there are none"):
        error_ratio([], [1.0])
    with pytest.raises(DataError, match="no share"):
        share(3, 2)
