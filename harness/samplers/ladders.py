"""Ladders of inverse temperatures from 0, the base, to 1, the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError

# A pair that never rejects still has room for a rung.
_LEAST_REJECTION = 1e-3

_LOWEST = -115.0  # log of the lowest inverse temperature that a ladder may begin with
_RUNGS_A_DECADE = 2

_NO_RATIO = 1e-9  # a log ratio of precisions whose ladder is uniform to the last digit
_BISECTIONS = 24

PUBLISHED_SCALE = 4.0
"""Scale of the sigmoidal ladder of Wu et al. (2017) and of Graham and Storkey (2017)."""


def uniform_ladder(number: int) -> FloatArray:
    """Return inverse temperatures at equal distances.

    Parameters
    ----------
    number
        How many, K, both ends included.

    Returns
    -------
    FloatArray
        Ascending from 0 to 1, shape (K,).

    Raises
    ------
    DataError
        If there are fewer than two.
    """
    _require(number, 2)
    return np.linspace(0.0, 1.0, number)


def sigmoidal_ladder(number: int, *, scale: float = PUBLISHED_SCALE) -> FloatArray:
    """Return inverse temperatures that are densest at both ends.

    Logistic function s of equidistant points, moved and scaled to [0, 1]: with
    t_k = s(scale (2 k / (K - 1) - 1)), beta_k = (t_k - t_0) / (t_(K - 1) - t_0)
    (Wu, Burda, Salakhutdinov and Grosse 2017, On the quantitative analysis of decoder-based
    generative models, International Conference on Learning Representations).

    Parameters
    ----------
    number
        How many, K, both ends included.
    scale
        How much denser: towards 0 the ladder becomes uniform.

    Returns
    -------
    FloatArray
        Ascending from 0 to 1, shape (K,).

    Raises
    ------
    DataError
        If there are fewer than two, or the scale is not positive, or so large that neighbours at
        an end coincide.
    """
    _require(number, 2)
    if not (np.isfinite(scale) and scale > 0):
        raise DataError(f"the scale of a sigmoidal ladder is positive and finite; got {scale}")
    # 2 s(y) - 1 = tanh(y / 2), symmetric to the last digit.
    curve = np.tanh(0.5 * scale * np.linspace(-1.0, 1.0, number))
    return checked_ladder(0.5 * (1 + curve / curve[-1]))


def geometric_ladder(number: int, *, lowest: float) -> FloatArray:
    """Return 0, then inverse temperatures in geometric progression from a lowest one to 1.

    Parameters
    ----------
    number
        How many, K, both ends included.
    lowest
        The first after 0.

    Returns
    -------
    FloatArray
        Ascending from 0 to 1, shape (K,).

    Raises
    ------
    DataError
        If there are fewer than three, or the lowest is not between 0 and 1.
    """
    _require(number, 3)
    if not 0 < lowest < 1:
        raise DataError(f"the lowest inverse temperature lies between 0 and 1; got {lowest}")
    return checked_ladder(np.concatenate([[0.0], np.geomspace(lowest, 1.0, number - 1)]))


def fourth_power_ladder(number: int, *, power: float = 4.0) -> FloatArray:
    """Return the fourth powers of inverse temperatures at equal distances, denser at the base.

    Parameters
    ----------
    number
        How many, K, both ends included.
    power
        The power, 1 or above.

    Returns
    -------
    FloatArray
        (k / (K - 1))^power, shape (K,) (Murray 2007, Advances in Markov chain Monte Carlo methods,
        section 4.6).

    Raises
    ------
    DataError
        If there are fewer than two, or the power is below 1 or so large that neighbours coincide.
    """
    _require(number, 2)
    if not (np.isfinite(power) and power >= 1):
        raise DataError(f"the power of a ladder is 1 or above; got {power}")
    return checked_ladder(np.linspace(0.0, 1.0, number) ** power)


def beal_ladder(number: int, *, scale: float = 0.2) -> FloatArray:
    """Return e t / (e + 1 - t) at equidistant t, with the scale e: denser at the base.

    Murray (2007, eq. 4.54), after Beal (2003), Variational algorithms for approximate Bayesian
    inference.

    Parameters
    ----------
    number
        How many, K, both ends included.
    scale
        Positive; the ladder becomes uniform as it grows.

    Returns
    -------
    FloatArray
        Shape (K,).

    Raises
    ------
    DataError
        If there are fewer than two, or the scale is not positive.
    """
    _require(number, 2)
    if not (np.isfinite(scale) and scale > 0):
        raise DataError(f"the scale of this ladder is positive and finite; got {scale}")
    part = np.linspace(0.0, 1.0, number)
    return checked_ladder(scale * part / (scale + (1 - part)))


def linear_then_geometric_ladder(
    number: int, *, turn: float = 0.01, linear: float = 0.2
) -> FloatArray:
    """Return inverse temperatures at equal distances up to a turn, then in geometric progression.

    Neal (2001), Annealed importance sampling, Statistics and Computing 11, section 6, has 40 steps
    up to 0.01 and 160 from there to 1.

    Parameters
    ----------
    number
        How many, K, both ends included.
    turn
        Where the second part begins.
    linear
        Share of the steps that belong to the first part, which has one or more, as the second has.

    Returns
    -------
    FloatArray
        Shape (K,).

    Raises
    ------
    DataError
        If there are fewer than three, or the turn or the share is not between 0 and 1.
    """
    _require(number, 3)
    if not (0 < turn < 1 and 0 < linear < 1):
        raise DataError(
            f"the turn of a ladder and its linear share lie between 0 and 1; got {turn}, {linear}"
        )
    first = min(max(round(linear * (number - 1)), 1), number - 2)
    below = np.linspace(0.0, turn, first + 1)
    return checked_ladder(np.concatenate([below, np.geomspace(turn, 1.0, number - first)[1:]]))


def gaussian_ladder(number: int, *, precision_ratio: float) -> FloatArray:
    """Return the ladder that is optimal for a Gaussian base and target with one mean.

    The precision of the tempered density grows by the same factor in each step, so that annealed
    importance sampling has the smallest variance of log weights (Murray 2007, eq. 4.52).

    Parameters
    ----------
    number
        How many, K, both ends included.
    precision_ratio
        Precision of the target divided by that of the base, tau_t / tau_0.

    Returns
    -------
    FloatArray
        beta_k = (r^(k / (K - 1)) - 1) / (r - 1), shape (K,).

    Raises
    ------
    DataError
        If there are fewer than two, or the ratio is not positive, or neighbours coincide.
    """
    _require(number, 2)
    if not (np.isfinite(precision_ratio) and precision_ratio > 0):
        raise DataError(f"a ratio of precisions is positive and finite; got {precision_ratio}")
    log_ratio = np.log(precision_ratio)
    part = np.linspace(0.0, 1.0, number)
    if abs(log_ratio) < _NO_RATIO:
        return part
    return checked_ladder(np.expm1(part * log_ratio) / np.expm1(log_ratio))


LADDERS: Mapping[str, Callable[..., FloatArray]] = {
    "uniform": uniform_ladder,
    "sigmoidal": sigmoidal_ladder,
    "geometric": geometric_ladder,
    "fourth_power": fourth_power_ladder,
    "beal": beal_ladder,
    "linear_then_geometric": linear_then_geometric_ladder,
    "gaussian": gaussian_ladder,
}
"""Ladders that are known beforehand, by name; each takes the number of rungs."""


def named_ladder(name: str, number: int, **settings: Any) -> FloatArray:
    """Return one of :data:`LADDERS`, shape (number,), with its own settings.

    Raises
    ------
    DataError
        If there is no ladder of this name, or it refuses its settings.
    """
    if name not in LADDERS:
        raise DataError(f"the ladder must be one of {', '.join(LADDERS)}; got '{name}'")
    try:
        return LADDERS[name](number, **settings)
    except TypeError as error:
        raise DataError(f"the {name} ladder has other settings: {error}") from error


def equal_variance_ladder(
    variance: Callable[[float], float], total: float, *, most: int = 100_000
) -> FloatArray:
    """Return the shortest ladder whose steps have equal variances with a given sum.

    The log weight of annealed importance sampling gets a variance of about
    (beta_{k+1} - beta_k)^2 var_beta_k[log L] in a step, so beta_{k+1} = beta_k +
    sqrt(v / var_beta_k[log L]) has the variance v in each (Murray 2007, eq. 4.56), the last step
    at most that.  The largest v is bisected with which all steps together have no more than the
    total.  (In Algorithm 4.3 as printed, K is set back before it is tested, so that the loop ends
    at once with a single step.)

    Parameters
    ----------
    variance
        Variance of log L under the tempered density at an inverse temperature; see
        :func:`tempered_variance`.
    total
        Variance of the log weight of one chain: e^2 c for a standard error e of c chains' mean.
    most
        Most steps.

    Returns
    -------
    FloatArray
        Shape (K,); its length follows from the total.

    Raises
    ------
    DataError
        If the total is not positive, or needs more steps than that.
    """
    if not (np.isfinite(total) and total > 0):
        raise DataError(f"the total variance of a ladder is positive and finite; got {total}")

    def made(each: float) -> list[float] | None:
        """Return the rungs with a variance, or None if their sum is above the total."""
        allowed = min(total / each, most)
        rungs = [0.0]
        while rungs[-1] < 1:
            if len(rungs) > allowed:
                return None
            spread = variance(rungs[-1])
            rungs.append(rungs[-1] + np.sqrt(each / spread) if spread > 0 else 1.0)
        rungs[-1] = 1.0
        return rungs

    lowest, highest, found = total, total, made(total)
    while found is None:
        lowest, highest = lowest / 4, lowest
        if total / lowest > 4 * most * most:
            raise DataError(f"a total variance of {total:g} needs more than {most:,} steps")
        found = made(lowest)
    for _ in range(_BISECTIONS if lowest < highest else 0):
        middle = np.sqrt(lowest * highest)
        rungs = made(middle)
        if rungs is None:
            highest = middle
        else:
            lowest, found = middle, rungs
    return checked_ladder(found)


def tempered_variance(
    log_likelihood: FloatArray, log_weight: FloatArray
) -> Callable[[float], float]:
    """Return the variance of log L under tempered densities, from weighted draws of the prior.

    With the particles of nested sampling, weighted by the widths of their prior volumes
    (:func:`harness.samplers.nested_volumes.log_widths`), one run is good at every inverse
    temperature (Murray 2007, Algorithm 4.3).  Particles with a likelihood of zero are left out.

    Parameters
    ----------
    log_likelihood, log_weight
        Shape (n,); weights of the prior need no normalisation.

    Raises
    ------
    DataError
        If no likelihood is above zero.
    """
    possible = np.isfinite(log_likelihood)
    if not possible.any():
        raise DataError("the likelihood is zero at every draw")
    height, log_prior = log_likelihood[possible], log_weight[possible]

    def variance(inv_temp: float) -> float:
        log_share = log_prior + inv_temp * height
        share = np.exp(log_share - log_share.max())
        share /= share.sum()
        mean = share @ height
        return float(share @ np.square(height - mean))

    return variance


def ladder_variance(ladder: FloatArray, variance: Callable[[float], float]) -> float:
    """Return the sum over steps of (beta_{k+1} - beta_k)^2 var_beta_k[log L]."""
    total = 0.0
    for below, above in pairwise(ladder.tolist()):
        total += (above - below) ** 2 * variance(below)
    return total


def equal_rejection_ladder(
    ladder: FloatArray, rejection: FloatArray, number: int | None = None
) -> FloatArray:
    """Place rungs so that neighbours reject swaps equally often.

    The barrier Lambda(beta), the sum of the rejection rates below beta, is taken to be linear
    between the rungs and its range divided into equal parts (Syed, Bouchard-Cote, Deligiannidis and
    Doucet 2021, Non-reversible parallel tempering, Journal of the Royal Statistical Society B 84).

    Parameters
    ----------
    ladder
        Inverse temperatures, shape (K,).
    rejection
        Rates at which their K - 1 pairs rejected swaps.
    number
        How many rungs to place; K if not given.
    """
    barrier = communication_barrier(rejection)
    parts = np.linspace(0, barrier[-1], number or len(ladder))
    moved = np.interp(parts, barrier, ladder)
    moved[0], moved[-1] = 0.0, 1.0
    return moved


def communication_barrier(rejection: FloatArray) -> FloatArray:
    """Return the barrier Lambda at each of K rungs: the sum of the rejection rates below it."""
    return np.concatenate([[0.0], np.cumsum(np.maximum(rejection, _LEAST_REJECTION))])


def overlap_ladder(log_ratio: FloatArray, *, overlap: float = 0.5, most: int = 64) -> FloatArray:
    """Return a geometric ladder whose first step from the reference keeps some overlap.

    Its lowest inverse temperature beta is where the conditional effective sample size of the
    reference's draws, (mean w)^2 / mean w^2 with w = exp(beta log_ratio), falls to ``overlap``
    (Zhou, Johansen and Aston 2016, Toward automatic model comparison, Journal of Computational and
    Graphical Statistics 25, eq. 10).  Where it is that far, three rungs are enough to begin with.

    Parameters
    ----------
    log_ratio
        log gamma - log reference at draws of the reference, shape (n,); those of -inf are left out.
    overlap
        Between 0 and 1.
    most
        Most rungs.

    Raises
    ------
    DataError
        If none of them is finite.
    """
    finite = log_ratio[np.isfinite(log_ratio)]
    if not finite.size:
        raise DataError("the target's density is zero at all draws of the reference")

    def kept(log_beta: float) -> float:
        weight = np.exp(np.exp(log_beta) * (finite - finite.max()))
        return float(weight.mean() ** 2 / np.square(weight).mean())

    lowest, highest = _LOWEST, 0.0
    if kept(highest) >= overlap:
        return uniform_ladder(3)
    for _ in range(50):
        middle = (lowest + highest) / 2
        lowest, highest = (middle, highest) if kept(middle) >= overlap else (lowest, middle)
    number = min(4 + round(_RUNGS_A_DECADE * -lowest / np.log(10)), most)
    return geometric_ladder(number, lowest=min(float(np.exp(lowest)), 0.5))


def checked_ladder(ladder: npt.ArrayLike) -> FloatArray:
    """Return a ladder as an array, shape (K,).

    Raises
    ------
    DataError
        If it has fewer than two inverse temperatures, or does not ascend from 0 to 1.
    """
    rung = np.array(ladder, dtype=np.float64)
    if rung.ndim != 1 or rung.size < 2:
        raise DataError(f"a ladder ascends from 0 to 1 by two rungs or more; got {rung.tolist()}")
    if rung[0] != 0 or rung[-1] != 1 or not np.all(np.diff(rung) > 0):
        shown = rung.tolist() if rung.size <= 8 else [*rung[:3].tolist(), "...", rung[-1].item()]
        raise DataError(f"a ladder ascends from 0 to 1; got {shown}")
    return rung


def _require(number: int, fewest: int) -> None:
    if number < fewest:
        raise DataError(f"this ladder needs {fewest} inverse temperatures or more; got {number}")
