"""Wells with two sides, of density exp(a / 2 + 6 a^2 - a^4), and as many Gaussian coordinates."""

from __future__ import annotations

import math

import numpy as np
from scipy.integrate import quad

from harness.arrays import FloatArray


def one_well(a: FloatArray) -> FloatArray:
    return np.asarray(0.5 * a + 6 * a**2 - a**4)


def _height(a: float) -> float:
    return math.exp(one_well(np.asarray(a)))


_AREA = quad(_height, -5, 5, points=[-1.7, 1.75])[0]
P_RIGHT = quad(_height, 0, 5, points=[1.75])[0] / _AREA

GRID = np.linspace(-4, 4, 100_001)
BELOW = np.cumsum(np.exp(one_well(GRID)))
BELOW /= BELOW[-1]
"""Distribution function of one well on the grid."""


def log_z(pairs: int) -> float:
    """Log integral of so many wells and as many standard Gaussian coordinates, unnormalised."""
    return pairs * (math.log(_AREA) + 0.5 * math.log(2 * math.pi))


def wells(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log density and gradient; the first half of the coordinates are wells."""
    a, b = np.split(points, 2, axis=1)
    value = one_well(a).sum(axis=1) - 0.5 * np.square(b).sum(axis=1)
    return value, np.concatenate([0.5 + 12 * a - 4 * a**3, -b], axis=1)


def exact_draws(rng: np.random.Generator, count: int, pairs: int) -> FloatArray:
    """Draw by inversion on a fine grid, shape (count, 2 pairs)."""
    a = np.interp(rng.random((count, pairs)), BELOW, GRID)
    return np.concatenate([a, rng.standard_normal((count, pairs))], axis=1)


def slow_chains(rng: np.random.Generator, shape: tuple[int, int], keep: float) -> FloatArray:
    """Draw chains (chains, draws, 8) of four wells whose sides persist from draw to draw.

    A side is kept with this probability, and otherwise drawn anew.
    """
    chains, count = shape
    pairs = 4
    anew = rng.random((count, chains, pairs)) < P_RIGHT
    kept = rng.random((count, chains, pairs)) < keep
    right = anew.copy()
    for t in range(1, count):
        right[t] = np.where(kept[t], right[t - 1], anew[t])
    pool = exact_draws(rng, 40 * count, 1)[:, 0]
    a = np.where(
        right, rng.choice(pool[pool > 0], right.shape), rng.choice(pool[pool <= 0], right.shape)
    )
    both = np.concatenate([a, rng.standard_normal(right.shape)], axis=2)
    return both.swapaxes(0, 1)
