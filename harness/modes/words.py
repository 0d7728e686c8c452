"""The table of modes in words: its rows, a sentence about what is not in them, and as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness.modes.table import Mode, ModeTable

MOST_ROWS = 12
_NAMES = {"nuts": "NUTS", "search": "search", "parallel_tempering": "parallel tempering"}
_UNSURE = 0.05
"""Share of draws whose mode is that of the nearest draw, from which it is said."""


class Row(NamedTuple):
    """What the table shows of a mode."""

    number: int
    probability: float
    error: float
    seen_by: str
    copy_of: str
    place: list[float]


def method_name(method: str) -> str:
    """Return a method's name in a sentence."""
    return _NAMES.get(method, "tempered run")


def listed(words: Iterable[object]) -> str:
    """Join words with commas and an 'and'."""
    *first, last = map(str, words)
    return f"{', '.join(first)} and {last}" if first else last


def rows(table: ModeTable) -> list[Row]:
    """Return the rows that are shown, at most twelve; none if there is only one mode."""
    if len(table.modes) == 1:
        return []
    return [
        Row(
            number,
            each.probability,
            each.error,
            ", ".join(map(method_name, each.seen_by)),
            copy(each),
            table.place(each),
        )
        for number, each in enumerate(table.modes[:MOST_ROWS], 1)
    ]


def copy(mode: Mode) -> str:
    """Say which mode one is a copy of; empty if it is none."""
    if mode.copy_of is None:
        return ""
    return f"{mode.copy_of}, {' and '.join(mode.permuted)} as {' '.join(map(str, mode.order))}"


def remarks(table: ModeTable) -> list[str]:
    """Return sentences about what the rows do not show."""
    modes = table.modes
    if len(modes) == 1:
        seen = listed(map(method_name, modes[0].seen_by))
        where = "" if modes[0].closed else "; the density has no maximum within reach of the draws"
        return [f"1, as far as these methods saw: {seen}{where}."]
    said = []
    if len(modes) > MOST_ROWS:
        rest = modes[MOST_ROWS:]
        missing = sum(each.probability == 0 for each in rest)
        said.append(
            f"{len(rest)} more have probability {sum(each.probability for each in rest):.3g} in "
            f"all, {missing} of them 0; --json has all."
        )
    if table.unsure > _UNSURE:
        said.append(
            f"{table.unsure:.0%} of the draws count as in the mode of the nearest draw that is "
            "known to be in one."
        )
    return said


def as_text(table: ModeTable) -> list[str]:
    """Return the lines of the table for a terminal."""
    first, *others = remarks(table) or [""]
    if len(table.modes) == 1:
        return [f"Modes: {first}", *others]
    shown = rows(table)
    seen = max([len("seen by"), *(len(each.seen_by) for each in shown)])
    copies = max(len(each.copy_of) for each in shown)
    copies = max(copies, len("copy of")) + 2 if copies else 0
    widths = [max(10, len(name) + 2) for name in table.shown]
    heads = "".join(f"{name:>{width}}" for name, width in zip(table.shown, widths, strict=True))
    lines = [
        f"Modes: {len(table.modes)}",
        f"{'':3} {'probability':>17}  {'seen by':<{seen}}" + f"{'  copy of':<{copies}}" + heads,
    ]
    for each in shown:
        numbers = "".join(
            f"{value:>{width}.4g}" for value, width in zip(each.place, widths, strict=True)
        )
        share = f"{each.probability:.4f} ± {each.error:.4f}"
        copied = f"  {each.copy_of}" if each.copy_of else ""
        lines.append(
            f"{each.number:>3} {share:>17}  {each.seen_by:<{seen}}{copied:<{copies}}{numbers}"
        )
    return [*lines, *filter(None, [first, *others])]
