"""Entries of any parameters that are mirrored together, found by the parity of the gradient.

The loadings on a factor may be a part of a vector, and its correlations with other factors entries
of a Cholesky factor, so that what changes sign together need not share an index.  But where a
change S of signs leaves a log density, its gradient g changes signs likewise: g(S x) = S g(x).  At
a point x of which only the coordinates in two sets A and B are not 0, let s_A and s_B be the signs
that S gives them.  The part of g_i that is odd or even in x_A, and odd or even in x_B, must be 0
unless s_i is the product of those of s_A and s_B in which it is odd.  Each part that is not 0
therefore is a linear equation modulo 2 for what S mirrors, and what solves all of them is tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, rows_of
from harness.errors import DataError
from harness.modes.permutations import Values
from harness.modes.target import Target

BoolArray = npt.NDArray[np.bool_]
_MOST_COORDINATES = 500
"""Coordinates up to which each is mirrored by itself to see what it does."""
_MOST_SETS = 24
"""Sets of coordinates up to which all pairs of them are moved away from 0."""
_MOST_TOGETHER = 6
"""Solutions of the equations up to which all of their sums are tried, and not only they."""
_MOST_ALONE = 12
"""Solutions up to which those count that mirror a single coordinate: a group of more would be too
large, as where a vector is in the prior alone."""
_MOST_LOOKS = 4
"""Looks from an origin that is moved where nothing can be mirrored, as one look has shown."""
_SAME = 1e-8
"""Relative difference of coordinates or entries that rounding may make."""
_NO_PART = 1e-7
"""The same for parts of the gradient, relative to the largest gradient of the coordinate."""


@dataclass(frozen=True)
class MirroredEntries:
    """Some entries of parameters mirrored.

    Attributes
    ----------
    mirrored
        Whether each entry of a parameter is, of its shape; only parameters of which some are.
    centres
        Where they are mirrored, of the same shapes.
    """

    mirrored: Mapping[str, BoolArray]
    centres: Values

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that it changes."""
        return tuple(self.mirrored)

    def __call__(self, values: Values) -> dict[str, FloatArray]:
        """Return values, shape (n, *shape) by parameter, mirrored."""
        changed = dict(values)
        for name, here in self.mirrored.items():
            value = values[name]
            changed[name] = np.where(here, 2 * self.centres[name] - value, value)
        return changed


class Span:
    """What rows of bits generate by sums modulo 2.

    Attributes
    ----------
    rows
        Rows that generate it, by their highest bit, which no other of them has.
    """

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}
        self._highest = 0

    def add(self, row: int) -> None:
        """Add a row to those that generate it."""
        row = self._rest(row)
        if row:
            highest = row.bit_length() - 1
            for bit, other in self.rows.items():
                if other >> highest & 1:
                    self.rows[bit] = other ^ row
            self.rows[highest] = row
            self._highest |= 1 << highest

    def __contains__(self, row: int) -> bool:
        return self._rest(row) == 0

    def _rest(self, row: int) -> int:
        """Return what is left of a row without the highest bits of the rows."""
        while common := row & self._highest:
            row ^= self.rows[common.bit_length() - 1]
        return row


def mirrored_together(target: Target, points: FloatArray) -> Iterator[MirroredEntries]:
    """Yield entries that may be mirrored together, by what the gradient shows of the density.

    Those that are yielded first generate the others.

    Parameters
    ----------
    target
        The density.
    points
        Two or more points (n, D) in general positions, from the posterior.
    """
    if points.shape[1] > _MOST_COORDINATES:
        return
    points = target.unconstrain_draws(target.constrain(points), lengths="one")
    switches = _switches(target, points)
    if not len(switches):
        return
    solutions = _solutions(target, points, switches)
    if len(solutions) > _MOST_ALONE:
        solutions = [each for each in solutions if _coordinates(each, switches).sum() > 1]
    for each in _sums(solutions):
        entries = _entries(target, points, _coordinates(each, switches))
        if entries is not None:
            yield entries


def _sums(solutions: list[int]) -> Iterator[int]:
    """Yield solutions and, if they are few, sums of several of them."""
    yield from solutions
    if len(solutions) <= _MOST_TOGETHER:
        for count in range(2, len(solutions) + 1):
            for some in combinations(solutions, count):
                total = 0
                for each in some:
                    total ^= each
                yield total


def _switches(target: Target, points: FloatArray) -> BoolArray:
    """Return sets of coordinates that can be mirrored, shape (V, D).

    Most are single coordinates.  Those behind a correlation matrix can be mirrored in rows and
    columns of it, and those behind a vector that sums to zero all at once.
    """
    count, dimension = points.shape
    values = rows_of(target.constrain(points))
    mirrored = np.repeat(points[None], dimension, axis=0)
    each = np.arange(dimension)
    mirrored[each, :, each] *= -1
    after = rows_of(target.constrain(mirrored.reshape(-1, dimension)))
    alone = _signs_only(values[None], after.reshape(dimension, count, -1))
    found = [row for row, good in zip(np.eye(dimension, dtype=bool), alone, strict=True) if good]
    for change in _whole_or_rows(target.constrain(points)):
        try:
            there = target.unconstrain_draws(change, lengths="one")
        except DataError:
            continue
        negated = np.all(np.isclose(there, -points, rtol=_SAME, atol=0), axis=0)
        kept = np.all(np.isclose(there, points, rtol=_SAME, atol=_SAME), axis=0)
        if np.all(negated | kept) and np.any(negated & ~alone):
            found.append(negated & ~kept)
    return np.array(found, dtype=bool).reshape(-1, dimension)


def _signs_only(before: FloatArray, after: FloatArray) -> BoolArray:
    """Return which changes (k, n, M) of values (1, n, M) mirror entries and leave the others."""
    changed = np.any(~np.isclose(after, before, rtol=_SAME, atol=_SAME), axis=1)
    middle = (after + before) / 2
    fixed = np.all(np.isclose(middle, middle[:, :1], rtol=_SAME, atol=_SAME), axis=1)
    signs: BoolArray = np.all(fixed | ~changed, axis=1) & np.any(changed, axis=1)
    return signs


def _whole_or_rows(values: Values) -> Iterator[dict[str, FloatArray]]:
    """Yield values with one parameter mirrored at 0, or one row and column of a square matrix."""
    for name, value in values.items():
        if value.ndim > 1:
            yield {**values, name: -value}
        if value.ndim > 2 and value.shape[-1] == value.shape[-2]:
            count, size = len(value), value.shape[-1]
            matrices = value.reshape(count, -1, size, size)
            for one, row in product(range(matrices.shape[1]), range(size)):
                changed = matrices.copy()
                changed[:, one, row, :] *= -1
                changed[:, one, :, row] *= -1
                yield {**values, name: changed.reshape(value.shape)}


def _solutions(target: Target, points: FloatArray, switches: BoolArray) -> list[int]:
    """Return what may be mirrored together: sets of switches, as bits, that generate the others."""
    rms = np.sqrt(np.square(points).mean(axis=0))
    scale = np.where(rms > 0, rms, 1.0)
    looked = _Equations(target, switches)
    free: BoolArray = np.any(switches, axis=0)
    for _ in range(_MOST_LOOKS):
        looked.move(np.where(free, 0.0, points[0]), [[step] for step in np.diag(scale)[free]])
        before, free = free, np.any(np.reshape(looked.classes(), (-1, len(free))), axis=0)
        if np.array_equal(before, free):
            break
    classes = looked.classes()
    if len(classes) <= _MOST_SETS:
        origin = np.where(free, 0.0, points[0])
        # Any numbers that are not alike: nothing here is a random quantity.
        numbers = 1 + np.random.default_rng(0).random(len(origin))
        steps = [np.where(each, numbers * scale, 0.0) for each in classes]
        looked.move(origin, [[step] for step in steps])
        looked.move(origin, [list(two) for two in combinations(steps, 2)])
    return sorted(looked.solved(), key=lambda bits: (bits.bit_count(), bits))


class _Equations:
    """Equations modulo 2 for the switches, which the gradient shows.

    Parameters
    ----------
    target
        The density.
    switches
        Sets of coordinates that can be mirrored, shape (V, D).
    """

    def __init__(self, target: Target, switches: BoolArray) -> None:
        self._target, self._size = target, len(switches)
        self._movable = np.any(switches, axis=0)
        # The switches that mirror each coordinate, as bits.
        self._columns = [sum(1 << v for v in np.flatnonzero(each).tolist()) for each in switches.T]
        self._largest = np.zeros(switches.shape[1])
        self._rows: set[int] = set()

    def move(self, origin: FloatArray, moves: list[list[FloatArray]]) -> None:
        """Look at the gradient at an origin (D,) and some steps (D,) from it, with any signs.

        Each move is a sum of as many steps.  What can be mirrored is 0 at the origin, unless it
        cannot by what is known; and what a step moves is mirrored together.
        """
        if not moves:
            return
        sets = len(moves[0])
        signs = np.array(list(product((1.0, -1.0), repeat=sets)))
        points = origin + signs @ np.array(moves)
        gradient = self._target(points.reshape(-1, len(origin)))[1].reshape(points.shape)
        seen = np.all(np.isfinite(gradient), axis=(1, 2))
        gradient = np.where(seen[:, None, None], gradient, 0.0)
        self._largest = np.maximum(self._largest, np.abs(gradient).max(axis=(0, 1)))
        of_sets = [[self._columns[int(np.argmax(step != 0))] for step in steps] for steps in moves]
        for odd in product((False, True), repeat=sets):
            parity = np.prod(np.where(odd, signs, 1.0), axis=1) / len(signs)
            parts = np.abs(np.einsum("s,psd->pd", parity, gradient))
            there = self._movable & (parts > _NO_PART * self._largest)
            for masks, some in zip(of_sets, there, strict=True):
                row = 0
                for mask, counts in zip(masks, odd, strict=True):
                    row ^= mask if counts else 0
                self._rows |= {row ^ self._columns[i] for i in np.flatnonzero(some).tolist()}

    def solved(self) -> list[int]:
        """Return solutions that generate all others, as bits."""
        return _null_space(self._rows, self._size)

    def classes(self) -> list[BoolArray]:
        """Return sets of coordinates that all solutions mirror together, each of shape (D,).

        What no solution mirrors is left out.
        """
        solutions = self.solved()
        alike: dict[tuple[bool, ...], list[int]] = {}
        for i in np.flatnonzero(self._movable).tolist():
            mirrors = tuple((each & self._columns[i]).bit_count() % 2 == 1 for each in solutions)
            if any(mirrors):
                alike.setdefault(mirrors, []).append(i)
        return [np.isin(np.arange(len(self._columns)), some) for some in alike.values()]


def _null_space(rows: Iterable[int], size: int) -> list[int]:
    """Return a basis of the solutions of equations modulo 2: rows and solutions are bits."""
    span = Span()
    for row in rows:
        span.add(row)
    return [
        1 << free | sum(1 << bit for bit, row in span.rows.items() if row >> free & 1)
        for free in range(size)
        if free not in span.rows
    ]


def _coordinates(solution: int, switches: BoolArray) -> BoolArray:
    """Return which coordinates a set of switches mirrors, shape (D,)."""
    on = [v for v in range(len(switches)) if solution >> v & 1]
    mirrored: BoolArray = np.logical_xor.reduce(switches[on], axis=0)
    return mirrored


def _entries(target: Target, points: FloatArray, coordinates: BoolArray) -> MirroredEntries | None:
    """Return which entries of parameters are mirrored with coordinates; None if others change."""
    before = target.constrain(points)
    after = target.constrain(np.where(coordinates, -points, points))
    if not _signs_only(rows_of(before)[None], rows_of(after)[None])[0]:
        return None
    mirrored, centres = {}, {}
    for name, value in before.items():
        changed = np.any(~np.isclose(after[name], value, rtol=_SAME, atol=_SAME), axis=0)
        if np.any(changed):
            mirrored[name] = np.asarray(changed)
            centres[name] = np.where(changed, (after[name][0] + value[0]) / 2, 0.0)
    return MirroredEntries(mirrored, centres)
