"""The structure of a Stan program: its syntax tree, from stanc, and where statements are."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.engine.stanc import Stanc
from harness.temper.source import Line, Source, read_source
from harness.temper.tree import Node, items, name_of, parse, stmt, tag
from harness.temper.tree import field as value_of

BLOCKS = (
    "function",
    "data",
    "transformeddata",
    "parameters",
    "transformedparameters",
    "model",
    "generatedquantities",
)

_OVERRIDE = re.compile(r"//\s*temper:\s*(\w+)")


@dataclass(frozen=True)
class Place:
    """Which tokens a statement is made of.

    Attributes
    ----------
    start, stop
        Number of its first token, and of the first behind it.
    head
        Number of the first token behind its own part: a loop without its body, a block's or a
        function's first brace; :attr:`stop` of a simple statement.
    """

    start: int
    head: int
    stop: int


@dataclass(frozen=True)
class BlockPlace:
    """Which tokens a block is made of: its name's first, the one behind its brace, the closing."""

    start: int
    inner: int
    close: int


@dataclass(frozen=True)
class Syntax:
    """A program as stanc understands it.

    Attributes
    ----------
    path
        The program.
    blocks
        Statements of each of :data:`BLOCKS`, in their order.
    source
        Its text, with its includes written out.
    outlines
        Where each of those blocks is that it has, in their order.
    places
        Where statements are, by the identity of their nodes.
    files
        Lines of the program and of everything that it includes.
    digest
        SHA-256 of the program's text with its includes written out.
    """

    path: Path
    blocks: dict[str, tuple[Node, ...]]
    source: Source = field(repr=False)
    outlines: dict[str, BlockPlace] = field(repr=False)
    places: dict[int, Place] = field(repr=False)
    files: dict[Path, list[str]] = field(repr=False)
    digest: str

    def line(self, node: Node) -> Line:
        """Line on which a statement begins."""
        return self._line_of(self.places[id(node)].start)

    def override(self, node: Node) -> str | None:
        """Word after ``// temper:`` on a statement's own lines, if there is one."""
        place = self.places[id(node)]
        first, last = self._line_of(place.start), self._line_of(place.head - 1)
        lines = self.files[first.file]
        end = last.number if last.file == first.file else first.number
        for text in lines[first.number - 1 : end]:
            found = _OVERRIDE.search(text)
            if found:
                return found[1]
        return None

    def _line_of(self, token: int) -> Line:
        return self.source.line(self.source.tokens[token].start)


def written_out(path: Path, stanc: Stanc) -> tuple[Source, dict[Path, list[str]]]:
    """Read a program's text with its includes written out, and the lines of each of its files.

    stanc writes them out as well, but it formats the program, and fails on some comments.

    Raises
    ------
    CompileError
        If the program is not valid Stan.
    """
    described = json.loads(stanc.run(path, "--info"))
    included = [Path(name) for name in described["included_files"]]
    files = {
        # Not splitlines(), for which a form feed in a comment would end the line.
        each: each.read_text(encoding="utf-8", errors="replace").removesuffix("\n").split("\n")
        for each in (path, *included)
    }
    lexed = stanc.run(path, "--debug-lex").splitlines() if included else []
    opened = [Path(row.removeprefix(_OPENED)) for row in lexed if row.startswith(_OPENED)]
    return read_source(path, files, opened), files


def read_blocks(path: Path, stanc: Stanc) -> dict[str, tuple[Node, ...]]:
    """Return the statements of each of :data:`BLOCKS` of a program, in their order.

    Raises
    ------
    CompileError
        If the program is not valid Stan.
    """
    tree = parse(stanc.run(path, "--debug-decorated-ast"))
    blocks = {}
    for name in BLOCKS:
        block = items(value_of(tree, f"{name}block"))
        blocks[name] = items(value_of(block[0], "stmts")) if block else ()
    return blocks


def read_syntax(path: Path, stanc: Stanc) -> Syntax:
    """Read a program's structure.

    Raises
    ------
    CompileError
        If the program is not valid Stan.
    """
    blocks = read_blocks(path, stanc)
    source, files = written_out(path, stanc)
    outlines = _outlines(source)
    reader = _Places(source)
    for name, place in outlines.items():
        reader.read_block(place, blocks[name])
    digest = hashlib.sha256(source.text.encode()).hexdigest()
    return Syntax(path, blocks, source, outlines, reader.places, files, digest)


_OPENED = "Lexer: opened "
WORDS = {
    "functions": "function",
    "data": "data",
    "parameters": "parameters",
    "model": "model",
    "transformed data": "transformeddata",
    "transformed parameters": "transformedparameters",
    "generated quantities": "generatedquantities",
}
"""Names in :data:`BLOCKS` of blocks, by their names in Stan."""


def _outlines(source: Source) -> dict[str, BlockPlace]:
    """Return where the blocks are, by their names in :data:`BLOCKS`."""
    found: dict[str, BlockPlace] = {}
    depth, start, inner = 0, 0, 0
    for number, token in enumerate(source.tokens):
        if token.text == "{":
            depth += 1
            inner = number + 1 if depth == 1 else inner
        elif token.text == "}":
            depth -= 1
            if depth == 0:
                name = " ".join(each.text for each in source.tokens[start : inner - 1])
                found[WORDS[name]] = BlockPlace(start, inner, number)
                start = number + 1
    return found


class _Places:
    """Follows a block's tokens along its tree, which says what comes next."""

    def __init__(self, source: Source) -> None:
        self.places: dict[int, Place] = {}
        self._tokens = [each.text for each in source.tokens]
        self._at = 0

    def read_block(self, place: BlockPlace, statements: tuple[Node, ...]) -> None:
        self._at = place.inner
        for each in statements:
            self._read(each)
        if self._at != place.close:
            raise AssertionError(f"a block's tokens and its tree disagree: {self._peek()}")

    def _read(self, node: Node) -> None:
        start = self._at
        form = stmt(node)
        kind = tag(form)
        inner: list[Node] = []
        braces = kind in ("Block", "Profile", "FunDef")
        if kind == "FunDef":
            self._function_head(name_of(value_of(form, "funname")))
            body = stmt(value_of(form, "body"))
            if tag(body) == "Skip":
                braces = False
                self._expect(_END)
            else:
                self._expect("{")
                inner = list(items(items(body)[1]))
        elif braces:
            while self._peek() != "{":
                self._at += 1
            self._expect("{")
            inner = list(items(items(form)[-1]))
        elif kind in ("For", "ForEach", "While", "IfThenElse"):
            self._at += 1
            self._balanced()
            inner = list(bodies(form))
        else:
            self._simple()
        head = self._at
        for number, each in enumerate(inner):
            if kind == "IfThenElse" and number == 1:
                self._expect("else")
            self._read(each)
        if braces:
            self._expect("}")
        self.places[id(node)] = Place(start, head, self._at)

    def _function_head(self, name: str) -> None:
        """Go past a function's arguments; a tuple that it returns has parentheses before them."""
        while self._tokens[self._at : self._at + 2] != [name, "("]:
            self._at += 1
        self._at += 1
        self._balanced()

    def _simple(self) -> None:
        """Go past the semicolon; declarations may hold braces, of arrays."""
        depth = 0
        while depth or self._peek() != _END:
            depth += (self._peek() in _OPEN) - (self._peek() in _CLOSE)
            self._at += 1
        self._at += 1

    def _balanced(self) -> None:
        depth = 0
        while True:
            depth += (self._peek() in _OPEN) - (self._peek() in _CLOSE)
            self._at += 1
            if depth == 0:
                return

    def _peek(self) -> str:
        return self._tokens[self._at]

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            raise AssertionError(f"a program's tokens and its tree disagree: {self._peek()}")
        self._at += 1


_END = ";"
_OPEN = ("(", "[", "{")
_CLOSE = (")", "]", "}")


def bodies(form: Node) -> Iterator[Node]:
    """Yield the statements that a loop or a conditional holds."""
    if tag(form) == "For":
        yield value_of(form, "loop_body")
    elif tag(form) == "IfThenElse":
        _, _, yes, no = items(form)
        yield yes
        yield from items(no)
    else:
        yield items(form)[-1]
