"""Which of the modes that were found are copies of each other, and which copy nobody has seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.spatial import KDTree

from harness.arrays import FloatArray, values_of
from harness.modes.barriers import BARRIER, lowest_between, lowest_by_paths
from harness.modes.climb import everywhere
from harness.modes.copies import Copy, copies_by_order, copy_by_group
from harness.modes.group import Group, generated_group
from harness.modes.permutations import Permutation, swaps
from harness.modes.regions import Region
from harness.modes.symmetries import changed_points, find_symmetries, leaves_density
from harness.modes.table import Mode
from harness.modes.target import Target
from harness.modes.words import listed

_DRAWS = 5
"""Draws of a mode at which a change of the parameters must leave the density."""
_SAME_HEIGHT = 0.1
"""Nats by which climbs to the peaks of two copies may miss the same height."""
_POINTS_FOR_GROUP, _GROUP_SHARE = 20, 0.2
"""The same for changes that are looked for anywhere, and share of the time for these."""
_MOST_COPIED = 24
"""Modes among which copies are looked for, the most probable ones."""
_IMAGES, _NEAREST = 20, 8
"""Images of draws of which most are joined to one of the draws nearest to them if chains have been
in a copy."""


@dataclass(frozen=True)
class CopiesAmong:
    """Copies among modes.

    Attributes
    ----------
    target
        Log density and parameters.
    regions
        Peak of each mode, the most probable one first.
    points
        Draws in all of them, shape (n, D).
    scale
        Size of each coordinate, shape (D,).
    inside
        Draws of each mode in random order, each of shape (m, D).
    spread
        Standard deviations of each parameter's numbers within modes.
    most_seconds
        Seconds of wall time for the whole table of modes.
    """

    target: Target
    regions: Sequence[Region]
    points: FloatArray
    scale: FloatArray
    inside: Sequence[FloatArray]
    spread: Mapping[str, FloatArray]
    most_seconds: float

    def marked(self, modes: Sequence[Mode]) -> list[Mode]:
        """Return the modes, marked where they are copies of one before them."""
        marked = list(modes)
        for k in range(1, min(len(modes), _MOST_COPIED)):
            for original in range(k):
                if marked[original].copy_of is not None or self._differ(original, k):
                    continue
                copy = self._copy(original, k)
                if copy is not None:
                    marked[k] = replace(
                        modes[k],
                        copy_of=original + 1,
                        permuted=copy.permuted,
                        order=copy.order,
                        otherwise=copy.otherwise,
                    )
                    break
        return marked

    def unseen(self) -> str:
        """Return the copy of the first mode that two entries of an index make and no method saw."""
        first = self.regions[0]
        if not first.closed:
            return ""
        draws = self.inside[0][:_DRAWS]
        for permutation in swaps(self.target.shapes):
            if not leaves_density(permutation, draws, self.target):
                continue
            made = changed_points(permutation, first.peak[None], self.target)
            peaks = np.stack([each.peak for each in self.regions])
            heights = np.array([each.height for each in self.regions])
            height = np.full(len(peaks), self.target(made)[0][0])
            ends = np.repeat(made, len(peaks), axis=0), peaks
            joined = self._joined_anyhow(*ends, (height, heights)).any()
            if not joined and not self._draws_are_where(permutation):
                one, other = (k + 1 for k in permutation.swapped)
                return f"entries {one} and {other} of {listed(permutation.parameters)} swapped"
        return ""

    def _draws_are_where(self, permutation: Permutation) -> bool:
        """Whether draws are where it brings those of the first mode.

        Between two places on a curved ridge, as where a model may be rotated, the paths that are
        looked at may all leave it.
        """
        images = changed_points(permutation, self.inside[0][:_IMAGES], self.target)
        count = min(_NEAREST, len(self.points))
        near = KDTree(self.points / self.scale).query(images / self.scale, k=count)[1]
        one, other = np.repeat(images, count, axis=0), self.points[near.ravel()]
        values = values_of(self.target)
        enough = np.minimum(values(one), values(other)) - BARRIER
        joined = lowest_between(one, other, enough, self.target) >= enough
        return bool(np.mean(joined.reshape(len(images), count).any(axis=1)) > 0.5)

    def _differ(self, one: int, other: int) -> bool:
        """Whether two modes have peaks of different heights, so that neither is a copy."""
        first, second = self.regions[one], self.regions[other]
        if first.rest or second.rest:  # which have no peak
            return True
        return first.closed and second.closed and abs(first.height - second.height) > _SAME_HEIGHT

    def _copy(self, one: int, other: int) -> Copy | None:
        """Return what turns one mode into another, if anything does."""
        peaks = self.regions[one].peak, self.regions[other].peak
        draws = self.inside[one][:_DRAWS]
        tried = list(copies_by_order((peaks[0], draws), peaks[1], self.target, self.spread))
        if self._group is not None:
            otherwise = copy_by_group(*peaks, self.target, self._group, self.spread)
            tried += [] if otherwise is None else [otherwise]
        for copy in tried:
            height = self.target(copy.peak[None])[0]
            heights = height, np.array([self.regions[other].height])
            if self._joined_anyhow(copy.peak[None], peaks[1][None], heights)[0]:
                return copy
        return None

    @cached_property
    def _group(self) -> Group | None:
        """What leaves the density, if that is not too much."""
        every = max(1, len(self.points) // _POINTS_FOR_GROUP)
        most_seconds = _GROUP_SHARE * self.most_seconds
        points = self.points[::every]
        return generated_group(find_symmetries(self.target, points, most_seconds=most_seconds))

    def _joined_anyhow(
        self, one: FloatArray, other: FloatArray, heights: tuple[FloatArray, FloatArray]
    ) -> npt.NDArray[np.bool_]:
        """Whether there is no barrier between points (n, D), wherever the draws are."""
        box = everywhere(one.shape[1])
        lowest = lowest_by_paths(one, other, heights, self.target, scale=self.scale, box=box)
        return lowest > -np.inf
