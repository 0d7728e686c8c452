"""Tables of longer runs, kept next to the published numbers with a note on what made them.

Each table is a file ``ours-EXPERIMENT-TABLE.csv``.  Its first line gives the profile, the date and
the version of Stan of its fits; the rest is the table as ``harness report`` wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from harness.errors import DataError
from harness.files import write_text
from harness.report.markdown import frame_lines

CLAIMS = "claims"
"""Name of the table of verdicts in an experiment's folder; verdicts are collected elsewhere."""

_MOST_ROWS = 40
"""Longer tables are only named, not shown."""


@dataclass(frozen=True)
class KeptTable:
    """A table of a longer run.

    Attributes
    ----------
    experiment, name
        The experiment that the table belongs to, and the table's name.
    made
        Profile, date and version of Stan, in a sentence.
    frame
        The table, with all entries as text.
    """

    experiment: str
    name: str
    made: str
    frame: pd.DataFrame

    @property
    def file(self) -> str:
        """Name of its file."""
        return f"ours-{self.experiment}-{self.name}.csv"


def keep_tables(tables: Path, experiment: str, made: str, folder: Path) -> None:
    """Copy an experiment's tables from a store, replacing kept tables of the same name.

    Other tables that were kept earlier stay, because a run may cover only some of the cells.

    Parameters
    ----------
    tables
        The store's folder of the experiment's tables.
    experiment
        Name of the experiment.
    made
        Profile, date and version of Stan, in a sentence.
    folder
        Folder in which tables are kept.

    Raises
    ------
    StoreError
        If a file cannot be written.
    """
    for path in sorted(tables.glob("*.csv")):
        if path.stem != CLAIMS:
            text = path.read_text(encoding="utf-8")
            write_text(folder / f"ours-{experiment}-{path.name}", f"# {made}\n{text}")


def read_kept(folder: Path) -> list[KeptTable]:
    """Read all tables that are kept, sorted by name.

    Raises
    ------
    DataError
        If the first line of a table does not say what made it.
    """
    found = []
    for path in sorted(folder.glob("ours-*-*.csv")):
        _, experiment, name = path.stem.split("-", 2)
        with path.open(encoding="utf-8") as file:
            made = file.readline()
            if not made.startswith("# "):
                raise DataError(f"the first line of {path} does not say what made the table")
            frame = pd.read_csv(file, index_col=0, dtype=str, keep_default_na=False)
        found.append(KeptTable(experiment, name, made.removeprefix("# ").strip(), frame))
    return found


def kept_lines(table: KeptTable) -> Iterator[str]:
    """Write a table in Markdown; if it is long, only say where it is."""
    place = f"`experiments/published/{table.file}`"
    yield from (f"### {table.experiment}: {table.name}", "", f"{table.made} As data: {place}.", "")
    if len(table.frame) <= _MOST_ROWS:
        yield from frame_lines(table.frame)
