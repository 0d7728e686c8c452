"""Marks in a program that we write, by which its parts are found again once stanc formatted it.

A mark is a comment on a line of its own.  Statements stand between marks with their numbers, and
what is to be put in from the original between marks with a name.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.temper.tree import Node

_OPEN, _CLOSE = "//@<", "//@>"


class Marks:
    """The statements of a program that is written, as they are written.

    Attributes
    ----------
    texts
        Text of each marked statement, not formatted, by the statement's identity.
    heads
        What is written of a compound statement or a function before the statements in it.
    leading
        How many of a block's statements, the first ones, are apart from the others.
    """

    def __init__(self) -> None:
        self.texts: dict[int, str] = {}
        self.heads: dict[int, str] = {}
        self.leading: dict[str, int] = {}

    def statement(self, node: Node, text: str) -> str:
        """Return a statement's text between its marks."""
        self.texts[id(node)] = text
        return _between(str(id(node)), text)

    @staticmethod
    def beside(node: Node, where: str, text: str) -> str:
        """Return what is added ``before`` or ``after`` a statement, between marks."""
        return _between(f"{where} {id(node)}", text)

    def head(self, node: Node, text: str) -> str:
        """Return the head of a compound statement, and note that it is written."""
        self.heads[id(node)] = text
        return text

    @staticmethod
    def own(name: str, text: str = "") -> str:
        """Return marks between which something of the original's is put in, by name."""
        return _between(f"own {name}", text)


def _between(key: str, text: str) -> str:
    return "\n".join(filter(None, (f"{_OPEN} {key}", text, f"{_CLOSE} {key}")))


class Formatted:
    """A program with marks, formatted by stanc.

    Parameters
    ----------
    text
        Its text.
    """

    def __init__(self, text: str) -> None:
        self._rows = text.splitlines()
        self._pieces: dict[str, list[str]] = {}
        open_: list[str] = []
        for row in self._rows:
            mark, _, key = row.strip().partition(" ")
            if mark == _OPEN:
                open_.append(key)
                self._pieces[key] = []
            elif mark == _CLOSE:
                if open_.pop() != key:
                    raise AssertionError(f"stanc moved a mark: {text}")
            elif open_:
                self._pieces[open_[-1]].append(row)

    def piece(self, node: Node, where: str = "") -> list[str]:
        """Lines of a statement, or of what is beside it, the first of them not indented."""
        rows = self._pieces.get(f"{where} {id(node)}".strip(), [])
        while rows and not rows[0].strip():
            rows = rows[1:]
        while rows and not rows[-1].strip():
            rows = rows[:-1]
        shift = len(rows[0]) - len(rows[0].lstrip()) if rows else 0
        return [row[shift:] if not row[:shift].strip() else row.lstrip() for row in rows]

    def parts(self) -> Iterator[tuple[str, str]]:
        """Yield lines of ours, each after ``""``, and names of what to put in, with spaces."""
        within = ""
        for row in self._rows:
            mark, _, key = row.strip().partition(" ")
            if mark == _OPEN and key.startswith("own ") and not within:
                within = key
                yield key.removeprefix("own "), row[: len(row) - len(row.lstrip())]
            elif within:
                within = "" if mark == _CLOSE and key == within else within
            else:
                yield "", row

    def plain(self) -> str:
        """Return the text without its marks."""
        return "".join(
            f"{row}\n" for row in self._rows if not row.strip().startswith((_OPEN, _CLOSE))
        )
