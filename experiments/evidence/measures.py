"""What is measured on each fit: log Z of its runs, their errors and costs, and shares of modes."""

from __future__ import annotations

import numpy as np

from harness.fit import Fit
from harness.plan.spec import Cell

from .grid import FIGURE

MOST_RUNS = 8
"""Of one fit whose answers are kept one by one."""


def measure(cell: Cell, fit: Fit) -> dict[str, float]:
    """Measure a fit of one run or of several.

    Returns
    -------
    dict
        ``runs``, their number R; ``evaluations``, on average; ``bias``, ``mse`` and ``normalised``,
        the means of the error of log Z, of its square, and of the square in units of the reported
        error.  But for Figure 4.5 also ``log_z_k`` and ``error_k`` of run k, and of its modes
        ``share_k_m`` and ``share_error_k_m``, and ``end_k_m``, the share of unweighted chains.
    """
    attrs = fit.tree.attrs
    if "run_log_z" in attrs:
        log_z, error = np.atleast_1d(attrs["run_log_z"]), np.atleast_1d(attrs["run_error"])
        evaluations = float(np.mean(attrs["run_evaluations"]))
    else:
        found = fit.log_evidence
        log_z, error = np.array([found.value]), np.array([found.mcse])
        evaluations = float(fit.gradients)
    off = log_z - cell.model.truth.log_evidence.value
    metrics = {
        "runs": float(len(log_z)),
        "evaluations": evaluations,
        "bias": float(off.mean()),
        "mse": float(np.square(off).mean()),
        "normalised": float(np.square(off / error).mean()),
    }
    metrics |= {name: float(attrs[name]) for name in ("rungs", "schedule_evaluations")
                if name in attrs}  # fmt: skip
    if cell.factors["part"] == FIGURE:
        return metrics
    for k, (value, spread) in enumerate(zip(log_z, error, strict=True)):
        metrics |= {f"log_z_{k}": float(value), f"error_{k}": float(spread)}
    return metrics | _shares(cell, fit, len(log_z))


def _shares(cell: Cell, fit: Fit, runs: int) -> dict[str, float]:
    test = cell.model.truth.mode_test
    if test is None:
        return {}
    attrs, shape = fit.tree.attrs, (runs, len(test.names))
    if "shares" in attrs:
        found = {"share": attrs["shares"], "share_error": attrs["share_errors"]}
        if "ends" in attrs:
            found["end"] = attrs["ends"]
    else:
        estimate = fit.expectation(test.happens)
        found = {"share": estimate.value, "share_error": estimate.mcse}
    return {
        f"{name}_{k}_{m}": float(value)
        for name, values in found.items()
        for (k, m), value in np.ndenumerate(np.reshape(values, shape))
    }
