"""Estimate log normalising constants from tempered draws, along the path or from both ends."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence.conditionals import LogG, log_path_weight
from harness.evidence.estimates import Estimate, standard_error

_FEWEST_POPULATIONS, _MOST_SPREAD, _MOST_NORMAL = 4, 1.0, 6.0
"""Populations that tell how widely the logs of their weights spread, standard deviation of these,
in nats, above which they are taken for normal, and above which not even that."""
_STUCK = 4.0
"""Error of the log of their mean then, in their standard deviations: with six nats, that of normal
logs and the difference between both estimates together."""
# The fewest draws of a stepping stone, and the largest number of stones.
_DRAWS_A_STONE, _MOST_STONES = 50, 20
ROUNDING = 1e-9
"""Error of log Z, in nats, below which all is rounding: of a constant likelihood, for example."""


class LogEvidence(NamedTuple):
    """An estimate of a log normalising constant, in nats."""

    value: float
    """Estimate of log Z."""
    mcse: float
    """Its Monte Carlo standard error, autocorrelation taken into account."""

    def plus(self, other: LogEvidence) -> LogEvidence:
        """Log of the product of two constants whose estimates are independent of each other."""
        return LogEvidence(self.value + other.value, math.hypot(self.mcse, other.mcse))

    def minus(self, other: LogEvidence) -> LogEvidence:
        """Log of the ratio of two constants whose estimates are independent of each other."""
        return LogEvidence(self.value - other.value, math.hypot(self.mcse, other.mcse))

    @property
    def text(self) -> str:
        """The estimate and its error for people, to three decimals or two digits of the error."""
        precise = math.isfinite(self.mcse) and self.mcse > 10 * ROUNDING
        decimals = max(3, 1 - math.floor(math.log10(self.mcse))) if precise else 3
        value = round(self.value, decimals) + 0.0  # not -0.000
        return f"{value:.{decimals}f} ± {self.mcse:.{decimals}f}"


NORMALISED = LogEvidence(0.0, 0.0)
"""Log of the integral of a density that is normalised."""


def log_mean_weight(log_weight: npt.ArrayLike) -> LogEvidence:
    """Return the log of the mean of independent weights, with its error by the delta method.

    Parameters
    ----------
    log_weight
        Shape (n,), in nats; -inf is a weight of zero.  Of a single weight the error is not known
        (NaN).
    """
    log_w = np.asarray(log_weight, dtype=np.float64)
    largest = log_w.max()
    weight = np.exp(log_w - largest)
    mean = weight.mean()
    error = weight.std(ddof=1) / np.sqrt(weight.size) / mean if weight.size > 1 else np.nan
    return LogEvidence(float(largest + np.log(mean)), float(error))


def log_mean_of_populations(log_weight: npt.ArrayLike) -> LogEvidence:
    """Return the log of the mean of the weights of populations of particles, with its error.

    Where the logs spread by more than a nat, the mean is that of the largest of them, far below the
    truth as a rule, and the delta method's error cannot exceed 1.  There the logs are taken for
    normal, as they are in the limit, so that the log of the mean is their mean plus half their
    variance.  Logs that spread by many nats are no sum of many small errors: populations are stuck
    in different places.  Then the log of the mean is all that is known, and its error is a multiple
    of their standard deviation.

    Parameters
    ----------
    log_weight
        Shape (n,), in nats; -inf is a weight of zero.

    References
    ----------
    Bérard, J., Del Moral, P. and Doucet, A. (2014). A lognormal central limit theorem for particle
    approximations of normalizing constants. Electronic Journal of Probability 19(94).
    """
    log_w = np.asarray(log_weight, dtype=np.float64)
    plain = log_mean_weight(log_w)
    if log_w.size < _FEWEST_POPULATIONS or not np.all(np.isfinite(log_w)):
        return plain
    variance = float(log_w.var(ddof=1))
    if variance <= _MOST_SPREAD**2:
        return plain
    if variance > _MOST_NORMAL**2:
        return LogEvidence(plain.value, _STUCK * math.sqrt(variance))
    count = log_w.size
    # As wide as the t distribution that a mean has whose variance few populations tell.
    few = (count - 1) / (count - 3)
    error = np.sqrt(few * (variance / count + variance**2 / (2 * (count - 1))))
    return LogEvidence(float(log_w.mean()) + variance / 2, float(error))


class TwoSidedLogEvidence(NamedTuple):
    """Log Z estimated from the base's side and from the target's, in nats."""

    forward: LogEvidence
    """Up the path: the ratio of each step comes from the draws below it.  Estimates Z."""
    backward: LogEvidence
    """Down the path: the ratio of each step comes from the draws above it.  Estimates 1/Z."""
    gap: Estimate
    """Backward minus forward.  It has its own error because the two share draws."""


def log_evidence(
    log_w1: npt.ArrayLike, log_w0: npt.ArrayLike, *, log_zeta: float, log_g_ratio: float = 0.0
) -> LogEvidence:
    """Estimate log Z from tempered draws (Graham and Storkey 2017, eq. 20).

    For a normalised base, log Z = log zeta + log sum w_1 - log sum w_0 - log(g(1) / g(0)).  The
    error is that of the mean of w_1 / mean(w_1) - w_0 / mean(w_0), which linearises the ratio.

    Parameters
    ----------
    log_w1, log_w0
        Log conditional densities of beta = 1 and of beta = 0 given x_t, shape (chains, draws).
        They are -inf if a draw has no density there, for example at beta = 1 if the target's
        density is zero.  For a pseudo-extended run the shape is (chains, draws, N), with the
        complement's log weight (:func:`~harness.evidence.complement_log_weight`) added to both:
        pseudo-samples that are not the chosen one follow the tempered density.
    log_zeta
        The guess at log Z that the run used.
    log_g_ratio
        log g(1) - log g(0); 0 for the uniform g.

    Raises
    ------
    DataError
        If shapes do not match, a log weight is NaN or +inf, or all at one end are -inf.
    """
    one, zero = (np.asarray(log_w, dtype=np.float64) for log_w in (log_w1, log_w0))
    if one.shape != zero.shape or one.ndim not in (2, 3) or one.size == 0:
        raise DataError(
            f"log w1 and log w0 need one shape, (chains, draws) or (chains, draws, N); got "
            f"{one.shape}, {zero.shape}"
        )
    if not all(np.all(each < np.inf) and np.any(each > -np.inf) for each in (one, zero)):
        raise DataError("log w1 and log w0 must be finite or -inf, and some of each finite")
    if one.ndim == 2:
        one, zero = one[..., None], zero[..., None]
    (up, value1), (down, value0) = _linearised(one), _linearised(zero)
    value = log_zeta - log_g_ratio + value1 - value0
    return LogEvidence(float(value), standard_error(up - down))


def part_shares() -> FloatArray:
    """Return the shares of a run's draws at which twelve growing parts of it end, shape (12,).

    The shares ascend to 1 and double every two parts.
    """
    return np.exp2(0.5 * np.arange(-11, 1, dtype=np.float64))


def log_evidence_by_parts(
    log_w1: npt.ArrayLike, log_w0: npt.ArrayLike, *, log_zeta: float, log_g_ratio: float = 0.0
) -> FloatArray:
    """Estimate log Z from the first part of each chain, for each share of :func:`part_shares`.

    The result has shape (12,).  Parameters and errors are those of :func:`log_evidence`; a part has
    at least four draws.
    """
    one, zero = (np.asarray(log_w, dtype=np.float64) for log_w in (log_w1, log_w0))
    values = []
    for share in part_shares():
        kept = max(4, round(float(share) * one.shape[1]))
        up, down = (np.logaddexp.reduce(w[:, :kept], axis=None) for w in (one, zero))
        values.append(log_zeta + float(up - down) - log_g_ratio)
    return np.array(values)


def two_sided_log_evidence(
    delta: npt.ArrayLike,
    inv_temp: npt.ArrayLike,
    *,
    log_zeta: float,
    log_g: LogG,
    ladder: bool = False,
    log_weight: npt.ArrayLike | None = None,
) -> TwoSidedLogEvidence | None:
    """Estimate log Z by stepping stones up the path and down it.

    Draws are sorted by their inverse temperature into stones that hold equally many draws (on a
    ladder, each rung is a stone).  The draws of a stone, with beta integrated out between its
    edges, give the ratio of normalising constants from its own middle to the next stone's (up) and
    to that of the stone before it (down).  Both products estimate Z, but for each step they use
    draws from its opposite ends.  If the draws at one end have not seen what those at the other
    have, the two directions disagree, like estimates of a difference of free energies from its two
    ends (Bennett 1976, Journal of Computational Physics 22, 245-268).

    Parameters
    ----------
    delta, inv_temp
        Delta(x_t) and the inverse temperatures drawn with them, shape (chains, draws) or
        (chains, draws, N).  On a ladder Delta may be +inf, which it is where the target's density
        is zero.
    log_zeta
        The guess at log Z that the run used.
    log_g
        Knots of a log g that is linear between them; or the rungs of a ladder.
    ladder
        Whether beta takes only the values of the knots.
    log_weight
        Log weights, of the same shape, that turn the draws into draws of the tempered density.  For
        a pseudo-extended run they are those of the complement.

    Returns
    -------
    TwoSidedLogEvidence or None
        None if there are fewer than 100 draws.

    Raises
    ------
    DataError
        If shapes do not match.
    """
    drop, beta = (np.asarray(array, dtype=np.float64) for array in (delta, inv_temp))
    log_w = np.zeros(drop.shape) if log_weight is None else np.asarray(log_weight, np.float64)
    if drop.ndim not in (2, 3) or drop.shape != beta.shape or drop.shape != log_w.shape:
        raise DataError(
            f"Delta, inverse temperatures and log weights need one shape, (chains, draws) or "
            f"(chains, draws, N); got {drop.shape}, {beta.shape} and {log_w.shape}"
        )
    if drop.ndim == 2:
        drop, beta, log_w = drop[..., None], beta[..., None], log_w[..., None]
    if beta.size < 2 * _DRAWS_A_STONE:
        return None
    stone, middle, knots_of = _stones(beta, log_g, ladder)
    forward, backward = np.zeros(drop.shape[:2]), np.zeros(drop.shape[:2])
    total = {"forward": log_zeta, "backward": log_zeta}
    for k, own in enumerate(knots_of):
        below = middle[k - 1] if k > 0 else 0.0
        above = middle[k + 1] if k + 1 < len(middle) else 1.0
        inside = stone == k
        at: dict[float, tuple[FloatArray, float]] = {}
        for place in {below, middle[k], above}:
            log_v = np.full(drop.shape, -np.inf)
            log_v[inside] = log_w[inside] + log_path_weight(drop[inside], place, own, ladder=ladder)
            at[place] = _linearised(log_v)
        # Up: from this middle to the next one; the first stone also gives the way from 0.
        start = 0.0 if k == 0 else middle[k]
        forward += at[above][0] - at[start][0]
        total["forward"] += at[above][1] - at[start][1]
        # Down: from this middle to the one before; the last stone also gives the way from 1.
        end = 1.0 if k + 1 == len(middle) else middle[k]
        backward += at[end][0] - at[below][0]
        total["backward"] += at[end][1] - at[below][1]
    if np.any(np.isinf(drop)):
        # The way down to beta = 0 ends at the base restricted to where gamma is not zero, so it is
        # corrected by the share of the base's draws that lie there.
        at_base = np.where(stone == 0, log_w, -np.inf)
        possible = _linearised(np.where(np.isfinite(drop), at_base, -np.inf))
        everything = _linearised(at_base)
        backward += possible[0] - everything[0]
        total["backward"] += possible[1] - everything[1]
    return TwoSidedLogEvidence(
        LogEvidence(float(total["forward"]), standard_error(forward)),
        LogEvidence(float(total["backward"]), standard_error(backward)),
        Estimate(
            np.asarray(total["backward"] - total["forward"]),
            np.asarray(standard_error(backward - forward)),
        ),
    )


def _linearised(log_w: FloatArray) -> tuple[FloatArray, float]:
    """Return the series sum_i w_ti / mean, shape (chains, draws), and the log of the mean.

    The series is 0 if all weights are 0.
    """
    largest = log_w.max()
    if largest == -np.inf:
        return np.zeros(log_w.shape[:2]), -np.inf
    weight = np.exp(log_w - largest).sum(axis=-1)
    mean = weight.mean()
    return weight / mean, float(largest + np.log(mean))


def _stones(
    beta: FloatArray, log_g: LogG, ladder: bool
) -> tuple[npt.NDArray[np.intp], FloatArray, list[LogG]]:
    """Sort draws into stones; return each draw's stone, the stones' middles and knots of log g."""
    knot, value = np.asarray(log_g, dtype=np.float64).T
    if ladder:
        rung, stone = np.unique(beta, return_inverse=True)
        return stone.reshape(beta.shape), rung, [[(each, 0.0)] for each in rung.tolist()]
    count = min(_MOST_STONES, beta.size // _DRAWS_A_STONE)
    inner = np.quantile(beta, np.arange(1, count) / count)
    edge = np.unique(np.concatenate([knot[:1], inner, knot[-1:]]))
    middle = (edge[1:] + edge[:-1]) / 2
    stone = np.clip(np.searchsorted(edge, beta, side="right") - 1, 0, len(middle) - 1)
    return stone, middle, [_knots_between(knot, value, a, b) for a, b in pairwise(edge)]


def _knots_between(
    knot: FloatArray, value: FloatArray, lower: float, upper: float
) -> list[tuple[float, float]]:
    """Return knots of the same log g, restricted to an interval."""
    inside = knot[(knot > lower) & (knot < upper)]
    place = np.concatenate([[lower], inside, [upper]])
    return list(zip(place.tolist(), np.interp(place, knot, value).tolist(), strict=True))
