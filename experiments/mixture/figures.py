"""Figures of the mixture experiment: the paper's 2 and 7, errors, and errors at equal cost."""

from __future__ import annotations

import numpy as np

from harness.models.gaussian_mixture import kou_mixture
from harness.plan.effects import rmse
from harness.plan.spec import Cell, Figure, Results
from harness.report.style import COLOURS, method_style, new_figure, to_image

from .compare import FIRST, SECOND, Unit, comparison
from .frames import at_equal_cost, cells_of, runs_of
from .grid import OURS, SCENARIOS, TABLE_1
from .measures import MOMENTS, exact_moments, scenario_of

_CURVES = {
    "pe-2": "PE N=2",
    "pe-5": "PE N=5",
    "ram": "RAM",
    "pt-hmc": "PT, 32 ladders",
    "smc": "the pilot alone",
    "ct": "collapsed CT",
    "fold": "folded target",
    "fold-is": "importance sampling",
}
_STYLES = ("o-", "s-", "^--", "v--", "D", "o-", "s-", "x--")


def figures(results: Results) -> list[Figure]:
    """Draw the paper's Figures 2 and 7, RMSE against the published values, and against cost."""
    drawn = [scatter(results), rmse_chart(results), error_times_cost(results)]
    if cells_of(results, OURS):
        drawn.append(equal_cost(results))
    return [figure for figure in drawn if figure is not None]


def scatter(results: Results) -> Figure | None:
    """Draws over contours of the target: HMC and PE with N = 2, both scenarios (Fig. 2)."""
    shown = [c for c in cells_of(results, TABLE_1) if c.key[2:] in ("hmc", "pe-2")]
    if not shown:
        return None
    figure, axes = new_figure(1, len(shown), width=3 * len(shown), height=3.4)
    side = np.linspace(-1, 11, 241)
    points = np.stack(np.meshgrid(side, side), axis=-1)
    for axis, cell in zip(axes, shown, strict=True):
        mixture = kou_mixture(cell.factors["scenario"])
        log_density = mixture.log_density(points)
        first = results.replications(cell)[0]
        x = results.load(cell, first).posterior["x"].to_numpy()[0, :10_000]
        colour = method_style(cell.method.name).colour
        axis.plot(x[:, 0], x[:, 1], ".", markersize=1.5, color=colour, alpha=0.35, zorder=2)
        levels = log_density.max() - np.array([9.0, 6.0, 3.0, 1.0])
        axis.contour(
            side,
            side,
            log_density,
            levels,
            colors="black",
            linewidths=0.6,
            linestyles="solid",
            zorder=3,
        )
        axis.set(xlim=(-1, 11), ylim=(-1, 11), aspect="equal", xlabel="x₁", ylabel="x₂")
        axis.set_title(cell.label, fontsize=10)
    draws = min(10_000, shown[0].nuts.draws)
    return Figure(
        "scatter",
        f"The first {draws:,} draws of one run over contours of the target, as the paper's "
        "Figure 2. Every mode should carry draws: HMC stays in the few modes near where it "
        "starts in scenario (a), pseudo-extended MCMC reaches all twenty.",
        "Scatter plots of draws over the twenty modes: HMC and pseudo-extended MCMC with two "
        "pseudo-samples, in scenarios (a) and (b).",
        to_image(figure),
    )


def rmse_chart(results: Results) -> Figure:
    """RMSE per method of Table 1 and moment, ours with two standard errors and the published."""
    joined = comparison(results)
    figure, axes = new_figure(1, 2, width=10, height=3.6)
    for axis, scenario in zip(axes, SCENARIOS, strict=True):
        cells = [c for c in cells_of(results, TABLE_1) if c.factors["scenario"] == scenario]
        for colour, (name, label) in zip(COLOURS, MOMENTS.items(), strict=False):
            rows = joined[(joined["scenario"] == scenario) & (joined["moment"] == name)]
            place = np.arange(len(cells)) + 0.16 * (list(MOMENTS).index(name) - 1.5)
            error = np.minimum(2 * rows["se"], 0.9 * rows["rmse"])
            axis.errorbar(
                place, rows["rmse"], error, fmt="o", color=colour, markersize=5, label=label
            )
            axis.plot(place, rows["published"], "x", color=colour, markersize=7)
        axis.plot([], [], "x", color="black", label="published")
        axis.set(yscale="log", ylabel="RMSE", title=f"Scenario ({scenario})")
        axis.set_xticks(range(len(cells)), [c.label.split(" (")[0] for c in cells])
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8)
    return Figure(
        "rmse-chart",
        "Error of the four moments: dots ours with two standard errors, crosses published. "
        "Lower is better; the scale is logarithmic.",
        "Two charts of root mean squared error by method, one a scenario, ours and published.",
        to_image(figure),
    )


_UNITS: dict[Unit, str] = {"seconds": "seconds", "evaluations": "evaluations"}


def error_times_cost(results: Results) -> Figure | None:
    """Mean squared error times cost against N (Fig. 7), in seconds and in evaluations."""
    cells = [c for c in cells_of(results, TABLE_1) if c.factors["method"] == "PE"]
    if len({c.factors["N"] for c in cells}) < 2:
        return None
    figure, axes = new_figure(2, 2, width=9, height=6.2)
    for place, axis in enumerate(axes):
        scenario, unit = SCENARIOS[place % 2], tuple(_UNITS)[place // 2]
        mine = [c for c in cells if c.factors["scenario"] == scenario]
        numbers = [c.factors["N"] for c in mine]
        for colour, names, label in (
            (COLOURS[0], FIRST, "first moments"),
            (COLOURS[1], SECOND, "second moments"),
        ):
            found = [_cost_of_error(results, cell, names, unit) for cell in mine]
            value, error = (list(each) for each in zip(*found, strict=True))
            axis.errorbar(numbers, value, error, fmt="o-", color=colour, label=label)
        axis.set(
            xscale="log",
            yscale="log",
            xlabel="pseudo-samples N",
            ylabel=f"MSE × {_UNITS[unit]}",
            title=f"Scenario ({scenario})",
        )
        axis.set_xticks(numbers, [str(n) for n in numbers])
        axis.minorticks_off()
    axes[0].legend(fontsize=8)
    return Figure(
        "error-times-cost",
        "Mean squared error times cost of a run against the number of pseudo-samples, with two "
        "standard errors: in seconds, as the paper's Figure 7, and in evaluations of the target's "
        "density with its gradient, one for each pseudo-sample, which do not depend on the "
        "machine. The lowest point is the best N at equal cost.",
        "Four charts of mean squared error times cost by number of pseudo-samples: by seconds and "
        "by evaluations, in scenarios (a) and (b).",
        to_image(figure),
    )


def _cost_of_error(
    results: Results, cell: Cell, names: tuple[str, ...], unit: Unit
) -> tuple[float, float]:
    """Mean squared error times mean cost, and two standard errors, cut off above zero."""
    truth, runs = exact_moments(scenario_of(cell.key)), runs_of(results, cell)
    error = rmse(np.stack([runs[name] - truth[name] for name in names], axis=1))
    value = error.value**2 * float(runs[unit].mean())
    # On a logarithmic axis a bar must not reach zero.
    return value, min(4 * error.log_se, 0.9) * value


def equal_cost(results: Results) -> Figure:
    """RMSE of E[x] against seconds and against evaluations, by method."""
    frame = at_equal_cost(results)
    figure, axes = new_figure(2, 2, width=9, height=7)
    for column, scenario in enumerate(SCENARIOS):
        for row, (cost, label) in enumerate(
            (("seconds", "seconds"), ("evaluations", "evaluations of the target"))
        ):
            axis = axes[2 * row + column]
            for place, (key, name) in enumerate(_CURVES.items()):
                curve = frame[frame["cell"] == f"{scenario}-{key}"].sort_values("share")
                if key == "smc":  # a pilot has no beginning that is a result
                    curve = curve[curve["share"] == 1]
                if curve.empty:
                    continue
                axis.plot(
                    curve[cost],
                    curve["rmse"],
                    _STYLES[place],
                    color=COLOURS[place % len(COLOURS)],
                    markersize=5,
                    label=name,
                )
            axis.set(xscale="log", yscale="log", xlabel=label, ylabel="RMSE of E[x]")
            axis.set_title(f"Scenario ({scenario})", fontsize=10)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)
    return Figure(
        "equal-cost",
        "RMSE of E[x] after a sixteenth, a quarter and all of each run, against seconds and "
        "against evaluations of the target, warm-up and pilot included. At equal cost lower is "
        "better; a straight line of slope -1/2 is what independent draws would give.",
        "Four charts of root mean squared error against cost, a line a method.",
        to_image(figure),
    )
