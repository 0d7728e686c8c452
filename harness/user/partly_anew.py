"""Starting points of climbs in known modes, of which some elements are drawn anew.

Several groups, planets or sensors may each have modes of their own.  A start at random has to be
right about all of them at once.  One that takes all but one of them from a known mode has to be
right about that one alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.user.one_copy import unconstrained_within

_TRIED = 8
"""Pairs of points that tell whether an element of a parameter can be changed without the others."""

Values = Mapping[str, FloatArray]
"""Parameters at points, each of shape (n, ...)."""
_Chosen = Mapping[str, npt.NDArray[np.bool_]]
"""Which elements of each parameter are drawn anew at each point, shape (n, size)."""


class PartlyAnew:
    """Points of which some elements are replaced.

    A third of them have another group: the elements with one index along first axes of one length,
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
        self._anew = {name: each for name, each in density.constrain(anew).items() if each.size}
        self._apart = [name for name in self._anew if self._can_be_apart(name)]
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

    def __call__(self, points: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return points (n, D) with some elements anew; fewer if constraints forbid some."""
        count = len(points)
        values = self._density.constrain(points)
        taken = rng.integers(len(next(iter(self._anew.values()))), size=count)
        chosen = self._chosen(count, rng)
        mixed = {
            name: np.where(chosen[name].reshape(each.shape), self._anew[name][taken], each)
            if name in chosen
            else each
            for name, each in values.items()
        }
        starts, within = unconstrained_within(self._density, mixed)
        return starts[within]

    def _chosen(self, count: int, rng: np.random.Generator) -> _Chosen:
        """Return which elements change at each of some points."""
        chosen = {
            name: np.zeros((count, *each.shape[1:]), dtype=np.bool_)
            for name, each in self._anew.items()
        }
        names = list(chosen)
        for row in range(count):
            kind = row % 3
            if kind == 0 and self._lengths:
                length = self._lengths[rng.integers(len(self._lengths))]
                index = rng.integers(length)
                for name in self._apart:
                    if self._shapes[name][0] == length:
                        chosen[name][row, index] = True
            elif kind == 1 and self._apart:
                flat = chosen[self._apart[rng.integers(len(self._apart))]][row].reshape(-1)
                flat[rng.integers(flat.size)] = True
            else:
                chosen[names[rng.integers(len(names))]][row] = True
        return chosen
