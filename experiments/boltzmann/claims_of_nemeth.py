"""Judges of what Nemeth et al. say of this experiment, the pseudo-extended half."""

from __future__ import annotations

import numpy as np

from harness.plan.effects import Decision, Effect, Undecided, all_hold, error_ratio
from harness.plan.spec import Cell, Results

from .claims_shared import Judged, one_cell, rmse_of, weighted_errors
from .curves import of_family, ratio_at_equal_cost, runs_of

MOMENTS = ("mean", "second")


def _both(results: Results, cell: Cell | None) -> str:
    pair = (rmse_of(results, cell, key) for key in ("mean", "second"))
    return " and ".join(f"{value:.2f}" for value in pair)


def _ratio(results: Results, cell: Cell | None, other: Cell | None, key: str) -> Effect:
    """Root mean squared error of one cell over that of another, from whole runs."""
    pair = [[] if each is None else [each] for each in (cell, other)]
    errors = [runs_of(results, each)[key].to_numpy(float) for each in pair]
    return error_ratio(*errors)


def hmc_worst(results: Results) -> Judged:
    """Judge whether HMC has larger errors in both moments than PE, ST, CT and AIS."""
    hmc = one_cell(results, "HMC")
    rows = [one_cell(results, family) for family in ("PE", "ST", "CT", "AIS")]
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


def pe_and_st(results: Results) -> Judged:
    """Judge both halves of the claim, PE's and ST's, and say what each comes to."""
    largest = max(of_family(results, "PE", "PE"), key=lambda cell: cell.factors["N"])
    better, others = (
        (largest, one_cell(results, "ST")),
        (one_cell(results, "AIS"), one_cell(results, "CT")),
    )
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


def fixed_lower(results: Results) -> Judged:
    """Judge whether the best fixed β has a lower error than sampled ones."""
    sampled = one_cell(results, "PE", 2)
    fixed = _fixed(results)
    beta, best = min(fixed, key=lambda pair: rmse_of(results, pair[1], "mean"))
    ratio = _ratio(results, best, sampled, "mean")
    return (
        f"RMSE of E[x] and E[xx′]: best fixed, β = {beta:g}, {_both(results, best)}; sampled "
        f"{_both(results, sampled)} (N = 2). Fixed over sampled, E[x]: {ratio.told()}.",
        # The best of several is chosen after the fact.
        ratio.lies(below=1, of=len(fixed)),
    )


def fixed_poorly(results: Results) -> Judged:
    """Judge whether β fixed at 0.1 has larger errors than sampled ones."""
    sampled = one_cell(results, "PE", 2)
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


def more_pseudo_samples(results: Results) -> Judged:
    """Judge whether the largest N has lower errors than the smallest."""
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


def best_number(results: Results) -> Judged:
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
        weighted = [weighted_errors(results, cell, key) for cell in (best, rival)]
        ratio = error_ratio(*weighted)
        said.append(f"{name}: N={best.factors['N']} over N={rival.factors['N']} {ratio.told()}")
        decisions.append(ratio.lies(below=1, of=2))
    return f"Error × √seconds, the best up to 5 over the best beyond. {'; '.join(said)}.", all_hold(
        decisions
    )


def _cost(results: Results, cell: Cell, key: str) -> float:
    return float(np.square(weighted_errors(results, cell, key)).mean())
