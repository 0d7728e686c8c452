"""Table 4.2 with ours beside the published numbers, Table 4.3, repeated runs, and what is exact."""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from harness.arrays import FloatArray
from harness.folders import shipped
from harness.models.evidence_targets import QUADRANTS
from harness.plan.spec import Profile, Results, Table

from .grid import FIGURE, OURS, TABLE
from .laws import cost_laws, unit_error_costs
from .measures import MOST_RUNS
from .targets import DECEPTIVE, DISTRIBUTIONS, TWO_MODES
from .volumes import plateau_counts, volume_errors

_CHANCE = 1e-3
"""Of runs that are right to be called off."""
EXPERIMENTS: dict[Profile, tuple[int, int]] = {
    "smoke": (50, 20),
    "quick": (300, 100),
    "paper": (1000, 400),
}
"""Runs in which volumes are drawn, and runs that leave a plateau."""


@cache
def published(table: str) -> pd.DataFrame:
    """Return Table 4.2 or 4.3 as printed."""
    path = shipped("experiments") / "published" / f"evidence_table{table.replace('.', '_')}.csv"
    frame = pd.read_csv(path, comment="#")
    return frame.set_index(["distribution", "row"] if table == "4.2" else "quadrant")


class Printed(NamedTuple):
    """A row of Table 4.2 as printed; the error may be NaN."""

    evaluations: int
    log_z: float
    error: float


def printed(distribution: str, row: str) -> Printed | None:
    """Return a row of Table 4.2, or None if there is none."""
    table = published("4.2")
    if (distribution, row) not in table.index:
        return None
    place = list(table.index).index((distribution, row))
    numbers = table[["evaluations", "log_z", "error"]].to_numpy(dtype=np.float64)
    values = numbers[place].tolist()
    return Printed(int(values[0]), values[1], values[2])


@cache
def truth(distribution: str) -> float:
    """Return the true log Z of a distribution."""
    return DISTRIBUTIONS[distribution].make().truth.log_evidence.value


def answers(results: Results, distribution: str, row: str, part: str = TABLE) -> FloatArray:
    """Return log Z and error of each run of a row, in order, shape (R, 2)."""
    rows = _rows(results, part)
    if rows.empty:
        return np.empty((0, 2))
    rows = rows[(rows["distribution"] == distribution) & (rows["row"] == row)]
    return _answers(rows)


def _rows(results: Results, part: str) -> pd.DataFrame:
    if "part" not in results.metrics:
        return pd.DataFrame()
    return results.metrics[results.metrics["part"] == part]


def _answers(rows: pd.DataFrame) -> FloatArray:
    found = []
    for _, fit in rows.sort_values("replication").iterrows():
        for k in range(MOST_RUNS):
            if pd.notna(fit.get(f"log_z_{k}")):
                found.append((fit[f"log_z_{k}"], fit[f"error_{k}"]))
    return np.array(found, dtype=np.float64).reshape(-1, 2)


def normal_scores(found: FloatArray, distribution: str) -> FloatArray:
    """Return (ours - truth) / error of each run; NaN if a run reports no error."""
    return np.asarray((found[:, 0] - truth(distribution)) / found[:, 1])


def agrees(scores: FloatArray) -> bool | None:
    """Return whether runs are right within their errors; None if they report none.

    The sum of their squared scores is compared with its law at a chance of 1 in 1,000.
    """
    known = scores[np.isfinite(scores)]
    if not known.size:
        return None
    return bool(stats.chi2.sf(float(np.square(known).sum()), known.size) > _CHANCE)


def comparison(results: Results) -> pd.DataFrame:
    """Return Table 4.2: published, ours, truth, how far they differ, and whether ours is right."""
    made = []
    for part in (TABLE, OURS):
        rows = _rows(results, part)
        if rows.empty:
            continue
        for (distribution, row), fits in rows.groupby(["distribution", "row"], sort=False):
            found = _answers(fits)
            made.append(
                _line(str(distribution), fits, found)
                | _beside(str(distribution), str(row), found, part)
            )
    if not made:
        return pd.DataFrame()
    names = ("method", "paper: evals", "paper: log Z", "paper: error", "paper: z", "evals",
             "log Z", "error", "z", "truth", "ours - paper, errors", "verdict")  # fmt: skip
    frame = pd.DataFrame(made).set_index("distribution")
    order = {name: k for k, name in enumerate(DISTRIBUTIONS)}
    frame = frame.sort_index(key=lambda index: index.map(order), kind="stable")
    frame["paper: evals"] = [
        f"{value:,.0f}" if np.isfinite(value) else "–"
        for value in frame["paper: evals"].astype(float)
    ]
    return frame[list(names)]


def _line(distribution: str, fits: pd.DataFrame, found: FloatArray) -> dict[str, object]:
    scores = normal_scores(found, distribution)
    right = agrees(scores)
    return {
        "distribution": distribution,
        "method": fits["method"].iloc[0],
        "evals": round(float(fits["evaluations"].mean())),
        "log Z": _few(found[:, 0], 2),
        "error": round(float(found[:, 1].mean()), 3),
        "z": _few(scores, 1),
        "truth": round(truth(distribution), 3),
        "verdict": "no error" if right is None else "right" if right else "off by its errors",
    }


def _few(values: FloatArray, decimals: int) -> str:
    """Write some numbers, or the mean, spread and number of more than three."""
    if len(values) <= 3:
        return ", ".join(f"{value:.{decimals}f}" for value in values)
    spread = float(values.std(ddof=1))
    return f"{values.mean():.{decimals}f}, sd {spread:.{decimals}f} of {len(values)}"


def _beside(distribution: str, row: str, found: FloatArray, part: str) -> dict[str, object]:
    names = ("paper: evals", "paper: log Z", "paper: error", "paper: z", "ours - paper, errors")
    paper = printed(distribution, row) if part == TABLE else None
    if paper is None:
        return dict.fromkeys(names)
    between = float(found[0, 0]) - paper.log_z
    spread = math.hypot(float(found[0, 1]), paper.error)
    return {
        "paper: evals": paper.evaluations,
        "paper: log Z": paper.log_z,
        "paper: error": paper.error,
        "paper: z": round((paper.log_z - truth(distribution)) / paper.error, 1),
        "ours - paper, errors": round(between / spread, 1),
    }


def shares(results: Results, distribution: str) -> pd.DataFrame:
    """Return shares of a distribution's modes by row and run, with errors and chains' ends."""
    test = DISTRIBUTIONS[distribution].make().truth.mode_test
    rows = pd.concat([_rows(results, part) for part in (TABLE, OURS)])
    if test is None or rows.empty or "share_0_0" not in rows:
        return pd.DataFrame()
    made = []
    for _, fit in rows[rows["distribution"] == distribution].iterrows():
        for k in range(int(fit["runs"])):
            line: dict[str, object] = {"method": fit["method"], "row": fit["row"]}
            for m, name in enumerate(test.names):
                line[name] = fit[f"share_{k}_{m}"]
                line[f"{name}, error"] = fit[f"share_error_{k}_{m}"]
                line[f"{name}, unweighted"] = fit.get(f"end_{k}_{m}", np.nan)
            made.append(line)
    return pd.DataFrame(made)


def repeated(results: Results) -> pd.DataFrame:
    """Return the numbers of Figure 4.5 by method, with standard errors of mean and square."""
    rows = _rows(results, FIGURE)
    if rows.empty:
        return pd.DataFrame()
    made = []
    for (_, method), fits in rows.groupby(["row", "method"], sort=False):
        # Fits of a cell have equally many runs.
        runs = float(fits["runs"].sum())
        bias, mse = float(fits["bias"].mean()), float(fits["mse"].mean())
        variance = max(mse - bias**2, 0.0)
        made.append(
            {
                "method": method,
                "runs": runs,
                "K": float(fits["rungs"].mean()) if "rungs" in fits else np.nan,
                "evaluations": float(fits["evaluations"].mean()),
                "mse": mse,
                "bias": bias,
                "bias error": math.sqrt(variance / runs),
                "normalised": float(fits["normalised"].mean()),
            }
        )
    return pd.DataFrame(made).set_index("method")


def tables(results: Results) -> list[Table]:
    """All tables; those of formulas and of volumes alone need no fits."""
    made = []
    frame = comparison(results)
    if not frame.empty:
        made.append(
            Table(
                "evidence",
                "Table 4.2: log Z and its error as published and ours, with z = (log Z - truth) / "
                "error of each run beside the published one. “Right” means that the runs' squared "
                "z are what chance allows (1 in 1,000). Evaluations of AIS leave out those of the "
                "nested run that makes a schedule; those of our forms, of parallel tempering and "
                "of the library's nested sampling are all of theirs.",
                frame,
            )
        )
    quadrant = _quadrants(results)
    if not quadrant.empty:
        made.append(
            Table(
                "quadrants",
                "Table 4.3: probabilities of the quadrants of the deceptive distribution, first "
                "run of each row.",
                quadrant,
            )
        )
    two = shares(results, TWO_MODES)
    if not two.empty:
        columns = ["method", "wide", "wide, error", "wide, unweighted"]
        made.append(
            Table(
                "two-modes",
                "Two modes: share of the wide mode, which is 1/3, by run; and the share of chains "
                "of AIS that end in it, whatever their weights (published: about 0.97).",
                two[columns].set_index("method").round(3),
            )
        )
    figure = repeated(results)
    if not figure.empty:
        made.append(
            Table(
                "repeated",
                "Figure 4.5: errors of log Z on the t distribution over repeated runs; "
                "“normalised” is the mean square of error over reported error, which should be 1.",
                figure.round(4),
            )
        )
    if frame.empty and figure.empty:
        return []
    volumes, plateaus = EXPERIMENTS[results.profile]
    return [
        *made,
        Table(
            "volumes",
            "Figure 4.4: errors in the mean of log Z over prior volumes, in nats, when exact "
            "nested sampling meets a Gaussian in a cube of 40 dimensions (N = 10, 2,000 "
            "iterations).",
            volume_errors(volumes).round(3),
        ),
        Table(
            "plateau",
            "Iterations until 100 particles have left a plateau of likelihood that holds 0.9 of "
            "the prior (thesis: about 230 with ties broken by keys, 90 if new particles must be "
            "higher, 900 if they may be as high).",
            plateau_counts(plateaus).round(2),
        ),
        Table(
            "schedules",
            "Variance of log Z of annealing with an exact draw at each of K inverse temperatures, "
            "on Gaussian (a).",
            cost_laws().map(lambda value: float(f"{value:.3g}")),
        ),
        Table(
            "costs",
            "Exact draws for an error of one nat. (4.36) is too high by a factor of about four: "
            "it takes the volume of the bulk for r^-D, which is r^(-D / 2).",
            unit_error_costs().round(0),
        ),
    ]


def _quadrants(results: Results) -> pd.DataFrame:
    found = shares(results, DECEPTIVE)
    test = DISTRIBUTIONS[DECEPTIVE].make().truth.mode_test
    if found.empty or test is None:
        return pd.DataFrame()
    paper = published("4.3")
    made = {"truth": test.probabilities.value}
    for name, label in (("nest", "Nest N=16000"), ("ais", "AIS")):
        made[f"paper: {label}"] = paper.loc[list(QUADRANTS), name].to_numpy()
        made[f"paper: {label}, error"] = paper.loc[list(QUADRANTS), f"{name}_error"].to_numpy()
    for _, run in found.drop_duplicates("row").iterrows():
        made[str(run["method"])] = run[list(QUADRANTS)].to_numpy(dtype=np.float64)
        errors = [f"{quadrant}, error" for quadrant in QUADRANTS]
        made[f"{run['method']}, error"] = run[errors].to_numpy(dtype=np.float64)
    return pd.DataFrame(made, index=pd.Index(QUADRANTS, name="quadrant")).T.round(4)
