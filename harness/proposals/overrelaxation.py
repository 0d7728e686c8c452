"""Ordered overrelaxation: move to the opposite place among draws and the current point, sorted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.proposals.chance import Chance, IntArray

Key = Callable[[FloatArray], FloatArray]
"""Points (n, D) to the numbers by which they are sorted, (n,), finite."""

DrawFor = Callable[[IntArray, Chance], FloatArray]
"""Chains' numbers (m,), perhaps repeated, to a draw for each of them, (m, D)."""


@dataclass(frozen=True)
class Sizes:
    """A number of draws that adapts itself: few near the median, many at the edges.

    Draws are made one at a time until ``fewest`` / 2 of them lie on each side of the current point,
    or until there are ``most`` (Murray 2007, Algorithm 3.3, where the print does not say what K is
    in the latter case).

    Attributes
    ----------
    fewest
        K_min, 2 or more.
    most
        K_max, not less.

    Raises
    ------
    DataError
        If they are out of range.
    """

    fewest: int
    most: int

    def __post_init__(self) -> None:
        if not 2 <= self.fewest <= self.most:
            raise DataError(
                f"numbers of draws need 2 <= fewest <= most; got {self.fewest} and {self.most}"
            )


class Overrelaxed(NamedTuple):
    """Points after an update, and what it cost."""

    points: FloatArray
    """Shape (n, D)."""
    draws: IntArray
    """Draws that were made for each chain, K, shape (n,)."""


class Candidates(NamedTuple):
    """The current point of each chain and its K draws, padded to the largest K."""

    points: FloatArray
    """Shape (n, 1 + K, D), the current point first."""
    tie: IntArray
    """Random places, which decide between equal keys, shape (n, 1 + K)."""
    size: IntArray
    """Number of draws that each chain has, shape (n,)."""


def ordered_overrelaxation(
    draw: DrawFor, key: Key, points: FloatArray, chance: Chance, size: int | Sizes
) -> Overrelaxed:
    """Draw K points, sort them with the current one s_i, and move to s_{K - i}.

    It leaves a density invariant if the current point and the draws are exchangeable under it: if
    draws are from the full conditional of a coordinate, as in Gibbs sampling (Neal 1998; Murray
    2007, sections 3.3 and 3.3.1).  Equal keys are sorted at random, without regard to which point
    is the current one; if that one came first, the density would not be invariant.

    Parameters
    ----------
    draw
        Draws points for given chains.
    key
        What is sorted by.
    points
        Current points, shape (n, D).
    chance
        Source of randomness.
    size
        Number K of draws, or bounds between which it adapts itself.

    Raises
    ------
    DataError
        If K is less than 1.

    References
    ----------
    Neal, R. M. (1998). Suppressing random walks in Markov chain Monte Carlo using ordered
    overrelaxation. In Learning in Graphical Models, 205-228.
    """
    found = candidates(draw, key, points, chance, size)
    index = opposite(_keys(found, key), found.tie, found.size)
    return Overrelaxed(found.points[np.arange(len(points)), index], found.size)


def candidates(
    draw: DrawFor, key: Key, points: FloatArray, chance: Chance, size: int | Sizes
) -> Candidates:
    """Draw the points that are sorted with the current ones; see :func:`ordered_overrelaxation`."""
    count, dimension = points.shape
    if isinstance(size, Sizes):
        return _self_sized(draw, key, points, chance, size)
    if size < 1:
        raise DataError(f"overrelaxation needs a draw or more; got {size}")
    drawn = draw(np.repeat(np.arange(count), size), chance).reshape(count, size, dimension)
    return Candidates(
        np.concatenate([points[:, None], drawn], axis=1),
        chance.shuffled(count, size + 1),
        np.full(count, size),
    )


def _self_sized(
    draw: DrawFor, key: Key, points: FloatArray, chance: Chance, size: Sizes
) -> Candidates:
    """Draw one at a time for the chains that have too few on either side."""
    count, dimension = points.shape
    every = np.zeros((count, size.most + 1, dimension))
    every[:, 0] = points
    tie, number = chance.shuffled(count, size.most + 1), np.zeros(count, dtype=np.intp)
    current, rows = key(points), np.arange(count)
    above, below = np.zeros(count), np.zeros(count)
    for place in range(1, size.most + 1):
        there = draw(rows, chance)
        every[rows, place], number[rows] = there, place
        value = key(there)
        equal = value == current[rows]
        greater = np.where(equal, tie[rows, place] > tie[rows, 0], value > current[rows])
        above[rows] += greater
        below[rows] += ~greater
        rows = rows[np.minimum(above[rows], below[rows]) < size.fewest / 2]
        if not rows.size:
            break
    return Candidates(every, tie, number)


def _keys(found: Candidates, key: Key) -> FloatArray:
    """Return keys of all candidates, shape (n, 1 + K), infinite where a chain has no more."""
    count, places, dimension = found.points.shape
    keys = key(found.points.reshape(-1, dimension)).reshape(count, places)
    return np.where(np.arange(places) <= found.size[:, None], keys, np.inf)


def opposite(keys: FloatArray, tie: IntArray, size: IntArray) -> IntArray:
    """Return which candidate is at place K - i if the first one is at place i, shape (n,).

    Parameters
    ----------
    keys
        Shape (n, 1 + K), infinite where a chain has fewer candidates.
    tie
        What decides between equal keys, shape (n, 1 + K).
    size
        K of each chain, shape (n,).
    """
    order = np.lexsort((tie, keys), axis=-1)
    place = np.argmax(order == 0, axis=1)
    index: IntArray = order[np.arange(len(keys)), size - place]
    return index
