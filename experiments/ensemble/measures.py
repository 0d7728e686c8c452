"""What is measured on each fit: autocorrelation times, in gradients or in iterations."""

from __future__ import annotations

import numpy as np

from harness.arrays import FloatArray
from harness.fit import Fit
from harness.models import stamps
from harness.plan.spec import Cell

from . import cox, tempered
from .grid import COX, RAW, TEMPERED, UNC
from .walkers import times_of

NAMES = {
    RAW: stamps.QUANTITIES,
    UNC: stamps.QUANTITIES,
    COX: cox.QUANTITIES,
    TEMPERED: tempered.QUANTITIES,
}
"""Quantities whose autocorrelation times are measured, by part of the experiment."""


def measure(cell: Cell, fit: Fit) -> dict[str, float]:
    """Autocorrelation times ``iat_0``, ...; whether their windows closed; means and their errors.

    In gradients for each walker or chain; those of the Cox process in iterations.
    """
    attrs = fit.tree.attrs
    metrics: dict[str, float]
    if "iat" in attrs:
        found = {name: np.asarray(attrs[name]) for name in _KEYS if name in attrs}
        metrics = {name: float(attrs[name]) for name in _OTHERS if name in attrs}
    else:
        watched = _watched(cell, fit)
        leapfrogs = float(fit.sample_stats["n_steps"].mean())
        # In iterations a draw of NUTS is one.
        a_draw = 1.0 if cell.factors["part"] == COX else leapfrogs
        found = {name: np.asarray(value) for name, value in times_of(watched, a_draw).items()}
        metrics = {
            "leapfrogs": leapfrogs,
            "divergences": float(fit.sample_stats["diverging"].sum()),
        }
        if cell.factors["part"] == TEMPERED:
            right = fit.expectation(lambda draws: (draws["x"] > 0).astype(float))
            metrics["right"] = float(right.value[0])
    for name, values in found.items():
        metrics |= {f"{name}_{k}": float(value) for k, value in enumerate(values)}
    return metrics


_OTHERS: tuple[str, ...] = (
    "acceptance",
    "invalid",
    "orders",
    "changed_orders",
    "right",
    "acceptance_latent",
    "acceptance_hyper",
)
_KEYS = ("iat", "iat_error", "iat_closed", "iat_ensemble", "mean", "mcse")


def _watched(cell: Cell, fit: Fit) -> FloatArray:
    """Return the watched quantities of draws of NUTS, (chains, draws, Q)."""
    part = cell.factors["part"]
    if part == TEMPERED:
        draws = fit.tempered
        x = np.asarray(fit.tree["extended"]["x"].to_numpy())
        return tempered.watched(x, np.asarray(draws.inv_temp).reshape(x.shape[:2]))
    values = {str(name): v.to_numpy() for name, v in fit.posterior.items()}
    if part == COX:
        process = cox.process_of(cell.model)
        theta = np.stack([np.log(values["sigma2"]), np.log(values["range"])], axis=-1)
        # The whitened field's own draws tell as much about mixing as the field's.
        cells = np.linspace(0, process.size - 1, 7).astype(int)
        return np.concatenate([theta, values["z"][..., cells]], axis=-1)
    weights = values["z"] if part == RAW else values["logit_z"]
    stacked = [values["mu"], values["lambda"], weights, values["rate"][..., None]]
    if part == RAW:
        return stamps.quantities(np.concatenate(stacked, axis=-1))
    stacked[1], stacked[3] = np.log(stacked[1]), np.log(stacked[3])
    return stamps.quantities(stamps.to_raw(np.concatenate(stacked, axis=-1)))
