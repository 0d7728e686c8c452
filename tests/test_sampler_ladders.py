"""Ladders of inverse temperatures: by hand, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from known_targets import ten_dimensional_gaussian
from scipy.stats import chi2

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.samplers.annealed_importance import annealed_importance
from harness.samplers.ladders import (
    LADDERS,
    beal_ladder,
    checked_ladder,
    equal_variance_ladder,
    fourth_power_ladder,
    gaussian_ladder,
    geometric_ladder,
    ladder_variance,
    linear_then_geometric_ladder,
    named_ladder,
    sigmoidal_ladder,
    tempered_variance,
    uniform_ladder,
)
from harness.samplers.nested_volumes import log_widths


def test_uniform() -> None:
    np.testing.assert_allclose(uniform_ladder(5), [0, 0.25, 0.5, 0.75, 1], rtol=1e-15)


@pytest.mark.parametrize(("number", "scale"), [(2, 4.0), (7, 4.0), (1000, 4.0), (50, 0.01)])
def test_sigmoidal_by_its_formula(number: int, scale: float) -> None:
    def s(y: float) -> float:
        return 1 / (1 + math.exp(-y))

    t = [s(scale * (2 * k / (number - 1) - 1)) for k in range(number)]
    expected = [(each - t[0]) / (t[-1] - t[0]) for each in t]
    ladder = sigmoidal_ladder(number, scale=scale)
    np.testing.assert_allclose(ladder, expected, rtol=1e-9, atol=1e-13)
    assert (ladder[0], ladder[-1]) == (0, 1)
    if scale == 4:
        np.testing.assert_array_equal(ladder, sigmoidal_ladder(number))


def test_geometric() -> None:
    np.testing.assert_allclose(geometric_ladder(4, lowest=0.01), [0, 0.01, 0.1, 1], rtol=1e-14)


def test_powers_and_beal_by_their_formulas() -> None:
    np.testing.assert_allclose(fourth_power_ladder(5), [0, 1 / 256, 1 / 16, 81 / 256, 1])
    np.testing.assert_allclose(fourth_power_ladder(3, power=1.0), [0, 0.5, 1])
    expected = [0.2 * t / (0.2 + 1 - t) for t in (0.0, 0.25, 0.5, 0.75, 1.0)]
    np.testing.assert_allclose(beal_ladder(5), expected)


def test_linear_then_geometric_is_neals() -> None:
    """40 steps up to 0.01 and 160 steps by one factor from there."""
    ladder = linear_then_geometric_ladder(201)
    np.testing.assert_allclose(ladder[:41], np.arange(41) / 4000)
    np.testing.assert_allclose(ladder[41:] / ladder[40:-1], 100 ** (1 / 160))
    assert linear_then_geometric_ladder(3, turn=0.5).tolist() == [0, 0.5, 1]


@pytest.mark.parametrize("ratio", [100.0, 1e4, 0.2, 1.0])
def test_the_gaussian_ladder_by_its_recursion(ratio: float) -> None:
    """Murray's eq. 4.52, and precisions that grow by one factor."""
    ladder = gaussian_ladder(8, precision_ratio=ratio)
    if ratio == 1:
        np.testing.assert_allclose(ladder, uniform_ladder(8))
        return
    factor, expected = ratio ** (1 / 7), [0.0]
    for _ in range(7):
        expected.append((factor - 1) / (ratio - 1) + factor * expected[-1])
    np.testing.assert_allclose(ladder, expected, rtol=1e-9)
    precision = 1 + ladder * (ratio - 1)
    np.testing.assert_allclose(precision[1:] / precision[:-1], factor)


def gaussian_variance(inv_temp: float) -> float:
    """Of log L in ten dimensions, for a base with sd 10 and a target with sd 1."""
    precision = 0.01 + inv_temp * 0.99
    return 0.5 * 10 * (0.99 / precision) ** 2


@pytest.mark.parametrize("total", [0.09, 0.9, 9.0])
def test_steps_have_equal_variances_whose_sum_is_the_total(total: float) -> None:
    ladder = equal_variance_ladder(gaussian_variance, total)
    each = np.diff(ladder) ** 2 * [gaussian_variance(beta) for beta in ladder[:-1]]
    np.testing.assert_allclose(each[:-1], each[0], rtol=1e-9)
    assert each[-1] <= each[0] * (1 + 1e-9)
    assert 0.8 * total < ladder_variance(ladder, gaussian_variance) <= total
    assert ladder_variance(ladder, gaussian_variance) == pytest.approx(each.sum())
    # One rung less cannot do it, where the sum is that of K steps of the root mean square.
    shorter = gaussian_ladder(len(ladder) - 1, precision_ratio=100.0)
    assert ladder_variance(shorter, gaussian_variance) > 0.8 * total


@pytest.mark.parametrize(("chains", "published"), [(1, 1190), (10, 122), (100, 15)])
def test_ladders_from_a_nested_run_are_as_long_as_published(chains: int, published: int) -> None:
    """Murray's table 4.2: a standard error of 0.3 in ten dimensions, by the mean volumes of 212.

    The particles of a perfect run lie where the prior's volume is exp(-s / 212).  Ours is within
    2 % of the published length, which came from a run with its own noise.
    """
    log_volume = -np.arange(1, 212 * 40) / 212
    square = chi2.ppf(np.exp(log_volume), 10)
    log_likelihood = -0.5 * 0.99 * 100 * square
    ladder = equal_variance_ladder(
        tempered_variance(log_likelihood, log_widths(log_volume)), 0.09 * chains
    )
    assert len(ladder) - 2 == pytest.approx(published, rel=0.02, abs=1)


def test_the_variance_of_weighted_draws() -> None:
    log_likelihood = np.array([-np.inf, -2.0, 0.5, 1.0])
    weight = np.array([5.0, 1.0, 2.0, 0.5])
    share = (weight * np.exp(0.3 * log_likelihood))[1:]
    share /= share.sum()
    mean = share @ log_likelihood[1:]
    found = tempered_variance(log_likelihood, np.log(weight))(0.3)
    assert found == pytest.approx(share @ (log_likelihood[1:] - mean) ** 2)
    with pytest.raises(DataError, match="zero at every draw"):
        tempered_variance(np.full(2, -np.inf), np.zeros(2))


def test_ladders_by_name_and_what_they_refuse() -> None:
    for name in LADDERS:
        settings: dict[str, dict[str, Any]] = {
            "geometric": {"lowest": 0.1},
            "gaussian": {"precision_ratio": 9.0},
        }
        ladder = named_ladder(name, 6, **settings.get(name, {}))
        np.testing.assert_array_equal(checked_ladder(ladder), ladder)
        assert len(ladder) == 6
    known = ten_dimensional_gaussian()
    fit = annealed_importance(
        known.target, known.base, ladder=named_ladder("fourth_power", 8), chains=64, seed=1
    )
    assert fit.log_evidence is not None
    refused: tuple[tuple[Callable[[], FloatArray], str], ...] = (
        (lambda: named_ladder("cubic", 5), "one of uniform, .*; got 'cubic'"),
        (lambda: named_ladder("uniform", 5, lowest=1), "the uniform ladder has other settings"),
        (lambda: fourth_power_ladder(5, power=0.5), "power of a ladder is 1 or above; got 0.5"),
        (lambda: beal_ladder(5, scale=0.0), "positive and finite; got 0.0"),
        (lambda: linear_then_geometric_ladder(5, turn=1.0), "lie between 0 and 1; got 1.0, 0.2"),
        (lambda: gaussian_ladder(5, precision_ratio=-1.0), "positive and finite; got -1.0"),
        (lambda: equal_variance_ladder(gaussian_variance, 0.0), "positive and finite; got 0.0"),
        (lambda: equal_variance_ladder(gaussian_variance, 1e-3, most=50), "more than 50 steps"),
    )
    for call, message in refused:
        with pytest.raises(DataError, match=message):
            call()


@pytest.mark.parametrize(
    "bad",
    [
        [],
        [1.0],
        [[0.0, 1.0]],
        [0.0, 0.5],
        [0.1, 1.0],
        [0.0, 0.5, 0.5, 1.0],
        [0, 0.7, 0.2, 1],
        [0.0, math.nan, 1.0],
        [0.0, math.inf, 1.0],
        [1.0, 0.5, 0.0],
        [-0.1, 0.5, 1.0],
    ],
)
def test_what_does_not_ascend_from_0_to_1_is_refused(bad: npt.ArrayLike) -> None:
    with pytest.raises(DataError, match="ascends from 0 to 1"):
        checked_ladder(bad)


def test_settings_that_make_no_ladder_are_refused() -> None:
    for make in (uniform_ladder, sigmoidal_ladder):
        with pytest.raises(DataError, match="2 inverse temperatures or more"):
            make(1)
    with pytest.raises(DataError, match="3 inverse temperatures or more"):
        geometric_ladder(2, lowest=0.1)
    for lowest in (0.0, 1.0, math.nan):
        with pytest.raises(DataError, match="lowest"):
            geometric_ladder(5, lowest=lowest)
    for scale in (0.0, -1.0, math.inf):
        with pytest.raises(DataError, match="scale"):
            sigmoidal_ladder(5, scale=scale)
    with pytest.raises(DataError, match="ascends"):
        sigmoidal_ladder(1000, scale=1000)


def test_a_checked_ladder_is_a_copy() -> None:
    mine = np.array([0.0, 0.5, 1.0])
    checked_ladder(mine)[1] = 0.9
    assert mine[1] == 0.5
