"""What the documentation shows works as it stands, and says what the code says.

Pages run in the stanli engine, so that nothing is compiled.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from doc_blocks import ROOT, blocks, check_command, run_python, save_stan, shell_commands

from harness import folders

DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
MARKDOWN = [*PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
MARKDOWN.append(ROOT / "experiments" / "README.md")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def first_fit(names: dict[str, Any]) -> None:
    close_to(names["fit"].log_evidence, 0.0)


def choosing(names: dict[str, Any]) -> None:
    close_to(names["second"].log_evidence, 0.0)
    close_to(names["scouted"].log_evidence, 0.0)
    near = [float((names[key].extended["inv_temp"] > 0.9).mean()) for key in ("second", "fit")]
    assert near[0] < near[1]
    right = names["right"]
    assert abs(float(right.value[0]) - 0.3) < 4.3 * float(right.mcse[0])


def adding_a_model(names: dict[str, Any]) -> None:
    close_to(names["fit"].log_evidence, names["log_evidence"])


def adding_a_method(names: dict[str, Any]) -> None:
    close_to(names["fit"].log_evidence, 0.0)


def own_program(names: dict[str, Any]) -> None:
    """Z of the two means by a sum over a grid."""
    y, mu = names["y"], np.linspace(-12, 12, 801)
    one = np.exp(-0.5 * (y[:, None] - mu) ** 2) / np.sqrt(2 * np.pi)
    prior = -0.5 * (mu / 10) ** 2 - 0.5 * np.log(2 * np.pi * 100)
    mixed = np.log(0.4 * one[:, :, None] + 0.6 * one[:, None, :]).sum(axis=0)
    log_joint = prior[:, None] + prior + mixed
    mass = np.exp(log_joint - log_joint.max()).sum() * (mu[1] - mu[0]) ** 2
    close_to(names["fit"].log_evidence, log_joint.max() + np.log(mass))


def close_to(estimate: Any, truth: float) -> None:
    """4.3 standard errors: a sound estimate is farther off once in 60,000 times."""
    assert 0 < estimate.mcse < 0.2
    assert abs(estimate.value - truth) < 4.3 * estimate.mcse


CHECKS = {
    "first-fit.md": first_fit,
    "own-program.md": own_program,
    "choosing.md": choosing,
    "adding-a-model.md": adding_a_model,
    "adding-a-method.md": adding_a_method,
}


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.stem
)
def test_python_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("stanli")
    if blocks(page, "stan"):
        shutil.copytree(folders.shipped("stan"), tmp_path / "stan")
        save_stan(page, tmp_path)
        for module in ("folders", "model.model"):
            monkeypatch.setattr(f"harness.{module}.shipped", lambda name: tmp_path / name)
    monkeypatch.chdir(tmp_path)
    names = run_python(page)
    if page.name in CHECKS:
        CHECKS[page.name](names)


@pytest.mark.parametrize("page", MARKDOWN, ids=name_of)
def test_commands_exist(page: Path) -> None:
    for command in shell_commands(page):
        check_command(command)


@pytest.mark.parametrize(
    "wrong",
    [
        ["harness", "sample"],
        ["harness", "run", "mixture", "--profile", "tiny"],
        ["harness", "run", "mixtures"],
        ["nox", "-s", "test"],
        ["nox", "-s", "experiments", "--", "--profil", "smoke"],
        ["nox", "-s", "tests", "--", "tests/test_nothing.py"],
        ["python", "-m", "pip", "install", ".[cluster]"],
        ["dask", "worker", "tcp://HOST:8786", "--cores", "8"],
        ["export", "CMDSTAN_HOME=/"],
        ["make"],
    ],
    ids=" ".join,
)
def test_wrong_commands_are_seen(wrong: list[str]) -> None:
    with pytest.raises((AssertionError, click.ClickException)):
        check_command(wrong)


def test_languages_are_known() -> None:
    for page in PAGES:
        known = {"python", "text", "sh", "stan", ""}
        assert {block.language for block in blocks(page)} <= known, page


def test_every_sentence_of_the_diagnosis_is_explained() -> None:
    text = (DOCS / "diagnosis.md").read_text(encoding="utf-8")
    told = " ".join(text.replace("> ", "").replace("`", "").split())
    missing = [piece for piece in said() if piece not in told]
    assert not missing


def test_every_quoted_sentence_is_one_of_the_diagnosis() -> None:
    text = (DOCS / "diagnosis.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^> (.*)$", text, re.MULTILINE)
    assert len(quoted) > 20
    pieces = sorted({piece.strip(" .,:;()") for piece in said(least=1)}, key=len, reverse=True)
    for sentence in quoted:
        rest = re.sub(r"\(inv_temp\)|\bx\b", "", sentence)  # names of parameters
        for piece in pieces:
            rest = re.sub(rf"(?<!\w){re.escape(piece)}(?!\w)", "", rest)
        assert not re.search(r"[A-Za-z]", rest), (sentence, rest)


def said(*, least: int = 2) -> list[str]:
    """Pieces, of so many words, of the findings' sentences and what to try, between values."""
    pieces = []
    for path in sorted((ROOT / "harness" / "diagnosis").glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        silent = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.Raise) or is_docstring(node)
            for part in ast.walk(node)
        }
        pieces += [
            " ".join(node.value.split())
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in silent
            and len(node.value.split()) >= least
        ]
    assert len(pieces) > 40
    return pieces


def is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def test_stan_of_the_pages_is_formatted_by_stanc(cmdstan_home: Path, tmp_path: Path) -> None:
    for path in [path for page in PAGES for path in save_stan(page, tmp_path)]:
        command = [
            str(cmdstan_home / "bin" / "stanc"),
            f"--include-paths={tmp_path / 'stan'},{folders.shipped('stan')}",
            "--auto-format",
            "--max-line-length=78",
            str(path),
        ]
        formatted = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert path.read_text(encoding="utf-8").strip() == formatted.strip()


def test_mathematics_lists_what_the_docs_cite() -> None:
    """A name with a year in the text is a name with that year in the references."""
    references = (DOCS / "mathematics.md").read_text(encoding="utf-8").split("## References")[1]
    entries = references.split("\n- ")
    for page in PAGES:
        text = page.read_text(encoding="utf-8").split("## References")[0]
        for name, year in re.findall(
            r"([A-Z][a-z]+)(?: et al\.| and [A-Z][a-z]+)? \(?(\d{4})", text
        ):
            found = [e for e in entries if re.search(rf"\b{name},", e) and f"({year})" in e]
            assert found, (page, name, year)


def test_index_names_every_page() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for page in DOCS.glob("*.md"):
        assert page.name == "index.md" or f"]({page.name})" in index, page


def test_citation_and_licence_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {project['version']}" in citation
    assert f"license: {project['license']}" in citation
    for author in project["authors"]:
        assert f"  - name: {author['name']}" in citation
        holder = author["name"].removeprefix("The ")
        licence = (ROOT / project["license-files"][0]).read_text(encoding="utf-8")
        assert holder in licence
    assert project["license"] == "BSD-3-Clause"
    assert licence.startswith("BSD 3-Clause License")
