"""Acceptance rates beside computed ones, the heart disease marginals, and costs on the lattice."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from harness.folders import shipped
from harness.models.heart_disease import NAMES
from harness.plan.spec import Results, Table

from . import bernoulli
from .grid import (
    BERNOULLI,
    ESTIMATES,
    EXCHANGE,
    HEART,
    HISTORY_A,
    ISING,
    MACHINE_SCHEMES,
    NUTS,
    PRECISION_PART,
)

_PARAMETERS = len(NAMES)


@cache
def computed() -> pd.DataFrame:
    """Return the acceptance rates that were computed for Figure 5.10, row by row."""
    path = shipped("experiments") / "published" / "intractable_acceptance.csv"
    return pd.read_csv(path, comment="#")


def part_of(results: Results, part: str, needs: str) -> pd.DataFrame:
    """Return the metrics of a part, without rows if a metric is missing."""
    metrics = results.metrics
    if "part" not in metrics or needs not in metrics:
        return pd.DataFrame(columns=["scheme", "levels", "estimate", "local", "width", needs])
    return metrics[metrics["part"] == part]


def acceptance(results: Results) -> pd.DataFrame:
    """Return acceptance and E[theta] of the Gaussian precision, with errors over both runs.

    A row for each entry of the three panels of Figure 5.10: ``figure``, ``scheme``, ``levels``,
    ``estimate``, ``ours``, ``error``, ``computed``, ``mean`` and ``mean_error``.
    """
    runs = part_of(results, PRECISION_PART, "acceptance")
    rows = []
    for (local, scheme, levels, estimate), group in runs.groupby(
        ["local", "scheme", "levels", "estimate"], sort=False
    ):
        row: dict[str, object] = {"scheme": scheme, "levels": levels, "estimate": estimate}
        for name, column in (("ours", "acceptance"), ("mean", "mean")):
            row[name] = group[column].mean()
            spread = np.sqrt(np.square(group[f"{column}_error"]).sum()) / len(group)
            row["error" if name == "ours" else "mean_error"] = float(spread)
        panels = ["c"] if local else ["a"] if estimate == 1 else []
        if not local and scheme != EXCHANGE and levels in (0, 10):
            panels.append("b")
        rows += [row | {"figure": panel} for panel in panels]
    if not rows:
        return pd.DataFrame(columns=["figure", "scheme", "levels", "estimate", "ours", "error"])
    keys = ["figure", "scheme", "levels", "estimate"]
    known = computed().rename(columns={"acceptance": "computed"})
    return pd.DataFrame(rows).merge(known, on=keys, how="left").sort_values(keys)


def marginals(results: Results) -> dict[str, pd.DataFrame]:
    """Return each scheme's moments on the heart disease data, pooled over runs.

    Tables with a row for each parameter: ``mean``, ``mcse``, ``sd``, ``late``.
    """
    runs = part_of(results, HEART, "mean_0")
    found = {}
    for scheme, group in runs.groupby("scheme", sort=False):
        columns = {
            name: group[[f"{name}_{k}" for k in range(_PARAMETERS)]].to_numpy()
            for name in ("mean", "mcse", "sd", "late")
        }
        errors = np.sqrt(np.square(columns.pop("mcse")).sum(axis=0)) / len(group)
        table = pd.DataFrame({k: v.mean(axis=0) for k, v in columns.items()}, index=list(NAMES))
        found[str(scheme)] = table.assign(mcse=errors)
    return found


def off(found: dict[str, pd.DataFrame], scheme: str) -> pd.DataFrame:
    """Return how far a scheme's marginals are from those of NUTS.

    A row for each parameter: ``shift``, the difference of means in the truth's standard deviations,
    its Monte Carlo ``error``, and ``width``, the ratio of standard deviations.
    """
    ours, truth = found[scheme], found[NUTS]
    return pd.DataFrame(
        {
            "shift": (ours["mean"] - truth["mean"]) / truth["sd"],
            "error": np.hypot(ours["mcse"], truth["mcse"]) / truth["sd"],
            "width": ours["sd"] / truth["sd"],
        }
    )


def lattice(results: Results) -> pd.DataFrame:
    """Return the costs on the Ising model, the mean over runs, by width, scheme and K."""
    runs = part_of(results, ISING, "efficiency")
    if runs.empty:
        return pd.DataFrame(columns=["efficiency"])
    columns = [
        *("acceptance", "sweeps", "tau_J", "efficiency", "efficiency_h", "closed", "mean"),
        *(name for name in ("bound", "bound_error") if name in runs),
    ]
    keys = ["width", "scheme", "levels"]
    frame = runs.groupby(keys)[columns].mean()
    for name in ("efficiency", "mean"):
        errors = runs.assign(square=np.square(runs[f"{name}_error"])).groupby(keys)["square"]
        frame[f"{name}_error"] = np.sqrt(errors.sum()) / errors.count()
    return frame


def bits(results: Results) -> pd.DataFrame:
    """Return autocorrelation times on Bernoulli variables, by scheme and D, the mean over runs.

    Columns ``acceptance``, ``tau``, ``mean`` and their errors, ``closed`` and ``runs``.
    """
    runs = part_of(results, BERNOULLI, "tau")
    if runs.empty:
        return pd.DataFrame(columns=["tau"])
    groups = runs.astype({"variables": int}).groupby(["scheme", "variables"])
    frame = groups[["closed"]].mean()
    for name in ("acceptance", "tau", "mean"):
        frame[name] = groups[name].mean()
        squares = groups[f"{name}_error"].agg(lambda errors: np.square(errors).sum())
        frame[f"{name}_error"] = np.sqrt(squares) / groups.size()
    return frame.assign(runs=groups.size())


def tables(results: Results) -> list[Table]:
    """All tables whose runs are there."""
    made = []
    rates = acceptance(results)
    if not rates.empty:
        made.append(
            Table(
                "acceptance",
                "Gaussian precision, as in Figure 5.10: mean acceptance probability, its standard "
                "error, and the rate computed for the same settings (the thesis prints none); and "
                "E[θ], which is 1. a: proposals from the posterior; b: the estimate that SAVM "
                f"(K = 0) and MAVM need, at {', '.join(f'{each:g}' for each in ESTIMATES)}; "
                "c: a walk of width 0.1.",
                rates.round({"ours": 4, "error": 4, "mean": 3, "mean_error": 3})
                .rename(columns={"mean": "E[θ]", "mean_error": "its error"})
                .set_index("figure"),
            )
        )
    found = marginals(results)
    if NUTS in found:
        truth = found[NUTS]
        frame = pd.DataFrame({"NUTS mean": truth["mean"], "NUTS sd": truth["sd"]})
        shares = []
        for scheme in MACHINE_SCHEMES:
            if scheme not in found:
                continue
            apart = off(found, scheme)
            frame[f"{scheme}: shift"] = apart["shift"]
            frame[f"{scheme}: error"] = apart["error"]
            frame[f"{scheme}: width"] = apart["width"]
            size = apart["shift"].abs()
            shares.append(
                {
                    "scheme": scheme,
                    "median shift": size.median(),
                    "largest shift": size.max(),
                    "of": size.idxmax(),
                    "its error": float(apart["error"].iloc[int(size.argmax())]),
                    "narrowest": apart["width"].min(),
                    "widest": apart["width"].max(),
                }
            )
        made.append(
            Table(
                "heart",
                "Heart disease, as in Figure 5.2: posterior means and standard deviations from "
                "NUTS with Z added up; for each method the shift of its mean in these standard "
                "deviations, the Monte Carlo error of the shift, and the ratio of its standard "
                "deviation to that of NUTS.",
                frame.round(3),
            )
        )
        made.append(
            Table(
                "heart-summary",
                "Heart disease: sizes of the shifts over the 21 parameters, and ratios of widths.",
                pd.DataFrame(shares).round(3).set_index("scheme"),
            )
        )
    costs = lattice(results)
    if not costs.empty:
        made.append(
            Table(
                "ising",
                "Ising model, as in Figure 5.11: acceptance, Gibbs sweeps for each iteration "
                "(those of the exact draws and K), autocorrelation time of J in iterations, "
                "effective draws of J and h for each sweep, and E[J]. Where “closed” is below 1, "
                "runs are short for their autocorrelation time, and the efficiency is a bound. "
                "Latent histories (section 5.7.2): sweeps count steps back as well, and “bound” is "
                "a bound of the efficiency from the autocorrelation of neighbouring draws.",
                costs.map(lambda value: float(f"{value:.3g}")).reset_index(),
            )
        )
    times = bits(results)
    if not times.empty:
        rows = times.reset_index()
        widths = [
            bernoulli.width(d, "a" if scheme == HISTORY_A else "b")
            for scheme, d in zip(rows["scheme"], rows["variables"], strict=True)
        ]
        made.append(
            Table(
                "bernoulli",
                "D independent Bernoulli variables (section 5.7.2): width of the walk, acceptance, "
                "autocorrelation time in iterations, and E[θ], which is 1/2, with standard errors. "
                "exact is Metropolis-Hastings with the likelihood.",
                rows.assign(width=widths).round(4),
            )
        )
    return made
