"""What is measured of a horseshoe fit."""

from __future__ import annotations

import numpy as np

from harness.arrays import FloatArray
from harness.fit import Fit
from harness.models.horseshoe import Classification
from harness.plan.spec import Cell

from .cells import NUM_SHOWN
from .predictions import condensed, held_out_density, within_budget
from .small import bounded_scale

SHARES = (20, 30, 40, 50, 60, 70, 80, 90, 100)
"""Percentages of the budget of gradients at which a run's predictions are measured."""

_SPENT = 0.95
"""Part of such a share that the draws must have spent for costs to count as equal."""

_HIGHEST = 0.2
"""Part of the highest point of a density that another maximum must reach to count as a mode."""


def condense(cell: Cell, fit: Fit) -> Fit:
    """Keep predictions and a few coefficients of a wide fit; the small problem's stay whole."""
    if "held_out" not in cell.extras:
        return fit
    held_out = cell.extras["held_out"][fit.tree.attrs["model"]]
    return condensed(fit, held_out.x, cell.extras["shown"])


def measure(cell: Cell, fit: Fit) -> dict[str, float]:
    """Held-out log predictive density at equal cost; of the small problem, its global scale."""
    if "held_out" not in cell.extras:
        estimate = fit.expectation(bounded_scale)
        return {"bounded": float(estimate.value), "bounded_mcse": float(estimate.mcse)}
    model = fit.tree.attrs["model"]
    held_out = cell.extras["held_out"][model]
    pseudo_samples = cell.factors["N"]
    used = within_budget(fit, cell.extras["budget"], pseudo_samples)
    pointwise, joint = held_out_density(used, held_out)
    share = cell.extras["share_of_ones"][model]
    shown = used.posterior["beta"].transpose("chain", "draw", "beta_dim_0").to_numpy()[0]
    spent = pseudo_samples * used.sample_stats["n_steps"].to_numpy().sum()
    return {
        "lpd": float(pointwise.value),
        "lpd_mcse": float(pointwise.mcse),
        "joint_lpd": float(joint.value),
        "joint_lpd_mcse": float(joint.mcse),
        **_at_shares(cell, fit, held_out),
        "base_rate": float(np.log(np.where(held_out.y == 1, share, 1 - share)).mean()),
        "draws_used": float(used.posterior.sizes["draw"]),
        "likelihood_gradients": float(spent),
        "share_of_budget": float(spent / cell.extras["budget"]),
        "warmup_likelihood_gradients": float(
            pseudo_samples * np.sum(fit.tree.attrs["gradients_warmup"])
        ),
        "unimodal_at_zero": float(
            np.mean([unimodal_at_zero(draws) for draws in shown[:, :NUM_SHOWN].T])
        ),
        "divergences": float(used.sample_stats["diverging"].sum()),
    }


def _at_shares(cell: Cell, fit: Fit, held_out: Classification) -> dict[str, float]:
    """Predictions from the first draws of a run, at each share of the budget.

    They are NaN where the run has not spent as much, or where a few long trajectories make up the
    share, so that those that have them have cost the same.
    """
    budget, each = cell.extras["budget"], cell.factors["N"]
    spent = each * fit.sample_stats["n_steps"].to_numpy()[0].cumsum()
    found: dict[str, float] = {}
    for percent in SHARES:
        gradients = percent / 100 * budget
        count = int((spent <= gradients).sum())
        values = dict.fromkeys(("lpd", "lpd_mcse", "joint_lpd", "draws"), float("nan"))
        if count >= 4 and spent[count - 1] >= _SPENT * gradients:
            pointwise, joint = held_out_density(within_budget(fit, gradients, each), held_out)
            values = {
                "lpd": float(pointwise.value),
                "lpd_mcse": float(pointwise.mcse),
                "joint_lpd": float(joint.value),
                "draws": float(count),
            }
        found |= {f"{name}_{percent}": value for name, value in values.items()}
    return found


def modes_of(draws: FloatArray) -> list[float]:
    """Places of the maxima of a density estimate that reach a fifth of its highest point.

    A Gaussian kernel with Silverman's robust bandwidth.
    """
    grid, density = density_estimate(draws)
    inner = density[1:-1]
    tops = (inner > density[:-2]) & (inner >= density[2:]) & (inner >= _HIGHEST * density.max())
    return [float(place) for place in grid[1:-1][tops]]


def unimodal_at_zero(draws: FloatArray) -> bool:
    """Whether a coefficient's density has one mode, within a standard deviation of zero."""
    modes = modes_of(draws)
    return len(modes) == 1 and abs(modes[0]) < float(draws.std())


def density_estimate(draws: FloatArray, points: int = 200) -> tuple[FloatArray, FloatArray]:
    """Kernel density estimate on a grid over the draws' central 99.8 %.

    Parameters
    ----------
    draws
        Shape (n,).
    points
        Points of the grid.

    Returns
    -------
    tuple of FloatArray
        Grid and density, each of shape (points,).
    """
    low, high = np.quantile(draws, [0.001, 0.999])
    quarter, three_quarters = np.quantile(draws, [0.25, 0.75])
    spread = min(draws.std(), (three_quarters - quarter) / 1.34) or draws.std() or 1.0
    bandwidth = 0.9 * spread * len(draws) ** -0.2
    grid = np.linspace(low - 3 * bandwidth, high + 3 * bandwidth, points)
    bandwidth = max(bandwidth, 2 * (grid[1] - grid[0]))
    density = np.exp(-0.5 * np.square((grid[:, None] - draws) / bandwidth)).mean(axis=1)
    return grid, density / (bandwidth * np.sqrt(2 * np.pi))
