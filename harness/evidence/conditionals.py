"""Conditional densities of an inverse temperature given x, in log space.

On the geometric path log p(x, beta) = log b(x) - beta Delta(x) + log g(beta).  So, given x, the
inverse temperature is a truncated exponential times g (Graham and Storkey 2017, eq. 17).  If
gamma(x) = 0, Delta is +inf, and x belongs only to the base: on a ladder the rung at beta = 0 has
all the mass there, and with a continuous g there is no mass.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence.resampling import draw_index

LogG = Sequence[tuple[float, float]]
"""Knots (beta, log g(beta)), with beta ascending."""

# Below this the two leading terms of the series of log((1 - exp(-a)) / a) are exact.
_SMALL = 1e-4

# Below this an exponential is uniform up to the last digits of a draw.
_NO_SLOPE = 1e-8


def inv_temp_log_conditionals(
    delta: npt.ArrayLike,
    log_g: LogG | FloatArray = ((0.0, 0.0), (1.0, 0.0)),
    *,
    ladder: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Return the log densities of beta = 1 and beta = 0 given x (Graham and Storkey 2017, eq. 17).

    With g = 1 they are w1 = Delta / (exp(Delta) - 1) and w0 = Delta / (1 - exp(-Delta)).  On a
    ladder they are the log probabilities of its two ends.

    Parameters
    ----------
    delta
        Delta(x) = log b(x) + log zeta - log gamma(x), of any shape and size; on a ladder it may
        be +inf.
    log_g
        Knots of a log g that is linear between them, from beta = 0 to 1; or the rungs of a
        ladder with their log weights.
    ladder
        Whether beta takes only the values of the knots.

    Returns
    -------
    tuple of FloatArray
        log w1 and log w0, each of the shape of ``delta``.

    Raises
    ------
    DataError
        If the knots do not ascend from 0 to 1, or a number is not finite.
    """
    knot, value = _knots(log_g, 2)
    if knot[0] != 0 or knot[-1] != 1:
        raise DataError(f"log g has knots from beta = 0 to 1; got {knot[0]:g} to {knot[-1]:g}")
    if ladder:  # both ends share the sum over rungs
        height = value - times_delta(knot, _checked(delta, ladder=True))
        largest = height.max(axis=-1)
        # The difference first: where an end has nearly all the mass, nothing large cancels.
        log_sum = np.log(np.exp(height - largest[..., None]).sum(axis=-1))
        return height[..., -1] - largest - log_sum, height[..., 0] - largest - log_sum
    log_w1 = value[-1] + log_path_weight(delta, 1.0, log_g, ladder=ladder)
    return log_w1, value[0] + log_path_weight(delta, 0.0, log_g, ladder=ladder)


def log_path_weight(
    delta: npt.ArrayLike, inv_temp: float, log_g: LogG | FloatArray, *, ladder: bool = False
) -> FloatArray:
    """Return the log weight that takes x to the path's density at one inverse temperature.

    With beta integrated out, x has the density b(x) int g(beta) exp(-beta Delta) dbeta.  Divided by
    it, the density gamma_beta'(x) is 1 / int g(beta) exp(-(beta - beta') Delta) dbeta.  On a ladder
    the integral is a sum.

    Parameters
    ----------
    delta
        Delta(x), of any shape; on a ladder it may be +inf.
    inv_temp
        beta', which may lie outside the knots.
    log_g
        Knots of a log g that is linear between them, with g zero outside them; or the rungs of a
        ladder with their log weights.
    ladder
        Whether beta takes only the values of the knots.

    Raises
    ------
    DataError
        If the knots do not ascend, or a number is not finite.
    """
    knot, value = _knots(log_g, 1 if ladder else 2)
    # Heights of the log integrand at the knots, along the last axis.  They are relative to beta',
    # so that nothing large cancels if beta' has nearly all the mass.
    height = value - times_delta(knot - inv_temp, _checked(delta, ladder=ladder))
    if ladder:
        return np.asarray(-np.logaddexp.reduce(height, axis=-1), dtype=np.float64)
    return np.asarray(
        -np.logaddexp.reduce(_log_interval_masses(height, knot), axis=-1), dtype=np.float64
    )


def inv_temp_interval_masses(delta: npt.ArrayLike, log_g: LogG | FloatArray) -> FloatArray:
    """Return the probabilities, given x, that beta lies between two knots of log g.

    Parameters
    ----------
    delta
        Delta(x), finite, of any shape (...).
    log_g
        K knots of a log g that is linear between them, with g zero outside them.

    Returns
    -------
    FloatArray
        Shape (..., K - 1), with a sum of one.

    Raises
    ------
    DataError
        If the knots do not ascend, or a number is not finite.
    """
    knot, value = _knots(log_g, 2)
    height = value - times_delta(knot, _checked(delta, ladder=False))
    log_mass = _log_interval_masses(height, knot)
    mass = np.exp(log_mass - log_mass.max(axis=-1, keepdims=True))
    return np.asarray(mass / mass.sum(axis=-1, keepdims=True), dtype=np.float64)


def draw_inv_temp(
    delta: npt.ArrayLike,
    log_g: LogG | FloatArray,
    rng: np.random.Generator,
    *,
    ladder: bool = False,
) -> FloatArray:
    """Draw beta from its exact conditional given x (Graham and Storkey 2017, eq. 17).

    Between two knots of log g the density g(beta) exp(-beta Delta) is a truncated exponential.  So
    an interval is drawn with probability proportional to its mass, and then a place in it by
    inversion.

    Parameters
    ----------
    delta
        Delta(x), of any shape; on a ladder with a rung at 0 it may be +inf.
    log_g
        Knots of a log g that is linear between them, with g zero outside them; or the rungs of a
        ladder with their log weights.  An array (K, 2) saves the conversion at each call.
    rng
        Source of randomness, from which each draw takes two uniform numbers, or one on a ladder.
    ladder
        Whether beta takes only the values of the knots.

    Returns
    -------
    FloatArray
        Inverse temperatures, of the shape of ``delta``.

    Raises
    ------
    DataError
        If the knots do not ascend, or a number is not finite.
    """
    knot, value = _knots(log_g, 1 if ladder else 2)
    height = value - times_delta(knot, _checked(delta, ladder=ladder))
    if ladder:
        return np.asarray(knot[draw_index(height, rng)], dtype=np.float64)
    rise, width = np.diff(height, axis=-1), np.diff(knot)
    interval = draw_index(_log_interval_masses(height, knot), rng)
    slope = np.take_along_axis(rise, interval[..., None], axis=-1)[..., 0]
    # A place in the interval, 0 at its higher end, with density proportional to exp(-size place).
    size, uniform = np.abs(slope), rng.random(slope.shape)
    place = np.where(
        size < _NO_SLOPE,
        uniform,
        -np.log1p(uniform * np.expm1(-size)) / np.maximum(size, _NO_SLOPE),
    )
    share = np.where(slope > 0, 1 - place, place)
    beta = knot[interval] + width[interval] * share
    return np.asarray(np.clip(beta, knot[0], knot[-1]), dtype=np.float64)


def times_delta(inv_temp: FloatArray, delta: FloatArray) -> FloatArray:
    """Multiply inverse temperatures, or steps between them, by Delta; 0 times +inf is 0.

    The latter holds because gamma^0 is 1 even if gamma is 0.

    Parameters
    ----------
    inv_temp
        Shape (K,).
    delta
        Finite or +inf, of any shape (...).

    Returns
    -------
    FloatArray
        Shape (..., K).
    """
    finite = np.isfinite(delta)
    if finite.all():
        return inv_temp * delta[..., None]
    far = np.where(inv_temp == 0, 0.0, np.copysign(np.inf, inv_temp))
    near = inv_temp * np.where(finite, delta, 0.0)[..., None]
    return np.where(finite[..., None], near, far)


def _log_interval_masses(height: FloatArray, knot: FloatArray) -> FloatArray:
    """Return logs of integrals of the exponential of a function that is linear between knots.

    Parameters
    ----------
    height
        Its values at the knots, shape (..., K).
    knot
        Shape (K,).

    Returns
    -------
    FloatArray
        Shape (..., K - 1).
    """
    highest = np.maximum(height[..., :-1], height[..., 1:])
    masses: FloatArray = (
        highest + np.log(np.diff(knot)) + _log_decay(np.abs(np.diff(height, axis=-1)))
    )
    return masses


def _log_decay(a: FloatArray) -> FloatArray:
    """Return log((1 - exp(-a)) / a), the log mean of exp(-a t) over t in [0, 1], for a >= 0."""
    large = np.maximum(a, _SMALL)
    series = -a / 2 + a**2 / 24  # next term a^4 / 2880
    decay: FloatArray = np.where(a < _SMALL, series, np.log(-np.expm1(-large) / large))
    return decay


def _checked(delta: npt.ArrayLike, *, ladder: bool) -> FloatArray:
    array = np.asarray(delta, dtype=np.float64)
    usable = np.isfinite(array)
    if ladder:
        usable |= array == np.inf
    if not np.all(usable):
        or_infinite = ", or +inf on a ladder" if ladder else ""
        raise DataError(f"Delta, the log ratio of base and target, must be finite{or_infinite}")
    return array


def _knots(log_g: LogG | FloatArray, fewest: int) -> tuple[FloatArray, FloatArray]:
    array = np.asarray(log_g, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 2 or len(array) < fewest:
        raise DataError(f"log g needs {fewest} knots (beta, log g) or more")
    knot, value = array.T
    if not (np.all(np.isfinite(array)) and np.all(np.diff(knot) > 0)):
        raise DataError("the knots of log g must ascend in beta and be finite")
    return knot, value
