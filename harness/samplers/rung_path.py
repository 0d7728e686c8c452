"""Rungs between a target and its references, and points with all log densities known there.

The density of a rung is a product of powers of a few densities: of the target, and of the
references that ladders start from.  They are evaluated apart, all points in one call of each, so
that a point's density at any rung costs no further evaluation.  A density that is raised to the
power 0 counts as 1, also where it is zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, LogDensity, values_of
from harness.errors import DataError
from harness.samplers.ladders import checked_ladder

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Reference:
    """A density that a ladder starts from.

    Attributes
    ----------
    density
        Log density and gradient; it need not be normalised.
    sample
        Draws n points from it, shape (n, D), given a source of randomness; None if they are not to
        be had, so that its rung moves as the others do.
    distinct
        How many independent draws all that ``sample`` returns are worth at most: a stock of draws
        that is dealt out repeatedly is worth no more than the stock.
    """

    density: LogDensity
    sample: Callable[[np.random.Generator, int], FloatArray] | None = None
    distinct: float = math.inf


@dataclass(frozen=True)
class Places:
    """Points, and the log densities there of the target and of each reference.

    Attributes
    ----------
    points
        Shape (n, D).
    values
        Log densities, shape (n, 1 + R), the target's first; -inf where there is none.
    gradients
        Their gradients, shape (n, 1 + R, D).
    """

    points: FloatArray
    values: FloatArray
    gradients: FloatArray

    def take(self, rows: Rows | slice) -> Places:
        """Return some rows, in some order, perhaps repeatedly."""
        return Places(self.points[rows], self.values[rows], self.gradients[rows])

    def put(self, rows: Rows | npt.NDArray[np.bool_], other: Places) -> None:
        """Replace some rows by those of another, one each."""
        self.points[rows] = other.points
        self.values[rows] = other.values
        self.gradients[rows] = other.gradients

    def copy(self) -> Places:
        """Return the same rows in arrays of their own."""
        return Places(self.points.copy(), self.values.copy(), self.gradients.copy())


def joined(places: Sequence[Places]) -> Places:
    """Return the rows of several, one after the other."""
    return Places(
        np.concatenate([each.points for each in places]),
        np.concatenate([each.values for each in places]),
        np.concatenate([each.gradients for each in places]),
    )


class Densities:
    """The target's density and its references', evaluated together.

    Parameters
    ----------
    target
        Log density of the target.
    references
        One or two.

    Attributes
    ----------
    evaluations
        Points at which they were evaluated so far.
    """

    def __init__(self, target: LogDensity, references: Sequence[Reference]) -> None:
        self._all = (target, *(each.density for each in references))
        self._values = tuple(map(values_of, self._all))
        self.evaluations = 0

    def __call__(self, points: FloatArray) -> Places:
        """Evaluate all densities at points (n, D).

        A value that is not finite, as where a program rejects a point, counts as no density, and
        so does a gradient that is not: it is zero there.
        """
        self.evaluations += len(points)
        values = np.empty((len(points), len(self._all)))
        gradients = np.empty((len(points), len(self._all), points.shape[1]))
        for j, density in enumerate(self._all):
            value, gradient = density(points)
            usable = np.isfinite(value)
            values[:, j] = np.where(usable, value, -np.inf)
            gradients[:, j] = np.where(usable[:, None] & np.isfinite(gradient), gradient, 0.0)
        return Places(points, values, gradients)

    def values(self, points: FloatArray) -> FloatArray:
        """Evaluate all densities at points (n, D) without gradients, shape (n, 1 + R)."""
        self.evaluations += len(points)
        values = np.stack([density(points) for density in self._values], axis=1)
        return np.where(np.isfinite(values), values, -np.inf)


class Rungs:
    """All rungs of one or two ladders that meet at the target.

    With two, the second ladder follows the target in reverse, so that a replica may travel from one
    reference through the target to the other (Surjanovic et al. 2022).

    Parameters
    ----------
    ladders
        Inverse temperatures of each ladder, ascending from 0, its reference, to 1, the target.

    Attributes
    ----------
    ladders
        The same, checked.
    target
        Index of the target's rung.
    powers
        Power of the target's density and of each reference's at each rung, shape (K, 1 + R).

    Raises
    ------
    DataError
        If there is no ladder or more than two, or one does not ascend from 0 to 1.
    """

    def __init__(self, ladders: Sequence[npt.ArrayLike]) -> None:
        if not 1 <= len(ladders) <= 2:
            raise DataError(f"one ladder or two meet at the target; got {len(ladders)}")
        self.ladders = tuple(checked_ladder(each) for each in ladders)
        self.target = len(self.ladders[0]) - 1
        near = [self._powers(each, j + 1) for j, each in enumerate(self.ladders)]
        self.powers = np.concatenate([near[0], *(each[-2::-1] for each in near[1:])])

    def _powers(self, ladder: FloatArray, reference: int) -> FloatArray:
        powers = np.zeros((len(ladder), 1 + len(self.ladders)))
        powers[:, 0], powers[:, reference] = ladder, 1 - ladder
        return powers

    def __len__(self) -> int:
        return len(self.powers)

    def references(self) -> tuple[int, ...]:
        """Index of each reference's rung."""
        return (0, len(self) - 1)[: len(self.ladders)]

    def of_ladder(self, which: int, per_pair: FloatArray) -> FloatArray:
        """Return the part of values of pairs (K - 1, ...) that is a ladder's, reference first."""
        return per_pair[: self.target] if which == 0 else per_pair[: self.target - 1 : -1]

    def rungs_of_ladder(self, which: int) -> Rows:
        """Return the indices of a ladder's rungs, from its reference to the target."""
        if which == 0:
            return np.arange(self.target + 1)
        return np.arange(len(self) - 1, self.target - 1, -1)


def log_height(values: FloatArray, powers: FloatArray) -> FloatArray:
    """Return log densities (n,) of points at rungs.

    Parameters
    ----------
    values
        Log densities of target and references, shape (n, 1 + R), finite or -inf.
    powers
        Powers of each at the point's rung, shape (n, 1 + R).
    """
    with np.errstate(invalid="ignore"):
        terms = np.where(powers > 0, powers * values, 0.0)
    height: FloatArray = terms.sum(axis=-1)
    return height


def slope(gradients: FloatArray, powers: FloatArray) -> FloatArray:
    """Return gradients (n, D) of :func:`log_height`, given those of each density (n, 1 + R, D)."""
    total: FloatArray = np.einsum("rj,rjk->rk", powers, gradients)
    return total
