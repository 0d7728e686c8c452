"""What claims are about: errors of a row over another's, or over the published ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from harness.arrays import FloatArray
from harness.plan.effects import Effect, error_ratio, rmse
from harness.plan.spec import Results

from .frames import KEYS, cells_of, printed_truth, published
from .frames import rmse as rmse_of_cells
from .grid import TABLE_1, TABLE_2
from .measures import MOMENTS, exact_moments, scenario_of, spread

FIRST, SECOND = ("x1", "x2"), ("x1_squared", "x2_squared")
ALL = (*FIRST, *SECOND)
Unit = Literal["seconds", "evaluations"]

_PUBLISHED_RUNS = 20
# The published numbers have two decimals: the standard deviation of what rounding adds.
_ROUNDING = 0.01 / np.sqrt(12)


def ratio(results: Results, key: str, other: str, moments: Sequence[str] = ALL) -> Effect:
    """RMSE of a cell over another's; of several moments together, each in the target's spread.

    Parameters
    ----------
    results
        Results with both cells.
    key, other
        Names of the cells.
    moments
        One moment or more.
    """
    return error_ratio(*(_errors(results, each, moments) for each in (key, other)))


def columns(results: Results, key: str, other: str) -> list[Effect]:
    """Ratio of a cell's RMSE to another's in each of the four columns."""
    return [ratio(results, key, other, (name,)) for name in MOMENTS]


def over_published(results: Results, key: str, values: Mapping[str, float]) -> Effect:
    """RMSE of a cell over the published one, of one moment or of several together.

    Ours is measured from the truth that the preprint prints, as the published one was: the two
    differ in scenario (b).  The published one is a root mean squared error over 20 runs of the
    same method, so that it is taken to be as uncertain as ours is in 20 runs, besides rounding.

    Parameters
    ----------
    results
        Results with the cell.
    key
        Name of the cell.
    values
        Published RMSE by moment.
    """
    scenario = scenario_of(key)
    ours = rmse(_errors(results, key, tuple(values), printed_truth(scenario)))
    unit = np.array([spread(scenario)[name] if len(values) > 1 else 1.0 for name in values])
    theirs = np.array(list(values.values())) / unit
    total = float(np.sqrt(np.square(theirs).mean()))
    rounding = float(np.linalg.norm(theirs / unit)) * _ROUNDING / (len(theirs) * total**2)
    noise = ours.log_se * np.sqrt(1 + ours.runs / _PUBLISHED_RUNS)
    return Effect(ours.value / total, float(np.hypot(noise, rounding)), ours.runs, ratio=True)


def cost_ratio(
    results: Results, key: str, other: str, moments: Sequence[str], unit: Unit
) -> Effect:
    """Mean squared error times cost of a run, over another cell's.

    Its inverse is a ratio of numbers of equivalent independent draws per unit of cost.

    Parameters
    ----------
    results
        Results with both cells.
    key, other
        Names of the cells.
    moments
        Moments whose errors are averaged.
    unit
        What is paid: seconds, or evaluations of the target, warm-up and pilot included.
    """
    error = ratio(results, key, other, moments)
    spent = [_measured(results, each, unit) for each in (key, other)]
    mean = [float(each.mean()) for each in spent]
    variance = [np.square(each.std(ddof=1) / each.mean()) / len(each) for each in spent]
    return Effect(
        error.value**2 * mean[0] / mean[1],
        float(np.sqrt(4 * error.se**2 + sum(variance))),
        error.runs,
        ratio=True,
    )


def comparison(
    results: Results, part: str = TABLE_1, methods: Collection[str] = ()
) -> pd.DataFrame:
    """Our RMSE beside the published one, a row per cell of a table and moment.

    Parameters
    ----------
    results
        Results.
    part
        Table 1 or 2 of the paper.
    methods
        Methods of its rows; all of them if empty.

    Returns
    -------
    DataFrame
        As :func:`.frames.rmse`, with ``published``, ``ratio``, and ``difference``: the logarithm of
        the ratio in its standard errors (see :func:`over_published`).
    """
    cells = cells_of(results, part)
    ours = rmse_of_cells(
        results, [each for each in cells if not methods or each.factors["method"] in methods]
    )
    if ours.empty:
        return ours
    fixed = part == TABLE_2
    if fixed:
        ours["inv_temp"] = ours["inv_temp"].astype(float)
    keys = [*KEYS, "inv_temp"] if fixed else KEYS
    joined = ours.merge(published(2 if fixed else 1), on=keys, how="left", validate="one_to_one")
    found = [
        over_published(results, cell, {moment: value})
        for cell, moment, value in joined[["cell", "moment", "published"]].itertuples(index=False)
    ]
    joined["ratio"] = [each.value for each in found]
    joined["difference"] = [np.log(each.value) / each.se if each.se else 0.0 for each in found]
    return joined


def row_over_published(results: Results, frame: pd.DataFrame, key: str) -> Effect:
    """All four moments of a row together over the published ones.

    Parameters
    ----------
    results
        Results with the cell.
    frame
        Made by :func:`comparison`.
    key
        Name of the cell.
    """
    own = frame[frame["cell"] == key]
    return over_published(results, key, dict(zip(own["moment"], own["published"], strict=True)))


def _errors(
    results: Results,
    key: str,
    moments: Sequence[str],
    truth: Mapping[str, float] | None = None,
) -> FloatArray:
    """Errors of a cell's runs, (R, K); of several moments in units of the target's spread."""
    scenario = scenario_of(key)
    exact = truth or exact_moments(scenario)
    unit = spread(scenario) if len(moments) > 1 else dict.fromkeys(moments, 1.0)
    found: FloatArray = np.stack(
        [(_measured(results, key, name) - exact[name]) / unit[name] for name in moments], axis=1
    )
    return found


def _measured(results: Results, key: str, name: str) -> FloatArray:
    """One metric of a cell's runs, shape (R,); far quicker than taking their rows."""
    own = results.metrics["cell"].to_numpy() == key
    found: FloatArray = results.metrics[name].to_numpy(dtype=np.float64)[own]
    return found
