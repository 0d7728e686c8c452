"""Climbs of a log density in coordinates in which draws have mean 0 and standard deviation 1."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from harness.arrays import FloatArray, LogDensity
from harness.engine.timed import seconds_a_point
from harness.evidence import LogEvidence
from harness.modes.climb import LONGEST_STEP, Climbed, climb, everywhere
from harness.modes.local_mass import LocalGaussian, local_gaussian
from harness.user.narrow_peaks import FEWEST_POINTS, POINTS, WalkedPast, walked_past
from harness.user.neighbourhood import Neighbourhood
from harness.user.one_copy import InOneCopy
from harness.user.peaked_lengths import PeakedLengths
from harness.user.race import GRADIENTS as RACED_GRADIENTS
from harness.user.race import Race

_FIRST_BATCH, _BATCH = 32, 512
"""Climbs that are made at once: few at first, to see how long the density takes on their way."""
_GRADIENTS = 40_000
"""Evaluations after which no further batch of climbs begins where one mode is known."""
_BOLD_STEP = 10 * LONGEST_STEP
"""Longest step of every other climb: a mode far narrower than another is not where one goes uphill
to by short steps, but may be where a long one leads."""
_LONG = 150
"""Evaluations of a climb that takes long, by which the size of a batch is made to fit the time."""
_BOUND_POINTS = 500
_SOME_DRAWS = 100
_WEIGH_SHARE = 0.5
"""Share of the time that is left for the masses of narrow peaks among the draws."""
_SAME = 0.1
"""Distance below which two ends are one peak, in standard deviations of the draws."""
_ENDS = 64
"""Highest ends of earlier climbs at which later ones need not make sure that they have arrived."""


class Peaks(NamedTuple):
    """Maxima at which climbs ended, the highest first."""

    points: FloatArray
    start: npt.NDArray[np.intp]
    """Number of the starting point of a climb to each."""
    climbs: int
    """Number of climbs."""


class Climbs:
    """Climbs in coordinates in which the draws have mean 0 and standard deviation 1.

    Parameters
    ----------
    density
        The density that is climbed.
    points
        The draws on the unconstrained space, shape (chains, draws, D).
    others
        Points (n, D) of other methods.
    in_one_copy
        The copy of the posterior that all draws are in, if they are in one of several.

    Attributes
    ----------
    visited
        The surroundings of the draws and of the other points.
    gradients
        Gradients and densities that have been evaluated.
    """

    def __init__(
        self,
        density: PeakedLengths,
        points: FloatArray,
        others: Iterable[FloatArray],
        in_one_copy: InOneCopy | None,
    ) -> None:
        flat = points.reshape(-1, points.shape[2])
        self._density, self._in_one_copy, self.gradients = density, in_one_copy, 0
        each = list(others)
        self._others = np.concatenate([flat[:0], *each])
        self.visited = Neighbourhood(flat, each)
        self._ends, self._heights = np.empty((0, flat.shape[1])), np.empty(0)
        self._whitened_ends = self._ends
        self._seconds = 0.0
        self._seconds_each = self._time(flat[:: max(1, len(flat) // 16)][:16])
        self._some_draws = flat[:: max(1, len(flat) // _SOME_DRAWS)]

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Evaluate the density, and count."""
        began = time.perf_counter()
        found = self._density(points)
        self.gradients += len(points)
        self._seconds += time.perf_counter() - began
        return found

    def _values(self, points: FloatArray) -> FloatArray:
        """Evaluate the density alone, and count that as much."""
        self.gradients += len(points)
        return self._density.values(points)

    def _time(self, points: FloatArray) -> float:
        """Return the seconds that an evaluation takes."""
        return max(seconds_a_point(self, points), 1e-9)

    def peaks(
        self,
        start: FloatArray,
        *,
        bold: bool = False,
        several: bool = False,
        most_seconds: float = np.inf,
    ) -> Peaks:
        """Climb from points (n, D), batch after batch, as long as there is time.

        ``bold`` gives every other climb longer steps.  The number of evaluations is limited unless
        there are ``several`` modes, or climbs find a further one.
        """
        ends_at, before, made = time.perf_counter() + most_seconds, self.gradients, 0
        start, each = self._brought(start), float(_LONG)
        steps = [LONGEST_STEP, _BOLD_STEP if bold else LONGEST_STEP]
        ends, heights, numbers = [np.empty((0, start.shape[1]))], [np.empty(0)], []
        while made < len(start) and (several or self.gradients - before < _GRADIENTS):
            left = ends_at - time.perf_counter()
            size = int(min(_BATCH, left / (each * self._seconds_each)))
            if size < 1:
                break
            if made and not several:  # as many as evaluations are likely to be left for
                taken = self.gradients - before
                size = min(size, math.ceil(made * (_GRADIENTS - taken) / taken))
            batch = start[made : made + (size if made else min(size, _FIRST_BATCH))]
            spent, seconds = self.gradients, self._seconds
            climbed = self._climbed(batch, ends_at, longest_step=np.resize(steps, len(batch)))
            arrived = _arrived(climbed)
            there = self._brought(climbed.points[arrived])
            several = several or not np.all(self.visited.holds(there))
            ends.append(there)
            heights.append(climbed.height[arrived])
            self._know(there, climbed.height[arrived])
            numbers += [made + int(k) for k in arrived]
            if time.perf_counter() > ends_at:  # others were given up
                made += len(arrived)
                break
            made += len(batch)
            # Climbs may pass places where the density takes much longer than among the draws, and
            # may take longer than most.
            taken = max(1, self.gradients - spent)
            self._seconds_each = max(self._seconds_each, (self._seconds - seconds) / taken)
            each = max(each, taken / len(batch))
        points, height = np.concatenate(ends), np.concatenate(heights)
        kept = self._distinct(points, height)
        return Peaks(points[kept], np.array(numbers, dtype=np.intp)[kept], made)

    def racers(self, most_seconds: float) -> float:
        """Return how many points may take part in a race that takes so long."""
        return most_seconds / (RACED_GRADIENTS * self._seconds_each)

    def raced(
        self, start: FloatArray, known: Sequence[LocalGaussian] = (), *, most_seconds: float
    ) -> FloatArray:
        """Return where the winners of a race from points (n, D) end, the highest first.

        Those that are in ``known`` modes do not go on.
        """
        ends_at = time.perf_counter() + most_seconds
        start = self._brought(start)
        race = Race(self.visited, self._heights_of_draws, known)
        first = race(0, start, self._values(start))  # so that few are climbs, which take memory
        climbed = self._climbed(start[first], ends_at, race)
        longer = self._climbed(climbed.points[climbed.unfinished], ends_at)
        ended = [(each, _arrived(each)) for each in (climbed, longer)]
        winners = self._brought(np.concatenate([each.points[rows] for each, rows in ended]))
        height = np.concatenate([each.height[rows] for each, rows in ended])
        self._know(winners, height)
        return winners[self._distinct(winners, height)]

    def _climbed(
        self,
        start: FloatArray,
        ends_at: float,
        race: Race | None = None,
        *,
        longest_step: FloatArray | float = LONGEST_STEP,
    ) -> Climbed:
        """Climb from points (n, D); those that have not arrived when the time ends are given up."""

        def goes_on(steps: int, points: FloatArray, height: FloatArray) -> npt.NDArray[np.bool_]:
            if time.perf_counter() > ends_at:
                return np.zeros(len(points), dtype=np.bool_)
            if race is None or not steps:
                return np.ones(len(points), dtype=np.bool_)
            return race(steps, points, height)

        return climb(
            start,
            self,
            scale=self.visited.spread,
            box=everywhere(start.shape[1]),
            longest_step=longest_step,
            is_end=self._is_end,
            goes_on=goes_on,
        )

    @cached_property
    def _heights_of_draws(self) -> tuple[float, float]:
        """Log densities between which points among the draws, and the peak there, are."""
        height = self(self._some_draws)[0]
        return float(height.min()), float(height.max()) + 0.5 * self._some_draws.shape[1]

    def unlike_draws(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether points (n, D) are away from the draws or higher than these."""
        away: npt.NDArray[np.bool_] = ~self.visited.holds(points)
        away[~away] = self(points[~away])[0] > self._heights_of_draws[1]
        return away

    @property
    def _of_draws(self) -> LogDensity:
        """The density where the draws may be."""
        return self if self._in_one_copy is None else self._in_one_copy

    def _brought(self, points: FloatArray) -> FloatArray:
        """Return points (n, D) in the copy that the draws are in, if that is one of several."""
        return points if self._in_one_copy is None else self._in_one_copy.brought(points)

    def _know(self, points: FloatArray, height: FloatArray) -> None:
        """Take in where climbs ended; of the different ends the highest are kept."""
        points = np.concatenate([self._ends, points])
        height = np.concatenate([self._heights, height])
        kept = self._distinct(points, height)[:_ENDS]
        self._ends, self._heights = points[kept], height[kept]
        self._whitened_ends = self.visited.whitened(self._ends)

    def _is_end(self, points: FloatArray, height: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether points are at an end of earlier climbs and no higher: so as one peak with it."""
        apart = cdist(self.visited.whitened(points), self._whitened_ends)
        same = (apart < _SAME) & (height[:, None] <= self._heights)
        at_end: npt.NDArray[np.bool_] = np.any(same, axis=1)
        return at_end

    def examined(
        self, peaks: FloatArray, *, most_seconds: float, rough: bool = False
    ) -> dict[int, LocalGaussian]:
        """Return the Gaussians that fit at peaks (n, D), by row, as long as there is time.

        Those without one, because there is no maximum, are left out.  A ``rough`` one, which is no
        wider than the draws in any direction, is where a climb has not quite got there, too.
        """
        began, found = time.perf_counter(), {}
        for number, peak in enumerate(peaks):
            if number and time.perf_counter() - began > most_seconds:
                break
            local = local_gaussian(
                peak, self, scale=self.visited.spread, flattest=1.0 if rough else 0.0
            )
            if local is not None:
                found[number] = local
        return found

    def walked_past(
        self,
        peaks: FloatArray,
        points: FloatArray,
        *,
        at_least: float,
        total: LogEvidence | None,
        most_seconds: float,
        seed: int,
    ) -> WalkedPast:
        """Return those of some peaks (n, D) among the draws which these have walked past."""
        ends = time.perf_counter() + most_seconds
        examined = list(self.examined(self.distinct(peaks), most_seconds=most_seconds).values())
        left = max(ends - time.perf_counter(), 0.0)
        count = _WEIGH_SHARE * left / (self._seconds_each * max(len(examined), 1))
        if count < FEWEST_POINTS:
            return WalkedPast()
        return walked_past(
            examined,
            points,
            self.visited,
            self,
            others=self._others,
            of_draws=self._of_draws,
            at_least=at_least,
            total=total,
            count=int(min(POINTS, count)),
            most_seconds=(1 - _WEIGH_SHARE) * left,
            seed=seed,
        )

    def distinct(self, points: FloatArray) -> FloatArray:
        """Return different ones of some points (n, D), the highest first; not where it is zero."""
        height = self(points)[0]
        possible = np.isfinite(height)
        points, height = points[possible], height[possible]
        return points[self._distinct(points, height)]

    def lower_bound(self, rng: np.random.Generator) -> float:
        """Return a log mass that is at least there, by importance sampling from a Gaussian.

        The Gaussian has the draws' moments.  The mean of the weights is unbiased for the integral
        of the density, and a twentieth of it exceeds that integral with a probability of at most
        1/20, whatever the dimension (Markov's inequality).  Where the draws are no Gaussian it is
        far below.
        """
        points, log_proposal = self.visited.gaussian(_BOUND_POINTS, rng)
        log_weight = self._of_draws(points)[0] - log_proposal
        return float(logsumexp(log_weight) - np.log(20 * len(log_weight)))

    def _distinct(self, points: FloatArray, height: FloatArray) -> list[int]:
        """Return the rows of different peaks, the highest first."""
        whitened = self.visited.whitened(points)
        left = np.argsort(-height, kind="stable")
        kept: list[int] = []
        while left.size:
            kept.append(int(left[0]))
            apart = np.linalg.norm(whitened[left] - whitened[left[0]], axis=1)
            left = left[apart >= _SAME]
        return kept


def _arrived(climbed: Climbed) -> npt.NDArray[np.intp]:
    """Return the rows of climbs that ended at a maximum."""
    return np.flatnonzero(climbed.arrived & np.all(np.isfinite(climbed.points), axis=1))
