"""What judges of claims share: their type, what counts as the same, and words for effects."""

from __future__ import annotations

from collections.abc import Sequence

from harness.plan.effects import Decision, Effect, Undecided
from harness.plan.spec import Results

from .grid import TABLE_1

Judged = tuple[str, Decision]

SAME = {"above": 1 / 1.5, "below": 1.5}
"""Errors that count as the same: within a factor 1.5, either way."""


def span(effects: Sequence[Effect]) -> str:
    """Smallest and largest of several effects, with their intervals."""
    ends = min(effects, key=_value), max(effects, key=_value)
    return " to ".join(each.told() for each in ends)


def _value(effect: Effect) -> float:
    return effect.value


def with_published(decision: Decision) -> Decision:
    """Say of what is undecided that the published runs would have to be more as well."""
    if isinstance(decision, Undecided):
        return Undecided(f"{decision.needs}, ours and the published ones alike", decision.runs)
    return decision


def runs_and_draws(results: Results) -> str:
    """Tell how many runs there are, and of how many draws each."""
    cell = next(c for c in results.cells if c.factors["part"] == TABLE_1)
    return f"{len(results.replications(cell))} runs of {cell.nuts.draws:,} draws"
