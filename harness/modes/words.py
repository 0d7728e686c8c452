"""The table of modes in words: its rows, a sentence about what is not in them, and as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness.modes.table import Mode, ModeTable

MOST_ROWS = 12
CLIMBS = "climbs"
"""Name of the climbs from other starting points, among the methods that saw a mode."""
OTHER_NUTS = "other_nuts"
"""Name of a run of NUTS whose draws are not the result, because another run has better ones."""
_NAMES = {
    "nuts": "NUTS",
    OTHER_NUTS: "another NUTS run",
    "search": "search",
    "parallel_tempering": "parallel tempering",
    "nested_sampling": "nested sampling",
    "nuts_in_modes": "NUTS in modes",
    CLIMBS: "climbs",
}
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
    """Say which mode one is a copy of, and what is different; empty if it is none."""
    if mode.copy_of is None:
        return ""
    if mode.otherwise:
        return f"{mode.copy_of} ({mode.otherwise})"
    return f"{mode.copy_of} ({' '.join(map(str, mode.order))})"


def number(table: ModeTable) -> str:
    """Return how many modes there are, in words."""
    count = str(len(table.modes))
    if table.copies == 1:
        return count
    return f"{count} in each of {table.copies:,} copies of the posterior"


def remarks(table: ModeTable) -> list[str]:
    """Return sentences about what the rows do not show."""
    modes = table.modes
    if len(modes) == 1:
        seen = listed(map(method_name, modes[0].seen_by))
        where = "" if modes[0].closed else "; the density has no maximum within reach of the draws"
        return [f"{number(table)}, as far as these methods saw: {seen}{where}."]
    said = []
    if table.copies > 1:
        said.append(
            f"The table is of one of {table.copies:,} copies of the posterior, to which all draws "
            "were brought; each copy has these modes, with the same probabilities within it."
        )
    if len(modes) > MOST_ROWS:
        rest = modes[MOST_ROWS:]
        missing = sum(each.probability == 0 for each in rest)
        said.append(
            f"{len(rest)} more have probability {sum(each.probability for each in rest):.3g} in "
            f"all, {missing} of them 0; --json has all."
        )
    permuted = {each.permuted for each in modes if each.permuted}
    said += [
        f"Copies have the index of {listed(names)} in the order that is given: its first entry in "
        "the copy is that entry of the other mode, and so on."
        for names in sorted(permuted)
    ]
    if table.unsure > _UNSURE:
        said.append(
            f"{table.unsure:.0%} of the draws count as in the mode of the nearest draw that is "
            "known to be in one."
        )
    return said


def as_text(table: ModeTable) -> list[str]:
    """Return the lines of the table for a terminal."""
    said = remarks(table)
    if len(table.modes) == 1:
        return [f"Modes: {said[0]}"]
    shown = rows(table)
    columns = [
        ["", *(str(each.number) for each in shown)],
        ["probability", *(f"{each.probability:.4f} ± {each.error:.4f}" for each in shown)],
        ["seen by", *(each.seen_by for each in shown)],
        ["copy of", *(each.copy_of for each in shown)],
        *(
            [name, *(f"{each.place[k]:.3g}" for each in shown)]
            for k, name in enumerate(table.shown)
        ),
    ]
    words = (2, 3)  # columns of words start at the left
    widths = [max(map(len, column)) for column in columns]
    kept = [k for k, column in enumerate(columns) if any(column[1:])]
    lines = [
        "  ".join(
            columns[k][line].ljust(widths[k]) if k in words else columns[k][line].rjust(widths[k])
            for k in kept
        ).rstrip()
        for line in range(len(shown) + 1)
    ]
    return [f"Modes: {number(table)}", *lines, *said]
