"""Normalised weights, and expectations under the target with their Monte Carlo errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from arviz_stats.base import array_stats
from scipy.stats import norm, t

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence.in_range import in_range

_FEW = 20.0
"""Effective draws in an event, or outside it, from which on its standard error can be estimated."""


class Estimate(NamedTuple):
    """A Monte Carlo estimate and its standard error."""

    value: FloatArray
    """Estimate, shape of the function's value."""
    mcse: FloatArray
    """Monte Carlo standard error of each entry, autocorrelation taken into account."""


def normalised_weights(log_weight: npt.ArrayLike) -> FloatArray:
    """Return weights that sum to one over the pseudo-samples of each draw (paper, eq. 3).

    Parameters
    ----------
    log_weight
        log(gamma(x_i) pi(beta_i) / q(x_i, beta_i)), shape (..., N), up to a constant that may
        differ from draw to draw.

    Returns
    -------
    FloatArray
        Shape (..., N), non-negative, summing to one over the last axis.

    Raises
    ------
    DataError
        If a log weight is NaN or +inf, if all those of a draw are -inf, or if N = 0.
    """
    log_w = np.asarray(log_weight, dtype=np.float64)
    if log_w.ndim == 0 or log_w.shape[-1] == 0:
        raise DataError(f"log weights need a last axis of N >= 1 pseudo-samples; got {log_w.shape}")
    largest = log_w.max(axis=-1, keepdims=True)
    if not np.all(np.isfinite(largest)):
        raise DataError(
            "log weights must be finite or -inf, with one finite in every draw; "
            f"{np.count_nonzero(~np.isfinite(largest))} draws are not"
        )
    weight: FloatArray = np.exp(log_w - largest)
    weight /= weight.sum(axis=-1, keepdims=True)
    return weight


def effective_number(log_weight: npt.ArrayLike) -> FloatArray:
    """Return how many equal weights would be worth as much, 1 / sum_i w_i^2 of normalised ones.

    Parameters
    ----------
    log_weight
        The same as for :func:`normalised_weights`, shape (..., N).

    Returns
    -------
    FloatArray
        From 1 to N, shape (...).
    """
    effective: FloatArray = 1.0 / np.square(normalised_weights(log_weight)).sum(axis=-1)
    return effective


def expectation(values: npt.ArrayLike, *, systems: int = 1) -> Estimate:
    """Return the mean of a series over chains and draws, with its Monte Carlo standard error.

    For a pseudo-extended run, ``values`` are h_t = sum_i w_ti f(x_ti).  By Theorem 2.1 of the paper
    their plain average over draws estimates E_target[f], so its error is the ordinary one of the
    series h_t.

    Parameters
    ----------
    values
        Shape (chains, draws, ...).
    systems
        Independent runs whose draws each chain has one after the other.  The error is then at least
        what the spread of their means shows.

    Returns
    -------
    Estimate
        Value and standard error, each of the shape of the trailing axes.
    """
    series = np.asarray(values, dtype=np.float64)
    if series.ndim < 2 or series.shape[1] < 4:
        raise DataError(
            f"an expectation needs axes (chains, draws, ...) and 4 draws or more; "
            f"got shape {series.shape}"
        )
    series, divisor = in_range(series)
    runs = apart(series, systems)
    mcse = array_stats.mcse(runs, chain_axis=0, draw_axis=1, method="mean")
    error = np.asarray(mcse, dtype=np.float64)
    if len(runs) > len(series):
        error = np.maximum(error, between_runs(runs))
    return Estimate(series.mean(axis=(0, 1)) * divisor, error * divisor)


def apart(series: FloatArray, systems: int) -> FloatArray:
    """Return the runs that chains (chains, draws, ...) have one after the other, each as a chain.

    The chains stay as they are if a run has no four draws, or not as many as the others.
    """
    chains, draws = series.shape[:2]
    if systems == 1 or draws % systems or draws < 4 * systems:
        return series
    return series.reshape(chains * systems, draws // systems, *series.shape[2:])


def probability_error(share: float, mcse: float, effective: float) -> float:
    """Return the standard error of a probability, which few draws in the event understate.

    Too few draws in an event, or outside it, do not show how often chains enter and leave it, and
    if they are few by chance their share looks sure.  So below 20 effective ones the event counts
    as no faster than the slowest parameter, and gets two draws more on either side (Agresti, A. and
    Coull, B. A., 1998, The American Statistician 52, 119-126).

    Parameters
    ----------
    share
        Share of the draws.
    mcse
        Its Monte Carlo standard error, as :func:`expectation` gives it.
    effective
        Effective draws of the parameter that has the fewest.

    Returns
    -------
    float
        Never below the share of one effective draw.
    """
    error = max(mcse if np.isfinite(mcse) else 0.0, 1 / effective)
    variance = mcse**2  # 0 if it underflows
    if not (0 < share < 1 and variance > 0):
        return error
    known = share * (1 - share) / variance
    if min(share, 1 - share) * known >= _FEW:
        return error
    draws = min(known, effective)
    centre = (share * draws + 2) / (draws + 4)
    return max(error, float(np.sqrt(centre * (1 - centre) / (draws + 4))))


def standard_error(series: FloatArray) -> float:
    """Return the Monte Carlo standard error of a series' mean; 0 if the series is constant.

    Errors of log Z come from here: each is the error of a series that linearises the estimate.

    Parameters
    ----------
    series
        Shape (chains, draws).

    Raises
    ------
    DataError
        If there are fewer than 4 draws.
    """
    error = float(expectation(series).mcse)
    return error if np.ptp(series) > 0 else 0.0


def between_runs(series: FloatArray) -> FloatArray:
    """Return the standard error of a series' mean by the spread of the means of its runs.

    Draws that descend from few ancestors are not independent, although no order of them shows that.
    Then only independent runs tell the error.  It is multiplied by the ratio of the 97.5 % points
    of Student's t distribution and of the normal one, so that twice the error holds in 95 % of the
    cases although there are few runs.

    Parameters
    ----------
    series
        Shape (runs, draws, ...).

    Returns
    -------
    FloatArray
        Shape of the trailing axes; 0 if there is one run.
    """
    runs = len(series)
    if runs == 1:
        return np.zeros(series.shape[2:])
    wider = t.ppf(0.975, runs - 1) / norm.ppf(0.975)
    error: FloatArray = wider * series.mean(axis=1).std(axis=0, ddof=1) / np.sqrt(runs)
    return error


def weighted_expectation(
    values: npt.ArrayLike, log_weight: npt.ArrayLike, *, separate: bool = False
) -> Estimate:
    """Return a self-normalised weighted mean over chains and draws, with its Monte Carlo error.

    For a continuously tempered run, the weights w_1(x) = p(beta = 1 | x) give E_target[f]
    (Graham and Storkey 2017, eq. 21), and the weights w_0(x) = p(beta = 0 | x) give E_base[f]
    (eq. 22).  The error comes from linearising the ratio: it is that of the plain mean of
    z_t = w_t (f_t - fhat) / mean(w), with autocorrelation taken into account.

    Parameters
    ----------
    values
        f(x_t), shape (chains, draws, ...); if the weights have three axes, f(x_ti), shape
        (chains, draws, N, ...).
    log_weight
        log w(x_t) up to a constant, shape (chains, draws).  If the shape is (chains, draws, N),
        the sums, including those of z_t, also run over pseudo-samples.
    separate
        Whether each chain is a run of its own whose draws depend on each other in no order, so that
        the error is at least that of :func:`between_runs`.

    Raises
    ------
    DataError
        If shapes do not match, a log weight is NaN or +inf, or all are -inf.
    """
    series = np.asarray(values, dtype=np.float64)
    log_w = np.asarray(log_weight, dtype=np.float64)
    if log_w.ndim not in (2, 3) or series.shape[: log_w.ndim] != log_w.shape:
        raise DataError(
            f"weights of shape (chains, draws) or (chains, draws, N) must match the values' "
            f"first axes; got {log_w.shape} and {series.shape}"
        )
    series, divisor = in_range(series, log_w.ndim)
    # Weights whose sums over pseudo-samples have mean one over all draws.
    draws = log_w.shape[0] * log_w.shape[1]
    weight = normalised_weights(log_w.ravel()).reshape(log_w.shape) * draws
    if log_w.ndim == 2:
        weight, series = weight[..., None], series[:, :, None]
    weight = weight.reshape(*weight.shape, *(1,) * (series.ndim - 3))
    value = (weight * series).sum(axis=2).mean(axis=(0, 1))
    linear = (weight * (series - value)).sum(axis=2)
    mcse = expectation(linear).mcse
    error = np.fmax(mcse, between_runs(linear)) if separate else mcse
    return Estimate(value * divisor, error * divisor)
