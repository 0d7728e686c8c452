"""What log Z of a Gaussian costs with exact draws, from formulas (Murray 2007, section 4.5).

The base has the precision tau_0 and the target tau_t in each of D dimensions; r = tau_t / tau_0.
"""

from __future__ import annotations

import math
from itertools import pairwise

import pandas as pd

from harness.arrays import FloatArray
from harness.samplers.ladders import fourth_power_ladder, gaussian_ladder, uniform_ladder


def nested_iterations(dimension: int, ratio: float) -> float:
    """Return the printed iterations of nested sampling for an error of one nat (eq. 4.36)."""
    return (dimension * math.log(ratio)) ** 2


def nested_iterations_by_information(dimension: int, ratio: float) -> float:
    """Return H^2, in which H is the divergence of the target from the base.

    The error is sqrt(H / N) after N H iterations, so that N = H makes it one nat.  A ball whose
    radius is a factor of sqrt(r) smaller has r^(-D / 2) of the volume, not r^-D as in (4.36).
    """
    information = 0.5 * dimension * (math.log(ratio) - 1 + 1 / ratio)
    return float(information**2)


def multicanonical_variance(dimension: int, ratio: float) -> float:
    """Return the variance of log Z for one exact draw of the ideal ensemble (eq. 4.44)."""
    return (ratio + 1) * (math.sqrt(dimension / (8 * math.pi)) + 2 / math.sqrt(math.pi))


def bridged_variance(dimension: int, ratio: float, rungs: int) -> float:
    """Return the variance of log Z from one exact draw a bridge, with the best ladder (eq. 4.50).

    ``rungs`` is K, the number of inverse temperatures between 0 and 1.
    """
    return float(0.5 * dimension * (rungs + 1) * (1 - ratio ** (1 / (rungs + 1))) ** 2)


def bridged_samples(dimension: int, ratio: float) -> float:
    """Return the bridges, K + 1, for an error of one nat, (D / 2) (log r)^2 (eq. 4.51)."""
    return 0.5 * dimension * math.log(ratio) ** 2


def linear_variance(dimension: int, ratio: float, rungs: int) -> float:
    """Return the variance of :func:`bridged_variance` with a linear ladder, for large K (4.53)."""
    return 0.5 * dimension / rungs * (ratio - 1) ** 2 / ratio


def ladder_variance(dimension: int, ratio: float, ladder: FloatArray) -> float:
    """Return the same variance for any ladder, sum_k (D / 2) (tau_{k+1} / tau_k - 1)^2."""
    precision = (1 + (ratio - 1) * ladder).tolist()
    return float(0.5 * dimension * sum((b / a - 1) ** 2 for a, b in pairwise(precision)))


def cost_laws(dimension: int = 10, ratio: float = 100.0) -> pd.DataFrame:
    """Return variances of log Z for exact draws by ladder and length, D = 10 and r = 100."""
    rows = {}
    for rungs in (15, 122, 1190):
        rows[f"K = {rungs:,}"] = {
            "best ladder (4.50)": bridged_variance(dimension, ratio, rungs),
            "linear": ladder_variance(dimension, ratio, uniform_ladder(rungs + 2)),
            "linear, large K (4.53)": linear_variance(dimension, ratio, rungs),
            "fourth power": ladder_variance(dimension, ratio, fourth_power_ladder(rungs + 2)),
            "Gaussian ladder": ladder_variance(
                dimension, ratio, gaussian_ladder(rungs + 2, precision_ratio=ratio)
            ),
        }
    return pd.DataFrame(rows).T


def unit_error_costs() -> pd.DataFrame:
    """Return draws for an error of one nat on both Gaussians of Table 4.2."""
    rows = {}
    for name, ratio in (("Gaussian (a)", 1e2), ("Gaussian (b)", 1e4)):
        rows[name] = {
            "nested sampling (4.36)": nested_iterations(10, ratio),
            "nested sampling, H squared": nested_iterations_by_information(10, ratio),
            "multicanonical (4.44)": multicanonical_variance(10, ratio),
            "annealing (4.51)": bridged_samples(10, ratio),
        }
    return pd.DataFrame(rows).T
