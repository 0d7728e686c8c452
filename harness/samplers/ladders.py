"""Ladders of inverse temperatures from 0, the base, to 1, the target."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError

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
