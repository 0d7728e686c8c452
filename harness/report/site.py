"""The report of a run: an overview, a page per experiment and pages of single fits.

``FOLDER/index.html``, ``FOLDER/EXPERIMENT/index.html`` and ``FOLDER/EXPERIMENT/CELL-RUN.html``,
each of which needs no other file.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Literal, get_args

from harness.diagnosis import Finding
from harness.engine.futures import result_of, sent
from harness.engine.processes import end_with_parent
from harness.engine.program import StanProgram
from harness.errors import DataError
from harness.files import write_text
from harness.fit import Fit
from harness.plan.spec import Cell, Table
from harness.report.experiment_page import CellRow, Section, render_experiment_page
from harness.report.fit_page import build_fit_page, render_fit_page
from harness.report.overview import OVERVIEW, Entry, write_overview
from harness.report.pages import column_names
from harness.report.written import record_files

FitPages = Literal["one", "all"]
"""Which fits get a page: the first run of each cell and runs that a table marks as bad, or all."""

_OVERVIEW = "Experiments"


@dataclass(frozen=True)
class FitJob:
    """A page of a fit that another process can write."""

    fit: Fit
    path: Path
    title: str
    command: str
    program: StanProgram | None
    trail: tuple[tuple[str, str], ...]
    labels: Mapping[str, Sequence[str]]


def write_site(
    folder: Path,
    sections: Sequence[Section],
    *,
    facts: dict[str, str],
    fits: FitPages = "one",
    workers: int = 1,
) -> Path:
    """Write the site; each page is written completely, after the pages that it links to.

    Parameters
    ----------
    folder
        Folder of the site.
    sections
        One section for each experiment.
    facts
        Facts about the run for the overview: versions, machine, date.
    fits
        Which fits get a page.
    workers
        Number of processes that write pages of fits; the pages do not depend on it.

    Returns
    -------
    Path
        The overview.

    Raises
    ------
    DataError
        If an argument makes no sense.
    StoreError
        If a file cannot be written, or a fit is damaged.
    """
    entries = [write_experiment(folder, each, fits=fits, workers=workers) for each in sections]
    return finish_site(folder, entries, facts)


def write_experiment(
    folder: Path,
    section: Section,
    *,
    fits: FitPages = "one",
    workers: int = 1,
    on_page: Callable[[], object] = lambda: None,
) -> Entry:
    """Write the pages of an experiment's fits, and then the page of the experiment.

    Parameters
    ----------
    folder
        Folder of the site.
    section
        What the page shows.
    fits
        Which fits get a page.
    workers
        Number of processes that write pages of fits; the pages do not depend on it.
    on_page
        Called for each page of a fit that is written, for progress.

    Returns
    -------
    Entry
        The experiment's entry in the overview.

    Raises
    ------
    DataError
        If an argument makes no sense.
    StoreError
        If a file cannot be written, or a fit is damaged.
    """
    if fits not in get_args(FitPages):
        raise DataError(
            f"pages can be made for {' or '.join(get_args(FitPages))} fits; got '{fits}'"
        )
    experiment, results = section.experiment, section.results
    rows = list(_cell_rows(folder, section, fits, workers, on_page))
    page = render_experiment_page(section, rows, [(_OVERVIEW, f"../{OVERVIEW}")])
    write_text(folder / section.href, page)
    return Entry(
        name=experiment.name,
        title=experiment.title,
        source=experiment.source,
        href=section.href,
        profile=results.profile,
        verdicts=section.verdicts,
        claims=tuple(section.claims),
        fits=len(results.metrics),
        planned=results.planned,
        failed=len(results.failures),
        written=(
            *(f"{experiment.name}/{href}" for row in rows for _, href in row.pages),
            section.href,
        ),
    )


def count_fit_pages(section: Section, fits: FitPages = "one") -> int:
    """Count the pages of fits that an experiment gets."""
    return sum(map(len, _shown(section, fits).values()))


def finish_site(folder: Path, entries: Sequence[Entry], facts: dict[str, str]) -> Path:
    """Write the overview of the pages, and remove pages that only an earlier report had.

    Returns
    -------
    Path
        The overview.

    Raises
    ------
    StoreError
        If a file cannot be written.
    """
    overview = write_overview(folder, entries, facts)
    record_files(folder, "html", [*(name for entry in entries for name in entry.written), OVERVIEW])
    return overview


def write_tables(folder: Path, tables: Sequence[Table]) -> None:
    """Write each table as ``FOLDER/NAME.csv``, with column names in a single line."""
    for table in tables:
        frame = table.frame.set_axis(column_names(table.frame), axis="columns")
        write_text(folder / f"{table.name}.csv", frame.to_csv())


def _shown(section: Section, fits: FitPages) -> dict[str, list[int]]:
    """Return the runs of each cell that get a page, by the cell's key.

    Besides the first run these are the runs that a table marks as bad, which somebody will look at.
    """
    results = section.results
    bad = {
        (mark.cell, mark.replication)
        for table in section.tables
        for mark in table.marks
        if mark.tone == "bad"
    }
    return {
        cell.key: [
            run
            for number, run in enumerate(results.replications(cell))
            if fits == "all" or number == 0 or (cell.key, run) in bad
        ]
        for cell in results.cells
    }


def _cell_rows(
    folder: Path, section: Section, fits: FitPages, workers: int, on_page: Callable[[], object]
) -> Iterator[CellRow]:
    """Write the pages of an experiment's fits and yield its cells."""
    results = section.results
    shown = _shown(section, fits)
    jobs = (
        _job(folder, section, cell, replication)
        for cell in results.cells
        for replication in shown[cell.key]
    )
    worst = []
    for finding in _written(jobs, min(workers, sum(map(len, shown.values())))):
        worst.append(finding)
        on_page()
    of_cell = iter(worst)
    for cell in results.cells:
        pages = [(each, _page_name(cell, each)) for each in shown[cell.key]]
        found = list(islice(of_cell, len(pages)))
        yield CellRow(
            cell,
            len(results.replications(cell)),
            section.across[cell.key],
            max(found, key=lambda finding: finding.severity),
            pages,
        )


def _job(folder: Path, section: Section, cell: Cell, replication: int) -> FitJob:
    name = section.experiment.name
    only = shlex.quote(",".join(f"{factor}={value}" for factor, value in cell.factors.items()))
    return FitJob(
        section.results.load(cell, replication),
        folder / name / _page_name(cell, replication),
        f"{cell.label}, run {replication}",
        f"{section.command} --only {only}" if cell.factors else section.command,
        cell.program,
        ((_OVERVIEW, f"../{OVERVIEW}"), (section.experiment.title, "index.html")),
        cell.model.labels,
    )


def _page_name(cell: Cell, replication: int) -> str:
    return f"{cell.key}-{replication}.html"


def _written(jobs: Iterator[FitJob], workers: int) -> Iterator[Finding]:
    """Write pages and yield the worst finding of each fit, in the order of the jobs."""
    if workers <= 1:
        yield from map(_write_fit, jobs)
        return
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=end_with_parent
    ) as pool:
        running: list[Future[Finding]] = []
        try:
            for job in jobs:
                # Keep only as many fits in memory as the workers need.
                running.append(sent(pool, _write_fit, job))
                if len(running) > 2 * workers:
                    yield result_of(running.pop(0))
            yield from map(result_of, running)
        except BaseException:
            # An interrupt or an error is not kept waiting for pages that nobody needs any more.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _write_fit(job: FitJob) -> Finding:
    """Write a page; return the fit's worst finding."""
    page = build_fit_page(
        job.fit, title=job.title, program=job.program, command=job.command, labels=job.labels
    )
    write_text(job.path, render_fit_page(page, job.trail))
    return page.findings[0]
