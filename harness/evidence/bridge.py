"""Bridge sampling: a normalising constant from draws of two densities.

References
----------
Meng, X.-L. and Wong, W. H. (1996). Simulating ratios of normalizing constants via a simple
identity: a theoretical exploration. Statistica Sinica 6, 831-860.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.errors import DataError
from harness.evidence.diagnostics import effective_draws
from harness.evidence.estimates import standard_error
from harness.evidence.evidence import LogEvidence

_ITERATIONS = 200
_CONVERGED = 1e-10


def bridge_sampling(log_ratio: npt.ArrayLike, log_ratio_base: npt.ArrayLike) -> LogEvidence:
    """Estimate log Z of r from draws of r and independent draws of a normalised density.

    With l = r / b, the optimal bridge solves
    Z = mean_b[l / (s_1 l + s_0 Z)] / mean_r[1 / (s_1 l + s_0 Z)].  Here s_1 and s_0 are the shares
    that the draws of r and of b have in all draws, where draws of r are counted as effective draws
    (Meng and Wong 1996, eq. 4.1).

    Parameters
    ----------
    log_ratio
        log r - log b at draws of r, shape (chains, draws).
    log_ratio_base
        The same log ratio at independent draws of b, shape (n,).

    Raises
    ------
    DataError
        If shapes do not match, there are fewer than 4 draws of either density, or a log ratio is
        not finite (at draws of b it may be -inf).
    """
    target = np.asarray(log_ratio, dtype=np.float64)
    base = np.asarray(log_ratio_base, dtype=np.float64)
    if target.ndim != 2 or target.shape[1] < 4 or base.ndim != 1 or base.size < 4:
        raise DataError(
            f"bridge sampling needs draws (chains, draws >= 4) and base draws (n >= 4); got "
            f"shapes {target.shape} and {base.shape}"
        )
    if not np.all(np.isfinite(target)) or np.any(np.isnan(base)) or np.any(base == np.inf):
        raise DataError("the log ratios of bridge sampling must be finite")
    effective = float(np.nan_to_num(effective_draws(target, np.zeros(target.shape)), nan=np.inf))
    first = min(effective, target.size)
    log_share = np.log(first / (first + base.size)), np.log(base.size / (first + base.size))
    log_z = float(np.median(target))
    for _ in range(_ITERATIONS):
        over, under = _terms(base, target, log_share, log_z)
        new = float(_log_mean(over) - _log_mean(under.ravel()))
        done = abs(new - log_z) < _CONVERGED
        log_z = new
        if done:
            break
    over, under = (np.exp(each) for each in _terms(base, target, log_share, log_z))
    variance = (over.std(ddof=1) / over.mean()) ** 2 / base.size
    variance += standard_error(under / under.mean()) ** 2
    return LogEvidence(log_z, float(np.sqrt(variance)))


def _terms(
    base: np.ndarray, target: np.ndarray, log_share: tuple[float, float], log_z: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return log l / (s_1 l + s_0 Z) at draws of b, and log 1 / (s_1 l + s_0 Z) at those of r."""
    over = base - np.logaddexp(log_share[0] + base, log_share[1] + log_z)
    under = -np.logaddexp(log_share[0] + target, log_share[1] + log_z)
    return over, under


def _log_mean(log_values: np.ndarray) -> float:
    return float(np.logaddexp.reduce(log_values) - np.log(log_values.size))
