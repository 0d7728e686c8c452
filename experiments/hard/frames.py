"""Outcomes and errors of the runs, as frames for tables, figures and claims."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from harness.experiment.efficiency import efficiency
from harness.plan.spec import Cell, Mark, Marks, Results

from .grid import LABELS, grid
from .right import LEGEND, NO_ANSWER, OUTCOMES

_MARKS = {mark.words: mark for mark in LEGEND}


def planned(results: Results) -> tuple[Cell, ...]:
    """Return the cells of the profile, also those that have no fit."""
    return grid(results.profile)


def runs_of(results: Results, cell: Cell) -> pd.DataFrame:
    """Return the rows of a cell's fits, one for each replication."""
    return results.metrics[results.metrics["cell"] == cell.key]


def outcomes(results: Results, cell: Cell) -> dict[int, str]:
    """Return the outcome of each finished or failed run of a cell, by replication."""
    runs = runs_of(results, cell)
    found: dict[int, str] = {}
    if len(runs):
        numbers = zip(runs["replication"], runs["outcome"], strict=True)
        found = {int(run): OUTCOMES[int(number)] for run, number in numbers}
    failed = {each.replication: NO_ANSWER for each in results.failures if each.cell == cell.label}
    return dict(sorted((failed | found).items()))


def marks(results: Results, cell: Cell) -> Marks:
    """Return a mark for each run of a cell."""
    return Marks(
        Mark(_MARKS[words].symbol, words, _MARKS[words].tone, cell.key, run)
        for run, words in outcomes(results, cell).items()
    )


def matrix(results: Results, budget: str) -> pd.DataFrame:
    """Return targets by methods, each entry the marks of its runs."""
    cells = [cell for cell in planned(results) if cell.factors["budget"] == budget]
    rows: dict[str, dict[str, object]] = {}
    for cell in cells:
        entries = rows.setdefault(cell.factors["target"], {})
        entries[LABELS[cell.factors["method"]]] = marks(results, cell)
    frame = pd.DataFrame.from_dict(rows, orient="index")
    frame.index.name = "target"
    return frame


def counted(results: Results, cells: Iterable[Cell]) -> pd.Series[int]:
    """Return how many runs of some cells have each outcome."""
    found = [words for cell in cells for words in outcomes(results, cell).values()]
    return pd.Series(found, dtype=object).value_counts().reindex(list(OUTCOMES), fill_value=0)


def errors(results: Results) -> pd.DataFrame:
    """Return root mean square errors and the like, one row for each cell with fits."""
    rows = []
    for cell in results.cells:
        runs = runs_of(results, cell)
        rows.append(
            {
                "cell": cell.label,
                "runs": len(runs),
                "log Z: RMSE": _root(runs["log_z_error"]),
                "log Z: median |z|": runs["log_z_z"].abs().median(),
                "modes: RMSE": _root(runs["mode_error"]),
                "modes: median |z|": runs["mode_z"].abs().median(),
                "coverage": runs["coverage"].mean(),
                "means: RMSE": _root(runs["mean_error"]),
                "means: median |z|": runs["mean_z"].abs().median(),
                "distance": runs["distance"].mean(),
                "distance of exact draws": runs["exact_distance"].mean(),
            }
        )
    return pd.DataFrame(rows).set_index("cell") if rows else pd.DataFrame()


def costs(results: Results) -> pd.DataFrame:
    """Return seconds, evaluations, equivalent independent draws, and how replicas travelled."""
    rows = []
    for cell in results.cells:
        runs = runs_of(results, cell)
        row = {
            "cell": cell.label,
            "seconds": runs["seconds"].mean(),
            "1,000 evaluations": runs["evaluations"].mean() / 1000,
            "neff per second": np.nan,
            "neff per 1,000 evaluations": np.nan,
            "round trips per 1,000 evaluations": runs["trips"].mean(),
            "communication barrier": runs["barrier"].mean(),
            "modes: RMSE": _root(runs["mode_error"]),
        }
        scaled = runs["scaled_error"]
        if scaled.notna().all() and (scaled > 0).any():
            found = efficiency(scaled, 1.0, runs["seconds"], runs["evaluations"])
            row |= {
                "neff per second": found.per_second,
                "neff per 1,000 evaluations": found.per_kilogradient,
            }
        rows.append(row)
    return pd.DataFrame(rows).set_index("cell") if rows else pd.DataFrame()


def _root(values: pd.Series[float]) -> float:
    known = values.dropna()
    return float(np.sqrt(np.mean(np.square(known)))) if len(known) else float("nan")
