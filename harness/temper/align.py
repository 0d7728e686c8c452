"""Put the tokens of a rewritten statement into the layout that the original has.

The result has the tokens of the rewritten statement and no others, whatever the original looks
like: only spaces and comments come from there.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from harness.temper.source import comments, tokens

_BREAK = re.compile(r"\x01([ \t]*)\x02[ \t]*(\n?)")


def break_line(indent: str) -> str:
    """Return a mark where a line must end; the next begins with ``indent``."""
    return f"\x01{indent}\x02"


def broken(text: str) -> str:
    """Return a text in which lines end where they must."""
    return _BREAK.sub(lambda found: "\n" if found[2] else f"\n{found[1]}", text)


def written_comments(some: list[str], indent: str) -> str:
    """Return comments one after the other; a line ends behind those that need it."""
    return " ".join(
        each + (break_line(indent) if each.startswith("//") else "") for each in some
    ).replace("\x02 ", "\x02")


def aligned(old: str, new: str, column: int, indent: str) -> str:
    """Return a rewritten text with the comments and the line breaks of the original.

    Parameters
    ----------
    old
        The original statement.
    new
        What it becomes, formatted as if its first line began in column 0.
    column
        Column of the original's first character.
    indent
        What the original's first line is indented by.
    """
    return _Alignment(old, new, column, indent).text()


class _Alignment:
    def __init__(self, old: str, new: str, column: int, indent: str) -> None:
        self._old_text, self._new_text = old, new
        self._column, self._indent = column, indent
        self._old, self._new = tokens(old), tokens(new)
        self._match: dict[int, int] = {}
        words = [each.text for each in self._old]
        matcher = SequenceMatcher(None, words, [each.text for each in self._new], autojunk=False)
        for kind, first, last, second, end in matcher.get_opcodes():
            # As many for as many: each takes the other's place.
            if kind == "equal" or (kind == "replace" and last - first == end - second):
                self._match |= dict(zip(range(second, end), range(first, last), strict=True))
        self._placed: dict[int, int] = {}
        """New columns of tokens, by their old ones, of the lines so far."""
        self._out = ""

    def text(self) -> str:
        used = 0
        for number, token in enumerate(self._new):
            match = self._match.get(number)
            if match is not None and match > 0 and self._match.get(number - 1) == match - 1:
                self._out += self._moved(self._old_gap(match))
            else:
                self._out += self._gap(number, used if match is None else match + 1, used)
            if match is not None:
                self._placed[self._old_column(self._old[match].start)] = self._new_column()
            # Comments before this place have been written.
            used = used if match is None else match + 1
            self._out += token.text
        left = self._comments(used, len(self._old))
        return self._out + (f" {written_comments(left, self._indent)}" if left else "")

    def _comments(self, first: int, last: int) -> list[str]:
        """Return the comments before the original's tokens from one to before another."""
        if first >= last:
            return []
        start = self._old[first - 1].stop if first else 0
        return comments(self._old_text[start : self._old[last - 1].start])

    def _old_gap(self, number: int) -> str:
        return self._old_text[self._old[number - 1].stop : self._old[number].start]

    def _gap(self, number: int, last: int, used: int) -> str:
        """Return what is before a token that is new, or behind one."""
        before = self._new[number - 1].stop if number else 0
        gap = self._new_text[before : self._new[number].start]
        if "\n" in gap:
            at_statement = self._new[number - 1].text in "{};" or self._new[number].text == "}"
            gap = gap.replace("\n", f"\n{self._indent}") if at_statement else " "
        found = self._comments(used, last)
        if not found:
            return gap
        inside = written_comments(found, f"{self._indent}    ")
        lead = " " if self._out else ""
        return lead + inside + ("" if inside.endswith("\x02") else " ")

    def _moved(self, gap: str) -> str:
        """Return what is between two tokens; what stood below a token stays below it."""
        head, sign, tail = gap.rpartition("\n")
        if not sign or tail.strip():
            return gap
        column = self._placed.get(len(tail), len(tail))
        more = column - len(tail)
        if more <= 0 or "\t" in tail:
            return gap
        first, *lines = head.split("\n")
        lines = [" " * more + each if each.strip() else each for each in lines]
        return "\n".join([first, *lines]) + sign + " " * column

    def _old_column(self, place: int) -> int:
        start = self._old_text.rfind("\n", 0, place) + 1
        return place - start + (0 if start else self._column)

    def _new_column(self) -> int:
        text = broken(self._out)
        start = text.rfind("\n") + 1
        return len(text) - start + (0 if start else self._column)
