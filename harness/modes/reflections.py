"""Parameters' entries mirrored at a centre, as in factor models whose factors have no sign.

The centre is 0 or, between two bounds, the middle: a share w of two components that have no names
is mirrored to 1 - w.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.modes.permutations import Axes, Values, shared_indices
from harness.modes.target import Target

_MOST_PARAMETERS = 8
"""Parameters up to which all sets of them are tried, and not only single ones, pairs and all."""
_CONSTANT = 1e-9
"""Relative difference of centres that rounding may make."""


@dataclass(frozen=True)
class Reflection:
    """Mirrored parameters, or what they have for an entry of an index mirrored.

    Attributes
    ----------
    axes
        The parameters, and their axes that the index runs along, from 0; no axes if the whole
        parameters change.
    centres
        Where each of them is mirrored, of its shape.
    entry
        Entry of the index, from 0; None if the whole parameters change.
    """

    axes: Axes
    centres: Values
    entry: int | None = None

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that it changes."""
        return tuple(name for name, _ in self.axes)

    def __call__(self, values: Values) -> dict[str, FloatArray]:
        """Return values, shape (n, *shape) by parameter, mirrored."""
        changed = dict(values)
        for name, axes in self.axes:
            array = values[name] - self.centres[name]
            if self.entry is None:
                np.negative(array, out=array)
            for axis in axes:
                here = np.moveaxis(array, axis + 1, 0)[self.entry]
                np.negative(here, out=here)
            changed[name] = array + self.centres[name]
        return changed


def centres(points: FloatArray, target: Target) -> dict[str, FloatArray]:
    """Return where each parameter that can be mirrored is mirrored, of its shape.

    Parameters
    ----------
    points
        Some points (n, D) in general positions.
    target
        The density.
    """
    values, opposite = target.constrain(points), target.constrain(-points)
    found = {}
    for name, value in values.items():
        try:
            target.unconstrain_draws({**values, name: -value}, lengths="one")
            found[name] = np.zeros(value.shape[1:])
        except DataError:  # it has bounds, which may be on both sides
            middle = (value + opposite[name]) / 2
            if np.all(np.abs(middle - middle[0]) <= _CONSTANT * (1 + np.abs(middle[0]))):
                found[name] = middle[0]
    return found


def whole_reflections(mirrored: Values, most: int | None = None) -> Iterator[Reflection]:
    """Yield reflections of whole parameters, of few at once first.

    Parameters
    ----------
    mirrored
        Centres of the parameters that can be mirrored.
    most
        Most parameters at once; if not given, it depends on how many there are.
    """
    if most is None:
        most = len(mirrored) if len(mirrored) <= _MOST_PARAMETERS else 2
        if most < len(mirrored):
            yield Reflection(tuple((name, ()) for name in mirrored), mirrored)
    for count in range(1, most + 1):
        for names in combinations(mirrored, count):
            yield Reflection(tuple((name, ()) for name in names), mirrored)


def reflections_of_entries(
    shapes: Mapping[str, tuple[int, ...]], mirrored: Values
) -> Iterator[Reflection]:
    """Yield reflections of what parameters have for one entry of an index that they may share."""
    for axes in shared_indices({name: shapes[name] for name in mirrored}):
        name, along = axes[0]
        for entry in range(shapes[name][along[0]]):
            yield Reflection(axes, mirrored, entry)
