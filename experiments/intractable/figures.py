"""The thesis's Figures 5.10, 5.2 and 5.11 from our runs."""

from __future__ import annotations

import numpy as np
import pandas as pd

from harness.models.heart_disease import NAMES
from harness.plan.spec import Figure, Results
from harness.report.style import COLOURS, INK, new_figure, to_image

from .grid import EXACT, EXCHANGE, HEART, LANGEVIN, LOOPY, MAVM, MEAN_FIELD, NUTS, WIDTHS
from .tables import acceptance, lattice

_LOOKS = {
    NUTS: (COLOURS[6], "-"),
    EXACT: (COLOURS[5], "-"),
    EXCHANGE: (COLOURS[0], "-"),
    LOOPY: (COLOURS[3], "--"),
    LANGEVIN: (COLOURS[1], ":"),
    MEAN_FIELD: (COLOURS[4], "-."),
    MAVM: (COLOURS[1], "--"),
}
_BINS = 40


def figures(results: Results) -> list[Figure]:
    """All figures whose runs are there."""
    made = []
    rates = acceptance(results)
    if not rates.empty:
        made.append(acceptance_rates(rates))
    if any(cell.factors["part"] == HEART for cell in results.cells):
        made.append(histograms(results))
    costs = lattice(results)
    if not costs.empty:
        made.append(efficiency(costs))
    return made


def acceptance_rates(rates: pd.DataFrame) -> Figure:
    """Figure 5.10."""
    figure, axes = new_figure(1, 3, width=9.0, height=3.2)
    for axis, panel in zip(axes, "abc", strict=True):
        rows = rates[rates["figure"] == panel]
        across = "estimate" if panel == "b" else "levels"
        lines = [each for each in (EXCHANGE, MAVM) if (rows["scheme"] == each).any()]
        for scheme in lines:
            colour, dash = _LOOKS[scheme]
            mine = rows[rows["scheme"] == scheme]
            for levels, line in mine.groupby("levels") if panel == "b" else [("", mine)]:
                x = line[across] if panel == "b" else line[across] + 1
                label = f"{scheme}{f', K = {levels}' if panel == 'b' else ''}"
                axis.errorbar(x, line["ours"], line["error"], color=colour, linestyle=dash,
                              marker="o", markersize=3, linewidth=1, label=label)  # fmt: skip
                axis.plot(x, line["computed"], "x", color=INK, markersize=5)
        if panel == "b":
            whole = rates[(rates["figure"] == "a") & (rates["scheme"] == EXCHANGE)]
            for levels in (0, 10, 100):
                for rate in whole.loc[whole["levels"] == levels, "ours"]:
                    axis.axhline(rate, color=_LOOKS[EXCHANGE][0], linewidth=0.8)
        for rate in rows.loc[rows["scheme"] == EXACT, "ours"]:
            axis.axhline(rate, color=INK, linewidth=0.8)
        axis.set(xscale="log", title=panel, ylabel="acceptance" if panel == "a" else "")
        axis.set_xlabel("estimate" if panel == "b" else "K + 1")
        axis.legend(fontsize=7)
    return Figure(
        "figure-5-10",
        "Acceptance on the Gaussian precision. a: proposals from the posterior; b: against the "
        "estimate that MAVM needs, with lines for exchange at K = 0, 10 and 100; c: a walk of "
        "width 0.1, with a line for a known Z. Crosses are computed rates. MAVM at K = 0 is SAVM.",
        "Acceptance rises with K for both; with a walk, exchange is close to a known Z at once.",
        to_image(figure),
    )


def histograms(results: Results) -> Figure:
    """Figure 5.2."""
    figure, axes = new_figure(3, 7, width=11.0, height=5.4)
    draws = {}
    for cell in results.cells:
        if cell.factors["part"] == HEART and results.replications(cell):
            made = results.target_draws(cell, results.replications(cell)[0])["w"]
            draws[str(cell.factors["scheme"])] = made.reshape(-1, made.shape[-1])
    reference = draws.get(NUTS, next(iter(draws.values())))
    centre, spread = reference.mean(axis=0), reference.std(axis=0)
    for k, (axis, name) in enumerate(zip(axes, NAMES, strict=True)):
        edges = np.linspace(centre[k] - 5 * spread[k], centre[k] + 5 * spread[k], _BINS)
        for scheme, values in draws.items():
            colour, dash = _LOOKS[scheme]
            height, _ = np.histogram(values[:, k], edges)
            density = height / len(values) / (edges[1] - edges[0])
            axis.plot(0.5 * (edges[1:] + edges[:-1]), density, color=colour, linestyle=dash,
                      linewidth=0.9, label=scheme)  # fmt: skip
        axis.set_title(name, fontsize=8)
        axis.set_yticks([])
        axis.tick_params(labelsize=6)
    axes[0].legend(fontsize=5)
    return Figure(
        "figure-5-2",
        "Marginals of the 21 parameters of the heart disease data, within five standard deviations "
        "of the truth (NUTS, black). Biases first, then weights. A line that is missing is "
        "elsewhere.",
        "Curves of exact Metropolis and exchange lie on that of NUTS in every panel; those of "
        "approximate methods may not.",
        to_image(figure),
    )


def efficiency(costs: pd.DataFrame) -> Figure:
    """Figure 5.11."""
    figure, axes = new_figure(1, 2, width=8.0, height=3.2)
    for axis, width in zip(axes, WIDTHS, strict=True):
        for scheme in (EXCHANGE, MAVM):
            rows = costs.reset_index()
            rows = rows[(rows["width"] == width) & (rows["scheme"] == scheme)]
            colour, dash = _LOOKS[scheme]
            axis.errorbar(rows["levels"] + 1, rows["efficiency"], rows["efficiency_error"],
                          color=colour, linestyle=dash, marker="o", markersize=3, linewidth=1,
                          label=scheme)  # fmt: skip
        axis.set(xscale="log", yscale="log", xlabel="K + 1", title=f"width {width:g}")
        axis.legend(fontsize=7)
    axes[0].set_ylabel("effective draws of J / sweep")
    return Figure(
        "figure-5-11",
        "Ising model of 10 x 30 spins: effective draws of J for each Gibbs sweep, against the "
        "number of bridges, for two widths of the walk.",
        "Exchange is above MAVM, most of all without bridges, where MAVM is SAVM.",
        to_image(figure),
    )
