"""Ladders of inverse temperatures from 0, the base, to 1, the target."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError

# A pair that never rejects still has room for a rung.
_LEAST_REJECTION = 1e-3

_LOWEST = -115.0  # log of the lowest inverse temperature that a ladder may begin with
_RUNGS_A_DECADE = 2

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
