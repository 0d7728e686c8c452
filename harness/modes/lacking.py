"""Masses of modes that the final draws lack, relative to all that these draws stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray, values_of
from harness.evidence import NEGLIGIBLE_AT_MOST, LogEvidence, log_mass_at_most, shares_at_most
from harness.modes.limited import Limited
from harness.modes.local_mass import local_gaussian, mass_around, reach_of
from harness.modes.regions import Region
from harness.modes.rows import Rows
from harness.modes.table import Mode
from harness.modes.target import Masses

_POINTS = 2000
"""Points around a peak."""
_MOST_ALONE = 4
"""Modes that are sampled by themselves, those with most draws; more if there is time."""
_LARGE = 0.05
"""Share of a method's draws with which a place is a mode although NUTS leaves it: it may be narrow.
"""
_LEAST_AROUND = 0.02
"""Share of the final draws that must be around a peak to tell what they stand for."""
_BY_FAR, _BY_FAR_EACH = 20.0, 3.0
"""Nats, and nats for each dimension, by which a mode may have more mass than its peak tells."""
_MATTERS = float(np.log(1e-3))
"""Log mass of a mode, relative to the final draws, from which it is sampled by itself."""


class Weighed(NamedTuple):
    """Modes with the probabilities that their masses give those without final draws."""

    modes: list[Mode]
    left: set[int]
    """Numbers of those, from 0, that are none, because chains leave them."""


def weigh_lacking(
    modes: Sequence[Mode],
    regions: Sequence[Region],
    inside: Sequence[FloatArray],
    rows: Rows,
    target: Limited,
    *,
    masses: Masses | None,
    seed: int,
) -> Weighed:
    """Estimate probabilities of modes that the final draws lack by their masses.

    Parameters
    ----------
    modes
        All modes, the largest first.
    regions
        The region of each.
    inside
        Points in each, of shape (n, D).
    rows
        The draws.
    target
        The program.
    masses
        Tells masses that points around a peak do not; None if nothing does.
    seed
        Seed.
    """
    lacking = [k for k, each in enumerate(modes) if each.probability == 0]
    closed = [k for k in lacking if modes[k].closed]
    by_peaks: dict[int, LogEvidence] = {}
    peaks = {k: regions[k].peak for k in closed}
    if closed and modes[0].closed:
        by_peaks = _by_peaks(peaks, _whole(regions[0].peak, rows, target, seed), rows, target, seed)
    whole = None
    if closed and regions[0].rest and masses is not None:  # around what is lacking
        whole, reach = masses.of_draws(), reach_of(rows.points.shape[1])
        by_peaks = _by_peaks(peaks, whole, rows, target, seed, within=reach)
    # Points around a peak miss the arms of a bent mode, and do not show it.  Among the draws NUTS
    # cannot be seen to leave it.
    doubtful = [
        k
        for k in lacking
        if (
            not regions[0].rest and by_peaks[k].value > _MATTERS
            if k in by_peaks
            else modes[k].copy_of is None
        )
    ]
    alone: dict[int, LogEvidence] = {}
    hardly: dict[int, float] = {}
    if masses is not None and doubtful and whole is None:
        whole = masses.of_draws()
    if masses is not None and whole is not None:
        unknown = [k for k in doubtful if k not in by_peaks]
        with_peaks = {k: peaks[k] for k in unknown if modes[k].closed}
        hardly = _that_hardly_count(with_peaks, inside, whole, rows, target)
        rest = {k: inside[k] for k in doubtful if k not in hardly}
        alone = _by_themselves(rest, whole, masses, target)
    left = {
        k
        for k, ratio in alone.items()
        if not np.isfinite(ratio.value)
        and k not in by_peaks
        and max(modes[k].seen_by.values()) < _LARGE
    }
    ratios = by_peaks | {k: ratio for k, ratio in alone.items() if np.isfinite(ratio.value)}
    # The final draws' probabilities leave these modes out.
    total = 1 + sum(float(np.exp(each.value)) for each in ratios.values())
    marked = list(modes)
    for k, ratio in ratios.items():
        share = float(np.exp(ratio.value)) / total
        marked[k] = replace(modes[k], local=(share, share * float(ratio.mcse)))
    for k, most in hardly.items():
        if k not in ratios:
            marked[k] = replace(modes[k], local=(most, most))
    left |= {k for k, each in enumerate(modes) if (each.copy_of or 0) - 1 in left}
    return Weighed(marked, left)


def _by_peaks(
    peaks: Mapping[int, FloatArray],
    whole: LogEvidence | None,
    rows: Rows,
    target: Limited,
    seed: int,
    within: float = np.inf,
) -> dict[int, LogEvidence]:
    """Return log masses relative to the final draws, by points around peaks.

    Parameters
    ----------
    peaks
        Of the modes, by number.
    whole
        Log of the integral of all that the final draws stand for; None if it is not known.
    within
        Standard deviations from a peak beyond which nothing counts.
    """
    if whole is None:
        return {}
    ratios = {}
    for k, peak in peaks.items():
        local = local_gaussian(peak, target, scale=rows.scale)
        if local is None:
            continue
        mass = mass_around(local, target, count=_POINTS, seed=seed, within=within)
        if mass is not None:
            ratios[k] = mass.minus(whole)
    return ratios


def _whole(peak: FloatArray, rows: Rows, target: Limited, seed: int) -> LogEvidence | None:
    """Return the log of the integral of the density over all that the final draws stand for.

    It is that around the peak of their largest mode over the share of the draws there.  The mode
    itself may be wider: several peaks are one mode if NUTS moves freely between them.
    """
    local = local_gaussian(peak, target, scale=rows.scale)
    if local is None:
        return None
    share, error = rows.probability(local.around(rows.points))
    if share < _LEAST_AROUND:
        return None
    mass = mass_around(local, target, count=_POINTS, seed=seed, within=reach_of(len(peak)))
    if mass is None:
        return None
    return mass.minus(LogEvidence(float(np.log(share)), error / share))


def _that_hardly_count(
    peaks: Mapping[int, FloatArray],
    inside: Sequence[FloatArray],
    whole: LogEvidence,
    rows: Rows,
    target: Limited,
) -> dict[int, float]:
    """Return modes with hardly any mass, by number, with what they have at most relative to all.

    A chain that starts in a mode far below the others stays there, and it may look like no
    Gaussian.  Both the height of the density at points in it, with how far they spread, and the
    height and the curvature at its peak must tell that it hardly counts; or the peak alone must
    tell it by far.  If they cannot tell it of each mode, they may tell it of several together, of
    which there are more points.
    """
    values = values_of(target)
    highest = {}
    for k, peak in peaks.items():
        local = local_gaussian(peak, target, scale=rows.scale)
        if local is not None:
            highest[k] = local.log_mass

    def at_most(points: FloatArray) -> float:
        return log_mass_at_most(values(points), points)

    found = {}
    for k, by_peak in highest.items():
        spread = at_most(inside[k])
        if not np.isfinite(spread):
            spread = by_peak + _BY_FAR + _BY_FAR_EACH * inside[k].shape[1]
        share = float(shares_at_most(max(spread, by_peak), whole))
        if share < NEGLIGIBLE_AT_MOST:
            found[k] = share
    left = [k for k in highest if k not in found]
    if len(left) > 1:
        all_peaks = float(np.logaddexp.reduce([highest[k] for k in left]))
        together = at_most(np.concatenate([inside[k] for k in left]))
        share = float(shares_at_most(max(together, all_peaks), whole))
        if share < NEGLIGIBLE_AT_MOST:
            found |= dict.fromkeys(left, share)
    return found


def _by_themselves(
    inside: Mapping[int, FloatArray], whole: LogEvidence, masses: Masses, target: Limited
) -> dict[int, LogEvidence]:
    """Return log masses relative to all by sampling each mode alone; -inf if chains leave it."""
    ratios = {}
    for count, (k, points) in enumerate(inside.items()):
        if count >= _MOST_ALONE and target.is_late():
            break
        mass = masses.of_mode(points)
        if mass is not None:
            ratios[k] = mass.minus(whole)
    return ratios
