"""Combine independent estimates of one log Z into a single one with an honest error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.special import chdtrc

from harness.errors import DataError
from harness.evidence.evidence import ROUNDING, LogEvidence


@dataclass(frozen=True)
class CombinedLogEvidence:
    """Independent estimates of one log Z, combined.

    Attributes
    ----------
    estimate
        Their weighted mean, in nats, with its standard error.
    between
        Standard deviation of the estimates beyond their own errors, in nats; 0 if they agree.
    p_value
        Probability that estimates with correct errors differ by as much as these.
    """

    estimate: LogEvidence
    between: float
    p_value: float


def combined_log_evidence(estimates: Sequence[LogEvidence]) -> CombinedLogEvidence:
    """Combine independent estimates whose own errors may be too small.

    The spread between the estimates counts in addition to their own errors, as in a random-effects
    meta-analysis (DerSimonian and Laird 1986, Controlled Clinical Trials 7, 177-188): with
    weights w_j = 1 / s_j^2 and Q = sum w_j (L_j - mean)^2, the variance between estimates is
    (Q - (J - 1)) / (sum w_j - sum w_j^2 / sum w_j), or 0 if that is negative.

    Parameters
    ----------
    estimates
        One or more estimates, in nats, with finite errors, which are 0 for exact ones.

    Raises
    ------
    DataError
        If there are none, a number is not finite, or an error is negative.
    """
    value = np.array([each.value for each in estimates], dtype=np.float64)
    error = np.array([each.mcse for each in estimates], dtype=np.float64)
    if not len(value) or not np.all(np.isfinite(value)) or not np.all(np.isfinite(error)):
        raise DataError("estimates of log Z to combine must be one or more, and finite")
    if np.any(error < 0):
        raise DataError("errors of estimates of log Z to combine must not be negative")
    error = np.maximum(error, ROUNDING)
    weight = 1 / error**2
    mean = weight @ value / weight.sum()
    freedom = len(value) - 1
    q = float(weight @ (value - mean) ** 2)
    scale = weight.sum() - (weight**2).sum() / weight.sum()
    between = max(0.0, (q - freedom) / scale) if freedom else 0.0
    weight = 1 / (error**2 + between)
    p_value = float(chdtrc(freedom, q)) if freedom else 1.0
    estimate = LogEvidence(float(weight @ value / weight.sum()), float(np.sqrt(1 / weight.sum())))
    return CombinedLogEvidence(estimate, sqrt(between), p_value)
