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

from harness.arrays import FloatArray, rows_of
from harness.engine.blocks import moved_by
from harness.modes.permutations import Exchange, Values
from harness.modes.target import Target

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]
_MOST_COORDINATES = 500
"""Coordinates up to which each is moved by itself to see which entries it moves."""
_MOST_ENTRIES = 16
"""Entries with a coordinate of their own up to which they are tried one by one."""
_MOST_CLASSES = 6
"""Classes up to which all sets of them are tried, and not only all at once and each alone."""
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
    values = target.constrain(points)
    columns = [(name, m) for name, value in values.items() for m in range(value[0].size)]
    moved = moved_by(lambda some: rows_of(target.constrain(some)), points[0])
    own = _owned(columns, moved)
    middle = _between_bounds(values, points, own, mirrored)
    wholes: dict[int, list[str]] = {}
    for name, coordinates in own.items():
        wholes.setdefault(len(coordinates), []).append(name)
    names = [name for alike in wholes.values() for name in alike if len(alike) > 1]
    entries = _with_own(columns, moved)
    several = len(entries) <= _MOST_ENTRIES and any(len(own[name]) > 1 for name, _ in entries)
    for zero in dict.fromkeys([(), middle]):
        units = [own[name] for name in names]
        for pairs in _pairs(_alike(target, points, units, zero)):
            yield Exchange(tuple((names[i], names[j]) for i, j in pairs))
        if several:
            alone = list(entries)
            units = [np.array([entries[each]]) for each in alone]
            for pairs in _pairs(_alike(target, points, units, zero)):
                yield ExchangedEntries(tuple((alone[i], alone[j]) for i, j in pairs))


def _owned(columns: Sequence[Entry], moved: BoolArray) -> dict[str, IntArray]:
    """Return the coordinates of each parameter: those that move it, and none declared before it."""
    owner = np.array([name for name, _ in columns])[moved.argmax(axis=1)]
    names = dict.fromkeys(name for name, _ in columns)
    return {name: np.flatnonzero((owner == name) & moved.any(axis=1)) for name in names}


def _with_own(columns: Sequence[Entry], moved: BoolArray) -> dict[Entry, int]:
    """Return the coordinate of each entry that has one of its own, which moves nothing else."""
    alone = moved & (moved.sum(axis=1, keepdims=True) == 1) & (moved.sum(axis=0) == 1)
    return {columns[m]: int(i) for m, i in zip(*np.nonzero(alone.T), strict=True)}


def _between_bounds(
    values: Values, points: FloatArray, own: Mapping[str, IntArray], mirrored: Values
) -> tuple[int, ...]:
    """Return the coordinates of parameters that have a middle between two bounds, where they are 0.

    A parameter without bounds is its own coordinates.
    """
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
