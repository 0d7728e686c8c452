"""Figure 4.5 of the thesis: errors of log Z against evaluations, over repeated runs."""

from __future__ import annotations

import numpy as np

from harness.plan.spec import Figure, Results
from harness.report.style import COLOURS, INK, new_figure, to_image

from .tables import repeated

_LINES = {
    "Nest,": ("nested sampling", COLOURS[0], "o"),
    "AIS 1,10,": ("AIS, 10 chains", COLOURS[1], "s"),
    "AIS 1,100,": ("AIS, 100 chains", COLOURS[2], "^"),
}


def figures(results: Results) -> list[Figure]:
    """Return the figure, if there are repeated runs."""
    table = repeated(results)
    if table.empty:
        return []
    figure, axes = new_figure(1, 3, width=9.5, height=3.2)
    for start, (label, colour, marker) in _LINES.items():
        rows = table[table.index.str.startswith(start)].sort_values("evaluations")
        if rows.empty:
            continue
        cost = rows["evaluations"]
        axes[0].plot(cost, rows["mse"], marker=marker, color=colour, label=label)
        axes[1].errorbar(
            cost, rows["bias"], 2 * rows["bias error"], marker=marker, color=colour, label=label
        )
        axes[2].plot(cost, rows["normalised"], marker=marker, color=colour, label=label)
    axes[1].axhline(0, color=INK, linewidth=0.7)
    axes[2].axhline(1, color=INK, linewidth=0.7)
    axes[0].set(title="(a)", ylabel="mean square error", yscale="log")
    axes[1].set(title="(b)", ylabel="mean error ± 2 s.e.")
    axes[2].set(title="(c)", ylabel="mean square normalised error", yscale="log")
    for axis in axes:
        axis.set(xscale="log", xlabel="evaluations of the likelihood")
    axes[0].legend(fontsize=7)
    runs = int(np.max(table["runs"]))
    return [
        Figure(
            "figure-4-5",
            f"Figure 4.5: log Z of the t distribution over {runs} runs at each point (published: "
            "100). Compare the curves at equal cost; (c) should be at 1.",
            "Three panels of errors against evaluations, a curve each for nested sampling and for "
            "annealing with 10 and with 100 chains.",
            to_image(figure),
        )
    ]
