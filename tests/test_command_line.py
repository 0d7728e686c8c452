"""The options of ``harness sample`` and ``harness temper`` are those of Python, and explained."""

from __future__ import annotations

import inspect
import re
from typing import Any, get_args

import click
import pytest
from doc_blocks import DOCS

from harness.cli import main
from harness.forms.common import Engine
from harness.samplers.rung_replicas import Explorer
from harness.temper import What
from harness.temper.templates import Variant
from harness.user import sample
from harness.user.sample import METHODS

OF_THE_COMMAND = {"page", "force", "time_limit", "as_json"}
"""Where a result goes, and how long the command may take: a caller in Python decides by itself."""


def options(command: str) -> dict[str, click.Parameter]:
    return {str(each.name): each for each in main.commands[command].params}


@pytest.mark.parametrize(
    ("command", "name", "known"),
    [
        ("sample", "method", METHODS),
        ("sample", "what", get_args(What)),
        ("sample", "engine", get_args(Engine)),
        ("sample", "explorer", get_args(Explorer)),
        ("temper", "method", get_args(Variant)),
        ("temper", "what", get_args(What)),
    ],
)
def test_choices_are_those_of_the_library(command: str, name: str, known: tuple[str, ...]) -> None:
    kind = options(command)[name].type
    assert isinstance(kind, click.Choice)
    assert set(kind.choices) == set(known)


def test_every_option_of_sample_is_one_in_python_with_the_same_default() -> None:
    parameters = dict(inspect.signature(sample).parameters)
    parameters["model"] = parameters.pop("path")
    given = options("sample")
    assert set(given) - set(parameters) == OF_THE_COMMAND
    assert set(parameters) - set(given) == {"progress"}
    context = click.Context(main.commands["sample"])
    for name in set(given) & set(parameters) - {"model", "seed"}:
        ours: Any = given[name].get_default(context)
        theirs = parameters[name].default
        if isinstance(ours, (str, int, float)):
            assert ours == theirs, name
        else:
            assert theirs in (None, ()), name


def test_every_option_of_sample_is_explained() -> None:
    text = (DOCS / "own-program.md").read_text(encoding="utf-8")
    for each in options("sample").values():
        if isinstance(each, click.Option):
            assert any(re.search(rf"{word}(?![\w-])", text) for word in each.opts), each.opts
