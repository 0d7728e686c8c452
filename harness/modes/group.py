"""The group of changes of places and signs that leaves a density, and draws brought to one copy.

In a mixture whose components have no names, or a factor model whose factors have no signs, each
mode has copies: every element of the group makes one of another.  Draws that are all in one copy
are brought to the others by the group, and draws in any copies are brought to one by it: of the
group's images of a draw, the one nearest to a pivot is taken (Marin, Mengersen and Robert 2005).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, rows_of
from harness.modes.permutations import Values
from harness.modes.symmetries import Symmetries

IntArray = npt.NDArray[np.intp]
MOST_ELEMENTS = 5040
"""Largest group that is used: that of all orders of seven entries."""
_MOST_NUMBERS = 20_000_000
"""Numbers that a group, or the scores of some draws, may take in memory."""
_ALIKE = 1e-9
"""Relative difference of entries that rounding may make."""
_PIVOTS = 20
"""Times at most that the pivot becomes the mean of what is nearest to it."""


@dataclass(frozen=True)
class Group:
    """A finite group of places and signs of the M entries of all parameters.

    A row has the entries of all parameters less their centres.  Element g takes a row x to the row
    whose m-th entry is ``sign[g, m] * x[order[g, m]]``; element 0 changes nothing.

    Attributes
    ----------
    centres
        Where each parameter is mirrored, of its shape; rows have the parameters one after the
        other, each in C order.
    order, sign
        Shape (G, M).
    """

    centres: Mapping[str, FloatArray]
    order: IntArray
    sign: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.order)

    def rows(self, values: Values) -> FloatArray:
        """Return draws, each parameter (n, *shape), as rows (n, M)."""
        return _rows(values, self.centres)

    def values(self, rows: FloatArray) -> dict[str, FloatArray]:
        """Return rows (n, M) as draws, each parameter (n, *shape)."""
        return _values(rows, self.centres)

    def applied(self, elements: IntArray, rows: FloatArray) -> FloatArray:
        """Return rows (n, M), each changed by the element (n,) of the group that it has."""
        return self.sign[elements] * np.take_along_axis(rows, self.order[elements], axis=1)

    @property
    def numbers_changed(self) -> IntArray:
        """How many entries each element moves or mirrors, shape (G,)."""
        changed: IntArray = ((self.order != self.order[0]) | (self.sign < 0)).sum(axis=1)
        return changed

    def changed(self, element: int) -> tuple[list[str], list[str]]:
        """Return the parameters with entries that change places, and with mirrored ones."""
        owner = np.repeat(list(self.centres), [centre.size for centre in self.centres.values()])
        moved = owner[self.order[element] != np.arange(len(owner))]
        mirrored = owner[self.sign[element] < 0]
        return list(dict.fromkeys(moved.tolist())), list(dict.fromkeys(mirrored.tolist()))


def _rows(values: Values, centres: Values) -> FloatArray:
    return rows_of({name: values[name] - centre for name, centre in centres.items()})


def _values(rows: FloatArray, centres: Values) -> dict[str, FloatArray]:
    ends = np.cumsum([centre.size for centre in centres.values()])
    parts = np.split(rows, ends[:-1], axis=1)
    return {
        name: part.reshape(len(rows), *centre.shape) + centre
        for (name, centre), part in zip(centres.items(), parts, strict=True)
    }


def generated_group(symmetries: Symmetries) -> Group | None:
    """Return the group that changes of parameters generate; None if it is too large."""
    centres = symmetries.centres
    size = sum(centre.size for centre in centres.values())
    most = min(MOST_ELEMENTS, _MOST_NUMBERS // max(size, 1))
    elements = _closed(_signed_places(symmetries, size), size, most)
    if elements is None:
        return None
    if symmetries.places:
        elements = _different(elements, _rows(symmetries.places, centres))
    return Group(dict(centres), np.abs(elements) - 1, np.sign(elements).astype(np.int8))


def _different(elements: IntArray, rows: FloatArray) -> IntArray:
    """Leave out elements (G, M) that do to some rows (n, M) what an earlier one does.

    If both counted, there would be more copies than there are, and each draw would be in several.
    """
    effect = np.concatenate([np.sign(elements) * row[np.abs(elements) - 1] for row in rows], axis=1)
    # Those that do the same are next to each other along any direction.
    direction = np.random.default_rng(0).standard_normal(effect.shape[1])
    along = effect @ direction
    ranked = np.argsort(along, kind="stable")
    apart = _ALIKE * float(np.abs(direction).sum()) * (1 + float(np.abs(effect).max()))
    kept = np.ones(len(elements), dtype=bool)
    for run in np.split(ranked, np.flatnonzero(np.diff(along[ranked]) > apart) + 1):
        first: list[int] = []
        for each in np.sort(run).tolist():
            near = _ALIKE * (1 + np.abs(effect[each]))
            if any(np.all(np.abs(effect[each] - effect[one]) <= near) for one in first):
                kept[each] = False
            else:
                first.append(each)
    return elements[kept]


def _closed(generators: Sequence[IntArray], size: int, most: int) -> IntArray | None:
    """Return all products of signed places (M,), shape (G, M); None if they are more than so many.

    The first one changes nothing.  A generator that others make already is left out.
    """
    identity = np.arange(1, size + 1, dtype=np.intp)
    known = {identity.tobytes()}
    elements, used = identity[None], list[IntArray]()
    for generator in generators:
        if generator.tobytes() in known:
            continue
        used.append(generator)
        fresh = elements
        while len(fresh):
            products = [np.sign(each) * fresh[:, np.abs(each) - 1] for each in used]
            made = {row.tobytes(): row for row in np.concatenate(products)}
            new = [row for key, row in made.items() if key not in known]
            known.update(row.tobytes() for row in new)
            if len(known) > most:
                return None
            fresh = np.array(new, dtype=np.intp).reshape(-1, size)
            elements = np.concatenate([elements, fresh])
    return elements


def _signed_places(symmetries: Symmetries, size: int) -> list[IntArray]:
    """Return what each change does to the row 1, ..., M: where entries go, and their signs."""
    numbers = np.arange(1.0, size + 1)[None]
    found = []
    for change in symmetries.changes:
        after = _rows(change(_values(numbers, symmetries.centres)), symmetries.centres)[0]
        places = np.rint(after).astype(np.intp)
        # Entries that change places but have other centres are no signed places.
        if np.array_equal(np.sort(np.abs(places)), np.arange(1, size + 1)):
            found.append(places)
    return found


@dataclass(frozen=True)
class OneCopy:
    """Which of the images of a row under a group is nearest to a pivot.

    Attributes
    ----------
    group
        The group.
    images
        What the scalar product with a row tells how near each image is, shape (G, M).
    """

    group: Group
    images: FloatArray

    def nearest(self, rows: FloatArray) -> IntArray:
        """Return the element of the group that brings each row (n, M) nearest to the pivot."""
        each = max(1, _MOST_NUMBERS // len(self.group))
        parts = [
            (rows[begin : begin + each] @ self.images.T).argmax(axis=1)
            for begin in range(0, len(rows), each)
        ]
        return np.concatenate(parts)

    def brought(self, rows: FloatArray) -> FloatArray:
        """Return rows (n, M), each at its image that is nearest to the pivot."""
        return self.group.applied(self.nearest(rows), rows)


def copy_around(group: Group, rows: FloatArray, pivot: FloatArray) -> OneCopy:
    """Return the copy around a pivot that is the mean of the rows that are brought to it.

    Distances are in units of the standard deviations of these, averaged over the group, in which
    all images of a row are equally far from 0.

    Parameters
    ----------
    group
        The group.
    rows
        Draws, shape (n, M).
    pivot
        One of them to begin with, shape (M,), where the density is high.
    """
    copy = _copy_at(group, pivot, rows.std(axis=0))
    elements = copy.nearest(rows)
    for _ in range(_PIVOTS):
        near = group.applied(elements, rows)
        copy = _copy_at(group, near.mean(axis=0), near.std(axis=0))
        before, elements = elements, copy.nearest(rows)
        if np.array_equal(before, elements):
            break
    return copy


def _copy_at(group: Group, pivot: FloatArray, spread: FloatArray) -> OneCopy:
    variance = np.square(spread)[group.order].mean(axis=0)
    weight = pivot / np.where(variance > 0, variance, 1.0)
    # <g x, p> = sum over m of sign[g, m] x[order[g, m]] p[m], so entry order[g, m] of x has the
    # factor sign[g, m] p[m].
    images = np.empty(group.order.shape)
    np.put_along_axis(images, group.order, group.sign * weight, axis=1)
    return OneCopy(group, images)
