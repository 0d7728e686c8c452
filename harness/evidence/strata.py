"""Means from draws whose shares of some regions are known better than the draws know them.

The regions are called strata here; they are the modes of a posterior, whose probabilities come from
the integrals of the density around their peaks.  Draws that rarely change modes know what each mode
is like, and hardly how probable it is, so the two are put together (post-stratification; Cochran,
W. G., 1977, Sampling Techniques, third edition, section 5A.9).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import rankdata

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence.estimates import (
    Estimate,
    between_runs,
    expectation,
    normalised_weights,
)
from harness.evidence.evidence import LogEvidence


def weigh_strata(
    log_weight: FloatArray, stratum: npt.NDArray[np.intp], probability: FloatArray
) -> FloatArray:
    """Return log weights with which the draws in each stratum have its probability together.

    Parameters
    ----------
    log_weight
        Log weights without that, up to a constant, shape (chains, draws).
    stratum
        The stratum of each draw, from 0, shape (chains, draws).
    probability
        Probability of each stratum, shape (K,).

    Returns
    -------
    FloatArray
        Shape (chains, draws), up to a constant.  A stratum without draws is left out.

    Raises
    ------
    DataError
        If shapes do not match, a stratum is not among the K, or log weights are not usable.
    """
    if stratum.shape != log_weight.shape or stratum.ndim != 2:
        raise DataError(
            f"strata need the shape of the log weights, (chains, draws); got {stratum.shape} and "
            f"{log_weight.shape}"
        )
    count = len(probability)
    if stratum.size and not 0 <= stratum.min() <= stratum.max() < count:
        raise DataError(f"strata are numbered from 0 to {count - 1}")
    weight = normalised_weights(log_weight.ravel())
    share = np.bincount(stratum.ravel(), weight, minlength=count)
    with np.errstate(divide="ignore"):
        factor = np.log(probability) - np.log(share)
    # Without weight in its draws, a stratum has nothing that its probability could go to.
    return log_weight + np.where(share > 0, factor, 0.0)[stratum]


def stratified_expectation(
    values: npt.ArrayLike,
    log_weight: FloatArray,
    stratum: npt.NDArray[np.intp],
    log_error: FloatArray,
    *,
    separate: bool = False,
) -> Estimate:
    """Return the mean over strata of known probabilities, with its Monte Carlo error.

    It is sum_k p_k f_k, where f_k is the weighted mean of the draws in stratum k and p_k the weight
    of that stratum.  Its error has two parts.  That of the f_k is, because shares of the draws do
    not enter, the error of the plain mean of w_t (f_t - f_k(t)), with autocorrelation taken into
    account.  That of the p_k, which are in proportion to masses m_k with independent errors of
    log m_k, has the variance sum_k (p_k (f_k - fhat))^2 Var[log m_k].

    Parameters
    ----------
    values
        f(x_t), shape (chains, draws, ...).
    log_weight
        From :func:`weigh_strata`, shape (chains, draws).
    stratum
        The same as there.
    log_error
        Standard error of the log of each stratum's mass, shape (K,).
    separate
        The same as for :func:`~harness.evidence.weighted_expectation`.

    Raises
    ------
    DataError
        If shapes do not match, or log weights are not usable.
    """
    series = np.asarray(values, dtype=np.float64)
    if series.shape[:2] != log_weight.shape or stratum.shape != log_weight.shape:
        raise DataError(
            "strata and weights of shape (chains, draws) must match the values' first axes; got "
            f"{stratum.shape}, {log_weight.shape} and {series.shape}"
        )
    shape = series.shape[2:]
    flat = series.reshape(*series.shape[:2], math.prod(shape))
    weight = normalised_weights(log_weight.ravel()).reshape(log_weight.shape)
    draws = log_weight.size
    value = np.einsum("cd,cdj->j", weight, flat)
    residual = np.zeros_like(flat)
    between = np.zeros_like(value)
    for k, error in enumerate(log_error):
        inside = stratum == k
        own = weight[inside]
        probability = float(own.sum())
        if probability == 0:
            continue
        mean = own @ flat[inside] / probability
        residual[inside] = draws * own[:, None] * (flat[inside] - mean)
        between += np.square(probability * (mean - value) * error)
    # What is constant within strata leaves only rounding errors, whose error would be NaN or tiny.
    within = np.where(np.ptp(residual, axis=(0, 1)) > 0, expectation(residual).mcse, 0.0)
    within = np.nan_to_num(within)
    if separate:
        within = np.maximum(within, between_runs(residual))
    mcse = np.hypot(within, np.sqrt(between))
    # Numbers, not arrays without axes, for a function that returns numbers.
    return Estimate(value.reshape(shape)[()], mcse.reshape(shape)[()])


def equal_masses(
    log_mass: Mapping[int, LogEvidence], families: Iterable[Sequence[int]]
) -> dict[int, LogEvidence]:
    """Return log masses of strata of which some are known to be equal, as copies of a mode are.

    Each has the mean of its family's masses.  It keeps its own error: with errors that count as
    independent, as in :func:`strata_errors`, a family's sum then has the error that it has.  Ratios
    within a family, which are known, still have one.

    Parameters
    ----------
    log_mass
        Log masses, by stratum, with independent errors.
    families
        The strata of each family; those without a mass are passed over.

    Returns
    -------
    dict
        By stratum, all of those that were given.
    """
    found = dict(log_mass)
    for family in families:
        known = [k for k in family if k in log_mass]
        if known:
            values = [log_mass[k].value for k in known]
            mean = float(np.logaddexp.reduce(values)) - math.log(len(known))
            found |= {k: LogEvidence(mean, log_mass[k].mcse) for k in known}
    return found


def strata_errors(probability: FloatArray, log_error: FloatArray) -> FloatArray:
    """Return standard errors of probabilities that are in proportion to masses.

    The gradient of log p_k by the log masses is e_k - p.

    Parameters
    ----------
    probability
        Probability of each stratum, shape (K,).
    log_error
        Standard error of the log of each stratum's mass, which are independent, shape (K,).

    Returns
    -------
    FloatArray
        Shape (K,).
    """
    variance = np.square(log_error)
    relative = np.sqrt((1 - 2 * probability) * variance + np.square(probability) @ variance)
    return np.asarray(probability * relative, dtype=np.float64)


def strata_scores(values: FloatArray, stratum: npt.NDArray[np.intp]) -> FloatArray:
    """Return normal scores of the ranks that draws have within their strata.

    Whatever the strata are like and however many draws of each a chain has, these are standard
    normal in every chain as long as chains agree within strata, so R-hat compares them.  Equal
    values, such as those of an integer, have ranks in random order: with one rank in common they
    would have another score in each stratum, and chains or halves of them would differ by what
    strata they are in.

    Parameters
    ----------
    values
        Draws, shape (chains, draws, ...).
    stratum
        The stratum of each draw, shape (chains, draws).

    Returns
    -------
    FloatArray
        Shape of the values; 0 for those that are the same in all draws.
    """
    scores = np.zeros(values.shape)
    rng = np.random.default_rng(0)
    for k in np.unique(stratum):
        inside = stratum == k
        own = values[inside]
        order = rng.permutation(len(own))
        ranks = np.empty(own.shape)
        ranks[order] = rankdata(own[order], method="ordinal", axis=0)
        # Blom's approximation of the expected order statistics, as R-hat itself takes it.
        scores[inside] = ndtri((ranks - 3 / 8) / (len(ranks) + 1 / 4))
    scores[:, :, np.all(values == values[0, 0], axis=(0, 1))] = 0
    return scores
