"""Look for modes of a posterior that given draws do not know: climb from many starting points.

Nothing in the draws shows a mode that no chain has visited.  So climbs start at places that the
draws do not suggest (:mod:`harness.user.climb_starts`).  Where one ends at a mode without draws
nearby, the Gaussian that fits there (Laplace's approximation) tells its mass, and if that matters,
so does a bridge from NUTS that starts in it.  A narrow peak within the draws may be missing as well
(:mod:`harness.user.narrow_peaks`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from harness import evidence
from harness.arrays import FloatArray, LogDensity
from harness.diagnosis import R_HAT_PROBLEM, Finding, Severity
from harness.engine.batched import BatchedDensity
from harness.engine.timed import seconds_a_point
from harness.errors import HarnessError, SamplingError
from harness.evidence import LogEvidence
from harness.model import Model
from harness.modes.climb import LONGEST_STEP, climb, everywhere
from harness.modes.local_mass import LocalGaussian, local_gaussian, local_log_mass
from harness.modes.table import labels_of
from harness.user.climb_starts import starting_points
from harness.user.component_peaks import component_peaks
from harness.user.mode_alone import ModesAlone
from harness.user.narrow_peaks import FEWEST_POINTS, POINTS, WalkedPast, walked_past
from harness.user.neighbourhood import Neighbourhood
from harness.user.one_copy import InOneCopy
from harness.user.peaked_lengths import PeakedLengths

LEAST_MASS, LEAST_SHOWN = 0.01, 1e-3
"""Mass of a mode, as a share of that of the draws, from which on it matters, and from which on it
is shown and weighed."""
_KNOWN = 8
"""Climbs from draws, whose ends are the modes that the draws know."""
_FIRST_BATCH, _BATCH = 32, 256
"""Climbs that are made at once: few at first, to see how long the density takes on their way."""
_GRADIENTS = 60_000
"""Evaluations after which no further batch of climbs begins where one mode is known."""
_BOLD_STEP = 10 * LONGEST_STEP
"""Longest step of every other climb: a mode far narrower than another is not where one goes uphill
to by short steps, but may be where a long one leads."""
_LONG = 150
"""Evaluations of a climb that takes long, by which the size of a batch is made to fit the time."""
_BOUND_POINTS = 500
_EXAMINED = 32
"""Highest peaks without draws whose masses are looked at."""
_MASS_POINTS = 2000
_WEIGHED_ANYHOW = 4
"""Modes that are weighed although the time is over."""
_OWN_SHARE, _CLIMBS_SHARE = 0.3, 0.8
"""Shares of the time after which peaks among the draws, and climbs, have had theirs.  The second
derivatives at one peak take D gradients, and a time in proportion to D^3."""
_FOR_COMPONENTS = 8
"""Climbs of each component of a mixture."""
_COMPONENTS_SECONDS, _COMPONENTS_SHARE = 4.0, 2.0
"""Most seconds for all of these, also as a share of the time; they are not a part of it, so that
other climbs lack none, and a slow machine finds the components that a fast one does."""
_ALONE_SHARE, _ALL_ALONE_SHARE = 0.2, 0.8
"""Shares of the time for each run that samples a mode by itself, and for all of them."""
_WEIGH_SHARE = 0.5
"""Share of the time that is left for the masses of narrow peaks among the draws."""
_SAME = 0.1
"""Distance below which two ends are one peak, in standard deviations of the draws."""
_ENDS = 64
"""Highest ends of earlier climbs at which later ones need not make sure that they have arrived."""
_SHOWN = 3


class OtherMode(NamedTuple):
    """A mode without draws nearby.

    Attributes
    ----------
    local
        The Gaussian that fits there.
    origin
        Where a climb to it began, in words.
    log_mass
        Log of the integral of the density in it: that Gaussian's, or a better one.
    drawn
        Draws in it, shape (n, D), if it was sampled by itself.
    """

    local: LocalGaussian
    origin: str
    log_mass: float
    drawn: FloatArray | None = None

    def holds(self, point: FloatArray) -> bool:
        """Whether a point (D,) is where the mode was sampled."""
        return self.drawn is not None and bool(Neighbourhood(self.drawn).holds(point[None])[0])

    def points(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Return points in the mode, about where the density has its mass, shape (count, D)."""
        if self.drawn is None:
            return self.local.at(rng.standard_normal((count, len(self.local.peak))))
        return self.drawn[rng.integers(len(self.drawn), size=count)]


@dataclass(frozen=True)
class OtherModes:
    """What climbs from other starting points found.

    Attributes
    ----------
    modes
        Modes without draws nearby, the one with the largest mass first: those that are shown, or
        one that is not.
    log_mass
        Log of the mass that these are compared with; None if it is not known.
    climbs, gradients
        Number of climbs, and of gradients that all of this took.
    """

    modes: tuple[OtherMode, ...]
    log_mass: float | None
    climbs: int
    gradients: int

    def that_matter(self, least: float = LEAST_MASS) -> list[OtherMode]:
        """Return the modes with at least a share of the mass that they are compared with."""
        if self.log_mass is None:
            return []
        lowest = self.log_mass + np.log(least)
        return [each for each in self.modes if each.log_mass >= lowest]


def other_modes(
    model: Model,
    density: BatchedDensity,
    draws: Mapping[str, FloatArray],
    points: FloatArray,
    *,
    log_mass: float | None = None,
    total: LogEvidence | None = None,
    others: Iterable[FloatArray] = (),
    variant: str = "target",
    in_one_copy: InOneCopy | None = None,
    most_seconds: float = np.inf,
    seed: int,
) -> OtherModes:
    """Climb from many starting points to modes that draws do not know.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.
    density
        Its density with all constants.
    draws
        Draws by parameter, shape (chains, draws, ...).
    points
        The same on the unconstrained space, shape (chains, draws, D).
    log_mass
        Log of the mass that the draws stand for, with which that of other modes is compared.  By
        default, that of the largest mode where climbs from draws end, or what a Gaussian at the
        draws shows to be there, if that is more; if the climbs end at no mode, as in a funnel,
        there are no further ones.
    total
        Log of the mass that all the draws stand for, by a bridge, if there is one; otherwise a
        bridge is made if a peak among them is narrow.
    others
        Points (n, D) of other methods, which know the modes that they are in.
    variant
        The program whose density and draws these are.
    in_one_copy
        The copy of the posterior that all draws are in, if they are in one of several; masses are
        of this copy.  Climbs begin in it, and where they end is brought to it.
    most_seconds
        Seconds of wall time after which no further climbs begin, and no further peaks are examined.
    seed
        Seed of the starting points.  The same seed gives the same answer unless time runs out.
    """
    peaked = PeakedLengths(density)
    own_points, points = points, peaked.of_draws(points)
    search = _Search(peaked, points, others, in_one_copy)
    rng = np.random.default_rng([seed, 21])
    flat = points.reshape(-1, points.shape[2])
    own = np.empty((0, flat.shape[1]))
    began = time.perf_counter()

    def left(share: float) -> float:
        """Return the seconds until this share of them is spent."""
        return max(began + share * most_seconds - time.perf_counter(), 0.0)

    if log_mass is None:
        start = flat[rng.integers(len(flat), size=_KNOWN)]
        climbed = search.peaks(start, most_seconds=left(_OWN_SHARE))
        own = climbed.points
        known = search.examined(own, most_seconds=left(_OWN_SHARE))
        if not known:
            return OtherModes((), None, climbed.climbs, search.gradients)
        # In many dimensions a peak may be far from the draws, and what is around it negligible.
        log_mass = max(*(each.log_mass for each in known.values()), search.lower_bound(rng))
    origin, start = starting_points(model, density, draws, flat, seed)
    began_components = time.perf_counter()
    components = search.distinct(
        component_peaks(
            *(density, model.program(variant), model.data, start[:_FOR_COMPONENTS]),
            scale=search.visited.spread,
            most_seconds=min(_COMPONENTS_SHARE * most_seconds, _COMPONENTS_SECONDS),
        )
    )
    began += time.perf_counter() - began_components
    origin = ["a peak of one component of a mixture"] * len(components) + origin
    start = np.concatenate([components, start])
    # A posterior with more than one mode may well have further ones.
    several = evidence.largest_r_hat(points) > R_HAT_PROBLEM
    peaks = search.peaks(start, bold=True, several=several, most_seconds=left(_CLIMBS_SHARE))
    visited = search.visited.holds(peaks.points)
    new = np.flatnonzero(~visited)[:_EXAMINED]
    modes = [
        OtherMode(local, origin[peaks.start[new[k]]], local.log_mass)
        for k, local in search.examined(peaks.points[new], most_seconds=left(1)).items()
    ]
    inside = np.concatenate([own, peaks.points[visited][:_KNOWN]])
    past = search.walked_past(
        inside,
        points,
        at_least=log_mass + np.log(LEAST_MASS),
        total=total,
        most_seconds=left(1),
        seed=seed,
    )
    if past.peaks:
        modes += [OtherMode(each, "the draws", each.log_mass) for each in past.peaks]
        log_mass = past.log_mass
    modes.sort(key=lambda each: -each.log_mass)
    shown = sum(each.log_mass >= log_mass + np.log(LEAST_SHOWN) for each in modes)
    alone = ModesAlone(
        model,
        density,
        own_points,
        variant=variant,
        in_one_copy=in_one_copy,
        most_seconds=min(_ALONE_SHARE, _ALL_ALONE_SHARE / max(shown, 1)) * most_seconds,
        seed=seed,
    )
    kept: list[OtherMode] = []
    # One that is not shown tells that there is another one, and of those one is enough.
    for mode in modes[: max(shown, 1)]:
        if not any(each.holds(mode.local.peak) for each in kept):
            weigh = shown and (len(kept) < _WEIGHED_ANYHOW or left(1) > 0)
            kept.append(_weighed(mode, search, alone, seed) if weigh else mode)
    kept.sort(key=lambda each: -each.log_mass)
    spent = search.gradients + alone.gradients
    return OtherModes(tuple(kept), log_mass, peaks.climbs, spent)


def _weighed(mode: OtherMode, search: _Search, alone: ModesAlone, seed: int) -> OtherMode:
    """Return a mode with a better estimate of its mass than Laplace's, if there is one.

    NUTS that starts at the peak sees what shape the mode has.  From a narrow one it may leave, but
    that looks like its Gaussian.
    """
    peak, scale = mode.local.peak, search.visited.spread
    sampled = alone.sampled(peak[None])
    if sampled is not None and not sampled.left:
        mode = mode._replace(drawn=sampled.points)
        if sampled.log_mass is not None:
            return mode._replace(log_mass=float(sampled.log_mass.value))
    mass = local_log_mass(peak, search, scale=scale, count=_MASS_POINTS, seed=seed)
    return mode if mass is None else mode._replace(log_mass=float(mass.value))


def no_other_mode(climbed: OtherModes) -> list[Finding]:
    """Report that climbs found no mode that the draws miss; nothing if they did, or were not made.

    Parameters
    ----------
    climbed
        What they found.
    """
    if climbed.log_mass is None or not climbed.climbs or climbed.that_matter():
        return []
    return [
        Finding(
            Severity.FINE,
            f"{climbed.climbs:,} climbs from random points, from far around the draws and from the "
            "prior found no mode that the draws miss.",
        )
    ]


def described(mode: OtherMode, density: BatchedDensity, points: FloatArray) -> str:
    """Return where a mode is: the parameters that are farthest from the draws, in words.

    Parameters
    ----------
    mode
        The mode.
    density
        The density whose mode it is.
    points
        Draws on the unconstrained space, shape (chains, draws, D).
    """
    flat = points.reshape(-1, points.shape[2])
    try:
        values = density.constrain(np.stack([mode.local.peak, flat.mean(axis=0)]))
        spread = density.constrain(flat[:: max(1, len(flat) // 200)])
    except HarnessError:
        return "another place"
    told: list[tuple[float, str]] = []
    for name, both in values.items():
        deviation = np.maximum(spread[name].std(axis=0), 1e-300)
        score = np.abs(both[0] - both[1]) / deviation
        told += [
            (float(off), f"{label} = {float(value):.3g}")
            for label, off, value in zip(
                labels_of(name, score.shape), score.ravel(), both[0].ravel(), strict=True
            )
        ]
    return ", ".join(text for _, text in sorted(told, key=lambda each: -each[0])[:_SHOWN])


class _Peaks(NamedTuple):
    """Maxima at which climbs ended, the highest first."""

    points: FloatArray
    start: npt.NDArray[np.intp]
    """Number of the starting point of a climb to each."""
    climbs: int
    """Number of climbs."""


class _LateError(SamplingError):
    """Raised when the time for climbs is over."""


class _Search:
    """Climbs in coordinates in which the draws have mean 0 and standard deviation 1."""

    def __init__(
        self,
        density: PeakedLengths,
        points: FloatArray,
        others: Iterable[FloatArray],
        in_one_copy: InOneCopy | None,
    ) -> None:
        flat = points.reshape(-1, points.shape[2])
        self._density, self._in_one_copy, self.gradients = density, in_one_copy, 0
        self.visited = Neighbourhood(flat, others)
        self._ends, self._heights = np.empty((0, flat.shape[1])), np.empty(0)
        self._whitened_ends = self._ends
        self._until, self._seconds = np.inf, 0.0
        self._seconds_each = self._time(flat[:: max(1, len(flat) // 16)][:16])

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Evaluate the density, and count; not after the time for climbs."""
        began = time.perf_counter()
        if began > self._until:
            raise _LateError("the time for climbs is over")
        found = self._density(points)
        self.gradients += len(points)
        self._seconds += time.perf_counter() - began
        return found

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
    ) -> _Peaks:
        """Climb from points (n, D), batch after batch, as long as there is time.

        ``bold`` gives every other climb longer steps.  The number of evaluations is limited unless
        there are ``several`` modes, or climbs find a further one.
        """
        began, before, made = time.perf_counter(), self.gradients, 0
        start = self._brought(start)
        steps = [LONGEST_STEP, _BOLD_STEP if bold else LONGEST_STEP]
        ends, heights, numbers = [np.empty((0, start.shape[1]))], [np.empty(0)], []
        while made < len(start) and (several or self.gradients - before < _GRADIENTS):
            left = most_seconds - (time.perf_counter() - began)
            size = int(min(_BATCH, left / (_LONG * self._seconds_each)))
            if size < 1:
                break
            batch = start[made : made + (size if made else min(size, _FIRST_BATCH))]
            spent, seconds = self.gradients, self._seconds
            self._until = began + most_seconds
            try:
                climbed = climb(
                    batch,
                    self,
                    scale=self.visited.spread,
                    box=everywhere(start.shape[1]),
                    longest_step=np.resize(steps, len(batch)),
                    is_end=self._is_end,
                )
            except _LateError:
                break
            finally:
                self._until = np.inf
            arrived = np.flatnonzero(climbed.arrived & np.all(np.isfinite(climbed.points), axis=1))
            there = self._brought(climbed.points[arrived])
            several = several or not np.all(self.visited.holds(there))
            ends.append(there)
            heights.append(climbed.height[arrived])
            self._know(there, climbed.height[arrived])
            numbers += [made + int(k) for k in arrived]
            made += len(batch)
            # Climbs may pass places where the density takes much longer than among the draws.
            took = (self._seconds - seconds) / max(1, self.gradients - spent)
            self._seconds_each = max(self._seconds_each, took)
        points, height = np.concatenate(ends), np.concatenate(heights)
        kept = self._distinct(points, height)
        return _Peaks(points[kept], np.array(numbers, dtype=np.intp)[kept], made)

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

    def examined(self, peaks: FloatArray, *, most_seconds: float) -> dict[int, LocalGaussian]:
        """Return the Gaussians that fit at peaks (n, D), by row, as long as there is time.

        Those without one, because there is no maximum, are left out.
        """
        began, found = time.perf_counter(), {}
        for number, peak in enumerate(peaks):
            if number and time.perf_counter() - began > most_seconds:
                break
            local = local_gaussian(peak, self, scale=self.visited.spread)
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
