"""Metropolis-Hastings in stages: a cheap factor may refuse before a dear one is evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.proposals.chains import Density, acceptance_of
from harness.proposals.chance import Chance
from harness.proposals.proposal import Proposal


class Factored(NamedTuple):
    """Points of n chains, with the log of each of F factors of their density."""

    points: FloatArray
    """Shape (n, D)."""
    log_factors: FloatArray
    """Shape (n, F)."""


class TwoStageStep(NamedTuple):
    """A step of many chains."""

    after: Factored
    """Where they are now."""
    accepted: FloatArray
    """1 where a proposal was accepted, 0 elsewhere, shape (n,)."""
    calls: tuple[int, ...]
    """At how many points each factor was evaluated."""


def factored(factors: Sequence[Density], points: FloatArray) -> Factored:
    """Evaluate every factor at the points of chains, shape (n, D)."""
    return Factored(points, np.stack([factor(points) for factor in factors], axis=1))


def two_stage(
    factors: Sequence[Density], proposal: Proposal, chains: Factored, chance: Chance
) -> TwoStageStep:
    """Propose a point for each chain; each factor in turn accepts it or ends the matter.

    The probability of acceptance is the product of min(1, q pi(x') / pi(x)), with q the ratio of
    proposal densities, and min(1, L(x') / L(x)).  That leaves the product of the factors invariant,
    and is never more than that of Metropolis-Hastings, but the likelihood L is only evaluated
    where the prior pi has not refused (Murray 2007, Algorithm 2.2).

    Parameters
    ----------
    factors
        Log factors of the target's density, the cheapest first: pi, L, and more if there are any.
    proposal
        What to propose from.
    chains
        Where the chains are, from :func:`factored`.
    chance
        Source of randomness.

    Raises
    ------
    DataError
        If there is no factor.
    """
    if not factors:
        raise DataError("acceptance in stages needs a factor of the density or more; got none")
    points = proposal.draw(chains.points, chance)
    log_ratio = np.zeros(len(points))
    if not proposal.symmetric:
        log_ratio += proposal.log_density(chains.points, points)
        log_ratio -= proposal.log_density(points, chains.points)
    values = np.full(chains.log_factors.shape, -np.inf)
    rows, calls = np.arange(len(points)), []
    for stage, factor in enumerate(factors):
        calls.append(rows.size)
        if not rows.size:
            continue
        values[rows, stage] = factor(points[rows])
        change = values[rows, stage] - chains.log_factors[rows, stage]
        if not stage:
            change = change + log_ratio
        rows = rows[chance.happens(acceptance_of(change))]
    after = Factored(chains.points.copy(), chains.log_factors.copy())
    after.points[rows], after.log_factors[rows] = points[rows], values[rows]
    accepted = np.zeros(len(points))
    accepted[rows] = 1.0
    return TwoStageStep(after, accepted, tuple(calls))
