"""Posteriors whose likelihood has a constant that depends on the parameters and is not known."""

from harness.intractable.auxiliary import auxiliary_variables
from harness.intractable.bridging import Transition
from harness.intractable.exchange import exchange
from harness.intractable.exponential_family import exponential_family
from harness.intractable.known_constant import metropolis
from harness.intractable.latent_history import latent_history
from harness.intractable.problem import IntractableProblem, one_at_a_time
from harness.intractable.proposals import Proposal, Walk
from harness.intractable.slice_auxiliary import slice_auxiliary

__all__ = [
    "IntractableProblem",
    "Proposal",
    "Transition",
    "Walk",
    "auxiliary_variables",
    "exchange",
    "exponential_family",
    "latent_history",
    "metropolis",
    "one_at_a_time",
    "slice_auxiliary",
]
