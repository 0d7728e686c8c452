"""Mixture of 20 bivariate Gaussians (Nemeth et al. 2019, section 4.1 and supplement C).

HMC on the target and pseudo-extended MCMC with N pseudo-samples, in scenario (a), modes far
apart, and (b), modes that touch.  Measured against the exact moments, over independent runs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import xarray as xr

from harness.experiment.spec import (
    Cell,
    Claim,
    Experiment,
    Figure,
    Profile,
    Results,
    Table,
    Verdict,
)
from harness.fit import Fit
from harness.methods.pseudo_extended import PSEUDO_EXTENDED
from harness.methods.target import TARGET
from harness.models.gaussian_mixture import GaussianMixture, Scenario, kou_mixture
from harness.nuts import NutsSettings
from harness.paths import shipped
from harness.report.style import COLOURS, method_style, new_figure, to_image

SCENARIOS: tuple[Scenario, ...] = ("a", "b")
MOMENTS = {"x1": "E[X₁]", "x2": "E[X₂]", "x1_squared": "E[X₁²]", "x2_squared": "E[X₂²]"}
# About as large as the box of the published code, [-10, 10]^2, but round the modes: that one cuts
# through the outermost of scenario (b).
BOX = (-5.5, 15.5)

# Pseudo-samples, replications, warm-up iterations, draws.  The paper's warm-up is not stated; with
# Stan's usual 1,000 one of 20 runs of PE N=2 in scenario (a) kept a step size too large for the
# narrow modes and stuck in some of them for thousands of draws.
PROFILES: dict[Profile, tuple[tuple[int, ...], int, int, int]] = {
    "smoke": ((2,), 2, 500, 500),
    "quick": ((2, 5), 8, 5000, 10_000),
    "paper": ((2, 5, 10, 20), 20, 10_000, 50_000),
}


def grid(profile: Profile) -> tuple[Cell, ...]:
    """HMC and pseudo-extended MCMC in both scenarios; one chain a run, as published."""
    pseudo_samples, replications, warmup, draws = PROFILES[profile]
    nuts = NutsSettings(chains=1, warmup=warmup, draws=draws)
    cells = []
    for scenario in SCENARIOS:
        model = kou_mixture(scenario).model(f"mixture-{scenario}", lower=BOX[0], upper=BOX[1])
        cells.append(
            Cell(
                key=f"{scenario}-hmc",
                label=f"HMC ({scenario})",
                factors={"scenario": scenario, "method": "HMC", "N": 1},
                model=model,
                method=TARGET,
                settings={},
                nuts=nuts,
                replications=replications,
            )
        )
        cells += [
            Cell(
                key=f"{scenario}-pe-{n}",
                label=f"PE N={n} ({scenario})",
                factors={"scenario": scenario, "method": "PE", "N": n},
                model=model,
                method=PSEUDO_EXTENDED,
                settings={"num_pseudo_samples": n},
                nuts=nuts,
                replications=replications,
            )
            for n in pseudo_samples
        ]
    return tuple(cells)


def exact_moments(scenario: Scenario) -> dict[str, float]:
    """Exact first and second moments by name."""
    mixture = kou_mixture(scenario)
    values = np.concatenate([mixture.expected_x, mixture.expected_x_squared])
    return dict(zip(MOMENTS, values.tolist(), strict=True))


def measure(cell: Cell, fit: Fit) -> dict[str, float]:
    """Estimates of the moments with their standard errors, and how many modes were found."""

    def moments(parameters: xr.Dataset) -> xr.DataArray:
        x = parameters["x"]
        return xr.concat([x, x**2], dim="x_dim_0")

    value, mcse = fit.expectation(moments)
    scenario: Scenario = cell.factors["scenario"]
    found = modes_visited(kou_mixture(scenario), fit.posterior["x"].to_numpy())
    return {
        **{name: float(v) for name, v in zip(MOMENTS, value, strict=True)},
        **{f"{name}_mcse": float(e) for name, e in zip(MOMENTS, mcse, strict=True)},
        "modes_visited": found,
        "divergences": float(fit.sample_stats["diverging"].sum()),
    }


def modes_visited(mixture: GaussianMixture, x: np.ndarray) -> int:
    """Count components that got at least a fifth of their share of the draws.

    A draw belongs to the component most likely to have made it.
    """
    points = x.reshape(-1, x.shape[-1])
    squared = np.square(points[:, None, :] - mixture.mean).sum(axis=-1)
    log_share = (
        np.log(mixture.weight) - x.shape[-1] * np.log(mixture.sd) - 0.5 * squared / mixture.sd**2
    )
    share = np.bincount(log_share.argmax(axis=1), minlength=len(mixture.weight)) / len(points)
    return int(np.count_nonzero(share >= 0.2 * mixture.weight))


def rmse(results: Results) -> pd.DataFrame:
    """Root mean squared error over replications, with its standard error, per cell and moment.

    The standard error is the delta method's: with m the mean of R squared errors and s their
    standard deviation, s / sqrt(R) / (2 sqrt(m)).  ``expected`` is what the runs' own Monte
    Carlo standard errors predict, the root of their mean square: it is less noisy than the RMSE
    of few runs, and the two agree where every run reaches all modes.
    """
    rows = []
    for cell in results.cells:
        runs = results.metrics[results.metrics["cell"] == cell.key]
        truth = exact_moments(cell.factors["scenario"])
        for name in MOMENTS:
            squared = (runs[name].to_numpy() - truth[name]) ** 2
            root = float(np.sqrt(squared.mean()))
            error = float(squared.std(ddof=1) / np.sqrt(len(squared)) / (2 * root))
            rows.append(
                {
                    "cell": cell.key,
                    **cell.factors,
                    "moment": name,
                    "rmse": root,
                    "se": error,
                    "expected": float(np.sqrt((runs[f"{name}_mcse"] ** 2).mean())),
                }
            )
    return pd.DataFrame(rows)


def published() -> pd.DataFrame:
    """Table 1 of the paper: RMSE by method, number of pseudo-samples, scenario and moment."""
    frame = pd.read_csv(shipped("experiments") / "published" / "mixture_rmse.csv")
    table = frame[frame["table"] == 1].copy()
    table["N"] = table["num_pseudo_samples"].fillna(1).astype(int)
    return table.melt(
        id_vars=["method", "N", "scenario"],
        value_vars=list(MOMENTS),
        var_name="moment",
        value_name="published",
    )


def comparison(results: Results) -> pd.DataFrame:
    """Our RMSE beside the published one, a row per cell and moment, with their ratio."""
    keys = ["method", "N", "scenario", "moment"]
    joined = rmse(results).merge(published(), on=keys, how="left", validate="one_to_one")
    joined["ratio"] = joined["rmse"] / joined["published"]
    return joined


def tables(results: Results) -> list[Table]:
    """RMSE beside the published rows; cost and modes found per cell."""
    joined = comparison(results)
    off = (joined["rmse"] - joined["published"]) / joined["se"]
    joined["difference, SE"] = off.map("{:+.1f}".format)
    joined["published"] = joined["published"].map("{:.2f}".format)
    joined["by MCSE"] = joined["expected"].map("{:.2f}".format)
    joined["ours"] = [
        f"{root:.2f} ± {error:.2f}"
        for root, error in zip(joined["rmse"], joined["se"], strict=True)
    ]
    labels = {cell.key: cell.label for cell in results.cells}
    wide = pd.DataFrame(
        {
            (MOMENTS[name], column): joined[joined["moment"] == name].set_index("cell")[column]
            for name in MOMENTS
            for column in ("ours", "by MCSE", "published", "difference, SE")
        }
    ).rename(index=labels)
    shown = results.metrics[results.metrics["cell"].isin(labels)]
    grouped = shown.groupby("cell", sort=False)
    found = pd.DataFrame(
        {
            "runs": grouped.size(),
            "modes found, of 20 (mean)": grouped["modes_visited"].mean().round(1),
            "million gradients a run": (grouped["gradients"].mean() / 1e6).round(3),
            "divergences a run": grouped["divergences"].mean().round(2),
        }
    ).rename(index=labels)
    cost = pd.DataFrame(
        {
            "seconds a run": grouped["seconds"].mean().round(2),
            "microseconds a gradient": (
                1e6 * grouped["seconds"].sum() / grouped["gradients"].sum()
            ).round(2),
        }
    ).rename(index=labels)
    return [
        Table(
            "rmse",
            "Root mean squared error over the runs (± its standard error); what the runs' own "
            "Monte Carlo standard errors predict for it (too little where modes are missed); and "
            "the published one (Table 1, 20 runs of 50,000 draws), with the difference in standard "
            "errors of ours.",
            wide,
        ),
        Table("found", "What the runs found, and their gradients, warm-up included.", found),
        Table("cost", "Time that Stan spent, warm-up included, compiling not.", cost),
    ]


def figures(results: Results) -> list[Figure]:
    """The paper's Figure 2, and RMSE against the published values."""
    return [figure for figure in (scatter(results), rmse_chart(results)) if figure is not None]


def scatter(results: Results) -> Figure | None:
    """Draws over contours of the target: HMC and PE with N = 2, both scenarios (Fig. 2)."""
    shown = [cell for cell in results.cells if cell.factors["N"] <= 2]
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
    draws = min(10_000, results.cells[0].nuts.draws)
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
    """RMSE per method and moment, ours with two standard errors and the published value."""
    joined = comparison(results)
    figure, axes = new_figure(1, 2, width=10, height=3.6)
    for axis, scenario in zip(axes, SCENARIOS, strict=True):
        cells = [c for c in results.cells if c.factors["scenario"] == scenario]
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
    axes[0].legend(fontsize=8)
    return Figure(
        "rmse-chart",
        "Error of the four moments: dots ours with two standard errors, crosses published. "
        "Lower is better; the scale is logarithmic.",
        "Two charts of root mean squared error by method, one a scenario, ours and published.",
        to_image(figure),
    )


def claims(results: Results) -> list[Claim]:
    """The paper's statements about this experiment, each against our numbers.

    A claim whose cells are not all there is 'not run', as are all in the smoke profile, whose
    runs are too short to say anything.
    """
    have = {cell.key for cell in results.cells}
    stated = []
    for statement, needs, judge in CLAIMS:
        if not needs <= have:
            lacking = ", ".join(sorted(needs - have))
            stated.append(Claim(statement, f"Not in these results: {lacking}.", "not run"))
            continue
        measured, holds = judge(results)
        verdict: Verdict = "reproduced" if holds else "not reproduced"
        if holds is None or results.profile == "smoke":
            verdict = "not run"
        stated.append(Claim(statement, measured, verdict))
    return stated


def _modes(results: Results) -> tuple[str, bool]:
    modes = results.metrics.groupby("cell")["modes_visited"].mean()
    hmc, pe = float(modes["a-hmc"]), float(modes["a-pe-2"])
    return (
        f"HMC found {hmc:.1f} of 20 modes, PE N=2 {pe:.1f} ({_runs(results)}).",
        hmc < 10 and pe >= 19.5,
    )


def _scenario_b(results: Results) -> tuple[str, bool]:
    by_cell = rmse(results).pivot_table(index="cell", columns="moment", values="rmse")
    hmc_a, hmc_b, pe_b = (by_cell.loc[key] for key in ("a-hmc", "b-hmc", "b-pe-2"))
    return (
        f"RMSE of E[X₁]: HMC {hmc_a['x1']:.2f} in (a), {hmc_b['x1']:.2f} in (b); "
        f"PE N=2 {pe_b['x1']:.2f} in (b). The same order must hold for all four moments.",
        bool((pe_b < hmc_b).all() and (hmc_b < hmc_a).all()),
    )


def _more_pseudo_samples(results: Results) -> tuple[str, bool]:
    by_cell = rmse(results).pivot_table(index="cell", columns="moment", values="rmse")
    ratio = np.concatenate(
        [(by_cell.loc[f"{s}-pe-5"] / by_cell.loc[f"{s}-pe-2"]).to_numpy() for s in SCENARIOS]
    )
    return (
        f"RMSE of N=5 over that of N=2: {ratio.min():.2f} to {ratio.max():.2f} over the eight "
        f"columns ({_runs(results)}).",
        bool(np.all(ratio < 1)),
    )


def _table_one(results: Results) -> tuple[str, bool | None]:
    pe = comparison(results)
    pe = pe[pe["method"] == "PE"]
    worst = pe.sort_values("ratio").iloc[-1]
    rows = ", ".join(str(n) for n in sorted(pe["N"].unique()))
    measured = (
        f"N = {rows}; ours over published: {pe['ratio'].min():.2f} to {pe['ratio'].max():.2f}; "
        f"the largest is {worst['cell']}, {MOMENTS[worst['moment']]} ({_runs(results)})."
    )
    if results.profile != "paper":
        return f"{measured} It takes --profile paper to compare.", None
    # Beyond the factor only counts where two standard errors of ours do not reach it.
    return measured, bool(np.all(pe["rmse"] - 2 * pe["se"] <= 1.5 * pe["published"]))


def _runs(results: Results) -> str:
    cell = results.cells[0]
    return f"{len(results.replications(cell))} runs of {cell.nuts.draws:,} draws"


CLAIMS: tuple[tuple[str, set[str], Callable[[Results], tuple[str, bool | None]]], ...] = (
    (
        "In scenario (a) HMC explores only the modes near each other; PE explores all.",
        {"a-hmc", "a-pe-2"},
        _modes,
    ),
    (
        "In scenario (b) HMC does much better than in (a), yet worse than PE.",
        {"a-hmc", "b-hmc", "b-pe-2"},
        _scenario_b,
    ),
    (
        "More pseudo-samples lower the errors: N=5 below N=2 in every column.",
        {f"{s}-pe-{n}" for s in SCENARIOS for n in (2, 5)},
        _more_pseudo_samples,
    ),
    (
        "Table 1's PE rows: RMSE within a factor 1.5 of the published (or two standard errors).",
        {f"{s}-pe-{n}" for s in SCENARIOS for n in (2, 5)},
        _table_one,
    ),
)


EXPERIMENT = Experiment(
    name="mixture",
    title="Mixture of 20 bivariate Gaussians",
    source="Nemeth et al. (2019), section 4.1, Table 1 and Figure 2; means from Kou et al. (2006)",
    summary=(
        "Twenty Gaussian modes in the plane, in scenario (a) more than 15 standard deviations "
        "apart, in (b) touching. HMC is Stan's NUTS on the target itself; PE is the same NUTS on "
        "the pseudo-extended target with N pseudo-samples, each at its own sampled inverse "
        "temperature, weighted afterwards. The target lies in the box [-5.5, 15.5]², so that the "
        "tempered densities have finite mass. Truth is the closed form."
    ),
    reductions={
        "smoke": "2 runs of 500 draws, N = 2 only: it shows that everything works, not more.",
        "quick": "8 runs of 10,000 draws and N = 2, 5 (published: 20 runs of 50,000, N up to "
        "20), so expect errors about √5 times the published ones.",
        "paper": "",
    },
    grid=grid,
    measure=measure,
    tables=tables,
    figures=figures,
    claims=claims,
)
