"""A fit: one ArviZ DataTree with draws of the target, the extended draws and their cost.

Groups: ``posterior`` (unweighted draws of the target, under the model's own parameter names),
``extended`` (raw draws of the extended target: pseudo-samples, inverse temperatures and log
weights; absent if the target itself was sampled), ``sample_stats`` (statistics of the sampler),
``weighed_modes`` (the mode of each draw, if masses weigh the modes; raw draws of the target itself
are in ``extended`` then), ``constant_data`` (the model's data) and attributes (method, settings,
seeds, versions, cost).
"""

from harness.fit.build import (
    build_fit,
    continued,
    evidence_attributes,
    pooled,
    reserved_names,
    weigh_modes,
    with_parameters,
)
from harness.fit.fit import CHAINS_INTERACT, SEPARATE, SYSTEMS, Fit, is_fit
from harness.fit.parts import chain_evidence_attributes, chains_of, part_of
from harness.fit.tempered import PSEUDO_SAMPLE, TemperedDraws
from harness.fit.weighting import Weighting, in_extended, target_draws

__all__ = [
    "CHAINS_INTERACT",
    "PSEUDO_SAMPLE",
    "SEPARATE",
    "SYSTEMS",
    "Fit",
    "TemperedDraws",
    "Weighting",
    "build_fit",
    "chain_evidence_attributes",
    "chains_of",
    "continued",
    "evidence_attributes",
    "in_extended",
    "is_fit",
    "part_of",
    "pooled",
    "reserved_names",
    "target_draws",
    "weigh_modes",
    "with_parameters",
]
