"""Where two sets of draws of one posterior differ: regions that one visits and the other does not.

Draws of plain NUTS are compared with a pilot's particles, or with a tempered run's draws, one
coordinate after the other.  Neither is assumed to be right: each may miss a region.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit
from scipy.stats import binom

from harness import evidence
from harness.arrays import FloatArray
from harness.diagnosis import R_HAT_PROBLEM
from harness.evidence import normalised_weights
from harness.fit import Fit
from harness.modes.target import Target

FALSE_ALARM = 1e-3
"""Probability that a sound run of NUTS fails the comparison, over all coordinates."""
CHANCE = 0.1
"""Probability that a sound run shows a difference of note in some coordinate, by its errors."""
LEAST_SHARE = 0.1
"""Smallest probability, or difference of two, that matters."""
EMPTY = 0.05
"""A region is empty if its share is at most this fraction of what the other draws give it."""
_NARROW = 0.1
"""Width of a region, in standard deviations of NUTS's draws, below which it is a gap in them."""
_DECILES = np.linspace(0.1, 0.9, 9)
_FARTHEST = 53 * np.log(2.0)
"""Logit of the number below 1 that is nearest to it."""


@dataclass(frozen=True)
class Population:
    """Draws or particles by parameter, in populations that are independent of each other.

    Attributes
    ----------
    values
        By parameter, shape (populations, each, ...).
    log_weight
        Log weight of each population, shape (populations,).
    effective
        Number of independent draws that all of them are worth, if that is known: few draws may
        leave a region empty by chance.
    """

    values: Mapping[str, FloatArray]
    log_weight: FloatArray
    effective: float = np.inf

    @property
    def share(self) -> FloatArray:
        """Normalised weight of each population."""
        return normalised_weights(self.log_weight)

    @property
    def worth(self) -> float:
        """How many populations of equal weight they are worth.

        If one of them has nearly all the weight, their spread tells next to nothing.
        """
        return float(evidence.effective_number(self.log_weight))


@dataclass(frozen=True)
class Region:
    """A part of the range of one coordinate, and its probability by either set of draws.

    Attributes
    ----------
    name, column
        Parameter, and which of its elements in C order.
    label
        The coordinate as people write it, ``theta[2]``.
    intervals
        Lower and upper end of each interval, ascending; either may be infinite.
    nuts, nuts_error
        Probability by NUTS's draws and its Monte Carlo error.
    other, other_error
        Probability by the other draws, and its standard error.
    """

    name: str
    column: int
    label: str
    intervals: tuple[tuple[float, float], ...]
    nuts: float
    nuts_error: float
    other: float
    other_error: float

    @property
    def size(self) -> float:
        """Difference of the two probabilities."""
        return abs(self.nuts - self.other)

    @property
    def score(self) -> float:
        """That difference in units of its standard error."""
        error = float(np.hypot(self.nuts_error, self.other_error))
        return self.size / error if error > 0 else (np.inf if self.size else 0.0)

    def holds(self, values: Mapping[str, FloatArray]) -> npt.NDArray[np.bool_]:
        """Whether each draw lies in the region; values (a, b, ...) by parameter to shape (a, b)."""
        return _inside(_column(values, self), self.intervals)

    def __str__(self) -> str:
        # Ends that look the same would tell nothing.
        wide = [each for each in self.intervals if f"{each[0]:.4g}" != f"{each[1]:.4g}"]
        return " or ".join(_interval(self.label, *each) for each in wide or self.intervals)


@dataclass(frozen=True)
class Comparison:
    """Result of comparing NUTS with other draws.

    Attributes
    ----------
    r_hat, worst
        Largest R-hat of NUTS's chains, and the parameter that has it.
    missed_by_nuts
        The largest region that the other draws visit and NUTS does not; None if there is none.
    missed_by_other
        Region that NUTS visits and the other draws do not.
    differs
        Region that both visit, but with different probabilities.
    unsure
        Region where they differ by as much, but within their errors.
    notable
        The largest of those where the difference is more than chance brings about as a rule.
    largest
        Largest difference of two probabilities.
    coordinates
        Number of coordinates compared.
    """

    r_hat: float
    worst: str
    missed_by_nuts: Region | None
    missed_by_other: Region | None
    differs: Region | None
    unsure: Region | None
    notable: Region | None
    largest: float
    coordinates: int

    @property
    def chains_disagree(self) -> bool:
        """Whether NUTS's chains are in different places."""
        return self.r_hat > R_HAT_PROBLEM


def compare(nuts: Mapping[str, FloatArray], other: Population) -> Comparison:
    """Compare NUTS with other draws, coordinate by coordinate, between quantiles of both together.

    The error of NUTS's share of draws in a region takes autocorrelation into account; that of the
    others' is the spread of the populations.  A region that NUTS misses counts whatever its error:
    a few populations that found it are reason enough to look (:mod:`harness.user.confirm`).  It
    does not count if the others are worth so few draws, for so many coordinates, that chance puts
    as many of them into a narrow gap between NUTS's draws.

    Parameters
    ----------
    nuts
        Draws by parameter, shape (chains, draws, ...).
    other
        What they are compared with.
    """
    r_hat, worst = largest_r_hat(nuts)
    share, worth = other.share, other.worth
    missed_by_nuts: list[Region] = []
    missed_by_other: list[Region] = []
    apart: list[Region] = []
    thresholds, cells, largest_size, coordinates = 0, 0, 0.0, 0
    for name, values in nuts.items():
        draws = values.reshape(*values.shape[:2], -1)
        points = other.values[name].reshape(*other.values[name].shape[:2], -1)
        for column in range(draws.shape[2]):
            coordinates += 1
            coordinate = _Coordinate(
                name,
                column,
                values.shape[2:],
                draws[..., column],
                points[..., column],
                share,
                worth,
            )
            cells += coordinate.cells
            missed_by_nuts += coordinate.empty_in_nuts()
            missed_by_other += coordinate.empty_in_other()
            below = coordinate.below_thresholds()
            thresholds += len(below.sizes)
            largest_size = max(largest_size, float(below.sizes.max(initial=0.0)))
            apart += below.apart
    freedom = max(worth - 1, 1.0)
    largest, usual = (
        float(stdtrit(freedom, 1 - level / 2 / max(thresholds, 1)))
        for level in (FALSE_ALARM, CHANCE)
    )
    unsure = [each for each in apart if each.score <= largest]
    return Comparison(
        r_hat=r_hat,
        worst=worst,
        missed_by_nuts=_largest(
            [each for each in missed_by_nuts if not _by_chance(each, nuts, other, cells)]
        ),
        missed_by_other=_largest(
            [each for each in missed_by_other if _empty(each, other.effective, largest)]
        ),
        differs=_largest([each for each in apart if each.score > largest]),
        unsure=_largest(unsure),
        notable=_largest([each for each in unsure if each.score > usual]),
        largest=largest_size,
        coordinates=coordinates,
    )


class _Below(NamedTuple):
    """Probabilities below thresholds of one coordinate.

    Attributes
    ----------
    sizes
        Difference of the two probabilities below each threshold.
    apart
        The regions where it is more than ``LEAST_SHARE``.
    """

    sizes: FloatArray
    apart: list[Region]


class _Coordinate:
    """One coordinate of both sets of draws, cut at quantiles of both."""

    def __init__(
        self,
        name: str,
        column: int,
        shape: tuple[int, ...],
        draws: FloatArray,
        points: FloatArray,
        share: FloatArray,
        worth: float,
    ) -> None:
        self._name, self._column, self._worth = name, column, worth
        index = ",".join(str(i + 1) for i in np.unravel_index(column, shape)) if shape else ""
        self._label = f"{name}[{index}]" if index else name
        self._draws, self._points, self._share = draws, points, share
        of_each = [np.quantile(draws, _DECILES), np.quantile(points[share > 0], _DECILES)]
        quantiles = np.unique(np.concatenate(of_each))
        self._thresholds = quantiles[::2]
        # Midway between two quantiles, where modes are apart, as well as on them.
        edges = np.unique(np.concatenate([quantiles, (quantiles[1:] + quantiles[:-1]) / 2]))
        self._cells = list(pairwise([-np.inf, *edges.tolist(), np.inf]))
        self._in_nuts = _shares(draws.reshape(1, -1), edges)[0]
        self._in_other = share @ _shares(points, edges)

    @property
    def cells(self) -> int:
        """Number of cells between quantiles."""
        return len(self._cells)

    def empty_in_nuts(self) -> list[Region]:
        """Return the region that the other draws visit and NUTS does not."""
        return self._empty(self._in_nuts, self._in_other)

    def empty_in_other(self) -> list[Region]:
        """Return the region that NUTS visits and the other draws do not."""
        return self._empty(self._in_other, self._in_nuts)

    def below_thresholds(self) -> _Below:
        """Return how probabilities below each threshold differ, and the regions where they do."""
        of_nuts = _shares(self._draws.reshape(1, -1), self._thresholds)[0, :-1].cumsum()
        of_other = (self._share @ _shares(self._points, self._thresholds))[:-1].cumsum()
        sizes = np.abs(of_nuts - of_other)
        # Errors of probabilities take most of the time, and only these need one.
        apart = self._thresholds[sizes > LEAST_SHARE]
        return _Below(sizes, [self._region(((-np.inf, float(each)),)) for each in apart])

    def _empty(self, here: FloatArray, there: FloatArray) -> list[Region]:
        empty = np.flatnonzero((there > 0) & (here <= EMPTY * there))
        merged: list[tuple[float, float]] = []
        for low, high in (self._cells[k] for k in empty):
            if merged and merged[-1][1] == low:
                merged[-1] = (merged[-1][0], high)
            else:
                merged.append((low, high))
        return [self._region(tuple(merged))] if merged else []

    def _region(self, intervals: tuple[tuple[float, float], ...]) -> Region:
        of_nuts = evidence.expectation(_inside(self._draws, intervals).astype(np.float64))
        of_population = _inside(self._points, intervals).mean(axis=1)
        other, populations = float(self._share @ of_population), self._worth
        spread = np.square(self._share) @ np.square(of_population - other)
        error = float(np.sqrt(spread * populations / max(populations - 1, 1.0)))
        nuts_error = float(of_nuts.mcse)
        return Region(
            self._name,
            self._column,
            self._label,
            intervals,
            float(of_nuts.value),
            nuts_error if np.isfinite(nuts_error) else 0.0,
            other,
            # Never below that of one particle, even if all particles are on one side.
            max(error, 1.0 / self._points.size),
        )


def _column(values: Mapping[str, FloatArray], region: Region) -> FloatArray:
    """Return the coordinate of a region, of values (a, b, ...) by parameter; shape (a, b)."""
    array = values[region.name]
    column: FloatArray = array.reshape(*array.shape[:2], -1)[..., region.column]
    return column


def _by_chance(
    region: Region, nuts: Mapping[str, FloatArray], other: Population, cells: int
) -> bool:
    """Whether as many of the other draws may be in one of so many cells though NUTS is right.

    Draws of a chain that is stuck there count each, unless the place is narrow: it is there for a
    reason, and chains that have hardly moved leave their draws in narrow places anyway.
    """
    draws = _column(nuts, region)
    worth = other.worth * other.values[region.name].shape[1]
    if sum(high - low for low, high in region.intervals) < _NARROW * draws.std():
        worth = min(worth, other.effective)
    probability = min(region.nuts + 1 / draws.size, 1.0)
    inside = round(region.other * round(worth))
    return cells * float(binom.sf(inside - 1, round(worth), probability)) > FALSE_ALARM


def _empty(region: Region, effective: float, largest: float) -> bool:
    """Whether other draws are missing from a region by more than chance, by their own errors."""
    by_chance = np.sqrt(region.nuts * (1 - region.nuts) / effective)
    return region.size > largest * max(region.other_error, float(by_chance))


def _largest(regions: list[Region]) -> Region | None:
    kept = [each for each in regions if each.size > LEAST_SHARE]
    return max(kept, key=lambda each: each.size, default=None)


def _shares(values: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the share of each row of values in each cell between edges, shape (rows, cells)."""
    cells = len(edges) + 1
    cell = np.searchsorted(edges, values, side="right") + cells * np.arange(len(values))[:, None]
    counted = np.bincount(cell.ravel(), minlength=cells * len(values)).reshape(-1, cells)
    shares: FloatArray = counted / values.shape[1]
    return shares


def _inside(
    values: FloatArray, intervals: list[tuple[float, float]] | tuple[tuple[float, float], ...]
) -> npt.NDArray[np.bool_]:
    found = np.zeros(values.shape, dtype=np.bool_)
    for low, high in intervals:
        found |= (values >= low) & (values < high)
    return found


def _interval(label: str, low: float, high: float) -> str:
    if low == -np.inf:
        return f"{label} < {high:.4g}"
    if high == np.inf:
        return f"{label} >= {low:.4g}"
    return f"{low:.4g} <= {label} < {high:.4g}"


def parameters_of(fit: Fit) -> dict[str, FloatArray]:
    """Return a fit's draws of the parameters, by name, axes (chain, draw, ...)."""
    return {
        name: fit.posterior[name].transpose("chain", "draw", ...).to_numpy()
        for name in fit.parameters
    }


def unconstrained(values: Mapping[str, FloatArray], leading: int, density: Target) -> FloatArray:
    """Return the unconstrained points of values by parameter.

    Parameters
    ----------
    values
        Their first axes count draws.
    leading
        How many axes that are.
    density
        A density of these parameters.

    Returns
    -------
    FloatArray
        The same first axes, and a last one over D coordinates.  A value that rounding has put on
        its bound is as far out as a number between 0 and 1 can be, not infinitely far.
    """
    flat = {name: np.reshape(value, (-1, *value.shape[leading:])) for name, value in values.items()}
    counts = next(iter(values.values())).shape[:leading]
    points = density.unconstrain_draws(flat).reshape(*counts, -1)
    return np.where(np.isinf(points), np.copysign(_FARTHEST, points), points)


def largest_r_hat(nuts: Mapping[str, FloatArray]) -> tuple[float, str]:
    """Return the largest R-hat of NUTS's chains, and the parameter that has it.

    Parameters
    ----------
    nuts
        Draws by parameter, shape (chains, draws, ...).
    """
    return _worst({name: evidence.largest_r_hat(values) for name, values in nuts.items()})


def r_hat_of_parameters(fit: Fit) -> float:
    """Return the largest R-hat of a fit's parameters, infinite if no chain has moved."""
    largest = fit.largest_r_hats
    return _worst({name: largest[name] for name in fit.parameters})[0]


def _worst(largest: Mapping[str, float]) -> tuple[float, str]:
    """Return the largest R-hat of some parameters and whose it is, infinite if none has any.

    Parameters
    ----------
    largest
        That of the entries of each parameter; NaN if it never moves.
    """
    known = {name: value for name, value in largest.items() if not np.isnan(value)}
    if not known:
        return np.inf, next(iter(largest))
    name = max(known, key=lambda each: known[each])
    return known[name], name
