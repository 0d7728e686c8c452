"""The report of a run: an overview, a page per experiment and pages of single fits.

``FOLDER/index.html``, ``FOLDER/EXPERIMENT/index.html`` and ``FOLDER/EXPERIMENT/CELL-RUN.html``,
each of which needs no other file.  Beside them lies a list of the files that were written.  The
next report removes those that it does not write again, and never anything else.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Literal, get_args

from harness.diagnosis import Finding
from harness.engine.program import StanProgram
from harness.errors import DataError
from harness.files import write_text
from harness.fit import Fit
from harness.plan.spec import Cell, Table
from harness.progress import Progress
from harness.report.experiment_page import CellRow, Section, render_experiment_page
from harness.report.fit_page import build_fit_page, render_fit_page
from harness.report.pages import column_names, render

FitPages = Literal["one", "all"]
"""Which fits get a page: the first run of each cell, or all runs."""

_LISTS = {"html": "files-html.txt", "md": "files-md.txt"}
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


def write_site(
    folder: Path,
    sections: Sequence[Section],
    *,
    facts: dict[str, str],
    fits: FitPages = "one",
    workers: int = 1,
) -> Path:
    """Write the site; each page is complete or not there, and follows the pages that it links to.

    Parameters
    ----------
    folder
        Folder of the site.
    sections
        One per experiment.
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
    if fits not in get_args(FitPages):
        raise DataError(f"pages are of {' or '.join(get_args(FitPages))} fits; got '{fits}'")
    written = []
    for section in sections:
        name = section.experiment.name
        rows = list(_cell_rows(folder, section, fits, workers))
        written += [f"{name}/{href}" for row in rows for _, href in row.pages]
        trail = [(_OVERVIEW, "../index.html")]
        write_text(folder / section.href, render_experiment_page(section, rows, trail))
        written.append(section.href)
    overview = render("index.html", sections=sections, run_facts=facts, trail=())
    write_text(folder / "index.html", overview)
    record_files(folder, "html", [*written, "index.html"])
    return folder / "index.html"


def record_files(folder: Path, form: Literal["html", "md"], names: Sequence[str]) -> None:
    """Record what a report wrote, and remove what only the previous one of its form wrote.

    Parameters
    ----------
    folder
        Folder of the report.
    form
        Which of the two forms was written; the other one stays.
    names
        Files written, relative to it.
    """
    _remove(folder, set(_recorded(folder, _LISTS[form])) - set(names))
    write_text(folder / _LISTS[form], "\n".join(sorted(names)) + "\n")


def remove_report(folder: Path) -> int:
    """Remove what a report wrote and folders that are then empty; return the bytes freed."""
    freed = sum(_remove(folder, {*_recorded(folder, each), each}) for each in _LISTS.values())
    with suppress(OSError):  # something else is in it, or it was never there
        folder.rmdir()
    return freed


def write_tables(folder: Path, tables: Sequence[Table]) -> None:
    """Write each table as ``FOLDER/NAME.csv``, with one line of names."""
    for table in tables:
        frame = table.frame.set_axis(column_names(table.frame), axis="columns")
        write_text(folder / f"{table.name}.csv", frame.to_csv())


def _recorded(folder: Path, listed: str) -> list[str]:
    try:
        names = (folder / listed).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    # Nothing outside the folder, whatever the list says.
    return [name for name in names if name and ".." not in name and not name.startswith("/")]


def _remove(folder: Path, names: set[str]) -> int:
    freed = 0
    for name in names:
        path = folder / name
        with suppress(OSError):
            freed += path.lstat().st_size
            path.unlink()
            if path.parent != folder:
                path.parent.rmdir()  # once it is empty
    return freed


def _cell_rows(folder: Path, section: Section, fits: FitPages, workers: int) -> Iterator[CellRow]:
    """Write the pages of an experiment's fits and yield its cells."""
    results = section.results
    shown = {
        cell.key: results.replications(cell)[: None if fits == "all" else 1]
        for cell in results.cells
    }
    jobs = (
        _job(folder, section, cell, replication)
        for cell in results.cells
        for replication in shown[cell.key]
    )
    total = sum(map(len, shown.values()))
    with Progress(total, f"{section.experiment.name}: report", "page") as progress:
        worst = []
        for finding in _written(jobs, min(workers, total)):
            worst.append(finding)
            progress.step()
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
        ((_OVERVIEW, "../index.html"), (section.experiment.title, "index.html")),
    )


def _page_name(cell: Cell, replication: int) -> str:
    return f"{cell.key}-{replication}.html"


def _written(jobs: Iterator[FitJob], workers: int) -> Iterator[Finding]:
    """Write pages and yield the worst finding of each fit, in the order of the jobs."""
    if workers <= 1:
        yield from map(_write_fit, jobs)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        running: list[Future[Finding]] = []
        for job in jobs:
            # Keep only as many fits in memory as the workers need.
            running.append(pool.submit(_write_fit, job))
            if len(running) > 2 * workers:
                yield running.pop(0).result()
        yield from (future.result() for future in running)


def _write_fit(job: FitJob) -> Finding:
    """Write a page; return the fit's worst finding."""
    page = build_fit_page(job.fit, title=job.title, program=job.program, command=job.command)
    write_text(job.path, render_fit_page(page, job.trail))
    return page.findings[0]
