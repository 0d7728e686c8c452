"""Whether a mode is a copy of another: the same but for the order of an index, or for signs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.modes.group import Group
from harness.modes.permutations import Values, matching, shared_indices
from harness.modes.symmetries import changed_points, leaves_density
from harness.modes.target import Target

_TRIED = 8
"""Elements of a group that are tried, if several bring a peak about as near."""
_AS_NEAR = 1.0
"""Difference of squared distances, in units of the entries' sizes, that peaks of one mode may have.
"""


class Copy(NamedTuple):
    """What may make one mode the copy of another.

    Attributes
    ----------
    peak
        What becomes of the first mode's peak, (D,); whether that is in the second mode is for the
        caller to see.
    permuted, order
        Parameters whose index is in another order, and that order, from 1; empty if it is not one
        index that differs.
    otherwise
        What else is different, in words.
    """

    peak: FloatArray
    permuted: tuple[str, ...] = ()
    order: tuple[int, ...] = ()
    otherwise: str = ""


def copies_by_order(
    one: tuple[FloatArray, FloatArray], other: FloatArray, target: Target, spread: Values
) -> Iterator[Copy]:
    """Yield orders of an index that leave the density and may make one mode the copy of another.

    Parameters
    ----------
    one
        Peak of the first mode (D,), and some of its draws (n, D), where the density is looked at.
    other
        Peak of the second.
    target
        The program.
    spread
        Size of each parameter's entries.
    """
    peak, draws = one
    both = target.constrain(np.stack([peak, other]))
    first, second = ({name: value[k] for name, value in both.items()} for k in (0, 1))
    for axes in shared_indices(target.shapes):
        permutation = matching(axes, first, second, spread)
        if permutation is None or not leaves_density(permutation, draws, target):
            continue
        made = changed_points(permutation, peak[None], target)[0]
        yield Copy(made, permutation.parameters, tuple(k + 1 for k in permutation.order))


def copy_by_group(
    peak: FloatArray, other: FloatArray, target: Target, group: Group, spread: Values
) -> Copy | None:
    """Return the element of a group that brings one peak nearest to another; None if that is none.

    Of elements that bring it about as near, it is the one that changes the fewest entries.

    Parameters
    ----------
    peak, other
        The two peaks, shape (D,).
    target
        The program.
    group
        What leaves its density.
    spread
        Size of each parameter's entries.
    """
    first, second = group.rows(target.constrain(np.stack([peak, other])))
    size = np.concatenate([np.ravel(spread[name]) for name in group.centres])
    images = group.applied(np.arange(len(group)), np.tile(first, (len(group), 1)))
    apart = np.square((images - second) / np.where(size > 0, size, 1.0)).sum(axis=1)
    if apart.argmin() == 0:
        return None
    as_near = np.flatnonzero(apart <= apart.min() + _AS_NEAR)
    as_near = as_near[as_near > 0]
    fewest = as_near[np.argsort(group.numbers_changed[as_near], kind="stable")]
    for element in fewest[:_TRIED].tolist():
        with suppress(DataError):  # an image may lie outside of the support, or at its edge
            made = target.unconstrain_draws(group.values(images[[element]]), lengths="one")[0]
            if np.all(np.isfinite(made)):
                return Copy(made, otherwise=group.words(element))
    return None
