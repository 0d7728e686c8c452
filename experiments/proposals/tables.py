"""The thesis's tables beside ours, with errors over runs and the difference in errors."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from harness.folders import shipped
from harness.plan.spec import Results, Table

from .exact import metropolis_on_t
from .grid import (
    BURN_IN,
    CALLS,
    EFFICIENCY,
    ERROR,
    FUNNEL,
    OPPOSITE,
    PERSISTENT,
    PILLAR,
    SMALL,
    STEP_SIZES,
)
from .targets import PILLAR as PILLAR_WIDTH

MSE = "mean square error"
SHARE = "effective samples a proposal"
ESTIMATORS = {"plain": "{}", "recycled": "WR-{}", "importance": "MIT{}"}
AGREES = 3.0
"""Differences up to so many standard errors count as agreement."""


@cache
def published() -> pd.DataFrame:
    """Return the thesis's numbers, with the columns part, scheme, quantity, value and error."""
    return pd.read_csv(shipped("experiments") / "published" / "proposals.csv")


def rows_of(results: Results, part: str) -> pd.DataFrame:
    """Return the finished runs of a part."""
    if "part" not in results.metrics:
        return pd.DataFrame()
    return results.metrics[results.metrics["part"] == part]


def pooled(results: Results, part: str, name: str) -> pd.DataFrame:
    """Return a number's mean over replications and its standard error, by scheme."""
    rows = rows_of(results, part)
    if rows.empty or name not in rows:
        return pd.DataFrame(columns=["ours", "error"], dtype=float)
    rows = rows[rows[name].notna()]
    groups = rows.groupby("scheme", sort=False)
    error = groups[f"{name}_error"].agg(lambda each: np.sqrt(np.square(each).sum()) / len(each))
    return pd.DataFrame({"ours": groups[name].mean(), "error": error})


def errors_of(results: Results, part: str) -> pd.DataFrame:
    """Return mean square errors by row of the table: plain, waste-recycled and by importance."""
    found = []
    for name, pattern in ESTIMATORS.items():
        frame = pooled(results, part, name)
        frame.index = pd.Index(
            [
                f"MIT{scheme.removeprefix('MTM')}"
                if name == "importance"
                else pattern.format(scheme)
                for scheme in frame.index
            ],
            name="scheme",
        )
        found.append(frame)
    return pd.concat([frame for frame in found if len(frame)] or found[:1])


def beside(ours: pd.DataFrame, part: str, quantity: str) -> pd.DataFrame:
    """Put the thesis's numbers before ours, and the difference in standard errors behind."""
    rows = published()
    rows = rows[(rows["part"] == part) & (rows["quantity"] == quantity)].set_index("scheme")
    table = ours.join(rows[["value", "error"]].add_prefix("thesis "))
    apart = np.array(table["ours"] - table["thesis value"], dtype=np.float64)
    apart /= np.hypot(*table[["error", "thesis error"]].to_numpy(dtype=np.float64).T)
    verdict = np.where(np.abs(apart) <= AGREES, "agrees", "differs")
    return pd.DataFrame(
        {
            "thesis": table["thesis value"],
            "± ": table["thesis error"],
            "ours": table["ours"].map(_short),
            "±": table["error"].map(_short),
            "errors apart": apart.round(1) + 0.0,
            "verdict": np.where(np.isnan(apart), "not in the thesis", verdict),
        }
    )


def burn_in(results: Results) -> pd.Series:
    """Return from which index on the variance over runs is right, by scheme."""
    rows = rows_of(results, BURN_IN)
    if rows.empty:
        return pd.Series(dtype=float)
    return rows.groupby("scheme", sort=False)["index"].mean()


def acceptance(results: Results) -> pd.DataFrame:
    """Return acceptance rates at equilibrium, ours and the thesis's."""
    rows = rows_of(results, EFFICIENCY)
    if rows.empty:
        return pd.DataFrame()
    ours = rows.groupby("scheme", sort=False)["acceptance"].mean()
    thesis = published()[published()["quantity"] == "acceptance"].set_index("scheme")["value"]
    return pd.DataFrame({"thesis": thesis, "ours": ours.round(3)}).dropna()


def funnel(results: Results) -> pd.DataFrame:
    """Return distances and largest weights on the funnel, the mean of runs."""
    rows = rows_of(results, FUNNEL)
    names = [n for n in ("distance", "resampled", "largest", "mean") if n in rows]
    if rows.empty:
        return pd.DataFrame(columns=["distance", "resampled", "largest", "mean"])
    return rows.groupby("scheme", sort=False)[names].mean()


def costs(results: Results, part: str, each: str) -> pd.DataFrame:
    """Return autocorrelation times, what a step costs, and the cost of an independent draw."""
    rows = rows_of(results, part)
    if rows.empty:
        return pd.DataFrame(columns=["time", "±", each, "cost"], dtype=float)
    groups = rows.groupby("scheme", sort=False)
    error = groups["iat_error"].agg(lambda of: np.sqrt(np.square(of).sum()) / len(of))
    table = pd.DataFrame({"time": groups["iat"].mean(), "±": error, each: groups[each].mean()})
    return table.assign(cost=table["time"] * table[each])


def crossings(results: Results) -> pd.DataFrame:
    """Return the steps of a crossing of the unit interval, and its cost in proposals."""
    rows = rows_of(results, PERSISTENT)
    if rows.empty:
        return pd.DataFrame(columns=["steps", "±", "proposals", "cost", "time"], dtype=float)
    groups = rows.groupby("scheme", sort=False)
    error = groups["crossing_error"].agg(lambda of: np.sqrt(np.square(of).sum()) / len(of))
    table = pd.DataFrame(
        {"steps": groups["crossing"].mean(), "±": error, "proposals": groups["draws"].mean()}
    )
    return table.assign(cost=table["steps"] * table["proposals"], time=groups["iat"].mean())


def slopes(results: Results) -> dict[str, tuple[float, float]]:
    """Return the exponents of the steps of a crossing in σ, with errors, of both kernels."""
    times = crossings(results)
    found = {}
    for name in ("Metropolis", "pivots"):
        rows = [f"{name}, σ = {sd:g}" for sd in STEP_SIZES]
        if not set(rows) <= set(times.index):
            continue
        x = np.log(STEP_SIZES) - np.mean(np.log(STEP_SIZES))
        y = np.log(times.loc[rows, "steps"].to_numpy())
        noise = (times.loc[rows, "±"] / times.loc[rows, "steps"]).to_numpy()
        scale = float(np.square(x).sum())
        found[name] = float(x @ y) / scale, float(np.sqrt(np.square(x * noise).sum())) / scale
    return found


def pillar(results: Results) -> pd.DataFrame:
    """Return how many of the moves from the pillar to the plateau are accepted."""
    rows = rows_of(results, PILLAR)
    if rows.empty:
        return pd.DataFrame()
    proposed, accepted = rows["proposed"].sum(), rows["accepted"].sum()
    share = accepted / proposed
    exact = PILLAR_WIDTH / (1 - PILLAR_WIDTH)
    error = np.sqrt(exact * (1 - exact) / proposed)
    return pd.DataFrame(
        {
            "a / (A - a)": [round(exact, 5)],
            "accepted": [round(share, 5)],
            "±": [round(error, 5)],
            "errors apart": [round((share - exact) / error, 1)],
        },
        index=pd.Index(["Metropolis"], name="scheme"),
    )


def tables(results: Results) -> list[Table]:
    """All tables for which there are results."""
    made = []
    index = burn_in(results)
    if len(index):
        made.append(
            Table(
                "burn-in",
                "Figure 3.3: from x = 9, the number of multiple-try steps, or of 10 steps of "
                "Metropolis-Hastings (M-H), after which the variance over runs stays within a "
                "factor of 1.25 of 5/3.",
                index.round(1).to_frame("index"),
            )
        )
    rates = acceptance(results)
    if len(rates):
        made.append(Table("acceptance", "Acceptance rates at equilibrium.", rates))
    share = pooled(results, EFFICIENCY, "effective")
    if len(share):
        made.append(
            Table(
                "efficiency",
                "Table 3.1: effective samples for each proposal, of x. Ours are from Sokal's "
                "window, the thesis's from the spectrum at zero as R-CODA estimates it. A step of "
                "multiple-try Metropolis (MTM) counts as 2 K = 10 proposals. In “ours” the "
                "autocorrelation time is that of all runs together; “each run alone” is the mean "
                "over runs of what a run by itself gives, as the thesis has it, which is too much "
                "where a run is short for its autocorrelation time; “quadrature” needs no chain.",
                beside(share, EFFICIENCY, SHARE).join(_alone(results)),
            )
        )
    for part, number, words in (
        (ERROR, "Table 3.2", "after 1,000 proposals, which are 100 steps of MTM"),
        (SMALL, "Section 3.2.3", "after 10,000 steps of MTM with short proposals"),
    ):
        errors = errors_of(results, part)
        if len(errors):
            made.append(
                Table(
                    part.replace(" ", "-"),
                    f"{number}: mean square error of E|x| {words}; chains start from exact draws. "
                    "WR: waste-recycled; MIT: all tries of a run as importance samples, their "
                    "weights pooled.",
                    beside(errors, part, MSE),
                )
            )
    neck = funnel(results)
    if len(neck):
        made.append(
            Table(
                "funnel",
                "Figure 3.1, in numbers: the largest distance of the (weighted) distribution "
                "function of v from that of N(0, 9), of the populations that were drawn anew, the "
                "largest share of all weight that a single point has, and the mean of v, which is "
                "0. PMC: population Monte Carlo.",
                neck.map(_short),
            )
        )
    for part, each, words in (
        (OPPOSITE, "draws", "Figure 3.6, in numbers: a Gaussian with correlation 0.99. "
         "Autocorrelation time of the sum of the coordinates in updates of both, draws or "
         "proposals of an update, and of an independent draw."),
        (CALLS, "calls", "Ours: a Gaussian prior times a Gaussian likelihood, one ten times as "
         "narrow as the other. Autocorrelation time in steps, calls of the likelihood for a step, "
         "and for an independent draw."),
    ):  # fmt: skip
        found = costs(results, part, each)
        if len(found):
            shown = found.map(_short).rename(columns={"cost": f"{each} × time"})
            made.append(Table(part, words, shown))
    across = crossings(results)
    if len(across):
        names = {"cost": "proposals × steps", "time": "autocorrelation time"}
        made.append(
            Table(
                PERSISTENT,
                "Figure 3.8, in numbers: Uniform[0, 1] with proposals of width σ. Steps from below "
                "0.1 to above 0.9 or back, proposals of a step, and of a crossing. The "
                "autocorrelation time of x, in steps, is less than what it takes to explore where "
                "a path swings from end to end, and may even be estimated as negative.",
                across.map(_short).rename(columns=names),
            )
        )
    share = pillar(results)
    if len(share):
        made.append(
            Table(
                "pillar",
                "Figure 2.1c: share of accepted moves from a pillar of width 0.1 to a plateau of "
                "width 0.9.",
                share,
            )
        )
    return made


def _alone(results: Results) -> pd.DataFrame:
    """Return effective samples of each run by itself, the mean over runs, and exact ones."""
    own = pooled(results, EFFICIENCY, "own").map(_short)
    own = own.rename(columns={"ours": "each run alone", "error": "± of these"})
    exact = {"independent draws": 1.0}
    for sd in (1.0, 10.0):
        exact[f"M-H, σ = {sd:g}"] = round(metropolis_on_t(sd).effective, 4)
    return own.join(pd.Series(exact, name="quadrature"))


def _short(value: float) -> float:
    """Round to three digits."""
    return value if not np.isfinite(value) or value == 0 else float(f"{value:.3g}")
