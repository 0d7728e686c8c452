"""Where two samples of log ratios balance, the equation of bridges and of neighbouring rungs."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from harness.arrays import FloatArray

_EXACT = 1e-11
"""Error of the solution, in nats."""
_FAR = 40.0
"""Beyond all log ratios: even one ratio among e^40 has the solution within this."""
_LARGEST = 1e300
"""Size of a log ratio beyond which it makes no difference; differences of larger ones overflow."""
_MOST_STEPS = 10_000
"""Halving the longest interval of floating-point numbers takes a fifth of them."""


def balance(falling: FloatArray, rising: FloatArray, log_odds: float = 0.0) -> float:
    """Solve mean f(falling - c) = odds * mean f(c - rising) for c, with f the logistic function.

    The logarithms of both sides are compared.  The sides themselves fall below any power of ten
    where the ratios are far from c, which leaves a step between flats, and root finders that
    interpolate hardly get on there.  Their logarithms are lines.

    Parameters
    ----------
    falling
        Log ratios; -inf for those that never count.  At least one is finite.
    rising
        Log ratios; +inf for those that never count.  At least one is finite.
    log_odds
        Log of the odds.

    Returns
    -------
    float
        The solution, in nats.  There is one, because the left side falls in c and the right one
        rises.
    """
    falling, rising = (
        np.where(np.isinf(x), x, x.clip(-_LARGEST, _LARGEST)) for x in (falling, rising)
    )
    ends = np.concatenate([falling[falling > -np.inf], rising[rising < np.inf]])
    room = _FAR + abs(log_odds)

    def excess(c: float) -> float:
        return _log_mean_logistic(falling - c) - _log_mean_logistic(c - rising) - log_odds

    found = brentq(excess, ends.min() - room, ends.max() + room, xtol=_EXACT, maxiter=_MOST_STEPS)
    return float(found)


def _log_mean_logistic(values: FloatArray) -> float:
    """Return the log of the mean of the logistic function."""
    log_terms = -np.logaddexp(0.0, -values)
    largest = float(log_terms.max())
    return largest + float(np.log(np.exp(log_terms - largest).mean()))
