"""Look for modes that share all but some of their elements with known ones, round after round.

In each round climbs race from points in known modes with some elements drawn anew
(:mod:`harness.user.partly_anew`, :mod:`harness.user.race`).  What a round finds is known in the
next one, so a mode that several groups must be right about is found one group at a time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.modes.local_mass import LocalGaussian
from harness.modes.table import NEGLIGIBLE
from harness.user.climbs import Climbs
from harness.user.partly_anew import PartlyAnew
from harness.user.race import explains

_STARTS, _FEW = 16_384, 2_048
"""Starting points of a round where there are several modes, and where only one is known."""
_NUMBERS = 1_000_000
"""Coordinates of all of these, so that they do not take too much memory."""
_IN_VAIN = 5
"""Rounds in a row that find nothing, after which there are no more where there are several modes.
"""
_KNOWN, _BEST = 32, 8
"""Highest of the known peaks that are looked at, and largest modes that half of the points begin
in.  The others begin at draws, unless these have a negligible part of the mass."""
_EXAMINING = 0.2
"""Share of the time for these."""
_EXAMINED = 8
"""Highest new peaks of a round whose masses are looked at."""


def from_known_modes(
    search: Climbs,
    density: BatchedDensity,
    anew: FloatArray,
    draws: FloatArray,
    known: FloatArray,
    *,
    log_mass: float,
    several: bool,
    most_seconds: float,
    seed: int,
) -> FloatArray:
    """Return peaks that are found from known modes, the largest mass first, shape (m, D).

    Parameters
    ----------
    search
        Makes the climbs.
    density
        The density.
    anew
        Points (n, D) from which new elements are taken.
    draws
        Draws, shape (n, D).
    known
        Peaks (m, D) that are known, the highest first.
    log_mass
        Log of the mass that the draws stand for.
    several
        Whether there are several modes, so that there may well be more.  Otherwise there is one
        small round.
    most_seconds
        Seconds of wall time.
    seed
        Seed.
    """
    ends = time.perf_counter() + most_seconds
    rng = np.random.default_rng([seed, 23])
    partly_anew = PartlyAnew(density, anew)
    examined = search.examined(known[:_KNOWN], most_seconds=_EXAMINING * most_seconds)
    best, found = _different(examined.values()), list[LocalGaussian]()
    mass = max([log_mass, *(each.log_mass for each in best)])
    in_vain = 0
    while in_vain < (_IN_VAIN if several else 1) and (left := ends - time.perf_counter()) > 0:
        most = min(_STARTS if several else _FEW, _NUMBERS // draws.shape[1])
        count = int(min(most, search.racers(left)))
        if not count:
            break
        start = draws[rng.integers(len(draws), size=count)]
        if best:
            peaks = np.array([each.peak for each in best])
            part = start[:: 2 if log_mass >= mass + np.log(NEGLIGIBLE) else 1]
            # The larger ones more often.
            part[:] = peaks[(len(peaks) * np.square(rng.random(len(part)))).astype(np.intp)]
        reached = np.concatenate(
            [draws[:0]]
            + [
                search.raced(starts, best, most_seconds=ends - time.perf_counter())
                for starts in partly_anew(start, rng)
            ]
        )
        height = search(reached)[0]
        new = _unexplained(reached, height, [*best, *found]) & search.unlike_draws(reached)
        # A maximum that a climb has not quite got to is found by later ones that begin there.
        highest = reached[new][np.argsort(-height[new], kind="stable")][:_EXAMINED]
        examined = search.examined(highest, most_seconds=ends - time.perf_counter(), rough=True)
        mass = max([mass, *(each.log_mass for each in examined.values())])
        lowest = mass + np.log(NEGLIGIBLE)
        matter = [each for each in examined.values() if each.log_mass >= lowest]
        several = several or bool(matter)
        in_vain = 0 if matter else in_vain + 1
        found += matter
        best = _different([*best, *matter])
    found.sort(key=lambda each: -each.log_mass)
    return np.array([each.peak for each in found]).reshape(-1, draws.shape[1])


def _different(modes: Iterable[LocalGaussian]) -> list[LocalGaussian]:
    """Return the largest of some modes, without those that are around the peak of a larger one."""
    different: list[LocalGaussian] = []
    for each in sorted(modes, key=lambda each: -each.log_mass):
        if not any(larger.around(each.peak[None])[0] for larger in different):
            different.append(each)
    return different[:_BEST]


def _unexplained(
    points: FloatArray, height: FloatArray, known: Sequence[LocalGaussian]
) -> npt.NDArray[np.bool_]:
    """Whether points (n, D) with log densities (n,) are in none of the known modes."""
    unexplained = np.ones(len(points), dtype=np.bool_)
    for each in known:
        unexplained &= ~explains(each, points, height)
    return unexplained
