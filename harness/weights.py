"""Weights: from draws of an extended target to expectations under the target.

Takes arrays and returns arrays; it knows nothing of models, methods or engines.  The last
axis of every array of log weights runs over the N pseudo-samples of a draw.

References
----------
Nemeth, C., Lindsten, F., Filippone, M. and Hensman, J. (2019). Pseudo-extended Markov chain
Monte Carlo. Advances in Neural Information Processing Systems 32.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from arviz_stats.base import array_stats

from harness.errors import DataError

FloatArray = npt.NDArray[np.float64]


class Estimate(NamedTuple):
    """A Monte Carlo estimate and its standard error."""

    value: FloatArray
    """Estimate, shape of the function's value."""
    mcse: FloatArray
    """Monte Carlo standard error of each entry, autocorrelation taken into account."""


def normalised_weights(log_weight: npt.ArrayLike) -> FloatArray:
    """Weights that sum to one over the pseudo-samples of each draw (paper, eq. 3).

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


def expectation(values: npt.ArrayLike) -> Estimate:
    """Mean of a series over chains and draws, with its Monte Carlo standard error.

    For a pseudo-extended run ``values`` are h_t = sum_i w_ti f(x_ti): by Theorem 2.1 their
    plain average over draws estimates E_target[f], so its error is the ordinary one of the
    series h_t.

    Parameters
    ----------
    values
        Shape (chains, draws, ...).

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
    mcse = array_stats.mcse(series, chain_axis=0, draw_axis=1, method="mean")
    return Estimate(series.mean(axis=(0, 1)), np.asarray(mcse, dtype=np.float64))


def draw_index(log_weight: npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Draw one pseudo-sample index per draw, with probabilities the normalised weights.

    The pseudo-samples so chosen are unweighted draws of the target: given the extended draw,
    the index of the one distributed as the target is categorical with the weights (paper,
    proof of Theorem 2.1).

    Parameters
    ----------
    log_weight
        Shape (..., N).
    rng
        Source of randomness; one uniform number a draw is taken from it.

    Returns
    -------
    NDArray[intp]
        Indices in 0..N-1, shape (...).
    """
    cumulative = normalised_weights(log_weight).cumsum(axis=-1)
    cumulative /= cumulative[..., -1:]  # exactly 1 at the end, so that no weight of 0 is chosen
    uniform = rng.random(cumulative.shape[:-1])
    index: npt.NDArray[np.intp] = (uniform[..., None] >= cumulative).sum(axis=-1)
    return index


def effective_pseudo_samples(log_weight: npt.ArrayLike) -> FloatArray:
    """Effective number of pseudo-samples in each draw, 1 / sum_i w_i^2, between 1 and N.

    Close to 1 everywhere means that in each draw one pseudo-sample carries the estimate;
    close to N that the instrumental distribution is the target itself.
    """
    effective: FloatArray = 1.0 / np.square(normalised_weights(log_weight)).sum(axis=-1)
    return effective


def resample(log_weight: npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Resample the draws of each chain with probabilities proportional to their weights.

    Systematic resampling, chain by chain, so that chains that disagree still do afterwards.

    Parameters
    ----------
    log_weight
        Log weights up to a constant, shape (chains, draws).
    rng
        Source of randomness; one uniform number a chain is taken from it.

    Returns
    -------
    NDArray[intp]
        Indices of draws, ascending within each chain, shape (chains, draws).

    Raises
    ------
    DataError
        If the shape is another, or a chain's weights are not usable.
    """
    log_w = np.asarray(log_weight, dtype=np.float64)
    if log_w.ndim != 2:
        raise DataError(f"log weights to resample need shape (chains, draws); got {log_w.shape}")
    cumulative = normalised_weights(log_w).cumsum(axis=-1)
    cumulative /= cumulative[:, -1:]
    chains, draws = cumulative.shape
    points = (rng.random((chains, 1)) + np.arange(draws)) / draws
    points = np.minimum(points, np.nextafter(1, 0))  # rounding may reach 1
    rows = [np.searchsorted(c, p, side="right") for c, p in zip(cumulative, points, strict=True)]
    return np.array(rows, dtype=np.intp)


def weighted_expectation(values: npt.ArrayLike, log_weight: npt.ArrayLike) -> Estimate:
    """Self-normalised weighted mean over chains and draws, with its Monte Carlo error.

    For a continuously tempered run with weights w_1(x) = p(beta = 1 | x) this is E_target[f]
    (Graham and Storkey 2017, eq. 21), with w_0(x) = p(beta = 0 | x) it is E_base[f] (eq. 22).
    The error linearises the ratio: that of the plain mean of z_t = w_t (f_t - fhat) / mean(w),
    autocorrelation included.

    Parameters
    ----------
    values
        f(x_t), shape (chains, draws, ...).
    log_weight
        log w(x_t) up to a constant, shape (chains, draws).

    Raises
    ------
    DataError
        If shapes do not match, a log weight is NaN or +inf, or all are -inf.
    """
    series = np.asarray(values, dtype=np.float64)
    log_w = np.asarray(log_weight, dtype=np.float64)
    if log_w.ndim != 2 or series.shape[:2] != log_w.shape:
        raise DataError(
            f"weights of shape (chains, draws) must match the values' first axes; got "
            f"{log_w.shape} and {series.shape}"
        )
    # Weights with mean one over all draws.
    weight = normalised_weights(log_w.ravel()).reshape(log_w.shape) * log_w.size
    weight = weight.reshape(*weight.shape, *(1,) * (series.ndim - 2))
    value = (weight * series).mean(axis=(0, 1))
    return Estimate(value, expectation(weight * (series - value)).mcse)


class LogEvidence(NamedTuple):
    """An estimate of a log normalising constant, in nats."""

    value: float
    """Estimate of log Z."""
    mcse: float
    """Its Monte Carlo standard error, autocorrelation taken into account."""


def log_evidence(
    log_w1: npt.ArrayLike, log_w0: npt.ArrayLike, *, log_zeta: float, log_g_ratio: float = 0.0
) -> LogEvidence:
    """Estimate log Z from a continuously tempered run (Graham and Storkey 2017, eq. 20).

    log Z = log zeta + log sum w_1 - log sum w_0 - log(g(1) / g(0)), for a normalised base.  The
    error is that of the mean of w_1 / mean(w_1) - w_0 / mean(w_0), the ratio linearised.

    Parameters
    ----------
    log_w1, log_w0
        Log conditional densities of beta = 1 and of beta = 0 given x_t, shape (chains, draws).
    log_zeta
        The guess at log Z that the run used.
    log_g_ratio
        log g(1) - log g(0); 0 for the uniform g.

    Raises
    ------
    DataError
        If shapes do not match or a log weight is not finite.
    """
    one, zero = (np.asarray(log_w, dtype=np.float64) for log_w in (log_w1, log_w0))
    if one.shape != zero.shape or one.ndim != 2 or one.size == 0:
        raise DataError(
            f"log w1 and log w0 need one shape (chains, draws); got {one.shape}, {zero.shape}"
        )
    if not (np.all(np.isfinite(one)) and np.all(np.isfinite(zero))):
        raise DataError("log w1 and log w0 must be finite")
    difference = np.zeros(one.shape)
    value = log_zeta - log_g_ratio
    for log_w, sign in ((one, 1.0), (zero, -1.0)):
        largest = log_w.max()
        weight = np.exp(log_w - largest)
        value += sign * (largest + np.log(weight.mean()))
        difference += sign * weight / weight.mean()
    return LogEvidence(float(value), float(expectation(difference).mcse))
