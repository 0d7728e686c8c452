"""Starting points of climbs in known modes, of which some elements are drawn anew.

Several groups, planets or sensors may each have modes of their own.  A start at random has to be
right about all of them at once.  One that takes all but one of them from a known mode has to be
right about that one alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.user.one_copy import unconstrained_within

_EACH_APART = 0.5
"""Share of points whose new elements are not those of one other point."""
_TRIED = 8
"""Pairs of points that tell whether an element of a parameter can be changed without the others."""

_Rows = npt.NDArray[np.intp]
_Chosen = Mapping[str, npt.NDArray[np.bool_]]
"""Which elements of each parameter are drawn anew at each point, shape (n, ...)."""


class _Kinds(NamedTuple):
    """Rows of points of which a group, an element or a whole parameter is drawn anew."""

    groups: _Rows
    elements: _Rows
    whole: _Rows


class PartlyAnew:
    """Points of which some elements are replaced.

    New elements are those of one other point or, in half of the cases, each of another one, between
    two that are neighbours in size: so they need not be among the given ones.

    A third of all have another group: the elements with one index along first axes of one length,
    as groups of a mixture have them.  A third have another parameter as a whole, and a third
    another element of one parameter.

    Parameters
    ----------
    density
        The density.
    anew
        Points (n, D) from which new elements are taken: draws of the prior, for example.
    """

    def __init__(self, density: BatchedDensity, anew: FloatArray) -> None:
        self._density, self._shapes = density, density.shapes
        values = density.constrain(anew, rejected="nan")
        known = np.all(
            [np.isfinite(each.reshape(len(anew), -1)).all(axis=1) for each in values.values()],
            axis=0,
        )
        self._anew = {name: each[known] for name, each in values.items() if each.size}
        self._apart = [name for name in self._anew if self._can_be_apart(name)]
        self._sorted = {
            name: np.sort(each.reshape(len(each), -1), axis=0)
            for name, each in self._anew.items()
            if name in self._apart or each.size == len(each)
        }
        lengths = [self._shapes[name][0] for name in self._apart]
        self._lengths = sorted({each for each in lengths if each > 1})

    def _can_be_apart(self, name: str) -> bool:
        """Whether a parameter has more than one element, and one can change without the others."""
        values = {each: value[:_TRIED].copy() for each, value in self._anew.items()}
        of_this = values[name].reshape(len(values[name]), -1)
        if of_this.shape[1] < 2 or len(of_this) < 2:
            return False
        of_this[:, 0] = np.roll(of_this[:, 0], 1)
        values[name] = of_this.reshape(values[name].shape)
        return bool(np.any(unconstrained_within(self._density, values)[1]))

    def __call__(self, points: FloatArray, rng: np.random.Generator) -> list[FloatArray]:
        """Return points (n, D) with some elements anew; fewer if constraints forbid some.

        Those with a group, an element or a whole parameter anew are arrays of their own: how high
        they are differs by what they keep.
        """
        if not len(next(iter(self._anew.values()))):
            return []
        count = len(points)
        kinds = self._kinds(count, rng)
        values = self._density.constrain(points, rejected="nan")
        new, chosen = self._new(count, rng), self._chosen(count, kinds, rng)
        mixed = {
            name: np.where(chosen[name].reshape(each.shape), new[name], each)
            if name in chosen
            else each
            for name, each in values.items()
        }
        starts, within = unconstrained_within(self._density, mixed)
        each = [starts[rows[within[rows]]] for rows in kinds]
        return [starts for starts in each if len(starts)]

    def _kinds(self, count: int, rng: np.random.Generator) -> _Kinds:
        """Share rows out among the kinds of new elements that there are."""
        groups, elements, whole = np.array_split(rng.permutation(count), 3)
        if not self._apart:
            return _Kinds(groups[:0], elements[:0], np.arange(count))
        if not self._lengths:
            return _Kinds(groups[:0], np.concatenate([groups, elements]), whole)
        return _Kinds(groups, elements, whole)

    def _new(self, count: int, rng: np.random.Generator) -> dict[str, FloatArray]:
        """Return new values of each parameter, shape (count, ...)."""
        number = len(next(iter(self._anew.values())))
        taken = rng.integers(number, size=count)
        new = {name: each[taken] for name, each in self._anew.items()}
        if number < 2:
            return new
        apart = rng.random(count) < _EACH_APART
        for name, each in self._sorted.items():
            place = rng.uniform(0, number - 1, (count, each.shape[1]))
            below = np.minimum(place.astype(np.intp), number - 2)
            lower, upper = (np.take_along_axis(each, k, axis=0) for k in (below, below + 1))
            between = lower + (place - below) * (upper - lower)
            new[name][apart] = between.reshape(new[name].shape)[apart]
        return new

    def _chosen(self, count: int, kinds: _Kinds, rng: np.random.Generator) -> _Chosen:
        """Return which elements change at each of some points."""
        chosen = {
            name: np.zeros((count, *each.shape[1:]), dtype=np.bool_)
            for name, each in self._anew.items()
        }
        length = rng.choice(self._lengths or [1], size=len(kinds.groups))
        index = rng.integers(length)
        for name in self._apart:
            of_this = length == self._shapes[name][0]
            chosen[name][kinds.groups[of_this], index[of_this]] = True
        for name, rows in _shared_out(self._apart, kinds.elements, rng):
            flat = chosen[name].reshape(count, -1)
            flat[rows, rng.integers(flat.shape[1], size=len(rows))] = True
        for name, rows in _shared_out(list(chosen), kinds.whole, rng):
            chosen[name][rows] = True
        return chosen


def _shared_out(
    names: Sequence[str], rows: _Rows, rng: np.random.Generator
) -> Iterator[tuple[str, _Rows]]:
    """Share rows out among names at random."""
    which = rng.integers(max(len(names), 1), size=len(rows))
    for k, name in enumerate(names):
        yield name, rows[which == k]
