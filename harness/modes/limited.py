"""A program whose modes are looked for within a time: it counts evaluations, and gives up."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from harness.arrays import Counted, FloatArray
from harness.engine.timed import seconds_a_point
from harness.errors import SamplingError
from harness.modes.target import Target

_TIMED = 100
"""Points at which the density is timed."""
_TO_DESCRIBE = 2.0
"""Multiple of the time after which modes that were found are not described any more."""


class Limited:
    """A program that gives up after a time.

    Parameters
    ----------
    target
        The program.
    most_seconds
        Seconds of wall time, from now on.
    """

    def __init__(self, target: Target, most_seconds: float) -> None:
        self._target, self._counted = target, Counted(target)
        self.most_seconds = most_seconds
        self._began = time.perf_counter()
        self.shapes = target.shapes
        self.unconstrain_draws = target.unconstrain_draws

    def __call__(self, points: npt.ArrayLike, /) -> tuple[FloatArray, FloatArray]:
        """Return log densities (n,) and gradients (n, D) at points (n, D).

        Raises
        ------
        SamplingError
            If the time is over, as all methods do that evaluate something.
        """
        self._refuse_late()
        return self._counted(np.asarray(points))

    def values(self, points: FloatArray) -> FloatArray:
        """Return the log densities alone, which count as much."""
        self._refuse_late()
        return self._counted.values(points)

    @property
    def gradients(self) -> int:
        """Points at which the density has been evaluated."""
        return self._counted.gradients

    def constrain(self, points: npt.ArrayLike, /) -> dict[str, FloatArray]:
        """Return the parameters at points; this is done for every mode, and there may be many.

        Modes that were found in time are worth some more of it.
        """
        self._refuse_late(_TO_DESCRIBE)
        return self._target.constrain(points)

    def is_late(self, longer: float = 1.0) -> bool:
        """Whether the time is over, or a multiple of it."""
        return time.perf_counter() - self._began > longer * self.most_seconds

    def seconds_a_point(self, points: FloatArray) -> float:
        """Return how long an evaluation takes at points (..., D); 0 if there is no limit."""
        if not np.isfinite(self.most_seconds):
            return 0.0
        flat = points.reshape(-1, points.shape[-1])
        some = flat[np.linspace(0, len(flat) - 1, _TIMED).astype(np.intp)]
        return seconds_a_point(self, some)

    def _refuse_late(self, longer: float = 1.0) -> None:
        if self.is_late(longer):
            raise SamplingError(f"the modes were not found within {self.most_seconds:.0f} s")
