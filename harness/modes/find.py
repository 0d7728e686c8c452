"""Make the table of modes from the draws of every method that visited a posterior."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import SamplingError
from harness.modes.by_mass import ShareByMass, shares_by_mass
from harness.modes.climb import climb, everywhere
from harness.modes.cores import with_cores
from harness.modes.find_copies import CopiesAmong
from harness.modes.lacking import weigh_lacking
from harness.modes.limited import Limited
from harness.modes.local_mass import local_gaussian
from harness.modes.regions import Labels, Regions, Search, crossings, find_regions
from harness.modes.rows import Rows
from harness.modes.table import Mode, ModeTable, families_of, labels_of
from harness.modes.target import Masses, OneOfMany, Target
from harness.modes.visits import Visits
from harness.modes.words import CLIMBS

MOST_FINAL, MOST_OTHER = 4000, 1000
"""Draws of the final method, and of each other one, that are assigned to modes."""
_TO_ASSIGN, _A_DRAW = 0.25, 8
"""Share of the time for assigning draws to modes, and evaluations for each: of it and of a line
to a peak."""
_TO_CLIMB, _A_CLIMB = 0.5, 200
"""Share of the time for climbs, and evaluations for each: about a hundred, and as many for lines to
and from its peak."""
_TRIED, _A_TRIED = 8, 10
"""Climbs that are tried first where time may be short, and times that one of them takes which each
climb takes in all, with lines and paths between peaks."""
_FREELY, _FREELY_OPEN = 0.5, 0.1
"""Moves of NUTS between two regions, as a share of what independent draws make, from which they
count as one; the second where the density has no maximum in one of them."""
_SEEN, _OFTENER = 0.01, 5.0
"""Share of another method's draws in a region, and multiple of NUTS's own, from which on NUTS has
not been in it well enough for its moves to count."""
_CORE, _COMPARED = 0.5, 200
"""Part of a mode's mass in which some draws are if they have been in it, and draws of other methods
with whose heights theirs are compared."""
_SHOWN = 4
_DRAWS_FOR_CENTRE = 400
_FEWEST_FOR_ERROR = 4
"""Draws of each chain below which there is no Monte Carlo error."""
_MOST_WEIGHED = 16
"""Modes with draws whose masses are compared, those with most draws of a method."""


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
    cores: FloatArray | None = None,
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
        table shall list.  Masses of modes are those within it.
    cores
        Points of the visits that are narrow peaks within wider modes (k, D), which have masses of
        their own although there may be no barrier around them.
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
    limited = Limited(target, most_seconds)
    found = _Finder(visits, limited, effective, masses, in_one_copy, seed)
    return found.found(np.empty((0, visits[0].points.shape[-1])) if cores is None else cores)


class _Finder:
    def __init__(
        self,
        visits: Sequence[Visits],
        target: Limited,
        effective: float,
        masses: Masses | None,
        in_one_copy: OneOfMany | None,
        seed: int,
    ) -> None:
        self._target, self._masses, self._in_one_copy = target, masses, in_one_copy
        self._seed = seed
        self._cost = target.seconds_a_point(visits[0].points)
        most = [MOST_FINAL, *[MOST_OTHER] * (len(visits) - 1)]
        share = 1.0
        # By halves, so that small differences of the time that an evaluation takes change nothing.
        while share * sum(most) > max(self._affordable(_TO_ASSIGN, _A_DRAW), 1):
            share /= 2
        thinned = [
            each.thinned(max(1, int(share * most))) for each, most in zip(visits, most, strict=True)
        ]
        self._rows = Rows(thinned, effective, np.random.default_rng([seed, 10]))

    def found(self, cores: FloatArray) -> FoundModes:
        """Find regions, join those between which NUTS moves freely, and describe them."""
        rows = self._rows
        found = with_cores(self._regions(), cores, rows, self._target)
        found = self._ranked(self._without_strays(self._joined(found)))
        regions, labels = found.regions, found.labels
        inside = [
            rows.points[rows.some(labels == k, _DRAWS_FOR_CENTRE)] for k in range(len(regions))
        ]
        values = [self._target.constrain(each) for each in inside]
        modes = [self._mode(k, found, each) for k, each in enumerate(values)]
        unseen = ""
        if self._in_one_copy is None:
            copies = CopiesAmong(
                self._target,
                *(regions, rows.points, rows.scale, inside, _spread(values)),
                self._target.most_seconds,
            )
            modes, unseen = copies.marked(modes), copies.unseen()
        weighed = self._weighed(modes, found)
        modes, left = weigh_lacking(
            *(modes, regions, inside, rows, self._target), masses=self._masses, seed=self._seed
        )
        for k, share in weighed.items():
            modes[k] = replace(modes[k], local=(share.probability, share.error))
        table = ModeTable(
            tuple(modes),
            tuple(dict.fromkeys(each.method for each in rows.visits)),
            self._shown(values),
            unseen,
            found.unsure / len(rows.points),
            self._target.gradients,
            1 if self._in_one_copy is None else self._in_one_copy.copies,
        )
        every = FoundModes(
            table, rows.points[rows.final], labels[rows.final], rows.scale, weighed, inside
        )
        return _without(every, left)

    def _affordable(self, share: float, evaluations: int) -> float:
        """Return how often so many evaluations can be made within a share of the time."""
        if self._cost == 0:
            return np.inf
        return share * self._target.most_seconds / (self._cost * evaluations)

    def _search(self) -> Search:
        """Return how much is done, which depends on the speed of the density."""
        standard = Search()
        affordable = self._affordable(_TO_CLIMB, _A_CLIMB)
        if affordable < 8 * len(self._rows.visits):
            raise SamplingError(
                f"an evaluation of the log density takes {1000 * self._cost:.1f} ms, too long to "
                f"look for modes within {self._target.most_seconds:.0f} s"
            )
        if affordable >= _TRIED * (standard.climbs + standard.more_climbs):
            return standard
        affordable = min(affordable, self._affordable_by_trial())
        return Search(
            climbs=int(min(standard.climbs, affordable)),
            more_climbs=int(min(standard.more_climbs, affordable)),
            paths=int(affordable),
        )

    def _affordable_by_trial(self) -> float:
        """Return how many climbs there is time for, by some that are made.

        On long ridges climbs take far more steps than elsewhere, and on its way a climb may come to
        places where an evaluation takes longer than among the draws.
        """
        rows = self._rows
        began = time.perf_counter()
        start = rows.points[rows.shuffled()[:_TRIED]]
        climb(start, self._target, scale=rows.scale, box=everywhere(start.shape[1]))
        each = (time.perf_counter() - began) / len(start)
        return max(float(_TRIED), _TO_CLIMB * self._target.most_seconds / (_A_TRIED * each))

    def _regions(self) -> Regions:
        """Find regions of draws, which are looked at in random order."""
        order = self._rows.shuffled()
        found = find_regions(
            self._rows.points[order],
            self._target,
            scale=self._rows.scale,
            search=self._search(),
            brought=None if self._in_one_copy is None else self._in_one_copy.brought,
        )
        labels = np.empty_like(found.labels)
        labels[order] = found.labels
        return found._replace(labels=labels)

    def _joined(self, found: Regions) -> Regions:
        """Join regions between which plain NUTS moves freely."""
        labels = found.labels
        into = np.arange(len(found.regions))
        for number, each in enumerate(self._rows.visits):
            if not each.chain:
                continue
            series = self._rows.series(labels, number, missing=-1).astype(np.intp)
            seen = np.unique(series[series >= 0])
            for k, one in enumerate(seen):
                for other in seen[k + 1 :]:
                    share = min(1.0, crossings(series, int(one), int(other)))
                    # Moves from one draw to the next, if only some draws are looked at.
                    share = 1 - (1 - share) ** (1 / each.every)
                    closed = found.regions[one].closed and found.regions[other].closed
                    if share < (_FREELY if closed else _FREELY_OPEN):
                        continue
                    if not closed or not any(self._rare(labels == k, number) for k in (one, other)):
                        into[into == into[other]] = into[one]
        kept, new = np.unique(into, return_inverse=True)
        regions = []
        for region in kept:
            parts = [each for each, to in zip(found.regions, into, strict=True) if to == region]
            regions.append(max(parts, key=lambda each: (each.closed, each.height)))
        return found._replace(regions=tuple(regions), labels=np.asarray(new[labels], dtype=np.intp))

    def _rare(self, which: npt.NDArray[np.bool_], number: int) -> bool:
        """Whether another method has far more of its draws in a region than this one.

        Then this one may have turned back on the way into it, which does not show that chains move
        freely.
        """
        own = self._rows.share(which, number)
        # Climbs are as many as there are modes, whatever the modes' probabilities.
        seen = [part for by, part in self._rows.shares(which).items() if by != CLIMBS]
        return max(seen, default=0.0) > max(_SEEN, _OFTENER * own)

    def _without_strays(self, found: Regions) -> Regions:
        """Take final draws out of regions that they have not been in, but only on the way into.

        They go to the region with most of the final draws.
        """
        rows, labels = self._rows, found.labels.copy()
        shares = [rows.share(labels == k, 0) for k in range(len(found.regions))]
        for k, region in enumerate(found.regions):
            which = found.labels == k
            drawn = which & rows.final
            if not (region.closed and drawn.any() and self._rare(which, 0)):
                continue
            local = local_gaussian(region.peak, self._target, scale=rows.scale)
            if local is None or local.around(rows.points[drawn], _CORE).any():
                continue
            # Draws of a mode that looks like no Gaussian may all be far from its peak.
            others = rows.points[rows.some(which & ~rows.final, _COMPARED)]
            typical = float(np.median(self._target.values(others)))
            if self._target.values(rows.points[drawn]).max() < typical:
                labels[drawn] = int(np.argmax(shares))
        return found._replace(labels=labels)

    def _ranked(self, found: Regions) -> Regions:
        """Return regions in the order of their probabilities, then of their largest shares."""

        def rank(region: int) -> tuple[float, float]:
            which = found.labels == region
            share, _ = self._rows.probability(which)
            return -share, -max(self._rows.shares(which).values(), default=0.0)

        ranked = sorted(range(len(found.regions)), key=rank)
        new = np.empty(len(ranked), dtype=np.intp)
        new[ranked] = np.arange(len(ranked))
        return found._replace(
            regions=tuple(found.regions[k] for k in ranked), labels=new[found.labels]
        )

    def _mode(self, region: int, found: Regions, values: Mapping[str, FloatArray]) -> Mode:
        """Describe a region, given the parameters of some draws in it."""
        which, described = found.labels == region, found.regions[region]
        share, error = self._rows.probability(which)
        centre = {name: value.mean(axis=0).tolist() for name, value in values.items()}
        seen = self._rows.shares(which)
        return Mode(share, error, seen, centre, described.height, described.closed)

    def _shown(self, values: Sequence[Mapping[str, FloatArray]]) -> tuple[str, ...]:
        """Return the names of the numbers that differ most between modes, given their spread."""
        if len(values) < 2:
            return ()
        spread = _spread(values)
        scores: list[tuple[float, str]] = []
        for name, shape in self._target.shapes.items():
            centres = np.array([np.ravel(each[name].mean(axis=0)) for each in values])
            size = np.ravel(spread[name])
            apart = np.ptp(centres, axis=0) / np.where(size > 0, size, 1.0)
            scores += zip(apart.tolist(), labels_of(name, shape), strict=True)
        # Of several that are about as good, the first ones.
        best = sorted(scores, key=lambda each: -round(2 * np.log2(max(each[0], 1e-9))))[:_SHOWN]
        names = {name for _, name in best}
        return tuple(name for _, name in scores if name in names)

    def _listed(self, points: npt.ArrayLike, /) -> tuple[FloatArray, FloatArray]:
        """Return log densities and gradients in what the table lists: everything, or one copy."""
        value, gradient = self._target(points)
        one = self._in_one_copy
        return value if one is None else one.within(value, np.asarray(points)), gradient

    def _weighed(self, modes: Sequence[Mode], found: Regions) -> dict[int, ShareByMass]:
        """Return probabilities by their masses of modes that the final draws are in."""
        rows = self._rows
        if rows.visits[0].points.shape[1] < _FEWEST_FOR_ERROR:
            return {}
        drawn = [k for k, each in enumerate(modes) if each.probability > 0 and each.closed]
        # Those first in which some method has many of its draws: there they may disagree.
        drawn.sort(key=lambda k: -max(modes[k].seen_by.values()))
        return shares_by_mass(
            {k: found.regions[k].peak for k in drawn[:_MOST_WEIGHED]},
            *(rows.points[rows.final], found.labels[rows.final], rows.final_weights),
            self._listed,
            scale=rows.scale,
            error_of_sum=rows.error_of_sum,
            families=[[number - 1 for number in each] for each in families_of(modes).values()],
            seed=self._seed,
        )


def _spread(values: Sequence[Mapping[str, FloatArray]]) -> dict[str, FloatArray]:
    """Return standard deviations of each parameter's numbers within modes."""
    with np.errstate(over="ignore"):  # infinitely wide is what it then is
        return {
            name: np.sqrt(np.mean([each[name].var(axis=0) for each in values], axis=0))
            for name in values[0]
        }


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
