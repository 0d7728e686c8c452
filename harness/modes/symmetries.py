"""Changes of parameters that leave a density as it is: other orders, and entries mirrored."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from harness.arrays import FloatArray, values_of
from harness.errors import DataError
from harness.modes.exchanged import ExchangedEntries, exchanged_together
from harness.modes.mirrored import MirroredEntries, Span, mirrored_together
from harness.modes.parts import swaps_of_parts, swaps_with_exchanges
from harness.modes.permutations import Exchange, Permutation, Values, exchanges, swaps
from harness.modes.reflections import (
    Reflection,
    centres,
    reflections_of_entries,
    whole_reflections,
)
from harness.modes.target import Target

_EQUAL, _MOST = 1e-6, 1e-3
"""Difference of log densities that rounding may make, relative, and at most: an asymmetry of that
many nats would not matter."""
_SAME = 1e-6
"""Difference of parameters that rounding may make on the way to unconstrained points and back."""
_FEW = 2
"""Points that decide first, before all are looked at."""
_BESIDES = 2
"""Parameters at most that are mirrored while others change places."""
_MOST_EXCHANGES, _MOST_BOTH, _MOST_PARTS = 300, 1000, 500
"""Exchanges of parameters (of either kind), changes of places with others mirrored, and those of an
index along parts of axes, that are tried at most."""


@dataclass(frozen=True)
class Both:
    """Parameters change places while others are mirrored, as the share of a first component is.

    Or while they are mirrored as well, or entries of others change places, too.
    """

    places: Permutation | Exchange | ExchangedEntries
    besides: Reflection | Permutation

    def __call__(self, values: Values) -> dict[str, FloatArray]:
        """Return values, shape (n, *shape) by parameter, changed."""
        return self.besides(self.places(values))


Symmetry = Permutation | Exchange | ExchangedEntries | Reflection | Both | MirroredEntries
"""A change of parameters that may leave a density as it is."""


@dataclass(frozen=True)
class Symmetries:
    """Changes that leave a density, and where parameters are mirrored.

    Attributes
    ----------
    changes
        Swaps of two entries of an index, exchanges, reflections, and both at once; then entries
        that are mirrored together without an index, if they are no product of these reflections.
    centres
        By parameter, of its shape; 0 for those that cannot be mirrored.
    places
        Some values, shape (n, *shape) by parameter, that tell changes apart: two shares sum to 1,
        so that they change places if they are mirrored.  Empty if all changes differ.
    """

    changes: tuple[Symmetry, ...]
    centres: Mapping[str, FloatArray]
    places: Values = field(default_factory=dict)


def changed_points(symmetry: Symmetry, points: FloatArray, target: Target) -> FloatArray:
    """Return points (n, D) with the parameters changed.

    Behind unit vectors they have length 1.

    Raises
    ------
    DataError
        If they are outside the support then.
    """
    return target.unconstrain_draws(symmetry(target.constrain(points)), lengths="one")


def equal(before: FloatArray, after: FloatArray) -> bool:
    """Whether log densities (n,), which may be -inf, are the same but for rounding."""
    allowed = np.minimum(_EQUAL * (1 + np.abs(before)), _MOST)
    with np.errstate(invalid="ignore"):  # -inf from -inf
        return bool(np.all((after == before) | (np.abs(after - before) <= allowed)))


class _Places:
    """Points (n, D) at which changes of the parameters are tried."""

    def __init__(self, target: Target, points: FloatArray) -> None:
        self._target = target
        self.values = target.constrain(points)
        self._log_density = values_of(target)
        self._before = self._log_density(target.unconstrain_draws(self.values, lengths="one"))

    def stay_after(self, symmetry: Symmetry) -> bool:
        """Whether the log density is the same after a change."""
        changed = symmetry(self.values)
        try:
            there = self._target.unconstrain_draws(changed, lengths="one")
        except DataError:
            return False
        if not equal(self._before, self._log_density(there)):
            return False
        # Where a constraint leaves entries no freedom, the way there may not look at them.
        back = self._target.constrain(there)
        return all(
            np.allclose(back[name], changed[name], rtol=_SAME, atol=_SAME) for name in changed
        )


def leaves_density(symmetry: Symmetry, points: FloatArray, target: Target) -> bool:
    """Whether the log density at points (n, D) is the same after a change of the parameters.

    The density is that on the unconstrained space.  Its Jacobian does not depend on the order for
    reals with bounds, simplexes and vectors of them, but it does for matrices of covariances and
    correlations, which are therefore never found to be invariant.

    Raises
    ------
    DataError
        If the points themselves are outside the support.
    """
    return _Places(target, points).stay_after(symmetry)


def find_symmetries(target: Target, points: FloatArray, *, most_seconds: float) -> Symmetries:
    """Return the changes of parameters that leave a density, as far as we know where to look.

    Parameters
    ----------
    target
        The density.
    points
        Where it is looked at, shape (n, D): draws in general positions, from several chains.
    most_seconds
        Seconds of wall time after which it ends with those that it has.
    """
    ends = time.perf_counter() + most_seconds
    mirrored = centres(points[:_FEW], target)
    few, rest = (_Places(target, each) for each in (points[:_FEW], points[_FEW:]))
    found: list[Symmetry] = []
    for symmetry in _candidates(target, mirrored, points[:_FEW]):
        if time.perf_counter() > ends:
            break
        if isinstance(symmetry, ExchangedEntries) and _is_known(symmetry, found, few.values):
            continue
        if few.stay_after(symmetry) and rest.stay_after(symmetry):
            found.append(symmetry)
    zero = {name: np.zeros(shape) for name, shape in target.shapes.items()}
    known = Symmetries(tuple(found), zero | mirrored, few.values)
    return _with_mirrored(known, mirrored_together(target, points[:_FEW]), (few, rest), ends)


def _is_known(change: Symmetry, found: Sequence[Symmetry], values: Values) -> bool:
    """Whether one of the changes that have been found does the same to some values."""
    after = change(values)
    return any(
        all(np.array_equal(there[name], after[name]) for name in after)
        for there in (each(values) for each in found)
    )


def _with_mirrored(
    known: Symmetries,
    candidates: Iterator[MirroredEntries],
    places: Sequence[_Places],
    ends: float,
) -> Symmetries:
    """Add entries that are mirrored together, if known reflections do not generate them."""
    found, centres = list(known.changes), dict(known.centres)
    span = Span()
    for each in found:
        if isinstance(each, Reflection):
            span.add(_mirrored_entries(each, centres))
    while time.perf_counter() < ends and (change := next(candidates, None)) is not None:
        at = dict(centres)
        for name, here in change.mirrored.items():
            at[name] = np.where(here, change.centres[name], centres[name])
        entries = _mirrored_entries(change, at)
        if entries not in span and all(some.stay_after(change) for some in places):
            span.add(entries)
            found.append(change)
            centres = at
    return replace(known, changes=tuple(found), centres=centres)


def _mirrored_entries(change: Reflection | MirroredEntries, centres: Values) -> int:
    """Return as bits which entries of all parameters are mirrored."""
    beside = {name: centre[None] + 1.0 for name, centre in centres.items()}
    after = change(beside)
    signs = np.concatenate([np.ravel(after[name][0] - centres[name]) for name in centres])
    return sum(1 << i for i in np.flatnonzero(signs < 0).tolist())


def _candidates(target: Target, mirrored: Values, points: FloatArray) -> Iterator[Symmetry]:
    """Yield changes that may leave the density, those that are most likely to first."""
    places: list[Permutation | Exchange | ExchangedEntries] = [
        *swaps(target.shapes),
        *dict.fromkeys(
            [
                *islice(exchanged_together(target, points, mirrored), _MOST_EXCHANGES),
                *islice(exchanges(target.shapes), _MOST_EXCHANGES),
            ]
        ),
    ]
    yield from places
    yield from whole_reflections(mirrored)
    yield from reflections_of_entries(target.shapes, mirrored)
    yield from islice(_both(places, mirrored), _MOST_BOTH)
    yield from islice(swaps_of_parts(target.shapes), _MOST_PARTS)
    yield from (Both(*each) for each in islice(swaps_with_exchanges(target.shapes), _MOST_PARTS))


def _both(
    places: Sequence[Permutation | Exchange | ExchangedEntries], mirrored: Values
) -> Iterator[Both]:
    """Yield changes of places with others mirrored, and then with those that change places, too.

    The sensitivity of a test and its specificity change places as well as sides if the infected
    and the others do.
    """
    for each in places:
        others = {name: mirrored[name] for name in mirrored if name not in each.parameters}
        for besides in whole_reflections(others, min(_BESIDES, len(others))):
            yield Both(each, besides)
    for each in places:
        if all(name in mirrored for name in each.parameters):
            own = tuple((name, ()) for name in each.parameters)
            others = {name: mirrored[name] for name in mirrored if name not in each.parameters}
            yield Both(each, Reflection(own, mirrored))
            for besides in whole_reflections(others, min(_BESIDES, len(others))):
                yield Both(each, Reflection(own + besides.axes, mirrored))
