"""Figures of the benchmark: error against cost."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter

from harness.plan.spec import Figure, Results
from harness.report.style import COLOURS, new_figure, to_image

from .frames import runs_of
from .grid import LABELS, SECONDS

_MARKERS = "osD^v<>PXh"


def _decades(axis: Axes, which: str) -> tuple[float, float]:
    """Return powers of ten around the points of a panel, so that ticks have short labels."""
    values = np.concatenate(
        [np.asarray(getattr(line, f"get_{which}data")(), dtype=np.float64) for line in axis.lines]
    )
    low, high = np.log10(values.min()), np.log10(values.max())
    return 10.0 ** np.floor(low - 0.05), 10.0 ** np.ceil(high + 0.05)


def figures(results: Results) -> list[Figure]:
    """Return errors of every run against its processor time, target by target."""
    cells = [cell for cell in results.cells if cell.factors["budget"] == SECONDS]
    targets = list(dict.fromkeys(cell.factors["target"] for cell in cells))
    if not targets:
        return []
    columns = min(3, len(targets))
    rows = -(-len(targets) // columns)
    figure, axes = new_figure(rows, columns, width=9.5, height=3.0 * rows + 0.8)
    for axis, target in zip(axes, targets, strict=False):
        for number, (row, label) in enumerate(LABELS.items()):
            for cell in cells:
                if (cell.factors["target"], cell.factors["method"]) != (target, row):
                    continue
                runs = runs_of(results, cell)
                error = np.maximum(runs["scaled_error"].to_numpy(dtype=np.float64), 1e-4)
                axis.plot(
                    runs["seconds"],
                    error,
                    linestyle="none",
                    marker=_MARKERS[number % len(_MARKERS)],
                    color=COLOURS[number % len(COLOURS)],
                    markersize=5,
                    alpha=0.8,
                    label=label,
                )
        axis.set(xscale="log", yscale="log", title=target)
        axis.set(xlim=_decades(axis, "x"), ylim=_decades(axis, "y"))
        for side in (axis.xaxis, axis.yaxis):
            side.set_minor_formatter(NullFormatter())
        axis.title.set_fontsize(9)
        axis.set_xlabel("processor seconds")
        axis.set_ylabel("error, standard deviations")
    for axis in axes[len(targets) :]:
        axis.set_visible(False)
    named = dict(
        pair
        for axis in axes
        for pair in zip(*reversed(axis.get_legend_handles_labels()), strict=True)
    )
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=5, fontsize=8)
    return [
        Figure(
            "errors",
            "Root mean square error of means and mode probabilities of each run, in standard "
            "deviations of one draw, against its processor time. Lower left is better; an error of "
            "0.1 is that of 100 independent draws.",
            "Scatter plots, one for each target: error of every run against processor seconds, "
            "both on logarithmic axes, with a marker and a colour for each method.",
            to_image(figure),
        )
    ]
