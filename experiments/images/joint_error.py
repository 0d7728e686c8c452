"""Error of the joint log Z of many images, from few runs: the images give its variance.

The error of a run is a sum over images, which are independent given the truth.  So its variance is
the sum of the variances of groups of images, which rest on many more degrees of freedom than the
runs have; only the bias is left to the runs alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.plan.effects import Effect

GROUPS = 10
"""Groups of images: image i belongs to group i modulo this number."""


def by_group(values: FloatArray) -> FloatArray:
    """Add values of images up by group: (..., K) to (..., GROUPS)."""
    total = np.zeros((*values.shape[:-1], GROUPS))
    for group in range(GROUPS):
        total[..., group] = values[..., group::GROUPS].sum(axis=-1)
    return total


@dataclass(frozen=True)
class JointError:
    """Error of a sum over independent groups.

    Attributes
    ----------
    bias
        Mean error of the sum.
    bias_se
        Its standard error, that of the truth included.
    variance
        Variance of the sum over runs.
    mean_square
        Its mean squared error: variance plus squared bias.
    se
        Standard error of the mean squared error.
    runs
        How many runs it rests on.
    """

    bias: float
    bias_se: float
    variance: float
    mean_square: float
    se: float
    runs: int

    @property
    def rmse(self) -> float:
        """Root mean squared error of the sum."""
        return float(np.sqrt(self.mean_square))

    def over(self, other: JointError) -> Effect:
        """Return the ratio of the root mean squared errors, this one over the other."""
        runs = min(self.runs, other.runs)
        if not (self.mean_square > 0 and other.mean_square > 0):
            return Effect(np.nan, np.inf, runs, ratio=True)
        relative = np.hypot(self.se / self.mean_square, other.se / other.mean_square)
        return Effect(self.rmse / other.rmse, float(relative / 2), runs, ratio=True)


def joint_error(estimates: FloatArray, truth: FloatArray) -> JointError:
    """Estimate the error of the sum over groups.

    With s_g^2 the variance of group g over R runs, V = sum_g s_g^2, and T the truth's own variance,
    the squared bias is estimated by B^2 - V / R - T, where B is the mean error, and by 0 if that is
    negative.  By normality, V has the variance sum_g 2 s_g^4 / (R - 1), and B^2 has 4 b^2 v + 2 v^2
    with v = V / R + T and b^2 the squared bias.

    Parameters
    ----------
    estimates
        Estimates of each group's log Z in each run, shape (R, G), R of 2 or more.
    truth
        The same of the reference, shape (S, G): the mean of its S runs counts as true, and their
        spread as its error, which is 0 if there is one.

    Raises
    ------
    DataError
        If there are fewer than two runs.
    """
    runs = len(estimates)
    if runs < 2:
        raise DataError(f"an error needs two runs or more; got {runs}")
    spread = estimates.var(axis=0, ddof=1)
    of_truth = truth.var(axis=0, ddof=1).sum() / len(truth) if len(truth) > 1 else 0.0
    variance = float(spread.sum())
    bias = float((estimates.mean(axis=0) - truth.mean(axis=0)).sum())
    of_bias = variance / runs + float(of_truth)
    squared_bias = max(0.0, bias**2 - of_bias)
    se = np.sqrt(
        2 * np.square(spread).sum() / (runs - 1) + 4 * squared_bias * of_bias + 2 * of_bias**2
    )
    return JointError(
        bias, float(np.sqrt(of_bias)), variance, variance + squared_bias, float(se), runs
    )
