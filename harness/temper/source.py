"""A program's own text with its includes written out: where its tokens are, and what is between."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LEXED = re.compile(
    rf"""(?P<comment>{_COMMENT.pattern})
    |(?P<include>\#include[ \t]*(?:"[^"\n]*"|<[^>\n]*>|[^\s"<>]+))
    |(?P<space>\s+)
    |(?P<token>"[^"\n]*"|[A-Za-z_]\w*
      |(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?i?
      |%/%|\.\*=|\./=|\+=|-=|\*=|/=|\.\*|\./|\.\^|==|!=|<=|>=|\|\||&&|.)""",
    re.DOTALL | re.VERBOSE,
)


@dataclass(frozen=True)
class Line:
    """A line of a program, or of a file that it includes."""

    file: Path
    number: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.number}"


class Token(NamedTuple):
    """A token, and the part of the text that it is."""

    text: str
    start: int
    stop: int


def tokens(text: str) -> list[Token]:
    """Return the tokens of a text without includes; spaces and comments are none."""
    return [
        Token(match[0], *match.span())
        for match in _LEXED.finditer(text)
        if match.lastgroup == "token"
    ]


def comments(text: str) -> list[str]:
    """Return the comments of a text in their order."""
    return [text[start:stop] for start, stop in comment_places(text)]


def without_comments(text: str) -> str:
    """Return a text with a space in place of each comment."""
    return _LEXED.sub(lambda found: " " if found.lastgroup == "comment" else found[0], text)


def comment_places(text: str) -> list[tuple[int, int]]:
    """Return where the comments of a text begin and end."""
    return [match.span() for match in _LEXED.finditer(text) if match.lastgroup == "comment"]


def indentation(text: str, place: int) -> str:
    """Return the spaces that begin the line of a place in a text."""
    line = text[text.rfind("\n", 0, place) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


@dataclass(frozen=True)
class Source:
    """A program's text.

    Attributes
    ----------
    text
        The text, with includes written out and shifted to where they stand.
    tokens
        Its tokens.
    """

    text: str
    tokens: Sequence[Token]
    _starts: Sequence[int] = field(repr=False)
    _lines: Sequence[Line] = field(repr=False)

    def line(self, place: int) -> Line:
        """Line of a place in the text, in the file that it came from."""
        return self._lines[bisect_right(self._starts, place) - 1]


def read_source(path: Path, files: Mapping[Path, list[str]], opened: Sequence[Path]) -> Source:
    """Put a program's text together.

    Parameters
    ----------
    path
        The program.
    files
        Lines of the program and of all files that it includes.
    opened
        The files that it includes, as often and in the order in which they are.
    """
    rows = _rows(path, files, iter(opened), 0)
    starts = [0]
    for text, _ in rows:
        starts.append(starts[-1] + len(text) + 1)
    text = "".join(f"{row}\n" for row, _ in rows)
    return Source(text, tokens(text), starts[:-1], [line for _, line in rows])


def _rows(
    path: Path, files: Mapping[Path, list[str]], opened: Iterator[Path], depth: int
) -> list[tuple[str, Line]]:
    """Return the lines of a file whose text stands within ``depth`` pairs of braces."""
    lines = files[path]
    text = "\n".join(lines)
    rows: list[tuple[str, Line]] = []
    number, done = 1, 0
    for match in _LEXED.finditer(text):
        if match.lastgroup == "token":
            depth += (match[0] == "{") - (match[0] == "}")
        if match.lastgroup != "include":
            continue
        *whole, before = text[done : match.start()].split("\n")
        for each in whole:
            rows.append((each, Line(path, number)))
            number += 1
        if before.strip():
            rows.append((before, Line(path, number)))
        wanted = before if before and not before.strip() else "  " * depth
        rows += _shifted(_rows(next(opened), files, opened, depth), wanted)
        done = match.end()
        if not text[done:].partition("\n")[0].strip():
            done = text.find("\n", done) + 1 or len(text)
            number += 1
    for each in text[done:].split("\n"):
        rows.append((each, Line(path, number)))
        number += 1
    return rows


def _shifted(rows: list[tuple[str, Line]], wanted: str) -> list[tuple[str, Line]]:
    """Return lines with the first of them indented as wanted, and the others with it."""
    while rows and not rows[-1][0].strip():
        rows.pop()
    first = next((row for row, _ in rows if row.strip()), "")
    given = indentation(first, 0)
    return [(shifted(row, given, wanted), line) for row, line in rows]


def shifted(line: str, given: str, wanted: str) -> str:
    """Return a line indented by ``wanted`` in place of ``given``, or less if it was indented less.

    A line that was indented less than ``given`` is moved as far as the others where there is room.
    """
    if not line.strip():
        return ""
    if line.startswith(given):
        return wanted + line.removeprefix(given)
    own = indentation(line, 0)
    room = max(0, len(wanted) - len(given) + len(own))
    return " " * room + line[len(own) :]
