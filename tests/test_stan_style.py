"""Every Stan program is formatted by stanc and clean under its pedantic warnings."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from textwrap import indent

import pytest

from harness.folders import shipped

STAN = shipped("stan")
BENCH = Path(__file__).parent / "bench"
SOURCES = sorted(
    path
    for where in (STAN, BENCH)
    for path in where.rglob("*.stan*")
    if path.suffix in (".stan", ".stanfunctions")
)
BLOCKS = sorted(STAN.rglob("*.standata"))
TRANSFORMED_DATA = """functions {
  #include tempering.stanfunctions
}
data {
  #include blocks/base.standata
}
transformed data {
"""

# A density whose every statement involves data looks to stanc like a likelihood without a
# prior; it says itself that this "may be a false positive", and for a target that is handed
# over as data it is one.
FALSE_POSITIVE = re.compile(
    r"Warning in '[^']*', line \d+, column \d+ to column \d+:\s+The parameter \w+ has no priors\."
    r"\s+This means either no prior is provided, or\s+the prior\(s\) depend on data variables\."
    r"\s+In the later case, this may be a\s+false positive\.\s*"
)


def stanc(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(home / "bin" / "stanc"), f"--include-paths={STAN},{BENCH}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_formatted_by_stanc(source: Path, cmdstan_home: Path) -> None:
    formatted = stanc(cmdstan_home, "--auto-format", "--max-line-length=78", str(source)).stdout
    assert source.read_text() == formatted


@pytest.mark.parametrize("block", BLOCKS, ids=lambda path: path.name)
def test_blocks_of_data_are_formatted_by_stanc(
    block: Path, cmdstan_home: Path, tmp_path: Path
) -> None:
    head = TRANSFORMED_DATA if block.stem == "whitened_base" else "data {\n"
    program = tmp_path / "block.stan"
    program.write_text(f"{head}{indent(block.read_text(), '  ')}}}\n\n")
    options = ("--auto-format", "--max-line-length=78")
    assert stanc(cmdstan_home, *options, str(program)).stdout == program.read_text()


@pytest.mark.parametrize(
    "source",
    [path for path in SOURCES if path.suffix == ".stan"],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_no_pedantic_warning(source: Path, cmdstan_home: Path, tmp_path: Path) -> None:
    warnings = stanc(
        cmdstan_home, "--warn-pedantic", f"--o={tmp_path / 'model.hpp'}", str(source)
    ).stderr
    assert not FALSE_POSITIVE.sub("", re.sub(r"\s+", " ", warnings)).strip()


def test_nothing_dropped_where_an_inverse_temperature_multiplies() -> None:
    """A dropped constant c would become c * beta and move weights and evidence."""
    for source in SOURCES:
        code = re.sub(r"//.*|/\*.*?\*/", "", source.read_text(), flags=re.DOTALL)
        assert not re.search(r"~|_lu?p[dm]f\b(?<=_lupdf|_lupmf)", code), source.name
