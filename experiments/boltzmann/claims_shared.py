"""What judges of claims share: their type, a family's cell, and errors of its runs."""

from __future__ import annotations

import numpy as np

from harness.arrays import FloatArray
from harness.plan.effects import Decision
from harness.plan.spec import Cell, Results

from .curves import error_of, of_family, runs_of

Judged = tuple[str, Decision]


def one_cell(
    results: Results, family: str, number: int | None = None, half: str = "PE"
) -> Cell | None:
    """Cell of a family with this N; with none given, the one with the smallest."""
    cells = sorted(of_family(results, half, family), key=lambda cell: cell.factors["N"])
    if number is None:
        return cells[0] if cells else None
    return next((cell for cell in cells if cell.factors["N"] == number), None)


def rmse_of(results: Results, cell: Cell | None, key: str) -> float:
    """Root mean squared error of a cell's runs; NaN if there is no cell."""
    return float("nan") if cell is None else error_of(results, cell, key)[0]


def weighted_errors(results: Results, cell: Cell, key: str) -> FloatArray:
    """Errors of a cell's runs times the root of their mean time."""
    runs = runs_of(results, [cell])
    errors: FloatArray = runs[key].to_numpy(float) * np.sqrt(runs["time"].mean())
    return errors
