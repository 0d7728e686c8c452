"""The harmonic mean of the likelihood: a control that shows how an estimate of log Z goes wrong.

References
----------
Newton, M. A. and Raftery, A. E. (1994). Approximate Bayesian inference with the weighted likelihood
bootstrap. Journal of the Royal Statistical Society B 56, 3-48.

Neal, R. M. (1994). Contribution to the discussion of Newton and Raftery. Journal of the Royal
Statistical Society B 56, 41-42.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London, section 4.1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence.estimates import standard_error
from harness.evidence.evidence import LogEvidence


def log_evidence_by_harmonic_mean(log_likelihood: npt.ArrayLike) -> LogEvidence:
    """Estimate log Z as minus the log of the mean of 1 / L over posterior draws.  Do not use it.

    The mean of 1 / L is an unbiased estimate of 1 / Z (Murray 2007, eq. 4.3).  Its variance is
    infinite wherever the integral of the prior over the likelihood is, as for nearly any
    likelihood whose tails are lighter than the prior's.  Then estimates hardly change with the
    prior, and are too high nearly always: what would bring them down are draws in the prior's bulk,
    and the posterior has none.  The error that is returned does not show this.  It is the relative
    error of the mean of 1 / L as if its variance were finite;
    :func:`harness.diagnosis.harmonic_mean_finding` says what is wrong.

    Parameters
    ----------
    log_likelihood
        Of posterior draws, finite, shape (chains, draws).

    Raises
    ------
    DataError
        If the shape is a different one, there are fewer than 4 draws, or a value is not finite.
    """
    value = np.asarray(log_likelihood, dtype=np.float64)
    if value.ndim != 2 or not value.size or not np.isfinite(value).all():
        raise DataError(
            "the harmonic mean needs finite log likelihoods of posterior draws (chains, draws); "
            f"got shape {value.shape}"
        )
    lowest = value.min()
    inverse: FloatArray = np.exp(lowest - value)
    mean = inverse.mean()
    return LogEvidence(float(lowest - np.log(mean)), standard_error(inverse / mean))
