"""Table 4.4 with the published numbers, ours and the truth; the controls; the transition."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from harness.evidence import LogEvidence
from harness.folders import shipped
from harness.plan.spec import Results, Table

from .grid import SIZES, TABLE, TRANSITION
from .lattices import DISORDERED, ISING, ORDERED, POTTS, truth

PUBLISHED_ROWS = {ISING: "ising", POTTS: "potts"}
RIGHT = 3.0
"""Errors within which log Z counts as right."""


@cache
def published() -> pd.DataFrame:
    """Return Table 4.4 as printed, by method; an error that is not printed is NaN."""
    path = shipped("experiments") / "published" / "potts_table4.csv"
    return pd.read_csv(path, index_col="method")


def known(results: Results, name: str) -> LogEvidence | None:
    """Return the true log Z_P of a model of the table in this profile."""
    return truth(name, SIZES[results.profile].side)


def estimates(results: Results, name: str) -> pd.DataFrame:
    """Return log Z of each row of a model: mean of the runs, their error, errors off the truth.

    The error is the larger of the runs' own, put together, and of what they spread: the runs' own
    knows nothing of chains that are too short.  ``effective`` is the number of effective runs of
    annealing, and NaN of other methods.
    """
    columns = ["log_z", "error", "of a run", "off", "errors off", "effective"]
    if "log_z" not in results.metrics:
        return pd.DataFrame(columns=columns)
    rows = results.metrics[(results.metrics["part"] == TABLE) & (results.metrics["model"] == name)]
    exact, made = known(results, name), {}
    for row, runs in rows.groupby("row", sort=False):
        own = float(np.sqrt(np.square(runs["log_z_mcse"]).mean()))
        spread = float(runs["log_z"].std(ddof=1)) if len(runs) > 1 else 0.0
        error = max(own, spread) / np.sqrt(len(runs))
        mean = float(runs["log_z"].mean())
        off = np.nan if exact is None else mean - exact.value
        total = np.nan if exact is None else float(np.hypot(error, exact.mcse))
        effective = float(runs["effective"].mean()) if "effective" in runs else np.nan
        made[row] = [mean, error, own, off, off / total if total else np.nan, effective]
    return pd.DataFrame.from_dict(made, orient="index", columns=columns)


def _shown(value: float, error: float) -> str:
    if not np.isfinite(value):
        return ""
    return f"{value:.4g}" if not np.isfinite(error) else f"{value:.4g} ± {error:.2g}"


def tables(results: Results) -> list[Table]:
    """All tables that there are results for."""
    made = [_table(results, name) for name in (ISING, POTTS)]
    return [table for table in (*made, _transition(results)) if table is not None]


def _table(results: Results, name: str) -> Table | None:
    found = estimates(results, name)
    if found.empty:
        return None
    exact, paper = known(results, name), published()
    rows = []
    for name_of_row, each in found.iterrows():
        row = str(name_of_row)
        here = row in paper.index
        column = PUBLISHED_ROWS[name]
        printed = float(paper[column][row]) if here else np.nan
        its_error = float(paper[f"{column}_error"][row]) if here else np.nan
        off = np.nan if exact is None else (printed - exact.value) / its_error
        right = abs(each["errors off"]) < RIGHT
        rows.append(
            {
                "method": row,
                "published": _shown(printed, its_error),
                "errors off, published": round(off, 1),
                "ours": _shown(each["log_z"], each["error"]),
                "error of a run": float(f"{each['of a run']:.2g}"),
                "truth": "" if exact is None else f"{exact.value:.5g}",
                "errors off, ours": round(each["errors off"], 1),
                "effective runs": _shown(each["effective"], np.nan),
                "verdict": "" if np.isnan(each["errors off"]) else "right" if right else "wrong",
            }
        )
    title = {ISING: "Ising, q = 2 and J = 1", POTTS: "q = 10, J = 1.477"}[name]
    return Table(
        f"table-4-4-{name}",
        f"Table 4.4, {title}: log Z_P of a periodic lattice; the thesis prints no boundary, and "
        "only this one fits its Ising numbers. Ours are means over runs; their error is the larger "
        f"of the runs' own and of their spread. Within {RIGHT:.0f} errors of the truth counts as "
        "right. Effective runs of annealing are 1 / sum w^2 of its weights: near 1, a single run "
        "has all of the weight, and the error is not one.",
        pd.DataFrame(rows).set_index("method"),
    )


def transition(results: Results) -> pd.DataFrame:
    """Return what was seen at the transition: means over runs, by row."""
    if "part" not in results.metrics:
        return pd.DataFrame()
    rows = results.metrics[results.metrics["part"] == TRANSITION]
    names = [n for n in ("ordered", "disordered", "crossed", "mixed") if n in rows]
    return rows.groupby("row", sort=False)[names].mean()


def _transition(results: Results) -> Table | None:
    found = transition(results)
    if found.empty:
        return None
    titles = {
        "ordered": "bonds, ordered start",
        "disordered": "bonds, disordered start",
        "crossed": "share of lattices that came between",
        "mixed": "states seen between",
    }
    return Table(
        "transition",
        f"At J = log(1 + √10) with q = 10: shares of edges with a bond from both starts. The "
        f"infinite lattice has {DISORDERED:.3f} and {ORDERED:.3f} in its two phases. Between means "
        "the middle third between these.",
        found.rename(columns=titles).round(3).rename_axis("method"),
    )
