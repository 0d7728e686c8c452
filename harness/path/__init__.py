"""Tempered paths: bases, the ladder and g, the pilot that finds them, and starting values.

A base is the density at inverse temperature 0, together with a guess at log Z.  All bases live on
base coordinates (:mod:`harness.model.coordinates`): the logarithms of positive parameters, and all
other parameters unchanged.
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
from harness.path.pilot import pilot, pilot_of_density
from harness.path.pilot_result import Pilot, PilotSettings
from harness.path.starts import particles_by_parameter, starting_values

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
    "particles_by_parameter",
    "pathfinder_base",
    "pilot",
    "pilot_of_density",
    "starting_values",
    "symmetrised_divergence",
    "weighted_base",
    "without_duplicates",
]
