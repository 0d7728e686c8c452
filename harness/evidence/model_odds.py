"""Bayes factors and probabilities of models from their log evidences, with Monte Carlo errors.

References
----------
Kass, R. E. and Raftery, A. E. (1995). Bayes factors. Journal of the American Statistical
Association 90, 773-795.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence.evidence import LogEvidence

LEVEL = 0.95
"""Probability of the intervals."""
_SIMULATIONS = 20_000
_SCALE = (
    (2.0, "not worth more than a bare mention"),
    (6.0, "positive"),
    (10.0, "strong"),
    (math.inf, "very strong"),
)
"""Upper ends of 2 log B and the words for it: Kass and Raftery (1995), section 3.2."""


class BayesFactor(NamedTuple):
    """Evidence of one model divided by that of another."""

    log: LogEvidence
    """Its natural logarithm with its error."""
    interval: tuple[float, float]
    """Interval of the logarithm that holds it with probability :data:`LEVEL`."""
    words: str
    """Strength of the evidence, in the words of Kass and Raftery (1995)."""


class Share(NamedTuple):
    """A posterior probability of a model, with an interval for its Monte Carlo error."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ModelOdds:
    """What log evidences and prior probabilities say about models.

    Attributes
    ----------
    prior
        Prior probability of each model.
    posterior
        Posterior probability of each model.
    best
        Probability that each model has the largest posterior probability, given the Monte Carlo
        errors of the log evidences.
    """

    prior: tuple[float, ...]
    posterior: tuple[Share, ...]
    best: tuple[float, ...]


def strength(log_factor: float) -> str:
    """Return the words of Kass and Raftery (1995) for a Bayes factor, given its logarithm.

    They take twice the natural logarithm: up to 2, 6 and 10, and above.
    """
    return next(words for limit, words in _SCALE if 2 * abs(log_factor) <= limit)


def bayes_factor(one: LogEvidence, other: LogEvidence) -> BayesFactor:
    """Return the Bayes factor of one model against another, whose estimates are independent."""
    log = one.minus(other)
    reach = float(ndtri(0.5 + LEVEL / 2)) * log.mcse
    return BayesFactor(log, (log.value - reach, log.value + reach), strength(log.value))


def model_odds(
    evidences: Sequence[LogEvidence], prior: Sequence[float] | None = None, *, seed: int = 1
) -> ModelOdds:
    """Return posterior probabilities of models.

    The posterior probability of model i is proportional to prior_i Z_i (Kass and Raftery 1995,
    section 2).  Intervals and the probability of being best come from 20,000 draws of normal errors
    of the log evidences.

    Parameters
    ----------
    evidences
        Independent estimates, one for each model.
    prior
        Prior odds, positive, in any unit; equal ones if not given.
    seed
        Seed of those draws.

    Raises
    ------
    DataError
        If there is no model, the numbers do not match, or a prior odds is not positive and finite.
    """
    number = len(evidences)
    odds = np.ones(number) if prior is None else np.asarray(prior, dtype=np.float64)
    if not number or odds.shape != (number,):
        raise DataError(f"{number} models need as many prior odds; got {odds.size}")
    if not np.all(np.isfinite(odds) & (odds > 0)):
        raise DataError("prior odds must be positive and finite")
    log_prior = np.log(odds / odds.sum())
    value = np.array([each.value for each in evidences])
    error = np.array([each.mcse for each in evidences])
    rng = np.random.default_rng(seed)
    simulated = _shares(log_prior + value + error * rng.standard_normal((_SIMULATIONS, number)))
    low, high = np.quantile(simulated, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2], axis=0)
    best = np.bincount(simulated.argmax(axis=1), minlength=number) / _SIMULATIONS
    shares = _shares((log_prior + value)[None])[0]
    return ModelOdds(
        tuple(np.exp(log_prior).tolist()),
        tuple(
            Share(float(s), float(a), float(b)) for s, a, b in zip(shares, low, high, strict=True)
        ),
        tuple(best.tolist()),
    )


def _shares(log_weight: FloatArray) -> FloatArray:
    """Normalise rows."""
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    shares: FloatArray = weight / weight.sum(axis=1, keepdims=True)
    return shares
