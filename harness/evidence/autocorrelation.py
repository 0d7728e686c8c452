"""Integrated autocorrelation times of walkers that may depend on each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError

_FEWEST = 16  # draws
_LONG_ENOUGH = 5.0  # times the window, for the window to count as closed


class AutocorrelationTime(NamedTuple):
    """An integrated autocorrelation time tau, in draws: tau draws are worth an independent one."""

    value: FloatArray
    """tau = 1 + 2 sum_t rho_t, shape of the function's value; NaN if it is constant."""
    error: FloatArray
    """Its standard error, as far as the window is long enough."""
    closed: npt.NDArray[np.bool_]
    """Whether the run has 5 times as many draws as the window; if not, tau is too small."""


class AutocorrelationTimes(NamedTuple):
    """Autocorrelation times of an ensemble of walkers."""

    own: AutocorrelationTime
    """Of the walkers' own series, whose autocovariances about the pooled mean are averaged.

    Its error counts the walkers' series as independent."""
    mean: AutocorrelationTime
    """Of the series of ensemble means: it is what the error of a mean over all walkers and draws
    depends on, also if walkers interact."""


def autocorrelation_times(values: npt.ArrayLike, *, window: float = 5.0) -> AutocorrelationTimes:
    """Estimate integrated autocorrelation times by Sokal's window.

    The sum over lags ends at the first lag M that is at least ``window`` times the sum up to it.
    The standard error is tau sqrt(4 (M + 1/2 - tau / 2) / N) with N values (Wolff 2004, eq. 42).

    Parameters
    ----------
    values
        Shape (walkers, draws, ...).
    window
        The window's length in autocorrelation times.

    Raises
    ------
    DataError
        If there are fewer than 16 draws, a value is not finite, or the window is not positive.

    References
    ----------
    Sokal, A. (1997). Monte Carlo methods in statistical mechanics: foundations and new algorithms.
    In Functional Integration, 131-192.

    Wolff, U. (2004). Monte Carlo errors with less errors. Computer Physics Communications 156,
    143-153.
    """
    series = np.asarray(values, dtype=np.float64)
    if series.ndim < 2 or series.shape[1] < _FEWEST:
        raise DataError(
            f"an autocorrelation time needs axes (walkers, draws, ...) and {_FEWEST} draws or "
            f"more; got shape {series.shape}"
        )
    if not np.isfinite(series).all():
        raise DataError("an autocorrelation time needs finite values")
    if not window > 0:
        raise DataError(f"the window must be positive; got {window}")
    walkers, draws = series.shape[:2]
    flat = series.reshape(walkers, draws, -1)
    flat = flat - flat.mean(axis=(0, 1))
    shape = series.shape[2:]
    own = [_time(flat[:, :, k], window) for k in range(flat.shape[2])]
    mean = [_time(flat[:, :, k].mean(axis=0)[None], window) for k in range(flat.shape[2])]
    return AutocorrelationTimes(_together(own, shape), _together(mean, shape))


def _together(each: list[tuple[float, float, bool]], shape: tuple[int, ...]) -> AutocorrelationTime:
    value, error, closed = (np.array(part).reshape(shape) for part in zip(*each, strict=True))
    return AutocorrelationTime(value.astype(np.float64), error.astype(np.float64), closed)


def _time(series: FloatArray, window: float) -> tuple[float, float, bool]:
    """Return tau of centred series (walkers, draws), its error, and whether the window closed."""
    walkers, draws = series.shape
    covariance = _autocovariance(series)
    if covariance[0] <= 0:
        return np.nan, np.nan, True
    time = 2 * np.cumsum(covariance / covariance[0]) - 1
    lags = np.flatnonzero(np.arange(draws) >= window * time)
    last = int(lags[0]) if lags.size else draws - 1
    tau = float(time[last])
    error = tau * np.sqrt(4 * max(last + 0.5 - tau / 2, 0.5) / (walkers * draws))
    return tau, float(error), bool(lags.size) and draws >= _LONG_ENOUGH * last


def _autocovariance(series: FloatArray) -> FloatArray:
    """Return autocovariances at all lags, averaged over the rows, by fast Fourier transforms."""
    draws = series.shape[1]
    size = 1 << (2 * draws - 1).bit_length()
    power = np.zeros(size // 2 + 1)
    for row in series:
        power += np.square(np.abs(np.fft.rfft(row, size)))
    covariance: FloatArray = np.fft.irfft(power, size)[:draws]
    return covariance / (len(series) * np.arange(draws, 0, -1))
