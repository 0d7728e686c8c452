"""The diagonal that brings the modes of a Boltzmann machine relaxation closest together.

It solves a small semidefinite programme whose barrier has a closed form: Newton's method in NumPy
takes a few milliseconds, and the dual solution that it yields proves how good the result is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError

RELATIVE_GAP = 1e-9
"""Duality gap, relative to the optimum, at which the programme counts as solved."""

_SHRINK = 0.2  # factor of the barrier from round to round; smaller ones take more Newton steps
_MOST_STEPS = 1000  # about 170 are needed for 30 units


class OptimalDiagonal(NamedTuple):
    """Solution of the programme, with a certificate of how good it is."""

    diagonal: FloatArray
    """Diagonal of D, shape (d_b,)."""
    largest_eigenvalue: float
    """Largest eigenvalue of W + D."""
    lower_bound: float
    """Value of the dual at a feasible point: no D has a smaller largest eigenvalue."""


def optimal_diagonal(weights: FloatArray) -> OptimalDiagonal:
    """Minimise the largest eigenvalue of W + D over diagonal D with W + D positive semi-definite.

    This follows the central path of minimising t subject to 0 <= W + D <= t I (Graham and Storkey
    2017, eq. 46).  With A = W + D and B = t I - A it minimises t - mu (log det A + log det B) by
    damped Newton steps, which stay inside, while mu falls.  Up to a scaling that makes them
    feasible to the last digit, X = mu A^-1 and Y = mu B^-1 solve the dual: maximise tr((Y - X) W)
    subject to X, Y >= 0, diag X = diag Y and tr Y = 1.

    Often many D are optimal, in particular for instances that are drawn by the papers' recipe.
    The result then approaches the limit of the central path, which does not depend on the start.

    Parameters
    ----------
    weights
        Symmetric matrix W with zero diagonal, not all zero, shape (d_b, d_b).

    Raises
    ------
    DataError
        If W is zero, or the gap does not close (badly scaled weights).
    """
    extremes = np.linalg.eigvalsh(weights)
    scale = float(np.max(np.abs(extremes)))
    if scale == 0:
        raise DataError("a Boltzmann machine whose weights are all zero has no relaxation")
    w = weights / scale
    diagonal = np.full(len(w), 1 - extremes[0] / scale)
    bound = float(extremes[-1] - extremes[0]) / scale + 2
    barrier = 1.0
    for _ in range(_MOST_STEPS):
        inverse_a, inverse_b = _inverses(w, diagonal, bound)
        step, decrement = _newton_step(inverse_a, inverse_b, barrier)
        if decrement < 1e-3:  # close enough to the path for a good point of the dual
            largest = float(np.linalg.eigvalsh(w + np.diag(diagonal))[-1])
            lower = _dual_value(w, barrier * inverse_a, barrier * inverse_b)
            if largest - lower <= RELATIVE_GAP * largest:
                return OptimalDiagonal(diagonal * scale, largest * scale, lower * scale)
            barrier *= _SHRINK
            continue
        length = 1.0 if decrement < 0.25 else 1 / (1 + decrement)
        diagonal = diagonal + length * step[:-1]
        bound += length * float(step[-1])
    raise DataError(
        "the semidefinite programme for the relaxation's diagonal did not converge; "
        "are the weights of very different sizes?"
    )


def _inverses(w: FloatArray, diagonal: FloatArray, bound: float) -> tuple[FloatArray, FloatArray]:
    """Return the inverses of A = W + D and of B = t I - A."""
    a = w + np.diag(diagonal)
    b = bound * np.eye(len(w)) - a
    return np.asarray(np.linalg.inv(a), np.float64), np.asarray(np.linalg.inv(b), np.float64)


def _newton_step(a: FloatArray, b: FloatArray, barrier: float) -> tuple[FloatArray, float]:
    """Return the Newton step in (diagonal of D, t), given A^-1 and B^-1, and its decrement."""
    gradient = np.append(np.diag(b) - np.diag(a), 1 / barrier - np.trace(b))
    of_b = b * b
    hessian = np.empty((len(a) + 1, len(a) + 1))
    hessian[:-1, :-1] = a * a + of_b
    hessian[:-1, -1] = hessian[-1, :-1] = -of_b.sum(axis=0)
    hessian[-1, -1] = of_b.sum()
    step: FloatArray = -np.linalg.solve(hessian, gradient)
    return step, max(0.0, -float(gradient @ step)) ** 0.5


def _dual_value(w: FloatArray, x: FloatArray, y: FloatArray) -> float:
    """Return the value of the dual at X and Y, scaled to tr Y = 1 and diag X = diag Y."""
    y = y / np.trace(y)
    ratio = np.sqrt(np.diag(y) / np.diag(x))
    return float(np.sum((y - ratio[:, None] * x * ratio) * w))
