"""Multiple-importance try: all proposals of a multiple-try chain as importance samples."""

from __future__ import annotations

from harness.arrays import FloatArray
from harness.proposals.chains import Chains
from harness.proposals.multiple_try import Tries, log_proposal
from harness.proposals.proposal import Proposal


def importance_log_weights(proposal: Proposal, here: Chains, tries: Tries) -> FloatArray:
    """Return log p(x_k) - log q(x_k <- x) of proposals, shape (n, K) (Murray 2007, eq. 3.1).

    Pool the weights of a whole run, in a :class:`~harness.proposals.weighted_mean.WeightedMean`,
    before they are normalised; normalised step by step they give a wrong mean.  These are plain
    importance weights, whose variance grows without bound where the proposal is narrower than the
    target.

    Parameters
    ----------
    proposal
        What the tries were drawn from.
    here
        Where they were drawn from, ``before`` of a step.
    tries
        The step's ``tries``.

    References
    ----------
    Qi, Y. and Minka, T. P. (2002). Hessian-based Markov chain Monte Carlo algorithms. First Cape
    Cod Workshop on Monte Carlo Methods.
    """
    return tries.log_density - log_proposal(proposal, here, tries, to=True)
