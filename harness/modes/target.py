"""What the table of modes needs of a program: its log density, names, shapes, masses and copies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy.typing as npt

from harness.arrays import FloatArray
from harness.engine.unit_vectors import Lengths
from harness.evidence import LogEvidence


class Target(Protocol):
    """A log density on an unconstrained space, with the way to its parameters and back.

    :class:`harness.engine.batched.BatchedDensity` is one.
    """

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Shape of each parameter, () for a real."""

    def __call__(self, points: npt.ArrayLike, /) -> tuple[FloatArray, FloatArray]:
        """Return log densities (n,) and gradients (n, D) at points (n, D)."""

    def constrain(self, points: npt.ArrayLike, /) -> dict[str, FloatArray]:
        """Return the parameters at points (n, D), each (n, *shape)."""

    def unconstrain_draws(
        self, values: Mapping[str, npt.ArrayLike], /, *, lengths: Lengths = "drawn"
    ) -> FloatArray:
        """Return the points (n, D) of parameters, each (n, *shape).

        The vectors behind unit vectors have lengths that are drawn, or 1.

        Raises
        ------
        DataError
            If one lies outside its support.
        """


class Masses(Protocol):
    """Integrals of the density that need more than points around a peak."""

    def of_draws(self) -> LogEvidence | None:
        """Return the log of the integral that the final draws stand for; None if not known."""

    def of_mode(self, points: FloatArray, /) -> LogEvidence | None:
        """Return that of a mode, given points (n, D) in it; None if not known.

        The log of 0 tells that chains which start there leave it.
        """


class OneOfMany(Protocol):
    """A copy of a posterior that has many copies, which have the same density."""

    @property
    def copies(self) -> int:
        """Number of copies."""

    def brought(self, points: FloatArray, /) -> FloatArray:
        """Return points (..., D), each brought to this copy."""

    def within(self, log_density: FloatArray, points: FloatArray, /) -> FloatArray:
        """Return log densities (n,) at points (n, D), with -inf in other copies."""
