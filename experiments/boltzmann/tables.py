"""Tables of both halves."""

from __future__ import annotations

import numpy as np
import pandas as pd

from harness.plan.spec import Cell, Results, Table

from .bounds import bounds_of
from .curves import (
    PAPER_CT,
    curve,
    efficiency_of,
    equal_cost,
    error_of,
    of_family,
    of_half,
    runs_of,
)
from .measure import ERRORS

PE_HALVES = {
    "PE": "",
    "PE authors": " of the authors' instance",
    "PE stored": " of the relaxation that the authors' program reads",
}
CT_HALVES = {"CT": "", "CT authors": " of the authors' instances"}
BASE_ALONE = "Base alone, no sampling (ours)"
_BOUNDED = 3  # instances of a half, whose bounds are alike
EVIDENCE = ("PE base", "PE pilot", "collapsed PE", "CT", "collapsed CT", "Gibbs CT", "PT", "fold")
"""Families whose log Z is compared; those of pseudo-extended MCMC first."""


def tables(results: Results) -> list[Table]:
    """All tables for which there are results."""
    made: list[Table] = []
    for half, whose in PE_HALVES.items():
        if of_half(results, half):
            suffix = suffix_of(half)
            made += [
                errors_table(results, half, f"errors{suffix}", whose),
                efficiency_table(results, half, f"efficiency{suffix}", whose),
            ]
            evidence = evidence_table(results, half, f"evidence{suffix}", whose)
            made += [] if evidence is None else [evidence]
    for half, whose in CT_HALVES.items():
        if of_half(results, half):
            suffix = suffix_of(half)
            made += [
                relative_table(results, half, f"relative{suffix}", whose),
                instances_table(results, half, f"relative-by-instance{suffix}", whose),
            ]
    bounds = bounds_table(results)
    return [*made, *([] if bounds is None else [bounds])]


def suffix_of(half: str) -> str:
    """What the names of a half's tables and figures end in."""
    _, *whose = half.split()
    return "".join(f"-{word}" for word in whose)


def errors_table(results: Results, half: str, name: str, whose: str) -> Table:
    """RMSE of both moments and of log Z, a row a cell, and of the base alone."""
    rows = {}
    for cell in of_half(results, half):
        found = {label: error_of(results, cell, key) for key, label in ERRORS.items()}
        rows[cell.label] = {
            "runs": str(len(results.replications(cell))),
            **{label: _plus_minus(*pair) for label, pair in found.items()},
        }
    base = _base_errors(results, half)
    rows[BASE_ALONE] = {"runs": "", **{v: _plus_minus(base[k], 0) for k, v in ERRORS.items()}}
    return Table(
        name,
        f"Root mean squared errors over runs (± standard error){whose}: over coordinates of E[x], "
        "over entries of E[xx′] and of the covariance, and of log Z in nats. The paper shows the "
        "first two as box plots (Figure 4), without numbers.",
        pd.DataFrame(rows).T.rename_axis("method"),
    )


def efficiency_table(results: Results, half: str, name: str, whose: str) -> Table:
    """Equivalent independent draws by cost, the most efficient row first."""
    rows: list[dict[str, object]] = []
    for cell in of_half(results, half):
        found = efficiency_of(results, cell)
        runs = runs_of(results, [cell])
        rows.append(
            {
                "method": cell.label,
                "runs": len(runs),
                "seconds": round(runs["time"].mean(), 2),
                "thousand gradients": round(runs["work"].mean() / 1000, 1),
                "neff": _three(float(runs["variance"].iloc[0]) / _mean_square(runs)),
                "neff/s": _three(found.per_second),
                "5%, 95% (s)": _interval(found.per_second_interval),
                "neff/kgrad": _three(found.per_kilogradient),
                "5%, 95% (kgrad)": _interval(found.per_kilogradient_interval),
            }
        )
    rows.sort(key=lambda row: -float(str(row["neff/s"]).replace(",", "")))
    runs = runs_of(results, of_half(results, half))
    alone = float(runs["variance"].iloc[0]) / _base_errors(results, half)["mean"] ** 2
    last: dict[str, object] = dict.fromkeys(rows[0], "–")
    rows.append(last | {"method": BASE_ALONE, "neff": _three(alone)})
    return Table(
        name,
        f"Independent draws of the target that would estimate E[x] as well{whose} (neff = Var[X] "
        "/ RMSE²), by seconds of sampling and by thousands of gradients of the target, "
        "pilot and warm-up included, compiling not; bootstrap intervals over runs. A "
        "pseudo-extended gradient counts N. The mean-field fit of the base, some hundredths of a "
        "second, is counted for none.",
        pd.DataFrame(rows).set_index("method"),
    )


def evidence_table(results: Results, half: str, name: str, whose: str) -> Table | None:
    """Log Z from pseudo-extended runs beside log Z from continuously tempered ones."""
    present = {family: of_family(results, half, family) for family in EVIDENCE}
    # Those that have a curve; the rest have one point.
    present = {
        family: cells
        for family, cells in present.items()
        if cells and curve(results, cells, "log_z", "work").cost.size
    }
    if len(present) < 2:
        return None
    groups = list(present.values())
    by_work, at_work = equal_cost(results, groups, "log_z", "work")
    by_time, at_time = equal_cost(results, groups, "log_z", "time")
    frame = pd.DataFrame(
        {
            f"at {by_work / 1000:,.0f} thousand gradients": [_three(v) for v in at_work],
            f"at {by_time:.2f} seconds": [_three(v) for v in at_time],
            "whole runs": [_plus_minus(*error_of(results, cells[0], "log_z")) for cells in groups],
        },
        index=pd.Index([cells[0].label for cells in groups], name="method"),
    )
    return Table(
        name,
        f"Root mean squared error of log Z{whose}, in nats, at equal cost: that of the run that "
        "took least, the others cut to the same; a dash where even the cheapest runs cost more.",
        frame,
    )


def relative_table(results: Results, half: str, name: str, whose: str) -> Table:
    """Errors relative to the base's over all instances, of whole runs and at equal cost."""
    keys = PAPER_CT
    families = list(dict.fromkeys(cell.factors["method"] for cell in of_half(results, half)))
    groups = [of_family(results, half, family) for family in families]
    frame: dict[str, list[str]] = {"thousand gradients": [], "seconds": []}
    frame |= {ERRORS[key]: [] for key in keys}
    for cells in groups:
        runs = runs_of(results, cells)
        runs = runs[runs["N"] == runs["N"].max()]
        frame["thousand gradients"].append(f"{runs['work'].mean() / 1000:,.0f}")
        frame["seconds"].append(f"{runs['time'].mean():.2f}")
        for key in keys:
            found = curve(results, cells, key, "work", relative=True)
            whole = (found.error[-1], 3 * found.se[-1]) if found.cost.size else (np.nan, np.nan)
            frame[ERRORS[key]].append(_plus_minus(*whole))
    papers = [cells for cells in groups if not cells[0].factors["ours"]] or groups
    for cost, unit in (("work", "equal gradients"), ("time", "equal seconds")):
        for key in keys:
            budget = equal_cost(results, papers, key, cost, relative=True)[0]
            at = [curve(results, each, key, cost, relative=True).at(budget) for each in groups]
            frame[f"{ERRORS[key]}, {unit}"] = [_three(value) for value in at]
    labels = [
        cells[0].label.split(",")[0] if len({c.factors["N"] for c in cells}) > 1 else cells[0].label
        for cells in groups
    ]
    number = len({cell.factors["instance"] for cell in of_half(results, half)})
    return Table(
        name,
        f"Errors relative to those of the base{whose}, averaged over runs and {number} "
        f"instance{'s' if number > 1 else ''} (± three standard errors, as in the "
        "paper's Figure 2): of the longest runs, and at equal cost, that of the paper's row which "
        "took least; a dash where a row does not reach it. Below 1 is better than the base. The "
        "line that the paper calls AIS is H-AIS.",
        pd.DataFrame(frame, index=pd.Index(labels, name="method")),
    )


def instances_table(results: Results, half: str, name: str, whose: str) -> Table:
    """Relative errors of the longest runs by instance."""
    rows = []
    for cell in of_half(results, half):
        runs = runs_of(results, [cell])
        row = {"instance": cell.factors["instance"], "method": cell.label, "runs": len(runs)}
        for key in PAPER_CT:
            has = key in runs and bool(np.all(np.isfinite(runs[key])))
            value = float((runs[key] / runs[f"base_{key}"]).mean()) if has else float("nan")
            row[ERRORS[key]] = _three(value)
        rows.append(row)
    return Table(
        name,
        f"Errors of whole runs relative to the base's{whose}, by instance.",
        pd.DataFrame(rows).sort_values("instance", kind="stable").set_index(["instance", "method"]),
    )


def bounds_table(results: Results) -> Table | None:
    """What bounds the marginal density of beta on the first instances of each half."""
    cells: dict[tuple[str, str], Cell] = {}
    for cell in results.cells:
        if "base" in cell.settings:
            cells.setdefault((cell.factors["half"], cell.factors["instance"]), cell)
    halves = dict.fromkeys(half for half, _ in cells)
    few = [key for half in halves for key in [k for k in cells if k[0] == half][:_BOUNDED]]
    if not few:
        return None
    rows = {}
    for key in few:
        cell = cells[key]
        found = bounds_of(cell.model, cell.settings["base"])
        rows[key[1]] = {
            "log Z − log ζ": _three(found.log_ratio),
            "from base to target": _three(found.base_to_target),
            "from target to base": _plus_minus(found.target_to_base, found.target_to_base_se),
            "deepest fall": _three(found.deepest),
        }
    return Table(
        "bounds",
        "What bounds the density of β under continuous tempering with g = 1 (Graham and Storkey, "
        "eqs. 23, 40, 43), in nats: its logarithm is at most the line from 0 to log Z − log ζ, up "
        "to a constant, and the two Kullback-Leibler divergences bound how far it falls below: "
        "by no more than the last column where both bounds allow most.",
        pd.DataFrame(rows).T.rename_axis("instance"),
    )


def _base_errors(results: Results, half: str) -> dict[str, float]:
    runs = runs_of(results, of_half(results, half))
    if "base_mean" not in runs or runs["base_mean"].isna().all():
        return dict.fromkeys(ERRORS, float("nan"))
    return {key: float(runs[f"base_{key}"].dropna().iloc[0]) for key in ERRORS}


def _mean_square(runs: pd.DataFrame) -> float:
    return float((runs["mean"] ** 2).mean())


def _plus_minus(value: float, error: float) -> str:
    if not np.isfinite(value):
        return "–"
    return f"{value:.3f}" + (f" ± {error:.3f}" if error else "")


def _three(value: float) -> str:
    """Three significant digits, without an exponent."""
    if not np.isfinite(value):
        return "–"
    places = max(0, 2 - int(np.floor(np.log10(abs(value))))) if value else 2
    return f"{value:,.{places}f}"


def _interval(ends: tuple[float, float]) -> str:
    return f"[{_three(ends[0])}, {_three(ends[1])}]"
