"""Orders of an index that several parameters share, and of parameters: label switching."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, combinations, islice, product
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from harness.arrays import FloatArray

MOST_CHOICES = 64
"""Sets of axes that are tried for each length of an index."""
LONGEST_INDEX = 50
"""Longer indices are left out: which order suits them best takes too long to find."""
MOST_SWAPS = 15
"""Swaps of two entries that are tried for each such set."""
Values = Mapping[str, FloatArray]
# Names of parameters, and which of their axes an index runs along.
Axes = tuple[tuple[str, tuple[int, ...]], ...]


class Part(NamedTuple):
    """Where an index runs along an axis that is longer.

    Attributes
    ----------
    parameter, axis
        The axis, from 0, of a parameter.
    places
        Entries of the axis, from 0, that are those of the index; several rows if it runs along
        several parts of the axis.
    """

    parameter: str
    axis: int
    places: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Permutation:
    """An order of an index that several parameters share.

    Attributes
    ----------
    axes
        The parameters, and their axes that the index runs along, from 0.
    order
        The k-th entry of the copy is entry ``order[k]`` of the other mode, from 0.
    parts
        Longer axes, along parts of which it runs.
    """

    axes: Axes
    order: tuple[int, ...]
    parts: tuple[Part, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that it changes."""
        return *(name for name, _ in self.axes), *(each.parameter for each in self.parts)

    @property
    def swapped(self) -> tuple[int, ...]:
        """The entries that are not at their own place, from 0."""
        return tuple(k for k, entry in enumerate(self.order) if entry != k)

    def __call__(self, values: Values) -> dict[str, FloatArray]:
        """Return values, shape (n, *shape) by parameter, with the index in this order."""
        changed = dict(values)
        for name, axes in self.axes:
            for axis in axes:
                changed[name] = np.take(changed[name], self.order, axis=axis + 1)
        for name, axis, places in self.parts:
            order = np.arange(values[name].shape[axis + 1])
            for row in places:
                order[list(row)] = np.take(row, self.order)
            changed[name] = np.take(changed[name], order, axis=axis + 1)
        return changed


@dataclass(frozen=True)
class Exchange:
    """Parameters that take each other's values, two by two.

    Attributes
    ----------
    pairs
        Names of parameters of one shape.
    """

    pairs: tuple[tuple[str, str], ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that it changes."""
        return tuple(chain.from_iterable(self.pairs))

    def __call__(self, values: Values) -> dict[str, FloatArray]:
        """Return values, shape (n, *shape) by parameter, exchanged."""
        changed = dict(values)
        for one, other in self.pairs:
            changed[one], changed[other] = values[other], values[one]
        return changed


def shared_indices(shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Axes]:
    """Yield sets of axes of one length, which an index may run along, the likeliest sets first.

    Which parameters share an index is not known, since sizes may be equal by chance.  It is likely
    to run along the first axis of a parameter, as it does in arrays of vectors or matrices, or
    along all, as in a matrix of transitions; and several parameters are likelier than one.
    """
    sizes = {size for shape in shapes.values() for size in shape}
    lengths = sorted(size for size in sizes if 1 < size <= LONGEST_INDEX)
    for length in lengths:
        choices = []
        unlikely = set()
        for name, shape in shapes.items():
            along = tuple(axis for axis, size in enumerate(shape) if size == length)
            if not along:
                continue
            likely = dict.fromkeys([along, along[:1]])
            some = chain.from_iterable(
                combinations(along, count) for count in range(len(along) - 1, 0, -1)
            )
            others = [axes for axes in some if axes not in likely]
            unlikely |= {(name, axes) for axes in others}
            choices.append([*((name, axes) for axes in [*likely, *others]), None])
        sets = (tuple(each for each in chosen if each is not None) for chosen in product(*choices))
        wanted = sorted(
            islice(sets, 8 * MOST_CHOICES),
            key=lambda axes: (
                len(unlikely.intersection(axes)),
                -len(axes),
                -sum(len(along) for _, along in axes),
            ),
        )
        yield from (axes for axes in wanted[:MOST_CHOICES] if axes)


def swaps(shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Permutation]:
    """Yield permutations that swap two entries of an index that may be shared."""
    for axes in shared_indices(shapes):
        name, along = axes[0]
        length = shapes[name][along[0]]
        # Those of the first entry come first, and make all orders.
        for one, other in islice(combinations(range(length), 2), max(MOST_SWAPS, length - 1)):
            yield Permutation(axes, swapped_order(length, one, other))


def swapped_order(length: int, one: int, other: int) -> tuple[int, ...]:
    """Return the order of so many entries in which two, from 0, are swapped."""
    order = list(range(length))
    order[one], order[other] = other, one
    return tuple(order)


def exchanges(shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Exchange]:
    """Yield exchanges of parameters of one shape.

    Those come first whose names tell that they belong together, as ``mu1, sigma1`` and ``mu2,
    sigma2`` do, and then any two.
    """
    alike: dict[tuple[str, str], list[tuple[str, str]]] = {}
    pairs = [(one, other) for one, other in combinations(shapes, 2) if shapes[one] == shapes[other]]
    for one, other in pairs:
        apart = differing(one, other)
        if apart is not None:
            alike.setdefault(apart, []).append((one, other))
    together = [tuple(each) for each in alike.values()]
    yield from (Exchange(each) for each in together if len(set(chain(*each))) == 2 * len(each))
    yield from (Exchange((each,)) for each in pairs if (each,) not in together)


def differing(one: str, other: str) -> tuple[str, str] | None:
    """Return the characters in which two names differ, if all others are the same."""
    if len(one) != len(other):
        return None
    apart = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
    return apart[0] if len(apart) == 1 else None


def matching(axes: Axes, one: Values, other: Values, spread: Values) -> Permutation | None:
    """Return the order of an index that brings one mode nearest to another; None if it is the same.

    Parameters
    ----------
    axes
        What the index runs along.
    one, other
        Places in the two modes, by parameter, each of its own shape.
    spread
        Size of each parameter's entries.
    """
    there, here = (np.concatenate(list(_rows(axes, each, spread)), axis=1) for each in (other, one))
    order = linear_sum_assignment(cdist(there, here, metric="sqeuclidean"))[1]
    if np.all(order == np.arange(len(order))):
        return None
    return Permutation(axes, tuple(order.tolist()))


def _rows(axes: Axes, values: Values, spread: Values) -> Iterator[FloatArray]:
    """Yield what each entry of an index has of each parameter, shape (K, ...)."""
    for name, along in axes:
        # One size for all entries of the index, so that their distances are comparable.
        size = float(np.sqrt(np.mean(np.square(spread[name]))))
        array = values[name] / (size if size > 0 else 1.0)
        if len(along) == 1:
            moved = np.moveaxis(array, along[0], 0)
        else:  # the entries on the diagonal
            index = np.arange(array.shape[along[0]])
            moved = np.moveaxis(array, along, range(len(along)))[(index,) * len(along)]
        yield moved.reshape(len(moved), -1)
