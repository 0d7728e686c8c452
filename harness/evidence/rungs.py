"""Log Z from draws at every rung between a reference and a target, by the ratios of neighbours.

A rung's density is known up to its normalising constant Z_k, and the product of the ratios
Z_(k+1) / Z_k of neighbours is that of the two ends.  Draws of the lower neighbour alone give a
ratio (forward), draws of the upper one alone do (backward), and draws of both together give that of
a single step with the smallest error.  That error is finite even where the one of a single
direction is not, because the weights are bounded.

References
----------
Bennett, C. H. (1976). Efficient estimation of free energy differences from Monte Carlo data.
Journal of Computational Physics 22, 245-268 (equations 12a and 12b).

Meng, X.-L. and Wong, W. H. (1996). Simulating ratios of normalizing constants via a simple
identity: a theoretical exploration. Statistica Sinica 6, 831-860.

Xie, W., Lewis, P. O., Fan, Y., Kuo, L. and Chen, M.-H. (2011). Improving marginal likelihood
estimation for Bayesian phylogenetic model selection. Systematic Biology 60, 150-160.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence.balance import balance
from harness.evidence.estimates import Estimate, standard_error
from harness.evidence.evidence import LogEvidence


class RungEvidence(NamedTuple):
    """Log of the ratio of normalising constants of the last rung and the first, in nats."""

    log_evidence: LogEvidence
    """By draws of both neighbours of each step together."""
    forward: LogEvidence
    """Each step by the draws of its lower rung: an estimate of the ratio."""
    backward: LogEvidence
    """Each step by the draws of its upper rung: an estimate of the ratio's inverse."""
    series: FloatArray
    """Contribution of each iteration to the error of ``log_evidence``, shape (chains, draws)."""
    repetition: float = 0.0
    """Error of ``log_evidence`` because draws of the first rung are dealt out repeatedly, in nats.

    Its square is part of the variance; ``series`` does not show it.
    """


def rung_evidence(
    up: npt.ArrayLike, down: npt.ArrayLike, *, distinct: float = math.inf
) -> RungEvidence:
    """Estimate the log ratio of normalising constants along a ladder.

    Of each step both neighbours have equally many draws, so that its ratio r = exp(c) solves
    mean f(up - c) = mean f(c - down), with f the logistic function (Bennett 1976).  The error is
    that of the mean of the sum over steps of [f(up - c) - f(c - down)] over the sum of the means
    of f (1 - f), which linearises the solution.  All rungs of an iteration count together, because
    swaps make them depend on each other.

    Parameters
    ----------
    up
        log gamma_(k+1) - log gamma_k at draws of rung k, shape (K - 1, chains, draws); -inf where
        the upper rung has no density.
    down
        The same difference at draws of rung k + 1; +inf where the lower rung has no density.
    distinct
        How many independent draws those of the first rung are worth at most.  Where they are dealt
        out repeatedly from a stock, the error of their mean is that of the stock's.

    Raises
    ------
    DataError
        If shapes do not match, a difference is not a number or infinite the wrong way, or no draw
        of a rung has density at its neighbour, or none that is not zero in floating point.
    """
    above, below = np.asarray(up, dtype=np.float64), np.asarray(down, dtype=np.float64)
    if above.ndim != 3 or above.shape != below.shape or above.size == 0:
        raise DataError(
            f"log ratios of neighbours need one shape, (steps, chains, draws); got {above.shape} "
            f"and {below.shape}"
        )
    if not (np.all(above < np.inf) and np.all(below > -np.inf)):
        raise DataError("a draw of a rung has no density there, or one that is not a number")
    value = {"both": 0.0, "forward": 0.0, "backward": 0.0}
    series = {name: np.zeros(above.shape[1:]) for name in value}
    repetition = dict.fromkeys(value, 0.0)

    def dealt(terms: FloatArray) -> float:
        """Error of a mean over draws of the first rung that the number of terms hides."""
        return float(terms.std()) * math.sqrt(max(0.0, 1 / distinct - 1 / terms.size))

    for k, (u, d) in enumerate(zip(above, below, strict=True)):
        if not (np.any(np.isfinite(u)) and np.any(np.isfinite(d))):
            raise DataError(f"no draw of rungs {k} and {k + 1} has density at both of them")
        log_ratio = balance(u, d)
        a, b = expit(u - log_ratio), expit(log_ratio - d)
        slope = float(np.mean(a * (1 - a)) + np.mean(b * (1 - b)))
        if slope == 0:  # the neighbours are so far apart that rounding leaves nothing
            raise DataError(f"rungs {k} and {k + 1} have no draws in common places")
        value["both"] += log_ratio
        series["both"] += (a - b) / slope
        if k == 0:
            repetition["both"] = dealt(a / slope)
        # Down leads only to the part of the lower rung where the upper one has density.
        possible = np.isfinite(u)
        value["backward"] += float(np.log(possible.mean()))
        series["backward"] += possible / possible.mean() - 1
        if k == 0:
            repetition["backward"] = dealt(possible / possible.mean())
        for name, log_weight, sign in (("forward", u, 1.0), ("backward", -d, -1.0)):
            largest = float(log_weight.max())
            weight = np.exp(log_weight - largest)
            mean = float(weight.mean())
            value[name] += sign * (largest + np.log(mean))
            series[name] += sign * (weight / mean - 1)
            if k == 0 and name == "forward":
                repetition[name] = dealt(weight / mean)
    found = {
        name: LogEvidence(value[name], math.hypot(standard_error(series[name]), repetition[name]))
        for name in value
    }
    return RungEvidence(
        found["both"], found["forward"], found["backward"], series["both"], repetition["both"]
    )


class JoinedEvidence(NamedTuple):
    """Log Z by two ladders that end in one target."""

    log_evidence: LogEvidence
    """Their mean with the weights that make its error smallest."""
    gap: Estimate
    """The second minus the first, with its own error, because they share draws."""


_NONE = LogEvidence(0.0, 0.0)


def joined_evidence(
    one: RungEvidence, other: RungEvidence, constant: LogEvidence = _NONE
) -> JoinedEvidence:
    """Combine two estimates of one log Z from the same iterations.

    Parameters
    ----------
    one, other
        Estimates by two ladders.
    constant
        What the second one is too large by, with an error of its own.
    """
    between = math.hypot(
        standard_error(other.series - one.series), one.repetition, other.repetition, constant.mcse
    )
    first = one.log_evidence
    second = other.log_evidence.minus(constant)
    # The variance of w one + (1 - w) other, whose covariance follows from that of the difference.
    weight = 0.5
    if between > 0:
        weight = (second.mcse**2 - first.mcse**2 + between**2) / (2 * between**2)
        weight = float(np.clip(weight, 0, 1))
    error = standard_error(weight * one.series + (1 - weight) * other.series)
    return JoinedEvidence(
        LogEvidence(
            weight * first.value + (1 - weight) * second.value,
            math.hypot(
                error,
                weight * one.repetition,
                (1 - weight) * other.repetition,
                (1 - weight) * constant.mcse,
            ),
        ),
        Estimate(np.asarray(second.value - first.value), np.asarray(between)),
    )
