"""Say in plain sentences whether a fit can be trusted, and what to try if it cannot.

A finding says what is wrong, how it shows, and what to do, in that order.  If all findings are
fine, the fit is sound as far as its draws can tell.

References
----------
Betancourt, M. (2016). Diagnosing suboptimal cotangent disintegrations in Hamiltonian Monte
Carlo. arXiv:1604.00695.

Gelman, A., Carlin, J. B., Stern, H. S., Dunson, D. B., Vehtari, A. and Rubin, D. B. (2013).
Bayesian Data Analysis, third edition, section 11.

Vehtari, A., Gelman, A., Simpson, D., Carpenter, B. and Bürkner, P.-C. (2021).
Rank-normalization, folding, and localization: an improved R-hat for assessing convergence of
MCMC. Bayesian Analysis 16(2), 667-718.

Vehtari, A., Simpson, D., Gelman, A., Yao, Y. and Gabry, J. (2024). Pareto smoothed importance
sampling. Journal of Machine Learning Research 25(72), 1-58.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from harness.diagnosis.advice import advice_for, give_options
from harness.diagnosis.agreement import (
    EFFECTIVE_WARNING,
    R_HAT_PROBLEM,
    R_HAT_WARNING,
    agreement,
    effective_draws,
    r_hat_finding,
)
from harness.diagnosis.finding import Finding, Severity
from harness.diagnosis.harmonic_mean import harmonic_mean_finding
from harness.diagnosis.path import base_scores, largest_base_score, outer_tenths, path
from harness.diagnosis.replicas import replicas
from harness.diagnosis.sampler import DIVERGENT_PROBLEM, sampler
from harness.diagnosis.step_size import step_size
from harness.fit import Fit

__all__ = [
    "DIVERGENT_PROBLEM",
    "EFFECTIVE_WARNING",
    "R_HAT_PROBLEM",
    "R_HAT_WARNING",
    "Finding",
    "Severity",
    "base_scores",
    "diagnose",
    "forget",
    "give_options",
    "harmonic_mean_finding",
    "largest_base_score",
    "outer_tenths",
    "r_hat_finding",
    "remember",
    "remembered",
]


def diagnose(fit: Fit) -> list[Finding]:
    """Check everything that the draws can show.

    Parameters
    ----------
    fit
        Result of any method.

    Returns
    -------
    list of Finding
        The worst first; never empty.
    """
    chains = list(agreement(fit))
    apart = any(each.severity == Severity.PROBLEM for each in chains)
    findings = [
        *remembered(fit),
        *chains,
        # Errors from chains that disagree are too small, so agreement within them says nothing.
        *(each for each in path(fit) if not apart or each.severity != Severity.FINE),
        *replicas(fit),
        *effective_draws(fit),
        *sampler(fit),
        *step_size(fit),
        Finding(
            Severity.FINE,
            "No check can see a mode that no chain has visited.",
            advice_for(fit).unseen,
        ),
    ]
    # Sorting is stable, so findings of the same severity stay in the order above.
    return sorted(findings, key=lambda finding: -finding.severity)


def remember(fit: Fit, findings: Iterable[Finding]) -> None:
    """Keep findings with a fit that its draws alone do not show, after those that it has.

    One that it has already is not repeated.
    """
    told = dict.fromkeys([*remembered(fit), *findings])
    fit.tree.attrs["findings"] = json.dumps(
        [(int(each.severity), each.sentence, each.what_to_try) for each in told]
    )


def forget(fit: Fit, findings: Iterable[Finding]) -> None:
    """Drop findings that a fit has kept, because they do not hold any more."""
    dropped = set(findings)
    left = [each for each in remembered(fit) if each not in dropped]
    fit.tree.attrs.pop("findings", None)
    remember(fit, left)


def remembered(fit: Fit) -> Sequence[Finding]:
    """Return what :func:`remember` has kept: findings that the draws alone do not show."""
    return fit.attribute("findings", _read) or ()


def _read(kept: str) -> list[Finding]:
    return [Finding(Severity(severity), *told) for severity, *told in json.loads(kept)]
