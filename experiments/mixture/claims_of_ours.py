"""Judges of our own claims, for us and against us: draws a second of our rows over others."""

from __future__ import annotations

import numpy as np

from harness.plan.effects import Decision, Effect, all_hold, any_holds, each_lies
from harness.plan.spec import Results

from .claims_shared import Judged
from .compare import FIRST, cost_ratio
from .frames import base_alone
from .grid import SCENARIOS


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


def ten_times(results: Results) -> Judged:
    """Judge whether our best row has at least 10 times the neff/s of PE N=2."""
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


def fold_and_tempering(results: Results) -> Judged:
    """Judge whether the folded target is ahead of parallel tempering."""
    return _ahead(results, "fold", "pt-hmc")


def importance(results: Results) -> Judged:
    """Judge whether importance sampling is ahead of the folded target."""
    return _ahead(results, "fold-is", "fold")


def _base_errors() -> str:
    frame = base_alone()
    error = np.sqrt(0.5 * (frame["x1"] ** 2 + frame["x2"] ** 2))
    return ", ".join(
        f"{value:.2f} in ({scenario})"
        for scenario, value in zip(frame["scenario"], error, strict=True)
    )
