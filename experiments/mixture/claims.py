"""Claims of the paper, what explains differences, and claims of ours, each against our runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from harness.plan.claims import judged
from harness.plan.effects import (
    Decision,
    Effect,
    Undecided,
    all_hold,
    any_holds,
    each_lies,
    mean_effect,
    share,
)
from harness.plan.spec import Claim, Results

from .compare import (
    FIRST,
    SECOND,
    Unit,
    columns,
    comparison,
    cost_ratio,
    over_published,
    ratio,
    row_over_published,
)
from .differences import (
    box_effects,
    errors_of_the_printed_truth,
    foreign_weights,
    narrow_truth,
    share_explained,
)
from .frames import base_alone, cells_of, printed_truth, published
from .grid import SCENARIOS, TABLE_1, TABLE_2
from .measures import MOMENTS

Judged = tuple[str, Decision]
Judge = Callable[[Results], Judged]

SAME = {"above": 1 / 1.5, "below": 1.5}
"""Errors that count as the same: within a factor 1.5, either way."""


def claims(results: Results) -> list[Claim]:
    """Judge the statements, each against our numbers."""
    have = {cell.key for cell in results.cells}
    return [
        judged(results, claim, needs - have, partial(judge, results))
        for claim, needs, judge in CLAIMS
    ]


def _both(*keys: str) -> set[str]:
    return {f"{scenario}-{key}" for scenario in SCENARIOS for key in keys}


def _span(effects: Sequence[Effect]) -> str:
    """Smallest and largest of several effects, with their intervals."""
    ends = min(effects, key=_value), max(effects, key=_value)
    return " to ".join(each.told() for each in ends)


def _value(effect: Effect) -> float:
    return effect.value


def _modes(results: Results) -> Judged:
    found = {key: runs["modes_visited"] for key, runs in results.metrics.groupby("cell")}
    hmc, pe = mean_effect(found["a-hmc"]), found["a-pe-2"]
    whole = int((pe == 20).sum())
    part, low, high = share(whole, len(pe))
    most: Decision = part > 0.5
    if low <= 0.5 <= high:
        most = Undecided("more runs of PE N=2: the interval contains a half")
    return (
        f"HMC found {hmc.told(1)} of 20 modes, where fewer than half are asked; PE N=2 found all "
        f"20 in {whole} of {len(pe)} runs, {part:.0%} [{low:.0%}, {high:.0%}], where most are "
        f"({_runs(results)}).",
        all_hold([hmc.lies(below=10), most]),
    )


def _scenario_b(results: Results) -> Judged:
    lower, higher = columns(results, "b-hmc", "a-hmc"), columns(results, "b-pe-2", "b-hmc")
    return (
        f"RMSE, the four columns: HMC in (b) over HMC in (a) {_span(lower)}; in (b), PE N=2 over "
        f"HMC {_span(higher)} ({_runs(results)}).",
        all_hold(each_lies([*lower, *higher], below=1)),
    )


def _pseudo_samples(results: Results) -> list[int]:
    """Numbers of pseudo-samples that both scenarios have."""
    cells = [cell for cell in cells_of(results, TABLE_1) if cell.factors["method"] == "PE"]
    each = [{c.factors["N"] for c in cells if c.factors["scenario"] == s} for s in SCENARIOS]
    return sorted(set.intersection(*each))


def _more_pseudo_samples(results: Results) -> Judged:
    numbers = _pseudo_samples(results)
    most = numbers[-1]
    found = [
        each
        for scenario in SCENARIOS
        for each in columns(results, f"{scenario}-pe-{most}", f"{scenario}-pe-2")
    ]
    steps = ", ".join(
        f"({scenario}) N={more} over {fewer} "
        f"{ratio(results, f'{scenario}-pe-{more}', f'{scenario}-pe-{fewer}').value:.2f}"
        for scenario in SCENARIOS
        for fewer, more in pairwise(numbers)
    )
    return (
        f"RMSE of N={most} over that of N=2, the eight columns: {_span(found)}. All moments "
        f"together: {steps} ({_runs(results)}).",
        all_hold(each_lies(found, below=1)),
    )


def _as_published(results: Results, methods: tuple[str, ...]) -> Judged:
    """Whether rows of Table 1 are the published ones to a factor 1.5, and no column is off."""
    frame = comparison(results, methods=methods)
    keys = [str(key) for key in frame["cell"].unique()]
    rows = {key: row_over_published(results, frame, key) for key in keys}
    single = {
        (str(cell), str(moment)): over_published(results, str(cell), {str(moment): float(value)})
        for cell, moment, value in frame[["cell", "moment", "published"]].itertuples(index=False)
    }
    told = ", ".join(f"{key} {each.told()}" for key, each in rows.items())
    ends = sorted(single, key=lambda name: single[name].value)
    extremes = " to ".join(
        f"{single[end].value:.2f} ({end[0]}, {MOMENTS[end[1]]})" for end in (ends[0], ends[-1])
    )
    measured = f"Ours over published: {told}; single columns {extremes} ({_runs(results)})."
    if results.profile != "paper":
        return measured, Undecided("--profile paper: runs as long as the published ones")
    off: list[Decision] = [
        False for each in each_lies(list(single.values()), **SAME) if each is False
    ]
    return measured, _with_published(all_hold([*each_lies(list(rows.values()), **SAME), *off]))


def _with_published(decision: Decision) -> Decision:
    """Say of what is undecided that the published runs would have to be more as well."""
    if isinstance(decision, Undecided):
        return Undecided(f"{decision.needs}, ours and the published ones alike", decision.runs)
    return decision


def _table_one(results: Results) -> Judged:
    return _as_published(results, ("PE",))


def _peers(results: Results) -> Judged:
    return _as_published(results, ("RAM", "EE"))


def _parallel_tempering(results: Results) -> Judged:
    measured, decision = _as_published(results, ("PT",))
    modes = results.metrics.groupby("cell")["modes_visited"].mean()
    return (
        f"{measured} Ours tunes its random walks in warm-up, swaps in every iteration and begins "
        f"at a Gaussian; its runs found {modes['a-pt']:.1f} of 20 modes in (a) and "
        f"{modes['b-pt']:.1f} in (b), where the paper says that some of its runs left modes out.",
        decision,
    )


def _untuned(results: Results) -> Judged:
    table = published()
    table = table[table["method"] == "PT"]
    found = [
        over_published(
            results,
            f"{scenario}-pt-untuned",
            dict(own[["moment", "published"]].itertuples(index=False)),
        )
        for scenario, own in table.groupby("scenario")
    ]
    modes = results.metrics.groupby("cell")["modes_visited"].mean()
    told = "; ".join(
        f"({scenario}) {each.told()}, {modes[f'{scenario}-pt-untuned']:.1f} modes"
        for scenario, each in zip(SCENARIOS, found, strict=True)
    )
    measured = f"Errors of all moments over the published ones: {told} ({_runs(results)})."
    if results.profile != "paper":
        return measured, Undecided("--profile paper: runs as long as the published ones")
    return measured, _with_published(all_hold(each_lies(found, **SAME)))


def _as_good_as_peers(results: Results) -> Judged:
    found = {
        (scenario, name): ratio(results, f"{scenario}-pe-2", f"{scenario}-{name}")
        for scenario in SCENARIOS
        for name in ("ram", "ee", "pt")
    }
    told = ", ".join(
        f"({scenario}) {name.upper()} {each.told()}" for (scenario, name), each in found.items()
    )
    return (
        f"RMSE of PE N=2, all moments together, over that of {told} ({_runs(results)}).",
        all_hold(each_lies(list(found.values()), below=1.5)),
    )


def _best_number(results: Results, unit: Unit) -> Judged:
    """Judge whether some N up to 5 costs less than every larger one, by scenario and moments."""
    numbers = _pseudo_samples(results)
    within, beyond = [n for n in numbers if n <= 5], [n for n in numbers if n > 5]
    said: list[str] = []
    decisions: list[Decision] = []
    for scenario in SCENARIOS:
        for moments, name in ((FIRST, "first"), (SECOND, "second")):
            found = {
                (few, many): cost_ratio(
                    results, f"{scenario}-pe-{few}", f"{scenario}-pe-{many}", moments, unit
                )
                for few in within
                for many in beyond
            }
            few, many = _closest(found, within, beyond)
            told = found[few, many].told()
            said.append(f"({scenario}) {name} moments N={few} over N={many} {told}")
            # Any of several pairs may decide; there are as many in each of four panels.
            number = 4 * len(found)
            decisions.append(
                any_holds(
                    all_hold(found[n, many].lies(below=1, of=number) for many in beyond)
                    for n in within
                )
            )
    tried = ", ".join(map(str, numbers))
    return (
        f"MSE × {unit} of N = {tried}, the best up to 5 over the best beyond: {'; '.join(said)} "
        f"({_runs(results)}).",
        all_hold(decisions),
    )


def _closest(
    found: Mapping[tuple[int, int], Effect], within: list[int], beyond: list[int]
) -> tuple[int, int]:
    """The pair that the claim hangs on: the best N up to 5, and the best beyond it."""
    rival = {few: max(beyond, key=lambda many: found[few, many].value) for few in within}
    few = min(within, key=lambda each: found[each, rival[each]].value)
    return few, rival[few]


def _fixed_b(results: Results) -> Judged:
    low, high = (ratio(results, f"b-pe-2-fixed-{each}", "b-pe-2") for each in (1, 9))
    return (
        f"PE N=2, RMSE of all moments over that with sampled β: {low.told()} at β = 0.1, "
        f"{high.told()} at β = 0.9.",
        all_hold([*each_lies([low], below=1), *each_lies([high], above=1)]),
    )


def _fixed_a(results: Results) -> Judged:
    """Judge whether no row with β above 0.1 has errors clearly below HMC's own."""
    cells = [
        cell
        for cell in cells_of(results, TABLE_2)
        if cell.factors["scenario"] == "a" and cell.factors["inv_temp"] > 0.15
    ]
    found = {cell.key: ratio(results, cell.key, "a-hmc") for cell in cells}
    least = min(found, key=lambda key: found[key].value)
    label = next(cell.label for cell in cells if cell.key == least)
    modes = results.metrics.groupby("cell")["modes_visited"].mean()
    low = ratio(results, "a-pe-2-fixed-1", "a-hmc")
    return (
        f"RMSE of all moments over that of HMC, {len(cells)} rows with β above 0.1: "
        f"{_span(list(found.values()))}, the least for {label}; they found "
        f"{modes[list(found)].min():.1f} to {modes[list(found)].max():.1f} modes, HMC "
        f"{modes['a-hmc']:.1f}. At β = 0.1, N=2: {low.told()}.",
        all_hold(each_lies(list(found.values()), above=SAME["above"])),
    )


def _printed(_: Results) -> Judged:
    printed, narrow = printed_truth("b"), narrow_truth()
    gap = max(abs(printed[name] - narrow[name]) for name in MOMENTS)
    frame = errors_of_the_printed_truth()
    # Both tables are printed to two or three decimals.
    off = {
        name: float(np.max(np.abs(frame[f"against_{name}"] - frame["published"])))
        for name in ("printed", "exact")
    }
    return (
        f"With sd r/20 the four moments are within {gap:.4f} of the printed ones. The preprint's "
        f"means give the published RMSE of E[X²] to {off['printed']:.3f} against the printed truth "
        f"and to {off['exact']:.2f} against the exact one.",
        gap < 6e-4 and off["printed"] < 0.015 < off["exact"],
    )


def _constant(_: Results) -> Judged:
    first, second = share_explained(FIRST), share_explained(SECOND)
    return (
        "The preprint's mean estimates in (b) are off by this many times what these weights add, "
        f"over N = 2 to 20: {first.told()} for E[X], {second.told()} for E[X²]; 1 is all of it, "
        "and more than a half of it must be there.",
        all_hold(each_lies([first, second], above=0.5)),
    )


def _foreign(_: Results) -> Judged:
    frame = foreign_weights()
    effects = [
        Effect(abs(bias) / published, se / published, 20)
        for bias, se, published in frame[["bias", "se", "published"]].itertuples(index=False)
    ]
    return (
        f"The bias of E[X₁] that this makes at β = 0.1 and 0.2, N=20, is {_span(effects)} times "
        "the errors that Table 2 prints, none of which can be below it.",
        all_hold(each_lies(effects, above=1)),
    )


def _low_inv_temps(results: Results) -> Judged:
    found = [ratio(results, f"{each}-pe-2-wide", f"{each}-pe-2") for each in SCENARIOS]
    told = ", ".join(f"({s}) {each.told()}" for s, each in zip(SCENARIOS, found, strict=True))
    return (
        f"RMSE of all moments with β in [0.001, 1] over that with β in [0, 1]: {told}.",
        all_hold(each_lies(found, **SAME)),
    )


def _box(results: Results) -> Judged:
    cut = box_effects()
    found = [ratio(results, f"{each}-pe-2-box", f"{each}-pe-2") for each in SCENARIOS]
    told = ", ".join(f"({s}) {each.told()}" for s, each in zip(SCENARIOS, found, strict=True))
    return (
        f"The smallest box changes the moments by {cut['a']:.4f} in (a) and {cut['b']:.4f} in (b) "
        f"at most. RMSE of PE N=2 in [-100, 100]² over that in our box: {told}.",
        all_hold([max(cut.values()) < 0.005, *each_lies(found, **SAME)]),
    )


def _gain(results: Results, better: str, worse: str) -> Effect:
    """Equivalent draws a second for E[x] of a cell over another's."""
    return cost_ratio(results, worse, better, FIRST, "seconds")


def _ahead(results: Results, better: str, worse: str) -> Judged:
    found = [_gain(results, f"{each}-{better}", f"{each}-{worse}") for each in SCENARIOS]
    told = ", ".join(f"({s}) {each.told(1)}" for s, each in zip(SCENARIOS, found, strict=True))
    return (
        f"neff/s of E[x], one over the other, {found[0].runs} runs: {told}.",
        all_hold(each_lies(found, above=1)),
    )


def _ten_times(results: Results) -> Judged:
    have = {cell.key for cell in results.cells}
    said: list[str] = []
    decisions: list[Decision] = []
    for scenario in SCENARIOS:
        keys = {key: f"{scenario}-{key}" for key in TEMPERED if f"{scenario}-{key}" in have}
        mine = {key: _gain(results, cell, f"{scenario}-pe-2") for key, cell in keys.items()}
        best = max(mine, key=lambda key: mine[key].value)
        decisions.append(any_holds(each.lies(above=10, of=2 * len(mine)) for each in mine.values()))
        said.append(
            f"({scenario}) {TEMPERED[best]} {mine[best].told(0)} times, "
            f"collapsed CT {mine['ct'].told(1)} times"
        )
    return (
        f"neff/s of E[x] over that of PE N=2, {min(each.runs for each in mine.values())} runs or "
        f"more: {'; '.join(said)}. The base alone has errors of {_base_errors()} in E[x].",
        all_hold(decisions),
    )


TEMPERED = {
    "ct": "collapsed CT",
    "cpe-2": "collapsed PE N=2",
    "pe-2-flat": "PE N=2 with g flat",
    "pe-2-gaussian": "PE N=2 with a Gaussian base",
    "fold": "the folded target",
}
"""Our rows that Stan's NUTS runs."""


def _fold_and_tempering(results: Results) -> Judged:
    return _ahead(results, "fold", "pt-hmc")


def _importance(results: Results) -> Judged:
    return _ahead(results, "fold-is", "fold")


def _base_errors() -> str:
    frame = base_alone()
    error = np.sqrt(0.5 * (frame["x1"] ** 2 + frame["x2"] ** 2))
    return ", ".join(
        f"{value:.2f} in ({scenario})"
        for scenario, value in zip(frame["scenario"], error, strict=True)
    )


def _runs(results: Results) -> str:
    cell = next(c for c in results.cells if c.factors["part"] == TABLE_1)
    return f"{len(results.replications(cell))} runs of {cell.nuts.draws:,} draws"


CLAIMS: tuple[tuple[Claim, set[str], Judge], ...] = (
    (
        Claim(
            "modes-of-a",
            "paper",
            "In scenario (a) HMC explores only the modes near each other; PE explores all.",
        ),
        {"a-hmc", "a-pe-2"},
        _modes,
    ),
    (
        Claim(
            "hmc-in-b",
            "paper",
            "In scenario (b) HMC does much better than in (a), yet worse than PE.",
        ),
        {"a-hmc", "b-hmc", "b-pe-2"},
        _scenario_b,
    ),
    (
        Claim(
            "more-pseudo-samples",
            "paper",
            "More pseudo-samples lower the errors: in every column those of the largest N are "
            "below those of N=2.",
        ),
        _both("pe-2", "pe-5"),
        _more_pseudo_samples,
    ),
    (
        Claim(
            "table-1-pe",
            "paper",
            "Table 1's PE rows: RMSE within a factor 1.5 of the published, either way.",
        ),
        _both("pe-2", "pe-5", "pe-10", "pe-20"),
        _table_one,
    ),
    (
        Claim(
            "table-1-peers",
            "paper",
            "Table 1's RAM and EE rows: RMSE within a factor 1.5 of the published, either way.",
        ),
        _both("ram", "ee"),
        _peers,
    ),
    (
        Claim(
            "table-1-pt",
            "paper",
            "Table 1's PT rows: RMSE within a factor 1.5 of the published, either way.",
        ),
        _both("pt"),
        _parallel_tempering,
    ),
    (
        Claim(
            "pe-as-good-as-peers",
            "paper",
            "PE N=2 does as well as RAM, EE and PT: at most 1.5 times the errors of each, draw for "
            "draw.",
        ),
        _both("pe-2", "ram", "ee", "pt"),
        _as_good_as_peers,
    ),
    (
        Claim(
            "best-number",
            "paper",
            "At equal time the best number of pseudo-samples lies between 2 and 5 (Figure 7).",
        ),
        _both("pe-2", "pe-5", "pe-10", "pe-20"),
        partial(_best_number, unit="seconds"),
    ),
    (
        Claim(
            "best-number-by-evaluations",
            "paper",
            "At equal evaluations of the target the best number of pseudo-samples lies between 2 "
            "and 5 (Figure 7 in another unit of cost).",
        ),
        _both("pe-2", "pe-5", "pe-10", "pe-20"),
        partial(_best_number, unit="evaluations"),
    ),
    (
        Claim(
            "table-2-b",
            "paper",
            "In (b) a well chosen fixed β (0.1) is better than sampled ones, a badly chosen one "
            "(0.9) worse (Table 2).",
        ),
        {"b-pe-2", "b-pe-2-fixed-1", "b-pe-2-fixed-9"},
        _fixed_b,
    ),
    (
        Claim(
            "table-2-a",
            "paper",
            "In (a) PE with β fixed above 0.1 finds no more than HMC: its errors are not below "
            "HMC's own, but for a factor 1.5 (Table 2).",
        ),
        {"a-hmc", *(f"a-pe-2-fixed-{each}" for each in (1, 2, 5, 9))},
        _fixed_a,
    ),
    (
        Claim(
            "printed-truth",
            "why",
            "Why we differ: the printed truth of E[X²] in (b) takes r/20 for standard deviations,"
            " and the published errors are from that truth.",
        ),
        set(),
        _printed,
    ),
    (
        Claim(
            "constant-of-weights",
            "why",
            "Why we differ: the public program's weights leave out the density's constant, so that "
            "they are off by (2π)^(1 - β); this moves estimates in (b) to those that the preprint "
            "prints.",
        ),
        set(),
        _constant,
    ),
    (
        Claim(
            "weights-of-table-2",
            "why",
            "Not why we differ: the public program's loop for Table 2 weights (b) with (a)'s "
            "density, but the printed numbers are not from such weights.",
        ),
        set(),
        _foreign,
    ),
    (
        Claim(
            "pt-untuned",
            "why",
            "Why we differ: with random walks of fixed size and a round of swaps in ten iterations "
            "PT has the published errors (to a factor 1.5, either way).",
        ),
        _both("pt", "pt-untuned"),
        _untuned,
    ),
    (
        Claim(
            "range-of-beta",
            "why",
            "Not why we differ: with β in [0.001, 1], as in the program of 2019, PE N=2 has the "
            "same errors as in [0, 1], as before (to a factor 1.5).",
        ),
        _both("pe-2", "pe-2-wide"),
        _low_inv_temps,
    ),
    (
        Claim(
            "box",
            "why",
            "Not why we differ: the public program's boxes, [-100, 100]² and, in (a) since 2019, "
            "[-10, 10]², leave the targets whole, and in the large one PE N=2 has the same errors "
            "(to a factor 1.5).",
        ),
        _both("pe-2", "pe-2-box"),
        _box,
    ),
    (
        Claim(
            "ten-times",
            "ours",
            "Ours: the best row that Stan's NUTS runs has at least 10 times the neff/s of the "
            "paper's PE N=2.",
        ),
        _both("ct", "fold", "pe-2"),
        _ten_times,
    ),
    (
        Claim(
            "fold-above-pt",
            "ours",
            "Ours: the folded target is ahead of parallel tempering on E[x].",
        ),
        _both("fold", "pt-hmc"),
        _fold_and_tempering,
    ),
    (
        Claim(
            "importance-above-fold",
            "against",
            "Against us: importance sampling from the same mixture, with no Markov chain, does "
            "better than the folded target, so that this mixture cannot rank samplers.",
        ),
        _both("fold", "fold-is"),
        _importance,
    ),
)
