"""Errors of log Z against the exact value, and the tables made of them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from harness.models.radon import radon
from harness.plan.spec import Results, Table


@cache
def exact() -> float:
    """True log evidence, in nats."""
    return radon().truth.log_evidence.value


def errors(results: Results) -> pd.DataFrame:
    """A row a cell: errors of log Z over its runs, against the exact value."""
    rows = []
    for cell in results.cells:
        runs = results.metrics[results.metrics["cell"] == cell.key]
        error = runs["log_evidence"].to_numpy() - exact()
        score = error / runs["mcse"].to_numpy()
        rows.append(
            {
                "cell": cell.key,
                "label": cell.label,
                "base": cell.factors["base"],
                "origin": cell.factors["origin"],
                "runs": len(runs),
                "mean_error": float(error.mean()),
                "se": float(error.std(ddof=1) / np.sqrt(len(error))),
                "absolute_error": float(np.abs(error).mean()),
                "largest": float(np.abs(error).max()),
                "mcse": float(np.sqrt(np.square(runs["mcse"]).mean())),
                "largest_z": float(np.abs(score).max()),
                "seconds": float(runs["seconds"].mean()),
                "kilogradients": float(runs["gradients"].mean() / 1000),
            }
        )
    return pd.DataFrame(rows).set_index("cell")


def tables(results: Results) -> list[Table]:
    """Every run's log evidence beside the exact one; errors and cost by method."""
    labels = {cell.key: cell.label for cell in results.cells}
    shown = results.metrics[results.metrics["cell"].isin(labels)]
    each = pd.DataFrame(
        {
            "method": shown["cell"].map(labels),
            "replication": shown["replication"],
            # As text: numbers of four digits lose what matters here.
            "log_evidence": [f"{value:.4f}" for value in shown["log_evidence"]],
            "mcse": shown["mcse"].round(4),
            "exact": f"{exact():.4f}",
        }
    ).set_index(["method", "replication"])
    table = errors(results)
    summary = pd.DataFrame(
        {
            "base": table["base"],
            "of": table["origin"],
            "runs": table["runs"],
            "mean error": [
                f"{m:+.3f} ± {s:.3f}" for m, s in zip(table["mean_error"], table["se"], strict=True)
            ],
            "mean |error|": table["absolute_error"].round(3),
            "by MCSE": table["mcse"].round(3),
            "largest |z|": table["largest_z"].round(1),
            "seconds a run": table["seconds"].round(1),
            "thousand gradients": table["kilogradients"].round(0),
        }
    ).rename(index=labels)
    summary.index.name = "method"
    return [
        Table(
            "errors",
            "Error of log Z in nats over the runs (± standard error of its mean), its mean size, "
            "what the runs' own Monte Carlo standard errors predict, and the largest error in "
            "units of a run's own. Seconds and gradients include the making of the base; "
            "Pathfinder's gradients it does not tell, a gradient of PE is one of two points.",
            summary,
        ),
        Table("evidence", "Log evidence of every run, in nats.", each),
    ]
