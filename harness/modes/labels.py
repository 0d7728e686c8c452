"""The group of all orders of labels, of which there may be too many to list.

A mixture of ten components has 3,628,800 copies of each mode.  Which of them a draw is nearest to
is an assignment problem, and a random one is a random order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from harness import evidence
from harness.arrays import FloatArray
from harness.modes.group import Entries, Group, IntArray, OneCopy, generated_group, signed_places
from harness.modes.symmetries import Symmetries

MOST_LABELS = 20
"""Labels whose number of orders is still a number of 64 bits."""
_PIVOTS = 20
"""Times at most that the pivot becomes the mean of what is nearest to it."""


@dataclass(frozen=True)
class LabelGroup(Entries):
    """All orders of K labels, each with B entries.

    Attributes
    ----------
    entries
        Entries of each label, those of one kind in one column, shape (K, B).
    """

    entries: IntArray

    def __len__(self) -> int:
        return math.factorial(len(self.entries))

    @property
    def kinds(self) -> set[str]:
        """What orders change, in words."""
        return {f"{', '.join(self.owners(self.entries[0]))} in another order"}

    def applied(self, orders: IntArray, rows: FloatArray) -> FloatArray:
        """Return rows (n, M) with labels in other orders (n, K): the k-th is ``orders[k]``."""
        images = rows.copy()
        number = np.arange(len(rows))[:, None, None]
        images[number, self.entries] = rows[number, self.entries[orders]]
        return images

    def at_random(self, rows: FloatArray, shape: tuple[int, int], seed: int) -> FloatArray:
        """Return rows (n, M), of draws of some shape, each with its labels in a random order."""
        rng = np.random.default_rng([seed, 17])
        orders = np.tile(np.arange(len(self.entries)), (math.prod(shape), 1))
        return self.applied(rng.permuted(orders, axis=1), rows)

    def copy_at(self, pivot: FloatArray, spread: FloatArray) -> LabelCopy:
        """Return the copy whose rows are nearer to a pivot (M,) than their images are.

        ``spread`` are standard deviations (M,) of entries in that copy.
        """
        variance = np.square(spread)[self.entries].mean(axis=0)
        return LabelCopy(self, pivot[self.entries] / np.where(variance > 0, variance, 1.0))


@dataclass(frozen=True)
class LabelCopy:
    """Which order of the labels of a row is nearest to a pivot.

    Attributes
    ----------
    group
        The group.
    weight
        What the product with an entry of a label tells how near it is to one of the pivot, (K, B).
    """

    group: LabelGroup
    weight: FloatArray

    def nearest(self, rows: FloatArray) -> IntArray:
        """Return the order of labels (n, K) that brings each row (n, M) nearest to the pivot."""
        score = np.einsum("njb,kb->nkj", rows[:, self.group.entries], self.weight)
        orders = [linear_sum_assignment(each, maximize=True)[1] for each in score]
        return np.array(orders, dtype=np.intp).reshape(len(rows), -1)

    def holds(self, rows: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether rows (n, M) are in the copy."""
        held: npt.NDArray[np.bool_] = np.all(self.nearest(rows) == np.arange(len(self.weight)), 1)
        return held

    def brought(self, rows: FloatArray) -> FloatArray:
        """Return rows (n, M), each in the order that is nearest to the pivot."""
        return self.group.applied(self.nearest(rows), rows)


AnyGroup: TypeAlias = Group | LabelGroup
"""What makes copies of a posterior."""
AnyCopy: TypeAlias = OneCopy | LabelCopy
"""One of the copies."""


def group_of(symmetries: Symmetries) -> AnyGroup | None:
    """Return the group that changes of parameters generate, as a list or as all orders of labels.

    None if it is too large, and not that of labels.
    """
    return generated_group(symmetries) or _label_group(symmetries)


def copy_around(group: AnyGroup, rows: FloatArray, pivot: FloatArray) -> AnyCopy:
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
    copy = group.copy_at(pivot, evidence.standard_deviation(rows, 1))
    near = copy.brought(rows)
    for _ in range(_PIVOTS):
        copy = group.copy_at(near.mean(axis=0), evidence.standard_deviation(near, 1))
        before, near = near, copy.brought(rows)
        if np.array_equal(before, near):
            break
    return copy


def _label_group(symmetries: Symmetries) -> LabelGroup | None:
    """Return the group of all orders of labels if each change swaps two of them; None if not."""
    size = sum(centre.size for centre in symmetries.centres.values())
    swaps = [places - 1 for places in signed_places(symmetries, size)]
    entries = _labelled(swaps)
    if entries is None or len(entries) > MOST_LABELS:
        return None
    return LabelGroup(dict(symmetries.centres), entries)


def _labelled(swaps: Sequence[IntArray]) -> IntArray | None:
    """Return the entries (K, B) of labels of which some places swap the first one with each other.

    None if a place does anything else than to swap two of these labels.

    Parameters
    ----------
    swaps
        Where each change takes entries (M,) from, with negative numbers if it changes signs.
    """
    if not swaps or min(int(each.min()) for each in swaps) < 0:
        return None
    first = int(np.flatnonzero(swaps[0] != np.arange(len(swaps[0])))[0])
    # Entries that change places with the first one are those of its kind.
    kind = [first, *sorted({int(each[first]) for each in swaps} - {first})]
    pairs = {}
    for each in swaps:
        moved = [k for k, entry in enumerate(kind) if each[entry] != entry]
        if len(moved) != 2:
            return None
        pairs[moved[0], moved[1]] = each
    of_first = [pairs.get((0, k)) for k in range(1, len(kind))]
    known = [each for each in of_first if each is not None]
    if len(known) < max(len(of_first), 2):
        return None
    # Each of these swaps moves the entries of the first label, and no two of them any other one.
    own = np.flatnonzero(np.all([each != np.arange(len(each)) for each in known], axis=0))
    labels = np.stack([own, *(each[own] for each in known)])
    for (one, other), each in pairs.items():
        expected = np.arange(len(each))
        expected[labels[one]], expected[labels[other]] = labels[other], labels[one]
        if not np.array_equal(each, expected):
            return None
    return labels
