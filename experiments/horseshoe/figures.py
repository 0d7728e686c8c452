"""Figures of the horseshoe experiment: Figures 5, 9 and 10 of the paper, and the small problem."""

from __future__ import annotations

import numpy as np

from harness.plan.spec import Cell, Figure, Results
from harness.report.style import COLOURS, INK, new_figure, to_image

from .cells import HMC, NUM_SHOWN, PE_2, PE_5
from .measures import density_estimate
from .tables import common_share, data_names, density_of, exact_table, runs_of

_COLOUR = {"HMC": COLOURS[0], "full": COLOURS[1], "shared_scales": COLOURS[2]}


def figures(results: Results) -> list[Figure]:
    """What the finished cells allow."""
    found = []
    for data in data_names(results):
        if common_share(results, data) is not None:
            found.append(densities(results, data))
        marginal = marginals(results, data)
        if marginal is not None:
            found.append(marginal)
    if not exact_table(results).empty:
        found.append(scales(results))
    return found


def _colour(cell: Cell) -> str:
    return _COLOUR["HMC" if cell.factors["method"] == "HMC" else cell.factors["form"]]


def densities(results: Results, data: str) -> Figure:
    """Box plots over splits of the held-out log predictive density (Figs. 5 and 10)."""
    cells = [cell for cell in results.cells if cell.factors["data"] == data]
    figure, (axis,) = new_figure(width=8, height=0.9 + 0.36 * len(cells))
    place = np.arange(len(cells))[::-1]
    for at, cell in zip(place, cells, strict=True):
        lpd = density_of(results, data, cell.factors["row"]).to_numpy()
        colour = _colour(cell)
        axis.boxplot(
            [lpd],
            positions=[float(at)],
            orientation="horizontal",
            widths=0.55,
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": "none", "edgecolor": colour},
            medianprops={"color": colour, "linewidth": 2},
            whiskerprops={"color": colour},
            capprops={"color": colour},
        )
        axis.plot(lpd, np.full(len(lpd), at), "o", color=colour, markersize=4, alpha=0.7)
    chance = float(runs_of(results, data, cells[0].factors["row"])["base_rate"].mean())
    axis.axvline(chance, color=INK, linewidth=1, linestyle="--")
    axis.annotate(
        " class shares alone",
        (chance, len(cells) - 0.45),
        fontsize=8,
        annotation_clip=False,
        va="bottom",
        ha="center",
    )
    axis.set_yticks(place, [cell.label.split(" (")[0] for cell in cells])
    axis.set(xlabel="log predictive density per held-out observation (nats)")
    axis.set_ylim(-0.6, len(cells) - 0.4)
    return Figure(
        f"densities-{data}",
        f"{data}: held-out log predictive density over random splits, as the paper's Figures 5 "
        "and 10. A box a method, a dot a split; further right is better. All methods see the same "
        "splits and have spent the same likelihood gradients; green shares its scales between "
        "pseudo-samples, as published.",
        f"Box plots of held-out log predictive density by method on the {data} data.",
        to_image(figure),
    )


def marginals(results: Results, data: str) -> Figure | None:
    """Marginal densities of a few coefficients on the first split (Fig. 9)."""
    cells = [
        cell
        for cell in results.cells
        if cell.factors["data"] == data and cell.factors["row"] in (HMC.key, PE_2.key, PE_5.key)
    ]
    if not cells:
        return None
    genes = cells[0].extras["shown"]
    figure, axes = new_figure(len(cells), len(genes), width=9.6, height=0.6 + 1.15 * len(cells))
    for i, cell in enumerate(cells):
        first = results.replications(cell)[0]
        beta = results.load(cell, first).posterior["beta"]
        draws = beta.transpose("beta_dim_0", ...).to_numpy().reshape(len(genes), -1)
        for j, (gene, values) in enumerate(zip(genes, draws, strict=True)):
            axis = axes[i * len(genes) + j]
            grid, density = density_estimate(values)
            axis.fill_between(grid, density / density.max(), color=_colour(cell), alpha=0.5)
            axis.axvline(0, color=INK, linewidth=0.6)
            axis.set_yticks([])
            axis.tick_params(labelsize=7)
            axis.locator_params(axis="x", nbins=3)
            axis.set_ylim(0, 1.08)
            if i == 0:
                kind = "random" if j < NUM_SHOWN else "top"
                axis.set_title(f"gene {gene} ({kind})", fontsize=8)
            if j == 0:
                axis.set_ylabel(cell.label.split(" (")[0], fontsize=8)
            # One scale a column, so that methods can be compared.
            axis.sharex(axes[j]) if i else None
    return Figure(
        f"marginals-{data}",
        f"{data}: marginal posterior densities of coefficients on the first split, each scaled to "
        "its highest point, as the paper's Figure 9: three coefficients drawn at random and the "
        "three whose genes correlate most with the class. A spike at zero is a coefficient that "
        "is turned off.",
        f"Small density plots of six coefficients by method on the {data} data.",
        to_image(figure),
    )


def scales(results: Results) -> Figure:
    """Estimates of the small problem's scale against the exact values of either form."""
    table = exact_table(results).iloc[::-1]
    figure, (axis,) = new_figure(width=7, height=0.9 + 0.36 * len(table))
    place = np.arange(len(table))
    axis.axvline(float(table["posterior"].iloc[0]), color=INK, linewidth=1.2, label="posterior")
    axis.plot(table["this form"], place, "x", color=COLOURS[1], markersize=8, label="this form")
    axis.errorbar(
        table["estimate"],
        place,
        xerr=2 * table["mcse"],
        fmt="o",
        color=COLOURS[0],
        label="measured",
    )
    axis.set_yticks(place, table["method"])
    axis.set_ylim(-0.6, len(table) - 0.4)
    axis.set(xlabel="E[τ / (τ₀ + τ)] on six observations of one predictor")
    axis.legend(fontsize=8)
    return Figure(
        "scales",
        "What weighted draws give for the global scale (dots, two standard errors), against the "
        "posterior's exact value (line) and what each form has by its derivation (crosses). "
        "Sharing scales between pseudo-samples moves them off the line.",
        "Dot chart of the estimated global scale by method, with exact values.",
        to_image(figure),
    )
