"""Orders of an index that runs along a part of a longer axis as well.

A mixture of K components and a background has K locations and K + 1 shares; a model of K waves may
have 2K coefficients in one vector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, islice, product

import numpy as np

from harness.modes.permutations import (
    LONGEST_INDEX,
    MOST_CHOICES,
    MOST_SWAPS,
    Axes,
    Exchange,
    Part,
    Permutation,
    differing,
    exchanges,
    swapped_order,
)

_MOST_TIMES = 4
"""Times that an axis is as long as an index, up to which it may hold the index several times."""


def swaps_of_parts(shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Permutation]:
    """Yield permutations that swap two entries of an index, and those of longer axes with them.

    At least one parameter has the index alone, so that its length is known.
    """
    sizes = {size for shape in shapes.values() for size in shape}
    for length in sorted(size for size in sizes if 1 < size <= LONGEST_INDEX):
        for axes, parts in _sets(shapes, length):
            for one, other in islice(combinations(range(length), 2), MOST_SWAPS):
                yield Permutation(axes, swapped_order(length, one, other), parts)


def swaps_with_exchanges(
    shapes: Mapping[str, tuple[int, ...]],
) -> Iterator[tuple[Exchange, Permutation]]:
    """Yield exchanges of numbered parameters with swaps of the entries that have these numbers.

    Parameters ``mu1``, ``mu2`` and ``mu3``, or ``mu_a`` and so on, may come with a simplex.
    """
    for exchange in exchanges(shapes):
        numbers = _numbers(exchange)
        if numbers is None:
            continue
        one, other = numbers
        for name, shape in shapes.items():
            if name not in exchange.parameters and shape and 0 <= one < other < shape[0]:
                order = swapped_order(shape[0], one, other)
                yield exchange, Permutation(((name, (0,)),), order)


def _sets(
    shapes: Mapping[str, tuple[int, ...]], length: int
) -> Iterator[tuple[Axes, tuple[Part, ...]]]:
    """Yield what an index of some length runs along, the most at once first."""
    choices: list[list[tuple[str, int] | Part | None]] = []
    for name, shape in shapes.items():
        own = [(name, axis) for axis, size in enumerate(shape) if size == length]
        longer = [
            Part(name, axis, places)
            for axis, size in enumerate(shape)
            for places in _places(length, size)
        ]
        if own or longer:
            choices.append([*own, *longer, None])
    sets = [
        tuple(each for each in chosen if each is not None)
        for chosen in islice(product(*choices), 8 * MOST_CHOICES)
    ]
    for chosen in sorted(sets, key=len, reverse=True)[:MOST_CHOICES]:
        parts = tuple(each for each in chosen if isinstance(each, Part))
        axes = tuple((each[0], (each[1],)) for each in chosen if not isinstance(each, Part))
        if axes and parts:
            yield axes, parts


def _places(length: int, size: int) -> list[tuple[tuple[int, ...], ...]]:
    """Return where an index may be along an axis that is longer."""
    every, found = np.arange(size), []
    if size == length + 1:
        found += [every[None, :length], every[None, 1:]]
    if size % length == 0 and 1 < size // length <= _MOST_TIMES:
        found += [every.reshape(-1, length), every.reshape(length, -1).T]
    return [tuple(tuple(row) for row in each.tolist()) for each in found]


def _numbers(exchange: Exchange) -> tuple[int, int] | None:
    """Return the entries, from 0, that the differing characters of the names stand for, if any."""
    apart = differing(*exchange.pairs[0])
    for characters in ("123456789", "abcdefgh"):
        if apart is not None and set(apart) <= set(characters):
            one, other = (characters.index(each) for each in apart)
            return one, other
    return None
