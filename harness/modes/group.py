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
"""Largest group that is listed: that of all orders of seven entries."""
_MOST_NUMBERS = 20_000_000
"""Numbers that a group, or the scores of some draws, may take in memory."""
_ALIKE = 1e-9
"""Relative difference of entries that rounding may make."""


@dataclass(frozen=True)
class Entries:
    """The M entries of all parameters, less their centres, in rows.

    Attributes
    ----------
    centres
        Where each parameter is mirrored, of its shape; rows have the parameters one after the
        other, each in C order.
    """

    centres: Mapping[str, FloatArray]

    def rows(self, values: Values) -> FloatArray:
        """Return draws, each parameter (n, *shape), as rows (n, M)."""
        return _rows(values, self.centres)

    def values(self, rows: FloatArray) -> dict[str, FloatArray]:
        """Return rows (n, M) as draws, each parameter (n, *shape)."""
        return _values(rows, self.centres)

    def owners(self, which: npt.ArrayLike) -> list[str]:
        """Return the parameters that some entries, by number or by a mask (M,), belong to."""
        sizes = [centre.size for centre in self.centres.values()]
        owner = np.repeat(list(self.centres), sizes)[np.asarray(which)]
        return list(dict.fromkeys(owner.tolist()))


@dataclass(frozen=True)
class Group(Entries):
    """A finite group of places and signs of the entries of all parameters.

    Element g takes a row x to the row whose m-th entry is ``sign[g, m] * x[order[g, m]]``; element
    0 changes nothing.

    Attributes
    ----------
    order, sign
        Shape (G, M).
    """

    order: IntArray
    sign: npt.NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.order)

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
        return (
            self.owners(self.order[element] != self.order[0]),
            self.owners(self.sign[element] < 0),
        )

    def words(self, element: int) -> str:
        """Say what an element changes."""
        moved, mirrored = self.changed(element)
        told = [
            f"{', '.join(names)} {how}"
            for names, how in ((moved, "in another order"), (mirrored, "mirrored"))
            if names
        ]
        return " and ".join(told)

    @property
    def kinds(self) -> set[str]:
        """What elements change, in words."""
        return {self.words(each) for each in range(1, len(self))}

    def at_random(self, rows: FloatArray, shape: tuple[int, int], seed: int) -> FloatArray:
        """Return rows (n, M) of draws of some shape, each moved by a random element.

        Every element occurs in each chain as often as another, but for one.
        """
        rng = np.random.default_rng([seed, 17])
        chains, draws = shape
        elements = [
            rng.permutation(np.resize(rng.permutation(len(self)), draws).astype(np.intp))
            for _ in range(chains)
        ]
        return self.applied(np.concatenate(elements), rows)

    def copy_at(self, pivot: FloatArray, spread: FloatArray) -> OneCopy:
        """Return the copy whose rows are nearer to a pivot (M,) than their images are.

        ``spread`` are standard deviations (M,) of entries in that copy.
        """
        variance = np.square(spread)[self.order].mean(axis=0)
        weight = pivot / np.where(variance > 0, variance, 1.0)
        # <g x, p> = sum over m of sign[g, m] x[order[g, m]] p[m], so entry order[g, m] of x has the
        # factor sign[g, m] p[m].
        images = np.empty(self.order.shape)
        np.put_along_axis(images, self.order, self.sign * weight, axis=1)
        return OneCopy(self, images)


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
    elements = _closed(signed_places(symmetries, size), size, most)
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


def signed_places(symmetries: Symmetries, size: int) -> list[IntArray]:
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

    def holds(self, rows: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether rows (n, M) are in the copy."""
        held: npt.NDArray[np.bool_] = self.nearest(rows) == 0
        return held

    def brought(self, rows: FloatArray) -> FloatArray:
        """Return rows (n, M), each at its image that is nearest to the pivot."""
        return self.group.applied(self.nearest(rows), rows)
