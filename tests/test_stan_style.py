"""Every Stan program is formatted by stanc and clean under its pedantic warnings."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from textwrap import indent

import pytest

from harness.folders import shipped
from harness.models.evidence_targets import EVIDENCE_TARGETS
from harness.models.hard import TARGETS

STAN = shipped("stan")
BENCH = Path(__file__).parent / "bench"
SOURCES = sorted(
    path
    for where in (STAN, BENCH)
    for path in where.rglob("*.stan*")
    if path.suffix in (".stan", ".stanfunctions")
)
PROGRAMS = [path for path in SOURCES if path.suffix == ".stan"]
BLOCKS = {path.relative_to(STAN).as_posix() for path in STAN.rglob("*.stanblock")}
INCLUDED_BLOCK = re.compile(r"^( *)#include (\S+\.stanblock)$", re.MULTILINE)
FOR_WRITTEN_PROGRAMS = {"path/own_base.stanblock"}
"""Blocks that programs of :mod:`harness.temper` alone include."""

# A density whose every statement involves data looks to stanc like a likelihood without a
# prior; it says itself that this "may be a false positive", and for a target that is handed
# over as data it is one.
FALSE_POSITIVE = re.compile(
    r"Warning in '[^']*', line \d+, column \d+"
    r"(?: to column \d+|, included from\s+'[^']*', line \d+, column \d+):"
    r"\s+The parameter \w+ has no priors\."
    r"\s+This means either no prior is provided, or\s+the prior\(s\) depend on data variables\."
    r"\s+In the later case, this may be a\s+false positive\.\s*"
)

# A prior that is uniform on an interval makes the posterior end there.
HARD_CONSTRAINT = re.compile(
    r"Warning in '[^']*', line \d+, column \d+ to column \d+:"
    r"\s+Your Stan program has a parameter \w+ with a lower and upper bound in its declaration\."
    r"\s+These hard constraints are not recommended,"
    r".*?give it a normal\(0\.5,0\.5\) prior distribution\.\s*"
)
# Advice about speed, which somebody who writes down a prior does not have to take.
NOT_UNIT_SCALE = re.compile(
    r"Warning in '[^']*', line \d+, column \d+ to column \d+:"
    r" Argument \S+ suggests there may be parameters that are not unit scale;"
    r" consider rescaling with a multiplier, see: https://\S+\s*"
)
ORDINARY = {make().folder.name for make in {**TARGETS, **EVIDENCE_TARGETS}.values()}
"""Folders of programs as a user writes them; their tempered variants are written for them."""


def stanc(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(home / "bin" / "stanc"), f"--include-paths={STAN},{BENCH}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_formatted_by_stanc(source: Path, cmdstan_home: Path) -> None:
    formatted = stanc(cmdstan_home, "--auto-format", "--max-line-length=78", str(source)).stdout
    assert source.read_text() == formatted


def with_blocks(text: str) -> str:
    """Write out the blocks that a text includes, each as far in as its include."""
    return INCLUDED_BLOCK.sub(
        lambda line: indent(with_blocks((STAN / line[2]).read_text()), line[1]).rstrip(), text
    )


def blocks_of(text: str) -> set[str]:
    """Return the blocks that a text includes, with those that they include."""
    names = {name for _, name in INCLUDED_BLOCK.findall(text)}
    return names.union(*(blocks_of((STAN / name).read_text()) for name in names))


@pytest.mark.parametrize(
    "source",
    [path for path in PROGRAMS if STAN in path.parents],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_blocks_are_formatted_by_stanc(source: Path, cmdstan_home: Path, tmp_path: Path) -> None:
    """In every program that includes them, as they stand there."""
    program = tmp_path / "written_out.stan"
    program.write_text(with_blocks(source.read_text()))
    options = ("--auto-format", "--max-line-length=78")
    assert stanc(cmdstan_home, *options, str(program)).stdout == program.read_text()


def test_every_block_is_included() -> None:
    included = set().union(*(blocks_of(path.read_text()) for path in PROGRAMS))
    assert included | FOR_WRITTEN_PROGRAMS == BLOCKS


@pytest.mark.parametrize(
    "source",
    [path for path in PROGRAMS if STAN in path.parents],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_a_program_says_what_it_is_and_which_page_explains_its_data(source: Path) -> None:
    title, page, *_ = source.read_text().splitlines()
    assert title.startswith("// ")
    assert len(title) <= 78
    found = re.fullmatch(r"// (docs/\S+\.md) explains its data\.", page)
    assert found is not None
    assert (STAN.parent / found[1]).is_file()


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_pedantic_warning(source: Path, cmdstan_home: Path, tmp_path: Path) -> None:
    warnings = stanc(
        cmdstan_home, "--warn-pedantic", f"--o={tmp_path / 'model.hpp'}", str(source)
    ).stderr
    warnings = FALSE_POSITIVE.sub("", re.sub(r"\s+", " ", warnings))
    if source.parent.name in ORDINARY:
        warnings = NOT_UNIT_SCALE.sub("", HARD_CONSTRAINT.sub("", warnings))
    assert not warnings.strip()


def test_nothing_dropped_where_an_inverse_temperature_multiplies() -> None:
    """A dropped constant c would become c * beta and move weights and evidence."""
    for source in [*SOURCES, *(STAN / name for name in BLOCKS)]:
        if source.parent.name in ORDINARY:  # what harness.temper writes from it has all constants
            continue
        code = re.sub(r"//.*|/\*.*?\*/", "", source.read_text(), flags=re.DOTALL)
        assert not re.search(r"~|_lu?p[dm]f\b(?<=_lupdf|_lupmf)", code), source.name
