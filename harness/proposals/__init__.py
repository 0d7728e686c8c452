"""Proposals and estimators that use more of what a proposal computed (Murray 2007, chapters 2, 3).

They are here to be compared with, and to be tested against: in most of its own measurements the
thesis finds that they do not pay, and ours agree.  Every kernel moves many chains at once, takes a
log density as a Python function of many points, and leaves all chance to a
:class:`~harness.proposals.chance.Chance`, so that it can be summed over exactly.

References
----------
Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, Gatsby Computational
Neuroscience Unit, University College London.
"""

from harness.proposals.chains import Chains, Density, evaluated, value_of
from harness.proposals.chance import Chance
from harness.proposals.conditional import conditional_mean
from harness.proposals.metropolis import MetropolisStep, metropolis
from harness.proposals.multiple_importance_try import importance_log_weights
from harness.proposals.multiple_try import MultipleTryStep, Tries, multiple_try
from harness.proposals.overrelaxation import Overrelaxed, Sizes, ordered_overrelaxation
from harness.proposals.pivot import (
    Pair,
    Transition,
    pivot_metropolis,
    pivot_persistence,
    pivot_transition,
)
from harness.proposals.population_monte_carlo import (
    Population,
    PopulationStep,
    Widths,
    move_population,
    start_population,
)
from harness.proposals.proposal import GaussianStep, GaussianSteps, Proposal
from harness.proposals.reflect import reflect_probabilities
from harness.proposals.two_factor_slice import Sliced, two_factor_slice
from harness.proposals.two_stage import Factored, TwoStageStep, factored, two_stage
from harness.proposals.waste_recycling import recycled, recycled_tries
from harness.proposals.weighted_mean import WeightedMean

__all__ = [
    "Chains",
    "Chance",
    "Density",
    "Factored",
    "GaussianStep",
    "GaussianSteps",
    "MetropolisStep",
    "MultipleTryStep",
    "Overrelaxed",
    "Pair",
    "Population",
    "PopulationStep",
    "Proposal",
    "Sizes",
    "Sliced",
    "Transition",
    "Tries",
    "TwoStageStep",
    "WeightedMean",
    "Widths",
    "conditional_mean",
    "evaluated",
    "factored",
    "importance_log_weights",
    "metropolis",
    "move_population",
    "multiple_try",
    "ordered_overrelaxation",
    "pivot_metropolis",
    "pivot_persistence",
    "pivot_transition",
    "recycled",
    "recycled_tries",
    "reflect_probabilities",
    "start_population",
    "two_factor_slice",
    "two_stage",
    "value_of",
]
