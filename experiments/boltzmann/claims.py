"""What the papers say about this experiment, and what we expect beyond them, one line each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from harness.arrays import FloatArray
from harness.experiment.efficiency import Efficiency, with_interval
from harness.plan.claims import judged
from harness.plan.effects import (
    Decision,
    Effect,
    Undecided,
    all_hold,
    any_holds,
    error_ratio,
)
from harness.plan.spec import Cell, Claim, Results

from .curves import (
    PAPER_CT,
    efficiency_of,
    error_of,
    of_family,
    of_half,
    ratio_at_equal_cost,
    runs_of,
)
from .measure import ERRORS
from .tables import EVIDENCE

Judged = tuple[str, Decision]
OUR_FORMS = ("fold", "collapsed CT", "collapsed PE", "PE pilot")


def claims(results: Results) -> list[Claim]:
    """Judge every claim whose cells are there."""
    stated = []
    for claim, half, needs, judge in CLAIMS:
        lacking = [name for name in needs if not of_family(results, half, name)]
        stated.append(judged(results, claim, lacking, partial(_of_runs, judge, results, half)))
    return stated


def _of_runs(judge: Callable[[Results], Judged], results: Results, half: str) -> Judged:
    measured, holds = judge(results)
    return f"{measured} {_runs(results, half)}", holds


def _runs(results: Results, half: str) -> str:
    cells = of_half(results, half)
    number = sorted({len(results.replications(cell)) for cell in cells})
    instances = len({cell.factors["instance"] for cell in cells})
    runs = f"{number[0]}" if len(number) == 1 else f"{number[0]} to {number[-1]}"
    return f"({runs} runs a method, {instances} instance{'s' if instances > 1 else ''}.)"


def _one(results: Results, family: str, number: int | None = None, half: str = "PE") -> Cell | None:
    """Cell of a family with this N; with none given, the one with the smallest."""
    cells = sorted(of_family(results, half, family), key=lambda cell: cell.factors["N"])
    if number is None:
        return cells[0] if cells else None
    return next((cell for cell in cells if cell.factors["N"] == number), None)


def _rmse(results: Results, cell: Cell | None, key: str) -> float:
    return float("nan") if cell is None else error_of(results, cell, key)[0]


def _both(results: Results, cell: Cell | None) -> str:
    pair = (_rmse(results, cell, key) for key in ("mean", "second"))
    return " and ".join(f"{value:.2f}" for value in pair)


def _ratio(results: Results, cell: Cell | None, other: Cell | None, key: str) -> Effect:
    """Root mean squared error of one cell over that of another, from whole runs."""
    pair = [[] if each is None else [each] for each in (cell, other)]
    errors = [runs_of(results, each)[key].to_numpy(float) for each in pair]
    return error_ratio(*errors)


def _rate(results: Results, family: str) -> float:
    cell = _one(results, family)
    return float("nan") if cell is None else efficiency_of(results, cell).per_second


MOMENTS = ("mean", "second")


def _hmc(results: Results) -> Judged:
    hmc = _one(results, "HMC")
    rows = [_one(results, family) for family in ("PE", "ST", "CT", "AIS")]
    worse = [_ratio(results, hmc, row, key) for row in rows for key in MOMENTS]
    return (
        f"RMSE of E[x] and E[xx′]: HMC {_both(results, hmc)}; PE N=2 {_both(results, rows[0])}, "
        f"ST {_both(results, rows[1])}, CT {_both(results, rows[2])}, "
        f"AIS {_both(results, rows[3])}. Smallest ratio of HMC's to another's: {_least(worse)}.",
        all_hold(each.lies(above=1, of=len(worse)) for each in worse),
    )


def _least(ratios: list[Effect]) -> str:
    return min(ratios, key=lambda each: each.value).told()


def _most(ratios: list[Effect]) -> str:
    return max(ratios, key=lambda each: each.value).told()


def _pe_and_st(results: Results) -> Judged:
    """Judge both halves of the claim, PE's and ST's, and say what each comes to."""
    largest = max(of_family(results, "PE", "PE"), key=lambda cell: cell.factors["N"])
    better, others = (largest, _one(results, "ST")), (_one(results, "AIS"), _one(results, "CT"))
    said: list[str] = []
    decisions: list[Decision] = []
    for cell, name in zip(better, (largest.label, "ST"), strict=True):
        ratios: list[Effect] = []
        own: list[Decision] = []
        for other in others:
            for key in MOMENTS:
                pair = [[] if each is None else [each] for each in (cell, other)]
                found = ratio_at_equal_cost(results, (pair[0], pair[1]), key, "work")
                if isinstance(found, Undecided):
                    own.append(found)
                    continue
                ratios.append(found)
                own.append(found.lies(below=1, of=8))
        largest_ratio = f", largest ratio {_most(ratios)}" if ratios else ""
        said.append(f"{name} {_word(all_hold(own))}{largest_ratio}")
        decisions += own
    return (
        f"RMSE of E[x] and E[xx′] of whole runs: {largest.label} {_both(results, largest)}, "
        f"ST {_both(results, better[1])}; AIS {_both(results, others[0])}, "
        f"CT {_both(results, others[1])}. Below AIS and CT at equal gradients, shorter runs of AIS "
        f"being shares of its particles: {'; '.join(said)}.",
        all_hold(decisions),
    )


def _word(decision: Decision) -> str:
    """Write whether one part of a claim holds."""
    return "undecided" if isinstance(decision, Undecided) else "yes" if decision else "no"


def _fixed(results: Results) -> list[tuple[float, Cell]]:
    return [(cell.settings["inv_temp"], cell) for cell in of_family(results, "PE", "PE fixed")]


def _fixed_lower(results: Results) -> Judged:
    sampled = _one(results, "PE", 2)
    fixed = _fixed(results)
    beta, best = min(fixed, key=lambda pair: _rmse(results, pair[1], "mean"))
    ratio = _ratio(results, best, sampled, "mean")
    return (
        f"RMSE of E[x] and E[xx′]: best fixed, β = {beta:g}, {_both(results, best)}; sampled "
        f"{_both(results, sampled)} (N = 2). Fixed over sampled, E[x]: {ratio.told()}.",
        # The best of several is chosen after the fact.
        ratio.lies(below=1, of=len(fixed)),
    )


def _fixed_poorly(results: Results) -> Judged:
    sampled = _one(results, "PE", 2)
    beta, poor = min(_fixed(results), key=lambda pair: pair[0])
    if beta > 0.1:
        return f"The lowest fixed β in these results is {beta:g}.", Undecided("runs at β = 0.1")
    ratios = [_ratio(results, poor, sampled, key) for key in MOMENTS]
    return (
        f"RMSE of E[x] and E[xx′]: β = {beta:g} {_both(results, poor)}; sampled "
        f"{_both(results, sampled)} (N = 2). Fixed over sampled: "
        f"{' and '.join(each.told() for each in ratios)}.",
        all_hold(each.lies(above=1, of=2) for each in ratios),
    )


def _pseudo_samples(results: Results) -> list[Cell]:
    return sorted(of_family(results, "PE", "PE"), key=lambda cell: cell.factors["N"])


def _more(results: Results) -> Judged:
    cells = _pseudo_samples(results)
    if len(cells) < 2:
        return "There is one number of pseudo-samples only.", Undecided("runs with a larger N")
    shown = "; ".join(f"N={cell.factors['N']} {_both(results, cell)}" for cell in cells)
    ratios = [_ratio(results, cells[-1], cells[0], key) for key in MOMENTS]
    return (
        f"RMSE of E[x] and E[xx′]: {shown}. The largest N over the smallest: "
        f"{' and '.join(each.told() for each in ratios)}.",
        all_hold(each.lies(below=1, of=2) for each in ratios),
    )


def _best_number(results: Results) -> Judged:
    """Judge whether the best N of 2 to 5 costs less than every larger one, MSE times seconds."""
    cells = _pseudo_samples(results)
    beyond = [cell for cell in cells if cell.factors["N"] > 5]
    if not beyond:
        return "No N beyond 5 in these results.", Undecided("runs with N beyond 5")
    within = [cell for cell in cells if 2 <= cell.factors["N"] <= 5]
    said, decisions = [], []
    for key, name in zip(MOMENTS, ("E[x]", "E[xx′]"), strict=True):
        best = min(within, key=lambda cell: _cost(results, cell, key))
        rival = min(beyond, key=lambda cell: _cost(results, cell, key))
        weighted = [_weighted(results, cell, key) for cell in (best, rival)]
        ratio = error_ratio(*weighted)
        said.append(f"{name}: N={best.factors['N']} over N={rival.factors['N']} {ratio.told()}")
        decisions.append(ratio.lies(below=1, of=2))
    return f"Error × √seconds, the best up to 5 over the best beyond. {'; '.join(said)}.", all_hold(
        decisions
    )


def _weighted(results: Results, cell: Cell, key: str) -> FloatArray:
    """Errors of a cell's runs times the root of their mean time."""
    runs = runs_of(results, [cell])
    errors: FloatArray = runs[key].to_numpy(float) * np.sqrt(runs["time"].mean())
    return errors


def _cost(results: Results, cell: Cell, key: str) -> float:
    return float(np.square(_weighted(results, cell, key)).mean())


def _dominates(
    rivals: tuple[str, ...],
    forms: tuple[str, ...],
    half: str,
    cost: str,
    *,
    besides: tuple[str, ...] = (),
) -> Callable[[Results], Judged]:
    """Judge whether all forms are below all rivals in all three errors, at equal cost.

    Errors are relative to the base's and averaged over instances, as in the paper's figure, and
    compared at the largest cost that lies inside both curves.  The largest ratio at the smallest
    such cost and those to families in ``besides`` are told, and decide nothing.
    """

    def judge(results: Results) -> Judged:
        names = list(dict.fromkeys(cell.factors["instance"] for cell in of_half(results, half)))
        unit = {"work": "gradients", "time": "seconds"}[cost]
        pairs = [(form, rival) for form in forms for rival in rivals]
        number = len(pairs) * len(PAPER_CT)
        said: list[str] = []
        decisions: list[Decision] = []
        for key in PAPER_CT:
            found = {pair: _relative(results, half, pair, key, cost, None) for pair in pairs}
            ratios = {p: each for p, each in found.items() if isinstance(each, Effect)}
            decisions += [each for each in found.values() if isinstance(each, Undecided)]
            decisions += [each.lies(below=1, of=number) for each in ratios.values()]
            if ratios:
                (form, rival), worst = max(ratios.items(), key=lambda item: item[1].value)
                said.append(f"{ERRORS[key]} {worst.told()} ({form} over {rival})")
        wins = sum(
            all(
                isinstance(each := _relative(results, half, pair, key, cost, name), Effect)
                and each.value < 1
                for pair in pairs
                for key in PAPER_CT
            )
            for name in names
        )
        decision = all_hold(decisions)
        told = "; ".join(said) or "no cost lies inside both curves"
        return (
            f"Largest ratio at equal {unit}: {told}. All are below 1 on {wins} of {len(names)} "
            "instances."
            + _largest(results, half, pairs, cost, "at the smallest cost in common", cheapest=True)
            + "".join(
                _largest(results, half, [(form, rival) for form in forms], cost, f"over {rival}")
                for rival in besides
            ),
            decision,
        )

    return judge


def _largest(
    results: Results,
    half: str,
    pairs: list[tuple[str, str]],
    cost: str,
    where: str,
    *,
    cheapest: bool = False,
) -> str:
    """Tell the largest ratio of some pairs of families, over all errors."""
    found = []
    for pair in pairs:
        for key in PAPER_CT:
            each = _relative(results, half, pair, key, cost, None, cheapest=cheapest)
            if isinstance(each, Effect):
                said = f"{each.told()} ({ERRORS[key]}, {pair[0]} over {pair[1]})"
                found.append((each.value, said))
    return f" Largest {where}: {max(found)[1]}." if found else ""


def _relative(
    results: Results,
    half: str,
    pair: tuple[str, str],
    key: str,
    cost: str,
    instance: str | None,
    *,
    cheapest: bool = False,
) -> Effect | Undecided:
    """Relative error of one family over another's at equal cost, on one instance or on all."""
    one, two = (
        [
            cell
            for cell in of_family(results, half, family)
            if instance is None or cell.factors["instance"] == instance
        ]
        for family in pair
    )
    return ratio_at_equal_cost(results, (one, two), key, cost, relative=True, cheapest=cheapest)


def _joint_better(results: Results) -> Judged:
    said: list[str] = []
    decisions: list[Decision] = []
    for key in ("log_z", "mean"):
        found = _relative(results, "CT", ("joint HMC", "Gibbs CT"), key, "work", None)
        if isinstance(found, Undecided):
            decisions.append(found)
            continue
        said.append(f"{ERRORS[key]} {found.told()}")
        decisions.append(found.lies(above=0.5, below=1, of=2))
    return f"Joint CT over Gibbs CT at equal gradients: {'; '.join(said)}.", all_hold(decisions)


def _ten_times(results: Results) -> Judged:
    paper = _rate(results, "PE")
    cells = [_one(results, family) for family in OUR_FORMS]
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


def _fold_ahead(results: Results) -> Judged:
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


def _fold_behind(results: Results) -> Judged:
    fold, rival = (_one(results, family) for family in ("fold", "PT"))
    ratios = {
        name: error_ratio(
            *(_weighted(results, cell, key) for cell in (fold, rival) if cell is not None)
        )
        for name, key in (("E[xx′]", "second"), ("log Z", "log_z"))
    }
    told = ", ".join(f"{name} {ratio.told()}" for name, ratio in ratios.items())
    return (
        f"RMSE × √seconds, folded over parallel tempering: {told}.",
        all_hold(ratio.lies(above=1, of=2) for ratio in ratios.values()),
    )


def _collapsed_behind(results: Results) -> Judged:
    collapsed, rival = _rate(results, "collapsed CT"), _rate(results, "PT")
    return (
        f"neff/s for E[x]: parallel tempering {rival:,.0f}, collapsed CT {collapsed:,.0f}: "
        f"{rival / collapsed:.1f} times.",
        rival > collapsed,
    )


def _base_alone(results: Results) -> Judged:
    runs = runs_of(results, of_half(results, "PE"))
    base = float(runs["base_mean"].dropna().iloc[0])
    paper, better = _one(results, "PE"), []
    for cell in of_half(results, "PE"):
        if _rmse(results, cell, "mean") < base:
            better.append(cell.label)
    return (
        f"RMSE of E[x]: base {base:.3f}, PE N=2 {_rmse(results, paper, 'mean'):.3f}; below the "
        f"base: {', '.join(better) or 'none'}.",
        _rmse(results, paper, "mean") > base,
    )


def _evidence(results: Results) -> Judged:
    families = [name for name in EVIDENCE[:5] if of_family(results, "PE", name)]
    error = {family: _rmse(results, _one(results, family), "log_z") for family in families}
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


PE_PAPER, CT_PAPER = "Nemeth et al.: ", "Graham and Storkey: "
CLAIMS: tuple[tuple[Claim, str, tuple[str, ...], Callable[[Results], Judged]], ...] = (
    (
        Claim(
            "hmc-worst", "paper",
            f"{PE_PAPER}HMC does not traverse the modes; its moments are worse than those of PE, "
            "ST, CT and AIS.",
        ),
        "PE", ("HMC", "PE", "ST", "CT", "AIS"), _hmc,
    ),
    (
        Claim(
            "pe-and-st-best", "paper",
            f"{PE_PAPER}PE and ST estimate both moments better than AIS and CT.",
        ),
        "PE", ("PE", "ST", "AIS", "CT"), _pe_and_st,
    ),
    (
        Claim(
            "fixed-beta-lowers", "paper",
            f"{PE_PAPER}fixing β can lower the RMSE.",
        ),
        "PE", ("PE", "PE fixed"), _fixed_lower,
    ),
    (
        Claim(
            "fixed-beta-raises", "paper",
            f"{PE_PAPER}fixing β poorly, as β = 0.1, raises the RMSE.",
        ),
        "PE", ("PE", "PE fixed"), _fixed_poorly,
    ),
    (
        Claim(
            "more-pseudo-samples", "paper",
            f"{PE_PAPER}more pseudo-samples estimate more accurately.",
        ),
        "PE", ("PE",), _more,
    ),
    (
        Claim(
            "best-number", "paper",
            f"{PE_PAPER}MSE × time is smallest for 2 ≤ N ≤ 5.",
        ),
        "PE", ("PE",), _best_number,
    ),
    (
        Claim(
            "ct-below-ais", "paper",
            f"{CT_PAPER}both forms of continuous tempering are below AIS in all three errors (at "
            "equal gradients; what they plot is H-AIS).",
        ),
        "CT", ("joint HMC", "Gibbs CT", "H-AIS"),
        _dominates(("H-AIS",), ("joint HMC", "Gibbs CT"), "CT", "work", besides=("AIS",)),
    ),
    (
        Claim(
            "ct-below-st", "paper",
            f"{CT_PAPER}both are below simulated tempering in all three errors (likewise).",
        ),
        "CT", ("joint HMC", "Gibbs CT", "ST"),
        _dominates(("ST",), ("joint HMC", "Gibbs CT"), "CT", "work"),
    ),
    (
        Claim(
            "ct-at-equal-time", "paper",
            f"{CT_PAPER}both are below AIS and simulated tempering at equal computing time.",
        ),
        "CT", ("joint HMC", "Gibbs CT", "H-AIS", "ST"),
        _dominates(("H-AIS", "ST"), ("joint HMC", "Gibbs CT"), "CT", "time"),
    ),
    (
        Claim(
            "joint-above-gibbs", "paper",
            f"{CT_PAPER}joint CT is slightly better than Gibbs CT on log Z and E[x] (by less than "
            "a factor 2).",
        ),
        "CT", ("joint HMC", "Gibbs CT"), _joint_better,
    ),
    (
        Claim(
            "collapsed-from-pilot", "ours",
            "Ours: collapsed CT from a pilot is below AIS and simulated tempering in all three "
            "errors.",
        ),
        "CT", ("collapsed CT", "H-AIS", "ST"),
        _dominates(("H-AIS", "ST"), ("collapsed CT",), "CT", "work"),
    ),
    (
        Claim(
            "ten-times", "ours",
            "Ours: the best row has at least 10 times the neff/s of the paper's PE N=2.",
        ),
        "PE", ("PE", "collapsed CT"), _ten_times,
    ),
    (
        Claim(
            "fold-above-pt", "ours",
            "Ours: the folded target is ahead of parallel tempering on E[x].",
        ),
        "PE", ("fold", "PT"), _fold_ahead,
    ),
    (
        Claim(
            "fold-below-pt", "against",
            "Against us: parallel tempering is ahead of the folded target on E[xx′] and log Z.",
        ),
        "PE", ("fold", "PT"), _fold_behind,
    ),
    (
        Claim(
            "collapsed-below-pt", "against",
            "Against us: without knowledge of the modes collapsed CT loses to parallel tempering.",
        ),
        "PE", ("collapsed CT", "PT"), _collapsed_behind,
    ),
    (
        Claim(
            "base-alone", "against",
            "Against tempering: the base alone, without sampling, beats the paper's PE N=2 on "
            "E[x].",
        ),
        "PE", ("PE", "CT"), _base_alone,
    ),
    (
        Claim(
            "evidence-of-pe", "ours",
            "Ours: log Z from pseudo-extended runs is better than from continuous tempering.",
        ),
        "PE", EVIDENCE[:5], _evidence,
    ),
)  # fmt: skip
