"""Judges of what the paper says of this experiment, in its text, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

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
from harness.plan.spec import Results

from .claims_shared import SAME, Judged, runs_and_draws, span, with_published
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
from .frames import cells_of
from .grid import SCENARIOS, TABLE_1, TABLE_2
from .measures import MOMENTS


def modes_of_a(results: Results) -> Judged:
    """Judge whether HMC finds fewer than half of the modes of (a), and most runs of PE find all."""
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
        f"({runs_and_draws(results)}).",
        all_hold([hmc.lies(below=10), most]),
    )


def scenario_b(results: Results) -> Judged:
    """Judge whether HMC has lower errors in (b) than in (a), and PE lower ones still."""
    lower, higher = columns(results, "b-hmc", "a-hmc"), columns(results, "b-pe-2", "b-hmc")
    return (
        f"RMSE, the four columns: HMC in (b) over HMC in (a) {span(lower)}; in (b), PE N=2 over "
        f"HMC {span(higher)} ({runs_and_draws(results)}).",
        all_hold(each_lies([*lower, *higher], below=1)),
    )


def _pseudo_samples(results: Results) -> list[int]:
    """Numbers of pseudo-samples that both scenarios have."""
    cells = [cell for cell in cells_of(results, TABLE_1) if cell.factors["method"] == "PE"]
    each = [{c.factors["N"] for c in cells if c.factors["scenario"] == s} for s in SCENARIOS]
    return sorted(set.intersection(*each))


def more_pseudo_samples(results: Results) -> Judged:
    """Judge whether the largest N has lower errors than N=2 in every column."""
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
        f"RMSE of N={most} over that of N=2, the eight columns: {span(found)}. All moments "
        f"together: {steps} ({runs_and_draws(results)}).",
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
    measured = (
        f"Ours over published: {told}; single columns {extremes} ({runs_and_draws(results)})."
    )
    if results.profile != "paper":
        return measured, Undecided("--profile paper: runs as long as the published ones")
    off: list[Decision] = [
        False for each in each_lies(list(single.values()), **SAME) if each is False
    ]
    return measured, with_published(all_hold([*each_lies(list(rows.values()), **SAME), *off]))


def table_one(results: Results) -> Judged:
    """Judge whether the PE rows of Table 1 are as published."""
    return _as_published(results, ("PE",))


def peers(results: Results) -> Judged:
    """Judge whether the RAM and EE rows of Table 1 are as published."""
    return _as_published(results, ("RAM", "EE"))


def parallel_tempering(results: Results) -> Judged:
    """Judge whether the PT rows of Table 1 are as published."""
    measured, decision = _as_published(results, ("PT",))
    modes = results.metrics.groupby("cell")["modes_visited"].mean()
    return (
        f"{measured} Ours tunes its random walks in warm-up, swaps in every iteration and begins "
        f"at a Gaussian; its runs found {modes['a-pt']:.1f} of 20 modes in (a) and "
        f"{modes['b-pt']:.1f} in (b), where the paper says that some of its runs left modes out.",
        decision,
    )


def as_good_as_peers(results: Results) -> Judged:
    """Judge whether PE N=2 has at most 1.5 times the errors of RAM, EE and PT."""
    found = {
        (scenario, name): ratio(results, f"{scenario}-pe-2", f"{scenario}-{name}")
        for scenario in SCENARIOS
        for name in ("ram", "ee", "pt")
    }
    told = ", ".join(
        f"({scenario}) {name.upper()} {each.told()}" for (scenario, name), each in found.items()
    )
    return (
        f"RMSE of PE N=2, all moments together, over that of {told} ({runs_and_draws(results)}).",
        all_hold(each_lies(list(found.values()), below=1.5)),
    )


def best_number(results: Results, unit: Unit) -> Judged:
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
        f"({runs_and_draws(results)}).",
        all_hold(decisions),
    )


def _closest(
    found: Mapping[tuple[int, int], Effect], within: list[int], beyond: list[int]
) -> tuple[int, int]:
    """The pair that the claim hangs on: the best N up to 5, and the best beyond it."""
    rival = {few: max(beyond, key=lambda many: found[few, many].value) for few in within}
    few = min(within, key=lambda each: found[each, rival[each]].value)
    return few, rival[few]


def fixed_b(results: Results) -> Judged:
    """Judge whether in (b) β fixed at 0.1 is better than sampled, and β fixed at 0.9 worse."""
    low, high = (ratio(results, f"b-pe-2-fixed-{each}", "b-pe-2") for each in (1, 9))
    return (
        f"PE N=2, RMSE of all moments over that with sampled β: {low.told()} at β = 0.1, "
        f"{high.told()} at β = 0.9.",
        all_hold([*each_lies([low], below=1), *each_lies([high], above=1)]),
    )


def fixed_a(results: Results) -> Judged:
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
        f"{span(list(found.values()))}, the least for {label}; they found "
        f"{modes[list(found)].min():.1f} to {modes[list(found)].max():.1f} modes, HMC "
        f"{modes['a-hmc']:.1f}. At β = 0.1, N=2: {low.told()}.",
        all_hold(each_lies(list(found.values()), above=SAME["above"])),
    )
