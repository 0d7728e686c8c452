"""Frames of numbers from finished runs: errors, published numbers beside them, efficiency."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

import numpy as np
import pandas as pd

from harness.experiment.efficiency import efficiency
from harness.folders import shipped
from harness.models.gaussian_mixture import Scenario
from harness.plan.effects import rmse as rmse_of
from harness.plan.spec import Cell, Results

from .grid import BASE, OURS, SCENARIOS, TABLE_1, TRIALS
from .measures import MOMENTS, SHARES, exact_moments, scenario_of, variance

KEYS = ["method", "N", "scenario", "moment"]
_FIRST = ("x1", "x2")
# The order of Table 1; what is ours follows in the grid's order.
_ORDER = ("RAM", "EE", "PT", "HMC", "PE")


def cells_of(results: Results, *parts: str) -> list[Cell]:
    """Return the finished cells of some parts of the grid, in the order of the tables."""

    def place(cell: Cell) -> tuple[int, str, int, float, int]:
        name = cell.factors["method"]
        rank = _ORDER.index(name) if name in _ORDER else len(_ORDER)
        beta = float(cell.factors["inv_temp"] or 0.0)
        first = 0 if cell.factors["part"] == TABLE_1 else 1
        return first, str(cell.factors["scenario"]), rank, beta, int(cell.factors["N"])

    wanted = [cell for cell in results.cells if not parts or cell.factors["part"] in parts]
    return sorted(wanted, key=place)


def runs_of(results: Results, cell: Cell) -> pd.DataFrame:
    """Return the metrics of a cell's runs."""
    return results.metrics[results.metrics["cell"] == cell.key]


def rmse(results: Results, cells: Sequence[Cell] | None = None) -> pd.DataFrame:
    """Root mean squared error over replications, with its standard error, per cell and moment.

    ``expected`` is what the runs' own Monte Carlo standard errors predict, the root of their mean
    square: it is less noisy than the RMSE of few runs, and the two agree where every run reaches
    all modes.
    """
    wanted = [*MOMENTS, *(f"{name}_mcse" for name in MOMENTS)]
    by_cell = dict(tuple(results.metrics.groupby("cell", sort=False)))
    rows = []
    for cell in results.cells if cells is None else cells:
        truth = exact_moments(cell.factors["scenario"])
        runs = {name: by_cell[cell.key][name].to_numpy() for name in wanted}
        for name in MOMENTS:
            error = rmse_of(runs[name] - truth[name])
            rows.append(
                {
                    "cell": cell.key,
                    **cell.factors,
                    "moment": name,
                    "rmse": error.value,
                    "se": error.se,
                    "expected": float(np.sqrt((runs[f"{name}_mcse"] ** 2).mean())),
                }
            )
    return pd.DataFrame(rows)


def published(table: int = 1) -> pd.DataFrame:
    """Table 1 or 2 of the paper: RMSE by method, N, inverse temperature, scenario and moment."""
    frame = _read("mixture_rmse.csv")
    chosen = frame[frame["table"] == table].copy()
    chosen["N"] = chosen["num_pseudo_samples"].fillna(1).astype(int)
    long = chosen.melt(
        id_vars=["method", "N", "inv_temp", "scenario"],
        value_vars=list(MOMENTS),
        var_name="moment",
        value_name="published",
    )
    return long.drop(columns="inv_temp") if table == 1 else long[long["inv_temp"].notna()]


def preprint() -> pd.DataFrame:
    """Table 1 of the preprint: mean and standard deviation of estimates over 20 runs."""
    frame = _read("mixture_preprint.csv").copy()
    frame["N"] = frame.pop("num_pseudo_samples").fillna(1).astype(int)
    return frame


@cache
def _read(name: str) -> pd.DataFrame:
    return pd.read_csv(shipped("experiments") / "published" / name)


@cache
def printed_truth(scenario: Scenario) -> dict[str, float]:
    """Moments that the preprint prints as a scenario's truth."""
    frame = preprint()
    rows = frame[(frame["method"] == "Truth") & (frame["scenario"] == scenario)]
    return dict(zip(rows["moment"], rows["mean"], strict=True))


def efficiencies(results: Results, keys: Collection[str] | None = None) -> pd.DataFrame:
    """Equivalent independent draws a second and per 1,000 evaluations, a row a cell, best first.

    Of E[x], both coordinates together; the intervals are bootstrap ones.  Of the cells that
    ``keys`` names, or of all but Table 2's.
    """
    rows = []
    for cell in cells_of(results, TABLE_1, OURS, TRIALS):
        if keys is not None and cell.key not in keys:
            continue
        runs, scenario = runs_of(results, cell), cell.factors["scenario"]
        errors = _errors(runs, scenario, _FIRST)
        found = efficiency(errors, variance(scenario), runs["seconds"], runs["evaluations"])
        rows.append(
            {
                "cell": cell.key,
                "scenario": scenario,
                "label": cell.label,
                "runs": len(runs),
                "rmse": rmse_of(errors).value,
                "seconds": float(runs["seconds"].mean()),
                "evaluations": float(runs["evaluations"].mean()),
                "per_second": found.per_second,
                "per_second_low": found.per_second_interval[0],
                "per_second_high": found.per_second_interval[1],
                "per_kilo": found.per_kilogradient,
                "per_kilo_low": found.per_kilogradient_interval[0],
                "per_kilo_high": found.per_kilogradient_interval[1],
            }
        )
    frame = pd.DataFrame(rows)
    return (
        frame
        if frame.empty
        else frame.sort_values(
            ["scenario", "per_second"], ascending=[True, False], ignore_index=True
        )
    )


def base_alone() -> pd.DataFrame:
    """Errors of the base's own moments, a row a scenario: what a run must do better than."""
    first = BASE.mean
    both = np.concatenate([first, first**2 + np.diag(BASE.covariance)])
    rows = []
    for scenario in SCENARIOS:
        error = both - np.array(list(exact_moments(scenario).values()))
        rows.append({"scenario": scenario, **dict(zip(MOMENTS, np.abs(error), strict=True))})
    return pd.DataFrame(rows)


def at_equal_cost(results: Results) -> pd.DataFrame:
    """RMSE of E[x] after parts of each run, with its seconds and evaluations, a row a part."""
    rows = []
    for cell in cells_of(results, TABLE_1, OURS):
        runs, scenario = runs_of(results, cell), cell.factors["scenario"]
        for name, share in {**SHARES, "whole": 1.0}.items():
            columns = _FIRST if name == "whole" else tuple(f"{each}_{name}" for each in _FIRST)
            rows.append(
                {
                    "cell": cell.key,
                    "label": cell.label,
                    "scenario": scenario,
                    "share": share,
                    "rmse": rmse_of(_errors(runs, scenario, columns)).value,
                    "seconds": _at(runs, "seconds", share),
                    "evaluations": _at(runs, "evaluations", share),
                }
            )
    return pd.DataFrame(rows)


def _at(runs: pd.DataFrame, kind: str, share: float) -> float:
    before = runs[f"{kind}_before"]
    return float((before + share * (runs[kind] - before)).mean())


def _errors(runs: pd.DataFrame, scenario: str, columns: Sequence[str]) -> np.ndarray:
    truth = exact_moments(scenario_of(scenario))
    return np.stack(
        [runs[c].to_numpy() - truth[n] for c, n in zip(columns, _FIRST, strict=True)], axis=1
    )
