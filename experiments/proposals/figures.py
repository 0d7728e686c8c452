"""The thesis's Figures 3.1, 3.3 and 3.8, and the steps of a crossing against their size."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from harness.arrays import FloatArray
from harness.fit import Fit
from harness.plan.spec import Cell, Figure, Results
from harness.report.style import BAND, COLOURS, INK, new_figure, to_image

from .grid import BURN_IN, FUNNEL, PERSISTENT, STEP_SIZES
from .measures import VARIANCE, mass_of
from .neck import EDGES
from .tables import crossings
from .targets import FUNNEL_SD


def figures(results: Results) -> list[Figure]:
    """All figures for which there are results."""
    made = (burn_in(results), funnel(results), persistence(results))
    return [figure for figure in made if figure is not None]


def _cells(results: Results, part: str) -> dict[str, Cell]:
    return {cell.factors["scheme"]: cell for cell in results.cells if cell.factors["part"] == part}


def _of_first(results: Results, cell: Cell, read: Callable[[Fit], FloatArray]) -> FloatArray:
    return read(results.load(cell, results.replications(cell)[0]))


def burn_in(results: Results) -> Figure | None:
    """The variance over runs against computer time."""
    cells = _cells(results, BURN_IN)
    if not cells:
        return None
    figure, (axis,) = new_figure(width=7.0, height=3.6)
    for colour, (label, cell) in zip(COLOURS, cells.items(), strict=False):
        each = 1 if cell.settings["scheme"] == "multiple try" else 10
        curve = _of_first(results, cell, lambda fit: np.asarray(fit.tree.attrs["variance"]))
        index = np.arange(curve.size) / each
        axis.plot(index[1:], curve[1:], color=colour, label=label, linewidth=1.2)
    axis.axhline(VARIANCE, color=INK, linewidth=0.8, linestyle="--")
    axis.set(xlabel="index: MTM steps, or M-H steps / 10", ylabel="var(x, t)", yscale="log")
    axis.set_xlim(0, 60)
    axis.legend(fontsize=8, frameon=False)
    return Figure(
        "figure-3-3",
        "The thesis's Figure 3.3: the variance over runs that all start at 9. The dashed line is "
        "5/3. M-H with long proposals is there first.",
        "Three curves that rise from 0 and fall to a dashed line.",
        to_image(figure),
    )


def funnel(results: Results) -> Figure | None:
    """Histograms of v, a panel for each scheme."""
    cells = _cells(results, FUNNEL)
    if not cells:
        return None
    figure, axes = new_figure(2, 3, width=9.0, height=4.8)
    middle = 0.5 * (EDGES[1:] + EDGES[:-1])
    true = np.exp(-0.5 * (middle / FUNNEL_SD) ** 2) / (FUNNEL_SD * math.sqrt(2 * math.pi))
    for axis, (label, cell) in zip(axes, cells.items(), strict=False):
        mass = _of_first(results, cell, mass_of)
        wide = mass.reshape(-1, 4).sum(axis=1) / (4 * (EDGES[1] - EDGES[0]))
        centre = middle.reshape(-1, 4).mean(axis=1)
        axis.bar(centre, wide, width=0.4, color=BAND)
        axis.plot(middle, true, color=COLOURS[1], linewidth=1)
        axis.set_title(label, fontsize=8)
        axis.set(xlim=(-12, 12), ylim=(0, 0.3), xlabel="v")
    return Figure(
        "figure-3-1",
        "The thesis's Figure 3.1: histograms of v on the funnel, before populations are drawn "
        "anew, with the true density. The last panel is ours.",
        "Six histograms with the same bell-shaped curve.",
        to_image(figure),
    )


def persistence(results: Results) -> Figure | None:
    """Paths of one chain, and the steps of a crossing against the step size."""
    cells, times = _cells(results, PERSISTENT), crossings(results)
    names = ("Metropolis", "pivots")
    if any(f"{name}, σ = {sd:g}" not in times.index for name in names for sd in STEP_SIZES):
        return None
    figure, (left, right) = new_figure(1, 2, width=9.0, height=3.6)
    for colour, name in zip(COLOURS, names, strict=False):
        path = _of_first(
            results, cells[f"{name}, σ = 0.05"], lambda fit: np.asarray(fit.tree.attrs["path"])
        )
        left.plot(path, color=colour, linewidth=1, label=name)
        row = times.loc[[f"{name}, σ = {sd:g}" for sd in STEP_SIZES]]
        right.errorbar(
            STEP_SIZES, row["steps"], row["±"], color=colour, marker="o", markersize=4, label=name
        )
    sd = np.array(STEP_SIZES)
    right.plot(sd, 1.5 / sd**2, color=INK, linewidth=0.8, linestyle="--", label="σ⁻²")
    right.plot(sd, 2 / sd, color=INK, linewidth=0.8, linestyle=":", label="σ⁻¹")
    left.set(xlabel="step, σ = 0.05", ylabel="x", ylim=(0, 1))
    right.set(xlabel="σ", ylabel="steps of a crossing", xscale="log", yscale="log")
    right.set_xticks(STEP_SIZES, [f"{each:g}" for each in STEP_SIZES], minor=False)
    right.set_xticks([], minor=True)
    right.legend(fontsize=8, frameon=False)
    return Figure(
        "figure-3-8",
        "Left, the thesis's Figure 3.8: the first 200 steps of one chain. Right: steps of a "
        "crossing against σ, with lines of both slopes; a step with pivots makes 64 proposals.",
        "Two paths between 0 and 1, and two falling lines.",
        to_image(figure),
    )
