"""What is measured on each fit: acceptance, moments with their errors, and efficiency."""

from __future__ import annotations

import numpy as np

from harness.fit import Fit
from harness.plan.spec import Cell

from .grid import HEART

_FOUND = (
    *("acceptance", "acceptance_error", "mean", "mean_error", "sweeps", "efficiency"),
    *("efficiency_error", "efficiency_h", "tau_J", "tau_h", "closed"),
    *("tau", "tau_error", "bound", "bound_error"),
)


def measure(cell: Cell, fit: Fit) -> dict[str, float]:
    """What the run found itself; on the heart disease data moments of each parameter k.

    These are ``mean_k``, ``mcse_k``, ``sd_k``, and ``late_k``, the mean of the second half of the
    draws.
    """
    metrics = {name: float(fit.tree.attrs[name]) for name in _FOUND if name in fit.tree.attrs}
    if cell.factors["part"] != HEART:
        return metrics
    estimate = fit.expectation(lambda draws: draws["w"])
    draws = fit.posterior["w"].transpose("chain", "draw", ...).to_numpy()
    late = draws[:, draws.shape[1] // 2 :].mean(axis=(0, 1))
    columns = {"mean": estimate.value, "mcse": estimate.mcse, "sd": draws.std(axis=(0, 1))}
    for name, values in (columns | {"late": late}).items():
        metrics |= {f"{name}_{k}": float(value) for k, value in enumerate(np.asarray(values))}
    return metrics
