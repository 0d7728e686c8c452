"""Divide draws of a posterior into regions between which its log density has barriers.

Climbs from some of the draws lead to peaks.  Peaks without a barrier between them belong to one
region, so that a ridge, a plateau, a shell or a density without an upper bound counts once.  Every
other draw belongs to the region whose peak it sees without a barrier, or to which a climb from it
leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from harness.arrays import Counted, FloatArray, LogDensity
from harness.errors import DataError
from harness.modes.barriers import BARRIER, SAME, lowest_between, lowest_by_paths
from harness.modes.climb import Box, climb

Labels = npt.NDArray[np.intp]

_MARGIN = 0.5
"""Of the box beyond the draws, as a share of their range."""
_ALL_PEAKS = 8
"""As many peaks are compared with all others; from then on each with its nearest ones only."""
_NEAREST = 32
_MEMBERS, _NEIGHBOURS = 3, 5
"""Lines between two regions' nearest peaks, and nearest regions to which paths are tried."""
_CANDIDATES = 4
_TO_A_PEAK = 3
"""How often a line from a draw to a peak is halved."""


@dataclass(frozen=True)
class Search:
    """How much is done to find regions.

    Attributes
    ----------
    climbs
        Draws from which climbs start at first.
    more_climbs
        Draws from which climbs start because no peak, or more than one, is in sight.
    paths
        Pairs of regions that are joined if a path that bends has no barrier, those that are nearest
        to each other; None for all neighbours.

    Raises
    ------
    DataError
        If a number is out of range.
    """

    climbs: int = 256
    more_climbs: int = 512
    paths: int | None = None

    def __post_init__(self) -> None:
        if self.climbs < 1 or self.more_climbs < 0:
            raise DataError(
                f"regions need one climb or more; got {self.climbs} and {self.more_climbs}"
            )
        if self.paths is not None and self.paths < 0:
            raise DataError(f"the number of paths must not be negative; got {self.paths}")


@dataclass(frozen=True)
class Region:
    """A part of a posterior without barriers inside.

    Attributes
    ----------
    peak
        The highest point that a climb reached in it, shape (D,).
    height
        Log density there.
    closed
        Whether a climb ended at a maximum there.  If not, the density rises as far as the draws
        reach and beyond, or a climb took too long.
    rest
        Whether it is what is left of a region around a narrow peak (:mod:`harness.modes.cores`).
    """

    peak: FloatArray
    height: float
    closed: bool
    rest: bool = False


class Regions(NamedTuple):
    """Regions, and to which of them each draw belongs."""

    regions: tuple[Region, ...]
    labels: Labels
    """Number of each draw's region, shape (n,)."""
    unsure: int
    """Draws that belong to a region only because it has the nearest draw whose region is known."""
    gradients: int


def find_regions(
    points: FloatArray,
    log_density: LogDensity,
    *,
    scale: FloatArray,
    search: Search | None = None,
    brought: Callable[[FloatArray], FloatArray] | None = None,
) -> Regions:
    """Divide draws into regions.

    What this cannot tell: a region that no draw is in; a barrier so thin that a line of fifteen
    points steps over it, or lower than a nat; whether two regions are joined by a path that bends
    more than a few times.  Barriers are those of the joint density; samplers may cross one with
    ease if it is low and wide.

    Parameters
    ----------
    points
        Draws on the unconstrained space, shape (n, D), in an order in which the first ones are as
        good as any to climb from.
    log_density
        Log density and gradient at many points.
    scale
        Size of each coordinate within a region, roughly, shape (D,).
    search
        How much is done.
    brought
        Brings points (n, D) to the copy that all draws are in, where the posterior has copies: a
        climb may end in another one.

    Raises
    ------
    DataError
        If the density is zero at all draws.
    """
    return _Finder(points, log_density, scale, search or Search(), brought).found()


class _Lines(NamedTuple):
    """Pairs of peaks, and the lowest log density between the two."""

    one: Labels
    other: Labels
    lowest: FloatArray


_NO_LINES = _Lines(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp), np.empty(0))


class _Finder:
    """Peaks so far, the region of each, and which draw each was reached from."""

    def __init__(
        self,
        points: FloatArray,
        log_density: LogDensity,
        scale: FloatArray,
        search: Search,
        brought: Callable[[FloatArray], FloatArray] | None,
    ) -> None:
        self._points, self._scale, self._search = points, scale, search
        self._brought = brought
        self._density = Counted(log_density)
        low, high = points.min(axis=0), points.max(axis=0)
        room = np.maximum(_MARGIN * (high - low), scale)
        self._box = Box(low - room, high + room)
        dimension = points.shape[1]
        self._peaks: FloatArray = np.empty((0, dimension))
        self._heights: FloatArray = np.empty(0)
        self._arrived = np.empty(0, dtype=np.bool_)
        self._origin: Labels = np.empty(0, dtype=np.intp)
        self._region: Labels = np.empty(0, dtype=np.intp)

    def found(self) -> Regions:
        """Climb, join what belongs together, and assign the draws."""
        height = self._density.values(self._points)
        usable = np.flatnonzero(np.isfinite(height))
        if not usable.size:
            raise DataError("the density is zero at all draws, so they have no modes")
        self._take_in(usable[: self._search.climbs])
        labels = np.full(len(self._points), -1, dtype=np.intp)
        labels[self._origin] = np.arange(len(self._origin))  # peaks, for the time being
        rest = usable[labels[usable] < 0]
        labels[rest] = self._in_sight(rest, height[rest])
        lost = rest[labels[rest] < 0]
        self._take_in(lost[: self._search.more_climbs])
        labels[self._origin] = np.arange(len(self._origin))
        unsure = np.flatnonzero(labels < 0)
        if unsure.size:
            apart = cdist(self._points[unsure] / self._scale, self._started() / self._scale)
            labels[unsure] = apart.argmin(axis=1)
        labels = self._region[labels]
        regions = [self._described(each) for each in range(self._region.max() + 1)]
        return Regions(tuple(regions), labels, len(unsure), self._density.gradients)

    def _started(self) -> FloatArray:
        """Return the draws from which climbs started, one for each peak."""
        return np.asarray(self._points[self._origin])

    def _described(self, region: int) -> Region:
        own = np.flatnonzero(self._region == region)
        best = own[self._heights[own].argmax()]
        return Region(self._peaks[best], float(self._heights[best]), bool(self._arrived[own].any()))

    def _take_in(self, rows: Labels) -> None:
        """Climb from some draws, and find out which regions their peaks belong to."""
        if not rows.size:
            return
        climbed = climb(self._points[rows], self._density, scale=self._scale, box=self._box)
        ends = climbed.points if self._brought is None else self._brought(climbed.points)
        first = len(self._peaks)
        self._peaks = np.concatenate([self._peaks, ends])
        self._heights = np.concatenate([self._heights, climbed.height])
        self._arrived = np.concatenate([self._arrived, climbed.arrived])
        self._origin = np.concatenate([self._origin, rows])
        new = np.arange(first, len(self._peaks))
        lines = [self._as_before(), self._nearly_same(new)]
        lines.append(self._around_the_highest(self._components(lines), first))
        for bend in (False, True):
            lines.append(self._between(self._components(lines), bend=bend))
        self._region = self._components(lines)

    def _as_before(self) -> _Lines:
        """Pairs of peaks that are known to belong together."""
        known = self._region
        if not known.size:
            return _NO_LINES
        first = np.unique(known, return_index=True)[1]
        return _Lines(np.arange(len(known)), first[known], np.full(len(known), np.inf))

    def _components(self, lines: Iterable[_Lines]) -> Labels:
        """Return the region of each peak.

        Two regions become one if the lowest point between them is less than a barrier below the
        lower one's highest peak; so a low peak that sees two high ones does not join them.
        """
        one, other, lowest = (np.concatenate(each) for each in zip(*lines, strict=True))
        above = np.arange(len(self._peaks))
        top = self._heights.copy()

        def root(peak: int) -> int:
            while above[peak] != peak:
                above[peak] = above[above[peak]]
                peak = int(above[peak])
            return peak

        for line in np.argsort(-lowest, kind="stable"):
            low, high = sorted((root(one[line]), root(other[line])), key=lambda each: top[each])
            if low != high and lowest[line] >= top[low] - BARRIER:
                above[low] = high
        roots = [root(peak) for peak in range(len(above))]
        return np.asarray(np.unique(roots, return_inverse=True)[1], dtype=np.intp)

    def _nearly_same(self, new: Labels) -> _Lines:
        apart = cdist(self._peaks[new] / self._scale, self._peaks / self._scale, "chebyshev")
        first = np.argmax(apart <= SAME, axis=1)  # at the latest, the peak itself
        return _Lines(new, first, np.minimum(self._heights[new], self._heights[first]))

    def _lines(self, one: Labels, other: Labels, *, bend: bool = False) -> _Lines:
        """Return those of some pairs of peaks that have no barrier between them."""
        heights = self._heights[one], self._heights[other]
        ends = self._peaks[one], self._peaks[other]
        enough = np.minimum(*heights) - BARRIER
        if bend:
            lowest = lowest_by_paths(
                *ends, heights, self._density, scale=self._scale, box=self._box
            )
        else:
            lowest = lowest_between(*ends, enough, self._density)
        free = lowest >= enough
        return _Lines(one[free], other[free], lowest[free])

    def _around_the_highest(self, own: Labels, first: int) -> _Lines:
        """Join peaks to the highest one that they see, one after the other."""
        order = np.argsort(-self._heights, kind="stable")
        # The highest peak of each group, the highest group first.
        left = order[np.sort(np.unique(own[order], return_index=True)[1])]
        joined, rounds = [_NO_LINES], 0
        while left.size > 1:
            highest, left = left[0], left[1:]
            others = left if highest >= first else left[left >= first]
            if rounds >= _ALL_PEAKS:
                apart = np.linalg.norm(
                    (self._peaks[others] - self._peaks[highest]) / self._scale, axis=1
                )
                others = others[np.argsort(apart, kind="stable")[:_NEAREST]]
            found = self._lines(np.full(len(others), highest), others)
            joined.append(found)
            left = left[~np.isin(left, found.other)]
            rounds += 1
        return _Lines(*(np.concatenate(each) for each in zip(*joined, strict=True)))

    def _between(self, own: Labels, *, bend: bool) -> _Lines:
        """Join regions whose nearest peaks see each other, or are joined by a path."""
        count = int(own.max()) + 1
        if count == 1:
            return _NO_LINES
        apart = cdist(self._peaks / self._scale, self._peaks / self._scale)
        ones: list[int] = []
        others: list[int] = []
        for one in range(count):
            mine = np.flatnonzero(own == one)
            nearest = []
            for other in range(count):
                if other == one:
                    continue
                theirs = np.flatnonzero(own == other)
                block = apart[np.ix_(mine, theirs)]
                order = np.argsort(block, axis=None, kind="stable")[: 1 if bend else _MEMBERS]
                rows, columns = np.unravel_index(order, block.shape)
                nearest.append((block.min(), mine[rows], theirs[columns]))
            nearest.sort(key=lambda each: float(each[0]))
            for _, rows, columns in nearest[:_NEIGHBOURS]:
                ones += rows.tolist()
                others += columns.tolist()
        pairs = np.unique(np.sort(np.stack([ones, others], axis=1), axis=1), axis=0)
        if bend and self._search.paths is not None:
            nearest_first = np.argsort(apart[pairs[:, 0], pairs[:, 1]], kind="stable")
            pairs = pairs[nearest_first[: self._search.paths]]
        return self._lines(pairs[:, 0], pairs[:, 1], bend=bend)

    def _in_sight(self, rows: Labels, height: FloatArray) -> Labels:
        """Return the peak of the only region that each draw sees, or -1."""
        if not rows.size:
            return np.empty(0, dtype=np.intp)
        seen = np.full(len(rows), -1, dtype=np.intp)
        times = np.zeros(len(rows), dtype=np.intp)
        apart = cdist(self._points[rows] / self._scale, self._started() / self._scale)
        count = int(self._region.max()) + 1
        nearest = np.empty((len(rows), count), dtype=np.intp)
        distance = np.empty((len(rows), count))
        for region in range(count):
            own = np.flatnonzero(self._region == region)
            best = apart[:, own].argmin(axis=1)
            nearest[:, region] = own[best]
            distance[:, region] = apart[np.arange(len(rows)), own[best]]
        order = np.argsort(distance, axis=1, kind="stable")[:, :_CANDIDATES]
        for column in order.T:
            peak = nearest[np.arange(len(rows)), column]
            enough = np.minimum(height, self._heights[peak]) - BARRIER
            ends = self._points[rows], self._peaks[peak]
            lowest = lowest_between(*ends, enough, self._density, halvings=_TO_A_PEAK)
            sees = lowest >= enough
            seen[sees] = peak[sees]
            times += sees
        return np.where(times == 1, seen, -1)


def crossings(labels: Labels, one: int, other: int) -> float:
    """Return how often chains move between two regions, as a share of what independent draws do.

    Parameters
    ----------
    labels
        Region of each draw, shape (chains, draws).
    one, other
        Numbers of the regions.
    """
    flat = labels.ravel()
    expected = 2 * np.mean(flat == one) * np.mean(flat == other)
    if not expected:
        return 0.0
    before, after = labels[:, :-1], labels[:, 1:]
    moves = ((before == one) & (after == other)) | ((before == other) & (after == one))
    return float(moves.mean() / expected)
