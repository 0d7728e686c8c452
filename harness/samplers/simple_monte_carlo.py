"""Simple Monte Carlo: independent draws of the base, weighted by the likelihood.

If the base is the prior, log Z is the log of the mean likelihood over the prior; with another base
it is plain importance sampling.  It is unbiased for Z, and exact enough to check other methods by
where the posterior holds more than, say, a thousandth of the base.  Elsewhere a few draws have all
the weight, which the diagnosis reports.

References
----------
Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London, sections 1.3.2 and 4.1.
"""

from __future__ import annotations

import numpy as np

from harness.errors import DataError
from harness.evidence import log_mean_weight
from harness.fit import Fit
from harness.forms.method import python_method
from harness.model import Model
from harness.model.python_target import Target, target_of
from harness.path.gaussian import GaussianBase
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.result import weighted_fit

METHOD = "simple_monte_carlo"
_AT_ONCE = 2**16  # coordinates that are evaluated at once


def simple_monte_carlo(
    what: Model | Target, base: GaussianBase, *, draws: int = 10_000, seed: int
) -> Fit:
    """Draw from the base, and weigh draws by the ratio of target and base.

    Parameters
    ----------
    what
        Model or target.
    base
        The prior, or whatever else to draw from; its guess at log Z is not used.
    draws
        Number of draws.
    seed
        Seed; the same seed gives the same fit.

    Returns
    -------
    Fit
        A single chain of independent draws: ``extended`` holds them with their log weights,
        ``log_w1``, and ``posterior`` draws that are resampled from them.  The error of log Z is the
        relative error of the mean weight, to first order.

    Raises
    ------
    DataError
        If there are fewer than 4 draws, the base does not have the target's dimension, or the
        target's density is zero at all draws, or +inf at one.
    """
    if draws < 4:
        raise DataError(f"simple Monte Carlo needs 4 draws or more; got {draws}")
    path = GeometricPath(target_of(what), base)
    points = base.sample(np.random.default_rng([seed, 5]), draws)
    size = max(1, _AT_ONCE // base.mean.size)
    parts = [points[first : first + size] for first in range(0, draws, size)]
    log_gamma = np.concatenate([path.log_gamma(part) for part in parts])
    if not np.isfinite(log_gamma).any() or np.any(log_gamma == np.inf):
        raise DataError(
            f"the log density of {path.target.name} is +inf at a draw of the base, or at none of "
            f"{draws} finite: take another base, or more draws"
        )
    log_weight = log_gamma - base.log_density(points)
    return weighted_fit(
        METHOD,
        path,
        points[None],
        {"log_w1": log_weight[None]},
        settings={"draws": draws},
        seed=seed,
        stats={"lp": log_gamma[None]},
        log_evidence=log_mean_weight(log_weight),
        populations=True,
    )


SIMPLE_MONTE_CARLO = python_method(METHOD, simple_monte_carlo)
