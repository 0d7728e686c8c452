"""Tables of the mixture experiment."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from harness.plan.spec import Results, Table

from .compare import comparison
from .differences import errors_of_the_printed_truth, offsets
from .frames import (
    base_alone,
    cells_of,
    efficiencies,
    published,
    rmse,
    runs_of,
)
from .grid import OURS, SETTINGS_OF_PEERS, TABLE_1, TABLE_2, TRIALS
from .measures import MOMENTS, exact_moments


def tables(results: Results) -> list[Table]:
    """Table 1, what was found and its cost; then Table 2, ours, efficiency and differences."""
    made = [_table_one(results), _found(results), _cost(results)]
    labels = {cell.key: cell.label for cell in results.cells}
    if cells_of(results, TABLE_2):
        made.append(_table_two(results, labels))
    if cells_of(results, OURS):
        made += [_ours(results, labels), _efficiency(results)]
    if cells_of(results, TRIALS):
        made += [_trials(results, labels), _weights(), _printed()]
    return made


def _table_one(results: Results) -> Table:
    joined = comparison(results)
    joined["by MCSE"] = joined["expected"].map("{:.2f}".format)
    labels = {cell.key: cell.label for cell in results.cells}
    return Table(
        "rmse",
        "Table 1: root mean squared error over the runs (± its standard error); what the runs' own "
        "Monte Carlo standard errors predict for it (too little where modes are missed); the "
        f"published one (20 runs of 50,000 draws); and {_DIFFERENCE} {SETTINGS_OF_PEERS}",
        _wide(_beside(joined), ("ours", "by MCSE", "published", "difference, SE")).rename(
            index=labels
        ),
    )


_DIFFERENCE = (
    "the difference of their logarithms in standard errors. For it the published error is taken "
    "to be as uncertain as ours, and ours is measured from the truth that the preprint prints, "
    "which for E[X²] in (b) is another one."
)


def _beside(joined: pd.DataFrame) -> pd.DataFrame:
    """Ours with its error, the published one and the difference, as text."""
    joined["difference, SE"] = joined["difference"].map("{:+.1f}".format)
    joined["published"] = joined["published"].map("{:.2f}".format)
    joined["ours"] = _with_error(joined)
    return joined


def _table_two(results: Results, labels: Mapping[str, str]) -> Table:
    joined = _beside(comparison(results, TABLE_2))
    return Table(
        "fixed",
        "Table 2: RMSE with inverse temperatures fixed to β (± its standard error), the "
        f"published one, and {_DIFFERENCE} Rows with sampled ones and HMC are in Table 1.",
        _wide(joined, ("ours", "published", "difference, SE")).rename(index=labels),
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


def _trials(results: Results, labels: Mapping[str, str]) -> Table:
    of_trial = {"PE": "pe-2", "PT": "pt"}
    cells = [c for c in cells_of(results, TABLE_1) if c.key[2:] in of_trial.values()]
    frame = rmse(results, [*cells, *cells_of(results, TRIALS)])
    frame["ours"] = _with_error(frame)
    rows = published().assign(row=lambda each: each["method"].map(of_trial))
    rows = rows[rows["N"].isin([1, 2])]
    table = rows.set_index(["row", "scenario", "moment"])["published"]
    frame["published"] = [
        f"{table['pt' if cell[2:].startswith('pt') else 'pe-2', scenario, moment]:.2f}"
        for cell, scenario, moment in frame[["cell", "scenario", "moment"]].itertuples(index=False)
    ]
    return Table(
        "trials",
        "What might make our numbers differ from the published ones: PE N=2 as in the paper, with "
        "the range of β of the public program of 2019, and in the public program's box; PT as in "
        "Table 1, and with random walks of standard deviation 0.25 times the root of the "
        "temperature and a round of swaps in ten iterations.",
        _wide(frame, ("ours", "published")).rename(index=labels),
    )


def _weights() -> Table:
    frame = offsets()
    shown = pd.DataFrame(
        {
            "N": frame["N"],
            "moment": frame["moment"].map(MOMENTS),
            "exact": frame["moment"].map(exact_moments("b")).round(3),
            "preprint's mean minus exact": _pairs(frame["offset"], frame["offset_se"]),
            "added by weights without the constant": _pairs(frame["shift"], frame["shift_se"]),
        }
    ).set_index("N")
    return Table(
        "weights",
        "What the preprint's mean estimates in (b) are off by, ± standard errors over its 20 runs, "
        "and what weights add that leave out the constant 1 / (2π) of the density, as those of the "
        "public program do: by independent draws of the pseudo-extended target, without our runs.",
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
