"""Ladders of inverse temperatures: by hand, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from harness.errors import DataError
from harness.samplers.ladders import (
    checked_ladder,
    geometric_ladder,
    sigmoidal_ladder,
    uniform_ladder,
)


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
