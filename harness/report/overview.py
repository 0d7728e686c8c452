"""The overview of the report: each experiment's verdicts, and which experiments still run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.files import write_text
from harness.plan.spec import Claim, Experiment, Profile
from harness.report.pages import render

OVERVIEW = "index.html"


@dataclass(frozen=True)
class Entry:
    """An experiment in the overview whose page is written.

    Attributes
    ----------
    name, title, source
        The same as for the experiment.
    href
        Address of its page from the overview.
    profile
        Size of its runs.
    verdicts
        Number of claims by verdict, in the order of the verdicts; only those that occur.
    claims
        Its claims.
    fits, planned, failed
        Numbers of fits: finished ones, all in the grid, and failed ones.
    written
        Files of its pages, relative to the folder of the report.
    """

    name: str
    title: str
    source: str
    href: str
    profile: Profile
    verdicts: dict[str, int]
    claims: tuple[Claim, ...]
    fits: int
    planned: int
    failed: int
    written: tuple[str, ...]


@dataclass(frozen=True)
class Running:
    """An experiment in the overview that has not finished.

    Attributes
    ----------
    title, source
        The same as for the experiment.
    planned
        Number of fits in the whole grid.
    """

    title: str
    source: str
    planned: int

    @classmethod
    def of(cls, experiment: Experiment, planned: int) -> Running:
        """Describe an experiment with this many planned fits."""
        return cls(experiment.title, experiment.source, planned)


def write_overview(
    folder: Path, entries: Sequence[Entry], facts: dict[str, str], running: Sequence[Running] = ()
) -> Path:
    """Write the overview, completely or not at all.

    Parameters
    ----------
    folder
        Folder of the report.
    entries
        Experiments whose pages are written, in their order.
    facts
        Facts about the run: versions, machine, date.
    running
        Experiments that have not finished, in the order in which they will finish.

    Returns
    -------
    Path
        File of the overview.

    Raises
    ------
    StoreError
        If it cannot be written.
    """
    page = render(OVERVIEW, entries=entries, running=running, run_facts=facts, trail=())
    write_text(folder / OVERVIEW, page)
    return folder / OVERVIEW
