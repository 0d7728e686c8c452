"""Log Z from importance weights for target and base, with an error from differences of chains."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence.evidence import LogEvidence


def log_evidence_between_chains(
    log_weight: npt.ArrayLike, log_weight_base: npt.ArrayLike, *, log_zeta: float = 0.0
) -> LogEvidence:
    """Estimate log Z from draws of one density that covers both the target and the base.

    The estimate is log zeta + log of the mean of the target's weights minus that of the base's
    (Murray 2007, eqs 4.16 and 4.17).  The error is that of the mean over chains of
    w / mean(w) - w_0 / mean(w_0), which linearises the estimate: the standard deviation of the
    chains' means of it, divided by the root of their number.  It makes no assumption on what
    happens within a chain, but chains that have all missed the same thing agree.

    Parameters
    ----------
    log_weight
        log (gamma / zeta / q) at draws of an unnormalised density q, shape (chains, draws); -inf
        where gamma is zero.
    log_weight_base
        log (b / q) there, for the normalised base b.
    log_zeta
        The guess at log Z that the weights contain.

    Raises
    ------
    DataError
        If shapes do not match, there are fewer than 2 chains, a log weight is NaN or +inf, or all
        weights of one kind are zero.

    References
    ----------
    Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
    London, sections 4.3 and 4.8.1.
    """
    one, zero = (np.asarray(each, dtype=np.float64) for each in (log_weight, log_weight_base))
    if one.ndim != 2 or one.shape != zero.shape or len(one) < 2 or not one.size:
        raise DataError(
            "an error between chains needs weights of one shape (chains, draws), with 2 chains or "
            f"more; got {one.shape} and {zero.shape}"
        )
    (up, value), (down, value_base) = _chain_means(one), _chain_means(zero)
    error = float(np.std(up - down, ddof=1) / np.sqrt(len(one)))
    return LogEvidence(log_zeta + value - value_base, error)


def _chain_means(log_weight: FloatArray) -> tuple[FloatArray, float]:
    """Return each chain's mean weight relative to that of all, and the log of the latter."""
    largest = float(log_weight.max())
    if not np.isfinite(largest) or np.any(np.isnan(log_weight)):
        raise DataError("log weights are finite or -inf, and some of each kind finite")
    weight = np.exp(log_weight - largest).mean(axis=1)
    mean = weight.mean()
    return weight / mean, largest + float(np.log(mean))
