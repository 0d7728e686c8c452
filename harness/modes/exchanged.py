"""Parameters, or entries of them, that change places together, found by equal gradients.

The amplitudes and rates of two exponential functions may be ``a``, ``b``, ``c`` and ``d``, or the
entries of one vector, so that neither names nor an index tell what belongs together.  But where an
exchange S of coordinates leaves a log density, its gradient g changes places likewise:
g(S x) = S g(x).  At a point where all that may change places is equal, S x = x, and so what does
change places has the same gradient.  What has is tried, all at once first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.modes.permutations import Exchange, Values
from harness.modes.target import Target

IntArray = npt.NDArray[np.intp]
_MOST_COORDINATES = 500
"""Coordinates up to which each is moved by itself to see which entries it moves."""
_MOST_ENTRIES = 16
"""Entries with a coordinate of their own up to which they are tried one by one."""
_MOST_CLASSES = 6
"""Classes up to which all sets of them are tried, and not only all at once and each alone."""
_STEP = 0.1
"""How far each coordinate is moved for that."""
_SAME = 1e-7
"""Difference of gradients that rounding may make, relative to the largest at the point."""
# A parameter's name, and the place of an entry in it, in C order from 0.
Entry = tuple[str, int]


@dataclass(frozen=True)
class ExchangedEntries:
    """Entries of parameters that take each other's values, two by two.

    Attributes
    ----------
    pairs
        The entries.
    """

    pairs: tuple[tuple[Entry, Entry], ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that it changes."""
        return tuple(dict.fromkeys(name for pair in self.pairs for name, _ in pair))

    def __call__(self, values: Values) -> dict[str, FloatArray]:
        """Return values, shape (n, *shape) by parameter, exchanged."""
        count = len(next(iter(values.values())))
        rows = {name: values[name].reshape(count, -1).copy() for name in self.parameters}
        for (one, i), (other, j) in self.pairs:
            first = rows[one][:, i].copy()
            rows[one][:, i] = rows[other][:, j]
            rows[other][:, j] = first
        changed = dict(values)
        changed |= {name: row.reshape(values[name].shape) for name, row in rows.items()}
        return changed


def exchanged_together(
    target: Target, points: FloatArray, mirrored: Values
) -> Iterator[Exchange | ExchangedEntries]:
    """Yield parameters and entries that may change places, by what the gradient shows.

    Parameters
    ----------
    target
        The density.
    points
        Two or more points (n, D) in general positions, from the posterior.
    mirrored
        Where parameters can be mirrored: others may change places while they are.
    """
    if points.shape[1] > _MOST_COORDINATES:
        return
    moved = _moved(target, points[0])
    own = {name: _owned(moved, name) for name in moved}
    middle = _between_bounds(target, points, own, mirrored)
    wholes: dict[int, list[str]] = {}
    for name, coordinates in own.items():
        wholes.setdefault(len(coordinates), []).append(name)
    names = [name for alike in wholes.values() for name in alike if len(alike) > 1]
    entries = _entries(moved)
    several = len(entries) <= _MOST_ENTRIES and any(len(own[name]) > 1 for name, _ in entries)
    for zero in dict.fromkeys([(), middle]):
        units = [own[name] for name in names]
        for classes in _pairs(_alike(target, points, units, zero)):
            yield Exchange(tuple((names[i], names[j]) for i, j in classes))
        if several:
            alone = list(entries)
            units = [np.array([entries[each]]) for each in alone]
            for classes in _pairs(_alike(target, points, units, zero)):
                yield ExchangedEntries(tuple((alone[i], alone[j]) for i, j in classes))


def _moved(target: Target, point: FloatArray) -> dict[str, npt.NDArray[np.bool_]]:
    """Return by parameter which of its entries (M) each coordinate (D) moves, shape (D, M)."""
    several = np.concatenate([point[None], point + _STEP * np.eye(len(point))])
    values = target.constrain(several)
    rows = {name: value.reshape(len(several), -1) for name, value in values.items()}
    return {name: row[1:] != row[:1] for name, row in rows.items()}


def _owned(moved: Mapping[str, npt.NDArray[np.bool_]], name: str) -> IntArray:
    """Return the coordinates of a parameter: those that move it, and none declared before it."""
    here = np.any(moved[name], axis=1)
    for before in list(moved)[: list(moved).index(name)]:
        here &= ~np.any(moved[before], axis=1)
    return np.flatnonzero(here)


def _entries(moved: Mapping[str, npt.NDArray[np.bool_]]) -> dict[Entry, int]:
    """Return the coordinate of each entry that has one of its own, which moves nothing else."""
    every = np.concatenate(list(moved.values()), axis=1)
    places = [(name, m) for name, here in moved.items() for m in range(here.shape[1])]
    alone = every.sum(axis=1) == 1
    return {
        place: int(np.flatnonzero(column)[0])
        for place, column in zip(places, every.T, strict=True)
        if column.sum() == 1 and np.all(alone[column])
    }


def _between_bounds(
    target: Target, points: FloatArray, own: Mapping[str, IntArray], mirrored: Values
) -> tuple[int, ...]:
    """Return the coordinates of parameters that have a middle between two bounds, where they are 0.

    A parameter without bounds is its own coordinates.
    """
    values = target.constrain(points)
    found: list[int] = []
    for name in mirrored:
        here = values[name].reshape(len(points), -1)
        if not np.array_equal(here, points[:, own[name]]):
            found += own[name].tolist()
    return tuple(found)


def _alike(
    target: Target, points: FloatArray, units: Sequence[IntArray], zero: tuple[int, ...]
) -> list[list[int]]:
    """Return classes of two or more units, sets of coordinates, that have the same gradient.

    Units of one size are equal at the points, and some coordinates are 0.
    """
    equal = points.copy()
    sizes = {len(each) for each in units}
    for row, point in enumerate(points):
        for size in sizes:
            some = [each for each in units if len(each) == size]
            for each in some:
                equal[row, each] = point[some[row % len(some)]]
    equal[:, list(zero)] = 0.0
    gradient = target(equal)[1]
    seen = np.all(np.isfinite(gradient), axis=1) & np.any(gradient != 0, axis=1)
    if not np.any(seen):
        return []
    gradient = gradient[seen] / np.abs(gradient[seen]).max(axis=1, keepdims=True)
    classes: list[list[int]] = []
    for number, unit in enumerate(units):
        for known in classes:
            first = units[known[0]]
            if len(first) == len(unit) and np.allclose(
                gradient[:, first], gradient[:, unit], rtol=0, atol=_SAME
            ):
                known.append(number)
                break
        else:
            classes.append([number])
    return [each for each in classes if len(each) > 1]


def _pairs(classes: Sequence[Sequence[int]]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield pairs that change places at once: those of the same places in several classes."""
    longest = max((len(each) for each in classes), default=0)
    for i, j in combinations(range(longest), 2):
        here = [(each[i], each[j]) for each in classes if j < len(each)]
        few = len(here) <= _MOST_CLASSES
        for count in range(len(here), 0, -1) if few else dict.fromkeys((len(here), 1)):
            yield from combinations(here, count)
