"""Tables of the mixture experiment."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from harness.plan.spec import Results, Table

from .differences import errors_of_the_printed_truth, mistaken_weights, ranges
from .frames import (
    base_alone,
    cells_of,
    comparison,
    efficiencies,
    fixed_comparison,
    rmse,
    runs_of,
)
from .grid import OURS, SETTINGS_OF_PEERS, TABLE_2
from .measures import MOMENTS


def tables(results: Results) -> list[Table]:
    """Table 1, what was found and its cost; then Table 2, ours, efficiency and differences."""
    made = [_table_one(results), _found(results), _cost(results)]
    labels = {cell.key: cell.label for cell in results.cells}
    if cells_of(results, TABLE_2):
        made.append(_table_two(results, labels))
    if cells_of(results, OURS):
        made += [_ours(results, labels), _efficiency(results)]
        if not ranges(results).empty:
            made.append(_ranges(results, labels))
        if not mistaken_weights(results).empty:
            made.append(_weights(results))
        made.append(_printed())
    return made


def _table_one(results: Results) -> Table:
    joined = comparison(results)
    off = (joined["rmse"] - joined["published"]) / joined["se"]
    joined["difference, SE"] = off.map("{:+.1f}".format)
    joined["published"] = joined["published"].map("{:.2f}".format)
    joined["by MCSE"] = joined["expected"].map("{:.2f}".format)
    joined["ours"] = _with_error(joined)
    labels = {cell.key: cell.label for cell in results.cells}
    return Table(
        "rmse",
        "Table 1: root mean squared error over the runs (± its standard error); what the runs' own "
        "Monte Carlo standard errors predict for it (too little where modes are missed); and "
        "the published one (20 runs of 50,000 draws), with the difference in standard errors of "
        "ours. " + SETTINGS_OF_PEERS,
        _wide(joined, ("ours", "by MCSE", "published", "difference, SE")).rename(index=labels),
    )


def _table_two(results: Results, labels: Mapping[str, str]) -> Table:
    joined = fixed_comparison(results, TABLE_2)
    joined["published"] = joined["published"].map("{:.2f}".format)
    joined["ours"] = _with_error(joined)
    return Table(
        "fixed",
        "Table 2: RMSE with inverse temperatures fixed to β (± its standard error), and the "
        "published one. Rows with sampled ones are in Table 1.",
        _wide(joined, ("ours", "published")).rename(index=labels),
    )


def _ours(results: Results, labels: Mapping[str, str]) -> Table:
    frame = rmse(results, cells_of(results, OURS))
    frame["ours"] = _with_error(frame, digits=3)
    wide = frame.pivot_table(
        index="cell", columns="moment", values="ours", aggfunc="first", sort=False
    )
    wide.columns = [MOMENTS[name] for name in wide.columns]
    for cell in cells_of(results, OURS):
        runs = runs_of(results, cell)
        wide.loc[cell.key, "log Z (exact: 0)"] = (
            f"{runs['log_z'].mean():.4f} ± {runs['log_z'].std(ddof=1):.4f}"
        )
    wide = wide.rename(index=labels)
    for row in base_alone().itertuples():
        values = [f"{getattr(row, name):.3f}" for name in MOMENTS]
        wide.loc[f"the base alone ({row.scenario})"] = [*values, "-"]
    return Table(
        "ours",
        "Beyond the paper, ours: RMSE (± its standard error), and log Z as mean and standard "
        "deviation over runs (exact: 0). The folded target is the Warp-U transformation of Wang, "
        "Jones and Meng (2016), sampled as by Ding et al. (2024); its mixture comes from a pilot's "
        "particles. The base alone is the Gaussian that pilots start from, with no run.",
        wide,
    )


def _efficiency(results: Results) -> Table:
    frame = efficiencies(results)
    shown = pd.DataFrame(
        {
            "method": frame["label"],
            "runs": frame["runs"],
            "RMSE of E[x]": frame["rmse"].map("{:.4f}".format),
            "seconds": frame["seconds"].map("{:.2f}".format),
            "1,000 evaluations": (frame["evaluations"] / 1000).map("{:,.0f}".format),
            "neff/s [5%, 95%]": _intervals(frame, "per_second"),
            "neff per 1,000 evaluations [5%, 95%]": _intervals(frame, "per_kilo"),
        }
    ).set_index("method")
    return Table(
        "efficiency",
        "Equivalent independent draws, Var[x] / MSE, a second and per 1,000 evaluations of the "
        "target (density with gradient; without one for RAM and EE; one for each pseudo-sample "
        "or place), warm-up and pilot included, compiling not; intervals by the bootstrap over "
        "runs. Neighbours whose intervals overlap are not ranked. Seconds depend on what else the "
        "machine does.",
        shown,
    )


def _ranges(results: Results, labels: Mapping[str, str]) -> Table:
    frame = ranges(results)
    frame["ours"] = _with_error(frame)
    frame["published"] = frame["published"].map("{:.2f}".format)
    return Table(
        "ranges",
        "PE N=2 with β in [0, 1], as in the paper, and in the ranges of the published code.",
        _wide(frame, ("ours", "published")).rename(index=labels),
    )


def _weights(results: Results) -> Table:
    frame = mistaken_weights(results)
    shown = pd.DataFrame(
        {
            "N": frame["N"],
            "moment": frame["moment"].map(MOMENTS),
            "exact": frame["exact"].round(3),
            "right weights": _pairs(frame["right"], frame["right_se"]),
            "weights of (a)": _pairs(frame["mistaken"], frame["mistaken_se"]),
            "preprint": _pairs(frame["preprint"], frame["preprint_sd"] / np.sqrt(20)),
        }
    ).set_index("N")
    return Table(
        "weights",
        "Mean estimates in scenario (b), ± standard errors over runs: with the weights as they "
        "should be, with scenario (a)'s density in them as in the published code, and those that "
        "the preprint prints.",
        shown,
    )


def _printed() -> Table:
    frame = errors_of_the_printed_truth()
    shown = pd.DataFrame(
        {
            "N": frame["N"],
            "moment": frame["moment"].map(MOMENTS),
            "published RMSE": frame["published"],
            "from the preprint's means, its printed truth": frame["against_printed"].round(2),
            "from the preprint's means, the exact truth": frame["against_exact"].round(2),
        }
    ).set_index("N")
    return Table(
        "printed-truth",
        "Scenario (b): the preprint's truth for E[X²], (25.558, 31.378), takes r/20 for standard "
        "deviations; the exact values for variances r/20 are (25.668, 31.488). Root of standard "
        "deviation² + (mean - truth)² from the preprint's Table 1, with either truth.",
        shown,
    )


def _found(results: Results) -> Table:
    rows = []
    for cell in cells_of(results):
        runs = runs_of(results, cell)
        rows.append(
            {
                "cell": cell.label,
                "runs": len(runs),
                "modes found, of 20 (mean)": round(float(runs["modes_visited"].mean()), 1),
                "million evaluations a run": round(float(runs["evaluations"].mean()) / 1e6, 3),
                "divergences a run": f"{runs['divergences'].mean():.2f}"
                if "divergences" in runs and runs["divergences"].notna().any()
                else "-",
            }
        )
    return Table(
        "found",
        "What the runs found, and their evaluations of the target, warm-up included.",
        pd.DataFrame(rows).set_index("cell"),
    )


def _cost(results: Results) -> Table:
    rows = []
    for cell in cells_of(results):
        runs = runs_of(results, cell)
        rows.append(
            {
                "cell": cell.label,
                "seconds a run": round(float(runs["seconds"].mean()), 2),
                "microseconds an evaluation": round(
                    1e6 * float(runs["seconds"].sum() / runs["evaluations"].sum()), 2
                ),
            }
        )
    return Table(
        "cost",
        "Time of sampling, warm-up and pilot included, compiling not.",
        pd.DataFrame(rows).set_index("cell"),
    )


def _wide(frame: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    """A row a cell, a column a moment and entry."""
    return pd.DataFrame(
        {
            (MOMENTS[name], column): frame[frame["moment"] == name].set_index("cell")[column]
            for name in MOMENTS
            for column in columns
        }
    ).loc[list(dict.fromkeys(frame["cell"]))]


def _with_error(frame: pd.DataFrame, digits: int = 2) -> list[str]:
    return [
        f"{root:.{digits}f} ± {error:.{digits}f}"
        for root, error in zip(frame["rmse"], frame["se"], strict=True)
    ]


def _pairs(values: pd.Series[float], errors: pd.Series[float]) -> list[str]:
    return [f"{value:.3f} ± {error:.3f}" for value, error in zip(values, errors, strict=True)]


def _intervals(frame: pd.DataFrame, name: str) -> list[str]:
    return [
        f"{_three(value)} [{_three(low)}, {_three(high)}]"
        for value, low, high in zip(
            frame[name], frame[f"{name}_low"], frame[f"{name}_high"], strict=True
        )
    ]


def _three(value: float) -> str:
    """Three digits of a number of any size."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
