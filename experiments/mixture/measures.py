"""What is measured of a run of the mixture experiment."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import xarray as xr

from harness.fit import Fit
from harness.model import Truth
from harness.models.gaussian_mixture import GaussianMixture, Scenario, kou_mixture
from harness.plan.spec import Cell

from .grid import OURS

MOMENTS = {"x1": "E[X₁]", "x2": "E[X₂]", "x1_squared": "E[X₁²]", "x2_squared": "E[X₂²]"}
SHARES = {"sixteenth": 1 / 16, "quarter": 1 / 4}
"""Parts of a run, from its start, of which the first moments are kept: RMSE against cost."""


@cache
def exact_moments(scenario: Scenario) -> dict[str, float]:
    """Exact first and second moments by name."""
    return moments_of(kou_mixture(scenario).truth)


def scenario_of(key: str) -> Scenario:
    """Scenario of a cell, by its name or its first letter."""
    return "a" if key.startswith("a") else "b"


def moments_of(truth: Truth) -> dict[str, float]:
    """First and second moments of a mixture by name."""
    values = np.concatenate([truth.expected("x"), truth.expected("x_squared")])
    return dict(zip(MOMENTS, values.tolist(), strict=True))


@cache
def spread(scenario: Scenario) -> dict[str, float]:
    """Standard deviations of X1, X2, X1^2 and X2^2 under the target, by moment.

    From E[X^4] = mu^4 + 6 mu^2 s^2 + 3 s^4 of each Gaussian part.
    """
    mixture = kou_mixture(scenario)
    variance = mixture.sd[:, None] ** 2
    fourth = mixture.weight @ (mixture.mean**4 + 6 * mixture.mean**2 * variance + 3 * variance**2)
    first, second = np.split(np.array(list(exact_moments(scenario).values())), 2)
    found = np.sqrt(np.concatenate([second - first**2, fourth - second**2]))
    return dict(zip(MOMENTS, found.tolist(), strict=True))


@cache
def variance(scenario: Scenario) -> float:
    """Variance of the target, averaged over the two coordinates."""
    return float(np.mean([spread(scenario)[name] ** 2 for name in ("x1", "x2")]))


def moments(parameters: xr.Dataset) -> xr.DataArray:
    """Return x and its squares, as a function of draws."""
    x = parameters["x"]
    return xr.concat([x, x**2], dim="x_dim_0")


def measure(cell: Cell, fit: Fit) -> dict[str, float]:
    """Estimates of the moments with their standard errors, what was found, and its cost."""
    value, mcse = fit.expectation(moments)
    scenario: Scenario = cell.factors["scenario"]
    measured = {
        **{name: float(v) for name, v in zip(MOMENTS, value, strict=True)},
        **{f"{name}_mcse": float(e) for name, e in zip(MOMENTS, mcse, strict=True)},
        "modes_visited": modes_visited(kou_mixture(scenario), fit.posterior["x"].to_numpy()),
        **cost(fit),
    }
    if "diverging" in fit.sample_stats:
        measured["divergences"] = float(fit.sample_stats["diverging"].sum())
    if cell.factors["part"] == OURS:
        measured["log_z"], measured["log_z_mcse"] = fit.log_evidence
    for name, share in SHARES.items():
        few = max(8, int(share * fit.posterior.sizes["draw"]))
        early = fit.first_draws(few).expectation(moments).value
        measured |= {f"x1_{name}": float(early[0]), f"x2_{name}": float(early[1])}
    return measured


def cost(fit: Fit) -> dict[str, float]:
    """Evaluations of the target, in all and before the first draw, and seconds before it.

    An evaluation of an extended density takes one of the target for each pseudo-sample, one of
    the folded density one for each place.
    """
    attrs = fit.tree.attrs
    each = fit.pseudo_samples

    def part(kind: str, phase: str) -> float:
        return float(np.sum(attrs.get(f"{kind}_{phase}", 0)))

    # What is driven from Python counts its warm-up with its draws.
    settings: dict[str, Any] = fit.settings
    lost = 0.0
    if part("gradients", "warmup") == 0 and "warmup" in settings and "draws" in settings:
        lost = settings["warmup"] / (settings["warmup"] + settings["draws"])
    sampling = each * part("gradients", "sampling") + float(attrs.get("densities", 0))
    before = part("gradients", "pilot") + each * part("gradients", "warmup") + lost * sampling
    seconds_before = part("seconds", "pilot") + part("seconds", "warmup")
    return {
        "evaluations": before + (1 - lost) * sampling,
        "evaluations_before": before,
        "seconds_before": seconds_before + lost * part("seconds", "sampling"),
    }


def modes_visited(mixture: GaussianMixture, x: np.ndarray) -> int:
    """Count components that got at least a fifth of their share of the draws.

    A draw belongs to the component most likely to have made it.
    """
    points = x.reshape(-1, x.shape[-1])
    squared = np.square(points[:, None, :] - mixture.mean).sum(axis=-1)
    log_share = (
        np.log(mixture.weight) - x.shape[-1] * np.log(mixture.sd) - 0.5 * squared / mixture.sd**2
    )
    share = np.bincount(log_share.argmax(axis=1), minlength=len(mixture.weight)) / len(points)
    return int(np.count_nonzero(share >= 0.2 * mixture.weight))
