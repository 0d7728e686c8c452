"""What is measured on each fit: estimates with their standard errors over runs."""

from __future__ import annotations

import math

import numpy as np

from harness.arrays import FloatArray
from harness.fit import Fit
from harness.plan.spec import Cell

from .grid import BURN_IN, CALLS, EFFICIENCY, ERROR, FUNNEL, OPPOSITE, PERSISTENT, PILLAR, SMALL
from .neck import EDGES, counted
from .targets import FREEDOM, FUNNEL_SD, MEAN_ABS

VARIANCE = FREEDOM / (FREEDOM - 2)
NEAR = 1.25
"""A variance over runs counts as right from where on it is within this factor of the true one.

With 5000 runs its standard error is 4% at equilibrium."""


def measure(cell: Cell, fit: Fit) -> dict[str, float]:
    """Return the part's numbers; a standard error over runs has the suffix ``_error``."""
    attrs = fit.tree.attrs
    part = cell.factors["part"]
    found: dict[str, float]
    if part == BURN_IN:
        each = 1 if cell.settings["scheme"] == "multiple try" else 10
        return {"index": burnt_in(np.asarray(attrs["variance"])[::each])}
    if part == EFFICIENCY:
        found = {n: float(attrs[n]) for n in ("acceptance", "effective", "effective_error")}
        return found | _mean("own", np.asarray(attrs["own"]))
    if part in (ERROR, SMALL):
        found = {}
        for name in ("plain", "recycled", "importance"):
            if name in attrs:
                found |= _mean(name, np.square(np.asarray(attrs[name]) - MEAN_ABS))
        return found
    if part == FUNNEL:
        return _funnel(fit)
    if part == PERSISTENT:
        settings = cell.settings
        crossed = float(attrs["crossings"])
        steps = settings["chains"] * settings["steps"] / max(crossed, 1.0)
        # Crossings of many chains come nearly independently of each other.
        found = {"crossing": steps, "crossing_error": steps / math.sqrt(max(crossed, 1.0))}
        return found | {name: float(attrs[name]) for name in ("iat", "iat_error", "draws")}
    names = {
        OPPOSITE: ("iat", "iat_error", "iat_closed", "draws"),
        PILLAR: ("proposed", "accepted"),
        CALLS: ("iat", "iat_error", "iat_closed", "calls"),
    }[part]
    return {name: float(attrs[name]) for name in names}


def burnt_in(variance: FloatArray) -> float:
    """Return from which index on the variance over runs is near the true one; nan if at none."""
    wrong = np.flatnonzero(np.abs(np.log(np.maximum(variance, 1e-300) / VARIANCE)) > np.log(NEAR))
    first = int(wrong[-1]) + 1 if wrong.size else 0
    return float(first) if first < variance.size else math.nan


def distance(mass: FloatArray) -> float:
    """Return the largest distance of the distribution function of v from the true one, at edges."""
    true = [0.5 * math.erfc(-edge / (FUNNEL_SD * math.sqrt(2))) for edge in EDGES[1:-1]]
    return float(np.abs(mass.cumsum()[:-1] - true).max())


def mass_of(fit: Fit) -> FloatArray:
    """Return the share of each bin of v, also of draws of NUTS."""
    attrs = fit.tree.attrs
    if "mass" in attrs:
        return np.asarray(attrs["mass"], dtype=np.float64)
    v = fit.posterior["v"].to_numpy().ravel()
    return counted(v) / v.size


def _funnel(fit: Fit) -> dict[str, float]:
    attrs, mass = fit.tree.attrs, mass_of(fit)
    found = {"distance": distance(mass)}
    if "largest" in attrs:
        found["largest"] = float(attrs["largest"])
    if "resampled" in attrs:
        found["resampled"] = distance(np.asarray(attrs["resampled"]))
    middle = 0.5 * (EDGES[1:] + EDGES[:-1])
    found["mean"] = float(mass @ middle)
    return found


def _mean(name: str, values: FloatArray) -> dict[str, float]:
    error = values.std(ddof=1) / math.sqrt(values.size)
    return {name: float(values.mean()), f"{name}_error": float(error)}
