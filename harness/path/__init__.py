"""Bases of a tempered path: the density at inverse temperature 0, and a guess at log Z.

All live on base coordinates (:mod:`harness.model.coordinates`): positive parameters by their
logarithm, all others as they are.
"""

from harness.path.approximations import (
    Advi,
    advi,
    laplace_base,
    local_base,
    local_fits,
    pathfinder_base,
)
from harness.path.data import TemperedPath
from harness.path.gaussian import GaussianBase, gaussian_base, symmetrised_divergence
from harness.path.moments import matched_base, mixed_base, weighted_base, without_duplicates
from harness.path.pilot import Pilot, PilotSettings, pilot, pilot_of_density
from harness.path.starts import starting_values

__all__ = [
    "Advi",
    "GaussianBase",
    "Pilot",
    "PilotSettings",
    "TemperedPath",
    "advi",
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
