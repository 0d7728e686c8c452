"""The contributing page names files that exist, and what it asks for is there."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
from doc_blocks import DOCS, ROOT

from harness.folders import shipped
from harness.forms.method import Method
from harness.report.style import METHODS

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PLACEHOLDERS = re.compile(r"MODEL|FORM|VARIANT|PROGRAM|NAME")
NAMED = sorted(
    {
        path
        for path in re.findall(r"`([\w./-]+)`", PAGE)
        if re.match(r"(harness|tests|docs|stan|experiments)/", path)
    }
)
DRIVEN_FROM_PYTHON = {
    value.name: path.stem
    for path in (ROOT / "harness" / "samplers").glob("[!_]*.py")
    for value in vars(import_module(f"harness.samplers.{path.stem}")).values()
    if isinstance(value, Method) and f'"{value.name}"' in path.read_text(encoding="utf-8")
}
"""Modules of methods, by the method's name."""


def documented(page: str) -> set[str]:
    text = (DOCS / "api" / page).read_text(encoding="utf-8")
    return set(re.findall(r"automodule:: (\S+)", text))


@pytest.mark.parametrize("path", NAMED)
def test_files_exist(path: str) -> None:
    # Built by `nox -s docs`.
    if path.startswith("docs/_build"):
        return
    assert list(ROOT.glob(PLACEHOLDERS.sub("*", path).rstrip("/"))), path


def test_every_sampler_has_its_look_and_its_page() -> None:
    assert len(DRIVEN_FROM_PYTHON) >= 10
    # Another base makes no other method.
    plain = {name.removesuffix("_from_approximation") for name in DRIVEN_FROM_PYTHON}
    assert plain <= set(METHODS)
    modules = {f"harness.samplers.{name}" for name in DRIVEN_FROM_PYTHON.values()}
    assert modules <= documented("samplers.md")


def test_every_shipped_model_is_on_the_page_of_models() -> None:
    """A folder of programs is that of a module that names it."""
    texts = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text(encoding="utf-8")
        for path in (ROOT / "harness" / "models").rglob("[!_]*.py")
    }
    for target in shipped("stan").glob("*/target.stan"):
        name = target.parent.name
        modules = {module for module, text in texts.items() if f'"{name}"' in text}
        assert modules & documented("models.md"), name
