"""The overview of the report: what each experiment came to, and which are still running."""

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
    """What the overview says of an experiment whose page is written.

    Attributes
    ----------
    name, title, source
        As of the experiment.
    href
        Address of its page from the overview.
    profile
        Size of its runs.
    verdicts
        Claims by verdict, in the order of the verdicts, those that occur.
    claims
        Its claims.
    fits, planned, failed
        Numbers of fits: finished, in the whole grid, failed.
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
    """What the overview says of an experiment that has not finished.

    Attributes
    ----------
    title, source
        As of the experiment.
    planned
        Number of fits in the whole grid.
    """

    title: str
    source: str
    planned: int

    @classmethod
    def of(cls, experiment: Experiment, planned: int) -> Running:
        """Describe an experiment of so many fits."""
        return cls(experiment.title, experiment.source, planned)


def write_overview(
    folder: Path, entries: Sequence[Entry], facts: dict[str, str], running: Sequence[Running] = ()
) -> Path:
    """Write the overview, whole or not at all.

    Parameters
    ----------
    folder
        Folder of the report.
    entries
        Experiments whose pages are written, in their order.
    facts
        What was run on what: versions, machine, date.
    running
        Experiments that have not finished, in the order in which they will.

    Returns
    -------
    Path
        Its file.

    Raises
    ------
    StoreError
        If it cannot be written.
    """
    page = render(OVERVIEW, entries=entries, running=running, run_facts=facts, trail=())
    write_text(folder / OVERVIEW, page)
    return folder / OVERVIEW
