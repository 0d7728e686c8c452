"""The commands about experiments: run, report, status, clean."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import pandas as pd

from harness.engine.nuts import quiet_cmdstanpy
from harness.engine.processes import children_end_with_us
from harness.engine.toolchain import CmdStan, require_cmdstan
from harness.errors import DataError
from harness.experiment.live_report import LiveReport
from harness.experiment.reporting import evaluate, run_facts, tell_claims
from harness.experiment.results import status, without_damage
from harness.experiment.run import (
    Keep,
    Plan,
    compile_missing,
    make_plan,
    quickest_first,
    run_plan,
)
from harness.experiment.store import Store
from harness.experiment.workers import DaskWorkers, LocalWorkers
from harness.plan.catalogue import experiment_names, load_experiment
from harness.plan.spec import Profile
from harness.progress import Progress, say
from harness.report.experiment_page import Section
from harness.report.markdown import write_markdown
from harness.report.overview import Entry
from harness.report.site import FitPages, count_fit_pages, finish_site, write_experiment
from harness.report.written import remove_report

FAILED = ("failed", "failed before")
"""Counts of a :class:`Summary` that are no success."""


@dataclass(frozen=True)
class Selection:
    """Which experiments to use, in which profile, and in which store.

    Attributes
    ----------
    names
        Names of experiments; if empty, all of them, but those on request only where something is
        asked of the results that the store has.
    profile
        Size of the run.
    root
        Folder of results.
    only
        Cells to run, as mappings of factors to values; all cells if empty.
    data_dir
        Folder with the user's own files, for the cells that need them.

    Raises
    ------
    DataError
        If there is no such folder.
    """

    names: Sequence[str]
    profile: Profile
    root: Path
    only: Sequence[Mapping[str, str]] = ()
    data_dir: Path | None = None

    def __post_init__(self) -> None:
        if self.data_dir is not None and not self.data_dir.is_dir():
            raise DataError(f"there is no folder {self.data_dir} (--data-dir)")

    @property
    def store(self) -> Store:
        """The store in the folder of results."""
        return Store(self.root.resolve())

    @property
    def on_request(self) -> list[str]:
        """Names of experiments that only run when they are named, if none is named."""
        if self.names:
            return []
        return [name for name in experiment_names() if load_experiment(name).on_request]

    @property
    def left_out(self) -> list[str]:
        """How to start what a run without names leaves out, a line for each experiment."""
        return [
            f"{name} runs only if it is named: harness run {name} --profile {self.profile}"
            for name in self.on_request
        ]

    def plans(self, cmdstan: CmdStan, *, stored: bool = False) -> list[Plan]:
        """List the tasks of every experiment.

        Parameters
        ----------
        cmdstan
            As for :func:`harness.experiment.run.make_plan`.
        stored
            Include experiments on request that are not named, if the store has results of them.
        """
        left_out = {
            name for name in self.on_request if not (stored and (self.root / name).is_dir())
        }
        names = self.names or [name for name in experiment_names() if name not in left_out]
        experiments = [load_experiment(name) for name in names]
        return [
            make_plan(e, self.profile, cmdstan, self.only, data_dir=self.data_dir)
            for e in experiments
        ]

    def whole(self, plan: Plan, cmdstan: CmdStan) -> Plan:
        """Return an experiment's plan with all of its cells, which is what the report shows."""
        if not self.only:
            return plan
        return make_plan(plan.experiment, self.profile, cmdstan, data_dir=self.data_dir)


@dataclass(frozen=True)
class ReportSettings:
    """The form of the report.

    Attributes
    ----------
    form
        ``html``: a site.  ``md``: one Markdown file with its figures, without pages of fits.
    fits
        Which fits get a page.
    workers
        Number of processes that write such pages.
    """

    form: Literal["html", "md"] = "html"
    fits: FitPages = "one"
    workers: int = 1


@dataclass(frozen=True)
class Summary:
    """The result of a run.

    Attributes
    ----------
    page
        File of the report.
    counts
        Numbers of tasks by experiment: found, finished, failed, failed before, set aside.
    store_bytes
        Size of the store.
    """

    page: Path
    counts: dict[str, dict[str, int]]
    store_bytes: int


@children_end_with_us()
def run_session(
    selection: Selection,
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    retry_failed: bool = False,
    keep: Keep = "draws",
    time_limit: float | None = None,
) -> Summary:
    """Run experiments and write tables, index and report.

    Parameters
    ----------
    selection
        Which experiments to run.
    workers
        Number of slots, which run one CmdStan process or Python job each; by default one per core.
    scheduler
        Address of a Dask scheduler to send the tasks to, instead of this machine.
    retry_failed
        Whether to run tasks again that failed before.
    keep
        Whether to keep all draws, or summaries with a thousand draws per chain.
    time_limit
        Seconds after which CmdStan is stopped and the task counts as failed.

    Raises
    ------
    HarnessError
        If a name is unknown, there is no CmdStan and none can be assembled, a program does not
        compile, or the store cannot be written.
    """
    started = time.perf_counter()
    store = selection.store
    for name in selection.names:
        load_experiment(name)  # reports a wrong name before anything is made
    store.prepare()
    cmdstan = require_cmdstan()
    facts = {"git_revision": git_revision()}
    counts = {}
    plans = quickest_first(selection.plans(cmdstan), store)
    for line in selection.left_out:
        say(line)
    with quiet_cmdstanpy(), DaskWorkers(scheduler) if scheduler else LocalWorkers(workers) as pool:
        report = LiveReport(
            [selection.whole(plan, cmdstan) for plan in plans],
            store,
            cmdstan,
            pool,
            started=started,
            data_dir=selection.data_dir,
        )
        for plan, following in zip(plans, [*plans[1:], None], strict=True):
            done = run_plan(
                plan.limited(time_limit),
                store,
                cmdstan,
                pool,
                retry_failed=retry_failed,
                keep=keep,
                facts=facts,
                on_all_sent=partial(_compile_beside, following, store, cmdstan, pool),
            )
            counts[plan.experiment.name] = dict(done)
            report.finished(plan)
        page = report.close()
    return Summary(page, counts, store.size())


def _compile_beside(
    plan: Plan | None, store: Store, cmdstan: CmdStan, workers: LocalWorkers | DaskWorkers
) -> None:
    """Compile what the next experiment needs, on a slot that has nothing else to do."""
    # A single slot would write the page only after compiling; remote workers compile themselves.
    if plan is not None and workers.slots > 1 and not workers.remote:
        # A program that does not compile is reported when the experiment's turn has come.
        workers.in_thread(partial(compile_missing, plan, store, cmdstan))


@children_end_with_us()
def report_session(selection: Selection, settings: ReportSettings) -> Path:
    """Write tables, index and report from the fits in the store; return the report's path."""
    started = time.perf_counter()
    cmdstan = require_cmdstan()
    store = selection.store
    store.prepare()
    sections, entries = [], []
    for plan in selection.plans(cmdstan, stored=True):
        name = plan.experiment.name
        write = partial(_write_section, plan, store, cmdstan, selection.data_dir, settings)
        written = without_damage(plan, store, write)
        if written is None:
            say(f"{name}: nothing to report yet")
            continue
        section, entry = written
        sections.append(section)
        if entry is not None:
            entries.append(entry)
        tell_claims(name, section.claims)
    facts = run_facts(cmdstan, time.perf_counter() - started)
    if settings.form == "md":
        return write_markdown(store.report, sections, facts=facts)
    return finish_site(store.report, entries, facts)


def _write_section(
    plan: Plan, store: Store, cmdstan: CmdStan, data_dir: Path | None, settings: ReportSettings
) -> tuple[Section, Entry | None] | None:
    """Write an experiment's tables, and its pages if the report is a site."""
    name = plan.experiment.name
    section = evaluate(plan, store, cmdstan, data_dir)
    if section is None:
        return None
    say(f"{name}: writing the report")
    if settings.form != "html":
        return section, None
    total = count_fit_pages(section, settings.fits)
    with Progress(total, f"{name}: report", "page") as progress:
        entry = write_experiment(
            store.report,
            section,
            fits=settings.fits,
            workers=settings.workers,
            on_page=progress.step,
        )
    return section, entry


def status_session(selection: Selection) -> dict[str, pd.DataFrame]:
    """Count tasks by state, for each experiment."""
    plans = selection.plans(require_cmdstan(), stored=True)
    return {plan.experiment.name: status(plan, selection.store) for plan in plans}


def clean_session(names: Sequence[str], root: Path) -> int:
    """Remove experiments' folders and the report from a store; return the bytes freed.

    Raises
    ------
    DataError
        If a name is unknown.
    StoreError
        If a run is writing to one of them.
    """
    store = Store(root.resolve())
    freed = 0
    for name in names or experiment_names():
        if name not in experiment_names():
            raise DataError(f"there is no experiment '{name}'")
        folder = store.root / name
        # Only remove what one of our runs has made, and nothing through a symbolic link.
        if folder.is_symlink() or not (folder / ".lock").is_file():
            continue
        with store.writing(name):
            removed, left = store.remove(name)
        freed += removed
        if left:
            say(f"{name}: {len(left)} files that harness did not write stay, such as {left[0]}")
    return freed + remove_report(store.report)


def git_revision() -> str:
    """Return the revision of the checkout that this package runs from; empty if installed."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""
