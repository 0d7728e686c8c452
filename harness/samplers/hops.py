"""Hops of replicas from mode to mode along a coordinate, by slices wide enough for all of them.

Where many parameters have two values each, as positions of wells or ambiguous dates have, modes are
too many for a mixture of Gaussians to have a part in each, and replicas get from one to another only
along the ladder.  But a slice along one coordinate that is as wide as all draws leads there at once.
Such slices are tried in warm-up, at the end of each round, and made from then on along those
coordinates, and at those rungs, where some crossed a valley that is too deep for Hamiltonian Monte
Carlo.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.samplers.explorers import Flags, slice_along_axis, slice_sweep
from harness.samplers.rung_path import Densities, Places, Rungs, log_height

_RANGES = 1.5
"""Width of a slice, in ranges of the draws: a mode at the other end is mostly inside."""
_DEEP = 3.0
"""Depth of a valley below the lower of its sides, in nats."""
_BETWEEN = np.array([0.25, 0.5, 0.75])
"""Where the density between two places is looked at."""
_EVALUATIONS = 10
"""Evaluations of a slice, roughly."""
_SHARE = 0.5
"""Evaluations of sweeps, as a share of all else."""
_TRIAL_SHARE = 0.25
"""Evaluations of trials, as a share of the round's."""
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
        rows = np.flatnonzero(self.along.any(axis=1)[rung])
        rung = rung[rows]
        moved = slice_sweep(
            densities,
            places.take(rows),
            rungs.powers[rung],
            width=_RANGES * self.reach[rung],
            rng=rng,
            along=self.along[rung],
            most_widths=1,
        )
        places.put(rows, moved)

    def seen(self, hopped: Flags) -> Hops:
        """Return these and those at rungs where hops were seen, shape (K, D), or next to them."""
        along = self.along | hopped
        along[1:] |= hopped[:-1]
        along[:-1] |= hopped[1:]
        return replace(self, along=along)


class Trials:
    """Trials of wide slices, one coordinate after the other.

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
        """How many coordinates are tried after so many scans with evaluations of each replica."""
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
        """Move n points along so many coordinates; return where they are, and which hopped.

        Parameters
        ----------
        densities, places, powers
            As for :func:`~harness.samplers.explorers.hmc`.
        reach
            Range of the draws at each point's rung, shape (n, D).
        number
            How many coordinates; all are tried equally often in the end.

        Returns
        -------
        tuple of Places and Flags
            Where the points are then, and the coordinates along which each has crossed a valley,
            shape (n, D).
        """
        points, values = places.points.copy(), places.values.copy()
        hopped = np.zeros(points.shape, dtype=np.bool_)
        for axis in self._next(number):
            before = points, log_height(values, powers)
            points, values = slice_along_axis(
                densities,
                points,
                values,
                powers,
                axis=axis,
                width=_RANGES * reach[:, axis],
                most_widths=1,
                rng=self._rng,
            )
            sides = np.minimum(before[1], log_height(values, powers))
            hopped[:, axis] |= sides - _lowest(densities, before[0], points, powers) > _DEEP
        there = densities(points)
        usable = np.isfinite(log_height(there.values, powers))
        moved = places.copy()
        moved.put(usable, there.take(np.flatnonzero(usable)))
        return moved, hopped

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
