"""Whether a mode is a copy of another: the same but for the order of an index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice, product

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.modes.target import Target

_MOST_CHOICES = 64
"""Sets of axes that are tried for each length of an index."""
_LONGEST_INDEX = 50
"""Longer indices are left out: which order suits them best takes too long to find."""
_MOST_SWAPS = 15
"""Swaps of two entries that are tried for each such set."""
_EQUAL = 1e-6
"""Relative difference of log densities that rounding may make."""
Values = Mapping[str, FloatArray]
Axes = tuple[tuple[str, tuple[int, ...]], ...]
"""Names of parameters, and which of their axes an index runs along."""


@dataclass(frozen=True)
class Permutation:
    """An order of an index that several parameters share.

    Attributes
    ----------
    axes
        The parameters, and their axes that the index runs along, from 0.
    order
        The k-th entry of the copy is entry ``order[k]`` of the other mode, from 0.
    """

    axes: Axes
    order: tuple[int, ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that it changes."""
        return tuple(name for name, _ in self.axes)

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
        return changed


def shared_indices(shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Axes]:
    """Yield sets of axes of one length, which an index may run along, the largest sets first.

    Which parameters share an index is not known, since sizes may be equal by chance.
    """
    sizes = {size for shape in shapes.values() for size in shape}
    lengths = sorted(size for size in sizes if 1 < size <= _LONGEST_INDEX)
    for length in lengths:
        choices = []
        for name, shape in shapes.items():
            along = [axis for axis, size in enumerate(shape) if size == length]
            some = chain.from_iterable(
                combinations(along, count) for count in range(len(along), 0, -1)
            )
            if along:
                choices.append([(name, axes) for axes in some] + [None])
        sets = (tuple(each for each in chosen if each is not None) for chosen in product(*choices))
        wanted = sorted(
            islice(sets, 8 * _MOST_CHOICES),
            key=lambda axes: -sum(len(along) for _, along in axes),
        )
        yield from (axes for axes in wanted[:_MOST_CHOICES] if axes)


def swaps(shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Permutation]:
    """Yield permutations that swap two entries of an index that may be shared."""
    for axes in shared_indices(shapes):
        name, along = axes[0]
        length = shapes[name][along[0]]
        for one, other in islice(combinations(range(length), 2), _MOST_SWAPS):
            order = list(range(length))
            order[one], order[other] = other, one
            yield Permutation(axes, tuple(order))


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


def permuted_points(permutation: Permutation, points: FloatArray, target: Target) -> FloatArray:
    """Return points (n, D) with an index in another order, and length 1 behind unit vectors.

    Raises
    ------
    DataError
        If they are outside the support then.
    """
    return target.unconstrain_draws(permutation(target.constrain(points)), lengths="one")


def leaves_density(permutation: Permutation, points: FloatArray, target: Target) -> bool:
    """Whether the log density is the same at points (n, D) after an index is put in another order.

    The density is that on the unconstrained space.  Its Jacobian does not depend on the order for
    reals with bounds, simplexes and vectors of them, but it does for matrices of covariances and
    correlations, which are therefore never found to be invariant.
    """
    try:
        values = target.constrain(points)
        before, after = (
            target(target.unconstrain_draws(each, lengths="one"))[0]
            for each in (values, permutation(values))
        )
    except DataError:
        return False
    return bool(np.all(np.abs(after - before) <= _EQUAL * (1 + np.abs(before))))


def find_copy(
    one: tuple[FloatArray, FloatArray],
    other: FloatArray,
    target: Target,
    spread: Values,
) -> Sequence[tuple[Permutation, FloatArray]]:
    """Return orders of an index that may make one mode the copy of another.

    Parameters
    ----------
    one
        Peak of the first mode (D,), and some of its draws (n, D).
    other
        Peak of the second.
    target
        The program.
    spread
        Size of each parameter's entries.

    Returns
    -------
    sequence
        Orders that leave the density at the draws, each with the peak that it makes of the first;
        whether that is in the second mode is for the caller to see.
    """
    peak, draws = one
    both = target.constrain(np.stack([peak, other]))
    first, second = ({name: value[k] for name, value in both.items()} for k in (0, 1))
    found: list[tuple[Permutation, FloatArray]] = []
    for axes in shared_indices(target.shapes):
        permutation = matching(axes, first, second, spread)
        if permutation is None or not leaves_density(permutation, draws, target):
            continue
        found.append((permutation, permuted_points(permutation, peak[None], target)[0]))
    return found
