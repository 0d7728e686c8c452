"""XY lattice: the density from its definition, log Z by transfer matrices."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hard_target import Parts
from scipy.stats import norm

from harness.arrays import FloatArray
from harness.model import Model
from harness.models.hard.xy_lattice import STRENGTH, xy_free, xy_torus

RNG = np.random.default_rng(8)


def energy(theta: FloatArray, *, periodic: bool) -> float:
    """Sum of cosines over neighbours of an L x L array of angles."""
    right = theta - np.roll(theta, -1, axis=1)
    down = theta - np.roll(theta, -1, axis=0)
    if not periodic:
        right, down = right[:, :-1], down[:-1]
    return float(np.cos(right).sum() + np.cos(down).sum())


@pytest.mark.parametrize(("make", "side", "periodic"), [(xy_free, 8, False), (xy_torus, 4, True)])
def test_density(make: Callable[[], Model], side: int, periodic: bool, tmp_path: Path) -> None:
    parts = Parts(make(), tmp_path)
    for radius in (1.0, 1e-8, 30.0):
        x = radius * RNG.normal(size=(side * side, 2))
        log_prior, likelihood = parts.at({"x": x})
        theta = np.arctan2(x[:, 1], x[:, 0]).reshape(side, side)
        assert log_prior == pytest.approx(norm.logpdf(x).sum())
        # The likelihood is a difference of numbers as large as the prior.
        expected = STRENGTH * energy(theta, periodic=periodic)
        assert likelihood == pytest.approx(expected, rel=1e-10, abs=1e-14 * abs(log_prior))


def rows(side: int, size: int, *, periodic: bool, strength: float) -> FloatArray:
    """Weights of the bonds within a row, at all angles on a grid: shape (size,) * side."""
    angle = 2 * np.pi * np.arange(size) / size
    total = np.zeros((size,) * side)
    for site in range(side if periodic else side - 1):
        after = (site + 1) % side
        difference = np.cos(np.subtract.outer(angle, angle))
        if after < site:
            difference = difference.T
        axes = [size if axis in (site, after) else 1 for axis in range(side)]
        total = total + difference.reshape(axes)
    return np.asarray(np.exp(strength * total))


def down(state: FloatArray, kernel: FloatArray, axes: range) -> FloatArray:
    """Apply the bonds to the next row, along each of the axes."""
    for axis in axes:
        state = np.moveaxis(np.tensordot(kernel, state, axes=(1, axis)), 0, axis)
    return state


def vertical(size: int, strength: float) -> FloatArray:
    angle = 2 * np.pi * np.arange(size) / size
    return np.asarray(np.exp(strength * np.cos(np.subtract.outer(angle, angle))))


def free_log_z(side: int, size: int, strength: float = STRENGTH) -> float:
    """Trapezoidal rule for all angles, row by row; its error falls exponentially with the size."""
    within = rows(side, size, periodic=False, strength=strength)
    kernel = vertical(size, strength)
    state, log_scale = within, 0.0
    for _ in range(side - 1):
        state = within * down(state, kernel, range(side))
        log_scale += np.log(state.max())
        state = state / state.max()
    return float(np.log(state.sum()) + log_scale + side**2 * np.log(2 * np.pi / size))


def torus_log_z(size: int, strength: float = STRENGTH) -> float:
    """Trace of the transfer matrix T to the fourth: the sum of squares of the entries of T^2.

    Turning all spins changes nothing, so that the first one is fixed.
    """
    root = np.sqrt(rows(4, size, periodic=True, strength=strength))
    kernel = vertical(size, strength)
    total = 0.0
    for second in range(size):
        start = np.zeros((size, size) + (size,) * 4)
        for third, fourth in product(range(size), repeat=2):
            start[third, fourth, 0, second, third, fourth] = 1
        once = root * down(root * start, kernel, range(2, 6))
        total += float(np.sum((root * down(root * once, kernel, range(2, 6))) ** 2))
    return float(np.log(size * total) + 16 * np.log(2 * np.pi / size))


@pytest.mark.parametrize(("side", "size"), [(4, 16), (5, 14)])
def test_free_lattice(side: int, size: int) -> None:
    """Trapezoidal rules of two sizes say how far they have converged."""
    truth = xy_free(side).truth
    log_z = free_log_z(side, size)
    converged = abs(log_z - free_log_z(side, size - 2))
    expected = truth.log_evidence.value + side**2 * np.log(2 * np.pi)
    assert abs(log_z - expected) < truth.log_evidence.error + converged / 30
    if side == 4:
        slope = (free_log_z(4, size, 2.001) - free_log_z(4, size, 1.999)) / 0.002
        # The central difference is off by its step squared times a third derivative below 1.
        assert slope / 24 == pytest.approx(float(truth.expected("mean_cos")), abs=1.5e-6)


def test_torus() -> None:
    truth = xy_torus().truth
    log_z = torus_log_z(10)
    converged = abs(log_z - torus_log_z(8))
    expected = truth.log_evidence.value + 16 * np.log(2 * np.pi)
    assert abs(log_z - expected) < truth.log_evidence.error + converged / 30


def test_quadrants() -> None:
    """A layout in which all spins point into a quadrant, but for a long vector, and its turns."""
    test = xy_torus().truth.mode_test
    assert test is not None
    turn = np.pi / 2 * np.arange(4)
    theta = np.full((4, 16), 0.3) + turn[:, None]
    x = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
    x[:, 0] *= -100  # its direction counts, not its length
    draws = xr.Dataset({"x": (("chain", "draw", "spin", "axis"), x[None])})
    np.testing.assert_array_equal(test.happens(draws)[0], np.eye(4))
