"""The diagonal that brings the modes of a Boltzmann machine relaxation closest together.

A small semidefinite programme with a barrier in closed form: Newton's method in NumPy solves it
in a few milliseconds, and the dual solution that comes with it proves how good it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError

RELATIVE_GAP = 1e-9
"""Duality gap at which the programme counts as solved, relative to the optimum."""

_SHRINK = 0.2  # of the barrier from one round to the next; smaller costs more Newton steps
_MOST_STEPS = 1000  # about 170 are needed for 30 units


class OptimalDiagonal(NamedTuple):
    """Solution of the programme with its certificate."""

    diagonal: FloatArray
    """Diagonal of D, shape (d_b,)."""
    largest_eigenvalue: float
    """Largest eigenvalue of W + D."""
    lower_bound: float
    """Value of a feasible point of the dual: no D does better than this."""


def optimal_diagonal(weights: FloatArray) -> OptimalDiagonal:
    """Minimise the largest eigenvalue of W + D over diagonal D with W + D positive semi-definite.

    Follows the central path of minimise t subject to 0 <= W + D <= t I (Graham and Storkey
    2017, eq. 46): with A = W + D and B = t I - A it minimises t - mu (log det A + log det B)
    by damped Newton steps, which stay inside, while mu falls.  X = mu A^-1 and
    Y = mu B^-1 solve the dual, maximise tr((Y - X) W) subject to X, Y >= 0, diag X = diag Y and
    tr Y = 1, but for a scaling that makes them feasible to the last digit.

    Of many optimal D, and instances drawn by the papers' recipe have many, it approaches the
    limit of the central path, which does not depend on where it starts.

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
        if decrement < 1e-3:  # near enough to the path for the dual point to be good
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
    """Inverses of A = W + D and B = t I - A."""
    a = w + np.diag(diagonal)
    b = bound * np.eye(len(w)) - a
    return np.asarray(np.linalg.inv(a), np.float64), np.asarray(np.linalg.inv(b), np.float64)


def _newton_step(a: FloatArray, b: FloatArray, barrier: float) -> tuple[FloatArray, float]:
    """Newton step in (diagonal of D, t) from the inverses A^-1 and B^-1, and its decrement."""
    gradient = np.append(np.diag(b) - np.diag(a), 1 / barrier - np.trace(b))
    of_b = b * b
    hessian = np.empty((len(a) + 1, len(a) + 1))
    hessian[:-1, :-1] = a * a + of_b
    hessian[:-1, -1] = hessian[-1, :-1] = -of_b.sum(axis=0)
    hessian[-1, -1] = of_b.sum()
    step: FloatArray = -np.linalg.solve(hessian, gradient)
    return step, max(0.0, -float(gradient @ step)) ** 0.5


def _dual_value(w: FloatArray, x: FloatArray, y: FloatArray) -> float:
    """Value of the dual at X and Y, scaled to tr Y = 1 and diag X = diag Y."""
    y = y / np.trace(y)
    ratio = np.sqrt(np.diag(y) / np.diag(x))
    return float(np.sum((y - ratio[:, None] * x * ratio) * w))
