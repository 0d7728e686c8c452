"""Errors of a method's runs against what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from harness.arrays import FloatArray
from harness.experiment.efficiency import Efficiency, efficiency
from harness.plan.effects import Effect, Undecided, rmse
from harness.plan.spec import Cell, Results

from .measure import SHARES

PAPER_CT = ("log_z", "mean", "covariance")
"""Errors that Figure 2 of Graham and Storkey shows."""

SUFFIXES = tuple("" if share == 1 else f"_{k}" for k, share in enumerate(SHARES))


@dataclass(frozen=True)
class Curve:
    """Error against cost, from the cheapest point on.

    Attributes
    ----------
    cost
        Mean cost of a run, ascending.
    error, se
        Error over runs and its standard error.
    within
        Standard error over runs of the same instances, to compare methods on them: what instances
        differ by is left out.
    """

    cost: FloatArray
    error: FloatArray
    se: FloatArray
    within: FloatArray

    def reaches(self, budget: float) -> bool:
        """Whether a cost lies between the cheapest and the dearest point."""
        return bool(self.cost.size and self.cost[0] <= budget <= self.cost[-1])

    def at(self, budget: float) -> float:
        """Error at a cost, linear between points in the logarithms of both; NaN beyond them."""
        return float(np.exp(self._between(budget, np.log(self.error))))

    def log_se_at(self, budget: float) -> float:
        """Standard error of the logarithm of the error at a cost; NaN beyond the points."""
        return self._between(budget, self.within / self.error)

    def _between(self, budget: float, value: FloatArray) -> float:
        if not self.reaches(budget):
            return float("nan")
        return float(np.interp(np.log(budget), np.log(self.cost), value))


def of_half(results: Results, half: str) -> list[Cell]:
    """Cells of one half, in the grid's order."""
    return [cell for cell in results.cells if cell.factors["half"] == half]


def of_family(results: Results, half: str, family: str) -> list[Cell]:
    """Cells of one half and family, over all instances and numbers."""
    return [cell for cell in of_half(results, half) if cell.factors["method"] == family]


def runs_of(results: Results, cells: Sequence[Cell]) -> pd.DataFrame:
    """Metrics of the runs of some cells."""
    return results.metrics[results.metrics["cell"].isin([cell.key for cell in cells])]


def curve(
    results: Results,
    cells: Sequence[Cell],
    name: str,
    cost: str,
    *,
    relative: bool = False,
    pooled: bool = False,
) -> Curve:
    """Error of some cells against cost: a point for each number N and share of the draws.

    Parameters
    ----------
    cells
        Cells of one family; runs on several instances are taken together.
    name
        Which error: a key of :data:`ERRORS`.
    cost
        ``work``, gradients of the target, or ``time``, seconds.
    relative
        Whether errors are divided by the base's own and averaged over runs, as Graham and
        Storkey do; else the root of the mean square over runs.
    pooled
        Whether to take errors of the authors' pooled chains, where there are any; see
        :func:`.measure.pooled_as_plotted`.
    """
    runs = runs_of(results, cells)
    own = f"pooled_{name}" if pooled and f"pooled_{name}" in runs.dropna(axis=1) else name
    points = []
    for _, same in runs.groupby("N"):
        for suffix in SUFFIXES:
            if f"{own}{suffix}" not in same:
                continue
            error = same[f"{own}{suffix}"].to_numpy(float)
            taken = same[f"{cost}{suffix}"].to_numpy(float)
            if len(error) < 2 or not np.all(np.isfinite(error)):
                continue
            if relative:
                ratio = error / same[f"base_{name}"].to_numpy(float)
                value, se = ratio.mean(), ratio.std(ddof=1) / np.sqrt(len(ratio))
                within = _within(ratio, same["instance"].to_numpy())
            else:
                found = rmse(error)
                value, se = found.value, found.se
                within = se
            points.append((taken.mean(), value, se, within))
    return Curve(*np.array(sorted(points)).reshape(-1, 4).T)


def _within(value: FloatArray, instance: npt.NDArray[np.object_]) -> float:
    """Standard error of a mean over runs, from their spread about the mean of their instance."""
    centred = value - pd.Series(value).groupby(instance).transform("mean").to_numpy()
    freedom = len(value) - len(set(instance))
    return float(np.sqrt(np.square(centred).sum() / freedom / len(value))) if freedom else np.inf


def efficiency_of(results: Results, cell: Cell) -> Efficiency:
    """Equivalent independent draws of a cell's estimates of E[x], by cost."""
    runs = runs_of(results, [cell])
    return efficiency(
        runs["mean"].to_numpy(float),
        float(runs["variance"].iloc[0]),
        runs["time"].to_numpy(float),
        runs["work"].to_numpy(float),
    )


def error_of(results: Results, cell: Cell, name: str) -> tuple[float, float]:
    """Root mean squared error over a cell's runs and its standard error; NaN if not estimated."""
    runs = runs_of(results, [cell])
    if name not in runs or not np.all(np.isfinite(runs[name])):
        return float("nan"), float("nan")
    found = rmse(runs[name].to_numpy(float))
    return found.value, found.se


def equal_cost(
    results: Results,
    groups: Sequence[Sequence[Cell]],
    name: str,
    cost: str,
    *,
    relative: bool = False,
) -> tuple[float, list[float]]:
    """Errors of several groups of cells at the cost of the group whose longest runs took least.

    Returns
    -------
    tuple
        That cost, and the error of each group at it; NaN for one whose cheapest runs cost more.
    """
    curves = [curve(results, cells, name, cost, relative=relative) for cells in groups]
    budget = min((float(c.cost[-1]) for c in curves if c.cost.size), default=float("nan"))
    return budget, [c.at(budget) for c in curves]


def ratio_at_equal_cost(
    results: Results,
    pair: tuple[Sequence[Cell], Sequence[Cell]],
    name: str,
    cost: str,
    *,
    relative: bool = False,
    cheapest: bool = False,
) -> Effect | Undecided:
    """Error of one group over that of another at the largest cost inside both curves.

    If ``cheapest``, it is that at the smallest such cost.

    Returns
    -------
    Effect or Undecided
        The ratio; or, if the curves have no cost in common, which runs would have to be longer.
    """
    one, two = (curve(results, cells, name, cost, relative=relative) for cells in pair)
    names = tuple(cells[0].factors["method"] if cells else "a method" for cells in pair)
    for each, whose in zip((one, two), names, strict=True):
        if not each.cost.size:
            return Undecided(f"runs of {whose} that estimate this")
    budget = float(min(one.cost[-1], two.cost[-1]))
    if not (one.reaches(budget) and two.reaches(budget)):
        unit, scale = {"work": ("thousand gradients", 1e3), "time": ("seconds", 1.0)}[cost]
        short = 0 if one.cost[-1] < two.cost[0] else 1
        longest = (one, two)[short].cost[-1] / scale
        cheapest = (one, two)[1 - short].cost[0] / scale
        return Undecided(
            f"longer runs of {names[short]}: its longest take {longest:,.3g} {unit}, the cheapest "
            f"of {names[1 - short]} {cheapest:,.3g}, so they cannot be compared at equal cost"
        )
    if cheapest:
        budget = float(max(one.cost[0], two.cost[0]))
    runs = min(len(runs_of(results, cells)) for cells in pair)
    se = float(np.hypot(one.log_se_at(budget), two.log_se_at(budget)))
    return Effect(one.at(budget) / two.at(budget), se, runs, ratio=True)
