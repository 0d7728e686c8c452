"""Estimates from weighted draws: expectations under the target, and log Z, with their errors.

This room takes arrays and returns estimates; it knows nothing about models, methods or engines.
Pseudo-samples, if there are any, run along the last axis of the log weights.

References
----------
Graham, M. M. and Storkey, A. J. (2017). Continuously tempered Hamiltonian Monte Carlo.
Proceedings of the 33rd Conference on Uncertainty in Artificial Intelligence.

Nemeth, C., Lindsten, F., Filippone, M. and Hensman, J. (2019). Pseudo-extended Markov chain
Monte Carlo. Advances in Neural Information Processing Systems 32.
"""

from harness.evidence.autocorrelation import (
    AutocorrelationTime,
    AutocorrelationTimes,
    autocorrelation_times,
)
from harness.evidence.base_mass import WHOLE_BASE, LogMass, log_base_mass
from harness.evidence.between_chains import log_evidence_between_chains
from harness.evidence.bridge import (
    BridgeEstimate,
    Halves,
    Reshuffled,
    bridge_sampling,
    draws_for_error,
    effective_in_bridge,
    joined_halves,
    reshuffled_spread,
)
from harness.evidence.chib import log_evidence_by_chib
from harness.evidence.combination import CombinedLogEvidence, combined_log_evidence
from harness.evidence.conditionals import (
    LogG,
    draw_inv_temp,
    inv_temp_interval_masses,
    inv_temp_log_conditionals,
    log_path_weight,
    times_delta,
)
from harness.evidence.diagnostics import (
    LOOKED_AT,
    constant,
    effective_draws,
    largest_r_hat,
    least_settled,
    pareto_k,
    r_hat,
    r_hat_by_chance,
    round_trips,
    slowest,
    z_scores,
)
from harness.evidence.entropy import (
    NEGLIGIBLE_AT_MOST,
    independent_draws,
    log_mass_at_most,
    log_masses_at_most,
    shares_at_most,
)
from harness.evidence.estimates import (
    Estimate,
    apart,
    between_runs,
    effective_number,
    expectation,
    normalised_weights,
    probability_error,
    standard_error,
    weighted_expectation,
)
from harness.evidence.evidence import (
    NORMALISED,
    LogEvidence,
    TwoSidedLogEvidence,
    log_evidence,
    log_evidence_by_parts,
    log_mean_of_populations,
    log_mean_weight,
    part_shares,
    two_sided_log_evidence,
)
from harness.evidence.harmonic_mean import log_evidence_by_harmonic_mean
from harness.evidence.in_range import standard_deviation
from harness.evidence.model_odds import (
    LEVEL,
    BayesFactor,
    ModelOdds,
    Share,
    bayes_factor,
    model_odds,
    strength,
)
from harness.evidence.resampling import (
    complement_log_weight,
    draw_index,
    effective_pseudo_samples,
    resample,
)
from harness.evidence.rungs import JoinedEvidence, RungEvidence, joined_evidence, rung_evidence
from harness.evidence.strata import (
    equal_masses,
    strata_errors,
    strata_scores,
    stratified_expectation,
    weigh_strata,
)

__all__ = [
    "LEVEL",
    "LOOKED_AT",
    "NEGLIGIBLE_AT_MOST",
    "NORMALISED",
    "WHOLE_BASE",
    "AutocorrelationTime",
    "AutocorrelationTimes",
    "BayesFactor",
    "BridgeEstimate",
    "CombinedLogEvidence",
    "Estimate",
    "Halves",
    "JoinedEvidence",
    "LogEvidence",
    "LogG",
    "LogMass",
    "ModelOdds",
    "Reshuffled",
    "RungEvidence",
    "Share",
    "TwoSidedLogEvidence",
    "apart",
    "autocorrelation_times",
    "bayes_factor",
    "between_runs",
    "bridge_sampling",
    "combined_log_evidence",
    "complement_log_weight",
    "constant",
    "draw_index",
    "draw_inv_temp",
    "draws_for_error",
    "effective_draws",
    "effective_in_bridge",
    "effective_number",
    "effective_pseudo_samples",
    "equal_masses",
    "expectation",
    "independent_draws",
    "inv_temp_interval_masses",
    "inv_temp_log_conditionals",
    "joined_evidence",
    "joined_halves",
    "largest_r_hat",
    "least_settled",
    "log_base_mass",
    "log_evidence",
    "log_evidence_between_chains",
    "log_evidence_by_chib",
    "log_evidence_by_harmonic_mean",
    "log_evidence_by_parts",
    "log_mass_at_most",
    "log_masses_at_most",
    "log_mean_of_populations",
    "log_mean_weight",
    "log_path_weight",
    "model_odds",
    "normalised_weights",
    "pareto_k",
    "part_shares",
    "probability_error",
    "r_hat",
    "r_hat_by_chance",
    "resample",
    "reshuffled_spread",
    "round_trips",
    "rung_evidence",
    "shares_at_most",
    "slowest",
    "standard_deviation",
    "standard_error",
    "strata_errors",
    "strata_scores",
    "stratified_expectation",
    "strength",
    "times_delta",
    "two_sided_log_evidence",
    "weigh_strata",
    "weighted_expectation",
    "z_scores",
]
