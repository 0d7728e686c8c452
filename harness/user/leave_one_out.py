"""How well a model predicts each observation from the others: ArviZ's PSIS-LOO of ``log_lik``.

References
----------
Vehtari, A., Gelman, A. and Gabry, J. (2017). Practical Bayesian model evaluation using
leave-one-out cross-validation and WAIC. Statistics and Computing 27, 1413-1432.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import arviz_stats
import numpy as np
import xarray as xr

from harness.arrays import FloatArray
from harness.fit import Fit

LOG_LIK = "log_lik"
"""Name of the generated quantity that holds the log likelihood of each observation."""
_FEWEST = 20


@dataclass(frozen=True)
class LeaveOneOut:
    """Expected log predictive density of new observations.

    Attributes
    ----------
    elpd, se
        Its estimate and standard error, which stands for having seen these observations only.
    each
        The part of each observation, shape (n,).
    unreliable
        Observations whose part is not reliable, by Pareto k.
    """

    elpd: float
    se: float
    each: FloatArray
    unreliable: int

    def minus(self, other: LeaveOneOut) -> tuple[float, float]:
        """Return the difference from another model of the same observations, and its error.

        The error is that of the sum of the differences of observations; both are NaN if the
        numbers of observations differ.
        """
        if self.each.shape != other.each.shape:
            return math.nan, math.nan
        difference = self.each - other.each
        if difference.size < 2:
            return float(difference.sum()), math.nan
        return float(difference.sum()), float(math.sqrt(difference.size) * difference.std(ddof=1))


def leave_one_out(fit: Fit) -> LeaveOneOut | None:
    """Return PSIS-LOO of a fit whose program generates ``log_lik``; None if that is not possible.

    Parameters
    ----------
    fit
        Draws of the posterior with what the program generates.
    """
    posterior = fit.posterior
    if LOG_LIK not in posterior or posterior.sizes["draw"] * posterior.sizes["chain"] < _FEWEST:
        return None
    values = posterior[LOG_LIK].transpose("chain", "draw", ...)
    if not np.all(np.isfinite(values.to_numpy())):
        return None
    groups = {
        "/posterior": posterior[list(fit.parameters)],
        "/log_likelihood": xr.Dataset({LOG_LIK: values}),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what it warns of is counted below
        found = arviz_stats.loo(xr.DataTree.from_dict(groups), pointwise=True, var_name=LOG_LIK)
    k = np.ravel(np.asarray(found.pareto_k, dtype=np.float64))
    return LeaveOneOut(
        float(found.elpd),
        float(found.se),
        np.ravel(np.asarray(found.elpd_i, dtype=np.float64)),
        int(np.sum(k > float(found.good_k))),
    )
