"""Where a Metropolis step proposes to go: a Gaussian walk, or a proposal of the user's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError


class Proposal(Protocol):
    """A way to propose parameters."""

    def __call__(
        self, points: FloatArray, rng: np.random.Generator, /
    ) -> tuple[FloatArray, FloatArray]:
        """Return proposals (n, D) from points (n, D), and log q(back) - log q(there), (n,)."""


@dataclass(frozen=True)
class Walk:
    """A symmetric Gaussian step from the current point.

    Attributes
    ----------
    width
        Standard deviation of the step, a number or one for each coordinate.
    one_at_a_time
        Whether a step moves one coordinate, chosen at random, instead of all.

    Raises
    ------
    DataError
        If a width is not positive and finite.
    """

    width: npt.ArrayLike
    one_at_a_time: bool = False

    def __post_init__(self) -> None:
        widths = np.asarray(self.width, dtype=np.float64)
        if widths.ndim > 1 or not (np.isfinite(widths).all() and (widths > 0).all()):
            raise DataError(
                "the width of a walk must be a positive finite number, or one for each "
                f"coordinate; got {widths.tolist()}"
            )

    def __call__(
        self, points: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """See :class:`Proposal`."""
        count, dimension = points.shape
        widths = np.asarray(self.width, dtype=np.float64)
        if widths.shape not in ((), (dimension,)):
            raise DataError(
                f"the walk has {widths.size} widths, but there are {dimension} coordinates"
            )
        if self.one_at_a_time:
            proposed, rows = points.copy(), np.arange(count)
            moved = rng.integers(dimension, size=count)
            step = np.broadcast_to(widths, (dimension,))[moved]
            proposed[rows, moved] += step * rng.standard_normal(count)
        else:
            proposed = points + widths * rng.standard_normal(points.shape)
        return proposed, np.zeros(count)

    def scaled(self, factor: float) -> Walk:
        """Return a walk with widths that are ``factor`` times as large."""
        return Walk(np.asarray(self.width, dtype=np.float64) * factor, self.one_at_a_time)
