"""The structure of a Stan program, from stanc: its syntax tree and the lines of statements."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.engine.toolchain import CmdStan
from harness.errors import CompileError
from harness.temper.tree import Node, items, parse, stmt, tag
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
_PLACE = re.compile(r"\{fname=(.*); line=(\d+)\}")


@dataclass(frozen=True)
class Line:
    """A line of a program, or of a file that it includes."""

    file: Path
    number: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.number}"


@dataclass(frozen=True)
class Span:
    """The lines of a statement: the first, and the last of its own part, without a loop's body."""

    first: Line
    last: Line


@dataclass(frozen=True)
class Syntax:
    """A program as stanc understands it.

    Attributes
    ----------
    path
        The program.
    blocks
        Statements of each of :data:`BLOCKS`, in their order.
    spans
        Where statements of transformed parameters and of the model are, by the identity of
        their nodes.
    files
        Lines of the program and of everything that it includes.
    digest
        SHA-256 of the program's text with its includes written out.
    """

    path: Path
    blocks: dict[str, tuple[Node, ...]]
    spans: dict[int, Span] = field(repr=False)
    files: dict[Path, list[str]] = field(repr=False)
    digest: str

    def line(self, node: Node) -> Line:
        """Line on which a statement begins."""
        return self.spans[id(node)].first

    def override(self, node: Node) -> str | None:
        """Word after ``// temper:`` on a statement's own lines, if there is one."""
        span = self.spans[id(node)]
        lines = self.files[span.first.file]
        end = span.last.number if span.last.file == span.first.file else span.first.number
        for text in lines[span.first.number - 1 : end]:
            found = _OVERRIDE.search(text)
            if found:
                return found[1]
        return None


class Stanc:
    """The stanc of a CmdStan."""

    def __init__(self, cmdstan: CmdStan, include_paths: Sequence[Path] = ()) -> None:
        folder = cmdstan.path / "bin"
        windows = folder / "stanc.exe"
        self._command = [
            str(windows if windows.is_file() else folder / "stanc"),
            f"--include-paths={','.join(map(str, include_paths))}",
        ]

    def run(self, path: Path, *options: str) -> str:
        """Return what stanc prints about a program.

        Raises
        ------
        CompileError
            If it cannot be read or is not valid Stan; the message is stanc's, with its line.
        """
        if not path.is_file():
            raise CompileError(f"there is no Stan program {path}")
        # When stanc prints its internal tree, it also writes C++ next to the program.
        nowhere = [f"--o={os.devnull}"] if options[0].startswith("--debug") else []
        command = [*self._command, *nowhere, *options, str(path)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise CompileError(f"{path} is not a valid Stan program:\n{result.stderr.strip()}")
        return result.stdout

    def formatted(self, text: str) -> str:
        """Return a text that we wrote, checked and formatted by stanc."""
        for options in (["--info"], ["--auto-format", "--max-line-length=78"]):
            command = [*self._command, *options, "-"]
            result = subprocess.run(
                command, input=text, capture_output=True, text=True, check=False
            )
            if result.returncode != 0:
                raise AssertionError(f"what was written is not valid:\n{result.stderr}\n{text}")
        return result.stdout


def read_syntax(path: Path, stanc: Stanc) -> Syntax:
    """Read a program's structure.

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
    described = json.loads(stanc.run(path, "--info"))
    included = [Path(name) for name in described["included_files"]]
    files = {
        each: each.read_text(encoding="utf-8", errors="replace").splitlines()
        for each in (path, *included)
    }
    tokens = _tokens(stanc.run(path, "--debug-lex"), path, included)
    spans: dict[int, Span] = {}
    for name, word in (("transformedparameters", "transformed parameters"), ("model", "model")):
        if blocks[name]:
            _Spans(tokens, spans).read_block(word, blocks[name])
    written_out = stanc.run(path, "--auto-format", "--canonicalize=includes")
    digest = hashlib.sha256(written_out.encode()).hexdigest()
    return Syntax(path, blocks, spans, files, digest)


def _tokens(lexed: str, path: Path, included: list[Path]) -> list[tuple[str, Line]]:
    """Tokens with their lines.

    stanc's lexer reports where identifiers, comments and ends of lines are; its parser reports
    the places of what it has just put together.
    """
    tokens: list[tuple[str, Line]] = []
    waiting: list[str] = []
    event = ""
    before = None
    for row in lexed.splitlines():
        place = _PLACE.fullmatch(row)
        if place is None:
            if row.startswith("Lexer: "):
                event = row.removeprefix("Lexer: ")
                if not event.startswith(_NO_TOKENS):
                    waiting.append(event)
        # Two places in a row: that of a comment, which takes the end of its line with it.
        elif before or event == "newline" or event.startswith("identifier "):
            line = Line(_file(place[1], path, included), int(place[2]))
            tokens += [(token, line) for token in waiting]
            waiting = []
        before = place
    last = Line(path, 0) if not tokens else tokens[-1][1]
    return tokens + [(token, last) for token in waiting]


_NO_TOKENS = (
    "space",
    "newline",
    "eof",
    "single comment",
    "multicomment",
    "start locating",
    "end locating",
    "include ",
    "opened ",
    "Switching ",
)


def _file(name: str, path: Path, included: list[Path]) -> Path:
    """Return the file of a place: of an included one stanc tells a zero byte and its number."""
    return included[int(name[1:])] if name.startswith("\0") else path


class _Spans:
    """Follows a block's tokens along its tree, which says what comes next."""

    def __init__(self, tokens: list[tuple[str, Line]], spans: dict[int, Span]) -> None:
        self._tokens = tokens
        self._spans = spans
        self._at = 0

    def read_block(self, word: str, statements: tuple[Node, ...]) -> None:
        self._at = next(i for i, (token, _) in enumerate(self._tokens) if token == word) + 1
        self._expect("{")
        for each in statements:
            self._read(each)
        self._expect("}")

    def _read(self, node: Node) -> None:
        begin = self._at
        form = stmt(node)
        kind = tag(form)
        inner: list[Node] = []
        if kind in ("Block", "Profile"):
            while self._peek() != "{":
                self._next()
            last = self._next()
            inner = list(items(items(form)[-1]))
        elif kind in ("For", "ForEach", "While", "IfThenElse"):
            self._next()
            last = self._balanced()
            inner = list(_bodies(form))
        else:
            last = self._simple()
        self._spans[id(node)] = Span(self._tokens[begin][1], last)
        for number, each in enumerate(inner):
            if kind == "IfThenElse" and number == 1:
                self._expect("else")
            self._read(each)
        if kind in ("Block", "Profile"):
            self._expect("}")

    def _simple(self) -> Line:
        """Go past the semicolon; declarations may hold braces, of arrays."""
        depth = 0
        while True:
            token, line = self._tokens[self._at]
            self._at += 1
            if depth == 0 and token == _END:
                return line
            depth += (token in _OPEN) - (token in _CLOSE)

    def _balanced(self) -> Line:
        depth = 0
        while True:
            token, line = self._tokens[self._at]
            self._at += 1
            depth += (token in _OPEN) - (token in _CLOSE)
            if depth == 0:
                return line

    def _peek(self) -> str:
        return self._tokens[self._at][0]

    def _next(self) -> Line:
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _expect(self, token: str) -> None:
        if self._peek() != token:
            raise AssertionError(f"stanc's lexer and its tree disagree: {token}, {self._peek()}")
        self._at += 1


_END = ";"
_OPEN = ("(", "[", "{")
_CLOSE = (")", "]", "}")


def _bodies(form: Node) -> Iterator[Node]:
    """Yield the statements that a loop or a conditional holds."""
    if tag(form) == "For":
        yield value_of(form, "loop_body")
    elif tag(form) == "IfThenElse":
        _, _, yes, no = items(form)
        yield yes
        yield from items(no)
    else:
        yield items(form)[-1]
