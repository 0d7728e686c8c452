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

from harness import evidence
from harness.arrays import FloatArray
from harness.diagnosis import R_HAT_PROBLEM, Finding, Severity
from harness.engine.batched import BatchedDensity
from harness.errors import HarnessError
from harness.evidence import LogEvidence
from harness.model import Model
from harness.modes.local_mass import LocalGaussian, local_log_mass
from harness.modes.table import MATTERS, NEGLIGIBLE, labels_of
from harness.user.climb_starts import starting_points
from harness.user.climbs import Climbs
from harness.user.component_peaks import component_peaks
from harness.user.from_known_modes import from_known_modes
from harness.user.mode_alone import ModesAlone
from harness.user.neighbourhood import Neighbourhood
from harness.user.one_copy import InOneCopy
from harness.user.peaked_lengths import PeakedLengths

_KNOWN = 8
"""Climbs from draws, whose ends are the modes that the draws know."""
_EXAMINED = 32
"""Highest peaks without draws whose masses are looked at."""
_MASS_POINTS = 2000
_WEIGHED_ANYHOW = 4
"""Modes that are weighed although the time is over."""
_OWN_SHARE, _CLIMBS_SHARE, _RACES_SHARE = 0.3, 0.5, 0.8
"""Shares of the time after which peaks among the draws, climbs and races have had theirs.  Second
derivatives at one peak take D gradients, and a time in proportion to D^3."""
_FOR_COMPONENTS = 8
"""Climbs of each component of a mixture."""
_COMPONENTS_SECONDS, _COMPONENTS_SHARE = 4.0, 2.0
"""Most seconds for all of these, also as a share of the time; they are not a part of it, so that
other climbs lack none, and a slow machine finds the components that a fast one does."""
_ALONE_SHARE, _ALL_ALONE_SHARE = 0.2, 0.8
"""Shares of the time for each run that samples a mode by itself, and for all of them."""
_SHOWN = 3
_FURTHER = "a known mode with some elements anew"


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
    within
        Whether it is a narrow peak that the draws walk past, so that there may be no barrier around
        it.
    rough
        Whether a climb has not quite got to its maximum, so that only draws in it tell its mass.
    """

    local: LocalGaussian
    origin: str
    log_mass: float
    drawn: FloatArray | None = None
    within: bool = False
    rough: bool = False

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

    def that_matter(self, least: float = MATTERS) -> list[OtherMode]:
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
    search = Climbs(peaked, points, others, in_one_copy)
    rng = np.random.default_rng([seed, 21])
    flat = points.reshape(-1, points.shape[2])
    own = np.empty((0, flat.shape[1]))
    began = time.perf_counter()

    def left(share: float) -> float:
        """Return the seconds until this share of them is spent."""
        return max(began + share * most_seconds - time.perf_counter(), 0.0)

    if log_mass is None:
        start = flat[rng.integers(len(flat), size=_KNOWN)]
        own_climbed = search.peaks(start, most_seconds=left(_OWN_SHARE))
        own = own_climbed.points
        known = search.examined(own, most_seconds=left(_OWN_SHARE))
        if not known:
            return OtherModes((), None, own_climbed.climbs, search.gradients)
        # In many dimensions a peak may be far from the draws, and what is around it negligible.
        log_mass = max(*(each.log_mass for each in known.values()), search.lower_bound(rng))
    origin, start, anew = starting_points(model, density, draws, flat, seed)
    began_components = time.perf_counter()
    components, gradients = component_peaks(
        *(density, model.program(variant), model.data, start[:_FOR_COMPONENTS]),
        scale=search.visited.spread,
        most_seconds=min(_COMPONENTS_SHARE * most_seconds, _COMPONENTS_SECONDS),
    )
    search.gradients += gradients
    components = search.distinct(components)
    began += time.perf_counter() - began_components
    origin = ["a peak of one component of a mixture"] * len(components) + origin
    start = np.concatenate([components, start])
    # A posterior with more than one mode may well have further ones.
    several = evidence.largest_r_hat(points) > R_HAT_PROBLEM
    climbed = search.peaks(start, bold=True, several=several, most_seconds=left(_CLIMBS_SHARE))
    further = from_known_modes(
        search,
        density,
        anew,
        flat,
        climbed.points,
        log_mass=log_mass,
        several=several or not np.all(search.visited.holds(climbed.points)),
        most_seconds=left(_RACES_SHARE),
        seed=seed,
    )
    origin = [_FURTHER] * len(further) + [origin[k] for k in climbed.start]
    peaks = np.concatenate([further, climbed.points])
    visited = search.visited.holds(peaks)
    new = np.flatnonzero(~visited)[:_EXAMINED]
    examined = search.examined(peaks[new], most_seconds=left(1))
    modes = [OtherMode(local, origin[new[k]], local.log_mass) for k, local in examined.items()]
    nearly = [row for k, row in enumerate(new) if row < len(further) and k not in examined]
    modes += [
        OtherMode(local, _FURTHER, local.log_mass, rough=True)
        for local in search.examined(peaks[nearly], most_seconds=left(1), rough=True).values()
    ]
    inside = np.concatenate([own, peaks[visited][:_KNOWN]])
    past = search.walked_past(
        inside,
        points,
        at_least=log_mass + np.log(MATTERS),
        total=total,
        most_seconds=left(1),
        seed=seed,
    )
    if past.peaks:
        modes += [OtherMode(each, "the draws", each.log_mass, within=True) for each in past.peaks]
        log_mass = past.log_mass
    modes.sort(key=lambda each: -each.log_mass)
    shown = sum(each.log_mass >= log_mass + np.log(NEGLIGIBLE) for each in modes)
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
            weighed = _weighed(mode, search, alone, seed) if weigh or mode.rough else mode
            kept += [] if weighed is None else [weighed]
    kept.sort(key=lambda each: -each.log_mass)
    spent = search.gradients + alone.gradients
    return OtherModes(tuple(kept), log_mass, climbed.climbs, spent)


def _weighed(mode: OtherMode, search: Climbs, alone: ModesAlone, seed: int) -> OtherMode | None:
    """Return a mode with a better estimate of its mass than Laplace's, if there is one.

    NUTS that starts at the peak sees what shape the mode has.  From a narrow one it may leave, but
    that looks like its Gaussian.  If a rough one has no other estimate, there may be no mode: None.
    """
    peak, scale = mode.local.peak, search.visited.spread
    sampled = alone.sampled(peak[None])
    if sampled is not None and not sampled.left:
        mode = mode._replace(drawn=sampled.points)
        if sampled.log_mass is not None:
            return mode._replace(log_mass=float(sampled.log_mass.value))
    mass = local_log_mass(peak, search, scale=scale, count=_MASS_POINTS, seed=seed)
    if mass is None:
        return None if mode.rough else mode
    return mode._replace(log_mass=float(mass.value))


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
