"""The documentation's commands exist, and it says what the code says.

Its examples are run by ``nox -s docs`` (``tests/docs``).
"""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import click
import pytest
from doc_blocks import DOCS, PAGES, ROOT, blocks, check_command, save_stan, shell_commands

from harness import folders

MARKDOWN = [*PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
MARKDOWN.append(ROOT / "experiments" / "README.md")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


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
        # "text" is compared with what the block before it prints, "none" is not.
        known = {"python", "text", "none", "sh", "stan", "diff", ""}
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
            if isinstance(node, ast.Raise | ast.Compare) or is_docstring(node)
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
    saved = [path for page in PAGES for path in save_stan(page, tmp_path)]
    for path in [path for path in saved if path.suffix != ".stanblock"]:
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
