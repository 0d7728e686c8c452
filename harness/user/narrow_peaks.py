"""Find peaks that draws walk past: narrow ones within a wide mode, such as a spike in a slab.

Such a peak is not outside the draws, so nothing shows that it is missing but its mass: the share of
the draws within it is smaller than the integral of the density there says.  The same is true of a
wide one that draws come near to, and never enter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harness import evidence
from harness.arrays import FloatArray, LogDensity
from harness.errors import FAILURES
from harness.evidence import LogEvidence
from harness.modes.local_mass import LocalGaussian, mass_around, reach_of
from harness.user.bridged import bridged_in_time
from harness.user.neighbourhood import Neighbourhood

_NARROW = 0.3
"""Width of a peak in some direction, in standard deviations of the draws, below which it may be one
that they walk past."""
_INSIDE = 0.5
"""Probability of the region around a peak that is looked at, if the peak is like its Gaussian."""
_LACKING = 0.5
"""Part of a region's probability that has to be missing."""
_ERRORS = 4.0
POINTS, FEWEST_POINTS = 2000, 200
"""Points around each peak that weigh it: as many as are wanted, and as few as tell anything."""


class WalkedPast(NamedTuple):
    """Peaks that draws have walked past.

    Attributes
    ----------
    peaks
        The Gaussians that fit there.
    log_mass
        Log of the mass that the draws stand for; -inf if there are no such peaks.
    """

    peaks: tuple[LocalGaussian, ...] = ()
    log_mass: float = -np.inf


def walked_past(
    peaks: Sequence[LocalGaussian],
    points: FloatArray,
    visited: Neighbourhood,
    log_density: LogDensity,
    *,
    others: FloatArray,
    of_draws: LogDensity,
    at_least: float,
    total: LogEvidence | None,
    count: int = POINTS,
    most_seconds: float,
    seed: int,
) -> WalkedPast:
    """Return peaks that have less than half of the draws within them that they should have.

    Parameters
    ----------
    peaks
        The Gaussians that fit at peaks.
    points
        Draws on the unconstrained space, shape (chains, draws, D).
    visited
        Their surroundings.
    log_density
        Log density and gradient at many points.
    others
        Points of other methods, shape (n, D), which know the wide modes that they are in.
    of_draws
        The same where the draws may be; less if they are in one of several copies.
    at_least
        Log of the mass of a peak from which on it matters.
    total
        Log of the mass that the draws stand for, by a bridge; None if there is none yet.
    count
        Points around each peak.
    most_seconds
        Seconds of wall time for that bridge.
    seed
        Seed.
    """
    dimension = points.shape[2]
    reach = reach_of(dimension, _INSIDE)
    flat = points.reshape(-1, dimension)
    known = np.concatenate([flat, others])
    masses: list[tuple[LocalGaussian, LogEvidence]] = []
    for peak in peaks:
        if peak.log_mass < at_least:
            continue
        if _width(peak, visited) >= _NARROW and peak.around(known, _INSIDE).any():
            continue
        mass = mass_around(peak, log_density, count=count, seed=seed, within=reach)
        if mass is not None:
            masses.append((peak, mass))
    if not masses:
        return WalkedPast()
    if total is None:
        try:
            made = bridged_in_time(
                of_draws, points, most_seconds=most_seconds, seed=seed, draws_alone=True
            )
        except FAILURES:  # for example, there are too many dimensions for the draws
            return WalkedPast()
        total = made.bridges.log_evidence
    effective = _effective(points)
    found = []
    for peak, mass in masses:
        expected = float(np.exp(mass.value - total.value))
        inside = peak.around(flat, _INSIDE).reshape(points.shape[:2])
        value, mcse = map(float, evidence.expectation(inside))
        error = np.hypot(
            expected * np.hypot(mass.mcse, total.mcse),
            evidence.probability_error(value, mcse, effective),
        )
        if value < expected - max(_ERRORS * error, _LACKING * expected):
            found.append(peak)
    return WalkedPast(tuple(found), float(total.value)) if found else WalkedPast()


def _effective(points: FloatArray) -> float:
    """Return the effective number of draws of the coordinate that has the fewest."""
    numbers = evidence.effective_draws(points, np.zeros(points.shape[:2]))
    return max(float(np.fmin.reduce(numbers, initial=np.prod(points.shape[:2]))), 1.0)


def _width(local: LocalGaussian, visited: Neighbourhood) -> float:
    """Return the smallest standard deviation of a peak in the draws' coordinates."""
    ends = local.at(np.eye(len(local.peak)))
    at = visited.whitened(np.concatenate([local.peak[None], ends]))
    return float(np.linalg.svd(at[1:] - at[0], compute_uv=False).min())
