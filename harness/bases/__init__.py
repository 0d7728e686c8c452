"""Bases of a tempered path: the density at inverse temperature 0, and a guess at log Z.

All live on base coordinates (:mod:`harness.coordinates`): positive parameters by their
logarithm, all others as they are.
"""

from harness.bases.approximations import (
    Advi,
    advi,
    laplace_base,
    local_base,
    local_fits,
    pathfinder_base,
)
from harness.bases.bootstrap import bootstrap_base, symmetrised_divergence
from harness.bases.gaussian import GaussianBase, gaussian_base
from harness.bases.moments import matched_base, mixed_base, weighted_base, without_duplicates
from harness.bases.pilot import Pilot, PilotSettings, pilot, pilot_of_density
from harness.bases.starts import starting_values

__all__ = [
    "Advi",
    "GaussianBase",
    "Pilot",
    "PilotSettings",
    "advi",
    "bootstrap_base",
    "gaussian_base",
    "laplace_base",
    "local_base",
    "local_fits",
    "matched_base",
    "mixed_base",
    "pathfinder_base",
    "pilot",
    "pilot_of_density",
    "starting_values",
    "symmetrised_divergence",
    "weighted_base",
    "without_duplicates",
]
