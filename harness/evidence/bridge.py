"""Bridge sampling: a normalising constant from draws of two densities.

References
----------
Meng, X.-L. and Wong, W. H. (1996). Simulating ratios of normalizing constants via a simple
identity: a theoretical exploration. Statistica Sinica 6, 831-860.

Frühwirth-Schnatter, S. (2004). Estimating marginal likelihoods for mixture and Markov switching
models using bridge sampling techniques. Econometrics Journal 7, 143-167.

Micaletto, G. and Vehtari, A. (2025). Bridge sampling diagnostics. arXiv:2508.14487.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence.balance import balance
from harness.evidence.diagnostics import effective_draws, pareto_k
from harness.evidence.estimates import standard_error
from harness.evidence.evidence import LogEvidence

_NEAR_BOUND = 10.0
"""Multiple of their mean that bounded terms may reach without a tail that matters."""
_LITTLE_SPREAD = 0.3
"""Coefficient of variation below which the tail of terms does not matter either."""
_CHANCE = 1e-4
"""Probability that reshuffled blocks seem to spread too widely although the error is right."""


@dataclass(frozen=True)
class BridgeEstimate:
    """A log normalising constant by a bridge, and what tells whether it can be trusted.

    Attributes
    ----------
    log_evidence
        Log Z in nats, with the error that follows from the relative mean squared error.
    variance_target, variance_base
        The parts of its variance that come from the draws of either density.
    k_target, k_base
        Shape of the tail of the bridge's terms at either set of draws; see
        :func:`harness.evidence.pareto_k`.  Above 0.7 their mean cannot be relied on.  The terms are
        bounded, however: it is -inf where none can exceed ten times their mean, or where their
        standard deviation is below 0.3 of their mean.
    overlap
        Integral of p b / (s_1 p + s_0 b), where p = r / Z: 1 if the densities are equal, 0 if they
        do not overlap.
    effective, share
        Effective draws of r, and their share s_1 in all draws.
    """

    log_evidence: LogEvidence
    variance_target: float
    variance_base: float
    k_target: float
    k_base: float
    overlap: float
    effective: float
    share: float


def bridge_sampling(
    log_ratio: npt.ArrayLike, log_ratio_base: npt.ArrayLike, *, effective: float | None = None
) -> BridgeEstimate:
    """Estimate log Z of r from draws of r and independent draws of a normalised density.

    With l = r / b, the optimal bridge solves
    Z = mean_b[l / (s_1 l + s_0 Z)] / mean_r[1 / (s_1 l + s_0 Z)].  Here s_1 and s_0 are the shares
    that the draws of r and of b have in all draws, where draws of r are counted as effective draws
    (Meng and Wong 1996, eq. 4.1).  This is the one root of
    s_0 mean_b[q] - s_1 mean_r[1 - q] with q = s_1 l / (s_1 l + s_0 Z), which falls as Z grows.

    The variance of log Z is the squared relative error of either mean, added up; that of draws of r
    takes their autocorrelation into account (Frühwirth-Schnatter 2004).

    Parameters
    ----------
    log_ratio
        log r - log b at draws of r, shape (chains, draws).
    log_ratio_base
        The same log ratio at independent draws of b, shape (n,).
    effective
        How many effective draws the draws of r count as, which decides s_1.  It is best known from
        other draws of r.  By default it is that of these, and log Z has a bias: a chain that has
        stayed in a tail has few effective draws, so that this tail counts for less.

    Raises
    ------
    DataError
        If shapes do not match, there are fewer than 4 draws of either density, a log ratio is
        not finite (at draws of b it may be -inf), or r is zero at all draws of b.
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
    if np.all(base == -np.inf):
        raise DataError("bridge sampling needs draws of the base where the target is not zero")
    first = min(effective_in_bridge(target) if effective is None else effective, target.size)
    log_share = math.log(first / (first + base.size)), math.log(base.size / (first + base.size))
    shift = log_share[0] - log_share[1]
    log_z = balance(base + shift, target + shift, shift)
    over, under = _terms(base, target, log_share, log_z)
    k_base = _tail(over, -log_share[0])
    k_target = _tail(under, -log_share[1] - log_z)
    overlap = min(1.0, float(np.exp(_log_mean(over))))
    over, under = np.exp(over - over.max()), np.exp(under - under.max())
    of_base = float(over.std(ddof=1) / over.mean()) ** 2 / base.size
    of_target = standard_error(under / under.mean()) ** 2
    return BridgeEstimate(
        LogEvidence(log_z, math.sqrt(of_base + of_target)),
        of_target,
        of_base,
        k_target,
        k_base,
        overlap,
        first,
        math.exp(log_share[0]),
    )


def effective_in_bridge(log_ratio: FloatArray) -> float:
    """Return how many effective draws of a density count in a bridge from a proposal.

    Parameters
    ----------
    log_ratio
        Log ratio of the density and the proposal at draws of the density, shape (chains, draws).

    Returns
    -------
    float
        inf if the log ratio is the same at all draws.
    """
    found = effective_draws(log_ratio, np.zeros(log_ratio.shape))
    return float(np.nan_to_num(found, nan=np.inf))


def _terms(
    base: FloatArray, target: FloatArray, log_share: tuple[float, float], log_z: float
) -> tuple[FloatArray, FloatArray]:
    """Return log l / (s_1 l + s_0 Z) at draws of b, and log 1 / (s_1 l + s_0 Z) at those of r."""
    over = base - np.logaddexp(log_share[0] + base, log_share[1] + log_z)
    under = -np.logaddexp(log_share[0] + target, log_share[1] + log_z)
    return over, under


def _tail(log_terms: FloatArray, log_bound: float) -> float:
    """Return the shape of the tail of terms; -inf if their bound or their spread is small."""
    log_mean = _log_mean(log_terms)
    if log_bound - log_mean < math.log(_NEAR_BOUND):
        return -math.inf
    if float(np.exp(log_terms - log_mean).std()) < _LITTLE_SPREAD:
        return -math.inf
    return pareto_k(log_terms)


def _log_mean(log_values: FloatArray) -> float:
    return float(np.logaddexp.reduce(log_values, axis=None) - math.log(log_values.size))


class Halves(NamedTuple):
    """Log Z from two bridges: each proposal is fitted to one half of the draws.

    Each bridge uses the half that its proposal has not seen, so that together they use all draws.
    """

    log_evidence: LogEvidence
    """Their mean, with its error."""
    score: float
    """Their difference in units of its standard error, if they are independent."""


def joined_halves(one: BridgeEstimate, other: BridgeEstimate, numbers_fitted: float) -> Halves:
    """Join the bridges of both halves of the draws.

    To first order their errors are independent of each other.  What the errors of the fitted
    moments add is common to both: moments of the first half times terms of the second, and the
    other way round.  A proposal with k fitted numbers, from n draws of a density of its own form,
    has 1 - overlap = s_1 s_0 k / n on average.  The share that this has in what is seen is taken as
    the correlation of those parts of both errors that come from the draws.

    Parameters
    ----------
    one, other
        The bridges.
    numbers_fitted
        Free numbers of a proposal: D (D + 3) / 2 for a Gaussian in D dimensions.  With Warp-III
        only the D (D + 1) / 2 of its covariance count, because an error of the mean has no effect
        of first order.
    """
    difference = one.log_evidence.minus(other.log_evidence)
    mean = 0.5 * (one.log_evidence.value + other.log_evidence.value)
    score = abs(difference.value) / difference.mcse if difference.mcse > 0 else 0.0
    noise, seen = 0.0, 0.0
    for each in (one, other):
        noise += each.share * (1 - each.share) * numbers_fitted / each.effective
        seen += 1 - each.overlap
    correlation = min(1.0, noise / seen) if seen > 0 else 1.0
    common = 2 * correlation * math.sqrt(one.variance_target * other.variance_target)
    error = 0.5 * math.sqrt(difference.mcse**2 + common)
    return Halves(LogEvidence(mean, error), score)


class Reshuffled(NamedTuple):
    """How far bridges from reshuffled blocks of the draws spread, against their own errors."""

    ratio: float
    """Spread in units of the spread that the errors predict."""
    too_wide: bool
    """Whether it is larger than chance allows if the errors are right."""


def reshuffled_spread(estimates: Sequence[BridgeEstimate]) -> Reshuffled:
    """Compare the spread of bridges from reshuffled blocks of one set of draws with their errors.

    Each estimate fits its proposal to a random half of the blocks and uses the other half, with
    draws of the proposal of its own (Micaletto and Vehtari 2025).  A random half of fixed draws
    differs from all of them with half the variance that an independent half has, so that the
    estimates' variance is the base's part plus half of the target's part.

    Parameters
    ----------
    estimates
        Three or more.

    Raises
    ------
    DataError
        If there are fewer.
    """
    if len(estimates) < 3:
        raise DataError(f"a spread needs three bridges or more; got {len(estimates)}")
    values = np.array([each.log_evidence.value for each in estimates])
    expected = float(np.mean([e.variance_base + 0.5 * e.variance_target for e in estimates]))
    freedom = len(values) - 1
    seen = float(values.var(ddof=1))
    if expected == 0:
        return Reshuffled(1.0, False)
    limit = float(chdtri(freedom, _CHANCE)) / freedom
    return Reshuffled(math.sqrt(seen / expected), seen / expected > limit)


def draws_for_error(estimate: LogEvidence, error: float) -> float:
    """Return how many times as many draws would reach an error: it falls as their square root.

    Parameters
    ----------
    estimate
        What the draws at hand give.
    error
        Wanted standard error of log Z, in nats.

    Raises
    ------
    DataError
        If the wanted error is not positive.
    """
    if not error > 0:
        raise DataError(f"the wanted error of log Z must be positive; got {error:g}")
    return (estimate.mcse / error) ** 2
