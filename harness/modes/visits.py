"""Draws of one method, from which the table of modes is made: with their weights, thinned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness import evidence
from harness.arrays import FloatArray
from harness.evidence import Estimate, normalised_weights


@dataclass(frozen=True)
class Visits:
    """Draws of one method.

    Attributes
    ----------
    method
        Its name.
    points
        Draws on the unconstrained space, shape (chains, draws, D), or (chains, draws, N, D) if each
        has N pseudo-samples.
    log_weight
        Their log weights, shape (chains, draws), or (chains, draws, N).  In the latter case
        pseudo-samples are weighted against each other, draw by draw; otherwise draws are.
    chain
        Whether each chain's draws follow each other as NUTS made them, at the target.
    every
        The method made so many draws for each of these.
    separate
        Whether each chain's draws depend on each other in no order.
    systems
        Independent runs that each chain has one after the other, all draws alike in weight.
    """

    method: str
    points: FloatArray
    log_weight: FloatArray
    chain: bool = False
    every: int = 1
    separate: bool = False
    systems: int = 1

    def thinned(self, most: int) -> Visits:
        """Return every k-th draw of each chain, at most so many in all."""
        step = thinning(self.points.shape[:-1], most)
        return replace(
            self,
            points=self.points[:, ::step],
            log_weight=self.log_weight[:, ::step],
            every=step * self.every,
            systems=systems_left(self.systems, self.log_weight.shape[1], step),
        )

    @property
    def weight(self) -> FloatArray:
        """Weights that sum to one over all draws, of the same shape as the log weights."""
        if self.log_weight.ndim == 3:
            draws = self.log_weight.shape[0] * self.log_weight.shape[1]
            share: FloatArray = normalised_weights(self.log_weight) / draws
            return share
        return normalised_weights(self.log_weight.ravel()).reshape(self.log_weight.shape)

    def probability(self, inside: FloatArray) -> Estimate:
        """Estimate a probability from the indicator of each draw, of the shape of the weights."""
        if self.log_weight.ndim == 3:
            weight = normalised_weights(self.log_weight)
            return evidence.expectation((weight * inside).sum(axis=2))
        if self.systems > 1:
            return evidence.expectation(inside, systems=self.systems)
        return evidence.weighted_expectation(inside, self.log_weight, separate=self.separate)


def thinning(shape: Sequence[int], most: int) -> int:
    """Return k such that every k-th draw is kept, of draws with the leading axes (chains, draws).

    They are at most so many then, unless a chain's are too few for a Monte Carlo error.
    """
    step = max(1, -(-int(np.prod(shape)) // most))
    return max(1, min(step, shape[1] // 8))


def systems_left(systems: int, draws: int, step: int) -> int:
    """Return the systems of a chain's draws if every ``step``-th is kept; 1 if they no longer show.

    They do as long as a draw is kept at the same place of each.
    """
    return systems if draws % systems == 0 and (draws // systems) % step == 0 else 1
