"""What the papers say about this experiment, and what we expect beyond them, one line each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from harness.experiment.efficiency import Efficiency, with_interval
from harness.plan.claims import judged
from harness.plan.spec import Cell, Claim, Results

from .curves import efficiency_of, equal_cost, error_of, of_family, of_half, runs_of
from .tables import EVIDENCE

Judged = tuple[str, bool | None]
OUR_FORMS = ("fold", "collapsed CT", "collapsed PE", "PE pilot")
PAPER_CT = ("log_z", "mean", "covariance")


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


def _rate(results: Results, family: str) -> float:
    cell = _one(results, family)
    return float("nan") if cell is None else efficiency_of(results, cell).per_second


def _hmc(results: Results) -> Judged:
    hmc = _one(results, "HMC")
    rows = [_one(results, family) for family in ("PE", "ST", "CT", "AIS")]
    worse = [
        _rmse(results, hmc, k) > _rmse(results, r, k) for r in rows for k in ("mean", "second")
    ]
    return (
        f"RMSE of E[x] and E[xx′]: HMC {_both(results, hmc)}; PE N=2 {_both(results, rows[0])}, "
        f"ST {_both(results, rows[1])}, CT {_both(results, rows[2])}, "
        f"AIS {_both(results, rows[3])}.",
        all(worse),
    )


def _pe_and_st(results: Results) -> Judged:
    largest = max(of_family(results, "PE", "PE"), key=lambda cell: cell.factors["N"])
    better, others = (largest, _one(results, "ST")), (_one(results, "AIS"), _one(results, "CT"))
    holds = all(
        max(_rmse(results, cell, key) for cell in better)
        < min(_rmse(results, cell, key) for cell in others)
        for key in ("mean", "second")
    )
    return (
        f"RMSE of E[x] and E[xx′]: {largest.label} {_both(results, largest)}, "
        f"ST {_both(results, better[1])}; AIS {_both(results, others[0])}, "
        f"CT {_both(results, others[1])}.",
        holds,
    )


def _fixed(results: Results) -> list[tuple[float, Cell]]:
    return [(cell.settings["inv_temp"], cell) for cell in of_family(results, "PE", "PE fixed")]


def _fixed_lower(results: Results) -> Judged:
    sampled = _one(results, "PE", 2)
    beta, best = min(_fixed(results), key=lambda pair: _rmse(results, pair[1], "mean"))
    return (
        f"RMSE of E[x] and E[xx′]: best fixed, β = {beta:g}, {_both(results, best)}; sampled "
        f"{_both(results, sampled)} (N = 2).",
        _rmse(results, best, "mean") < _rmse(results, sampled, "mean"),
    )


def _fixed_poorly(results: Results) -> Judged:
    sampled = _one(results, "PE", 2)
    beta, poor = min(_fixed(results), key=lambda pair: pair[0])
    if beta > 0.1:
        return f"The lowest fixed β in these results is {beta:g}.", None
    return (
        f"RMSE of E[x] and E[xx′]: β = {beta:g} {_both(results, poor)}; sampled "
        f"{_both(results, sampled)} (N = 2).",
        all(_rmse(results, poor, k) > _rmse(results, sampled, k) for k in ("mean", "second")),
    )


def _pseudo_samples(results: Results) -> list[Cell]:
    return sorted(of_family(results, "PE", "PE"), key=lambda cell: cell.factors["N"])


def _more(results: Results) -> Judged:
    cells = _pseudo_samples(results)
    if len(cells) < 2:
        return "There is one number of pseudo-samples only.", None
    shown = "; ".join(f"N={cell.factors['N']} {_both(results, cell)}" for cell in cells)
    holds = all(
        _rmse(results, cells[-1], key) < _rmse(results, cells[0], key) for key in ("mean", "second")
    )
    return f"RMSE of E[x] and E[xx′]: {shown}. The largest N must be below the smallest.", holds


def _best_number(results: Results) -> Judged:
    cells = _pseudo_samples(results)
    if len(cells) < 3:
        return "It takes N beyond 5 to compare.", None

    def product(cell: Cell, key: str) -> float:
        runs = runs_of(results, [cell])
        return float((runs[key] ** 2).mean() * runs["time"].mean())

    best = {key: min(cells, key=lambda cell: product(cell, key)) for key in ("mean", "second")}
    numbers = [cell.factors["N"] for cell in best.values()]
    return (
        f"MSE × seconds is smallest at N = {numbers[0]} for E[x] and N = {numbers[1]} for E[xx′].",
        all(2 <= number <= 5 for number in numbers),
    )


def _dominates(
    rivals: tuple[str, ...], forms: tuple[str, ...], half: str, cost: str
) -> Callable[[Results], Judged]:
    """Whether all forms are below all rivals in all three errors, on eight of ten instances."""

    def judge(results: Results) -> Judged:
        names = list(dict.fromkeys(cell.factors["instance"] for cell in of_half(results, half)))
        wins, ratios = 0, []
        for name in names:
            groups = [
                [c for c in of_family(results, half, f) if c.factors["instance"] == name]
                for f in (*forms, *rivals)
            ]
            below = True
            for key in PAPER_CT:
                error = equal_cost(results, groups, key, cost, relative=True)[1]
                mine, theirs = error[: len(forms)], error[len(forms) :]
                below &= bool(max(mine) < min(theirs))
                ratios.append(max(mine) / min(theirs))
            wins += below
        typical = np.exp(np.log(np.reshape(ratios, (-1, len(PAPER_CT)))).mean(axis=0))
        unit = {"work": "gradients", "time": "seconds"}[cost]
        return (
            f"At equal {unit} all three errors are below on {wins} of {len(names)} instances; the "
            f"worse form over the better rival, geometric mean: log Z {typical[0]:.2f}, E[x] "
            f"{typical[1]:.2f}, covariance {typical[2]:.2f}.",
            wins >= 0.8 * len(names),
        )

    return judge


def _joint_better(results: Results) -> Judged:
    groups = [of_family(results, "CT", family) for family in ("joint HMC", "joint CT", "Gibbs CT")]
    log_z, mean = (
        equal_cost(results, groups, key, "work", relative=True)[1] for key in ("log_z", "mean")
    )
    return (
        "Relative error at equal gradients, joint by HMC as in the paper, joint by NUTS, and "
        f"Gibbs: log Z {log_z[0]:.2f}, {log_z[1]:.2f}, {log_z[2]:.2f}; E[x] {mean[0]:.2f}, "
        f"{mean[1]:.2f}, {mean[2]:.2f}.",
        log_z[0] < log_z[2] and mean[0] < mean[2],
    )


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
        rate.per_second >= 10 * paper,
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
        fold.per_second > rival.per_second,
    )


def _per_second(rate: Efficiency) -> str:
    return with_interval(rate.per_second, rate.per_second_interval)


def _fold_behind(results: Results) -> Judged:
    groups = [of_family(results, "PE", family) for family in ("fold", "PT")]
    seconds = [runs_of(results, cells)["time"].mean() for cells in groups]
    # Errors of runs that take different time: an error falls with its root.
    fair = {
        key: [_rmse(results, c[0], key) * np.sqrt(s) for c, s in zip(groups, seconds, strict=True)]
        for key in ("second", "log_z")
    }
    return (
        "RMSE × √seconds, folded and parallel tempering: E[xx′] "
        f"{fair['second'][0]:.2f} and {fair['second'][1]:.2f}, log Z {fair['log_z'][0]:.3f} and "
        f"{fair['log_z'][1]:.3f}.",
        all(fold > rival for fold, rival in fair.values()),
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
    groups = {f: of_family(results, "PE", f) for f in EVIDENCE[:5]}
    error = dict(
        zip(groups, equal_cost(results, list(groups.values()), "log_z", "work")[1], strict=True)
    )
    shown = ", ".join(f"{family} {value:.2f}" for family, value in error.items())
    pe = min(value for family, value in error.items() if "PE" in family)
    ct = min(value for family, value in error.items() if "CT" in family)
    return f"RMSE of log Z at equal gradients: {shown}.", pe < ct


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
            f"{CT_PAPER}both forms of continuous tempering are below AIS in all three errors (by "
            "equal gradients, on eight of ten instances).",
        ),
        "CT", ("joint HMC", "Gibbs CT", "AIS"),
        _dominates(("AIS",), ("joint HMC", "Gibbs CT"), "CT", "work"),
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
        "CT", ("joint HMC", "Gibbs CT", "AIS", "ST"),
        _dominates(("AIS", "ST"), ("joint HMC", "Gibbs CT"), "CT", "time"),
    ),
    (
        Claim(
            "joint-above-gibbs", "paper",
            f"{CT_PAPER}joint CT is slightly better than Gibbs CT on log Z and E[x].",
        ),
        "CT", ("joint HMC", "joint CT", "Gibbs CT"), _joint_better,
    ),
    (
        Claim(
            "collapsed-from-pilot", "ours",
            "Ours: collapsed CT from a pilot is below AIS and simulated tempering in all three "
            "errors.",
        ),
        "CT", ("collapsed CT", "AIS", "ST"),
        _dominates(("AIS", "ST"), ("collapsed CT",), "CT", "work"),
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
