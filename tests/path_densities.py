"""Densities of tempered programs, from the two ends of a path in NumPy: what tests compare with.

A path is given as arguments of :func:`harness.forms.continuous_tempering.tempering_data`, and its
ends as a function of a point: log target and log base, Jacobians of the parameters included.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from form_data import pseudo_extended_data
from scipy.special import logsumexp
from stan_density import StanDensity, into_box, log_box_jacobian

from harness.arrays import FloatArray
from harness.forms.continuous_tempering import tempering_data
from harness.model import Model
from harness.path.data import UNIFORM

Ends = Callable[[FloatArray], tuple[float, float]]
"""Log target, constants included, and log base at a point (D,)."""

_LEGENDRE = np.polynomial.legendre.leggauss(60)


def _log_g(inv_temp: FloatArray, path: dict[str, Any]) -> FloatArray:
    knot, value = np.array(path.get("log_g", UNIFORM)).T
    return np.asarray(np.interp(inv_temp, knot, value), dtype=np.float64)


def _log_zeta(path: dict[str, Any]) -> float:
    return float(path["base"].log_zeta if "base" in path else path["log_zeta"])


def joint_density(model: Model, path: dict[str, Any], inv_temp: float | None) -> StanDensity:
    """Return the joint program's density, with a fixed inverse temperature or with its own."""
    fixed = np.empty(0) if inv_temp is None else np.array([inv_temp])
    data = {**model.data, **tempering_data(model, **path)}
    data |= {"sample_inv_temp": int(inv_temp is None), "fixed_inv_temp": fixed}
    return StanDensity(model.program("joint_tempering"), data)


def collapsed_density(model: Model, path: dict[str, Any], *, ladder: bool) -> StanDensity:
    """Return the collapsed program's density."""
    data = {**model.data, **tempering_data(model, **path), "ladder": int(ladder)}
    return StanDensity(model.program("collapsed_tempering"), data)


def pseudo_density(model: Model, path: dict[str, Any], ladder: list[float] | None) -> StanDensity:
    """Return the density of two pseudo-samples, with fixed inverse temperatures or their own."""
    data = {**model.data, **pseudo_extended_data(model, 2, ladder, **path)}
    return StanDensity(model.program("pseudo_extended"), data)


def check_joint(
    model: Model, ends: Ends, path: dict[str, Any], inv_temp: float | None, points: FloatArray
) -> None:
    """Compare the joint form with equation 16 of Graham and Storkey (2017) at points (n, D)."""

    def expected(u: FloatArray) -> float:
        one, zero = ends(u[: model.dimension])
        beta, jacobian = inv_temp, 0.0
        if beta is None:
            beta = float(into_box(u[-1], 0, 1))
            jacobian = log_box_jacobian(u[-1:], 0, 1)
        g = float(_log_g(np.array(beta), path))
        return beta * (one - _log_zeta(path)) + (1 - beta) * zero + g + jacobian

    if inv_temp is None:
        points = np.column_stack([points, np.linspace(-2, 1.5, len(points))])
    _check(joint_density(model, path, inv_temp), expected, points)


def check_collapsed(
    model: Model, ends: Ends, path: dict[str, Any], points: FloatArray, *, ladder: bool
) -> None:
    """Compare the collapsed form with an integral by Gauss and Legendre, or a sum over rungs."""
    knot, value = np.array(path.get("log_g", UNIFORM)).T
    if ladder:
        beta, log_share = knot, value
    else:
        node, weight = _LEGENDRE
        pieces = [(low + (high - low) * (node + 1) / 2, np.log(weight * (high - low) / 2))
                  for low, high in pairwise(knot)]  # fmt: skip
        beta, log_share = (np.concatenate(each) for each in zip(*pieces, strict=True))
        log_share = log_share + _log_g(beta, path)

    def expected(u: FloatArray) -> float:
        one, zero = ends(u)
        return float(logsumexp(beta * (one - _log_zeta(path)) + (1 - beta) * zero + log_share))

    _check(collapsed_density(model, path, ladder=ladder), expected, points)


def check_pseudo_extended(
    model: Model,
    ends: Ends,
    path: dict[str, Any],
    ladder: list[float] | None,
    pairs: FloatArray,
    sizes: list[int],
) -> None:
    """Compare two pseudo-samples with equation 8 of Nemeth et al. (2019), g = pi = 1 or knotted.

    Parameters
    ----------
    pairs
        Pairs of points, shape (n, 2, D).
    sizes
        Sizes of the parameters one after the other; Stan has all pseudo-samples of one together.
    """
    cuts = np.cumsum(sizes)

    def expected(u: FloatArray) -> float:
        parts = np.split(u[: 2 * cuts[-1]], 2 * cuts[:-1])
        points = np.concatenate([part.reshape(2, -1) for part in parts], axis=1)
        free = u[2 * cuts[-1] :]
        beta = into_box(free, 0, 1) if ladder is None else np.array(ladder)
        one, zero = np.array([ends(point) for point in points]).T
        log_q = beta * (one - _log_zeta(path)) + (1 - beta) * zero + _log_g(beta, path)
        total = float(logsumexp(one - log_q)) - np.log(2) + log_q.sum()
        return float(total) + log_box_jacobian(free, 0, 1)

    _check(
        pseudo_density(model, path, ladder),
        expected,
        stacked(pairs, sizes, None if ladder is not None else [-0.4, 0.9]),
    )


def stacked(pairs: FloatArray, sizes: list[int], free: list[float] | None = None) -> FloatArray:
    """Return pairs of points (n, 2, D) as a pseudo-extended program orders them."""
    parts = np.split(pairs, np.cumsum(sizes)[:-1], axis=2)
    rows = np.concatenate([part.reshape(len(pairs), -1) for part in parts], axis=1)
    return rows if free is None else np.hstack([rows, np.tile(free, (len(pairs), 1))])


def _check(
    density: StanDensity, expected: Callable[[FloatArray], float], points: FloatArray
) -> None:
    """Value and gradient, the gradient by central differences."""
    assert density.dimension == points.shape[1]
    for u in points:
        value, slope = density(u)
        assert np.isfinite(value)
        assert value == pytest.approx(expected(u), rel=1e-11, abs=1e-10)
        step = 1e-5 * np.eye(len(u))
        numerical = [(expected(u + each) - expected(u - each)) / 2e-5 for each in step]
        # Rounding, 1e-16 times the value, over the step; the third derivative times its square.
        np.testing.assert_allclose(slope, numerical, rtol=1e-6, atol=1e-4 + 1e-10 * abs(value))
