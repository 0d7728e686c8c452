"""Unconstrained values of parameters of which some are simplexes, ordered, or Cholesky factors.

The library takes three microseconds for each value of a draw that it unconstrains: a second and a
half for 1,000 draws of 470 parameters, of which one is a Cholesky factor.  Here parameters fall
into blocks, each with coordinates of its own, whose transforms are known: numbers with fixed bounds
(:mod:`harness.engine.bounds`), ordered vectors, rows of Cholesky factors of correlations, vectors
that are a linear map of their coordinates, as those that sum to zero, and simplexes whose
logarithms are one.  Which blocks there are is read off the library, and each point is compared with
what the library makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from harness.arrays import FloatArray
from harness.engine.bounds import CLOSE, FAR, PROBES, Bounds, Constrain, bounds_of_ends

IntArray = npt.NDArray[np.intp]
_MOST_COORDINATES = 1500
"""Coordinates up to which each is moved by itself to see what it changes."""
_STEP = 0.5
_SAME = 1e-12
"""Difference of values that rounding explains, where a coordinate changes others."""


@dataclass(frozen=True)
class Block:
    """Values that some coordinates of their own make.

    Attributes
    ----------
    columns, coordinates
        Their numbers among all columns of values and all coordinates.
    inverse
        Returns the coordinates of values (n, columns), NaN where there are none.
    """

    columns: IntArray
    coordinates: IntArray
    inverse: Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class Blocks:
    """All of a program's parameters in blocks.

    Attributes
    ----------
    single
        Bounds of the numbers that are a block each.
    single_columns, single_coordinates
        The columns and the coordinates of these, in the same order.
    others
        All other blocks.
    dimension
        Number D of coordinates.
    """

    single: Bounds
    single_columns: IntArray
    single_coordinates: IntArray
    others: tuple[Block, ...]
    dimension: int

    def unconstrain(self, values: FloatArray) -> FloatArray:
        """Return the unconstrained points (n, D) of values (n, columns)."""
        points = np.full((len(values), self.dimension), np.nan)
        points[:, self.single_coordinates] = self.single.unconstrain(values[:, self.single_columns])
        with np.errstate(divide="ignore", invalid="ignore"):  # at the edge of a constraint
            for each in self.others:
                points[:, each.coordinates] = each.inverse(values[:, each.columns])
        return points

    def explain(
        self, values: FloatArray, points: FloatArray, constrain: Constrain
    ) -> npt.NDArray[np.bool_]:
        """Whether each point is that of its values by the library as well, shape (n,)."""
        size = np.abs(values)
        size[:, self.single_columns] += self.single.size
        for each in self.others:
            size[:, each.columns] = size[:, each.columns].max(axis=1, keepdims=True)
        known = np.all(np.isfinite(points), axis=1)
        made = constrain(np.where(known[:, None], points, 0.0))
        rows: npt.NDArray[np.bool_] = known & np.all(np.abs(made - values) <= CLOSE * size, axis=1)
        return rows


def blocks(constrain: Constrain, dimension: int) -> Blocks | None:
    """Read the blocks of all parameters off the library.

    Parameters
    ----------
    constrain
        The library's own transform, from (n, D) to (n, columns).
    dimension
        Number D of coordinates.

    Returns
    -------
    Blocks or None
        None if there are too many coordinates, or a block of another kind.
    """
    if not 0 < dimension <= _MOST_COORDINATES:
        return None
    points = np.random.default_rng(0).standard_normal((PROBES, dimension))
    values = constrain(points)
    if not np.all(np.isfinite(values)):
        return None
    single_columns, single_coordinates, others = [], [], []
    for columns, coordinates in _together(constrain, points[0]):
        if not coordinates.size:
            continue  # a constant
        if columns.size == coordinates.size == 1:
            single_columns.append(columns)
            single_coordinates.append(coordinates)
            continue
        axes = np.zeros((1 + coordinates.size, dimension))
        axes[1 + np.arange(coordinates.size), coordinates] = 1.0
        along = constrain(axes)[:, columns]
        inverse = _inverse(points[:, coordinates], values[:, columns], along)
        if inverse is None:
            return None
        others.append(Block(columns, coordinates, inverse))
    none = np.zeros(0, dtype=np.intp)
    at, of = np.concatenate([none, *single_columns]), np.concatenate([none, *single_coordinates])
    found = Blocks(_bounds(constrain, at, of, dimension), at, of, tuple(others), dimension)
    made = found.unconstrain(values)
    near = np.abs(made - points) <= 1e-6 * (1 + np.abs(points))
    sound = np.all(near) and np.all(found.explain(values, made, constrain))
    return found if sound else None


def moved_by(constrain: Constrain, point: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which columns of values each coordinate moves from a point (D,): (D, columns)."""
    values = constrain(np.concatenate([point[None], point + _STEP * np.eye(len(point))]))
    value, moved = values[0], values[1:]
    changes: npt.NDArray[np.bool_] = np.abs(moved - value) > _SAME * (1 + np.abs(value))
    return changes


def _together(constrain: Constrain, point: FloatArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield columns that share coordinates with the coordinates that they share, each ascending."""
    moved = moved_by(constrain, point)
    coordinate, column = np.nonzero(moved)
    size = sum(moved.shape)
    edges = coo_array((np.ones(len(column)), (coordinate, len(point) + column)), (size, size))
    count, labels = connected_components(edges, directed=False)
    coordinates, columns = labels[: len(point)], labels[len(point) :]
    for k in range(count):
        yield np.flatnonzero(columns == k), np.flatnonzero(coordinates == k)


def _bounds(constrain: Constrain, columns: IntArray, coordinates: IntArray, size: int) -> Bounds:
    """Return the bounds of columns that have one coordinate each."""
    ends = np.zeros((2, size))
    ends[0, coordinates], ends[1, coordinates] = -FAR, FAR
    low, high = constrain(ends)[:, columns]
    return bounds_of_ends(low, high, np.arange(len(columns)))


def _inverse(
    points: FloatArray, values: FloatArray, along: FloatArray
) -> Callable[[FloatArray], FloatArray] | None:
    """Return what undoes the transform of a block; None if it is of no known kind.

    Parameters
    ----------
    points, values
        Some points (n, d) of its coordinates and what they make, (n, columns).
    along
        What the origin makes, and one on each of the axes, shape (1 + d, columns).
    """
    near = 1e-6 * (1 + np.abs(points))
    with np.errstate(divide="ignore", invalid="ignore"):
        for inverse in _kinds(points.shape[1], along):
            if np.all(np.abs(inverse(values) - points) <= near):
                return inverse
    return None


def _kinds(dimension: int, along: FloatArray) -> Iterator[Callable[[FloatArray], FloatArray]]:
    """Yield inverses of blocks of so many coordinates and values."""
    columns = along.shape[1]
    if columns == dimension:
        yield partial(_of_ordered, positive=False)
        yield partial(_of_ordered, positive=True)
    if columns == dimension + 1:
        yield _of_cholesky_row
    logs = np.log(along)
    logs -= logs.mean(axis=1, keepdims=True)
    if np.all(np.isfinite(logs)):
        yield partial(_of_simplex, solve=np.linalg.pinv((logs[1:] - logs[0]).T))
    if np.all(np.isfinite(along)):
        yield partial(_of_linear, solve=np.linalg.pinv((along[1:] - along[0]).T), at=along[0])


def _of_ordered(values: FloatArray, *, positive: bool) -> FloatArray:
    """Return log differences of an ordered vector; its first entry, or the log of that."""
    first = np.log(values[:, :1]) if positive else values[:, :1]
    return np.concatenate([first, np.log(np.diff(values, axis=1))], axis=1)


def _of_cholesky_row(values: FloatArray) -> FloatArray:
    """Return what makes a row of a Cholesky factor of correlations, which has length 1.

    Each entry but the last is tanh of its coordinate times what length the ones before it leave.
    """
    left = 1 - np.cumsum(np.square(values), axis=1)
    left = np.concatenate([np.ones((len(values), 1)), left[:, :-2]], axis=1)
    return np.asarray(np.arctanh(values[:, :-1] / np.sqrt(left)))


def _of_linear(values: FloatArray, *, solve: FloatArray, at: FloatArray) -> FloatArray:
    """Return the coordinates of a linear map: ``solve``, (d, columns), undoes it."""
    return np.asarray((values - at) @ solve.T)


def _of_simplex(values: FloatArray, *, solve: FloatArray) -> FloatArray:
    """Return the same for logarithms less their mean."""
    logs = np.log(values)
    return np.asarray((logs - logs.mean(axis=1, keepdims=True)) @ solve.T)
