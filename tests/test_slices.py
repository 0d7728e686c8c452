"""Slice sampling: as in the paper along a line; along differences, whatever the scales."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from harness.arrays import FloatArray
from harness.path.slices import Flags, Rows, slice_along_differences, slice_along_lines

POPULATIONS, EACH, D = 6000, 16, 3
SDS = np.array([0.02, 1.0])  # of a narrow and a wide component, equally probable
CENTRES = np.array([-1.0, 1.0])  # of every coordinate


def two_scales(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A mixture of two spheres whose widths differ by a factor of 50; the gradient is not used."""
    z = (points[:, None, :] - CENTRES[:, None]) / SDS[:, None]
    log_component = -0.5 * np.square(z).sum(axis=2) - D * np.log(SDS)
    return np.logaddexp(log_component[:, 0], log_component[:, 1]), np.zeros_like(points)


def normal(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A standard normal, without its constant."""
    return -0.5 * np.square(points).sum(axis=1), -points


def exact_draws(rng: np.random.Generator) -> FloatArray:
    which = rng.integers(2, size=POPULATIONS * EACH)
    noise = rng.standard_normal((len(which), D))
    return CENTRES[which, None] + SDS[which, None] * noise


def statistics(points: FloatArray) -> FloatArray:
    near = np.linalg.norm(points + 1, axis=1)
    return np.column_stack([points, points**2, near < 0.02, near < 0.04, two_scales(points)[0]])


def largest_change(power: float) -> float:
    """Largest |z| of the paired change of each statistic; populations are independent."""
    rng = np.random.default_rng(17)
    before = exact_draws(rng)

    def density(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        value, gradient = two_scales(points)
        return power * value, gradient

    after = slice_along_differences(density, before, before, POPULATIONS, rng)
    assert np.mean(np.all(after != before, axis=1)) > 0.99
    change = (statistics(after) - statistics(before)).reshape(POPULATIONS, EACH, -1).mean(axis=1)
    return float(np.max(np.abs(change.mean(axis=0) / change.std(axis=0) * np.sqrt(POPULATIONS))))


def test_exact_draws_stay_draws_of_the_density() -> None:
    # Nine statistics: a sound update exceeds the bound with probability 1e-3.
    bound = norm.isf(1e-3 / 2 / 9)
    assert largest_change(1.0) < bound
    assert largest_change(0.9) > 2 * bound  # another density is noticed


def test_particles_in_one_place_stay_there_and_none_leaves_the_support() -> None:
    def inside(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.where(np.all(points > 0, axis=1), 0.0, -np.inf), np.zeros_like(points)

    rng = np.random.default_rng(5)
    points = np.concatenate([np.ones((8, D)), rng.random((8, D))])
    moved = slice_along_differences(inside, points, points, 2, rng)
    np.testing.assert_array_equal(moved[8:], points[8:])
    assert np.all(moved > 0)
    assert np.all(moved[:8] != points[:8])


@pytest.mark.parametrize("children", [2, 4])
def test_particles_with_one_parent_are_draws_of_the_density(children: int) -> None:
    """After resampling particles share parents, and their squared lengths still have the mean D.

    With differences of the same population's particles that was 8.84 and 6.88 in ten dimensions.
    """
    rng, dimension, populations, repeats = np.random.default_rng(6), 10, 8, 300

    found = np.empty(repeats)
    for number in range(repeats):
        parents = rng.standard_normal((populations * EACH // children, dimension))
        began = points = np.repeat(parents, children, axis=0)
        for _ in range(4):
            points = slice_along_differences(normal, points, began, populations, rng)
        assert np.mean(np.all(points != began, axis=1)) > 0.9
        found[number] = np.square(points).sum(axis=1).mean()
    error = found.std(ddof=1) / np.sqrt(repeats)
    assert abs(found.mean() - dimension) < 4 * error
    assert error < 0.05


def by_hand(start: float, width: float, most_widths: int, rng: np.random.Generator) -> float:
    """Neal's figures 3 and 5 for one point under exp(-x^4), one step after the other."""
    level = -(start**4) - rng.standard_exponential()
    left = start - width * rng.random()
    right = left + width
    most_left = int(most_widths * rng.random())
    most_right = most_widths - 1 - most_left
    while most_left > 0 and -(left**4) >= level:
        left, most_left = left - width, most_left - 1
    while most_right > 0 and -(right**4) >= level:
        right, most_right = right + width, most_right - 1
    while True:
        x = float(left + (right - left) * rng.random())
        if -(x**4) >= level:
            return x
        left, right = (x, right) if x < start else (left, x)


@pytest.mark.parametrize(("width", "most_widths"), [(0.1, 8), (1.0, 3), (30.0, 1)])
def test_an_update_is_that_of_the_paper(width: float, most_widths: int) -> None:
    start = np.array([0.3])
    for seed in range(100):
        moved = start.copy()
        rng = np.random.default_rng(seed)
        level = -(start**4) - rng.standard_exponential(1)

        def on_slice(
            rows: Rows, shift: FloatArray, level: FloatArray = level
        ) -> tuple[FloatArray, Flags]:
            there = start[rows] + shift
            return there, -(there**4) >= level[rows]

        def move(rows: Rows, there: FloatArray, found: Rows, moved: FloatArray = moved) -> None:
            moved[rows] = there[found]

        slice_along_lines(on_slice, move, np.array([width]), most_widths, rng)
        expected = by_hand(0.3, width, most_widths, np.random.default_rng(seed))
        assert abs(moved[0] - expected) < 1e-13 * (1 + width * most_widths)


def test_a_point_stays_where_nothing_is_on_its_slice() -> None:
    """After so many tries, or when its interval has shrunk to nothing, 1074 halvings of 1."""
    for most_shrinks, most_tries in ((5, 5), (None, 10_000)):
        tries = 0

        def on_slice(rows: Rows, shift: FloatArray) -> tuple[FloatArray, Flags]:
            nonlocal tries
            tries += 1
            return shift, np.zeros(len(rows), dtype=np.bool_)

        def move(rows: Rows, there: FloatArray, found: Rows) -> None:
            assert rows.size == found.size == 0

        rng = np.random.default_rng(1)
        slice_along_lines(on_slice, move, np.ones(3), 1, rng, most_shrinks=most_shrinks)
        assert 5 <= tries <= most_tries


def test_no_gradient_is_computed_where_a_density_has_a_way_without() -> None:
    class Density:
        """A standard normal; its gradient must not be asked for."""

        def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
            raise AssertionError("a gradient was computed")

        def values(self, points: FloatArray) -> FloatArray:
            return normal(points)[0]

    points = np.random.default_rng(3).normal(size=(40, 3))
    one = slice_along_differences(Density(), points, points, 2, np.random.default_rng(4))
    other = slice_along_differences(normal, points, points, 2, np.random.default_rng(4))
    np.testing.assert_array_equal(one, other)
    assert not np.array_equal(one, points)
