"""Hops of replicas from mode to mode along a coordinate, by slices wide enough for all of them.

Where many parameters have two values each, as the sides of wells or ambiguous dates, modes are too
many for a mixture of Gaussians to have a part in each, and replicas get from one to another only
along the ladder.  But a slice along one coordinate that is as wide as all draws leads there at
once.  Such slices are tried after each round of warm-up, one coordinate after the other.  Where one
crosses a valley too deep for Hamiltonian Monte Carlo, they are made from then on.

References
----------
Neal, R. M. (2003). Slice sampling. Annals of Statistics 31, 705-767.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from harness.arrays import FloatArray
from harness.path.slices import MOST_SHRINKS, Flags
from harness.samplers.explorers import Bounds, arrived, slice_along_axis, slice_sweep
from harness.samplers.rung_path import Densities, Places, Rungs, log_height

_RANGES = 1.5
"""Width of a slice, in ranges of the draws, so that a mode at the other end is mostly inside."""
_BOUNDS = Bounds(1, MOST_SHRINKS)
"""Such a slice is not stepped out.  Draws of a heavy tail may reach so far that it would take
hundreds of steps to shrink."""
_DEEP = 3.0
"""Depth of a valley below the lower of its sides, in nats: a trajectory crosses it in 1 of 70."""
_BETWEEN = np.array([0.25, 0.5, 0.75])
"""Where the density between two places is looked at."""
_EVALUATIONS = 10
"""Evaluations of a slice, roughly."""
_SHARE, _TRIAL_SHARE = 0.5, 0.25
"""Evaluations of sweeps, and of trials after a round, as shares of all else."""
_MOST_SWEEPS = 4
"""Trials of each coordinate after a round."""


@dataclass(frozen=True)
class Hops:
    """Where wide slices are made; the first axis runs over the K rungs.

    Attributes
    ----------
    along
        Whether they are made along a coordinate, shape (K, D).
    reach
        Ranges of the draws, shape (K, D).
    every
        Scans for one sweep of them.
    """

    along: Flags
    reach: FloatArray
    every: int = 1

    @classmethod
    def none(cls, rungs: int, dimension: int) -> Hops:
        """Return none at all."""
        return cls(np.zeros((rungs, dimension), dtype=np.bool_), np.ones((rungs, dimension)))

    @classmethod
    def within(cls, along: Flags, reach: FloatArray, evaluations: float) -> Hops:
        """Return those that take about half as many evaluations as all else.

        Parameters
        ----------
        along, reach
            As above.
        evaluations
            Evaluations of all else for a replica and scan.
        """
        every = along.sum() * _EVALUATIONS / (_SHARE * len(along) * evaluations)
        return cls(along, reach, max(1, round(float(every))))

    def due(self, scans: int) -> bool:
        """Whether a sweep is due after so many scans."""
        return scans % self.every == 0 and bool(self.along.any())

    def sweep(
        self, densities: Densities, places: Places, rungs: Rungs, rng: np.random.Generator
    ) -> None:
        """Move replicas, in place; those at the same rung are next to each other."""
        chains = len(places.points) // len(rungs)
        rung = np.repeat(np.arange(len(rungs)), chains)
        rows = np.flatnonzero(np.asarray(self.along.any(axis=1))[rung])
        rung = rung[rows]
        moved = slice_sweep(
            densities,
            places.take(rows),
            rungs.powers[rung],
            width=_RANGES * self.reach[rung],
            rng=rng,
            along=self.along[rung],
            bounds=_BOUNDS,
        )
        places.put(rows, moved)

    def seen(self, hopped: Flags) -> Hops:
        """Return these and those at rungs where hops were seen, shape (K, D), or next to them."""
        along = self.along | hopped
        along[1:] |= hopped[:-1]
        along[:-1] |= hopped[1:]
        return replace(self, along=along)


class Trials:
    """Trials of wide slices, all coordinates equally often.

    Parameters
    ----------
    dimension
        Number of coordinates D.
    rng
        Source of randomness.
    """

    def __init__(self, dimension: int, rng: np.random.Generator) -> None:
        self._rng = rng
        self._dimension = dimension
        self._order: list[int] = []

    def affordable(self, scans: int, evaluations: float) -> int:
        """Return how many coordinates to try after a round.

        Parameters
        ----------
        scans
            Scans of the round.
        evaluations
            Evaluations of a replica in each.
        """
        number = int(_TRIAL_SHARE * scans * evaluations / (_EVALUATIONS + len(_BETWEEN)))
        return min(number, _MOST_SWEEPS * self._dimension)

    def made(
        self,
        densities: Densities,
        places: Places,
        powers: FloatArray,
        *,
        reach: FloatArray,
        number: int,
    ) -> tuple[Places, Flags]:
        """Move n points along so many coordinates, one after the other.

        Parameters
        ----------
        densities, places, powers
            As for :func:`~harness.samplers.explorers.hmc`.
        reach
            Range of the draws at each point's rung, shape (n, D).
        number
            How many coordinates.

        Returns
        -------
        tuple of Places and Flags
            Where the points are then, and the coordinates along which each has crossed a valley,
            shape (n, D).
        """
        points, values = places.points, places.values
        height = log_height(values, powers)
        hopped = np.zeros(points.shape, dtype=np.bool_)
        for axis in self._next(number):
            start, before = points, height
            points, values = slice_along_axis(
                densities,
                points,
                values,
                powers,
                axis=axis,
                width=_RANGES * reach[:, axis],
                bounds=_BOUNDS,
                rng=self._rng,
            )
            height = log_height(values, powers)
            lower = np.minimum(before, height)
            hopped[:, axis] |= lower - _lowest(densities, start, points, powers) > _DEEP
        return arrived(densities, places, points, powers), hopped

    def _next(self, number: int) -> list[int]:
        while len(self._order) < number:
            self._order += self._rng.permutation(self._dimension).tolist()
        chosen, self._order = self._order[:number], self._order[number:]
        return chosen


def _lowest(
    densities: Densities, one: FloatArray, other: FloatArray, powers: FloatArray
) -> FloatArray:
    """Return the lowest log density of a few places between points (n, D), shape (n,)."""
    heights = [
        log_height(densities.values(one + share * (other - one)), powers) for share in _BETWEEN
    ]
    return np.asarray(np.min(heights, axis=0))
