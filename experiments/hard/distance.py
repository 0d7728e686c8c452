"""Sliced Wasserstein distance between draws of a run and exact draws, with a yardstick.

References
----------
Bonneel, N., Rabin, J., Peyré, G. and Pfister, H. (2015). Sliced and Radon Wasserstein barycenters
of measures. Journal of Mathematical Imaging and Vision 51, 22-45.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray

DIRECTIONS, QUANTILES = 64, 200
MOST_DRAWS = 1000
"""Draws of a run, and exact draws, that are compared."""


class Distance(NamedTuple):
    """A distance, and the same between two exact samples, one of the run's effective size."""

    value: float
    yardstick: float


def distance(
    draws: FloatArray, exact: FloatArray, other: FloatArray, *, effective: float, seed: int = 0
) -> Distance:
    """Compare a run with exact draws.

    Parameters
    ----------
    draws
        Draws of a run, shape (n, D).
    exact, other
        Two independent samples of exact draws, shape (m, D).
    effective
        Effective draws of the run, as many of the second sample as are compared with the first.
    seed
        Seed of directions and of the choice among draws.

    Returns
    -------
    Distance
        In standard deviations of the exact draws.
    """
    rng = np.random.default_rng(seed)
    scale = exact.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    few = int(np.clip(effective, 2, min(len(other), MOST_DRAWS)))
    directions = rng.normal(size=(DIRECTIONS, exact.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    if len(draws) > MOST_DRAWS:
        draws = draws[rng.choice(len(draws), MOST_DRAWS, replace=False)]
    return Distance(
        sliced_wasserstein(draws / scale, exact / scale, directions),
        sliced_wasserstein(other[:few] / scale, exact / scale, directions),
    )


def sliced_wasserstein(one: FloatArray, two: FloatArray, directions: FloatArray) -> float:
    """Return the mean over directions of the 1-Wasserstein distance between projections.

    Along a direction it is the mean gap between quantiles at the same levels.

    Parameters
    ----------
    one, two
        Samples, shapes (n, D) and (m, D).
    directions
        Unit vectors, shape (K, D).
    """
    levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
    gaps = [np.quantile(each @ directions.T, levels, axis=0) for each in (one, two)]
    return float(np.abs(gaps[0] - gaps[1]).mean())
