"""Figure 3b of the paper with the exact value, and the error of every run."""

from __future__ import annotations

import numpy as np

from harness.plan.spec import Figure, Results
from harness.report.style import COLOURS, new_figure, to_image

from .._curves import curve
from .summary import exact

OURS = "ours"


def figures(results: Results) -> list[Figure]:
    """The paper's Figure 3b with the exact line, and the errors of all methods."""
    return [each for each in (figure_3b(results), error_chart(results)) if each is not None]


def figure_3b(results: Results) -> Figure | None:
    """Log Z against time: ADVI's bound on its way, then the tempered runs."""
    cells = {cell.key: cell for cell in results.cells}
    if "joint" not in cells:
        return None
    figure, axes = new_figure(1, 2, width=9.0, height=3.6)
    names = ("joint", "joint-bootstrap", "collapsed-bootstrap", "collapsed-pilot", "pe-pilot")
    shown = [name for name in names if name in cells]
    metrics = results.metrics
    for axis in axes:
        for colour, name in zip(COLOURS[1:], shown, strict=False):
            line = curve(metrics[metrics["cell"] == name])
            axis.plot(line["seconds"], line["mean"], color=colour, label=cells[name].label)
            low, high = line["mean"] - 3 * line["se"], line["mean"] + 3 * line["se"]
            axis.fill_between(line["seconds"], low, high, color=colour, alpha=0.18, linewidth=0)
        if "ais" in cells:
            ais = metrics[metrics["cell"] == "ais"]
            error = 3 * ais["log_evidence"].std(ddof=1) / np.sqrt(len(ais))
            axis.errorbar(
                ais["seconds"].mean(),
                ais["log_evidence"].mean(),
                error,
                fmt="s",
                color=COLOURS[6],
                markersize=5,
                label=cells["ais"].label,
            )
        axis.axhline(exact(), color="black", linestyle="--", linewidth=1, label="exact")
        axis.set(xscale="log", xlabel="seconds, base included")
    joint = cells["joint"]
    first = results.load(joint, results.replications(joint)[0]).tree.attrs
    iteration, elbo = np.asarray(first["elbo_iteration"]), np.asarray(first["elbo"])
    seconds = float(first["approximation_seconds"]) * iteration / iteration[-1]
    axes[0].plot(seconds, elbo, color=COLOURS[0], linewidth=1, label="ADVI's bound")
    bound = metrics[metrics["cell"] == "joint"]["bound"].mean()
    axes[0].axhline(bound, color=COLOURS[0], linestyle="-.", linewidth=1, label="its final value")
    axes[0].set(ylabel="log Z, nats", ylim=(exact() - 45, exact() + 12), title="From the bound on")
    axes[1].set(ylim=(exact() - 1.5, exact() + 1.5), title="The same, close to the exact value")
    axes[0].legend(fontsize=6.5, loc="lower right")
    return Figure(
        "figure-3b",
        "Log Z against time, as the paper's Figure 3b; curves are means over runs, bands three "
        "standard errors. ADVI's bound stays below the exact value, the tempered runs must reach "
        "the dashed line; the right panel shows how closely.",
        "Two line charts of log Z estimates against seconds with the exact value dashed.",
        to_image(figure),
    )


def error_chart(results: Results) -> Figure | None:
    """Error of every run with the error that it reports."""
    if not results.cells:
        return None
    figure, (axis,) = new_figure(width=7.5, height=3.6)
    limit = 2.0
    for place, cell in enumerate(results.cells):
        runs = results.metrics[results.metrics["cell"] == cell.key]
        error = runs["log_evidence"].to_numpy() - exact()
        beside = place + 0.5 * (np.arange(len(runs)) + 0.5) / len(runs) - 0.25
        colour = COLOURS[2] if cell.factors["origin"] == OURS else COLOURS[1]
        inside = np.abs(error) < limit
        axis.errorbar(
            beside[inside],
            error[inside],
            2 * runs["mcse"].to_numpy()[inside],
            fmt="o",
            color=colour,
            markersize=3,
            linewidth=0.8,
        )
        if not inside.all():
            note = f"{np.count_nonzero(~inside)} of {len(runs)}\noff the scale"
            axis.annotate(note, (place, -0.9 * limit), ha="center", fontsize=7)
    axis.axhline(0, color="black", linestyle="--", linewidth=1)
    axis.set(ylabel="error of log Z, nats", ylim=(-limit, limit))
    ticks = [cell.label.replace(", ", ",\n") for cell in results.cells]
    axis.set_xticks(range(len(ticks)), ticks, rotation=35, ha="right", fontsize=7)
    return Figure(
        "errors-of-runs",
        "Error of every run's log Z, with two of the standard errors that it reports; green: ours. "
        "Honest bars reach zero in about 19 of 20 runs.",
        "Chart of errors of log Z with error bars, by method.",
        to_image(figure),
    )
