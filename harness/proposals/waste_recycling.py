"""Waste recycling: means that also count proposals which were refused."""

from __future__ import annotations

import numpy as np

from harness.arrays import FloatArray
from harness.proposals.chains import Chains, Function, acceptance_of
from harness.proposals.metropolis import MetropolisStep
from harness.proposals.multiple_try import MultipleTryStep, Tries, log_proposal
from harness.proposals.proposal import Proposal


def recycled(step: MetropolisStep, function: Function) -> FloatArray:
    """Return f(x) + (f(x') - f(x)) min(1, a) of a step's point x and proposal x', shape (n,).

    Its mean over steps of a chain in equilibrium is that of f (Murray 2007, eq. 2.14).
    """
    here, there = function(step.before.points), function(step.proposed.points)
    return here + (there - here) * step.acceptance


def recycled_tries(step: MultipleTryStep, proposal: Proposal, function: Function) -> FloatArray:
    """Return the mean of f over all points of a multiple-try step, shape (n,).

    Each of the two sets, {x, x_k} and {x', x'_k}, stands for one draw that is a try with the
    Metropolis-Hastings probability and else the point that it was proposed from (Murray 2007, eq.
    3.3), and the sets have the probabilities of eq. 3.4.  The mean over steps of a chain in
    equilibrium is that of f (eq. 3.5).

    Parameters
    ----------
    step
        A step.
    proposal
        What its tries were drawn from.
    function
        f, from points (n, D) to (n,).
    """
    # The primed set's total contains w(x, x'), so that not both are zero.
    primed = np.exp(step.log_weight - np.logaddexp(step.log_weight, step.log_weight_back))
    before = _of_set(step.before, step.tries, proposal, function)
    after = _of_set(step.chosen, step.back, proposal, function)
    # Where the chosen point is impossible, its set has no weight.
    return before + np.where(primed > 0, primed * (after - before), 0.0)


def _of_set(here: Chains, tries: Tries, proposal: Proposal, function: Function) -> FloatArray:
    """Return f(x) + sum_k a_k (f(x_k) - f(x)), shape (n,)."""
    count, number, dimension = tries.points.shape
    with np.errstate(invalid="ignore"):  # an impossible point that stands for others
        log_ratio = tries.log_density - here.log_density[:, None]
    if not proposal.symmetric:
        log_ratio = log_ratio + log_proposal(proposal, here, tries)
        log_ratio = log_ratio - log_proposal(proposal, here, tries, to=True)
    probability = acceptance_of(log_ratio) / number
    value = function(here.points)
    others = function(tries.points.reshape(-1, dimension)).reshape(count, number)
    mean: FloatArray = value + (probability * (others - value[:, None])).sum(axis=1)
    return mean
