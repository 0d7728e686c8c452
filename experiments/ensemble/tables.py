"""Autocorrelation times of all rows, with the paper's beside ours, and posterior means."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from harness.folders import shipped
from harness.models.stamps import STAMPS_TRUTH
from harness.plan.spec import Results, Table

from .grid import COX, RAW, TEMPERED, UNC
from .measures import NAMES


@cache
def published(table: int) -> pd.DataFrame:
    """Return a table of the paper, by scheme."""
    path = shipped("experiments") / "published" / f"ensemble_table{table}.csv"
    return pd.read_csv(path, index_col="scheme")


def times(results: Results, part: str) -> pd.DataFrame:
    """Return the mean over runs of each quantity's autocorrelation time, by scheme.

    ``closed`` is the share of runs and quantities that were long enough for their windows.
    """
    if "part" not in results.metrics or "iat_0" not in results.metrics:
        return pd.DataFrame(columns=[*NAMES[part], "closed"])
    rows = results.metrics[results.metrics["part"] == part]
    names = NAMES[part]
    mean = rows.groupby("scheme", sort=False)[[f"iat_{k}" for k in range(len(names))]].mean()
    mean.columns = pd.Index(names)
    closed = rows.groupby("scheme", sort=False)[
        [f"iat_closed_{k}" for k in range(len(names))]
    ].mean()
    return mean.assign(closed=closed.mean(axis=1))


def tables(results: Results) -> list[Table]:
    """Tables 1 and 2 of the paper beside ours, the tempered part, and means of the stamps."""
    made = []
    for part, where in ((RAW, "means, precisions and weights themselves"), (UNC, "logarithms")):
        ours = times(results, part)
        if ours.empty:
            continue
        if part == RAW:
            paper = published(1).add_prefix("paper: ")
            ours = ours.join(paper)
        made.append(
            Table(
                f"stamps-{part}",
                f"Stamps, in {where}: gradients of a walker for each independent sample. Where "
                "“closed” is below 1 some runs are too short for their autocorrelation time, "
                "which is then a lower bound.",
                _rounded(ours),
            )
        )
    ours = times(results, COX)
    if not ours.empty:
        made.append(
            Table(
                "cox",
                "Cox process: iterations for each independent sample (of NUTS: draws). The paper's "
                "are of 32 x 32 cells, and only their order can be compared.",
                _rounded(ours.join(published(2).add_prefix("paper: "))),
            )
        )
    ours = times(results, TEMPERED)
    if not ours.empty:
        rows = results.metrics[results.metrics["part"] == TEMPERED]
        extra = rows.groupby("scheme", sort=False)[["acceptance", "right"]].mean()
        made.append(
            Table(
                "tempered",
                "Joint continuous tempering of two modes: gradients for each independent sample of "
                "the inverse temperature and of the mode, at all temperatures together; and the "
                "right mode's weight under the target, which is 0.3.",
                _rounded(ours).join(extra.round(3)),
            )
        )
    modes = in_modes(results)
    if not modes.empty:
        made.append(
            Table(
                "modes",
                "How walkers in several modes precondition each other: EQN on the raw stamps with "
                "walkers in all six orders of the components and in one, and with weights of the "
                "others by their distance (λ = 12) and without (λ = 0). Share of steps accepted, "
                "and gradients of a walker for an independent sample of the slowest quantity; "
                "where “closed” is below 1 these are lower bounds.",
                modes,
            )
        )
    means = _means(results)
    if not means.empty:
        made.append(
            Table(
                "means",
                "Posterior means of the stamps' four quantities, and the truth's error and theirs "
                "together in standard errors, which are too small where runs are too short for "
                "their autocorrelation time.",
                means,
            )
        )
    return made


MODES = {
    "EQN": ("six", 12, 0.015),
    "EQN in one mode": ("one", 12, 0.015),
    "EQN, λ = 0": ("six", 0, 0.002),
    "EQN in one mode with λ = 0": ("one", 0, 0.015),
}
"""Modes that walkers start in, λ and step size, by scheme on the raw stamps."""


def in_modes(results: Results) -> pd.DataFrame:
    """Return acceptance and slowest time of the schemes of :data:`MODES`."""
    slow = times(results, RAW)
    schemes = [scheme for scheme in MODES if scheme in slow.index]
    if not schemes:
        return pd.DataFrame()
    rows = results.metrics[results.metrics["part"] == RAW].groupby("scheme")
    table = pd.DataFrame(
        [MODES[scheme] for scheme in schemes],
        columns=["modes", "λ", "dt"],
        index=pd.Index(schemes, name="scheme"),
    )
    table["accepted"] = rows["acceptance"].mean()[schemes].round(3)
    table["gradients"] = slow.loc[schemes, list(NAMES[RAW])].max(axis=1)
    table["closed"] = slow.loc[schemes, "closed"]
    return _rounded(table[["gradients"]]).combine_first(table)[list(table.columns)]


def _rounded(frame: pd.DataFrame) -> pd.DataFrame:
    """Round times to three digits."""

    def short(value: float) -> float:
        return value if not np.isfinite(value) or value == 0 else float(f"{value:.3g}")

    return frame.map(short)


def _means(results: Results) -> pd.DataFrame:
    if "part" not in results.metrics or "mean_0" not in results.metrics:
        return pd.DataFrame()
    truth = STAMPS_TRUTH.expectations["quantities"]
    rows = []
    for (part, scheme), runs in results.metrics[results.metrics["part"].isin([RAW, UNC])].groupby(
        ["part", "scheme"], sort=False
    ):
        row: dict[str, object] = {"part": part, "scheme": scheme}
        for k, name in enumerate(NAMES[RAW]):
            mean = runs[f"mean_{k}"].mean()
            error = np.sqrt(np.square(runs[f"mcse_{k}"]).sum()) / len(runs)
            row[name] = float(f"{mean:.4g}")
            row[f"{name}, errors off"] = round(
                float((mean - truth.value[k]) / np.hypot(error, truth.error[k])), 1
            )
        rows.append(row)
    return pd.DataFrame(rows)
