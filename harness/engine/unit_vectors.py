"""The coordinates behind unit vectors, whose lengths no draw records.

Stan makes a unit vector of K independent standard normal numbers, divided by their length (Stan
Reference Manual, Constraint Transforms).  So the density on the unconstrained space has the factor
exp(-r^2 / 2) for a vector of length r behind it, and r follows a chi distribution of K degrees of
freedom, whatever else the program says.  What takes draws to the unconstrained space has to draw
the lengths again: Stan's own way back has length 1 for all of them, on which no density lives.

Which coordinates these are is read off the library, as in :mod:`harness.engine.bounds`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from harness.arrays import FloatArray

Constrain = Callable[[FloatArray], Mapping[str, FloatArray]]
"""Parameters at unconstrained points (n, D), each (n, *shape); NaN where a point is rejected."""

Lengths = Literal["drawn", "one"]
"""Lengths of the vectors behind unit vectors: drawn from their distribution, or 1 as Stan has them.
"""

_PROBES = 32
_CLOSE = 1e-10
_SEED = 31


def unit_vectors(constrain: Constrain, dimension: int) -> tuple[slice, ...]:
    """Return the coordinates behind each unit vector of a program.

    Parameters
    ----------
    constrain
        The library's own transform.
    dimension
        Number D of unconstrained coordinates.

    Returns
    -------
    tuple of slice
        Empty if there are none, or if the program rejects nearly every point.
    """
    points = np.random.default_rng(_SEED).normal(size=(_PROBES, dimension))
    values = constrain(points)
    kept = np.all(
        [np.isfinite(v).reshape(_PROBES, -1).all(axis=1) for v in values.values()], axis=0
    )
    if kept.sum() < _PROBES // 4:
        return ()
    points = points[kept]
    found = []
    for value in values.values():
        size = value.shape[-1]
        if value.ndim == 1 or not 0 < size <= dimension:
            continue
        directions = value[kept].reshape(len(points), -1, size)
        if np.any(np.abs(np.linalg.norm(directions, axis=2) - 1) > _CLOSE):
            continue
        windows = sliding_window_view(points, size, axis=1)
        windows = windows / np.linalg.norm(windows, axis=2, keepdims=True)
        for one in np.moveaxis(directions, 1, 0):
            same = np.all(np.abs(windows - one[:, None]) < _CLOSE, axis=(0, 2))
            found += [slice(int(k), int(k) + size) for k in np.flatnonzero(same)]
    return tuple(found)


def squared_lengths(points: FloatArray, vectors: Sequence[slice]) -> FloatArray:
    """Return the sum of squared lengths of these vectors at points (..., D), shape (...)."""
    total = np.zeros(points.shape[:-1])
    for each in vectors:
        total += np.sum(np.square(points[..., each]), axis=-1)
    return total


def with_lengths(points: FloatArray, vectors: Sequence[slice], *, freedom: int = 1) -> FloatArray:
    """Return points (n, D) with new lengths of these vectors.

    The squares of the lengths are chi-square; the same number of points gets the same lengths each
    time.

    Parameters
    ----------
    points
        No length is 0.
    vectors
        From :func:`unit_vectors`.
    freedom
        Degrees of freedom for each coordinate of a vector: 1 is Stan's density.
    """
    rng, longer = np.random.default_rng(_SEED), points.copy()
    for each in vectors:
        square = rng.chisquare(freedom * (each.stop - each.start), len(points))
        longer[:, each] *= np.sqrt(square / squared_lengths(points, [each]))[:, None]
    return longer
