"""Chib's method: log Z from the posterior's density at one point, by a known transition density.

References
----------
Chib, S. (1995). Marginal likelihood from the Gibbs output. Journal of the American Statistical
Association 90, 1313-1321.

Neal, R. M. (1999). Erroneous results in "Marginal likelihood from the Gibbs output". Letter,
University of Toronto.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London, section 4.1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence.estimates import standard_error
from harness.evidence.evidence import LogEvidence


def log_evidence_by_chib(log_joint: float, log_transition: npt.ArrayLike) -> LogEvidence:
    """Estimate log Z = log(prior times likelihood) - log(posterior density), at one point.

    A transition T that leaves the posterior invariant maps it to itself, so that the posterior
    density at a point is the mean of T(point given x) over posterior draws x (Murray 2007,
    eq. 4.4).  A sweep of Gibbs sampling is such a T, and its density is the product of the
    conditional densities, each given the point's coordinates that the sweep has updated and the
    draw's that it has not.

    If the draws lack a mode, the estimate is wrong by the log of the share that they have seen,
    whatever its error says (Neal 1999).  Copies of a mode by a symmetry are such modes.

    Parameters
    ----------
    log_joint
        Log prior density plus log likelihood at the point, with all constants.  The point is best
        where the posterior is high.
    log_transition
        Log density of the transition to the point from each posterior draw, shape
        (chains, draws); -inf from where it cannot be reached.

    Raises
    ------
    DataError
        If the density at the point is not finite, the shape is a different one, there are fewer
        than 4 draws, a log density is NaN or +inf, or the point is reached from no draw.
    """
    value = np.asarray(log_transition, dtype=np.float64)
    if value.ndim != 2 or not value.size or np.any(np.isnan(value)):
        raise DataError(
            "Chib's method needs log densities of transitions from draws (chains, draws) to a "
            f"point; got shape {value.shape}"
        )
    largest = value.max()
    if not (np.isfinite(log_joint) and np.isfinite(largest)):
        raise DataError(
            "Chib's method needs a point at which the joint density is positive and that a "
            f"transition reaches from some draw; got {log_joint} and at most {largest}"
        )
    density: FloatArray = np.exp(value - largest)
    mean = density.mean()
    log_posterior = float(largest + np.log(mean))
    return LogEvidence(float(log_joint) - log_posterior, standard_error(density / mean))
