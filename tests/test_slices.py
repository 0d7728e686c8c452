"""Slice sampling along differences leaves its density invariant, whatever the scales."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from harness.arrays import FloatArray
from harness.path.slices import slice_along_differences

POPULATIONS, EACH, D = 2000, 16, 3
SDS = np.array([0.02, 1.0])  # of a narrow and a wide component, equally probable
CENTRES = np.array([-1.0, 1.0])  # of every coordinate


def two_scales(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A mixture of two spheres whose widths differ by a factor of 50; the gradient is not used."""
    z = (points[:, None, :] - CENTRES[:, None]) / SDS[:, None]
    log_component = -0.5 * np.square(z).sum(axis=2) - D * np.log(SDS)
    return np.logaddexp(log_component[:, 0], log_component[:, 1]), np.zeros_like(points)


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

    after = slice_along_differences(density, before, POPULATIONS, rng)
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
    moved = slice_along_differences(inside, points, 2, rng)
    np.testing.assert_array_equal(moved[:8], points[:8])
    assert np.all(moved > 0)
    assert np.all(moved[8:] != points[8:])
