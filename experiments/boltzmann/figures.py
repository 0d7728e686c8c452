"""Figures of both halves."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from harness.arrays import FloatArray
from harness.plan.spec import Cell, Figure, Results
from harness.report.style import COLOURS, INK, new_figure, to_image

from .curves import PAPER_CT, Curve, curve, efficiency_of, of_family, of_half, runs_of
from .instances import exact_relaxation
from .measure import ERRORS, true_covariance
from .tables import CT_HALVES, PE_HALVES, suffix_of

COLOUR = {
    "PE": COLOURS[0],
    "PE base": COLOURS[5],
    "CT": COLOURS[1],
    "joint CT": COLOURS[1],
    "joint HMC": COLOURS[4],
    "Gibbs CT": COLOURS[2],
    "ST": COLOURS[3],
    "AIS": COLOURS[6],
    "H-AIS": "#7a7a7a",
    "HMC": "#9a9a9a",
    "PT": COLOURS[4],
    "collapsed CT": "#4b0082",
    "fold": "#8b1a1a",
    "extended Hamiltonian": "#b8860b",
    "flat Gibbs CT": "#2f4f4f",
    "flat joint HMC": "#556b2f",
}
_OURS_LINE, _LINE = (0, (4, 2)), "solid"
_SHOWN = 10_000
_PLOTTED = ("H-AIS", "ST", "Gibbs CT", "joint HMC")
_IN_PROJECTION = ("HMC", "PE", "AIS", "ST", "CT", "collapsed CT")
_IN_CURVES = ("PE", "PE base", "CT", "ST", "AIS", "Gibbs CT", "collapsed CT", "PT", "fold")


def figures(results: Results) -> list[Figure]:
    """All figures for which there are results."""
    made: list[Figure | None] = []
    for half, whose in PE_HALVES.items():
        suffix = suffix_of(half)
        made += [
            projection(results, half, f"projection{suffix}", whose),
            boxes(results, half, f"boxes{suffix}", whose),
            scaling(results, half, f"scaling{suffix}", whose),
            efficiency_chart(results, half, f"efficiency{suffix}", whose),
            cost_curves(results, half, f"cost{suffix}", whose),
        ]
    for half, whose in CT_HALVES.items():
        suffix = suffix_of(half)
        made += [
            relative_curves(results, half, f"relative{suffix}", whose),
            pooled_curves(results, half, f"relative-pooled{suffix}", whose),
            exact_projection(results, half, f"exact{suffix}", whose),
        ]
    return [figure for figure in made if figure is not None]


def directions(cell: Cell) -> FloatArray:
    """Two leading eigenvectors of the exact covariance, shape (d, 2), their largest entry > 0."""
    vector = np.linalg.eigh(true_covariance(cell.model.truth))[1][:, :-3:-1]
    sign = np.sign(vector[np.abs(vector).argmax(axis=0), [0, 1]])
    return np.asarray(vector * sign)


def projection(results: Results, half: str, name: str, whose: str) -> Figure | None:
    """Draws on the two leading directions, exact ones first (Figure 3 of Nemeth et al.)."""
    cells = []
    for family in _IN_PROJECTION:
        mine = [cell for cell in of_family(results, half, family) if cell.factors["N"] <= 5]
        mine = mine or of_family(results, half, family)
        cells += mine and [max(mine, key=lambda cell: cell.factors["N"])]
    if not cells:
        return None
    plane = directions(cells[0])
    exact = exact_relaxation(cells[0].model).draw(_SHOWN, np.random.default_rng(0)) @ plane
    panels = [("Exact draws", exact, INK)]
    for cell in cells:
        fit = results.load(cell, results.replications(cell)[0])
        x = fit.posterior["x"].transpose("chain", "draw", ...).to_numpy().reshape(-1, len(plane))
        step = -(-len(x) // _SHOWN)
        panels.append((cell.label, x[::step] @ plane, COLOUR[cell.factors["method"]]))
    columns = 4
    rows = -(-len(panels) // columns)
    figure, axes = new_figure(rows, columns, width=2.5 * columns, height=2.6 * rows)
    low, high = exact.min(axis=0) - 1, exact.max(axis=0) + 1
    for axis, (label, points, colour) in zip(axes, panels, strict=False):
        axis.plot(points[:, 0], points[:, 1], ".", markersize=1.2, color=colour, alpha=0.3)
        axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        axis.set_title(label, fontsize=9)
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    for k, axis in enumerate(axes[: len(panels)]):
        axis.set_xlabel("first direction" if k // columns == rows - 1 else "", fontsize=8)
        axis.set_ylabel("second direction" if k % columns == 0 else "", fontsize=8)
    return Figure(
        name,
        f"One run's draws of each method{whose} on the two leading directions of the exact "
        "covariance (Figure 3 of the paper). Each clump of the exact draws is a group of modes: "
        "look for clumps that are missing, or too dense. Draws of weighted methods are resampled, "
        "so that few distinct points show few effective ones.",
        "Scatter plots of projected draws: exact draws with several clumps, and each method.",
        to_image(figure),
    )


def boxes(results: Results, half: str, name: str, whose: str) -> Figure | None:
    """Box plots of the log RMSE of both moments (Figure 4 of Nemeth et al.)."""
    cells = of_half(results, half)
    if not cells:
        return None
    figure, axes = new_figure(2, 1, width=9, height=6.6)
    for axis, key in zip(axes, ("mean", "second"), strict=True):
        samples = [np.log10(runs_of(results, [cell])[key].to_numpy()) for cell in cells]
        drawn = axis.boxplot(samples, widths=0.6, patch_artist=True)
        for box, cell in zip(drawn["boxes"], cells, strict=True):
            box.set_facecolor("#f6c69a" if cell.factors["ours"] else "#a9cbe6")
        base = runs_of(results, cells).get(f"base_{key}")
        if base is not None and base.notna().any():
            axis.axhline(np.log10(base.dropna().iloc[0]), color=INK, linewidth=1, linestyle=":")
        axis.set_ylabel(f"log₁₀ RMSE of {ERRORS[key]}", fontsize=8)
        axis.set_xticks(range(1, len(cells) + 1), [""] * len(cells))
    labels = [cell.label.removesuffix(" (ours)") for cell in cells]
    axes[1].set_xticks(range(1, len(cells) + 1), labels, rotation=45, ha="right", fontsize=7)
    return Figure(
        name,
        f"Errors of the first and second moments over runs{whose} (Figure 4 of the paper): "
        "rows of the paper blue, ours orange; dotted, the base alone without any sampling. Lower "
        "is better, one unit is a factor 10; runs do not cost the same.",
        "Box plots of the logarithm of the error by method, for the first and second moments.",
        to_image(figure),
    )


def scaling(results: Results, half: str, name: str, whose: str) -> Figure | None:
    """MSE times computing time against N (Figure 8 of Nemeth et al.)."""
    cells = sorted(of_family(results, half, "PE"), key=lambda cell: cell.factors["N"])
    if len(cells) < 2:
        return None
    figure, axes = new_figure(1, 2, width=8, height=3)
    number = [cell.factors["N"] for cell in cells]
    for axis, key in zip(axes, ("mean", "second"), strict=True):
        for cost, unit, colour in (("time", "seconds", COLOURS[0]), ("work", "Mgrad", COLOURS[1])):
            value = [
                float((runs[key] ** 2).mean() * runs[cost].mean())
                for runs in (runs_of(results, [cell]) for cell in cells)
            ]
            value = [v / 1e6 if cost == "work" else v for v in value]
            axis.plot(number, value, "o-", color=colour, label=f"MSE × {unit}")
        axis.set(yscale="log", xlabel="N", title=ERRORS[key])
        axis.set_xticks(number)
    axes[0].set_ylabel("mean squared error × cost")
    axes[0].legend(fontsize=8)
    return Figure(
        name,
        f"Mean squared error times cost against the number of pseudo-samples{whose} (Figure 8 of "
        "the paper; gradients, which are not disturbed by other work on the machine, beside "
        "seconds). The paper has the minimum between N = 2 and 5.",
        "Two line charts of mean squared error times cost against N.",
        to_image(figure),
    )


def efficiency_chart(results: Results, half: str, name: str, whose: str) -> Figure | None:
    """Equivalent draws a second and per 1,000 gradients, with bootstrap intervals."""
    cells = of_half(results, half)
    if not cells:
        return None
    found = [(efficiency_of(results, cell), cell) for cell in cells]
    found.sort(key=lambda pair: pair[0].per_second)
    figure, axes = new_figure(1, 2, width=9, height=0.9 + 0.24 * len(found))
    for place, (rate, cell) in enumerate(found):
        colour = COLOURS[1] if cell.factors["ours"] else COLOURS[0]
        for axis, value, ends in (
            (axes[0], rate.per_second, rate.per_second_interval),
            (axes[1], rate.per_kilogradient, rate.per_kilogradient_interval),
        ):
            axis.plot(ends, [place, place], color=colour, linewidth=2, alpha=0.5)
            axis.plot(value, place, "o", color=colour, markersize=5)
    for axis, label in zip(axes, ("second", "1,000 gradients"), strict=True):
        axis.set(xscale="log", xlabel=f"equivalent independent draws per {label}")
        axis.set_yticks(range(len(found)), [""] * len(found))
    axes[0].set_yticks(range(len(found)), [cell.label for _, cell in found], fontsize=7)
    return Figure(
        name,
        f"Efficiency for E[x]{whose}, with 5% and 95% points over bootstrap samples of the runs: "
        "rows of the paper blue, ours orange. Further right is better, a grid line a factor 10; "
        "neighbours whose bars overlap are not to be ranked.",
        "Dot chart of equivalent draws per second and per thousand gradients by method.",
        to_image(figure),
    )


def cost_curves(results: Results, half: str, name: str, whose: str) -> Figure | None:
    """RMSE against gradients and seconds, on the one instance."""
    families = {}
    for family in _IN_CURVES:
        mine = of_family(results, half, family)
        if mine:
            families[family] = [min(mine, key=lambda cell: cell.factors["N"])]
    if not families:
        return None
    image = _panels(results, families, ("mean", "second", "log_z"), relative=False)
    return Figure(
        name,
        f"Error against cost{whose}, gradients of the target above and seconds below, pilot and "
        "warm-up included, after growing shares of each run's draws. Bands are three standard "
        "errors; dashed lines are ours. Lower and further left is better.",
        "Six charts of error against cost, one an estimate and kind of cost, a line a method.",
        image,
    )


def relative_curves(results: Results, half: str, name: str, whose: str) -> Figure | None:
    """Errors relative to the base's against cost (Figure 2 of Graham and Storkey)."""
    names = dict.fromkeys(cell.factors["method"] for cell in of_half(results, half))
    if not names:
        return None
    families = {family: of_family(results, half, family) for family in names}
    image = _panels(results, families, PAPER_CT, relative=True)
    number = len({cell.factors["instance"] for cell in of_half(results, half)})
    return Figure(
        name,
        f"Errors relative to the base's{whose} against cost, averaged over runs and {number} "
        f"instance{'s' if number > 1 else ''}, bands of three standard errors "
        "(Figure 2 of the paper, which has seconds, and whose line AIS is H-AIS). Below the dotted "
        "line sampling improves on the base. A point of AIS and H-AIS is a number of temperatures, "
        "of the others a share of each run's draws. The paper has both forms of continuous "
        "tempering lowest everywhere.",
        "Six charts of relative error against cost, one an estimate and kind of cost.",
        image,
    )


def pooled_curves(results: Results, half: str, name: str, whose: str) -> Figure | None:
    """The same as the authors' loop pools chains, which is what their figure shows."""
    families = {family: of_family(results, half, family) for family in _PLOTTED}
    families = {family: cells for family, cells in families.items() if cells}
    runs = runs_of(results, [cell for cells in families.values() for cell in cells])
    if "pooled_mean" not in runs or runs["pooled_mean"].isna().all():
        return None
    image = _panels(results, families, PAPER_CT, relative=True, pooled=True)
    batch = max(cell.batch for cells in families.values() for cell in cells)
    return Figure(
        name,
        f"The paper's rows{whose} with chains pooled as in the authors' program, not a comparison "
        "of methods: its replication r, from 0, of ST and of continuous tempering takes 10 + 9r "
        f"chains of {10 * batch}, {10 + 9 * (batch - 1) / 2:g} on average, at the cost of 10, and "
        "replications share most of their chains, so that bands are too narrow. Particles of H-AIS "
        "are divided properly and errors are those of the figure before. This is how the "
        "published curves come about.",
        "Six charts of relative error against cost, chains pooled beyond their replication.",
        image,
    )


def _panels(
    results: Results,
    families: dict[str, list[Cell]],
    keys: tuple[str, ...],
    *,
    relative: bool,
    pooled: bool = False,
) -> bytes:
    figure, axes = new_figure(2, len(keys), width=3.4 * len(keys), height=6.4)
    for row, (cost, unit) in enumerate((("work", "gradients"), ("time", "seconds"))):
        for column, key in enumerate(keys):
            axis = axes[row * len(keys) + column]
            for family, cells in families.items():
                found = curve(results, cells, key, cost, relative=relative, pooled=pooled)
                _draw_curve(axis, found, family, ours=bool(cells[0].factors["ours"]))
            axis.set(xscale="log", yscale="log", xlabel=unit)
            if relative:
                axis.axhline(1, color=INK, linewidth=1, linestyle=":")
            if row == 0:
                axis.set_title(ERRORS[key], fontsize=10)
        axes[row * len(keys)].set_ylabel("error relative to the base's" if relative else "RMSE")
    lines, labels = axes[0].get_legend_handles_labels()
    for axis in axes[1:]:
        for line, label in zip(*axis.get_legend_handles_labels(), strict=True):
            if label not in labels:
                lines.append(line)
                labels.append(label)
    figure.legend(lines, labels, fontsize=8, loc="outside lower center", ncols=5, frameon=False)
    return to_image(figure)


def _draw_curve(axis: Axes, found: Curve, family: str, *, ours: bool) -> None:
    if not found.cost.size:
        return
    colour = COLOUR[family]
    label = f"{family} (ours)" if ours else family
    low = np.maximum(found.error - 3 * found.se, 0.2 * found.error)
    high = found.error + 3 * found.se
    if len(found.cost) == 1:
        axis.errorbar(
            found.cost, found.error, [found.error - low, high - found.error],
            fmt="s", color=colour, markersize=4, label=label,
        )  # fmt: skip
        return
    axis.fill_between(found.cost, low, high, color=colour, alpha=0.12, linewidth=0)
    axis.plot(
        found.cost, found.error, "o", color=colour, markersize=3,
        linestyle=_OURS_LINE if ours else _LINE, linewidth=1.3, label=label,
    )  # fmt: skip


def exact_projection(results: Results, half: str, name: str, whose: str) -> Figure | None:
    """Exact draws of one instance (Figure 5 of Graham and Storkey)."""
    cells = of_half(results, half)
    if not cells:
        return None
    plane = directions(cells[0])
    points = exact_relaxation(cells[0].model).draw(_SHOWN, np.random.default_rng(0)) @ plane
    figure, (axis,) = new_figure(1, 1, width=4.6, height=4.2)
    axis.plot(points[:, 0], points[:, 1], ".", markersize=1.5, color=COLOURS[0], alpha=0.35)
    axis.set(xlabel="first direction", ylabel="second direction")
    axis.set_title(f"{_SHOWN:,} exact draws, instance {cells[0].factors['instance']}", fontsize=9)
    return Figure(
        name,
        f"Exact draws of the first instance{whose} on the two leading directions of its covariance "
        "(Figure 5 of the paper, of another instance, on eigenvectors of its generator). "
        "Even in two of its dimensions several modes are apart.",
        "Scatter plot of exact draws in several clumps.",
        to_image(figure),
    )
