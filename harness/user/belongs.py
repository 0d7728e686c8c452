"""Map given draws to a program's unconstrained space, and check that they are draws of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.stats import chi2

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.errors import DataError

_DIGITS = 1e-6
"""Relative rounding error of numbers that CmdStan writes with its fewest digits by default."""
_ROOM = 4.0
_LEAST = 1e-3
"""Difference of log densities in nats that is never worth noticing."""
_EXCEPTIONS = 0.05
"""Share of the draws that may differ by more: rounding near a bound is larger than we reckon."""
_WIDER = 1.5
"""How much wider the range of differences may be than the lengths of unit vectors make it, because
chains of NUTS have draws that are not independent."""
_ROUNDED = 1e-4
"""How far sums may be from what a constraint asks for, if that is due to rounding."""


def unconstrained(
    density: BatchedDensity, draws: Mapping[str, FloatArray], source: str
) -> FloatArray:
    """Return draws on Stan's unconstrained space, shape (chains, draws, D).

    Simplexes, unit vectors and the like whose written digits do not add up are corrected first.

    Parameters
    ----------
    density
        Density of the program.
    draws
        By parameter, shape (chains, draws, ...).
    source
        How messages refer to the fit.

    Raises
    ------
    DataError
        If a draw is outside the support, or on its edge.
    """
    chains, count = next(iter(draws.values())).shape[:2]
    flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in draws.items()}
    try:
        points = density.unconstrain_draws(flat)
    except DataError:
        corrected = {name: _corrected(value) for name, value in flat.items()}
        try:
            points = density.unconstrain_draws(corrected)
        except DataError as error:
            said = str(error).partition(": ")[2] or str(error)
            raise DataError(
                f"{source}: a draw is outside the support of the program's parameters, so these "
                f"are draws of another program or of other data ({' '.join(said.split())})"
            ) from error
    if not np.all(np.isfinite(points)):
        share = float(np.mean(~np.isfinite(points).all(axis=1)))
        raise DataError(
            f"{source}: {share:.1%} of the draws lie on the edge of a parameter's support, by "
            "rounding: write them with more digits (sig_figs=18)"
        )
    return points.reshape(chains, count, -1)


def _corrected(value: FloatArray) -> FloatArray:
    """Undo rounding of vectors that sum to 1 or to 0 or have length 1, and of correlations."""
    if value.ndim < 2 or not np.all(np.isfinite(value)):
        return value
    total, length = value.sum(axis=-1, keepdims=True), np.linalg.norm(value, axis=-1, keepdims=True)
    size = np.abs(value).max() + np.finfo(float).tiny
    if value.shape[-1] == 1:
        return value
    if np.all(value >= 0) and np.all(np.abs(total - 1) < _ROUNDED):
        return np.asarray(value / total)
    if value.ndim > 2 and value.shape[-1] == value.shape[-2]:
        diagonal = np.diagonal(value, axis1=-2, axis2=-1)
        if np.all(np.abs(diagonal - 1) < _ROUNDED):
            return np.asarray(0.5 * (value + np.swapaxes(value, -1, -2)))
    if np.all(np.abs(length - 1) < _ROUNDED):
        return np.asarray(value / length)
    if np.all(np.abs(total) < _ROUNDED * size * value.shape[-1]):
        return np.asarray(value - total / value.shape[-1])
    return value


def difference_from_lp(
    lp: FloatArray,
    log_density: FloatArray,
    gradient: FloatArray,
    points: FloatArray,
    *,
    lengths: int = 0,
) -> str | None:
    """Say how the log densities that a fit recorded differ from the program's, if they do.

    They may differ by one constant, because Stan drops the constants of ``~``, and by what rounding
    of the written draws changes, which the gradient tells.

    Parameters
    ----------
    lp
        Recorded log densities, shape (chains, draws).
    log_density, gradient, points
        The program's log densities there, shape (chains, draws), with gradients and points on the
        unconstrained space, (chains, draws, D).
    lengths
        Coordinates behind unit vectors.  Draws do not record the lengths r of these vectors, so the
        densities are to be given without their factors exp(-r^2 / 2), and half a chi-square of so
        many degrees of freedom is what recorded ones differ by.
    """
    difference = lp - log_density
    if not np.all(np.isfinite(difference)):
        return "a draw that the program rejects"
    rounding = np.abs(gradient) * np.maximum(np.abs(points), 1.0)
    allowed = _LEAST + _ROOM * _DIGITS * (np.abs(lp) + rounding.sum(axis=2))
    off = np.abs(difference - np.median(difference))
    if lengths:
        expected = np.ptp(chi2.ppf([_EXCEPTIONS, 1 - _EXCEPTIONS], lengths)) / 2
        found = np.ptp(np.quantile(difference, [_EXCEPTIONS, 1 - _EXCEPTIONS]))
        if found <= _WIDER * expected + np.median(allowed):
            return None
    elif np.mean(off > allowed) <= _EXCEPTIONS:
        return None
    return (
        f"the log density that the fit recorded (lp__) and this program's, which may differ by one "
        f"constant, differ by {np.quantile(difference, 0.05):.4g} to "
        f"{np.quantile(difference, 0.95):.4g}"
    )
