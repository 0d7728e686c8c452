"""Annealed importance sampling AIS_{r,c} of Murray (2007, section 4.8.1), moved by slice sampling.

r repeats of c chains; those of a repeat give each other their ranges as first widths, which are 1
for a chain alone.  Several runs of all that go on side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.samplers.annealing import BoolArray, anneal
from harness.samplers.ladders import (
    equal_variance_ladder,
    fourth_power_ladder,
    tempered_variance,
    uniform_ladder,
)
from harness.samplers.nested_particles import Particles, PriorAndLikelihood, Rows
from harness.samplers.nested_volumes import Removed, log_widths, mean_log_volume

from .sweep import slice_sweep, widths


@dataclass(frozen=True)
class Anneal:
    """How annealing is done.

    Attributes
    ----------
    repeats, chains
        r and c.
    schedule
        ``nest``: of equal variances, from a run of nested sampling with ``particles`` and one step
        (Algorithm 4.3), for a standard error of ``error``; ``linear`` or ``fourth power``.
    rungs
        K, the number of inverse temperatures between 0 and 1, of the latter two.
    error, particles
        Of the first.

    Raises
    ------
    DataError
        If a number is out of its range.
    """

    repeats: int
    chains: int
    schedule: Literal["nest", "linear", "fourth power"] = "nest"
    rungs: int = 0
    error: float = 0.0
    particles: int = 0

    def __post_init__(self) -> None:
        given = self.error > 0 and self.particles > 0 if self.schedule == "nest" else self.rungs > 0
        if self.repeats < 1 or self.chains < 1 or not given:
            raise DataError(
                "annealing takes 1 repeat and 1 chain or more, and a schedule from nested "
                f"sampling with an error and particles, or of a number of rungs; got {self}"
            )

    def ladder(self, nested: Removed | None) -> FloatArray:
        """Return the inverse temperatures with 0 and 1, shape (K + 2,), from a nested run."""
        if self.schedule == "linear":
            return uniform_ladder(self.rungs + 2)
        if self.schedule == "fourth power":
            return fourth_power_ladder(self.rungs + 2)
        if nested is None:
            raise DataError("a schedule from nested sampling needs a run of it")
        variance = tempered_variance(
            nested.particles.log_likelihood, log_widths(mean_log_volume(nested.alive))
        )
        return equal_variance_ladder(variance, self.error**2 * self.repeats * self.chains)


class SweepWalk:
    """A :class:`harness.samplers.annealing.Walk` of groups of chains, by sweeps.

    Parameters
    ----------
    space
        Prior and likelihood.
    ladder
        Inverse temperatures, shape (K + 2,).
    chains
        Chains of a group.
    rng
        Source of randomness.
    """

    def __init__(
        self, space: PriorAndLikelihood, ladder: FloatArray, chains: int, rng: np.random.Generator
    ) -> None:
        self._space, self._ladder, self._chains, self._rng = space, ladder, chains, rng

    def ascent(self, chains: Particles) -> FloatArray:
        """Return log L of each chain, (n,)."""
        return chains.log_likelihood

    def move(self, chains: Particles, rung: int, backward: BoolArray) -> Particles:
        """Sweep each chain once at a rung; sweeps in random order are their own reversal."""
        inv_temp = float(self._ladder[rung])

        def height(log_prior: FloatArray, log_likelihood: FloatArray, rows: Rows) -> FloatArray:
            return log_prior + inv_temp * log_likelihood

        state = chains.copy()
        groups = state.points.reshape(-1, self._chains, state.points.shape[1])
        width = np.repeat(widths(groups), self._chains, axis=0)
        slice_sweep(self._space, height, state, width, self._rng)
        return state


def annealed_runs(
    space: PriorAndLikelihood,
    points: FloatArray,
    ladder: FloatArray,
    chains: int,
    rng: np.random.Generator,
) -> tuple[Particles, FloatArray]:
    """Anneal draws of the prior, shape (n, D), in groups of some chains; return log weights (n,).

    The chains' last states come first.
    """
    walk = SweepWalk(space, ladder, chains, rng)
    start = space.particles(points, rng)
    return anneal(walk, ladder, start, np.zeros(len(points), dtype=np.bool_))


def weighted_shares(events: FloatArray, log_weight: FloatArray) -> FloatArray:
    """Return probabilities of events (n, M) from independent weights, and errors, (2, M)."""
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = weight @ events
    return np.stack([mean, np.sqrt(np.square(weight) @ np.square(events - mean))])
