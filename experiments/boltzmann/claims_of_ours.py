"""Judges of our own claims on the pseudo-extended half, for us and against us."""

from __future__ import annotations

from harness.experiment.efficiency import Efficiency, with_interval
from harness.plan.effects import Decision, Effect, Undecided, all_hold, any_holds, error_ratio
from harness.plan.spec import Results

from .claims_shared import Judged, one_cell, rmse_of, weighted_errors
from .curves import efficiency_of, of_family, of_half, ratio_at_equal_cost, runs_of
from .tables import EVIDENCE

OUR_FORMS = ("fold", "collapsed CT", "collapsed PE", "PE pilot")


def _rate(results: Results, family: str) -> float:
    cell = one_cell(results, family)
    return float("nan") if cell is None else efficiency_of(results, cell).per_second


def ten_times(results: Results) -> Judged:
    """Judge whether our best row has at least 10 times the neff/s of PE N=2."""
    paper = _rate(results, "PE")
    cells = [one_cell(results, family) for family in OUR_FORMS]
    rates = {cell.label: efficiency_of(results, cell) for cell in cells if cell is not None}
    label, rate = max(rates.items(), key=lambda pair: pair[1].per_second)
    collapsed = _rate(results, "collapsed CT")
    return (
        f"Best: {label}, {_per_second(rate)} a second; collapsed CT, without the modes, "
        f"{collapsed:,.0f}; PE N=2 as in the paper {paper:.1f} ({rate.per_second / paper:.0f} and "
        f"{collapsed / paper:.0f} times), with a Gaussian base {_rate(results, 'PE base'):.1f}.",
        rate.per_second_interval[0] >= 10 * paper
        or _open(rate.per_second_interval[1] >= 10 * paper),
    )


def fold_ahead(results: Results) -> Judged:
    """Judge whether the folded target has more neff/s than parallel tempering."""
    groups = [of_family(results, "PE", family) for family in ("fold", "PT")]
    fold, rival = (efficiency_of(results, cells[0]) for cells in groups)
    # What limits either: how far a gradient goes, and how long it takes.
    runs = [runs_of(results, cells) for cells in groups]
    cost = [1e6 * each["time"].mean() / each["work"].mean() for each in runs]
    return (
        f"neff/s for E[x]: folded {_per_second(fold)}, parallel tempering "
        f"{_per_second(rival)}; per 1,000 gradients {fold.per_kilogradient:.2f} and "
        f"{rival.per_kilogradient:.2f}, at {cost[0]:.1f} and {cost[1]:.1f} μs each.",
        fold.per_second_interval[0] > rival.per_second_interval[1]
        or _open(fold.per_second_interval[1] > rival.per_second_interval[0]),
    )


def _open(overlap: bool) -> Decision:
    """Undecided where intervals overlap, else that the claim does not hold."""
    return Undecided("more runs: the intervals overlap") if overlap else False


def _per_second(rate: Efficiency) -> str:
    return with_interval(rate.per_second, rate.per_second_interval)


def fold_behind(results: Results) -> Judged:
    """Judge whether parallel tempering is ahead of the folded target on E[xx′] and log Z."""
    fold, rival = (one_cell(results, family) for family in ("fold", "PT"))
    ratios = {
        name: error_ratio(
            *(weighted_errors(results, cell, key) for cell in (fold, rival) if cell is not None)
        )
        for name, key in (("E[xx′]", "second"), ("log Z", "log_z"))
    }
    told = ", ".join(f"{name} {ratio.told()}" for name, ratio in ratios.items())
    return (
        f"RMSE × √seconds, folded over parallel tempering: {told}.",
        all_hold(ratio.lies(above=1, of=2) for ratio in ratios.values()),
    )


def collapsed_behind(results: Results) -> Judged:
    """Judge whether parallel tempering has more neff/s than collapsed CT."""
    collapsed, rival = _rate(results, "collapsed CT"), _rate(results, "PT")
    return (
        f"neff/s for E[x]: parallel tempering {rival:,.0f}, collapsed CT {collapsed:,.0f}: "
        f"{rival / collapsed:.1f} times.",
        rival > collapsed,
    )


def base_alone(results: Results) -> Judged:
    """Judge whether the base alone has a lower error of E[x] than PE N=2."""
    runs = runs_of(results, of_half(results, "PE"))
    base = float(runs["base_mean"].dropna().iloc[0])
    paper, better = one_cell(results, "PE"), []
    for cell in of_half(results, "PE"):
        if rmse_of(results, cell, "mean") < base:
            better.append(cell.label)
    return (
        f"RMSE of E[x]: base {base:.3f}, PE N=2 {rmse_of(results, paper, 'mean'):.3f}; below the "
        f"base: {', '.join(better) or 'none'}.",
        rmse_of(results, paper, "mean") > base,
    )


def evidence(results: Results) -> Judged:
    """Judge whether a pseudo-extended form has lower errors of log Z than both tempered ones."""
    families = [name for name in EVIDENCE[:5] if of_family(results, "PE", name)]
    error = {family: rmse_of(results, one_cell(results, family), "log_z") for family in families}
    shown = ", ".join(f"{family} {value:.2f}" for family, value in error.items())
    pe, ct = ([f for f in families if kind in f] for kind in ("PE", "CT"))
    # One pseudo-extended form that is ahead of both tempered ones is enough.
    each = {form: [_relative_error(results, form, other) for other in ct] for form in pe}
    decisions = any_holds(
        all_hold(
            ratio if isinstance(ratio, Undecided) else ratio.lies(below=1, of=len(pe) * len(ct))
            for ratio in ratios
        )
        for ratios in each.values()
    )
    return f"RMSE of log Z of whole runs: {shown}; judged at equal gradients.", decisions


def _relative_error(results: Results, form: str, other: str) -> Effect | Undecided:
    pair = of_family(results, "PE", form), of_family(results, "PE", other)
    return ratio_at_equal_cost(results, pair, "log_z", "work")
