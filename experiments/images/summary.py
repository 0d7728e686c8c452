"""What is measured of a run, and the errors of the runs against the bounds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from harness.fit import Fit
from harness.plan.spec import Cell, Results

from .._curves import curve_of


def measure(cell: Cell, fit: Fit) -> dict[str, float]:
    """Log joint evidence of the images, its error, and the way to it."""
    value, mcse = fit.log_evidence
    attrs = fit.tree.attrs
    metrics = {"log_evidence": value, "mcse": mcse}
    if "upper_log_evidence" in attrs:
        metrics["upper"] = float(attrs["upper_log_evidence"])
    if "part_log_evidence" in attrs:
        seconds, warmup = fit.seconds, float(np.sum(attrs["seconds_warmup"]))
        if not warmup:  # driven from Python: all of its time is one figure
            ran = fit.settings
            before = ran["warmup"] + ran.get("pilots", 0) * ran.get("pilot_draws", 0)
            warmup = seconds * before / (before + ran["draws"])
        metrics |= curve_of(np.asarray(attrs["part_log_evidence"]), warmup, seconds)
    return metrics


def bounds(results: Results, decoder: str) -> tuple[float, float] | None:
    """Stochastic lower and upper bound on the log joint evidence, means over runs."""
    runs = results.metrics[results.metrics["cell"] == f"{decoder}-bdmc"]
    if not len(runs):
        return None
    return float(runs["log_evidence"].mean()), float(runs["upper"].mean())


def errors(results: Results, decoder: str) -> pd.DataFrame:
    """A row a cell of a decoder: error of the joint log Z against the middle of the bounds."""
    between = bounds(results, decoder)
    rows = []
    for cell in results.cells:
        if cell.factors["decoder"] != decoder or cell.factors["method"] == "bdmc" or not between:
            continue
        runs = results.metrics[results.metrics["cell"] == cell.key]
        error = runs["log_evidence"].to_numpy() - sum(between) / 2
        mcse = float(np.sqrt(np.square(runs["mcse"]).mean()))
        rms, seconds = float(np.sqrt(np.square(error).mean())), float(runs["seconds"].mean())
        rows.append(
            {
                "key": cell.key,
                "label": cell.label,
                "method": cell.factors["method"],
                "runs": len(runs),
                "mean_error": float(error.mean()),
                "se": float(error.std(ddof=1) / np.sqrt(len(error))),
                "rmse": rms,
                "mcse": mcse,
                "seconds": seconds,
                "kilogradients": float(runs["gradients"].mean() / 1000),
                "efficiency": 1 / (rms**2 * seconds),
            }
        )
    return pd.DataFrame(rows).set_index("key") if rows else pd.DataFrame()


def decoders(results: Results) -> list[str]:
    """Names of the decoders in some results."""
    return list(dict.fromkeys(str(cell.factors["decoder"]) for cell in results.cells))
