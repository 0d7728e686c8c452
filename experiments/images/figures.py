"""Figure 4 of the paper: estimates and errors against time."""

from __future__ import annotations

import numpy as np

from harness.plan.spec import Figure, Results
from harness.report.style import COLOURS, new_figure, to_image

from .._curves import curve
from .grid import LABELS
from .summary import bounds, decoders, errors


def figures(results: Results) -> list[Figure]:
    """The paper's Figure 4, one a decoder."""
    made = (figure_4(results, decoder) for decoder in decoders(results))
    return [figure for figure in made if figure is not None]


def figure_4(results: Results, decoder: str) -> Figure | None:
    """Estimates of the log joint evidence against time, and their errors."""
    between, table = bounds(results, decoder), errors(results, decoder)
    if between is None or not len(table):
        return None
    middle = sum(between) / 2
    figure, axes = new_figure(1, 2, width=9.0, height=3.6)
    metrics = results.metrics
    for colour, (method, label) in zip(COLOURS, LABELS.items(), strict=False):
        rows = table[table["method"] == method]
        if not len(rows):
            continue
        if method == "ais":
            error = 3 * rows["se"]
            axes[0].errorbar(
                rows["seconds"],
                middle + rows["mean_error"],
                error,
                fmt="o",
                color=colour,
                markersize=4,
                label=label,
            )
            axes[1].plot(rows["seconds"], rows["rmse"], "o-", color=colour, markersize=4)
            continue
        runs = metrics[metrics["cell"] == rows.index[0]]
        line = curve(runs)
        low, high = line["mean"] - 3 * line["se"], line["mean"] + 3 * line["se"]
        axes[0].plot(line["seconds"], line["mean"], color=colour, label=label)
        axes[0].fill_between(line["seconds"], low, high, color=colour, alpha=0.18, linewidth=0)
        square = np.mean(
            [(runs[f"log_evidence_{part}"] - middle) ** 2 for part in range(1, len(line) + 1)],
            axis=1,
        )
        axes[1].plot(line["seconds"], np.sqrt(square), color=colour)
    for bound, colour, name in zip(between, ("black", "#b00020"), ("lower", "upper"), strict=True):
        axes[0].axhline(bound, color=colour, linestyle="--", linewidth=1, label=f"{name} bound")
    reach = max(3.0, 3 * float(table["rmse"].median()))
    axes[0].set(ylim=(middle - reach, middle + reach), ylabel="log joint evidence, nats")
    axes[1].axhline((between[1] - between[0]) / 2, color="black", linestyle=":", linewidth=1)
    axes[1].set(yscale="log", ylabel="RMSE, nats")
    for axis in axes:
        axis.set(xscale="log", xlabel="seconds")
    axes[0].legend(fontsize=6.5)
    return Figure(
        f"figure-4-{decoder}",
        f"Images of {decoder}: estimates of their log joint evidence against time, means over runs "
        "with three standard errors, between the stochastic bounds (dashed); and their root mean "
        "squared error from the bounds' middle, of which half the gap (dotted) is not resolved.",
        "Two charts of estimates of log joint evidence and their errors against seconds.",
        to_image(figure),
    )
