"""Where chains are, and the log density there."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray, LogDensity
from harness.proposals.chance import BoolArray

Density = Callable[[FloatArray], FloatArray]
"""Points (n, D) to log densities (n,), up to a constant, -inf outside the support."""

Function = Callable[[FloatArray], FloatArray]
"""Points (n, D) to values of a function of interest, (n,)."""


class Chains(NamedTuple):
    """Points of n chains."""

    points: FloatArray
    """Shape (n, D)."""
    log_density: FloatArray
    """Shape (n,)."""

    def where(self, chosen: BoolArray, other: Chains) -> Chains:
        """Return this one's rows where ``chosen``, shape (n,), and the other's elsewhere."""
        return Chains(
            np.where(chosen[:, None], self.points, other.points),
            np.where(chosen, self.log_density, other.log_density),
        )


def evaluated(density: Density, points: FloatArray) -> Chains:
    """Evaluate a density at the points of chains, shape (n, D)."""
    return Chains(points, density(points))


def value_of(log_density: LogDensity) -> Density:
    """Return the values alone of a log density with gradients, such as that of a Stan program."""

    def density(points: FloatArray) -> FloatArray:
        return log_density(points)[0]

    return density


def acceptance_of(log_ratio: FloatArray) -> FloatArray:
    """Return min(1, ratio), and 0 where the ratio is not a number."""
    with np.errstate(invalid="ignore"):
        at_most = np.minimum(0.0, np.where(np.isnan(log_ratio), -np.inf, log_ratio))
    return np.asarray(np.exp(at_most), dtype=np.float64)
