"""Multiple-try Metropolis: one of several proposals is chosen, and accepted or refused."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.proposals.chains import Chains, Density, acceptance_of
from harness.proposals.chance import Chance
from harness.proposals.proposal import Proposal, log_sum

Weighting = Literal["I", "II"]
"""I: w(a, b) = p(a) q(b <- a).  II, for a symmetric proposal: w(a, b) = p(a)."""


class Tries(NamedTuple):
    """K proposals of each of n chains."""

    points: FloatArray
    """Shape (n, K, D)."""
    log_density: FloatArray
    """Shape (n, K)."""


class MultipleTryStep(NamedTuple):
    """A step of many chains, with everything that it evaluated."""

    before: Chains
    """Where they were, x."""
    tries: Tries
    """Proposals x_k from there."""
    chosen: Chains
    """The one that was chosen, x'."""
    back: Tries
    """K - 1 proposals x'_k from the chosen one, and x, which is the last."""
    log_weight: FloatArray
    """log sum_k w(x_k, x), shape (n,)."""
    log_weight_back: FloatArray
    """log sum_k w(x'_k, x'), shape (n,)."""
    acceptance: FloatArray
    """Probability with which x' was accepted, shape (n,)."""
    after: Chains
    """Where they are now."""
    kept: Tries
    """Proposals around where they are now, for a next step that draws none."""


def multiple_try(
    density: Density,
    proposal: Proposal,
    chains: Chains,
    chance: Chance,
    *,
    tries: int,
    weighting: Weighting = "II",
    kept: Tries | None = None,
) -> MultipleTryStep:
    """Choose among K proposals and accept the choice or stay (Liu, Liang and Wong 2000).

    The choice has probabilities proportional to w(x_k, x), and is accepted with probability
    min(1, sum_k w(x_k, x) / sum_k w(x'_k, x')).  Murray (2007) prints w(x, x_k) in steps 2 and 3 of
    Algorithm 3.2, with which the target is not invariant.  A step costs 2 K - 1 evaluations.

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
    tries
        Number K of proposals.
    weighting
        Which weights; II needs a symmetric proposal.
    kept
        Proposals from the last step's ``kept``, which are then not drawn again (Murray 2007, the
        end of section 3.2): the step costs K - 1 evaluations.

    Raises
    ------
    DataError
        If K is less than 1, or weights II are asked for with a proposal that is not symmetric.

    References
    ----------
    Liu, J. S., Liang, F. and Wong, W. H. (2000). The multiple-try method and local optimization in
    Metropolis sampling. Journal of the American Statistical Association 95, 121-134.
    """
    if tries < 1:
        raise DataError(f"multiple-try Metropolis needs a try or more; got {tries}")
    if weighting == "II" and not proposal.symmetric:
        raise DataError("weights II need a symmetric proposal; take weighting='I'")
    forward = _tries(density, proposal, chains, tries, chance) if kept is None else kept
    log_weight = _log_weights(proposal, weighting, forward, chains)
    rows, index = np.arange(len(chains.points)), chance.choose(log_weight)
    chosen = Chains(forward.points[rows, index], forward.log_density[rows, index])
    fresh = _tries(density, proposal, chosen, tries - 1, chance)
    back = Tries(
        np.concatenate([fresh.points, chains.points[:, None]], axis=1),
        np.concatenate([fresh.log_density, chains.log_density[:, None]], axis=1),
    )
    total = log_sum(log_weight)
    total_back = log_sum(_log_weights(proposal, weighting, back, chosen))
    acceptance = acceptance_of(total - total_back)
    accepted = chance.happens(acceptance)
    after_tries = Tries(
        np.where(accepted[:, None, None], back.points, forward.points),
        np.where(accepted[:, None], back.log_density, forward.log_density),
    )
    return MultipleTryStep(
        chains,
        forward,
        chosen,
        back,
        total,
        total_back,
        acceptance,
        chosen.where(accepted, chains),
        after_tries,
    )


def _tries(density: Density, proposal: Proposal, here: Chains, tries: int, chance: Chance) -> Tries:
    """Draw proposals from each chain's point, and evaluate the density there."""
    count, dimension = here.points.shape
    if not tries:
        return Tries(np.empty((count, 0, dimension)), np.empty((count, 0)))
    points = proposal.draw(np.repeat(here.points, tries, axis=0), chance)
    return Tries(points.reshape(count, tries, dimension), density(points).reshape(count, tries))


def _log_weights(
    proposal: Proposal, weighting: Weighting, there: Tries, here: Chains
) -> FloatArray:
    """Return log w(there, here), shape (n, K)."""
    if weighting == "II":
        return there.log_density
    return there.log_density + log_proposal(proposal, here, there)


def log_proposal(proposal: Proposal, here: Chains, there: Tries, *, to: bool = False) -> FloatArray:
    """Return log q(here <- there) or, with ``to``, log q(there <- here), shape (n, K)."""
    count, tries, dimension = there.points.shape
    near, far = np.repeat(here.points, tries, axis=0), there.points.reshape(-1, dimension)
    value = proposal.log_density(far, near) if to else proposal.log_density(near, far)
    return value.reshape(count, tries)
