"""Make the table of modes from the draws of every method that visited a posterior."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from harness import evidence
from harness.arrays import Counted, FloatArray
from harness.engine.timed import seconds_a_point
from harness.errors import SamplingError
from harness.modes.by_mass import ShareByMass, shares_by_mass
from harness.modes.find_copies import CopiesAmong
from harness.modes.local_mass import local_gaussian, local_log_mass, mass_around, reach_of
from harness.modes.regions import Labels, Regions, Search, crossings, find_regions
from harness.modes.table import Mode, ModeTable, labels_of
from harness.modes.target import Masses, OneOfMany, Target
from harness.modes.visits import Visits

MOST_FINAL, MOST_OTHER = 4000, 1000
"""Draws of the final method, and of each other one, that are assigned to modes."""
_TO_ASSIGN, _A_DRAW = 0.25, 8
"""Share of the time for assigning draws to modes, and evaluations for each: of it and of a line
to a peak."""
_TO_CLIMB, _A_CLIMB = 0.5, 200
"""Share of the time for climbs, and evaluations for each: about a hundred, and as many for lines to
and from its peak."""
_TIMED = 100
"""Points at which the density is timed."""
_TO_DESCRIBE = 2.0
"""Multiple of the time after which modes that were found are not described any more."""
NO_WEIGHT = 1e-3
"""Draws with less than this share of the mean weight are in no mode."""
_FREELY, _FREELY_OPEN = 0.5, 0.1
"""Moves of NUTS between two regions, as a share of what independent draws make, from which they
count as one; the second where the density has no maximum in one of them."""
_SHOWN = 4
_DRAWS_FOR_CENTRE = 400
_MASS_POINTS = 2000
_FEWEST_TO_SCALE = 8
"""Draws in each chain below which they do not tell the size of a coordinate."""
_FEWEST_FOR_ERROR = 4
"""Draws of each chain below which there is no Monte Carlo error."""
_MOST_ALONE = 4
"""Modes that the final draws lack and that are sampled by themselves, those with most draws; more
if there is time."""
_LARGE = 0.05
"""Share of a method's draws with which a place is a mode although NUTS leaves it: it may be narrow.
"""
_MOST_WEIGHED = 16
"""Modes with draws whose masses are compared, those with most draws of a method."""
_LEAST_AROUND = 0.02
"""Share of the final draws that must be around a peak to tell what they stand for."""
_MATTERS = float(np.log(1e-3))
"""Log mass of a mode, relative to the final draws, from which it is sampled by itself."""


@dataclass(frozen=True)
class FoundModes:
    """The table of modes, and the draws that it rests on.

    Attributes
    ----------
    table
        The table.
    points, numbers
        Final draws that count, on the unconstrained space, shape (n, D), and the mode of each, from
        0, shape (n,).
    scale
        Size of each coordinate, shape (D,).
    by_mass
        Probabilities of modes with final draws by their masses, by the mode's number from 0.
    inside
        Points in each mode, some hundreds at most, each of shape (n, D): final draws, or those of
        another method if there are none.
    """

    table: ModeTable
    points: FloatArray
    numbers: Labels
    scale: FloatArray
    by_mass: Mapping[int, ShareByMass]
    inside: Sequence[FloatArray]


def find_modes(
    visits: Sequence[Visits],
    target: Target,
    *,
    effective: float,
    masses: Masses | None = None,
    in_one_copy: OneOfMany | None = None,
    most_seconds: float = np.inf,
    seed: int,
) -> FoundModes:
    """Find the modes that some draws are in, and their probabilities by the final draws.

    A mode is a region of draws between which the log density has no barrier of a nat or more, while
    there is one around it (:func:`harness.modes.regions.find_regions`); two such regions count as
    one if NUTS moves freely between them.  So a funnel, a curved ridge, a plateau and heavy tails
    are one mode each.  The table cannot show a mode that no method has a draw in, nor one of less
    than a nat.  In many dimensions, a mode is where climbs end, and climbs that start in the tails
    of a wide mode may end in a narrow one nearby.

    Parameters
    ----------
    visits
        Draws of each method; those of the first one are the final draws.
    target
        The program.
    effective
        Number of independent draws that the final draws are worth.
    masses
        Tells how probable modes are that the final draws lack and that look like no Gaussian.  By
        default that is not known.
    in_one_copy
        The copy that the draws of all methods are in, if the posterior has more copies than the
        table shall list.  Modes with draws are not weighed by their masses then, because a mode may
        reach into the next copy.
    most_seconds
        Seconds of wall time after which it gives up.  If a density is slow, fewer climbs are made.
    seed
        Seed.

    Raises
    ------
    DataError
        If the density is zero at all draws.
    SamplingError
        If the density is too slow for the time.
    """
    return _Finder(visits, target, effective, masses, in_one_copy, most_seconds, seed).found()


class _Timed:
    """A program that gives up after a time."""

    def __init__(self, target: Target, most_seconds: float) -> None:
        self._target, self._counted = target, Counted(target)
        self._most = most_seconds
        self._began = time.perf_counter()
        self.shapes = target.shapes
        self.unconstrain_draws = target.unconstrain_draws

    def __call__(self, points: npt.ArrayLike, /) -> tuple[FloatArray, FloatArray]:
        self._refuse_late()
        return self._counted(np.asarray(points))

    def values(self, points: FloatArray) -> FloatArray:
        """Return the log densities alone, which count as much."""
        self._refuse_late()
        return self._counted.values(points)

    @property
    def gradients(self) -> int:
        """Points at which the density has been evaluated."""
        return self._counted.gradients

    def constrain(self, points: npt.ArrayLike, /) -> dict[str, FloatArray]:
        """Return the parameters at points; this is done for every mode, and there may be many.

        Modes that were found in time are worth some more of it.
        """
        self._refuse_late(_TO_DESCRIBE)
        return self._target.constrain(points)

    def is_late(self, longer: float = 1.0) -> bool:
        """Whether the time is over, or a multiple of it."""
        return time.perf_counter() - self._began > longer * self._most

    def _refuse_late(self, longer: float = 1.0) -> None:
        if self.is_late(longer):
            raise SamplingError(f"the modes were not found within {self._most:.0f} s")


class _Finder:
    def __init__(
        self,
        visits: Sequence[Visits],
        target: Target,
        effective: float,
        masses: Masses | None,
        in_one_copy: OneOfMany | None,
        most_seconds: float,
        seed: int,
    ) -> None:
        self._masses, self._in_one_copy = masses, in_one_copy
        self._target, self._effective = _Timed(target, most_seconds), effective
        self._most_seconds, self._seed = most_seconds, seed
        self._cost = self._seconds_a_point(visits[0].points)
        most = [MOST_FINAL, *[MOST_OTHER] * (len(visits) - 1)]
        share = 1.0
        # By halves, so that small differences of the time that an evaluation takes change nothing.
        while share * sum(most) > max(self._affordable(_TO_ASSIGN, _A_DRAW), 1):
            share /= 2
        self._visits = [
            each.thinned(max(1, int(share * most))) for each, most in zip(visits, most, strict=True)
        ]
        self._rng = np.random.default_rng([seed, 10])
        # Draws that count, one after the other in rows, and where each one comes from.
        rows, places = [], []
        for number, each in enumerate(self._visits):
            counts = each.weight * each.weight.size > NO_WEIGHT
            counts &= np.all(np.isfinite(each.points), axis=-1)
            where = np.flatnonzero(counts)
            rows.append(each.points.reshape(-1, each.points.shape[-1])[where])
            places.append(np.stack([np.full(len(where), number), where], axis=1))
        self._points, self._places = np.concatenate(rows), np.concatenate(places)
        self._scale = self._scales()

    def _scales(self) -> FloatArray:
        """Return the size of each coordinate within a chain, by the method with the smallest."""
        sizes = []
        for each in self._visits:
            if each.points.shape[1] < _FEWEST_TO_SCALE and each is not self._visits[0]:
                continue
            spread = []
            for chain, weight in zip(each.points, each.weight, strict=True):
                flat = chain.reshape(-1, chain.shape[-1])[(weight > 0).ravel()]
                if len(flat):  # a population may have lost all its weight
                    low, high = np.quantile(flat, [0.25, 0.75], axis=0)
                    spread.append((high - low) / 1.349)
            sizes.append(np.sqrt(np.mean(np.square(spread), axis=0)))
        known = np.where(np.array(sizes) > 0, sizes, np.inf).min(axis=0)
        fallback = np.ptp(self._points, axis=0)
        return np.where(np.isfinite(known), known, np.where(fallback > 0, fallback, 1.0))

    def found(self) -> FoundModes:
        """Find regions, join those between which NUTS moves freely, and describe them."""
        order = self._order()
        found = find_regions(
            self._points[order],
            self._target,
            scale=self._scale,
            search=self._search(),
            brought=None if self._in_one_copy is None else self._in_one_copy.brought,
        )
        labels = np.empty(len(order), dtype=np.intp)
        labels[order] = found.labels
        labels, found = self._joined(labels, found)
        modes = self._modes(labels, found)
        ranked = sorted(
            range(len(modes)),
            key=lambda k: (-modes[k].probability, -max(modes[k].seen_by.values(), default=0.0)),
        )
        new = np.empty(len(ranked), dtype=np.intp)
        new[ranked] = np.arange(len(ranked))
        labels = new[labels]
        found = found._replace(regions=tuple(found.regions[k] for k in ranked))
        modes, unseen = [modes[k] for k in ranked], ""
        weighed: dict[int, ShareByMass] = {}
        if self._in_one_copy is None:
            copies = CopiesAmong(
                *(self._target, found.regions, self._points, self._scale),
                draws_of=lambda k, most: self._points[self._rows_of(k, labels, most)][:most],
                spread=lambda: self._spread(labels),
                most_seconds=self._most_seconds,
            )
            modes, unseen = copies.marked(modes), copies.unseen()
            weighed = self._weighed(modes, labels, found)
        modes, left = self._with_local(modes, labels, found)
        for k, share in weighed.items():
            modes[k] = replace(modes[k], local=(share.probability, share.error))
        table = ModeTable(
            tuple(modes),
            tuple(each.method for each in self._visits),
            self._shown(modes, labels),
            unseen,
            found.unsure / len(self._points),
            self._target.gradients,
            1 if self._in_one_copy is None else self._in_one_copy.copies,
        )
        final = self._places[:, 0] == 0
        inside = [
            self._points[self._rows_of(k, labels, _DRAWS_FOR_CENTRE)] for k in range(len(modes))
        ]
        every = FoundModes(table, self._points[final], labels[final], self._scale, weighed, inside)
        return _without(every, left)

    def _order(self) -> Labels:
        """Return rows in random order, methods in turn."""
        ranks = np.empty(len(self._places))
        for number in range(len(self._visits)):
            own = np.flatnonzero(self._places[:, 0] == number)
            ranks[self._rng.permutation(own)] = np.arange(len(own)) + number / len(self._visits)
        return np.asarray(np.argsort(ranks, kind="stable"), dtype=np.intp)

    def _search(self) -> Search:
        """Return how much is done, which depends on the speed of the density."""
        standard = Search()
        affordable = self._affordable(_TO_CLIMB, _A_CLIMB)
        if affordable < 8 * len(self._visits):
            raise SamplingError(
                f"an evaluation of the log density takes {1000 * self._cost:.1f} ms, too long to "
                f"look for modes within {self._most_seconds:.0f} s"
            )
        return Search(
            climbs=int(min(standard.climbs, affordable)),
            more_climbs=int(min(standard.more_climbs, affordable)),
        )

    def _seconds_a_point(self, points: FloatArray) -> float:
        if not np.isfinite(self._most_seconds):
            return 0.0
        flat = points.reshape(-1, points.shape[-1])
        some = flat[np.linspace(0, len(flat) - 1, _TIMED).astype(np.intp)]
        return seconds_a_point(self._target, some)

    def _affordable(self, share: float, evaluations: int) -> float:
        """Return how often so many evaluations can be made within a share of the time."""
        if self._cost == 0:
            return np.inf
        return share * self._most_seconds / (self._cost * evaluations)

    def _joined(self, labels: Labels, found: Regions) -> tuple[Labels, Regions]:
        """Join regions between which plain NUTS moves freely."""
        into = np.arange(len(found.regions))
        for number, each in enumerate(self._visits):
            if not each.chain:
                continue
            own = self._places[:, 0] == number
            series = np.full(each.points[..., 0].shape, -1)
            series.ravel()[self._places[own, 1]] = labels[own]
            seen = np.unique(labels[own])
            for k, one in enumerate(seen):
                for other in seen[k + 1 :]:
                    share = min(1.0, crossings(series, int(one), int(other)))
                    # Moves from one draw to the next, if only some draws are looked at.
                    share = 1 - (1 - share) ** (1 / each.every)
                    closed = found.regions[one].closed and found.regions[other].closed
                    if share >= (_FREELY if closed else _FREELY_OPEN):
                        into[into == into[other]] = into[one]
        kept, new = np.unique(into, return_inverse=True)
        regions = []
        for region in kept:
            parts = [each for each, to in zip(found.regions, into, strict=True) if to == region]
            best = max(parts, key=lambda each: (each.closed, each.height))
            regions.append(best)
        return np.asarray(new[labels], dtype=np.intp), found._replace(regions=tuple(regions))

    # What a mode is like

    def _inside(self, which: npt.NDArray[np.bool_], number: int) -> FloatArray:
        """Return 1 for those of a method's draws that are meant, in the shape of their weights."""
        inside = np.zeros(self._visits[number].weight.shape)
        own = (self._places[:, 0] == number) & which
        inside.ravel()[self._places[own, 1]] = 1.0
        return inside

    def _modes(self, labels: Labels, found: Regions) -> list[Mode]:
        modes = []
        for region, described in enumerate(found.regions):
            share, mcse = self._visits[0].probability(self._inside(labels == region, 0))
            error = evidence.probability_error(float(share), float(mcse), self._effective)
            seen = {}
            for number, each in enumerate(self._visits):
                part = float((each.weight * self._inside(labels == region, number)).sum())
                if part > 0:
                    seen[each.method] = part
            values = self._draws_of(region, labels)
            centre = {name: value.mean(axis=0).tolist() for name, value in values.items()}
            modes.append(
                Mode(
                    float(share),
                    error,
                    seen,
                    centre,
                    described.height,
                    described.closed,
                )
            )
        return modes

    def _rows_of(self, region: int, labels: Labels, most: int) -> Labels:
        """Return some rows in a region, of the final draws by their weights, if there are any."""
        for number, each in enumerate(self._visits):
            own = np.flatnonzero((self._places[:, 0] == number) & (labels == region))
            if own.size:
                weight = each.weight.ravel()[self._places[own, 1]]
                if np.ptp(weight) == 0 and len(own) <= most:
                    return own
                return self._rng.choice(own, size=most, p=weight / weight.sum())
        raise AssertionError  # pragma: no cover

    def _draws_of(self, region: int, labels: Labels) -> dict[str, FloatArray]:
        return self._target.constrain(
            self._points[self._rows_of(region, labels, _DRAWS_FOR_CENTRE)]
        )

    def _spread(self, labels: Labels) -> dict[str, FloatArray]:
        """Return standard deviations of each parameter's numbers within modes."""
        variances: dict[str, list[FloatArray]] = {}
        for region in np.unique(labels):
            for name, value in self._draws_of(int(region), labels).items():
                variances.setdefault(name, []).append(value.var(axis=0))
        return {name: np.sqrt(np.mean(each, axis=0)) for name, each in variances.items()}

    def _shown(self, modes: Sequence[Mode], labels: Labels) -> tuple[str, ...]:
        """Return the names of the numbers that differ most between modes, given their spread."""
        if len(modes) < 2:
            return ()
        spread = self._spread(labels)
        scores: list[tuple[float, str]] = []
        for name, shape in self._target.shapes.items():
            centres = np.array([np.ravel(each.centre[name]) for each in modes])
            size = np.ravel(spread[name])
            apart = np.ptp(centres, axis=0) / np.where(size > 0, size, 1.0)
            scores += zip(apart.tolist(), labels_of(name, shape), strict=True)
        # Of several that are about as good, the first ones.
        best = sorted(scores, key=lambda each: -round(2 * np.log2(max(each[0], 1e-9))))[:_SHOWN]
        names = {name for _, name in best}
        return tuple(name for _, name in scores if name in names)

    # Modes that the final draws lack

    def _with_local(
        self, modes: list[Mode], labels: Labels, found: Regions
    ) -> tuple[list[Mode], set[int]]:
        """Estimate probabilities of modes that the final draws lack by their masses.

        Returns
        -------
        list of Mode, set of int
            The modes, and the numbers of those, from 0, that are none, because chains leave them.
        """
        lacking = [k for k, each in enumerate(modes) if each.probability == 0]
        ratios = self._by_peaks(modes, lacking, found)
        # Points around a peak miss the arms of a bent mode, and do not show it.
        doubtful = [
            k
            for k in lacking
            if (float(ratios[k].value) > _MATTERS if k in ratios else modes[k].copy_of is None)
        ]
        alone = self._by_themselves(doubtful, labels)
        left = {
            k
            for k, ratio in alone.items()
            if not np.isfinite(ratio.value)
            and k not in ratios
            and max(modes[k].seen_by.values()) < _LARGE
        }
        ratios |= {k: ratio for k, ratio in alone.items() if np.isfinite(ratio.value)}
        # The final draws' probabilities leave these modes out.
        total = 1 + sum(float(np.exp(each.value)) for each in ratios.values())
        marked = list(modes)
        for k, ratio in ratios.items():
            share = float(np.exp(ratio.value)) / total
            marked[k] = replace(modes[k], local=(share, share * float(ratio.mcse)))
        left |= {k for k, each in enumerate(modes) if (each.copy_of or 0) - 1 in left}
        return marked, left

    def _weighed(
        self, modes: Sequence[Mode], labels: Labels, found: Regions
    ) -> dict[int, ShareByMass]:
        """Return probabilities by their masses of modes that the final draws are in."""
        if self._visits[0].points.shape[1] < _FEWEST_FOR_ERROR:
            return {}
        drawn = [k for k, each in enumerate(modes) if each.probability > 0 and each.closed]
        # Those first in which some method has many of its draws: there they may disagree.
        drawn.sort(key=lambda k: -max(modes[k].seen_by.values()))
        final = self._places[:, 0] == 0
        return shares_by_mass(
            {k: found.regions[k].peak for k in drawn[:_MOST_WEIGHED]},
            self._points[final],
            labels[final],
            self._visits[0].weight.ravel()[self._places[final, 1]],
            self._target,
            scale=self._scale,
            error_of_sum=self._error_of_sum,
            seed=self._seed,
        )

    def _error_of_sum(self, values: FloatArray) -> float:
        """Return the standard error of the sum of a number over the final draws that count."""
        weight = self._visits[0].weight
        series = np.zeros(weight.shape)
        series.ravel()[self._places[self._places[:, 0] == 0, 1]] = values
        by_draw = series.reshape(*weight.shape[:2], -1).sum(axis=2)
        return float(by_draw.size * evidence.standard_error(by_draw))

    def _by_peaks(
        self, modes: Sequence[Mode], lacking: Iterable[int], found: Regions
    ) -> dict[int, evidence.LogEvidence]:
        """Return the log masses of modes, relative to the final draws, by points around peaks."""
        chosen = [k for k in lacking if modes[k].closed]
        whole = self._whole(found) if chosen and modes[0].closed else None
        if whole is None:
            return {}
        ratios = {}
        for k in chosen:
            mass = self._mass(found, k)
            if mass is not None:
                ratios[k] = mass.minus(whole)
        return ratios

    def _whole(self, found: Regions) -> evidence.LogEvidence | None:
        """Return the log of the integral of the density over all that the final draws stand for.

        It is that around the peak of their largest mode over the share of the draws there.  The
        mode itself may be wider: several peaks are one mode if NUTS moves freely between them.
        """
        local = local_gaussian(found.regions[0].peak, self._target, scale=self._scale)
        if local is None:
            return None
        near = local.around(self._points)
        share, mcse = self._visits[0].probability(self._inside(near, 0))
        if share < _LEAST_AROUND:
            return None
        reach = reach_of(len(local.peak))
        mass = mass_around(local, self._target, count=_MASS_POINTS, seed=self._seed, within=reach)
        if mass is None:
            return None
        error = evidence.probability_error(float(share), float(mcse), self._effective) / share
        value = mass.value - float(np.log(share))
        return evidence.LogEvidence(value, float(np.hypot(mass.mcse, error)))

    def _by_themselves(
        self, chosen: Sequence[int], labels: Labels
    ) -> dict[int, evidence.LogEvidence]:
        """Return the same by sampling each mode alone; -inf if chains leave it."""
        whole = self._masses.of_draws() if self._masses is not None and chosen else None
        if self._masses is None or whole is None:
            return {}
        ratios = {}
        for count, k in enumerate(chosen):
            if count >= _MOST_ALONE and self._target.is_late():
                break
            points = self._points[self._rows_of(k, labels, _DRAWS_FOR_CENTRE)]
            mass = self._masses.of_mode(points)
            if mass is not None:
                ratios[k] = mass.minus(whole)
        return ratios

    def _mass(self, found: Regions, region: int) -> evidence.LogEvidence | None:
        return local_log_mass(
            found.regions[region].peak,
            self._target,
            scale=self._scale,
            count=_MASS_POINTS,
            seed=self._seed,
        )


def _without(found: FoundModes, left: set[int]) -> FoundModes:
    """Leave out modes without final draws, by their numbers from 0, and count them."""
    if not left:
        return found
    table = found.table
    kept = [k for k in range(len(table.modes)) if k not in left]
    new = {old + 1: number for number, old in enumerate(kept, 1)}
    modes = tuple(
        mode if mode.copy_of is None else replace(mode, copy_of=new[mode.copy_of])
        for mode in (table.modes[k] for k in kept)
    )
    shares = [
        sum(table.modes[k].seen_by.get(method, 0.0) for k in left) for method in table.methods
    ]
    return replace(
        found,
        table=replace(table, modes=modes, left=len(left), left_share=max(shares)),
        inside=[found.inside[k] for k in kept],
    )
