"""The table of errors of each decoder."""

from __future__ import annotations

import pandas as pd

from harness.plan.spec import Results, Table

from .summary import bounds, decoders, errors


def tables(results: Results) -> list[Table]:
    """Bounds, and errors of the joint log Z by method, of each decoder."""
    made = []
    for decoder in decoders(results):
        table, between = errors(results, decoder), bounds(results, decoder)
        if between is None or not len(table):
            continue
        shown = pd.DataFrame(
            {
                "runs": table["runs"],
                "mean error": [
                    f"{m:+.2f} ± {s:.2f}"
                    for m, s in zip(table["mean_error"], table["se"], strict=True)
                ],
                "RMSE": table["rmse"].round(3),
                "by MCSE": table["mcse"].round(3),
                "seconds a run": table["seconds"].round(2),
                "thousand gradients": table["kilogradients"].round(0),
                "1 / (error² s)": table["efficiency"].round(2),
            }
        ).set_index(table["label"])
        shown.index.name = "method"
        made.append(
            Table(
                f"errors-{decoder}",
                f"Log joint evidence of the images of {decoder}, in nats: error against the "
                f"middle of the bounds {between[0]:.2f} and {between[1]:.2f}; what the runs' own "
                "Monte Carlo standard errors predict; and runs of RMSE 1 that a second is worth, a "
                "noisy number of few runs. Seconds are of one process.",
                shown,
            )
        )
    return made
