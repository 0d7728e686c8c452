"""A race of climbs: most are given up early, so that many more starting points can be tried.

Where only one starting point in a thousand leads anywhere, a climb that is carried through from
each of them would take too long.  Those that are higher than most others, at the start and after a
few steps, are the ones to follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.modes.local_mass import LocalGaussian, reach_of
from harness.user.neighbourhood import Neighbourhood

HURDLES: Mapping[int, int] = {0: 16, 8: 8, 30: 8}
"""After how many steps there is a hurdle, and how many climbs there are before it for each one that
goes on."""
_ALIKE = 0.1
"""Difference between a log density and that of a mode's Gaussian, in nats and as a share of how far
below its peak they are, up to which the mode explains the point."""
_TIMES = 3.0
"""Times as far from a peak as nearly all of its Gaussian, a climb is on its way back to it, unless
it is higher.  Not all modes are Gaussian, so not all such points are explained by it."""
_FEWEST = 16
"""Climbs that go on in any case."""
GRADIENTS = 3
"""Gradients that a race takes for each of its starting points, about, if climbs take some 200."""


class Race:
    """Which climbs go on: at each hurdle the highest of those that are not in known modes already.

    Parameters
    ----------
    visited
        The surroundings of the draws.
    heights
        Log densities between which a point among the draws looks like one of them.
    known
        Gaussians that fit at known peaks.
    """

    def __init__(
        self,
        visited: Neighbourhood,
        heights: tuple[float, float],
        known: Sequence[LocalGaussian] = (),
    ) -> None:
        self._visited, self._heights, self._known = visited, heights, known

    def __call__(self, steps: int, points: FloatArray, height: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether climbs go on that have got to points (n, D) with log densities (n,)."""
        goes_on = np.ones(len(points), dtype=np.bool_)
        if steps not in HURDLES:
            return goes_on
        lowest, highest = self._heights
        alike = (height >= lowest) & (height <= highest)
        goes_on[alike] = ~self._visited.holds(points[alike])
        known = _holds if steps == max(HURDLES) else explains
        for each in self._known:
            goes_on[goes_on] = ~known(each, points[goes_on], height[goes_on])
        left = np.flatnonzero(goes_on)
        first = left[np.argsort(-height[left], kind="stable")]
        goes_on[first[max(_FEWEST, len(points) // HURDLES[steps]) :]] = False
        return goes_on


def explains(mode: LocalGaussian, points: FloatArray, height: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether points (n, D) with log densities (n,) are in a mode, and as high as its Gaussian."""
    below = 0.5 * np.square(mode.standardised(points)).sum(axis=1)
    explained: npt.NDArray[np.bool_] = mode.around(points) & (
        np.abs(height - (mode.height - below)) <= _ALIKE * (1 + below)
    )
    return explained


def _holds(mode: LocalGaussian, points: FloatArray, height: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether climbs that have come far, to points (n, D), will end at a known peak."""
    distance = np.linalg.norm(mode.standardised(points), axis=1)
    held: npt.NDArray[np.bool_] = (distance <= _TIMES * reach_of(len(mode.peak))) & (
        height <= mode.height + _ALIKE
    )
    return held
