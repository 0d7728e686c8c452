"""Numbers that say whether weighted draws can be trusted."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from arviz_stats.base import array_stats
from scipy.stats import f as f_distribution

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence.estimates import (
    Estimate,
    effective_number,
    normalised_weights,
    weighted_expectation,
)
from harness.evidence.in_range import in_range

# With few draws the fitted tail is a fifth of them, and ArviZ needs five or more.
_FEWEST_FOR_TAIL = 25
_TIMES_WEIGHTS = 10.0
"""Draws that are anticorrelated may be worth so many times their weights."""
LOOKED_AT = 64
"""Coordinates that are looked at closely where only the worst is wanted."""
_BY_CHANCE = 0.01
"""Probability with which the largest R-hat of independent draws is above what counts as chance."""
_BATCHES = 64
"""Batches of all chains together, whose means tell how slow a coordinate is."""
_AT_ONCE = 1000
"""Coordinates that are measured at a time."""
_LONG = 4000
"""Draws of each chain that tell its R-hat, of however many."""
_ROUGHLY = 250
"""Draws of each chain, or up to twice as many, that tell which these are."""
_ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""Differences, relative to the size of numbers, that are left of equal ones by rounding."""


def constant(values: npt.ArrayLike, axes: int = 2) -> npt.NDArray[np.bool_]:
    """Whether draws are all the same, up to rounding.

    The diagonal of a correlation matrix is an example.  What rounding leaves of it has a variance
    and an error, whose ratio says nothing.

    Parameters
    ----------
    values
        Draws, whose first ``axes`` axes are chains, draws and perhaps pseudo-samples.
    axes
        Number of these axes.

    Returns
    -------
    NDArray[bool]
        Shape of the other axes; False where a value is NaN.
    """
    series = np.asarray(values, dtype=np.float64)
    over = tuple(range(axes))
    low, high = series.min(axis=over), series.max(axis=over)
    with np.errstate(over="ignore", invalid="ignore"):
        same: npt.NDArray[np.bool_] = (low == high) | (
            high - low <= _ROUNDING * np.maximum(np.abs(low), np.abs(high))
        )
    return same


def effective_draws(
    values: npt.ArrayLike, log_weight: npt.ArrayLike, estimate: Estimate | None = None
) -> FloatArray:
    """Return the effective number of draws behind a weighted mean, given autocorrelation.

    This is the number of independent draws whose plain mean has the same Monte Carlo error:
    Var[f] / MCSE^2, the variance under the weights.  It may exceed the number of draws.  But it is
    at most ten times what the weights alone are worth (:func:`~harness.evidence.effective_number`):
    where few draws carry all weight the estimate of the error is next to 0, because it is that of a
    mean from which these draws hardly differ.

    Parameters
    ----------
    values, log_weight
        The same as for :func:`~harness.evidence.weighted_expectation`.
    estimate
        The weighted mean and its error, if that is not the one of that function.

    Returns
    -------
    FloatArray
        Shape of the function's value; NaN if f is :func:`constant`.
    """
    series = np.asarray(values, dtype=np.float64)
    log_w = np.asarray(log_weight, dtype=np.float64)
    if estimate is None:
        estimate = weighted_expectation(series, log_w)
    weight = normalised_weights(log_w.ravel()).reshape(log_w.shape)
    weight = weight.reshape(*weight.shape, *(1,) * (series.ndim - weight.ndim))
    axes = tuple(range(log_w.ndim))
    series, divisor = in_range(series, log_w.ndim)
    variance = (weight * np.square(series - estimate.value / divisor)).sum(axis=axes)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective: FloatArray = variance / np.square(estimate.mcse / divisor)
    most = _TIMES_WEIGHTS * float(effective_number(log_w.ravel()))
    moves = (variance > 0) & ~constant(series, log_w.ndim)
    return np.where(moves, np.minimum(effective, most), np.nan)


def pareto_k(log_weight: npt.ArrayLike) -> float:
    """Return the shape of the generalised Pareto distribution in the weights' upper tail.

    Moments of order below 1/k are finite; from k = 1 on the weights have no mean (Vehtari,
    Simpson, Gelman, Yao and Gabry 2024, Journal of Machine Learning Research 25(72)).

    Parameters
    ----------
    log_weight
        Log weights up to a constant, of any shape; they are all taken together.

    Returns
    -------
    float
        k, as ArviZ estimates it.  NaN if there are fewer than 25 weights or all those of the tail
        are equal; inf if all but a few weights of the tail vanish.
    """
    log_w = np.asarray(log_weight, dtype=np.float64).ravel()
    if log_w.size < _FEWEST_FOR_TAIL:
        return math.nan
    weight = normalised_weights(log_w)
    weight /= weight.max()
    ordered = np.sort(weight)
    tail = min(int(3 * math.sqrt(weight.size)), weight.size // 5)
    if ordered[-tail - 1] == ordered[-1]:
        return math.nan
    if ordered[-1 - tail // 4] == ordered[-tail - 1]:
        return math.inf  # most of the tail lies on its edge
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        k = float(array_stats.pareto_khat(weight[None, :], r_eff=1.0, tail="right"))
    return k if math.isfinite(k) else math.inf


def r_hat(values: npt.ArrayLike) -> FloatArray:
    """Return rank-normalised split-R-hat, the larger of bulk and tail (Vehtari et al. 2021).

    A single chain is split, and its two halves are compared as if they were two chains.

    Parameters
    ----------
    values
        Shape (chains, draws, ...).

    Returns
    -------
    FloatArray
        Shape of the trailing axes; NaN if values are :func:`constant`, inf if every half of a chain
        stays at a single value and the values differ.

    Raises
    ------
    DataError
        If there are fewer than 8 draws.
    """
    series = np.asarray(values, dtype=np.float64)
    if series.ndim < 2 or series.shape[1] < 8:
        raise DataError(f"R-hat needs axes (chains, draws, ...) and 8 draws; got {series.shape}")
    if len(series) == 1:
        half = series.shape[1] // 2
        series = np.concatenate([series[:, :half], series[:, -half:]])
    with np.errstate(divide="ignore", invalid="ignore"):
        value = array_stats.rhat(series, chain_axis=0, draw_axis=1)
    return np.where(constant(series), np.nan, np.asarray(value, dtype=np.float64))


def largest_r_hat(values: npt.ArrayLike) -> float:
    """Return the largest of :func:`r_hat` over all trailing axes.

    A millisecond for each coordinate is long where there are thousands.  There only those are
    looked at that :func:`least_settled` puts first.  Of long chains at most 4,000 draws count,
    evenly spread: even independent ones raise R-hat by only about 1 / 8,000.

    Parameters
    ----------
    values
        Shape (chains, draws, ...).

    Returns
    -------
    float
        NaN if there is none for any coordinate.

    Raises
    ------
    DataError
        If there are fewer than 8 draws.
    """
    series = np.asarray(values, dtype=np.float64)
    series = series[:, :: max(1, math.ceil(series.shape[1] / _LONG))]
    if math.prod(series.shape[2:]) > LOOKED_AT and series.shape[1] >= 8:
        series = series.reshape(*series.shape[:2], -1)
        series = series[:, :, least_settled(series, LOOKED_AT)]
    found = r_hat(series)
    return float("nan") if np.isnan(found).all() else float(np.nanmax(found))


def r_hat_by_chance(chains: int, draws: int, entries: int) -> float:
    """Return the R-hat that independent draws of so many entries stay below, 99 times in 100.

    Between and within the halves of all chains, variances of ranks as normal scores have a ratio
    that is F distributed, and R-hat is the larger of two.  So :func:`largest_r_hat` of a thousand
    entries with 250 draws in each of four chains is 1.01 by chance alone.

    Parameters
    ----------
    chains, draws
        Number of chains, and of draws in each, 8 or more.
    entries
        Number of entries, 1 or more.
    """
    draws = math.ceil(draws / math.ceil(draws / _LONG))
    if chains == 1:
        chains, draws = 2, draws // 2
    halves, half = 2 * chains, draws // 2
    ratio = f_distribution.isf(_BY_CHANCE / (2 * entries), halves - 1, halves * (half - 1))
    return float(np.sqrt((half - 1 + ratio) / half))


def least_settled(values: FloatArray, most: int) -> npt.NDArray[np.intp]:
    """Return the coordinates whose halves of chains differ most in location or spread, worst first.

    The measure is rougher and far quicker than :func:`r_hat`; no draw is far out in it.

    Parameters
    ----------
    values
        Shape (chains, draws, K), with 8 draws or more.
    most
        Largest number of coordinates.

    Returns
    -------
    NDArray[intp]
        Their indices, shape (min(K, most),).
    """
    thinned = values[:, :: max(1, values.shape[1] // _ROUGHLY)]
    return _first(_rough_r_hat, thinned, most)


def slowest(
    values: FloatArray, log_weight: npt.ArrayLike, most: int = LOOKED_AT
) -> npt.NDArray[np.intp]:
    """Return the coordinates whose weighted means rest on the fewest effective draws, worst first.

    The measure is rougher and far quicker than :func:`effective_draws`: the error of a mean comes
    from the means of batches of each chain.

    Parameters
    ----------
    values
        Shape (chains, draws, K), or (chains, draws, N, K) if the weights have three axes.
    log_weight
        The same as for :func:`~harness.evidence.weighted_expectation`.
    most
        Largest number of coordinates.

    Returns
    -------
    NDArray[intp]
        Their indices, shape (min(K, most),); coordinates that are constant come last.
    """
    log_w = np.asarray(log_weight, dtype=np.float64)
    weight = normalised_weights(log_w.ravel()).reshape(*log_w.shape, 1)
    return _first(lambda part: _slowness(part, weight), values, most)


def _first(
    measure: Callable[[FloatArray], FloatArray], values: FloatArray, most: int
) -> npt.NDArray[np.intp]:
    """Return the last axis' entries with the largest measure, largest first, at most so many.

    It is taken of some at a time, which bounds the memory that this takes.
    """
    parts = [values[..., k : k + _AT_ONCE] for k in range(0, values.shape[-1], _AT_ONCE)]
    measured = np.concatenate([np.empty(0), *map(measure, parts)])
    return np.argsort(-measured, kind="stable")[:most]


def _slowness(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Return a rough squared error of means over the variance, (K,); -1 where values are constant.

    The weights have the axes of the values, but for the last, which is 1, and sum to 1.
    """
    axes = tuple(range(weight.ndim - 1))
    with np.errstate(over="ignore", invalid="ignore"):
        centred = values - (weight * values).sum(axis=axes)
        variance = (weight * np.square(centred)).sum(axis=axes)
        linear = weight * centred
        if linear.ndim == 4:
            linear = linear.sum(axis=2)
        chains, draws, count = linear.shape
        batches = max(1, min(draws, round(_BATCHES / chains)))
        size = draws // batches
        means = linear[:, -size * batches :].reshape(chains * batches, size, count).mean(axis=1)
        rough: FloatArray = np.square(means).mean(axis=0) / np.where(variance > 0, variance, 1.0)
    return np.where((variance > 0) & ~constant(values, len(axes)), rough, -1.0)


def _rough_r_hat(series: FloatArray) -> FloatArray:
    """Return split-R-hat (D,) of arctangents instead of ranks; -1 if all values are equal."""
    half = series.shape[1] // 2
    halves = np.concatenate([series[:, :half], series[:, -half:]])
    centred = halves - np.median(halves, axis=(0, 1))
    apart = np.abs(centred)
    scale = np.maximum(np.median(apart, axis=(0, 1)), np.finfo(np.float64).tiny)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = [
            each.mean(axis=1).var(axis=0, ddof=1) / each.var(axis=1, ddof=1).mean(axis=0)
            for each in (np.arctan(centred / scale), np.arctan(apart / scale))
        ]
        rough: FloatArray = np.sqrt((half - 1) / half + np.maximum(*found))
    return np.where(np.isnan(rough), -1.0, rough)


def round_trips(
    inv_temp: npt.ArrayLike, *, lower: float = 0.1, upper: float = 0.9
) -> npt.NDArray[np.intp]:
    """Count the trips of an inverse temperature from below ``lower`` past ``upper`` and back.

    Parameters
    ----------
    inv_temp
        Shape (chains, draws, ...).
    lower, upper
        Ends of the outer parts of the range, by default its outer tenths.

    Returns
    -------
    NDArray[intp]
        Completed round trips in each chain (and pseudo-sample), shape (chains, ...).
    """
    beta = np.moveaxis(np.asarray(inv_temp, dtype=np.float64), 1, -1)
    rows = beta.reshape(math.prod(beta.shape[:-1]), beta.shape[-1])
    trips = [_trips(row, lower, upper) for row in rows]
    return np.array(trips, dtype=np.intp).reshape(beta.shape[:-1])


def _trips(beta: FloatArray, lower: float, upper: float) -> int:
    visited = beta[(beta < lower) | (beta > upper)] > upper  # True at the target's end
    below = np.flatnonzero(~visited)
    if below.size == 0:
        return 0
    since = visited[below[0] :]
    return int(np.count_nonzero(since[:-1] & ~since[1:]))


def z_scores(estimate: Estimate, known: npt.ArrayLike) -> FloatArray:
    """Return estimates minus known values, in units of the Monte Carlo standard error.

    The score is 0 if both difference and error are 0.
    """
    difference = np.asarray(estimate.value - np.asarray(known, dtype=np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        score: FloatArray = difference / estimate.mcse
    return np.where(difference == 0, 0.0, score)
