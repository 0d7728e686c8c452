"""Metropolis-Hastings with any proposal, which keeps what it proposed."""

from __future__ import annotations

from typing import NamedTuple

from harness.arrays import FloatArray
from harness.proposals.chains import Chains, Density, acceptance_of, evaluated
from harness.proposals.chance import Chance
from harness.proposals.proposal import Proposal


class MetropolisStep(NamedTuple):
    """A step of many chains."""

    before: Chains
    """Where they were."""
    proposed: Chains
    """What was proposed."""
    acceptance: FloatArray
    """Probability with which it was accepted, shape (n,)."""
    after: Chains
    """Where they are now."""


def metropolis(
    density: Density, proposal: Proposal, chains: Chains, chance: Chance
) -> MetropolisStep:
    """Propose a point for each chain, and accept it or stay (Murray 2007, Algorithm 2.1).

    Parameters
    ----------
    density
        Log density of the target, up to a constant.
    proposal
        What to propose from.
    chains
        Where the chains are, with a density above zero.
    chance
        Source of randomness.
    """
    proposed = evaluated(density, proposal.draw(chains.points, chance))
    log_ratio = proposed.log_density - chains.log_density
    if not proposal.symmetric:
        log_ratio = log_ratio + (
            proposal.log_density(chains.points, proposed.points)
            - proposal.log_density(proposed.points, chains.points)
        )
    acceptance = acceptance_of(log_ratio)
    accepted = chance.happens(acceptance)
    return MetropolisStep(chains, proposed, acceptance, proposed.where(accepted, chains))
