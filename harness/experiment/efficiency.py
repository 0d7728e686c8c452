"""Cost of estimates over independent runs: equivalent draws per second and per gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.errors import DataError
from harness.plan.effects import squared_errors

_RESAMPLES = 2000


@dataclass(frozen=True)
class Efficiency:
    """Independent draws of the target that would have the same error, per unit of cost.

    Attributes
    ----------
    per_second, per_kilogradient
        Var[X] / MSE divided by the seconds of a run, and by its thousands of gradients.
    per_second_interval, per_kilogradient_interval
        Their 5% and 95% quantiles over bootstrap samples of the runs.
    """

    per_second: float
    per_second_interval: tuple[float, float]
    per_kilogradient: float
    per_kilogradient_interval: tuple[float, float]


def with_interval(value: float, interval: tuple[float, float]) -> str:
    """Write a number of draws with its interval, rounded to whole draws."""
    low, high = interval
    return f"{value:,.0f} [{low:,.0f}, {high:,.0f}]"


def efficiency(
    errors: npt.ArrayLike,
    variance: float,
    seconds: npt.ArrayLike,
    gradients: npt.ArrayLike,
    *,
    seed: int = 0,
) -> Efficiency:
    """Return equivalent independent draws per second and per 1,000 gradients, with intervals.

    n independent draws estimate E[X] with a mean squared error of Var[X] / n, so an error is worth
    n = Var[X] / MSE draws.  The intervals are bootstrap intervals.

    Parameters
    ----------
    errors
        Estimate of E[X] minus truth: shape (R,), or (R, K) for K coordinates.
    variance
        Var[X], averaged over the coordinates like the squared errors.
    seconds, gradients
        Cost of each run, including warm-up and pilot, shape (R,); 0 gradients give NaN.
    seed
        Seed of the bootstrap.

    Raises
    ------
    DataError
        If there are fewer than two runs, or the shapes do not match.
    """
    squared = squared_errors(errors)
    if len(squared) < 2:
        raise DataError(f"an efficiency needs two runs or more; got {len(squared)}")
    cost = np.stack([np.asarray(seconds, float), np.asarray(gradients, float) / 1000])
    if cost.shape != (2, len(squared)):
        raise DataError(f"{len(squared)} runs need as many seconds and gradients")
    rng = np.random.default_rng(seed)
    chosen = rng.integers(len(squared), size=(_RESAMPLES, len(squared)))
    cost[~cost.any(axis=1)] = np.nan
    value = variance / squared.mean() / cost.mean(axis=1)
    spread = variance / squared[chosen].mean(axis=1) / cost[:, chosen].mean(axis=2)
    low, high = np.quantile(spread, [0.05, 0.95], axis=1)
    return Efficiency(
        float(value[0]),
        (float(low[0]), float(high[0])),
        float(value[1]),
        (float(low[1]), float(high[1])),
    )
