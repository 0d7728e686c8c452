"""Fenced blocks of our Markdown files: Python is run, Stan is saved, shell lines are checked.

A shell line is not run, but it must name a command that exists, with options and arguments that
the command takes.
"""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.testing import CliRunner

from harness import cli
from harness.plan.catalogue import experiment_names

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_VARIABLES = ("CMDSTAN", "HARNESS_CACHE")


class Block(NamedTuple):
    """A fenced block: its language and its text."""

    language: str
    text: str


def blocks(page: Path, *languages: str) -> list[Block]:
    """Return the fenced blocks of a page, of these languages or of all."""
    found = [Block(*match) for match in _FENCE.findall(page.read_text(encoding="utf-8"))]
    return [block for block in found if not languages or block.language in languages]


def run_python(page: Path) -> dict[str, Any]:
    """Run a page's Python blocks one after another; return the names they leave behind.

    A ``text`` block after one is what it prints, but for the digits.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for language, text in blocks(page, "python", "text"):
        if language == "text":
            assert _without_digits(printed) == _without_digits(text), printed
            continue
        with redirect_stdout(StringIO()) as output:
            exec(compile(text, str(page), "exec"), names)  # noqa: S102 - our own pages
        printed = output.getvalue()
        print(printed, end="")
    return names


def _without_digits(text: str) -> str:
    return re.sub(r"[\d.,]*\d", "#", text).strip()


def save_stan(page: Path, folder: Path) -> list[Path]:
    """Write a page's Stan blocks where the comment in their first line says."""
    saved = []
    for _, text in blocks(page, "stan"):
        first, _, rest = text.partition("\n")
        path = folder / first.removeprefix("// ")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rest, encoding="utf-8")
        saved.append(path)
    return saved


def shell_commands(page: Path) -> list[list[str]]:
    """Return the commands of a page's shell blocks, split into words."""
    commands = []
    for _, text in blocks(page, "sh"):
        for line in text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            start = 0
            for end in [*(i for i, word in enumerate(words) if word in ("&", "&&")), len(words)]:
                if words[start:end]:
                    commands.append(words[start:end])
                start = end + 1
    return commands


def check_command(words: Sequence[str]) -> None:
    """Fail if a shell command does not exist or does not take these arguments."""
    match list(words):
        case ["harness", *rest]:
            _check_click(cli.main, rest)
        case ["nox", "-s", *rest]:
            _check_nox(rest)
        case ["nox", "-l"] | ["python", "-m", "build"]:
            pass
        case ["python", "-m", "pip", "install", *rest] | ["pip", "install", *rest]:
            _check_packages(rest)
        case ["python", "-m", "harness.experiment.kept_runs", _, *names]:
            assert set(names) <= set(experiment_names())
        case ["dask", "scheduler" | "worker" as part, *rest]:
            _check_click(_dask(part), rest)
        case ["export", setting]:
            name, _, value = setting.partition("=")
            assert name in _VARIABLES, f"nobody reads ${name}"
            assert value, f"{name} is given no value"
        case _:
            raise AssertionError(f"no way to check the command: {shlex.join(words)}")


def _check_click(command: click.Command, words: list[str]) -> None:
    """Parse the words as the command would, and do nothing."""
    if isinstance(command, click.Group):
        name, *rest = words
        assert name in command.commands, f"{command.name} has no command {name}"
        _check_click(command.commands[name], rest)
        return
    with CliRunner().isolation(input="y\n"):  # some ask whether they should
        context = command.make_context(command.name, list(words))
    unknown = set(context.params.get("experiments", ())) - set(experiment_names()) - {"NAME"}
    assert not unknown, f"there is no experiment {', '.join(sorted(unknown))}"


def _dask(part: str) -> click.Command:
    from distributed.cli import dask_scheduler, dask_worker

    command: click.Command = {"scheduler": dask_scheduler, "worker": dask_worker}[part].main
    return command


def _check_nox(words: list[str]) -> None:
    """Check sessions, and what follows ``--`` where we know who reads it."""
    sessions, after = words, []
    if "--" in words:
        sessions, after = words[: words.index("--")], words[words.index("--") + 1 :]
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    known = {
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.decorator_list
    }
    assert set(sessions) <= known, f"nox has no session {set(sessions) - known}"
    readers: dict[str, Callable[[list[str]], None]] = {
        "experiments": lambda rest: _check_click(cli.main.commands["run"], rest),
        "tests": _check_files,
    }
    for session in sessions:
        if after and session in readers:
            readers[session](after)


def _check_files(words: list[str]) -> None:
    for word in words:
        if word.startswith("tests/"):
            assert (ROOT / word).is_file(), f"there is no {word}"


def _check_packages(words: list[str]) -> None:
    """Check that extras of ours exist."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for word in words:
        ours = re.fullmatch(r"(?:\.|harness)(?:\[(\w+)\])?", word)
        if ours is None:
            assert word == "nox", f"no way to check the package {word}"
        elif ours[1]:
            assert ours[1] in project["optional-dependencies"], f"we have no extra {ours[1]}"
