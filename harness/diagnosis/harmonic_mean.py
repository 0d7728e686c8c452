"""What is wrong with a harmonic mean of the likelihood."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from harness import evidence
from harness.diagnosis.finding import Finding, Severity

_INFINITE_VARIANCE = 0.5
"""From this Pareto k on weights have no variance (Vehtari et al. 2024)."""


def harmonic_mean_finding(log_likelihood: npt.ArrayLike) -> Finding:
    """Say why log Z from the harmonic mean is not to be used; it is never fine.

    Parameters
    ----------
    log_likelihood
        Of the posterior draws, shape (chains, draws); see
        :func:`harness.evidence.log_evidence_by_harmonic_mean`.
    """
    k = evidence.pareto_k(-np.asarray(log_likelihood, dtype=np.float64))
    what = "Use a path from the prior, a bridge or nested sampling instead."
    if not math.isnan(k) and k >= _INFINITE_VARIANCE:
        return Finding(
            Severity.PROBLEM,
            "The harmonic mean has no known error, because the inverse likelihood has an infinite "
            f"variance: its Pareto k is {k:.2f}.",
            what,
        )
    seen = "cannot be estimated" if math.isnan(k) else f"is {k:.2f}"
    return Finding(
        Severity.WARNING,
        "The harmonic mean may be too high by any amount, because posterior draws do not show how "
        f"much of the prior has a low likelihood: the Pareto k of those that there are {seen}.",
        what,
    )
