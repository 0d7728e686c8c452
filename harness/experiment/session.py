"""What the command line asks for: run experiments, report, show status, clean."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import pandas as pd

from harness.engine.nuts import quiet_cmdstanpy
from harness.engine.toolchain import CmdStan, require_cmdstan
from harness.errors import DataError
from harness.experiment.results import read_results, status, write_index
from harness.experiment.run import Keep, Plan, make_plan, run_plan
from harness.experiment.store import Store
from harness.experiment.workers import DaskWorkers, LocalWorkers
from harness.plan.catalogue import experiment_names, load_experiment
from harness.plan.spec import Profile
from harness.report.experiment_page import build_section
from harness.report.markdown import write_markdown
from harness.report.site import FitPages, remove_report, write_site, write_tables
from harness.report.verdicts import claims_table


@dataclass(frozen=True)
class Selection:
    """Which experiments, in which profile, in which store.

    Attributes
    ----------
    names
        Names of experiments; all of them if empty.
    profile
        Size of the run.
    root
        Folder of results.
    only
        Cells to keep, each a mapping of factors to values; all if empty.
    data_dir
        Folder with files of the user's own, for the cells that need some.

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
        """The store."""
        return Store(self.root.resolve())

    def plans(self, cmdstan: CmdStan) -> list[Plan]:
        """List the tasks of every experiment."""
        experiments = [load_experiment(name) for name in (self.names or experiment_names())]
        return [
            make_plan(e, self.profile, cmdstan, self.only, data_dir=self.data_dir)
            for e in experiments
        ]


@dataclass(frozen=True)
class ReportSettings:
    """What the report is.

    Attributes
    ----------
    form
        ``html``: a site; ``md``: one Markdown file with figures beside it, without single fits.
    fits
        Which fits get a page.
    workers
        Processes that write such pages.
    """

    form: Literal["html", "md"] = "html"
    fits: FitPages = "one"
    workers: int = 1


@dataclass(frozen=True)
class Summary:
    """What a run came to.

    Attributes
    ----------
    page
        The report.
    counts
        By experiment: tasks found, finished, failed, failed before, set aside.
    store_bytes
        Size of the store.
    """

    page: Path
    counts: dict[str, dict[str, int]]
    store_bytes: int


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
        What to run.
    workers
        CmdStan processes at once; by default one a core.
    scheduler
        Address of a Dask scheduler to send the tasks to, instead of this machine.
    retry_failed
        Whether to run again what failed before.
    keep
        Draws, or summaries with a thousand draws a chain.
    time_limit
        Seconds after which CmdStan is stopped and the task counts as failed.

    Raises
    ------
    HarnessError
        If a name is unknown, there is no CmdStan and none can be made, a program does not
        compile, or the store cannot be written.
    """
    started = time.perf_counter()
    store = selection.store
    for name in selection.names:
        load_experiment(name)  # a wrong name is said before anything is made
    store.prepare()
    cmdstan = require_cmdstan()
    facts = {"git_revision": git_revision()}
    counts = {}
    plans = selection.plans(cmdstan)
    with _unattended(), DaskWorkers(scheduler) if scheduler else LocalWorkers(workers) as pool:
        for plan in plans:
            done = run_plan(
                plan.limited(time_limit),
                store,
                cmdstan,
                pool,
                retry_failed=retry_failed,
                keep=keep,
                facts=facts,
            )
            counts[plan.experiment.name] = dict(done)
    # The report shows all that the store has of the profile, not only what was run now.
    whole = replace(selection, only=()).plans(cmdstan) if selection.only else plans
    settings = ReportSettings(workers=1 if scheduler else pool.slots)
    page = _report(whole, selection, cmdstan, started, settings)
    return Summary(page, counts, store.size())


def report_session(selection: Selection, settings: ReportSettings) -> Path:
    """Write tables, index and report from what the store has, and return the report's path."""
    started = time.perf_counter()
    cmdstan = require_cmdstan()
    selection.store.prepare()
    return _report(selection.plans(cmdstan), selection, cmdstan, started, settings)


def status_session(selection: Selection) -> dict[str, pd.DataFrame]:
    """Count tasks by state, for each experiment."""
    plans = selection.plans(require_cmdstan())
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
        # Only what a run of ours made is removed, and nothing through a link.
        if folder.is_symlink() or not (folder / ".lock").is_file():
            continue
        with store.writing(name):
            freed += store.size(name)
            shutil.rmtree(folder)
    return freed + remove_report(store.report)


@contextlib.contextmanager
def _unattended() -> Iterator[None]:
    """Keep CmdStanPy quiet and let a polite 'stop' end a run as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with quiet_cmdstanpy():
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


def git_revision() -> str:
    """Revision of the checkout that this package runs from; empty for an installed package."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""


def _report(
    plans: Sequence[Plan],
    selection: Selection,
    cmdstan: CmdStan,
    started: float,
    settings: ReportSettings,
) -> Path:
    sections = []
    store = selection.store
    options = "" if selection.data_dir is None else f"--data-dir {selection.data_dir}"
    for plan in plans:
        name = plan.experiment.name
        results = read_results(plan, store)
        write_index(plan, store, results)
        if not results.cells:
            print(f"{name}: nothing to report yet", file=sys.stderr)
            continue
        print(f"{name}: writing the report", file=sys.stderr)
        section = build_section(plan.experiment, results, options=options)
        claims = claims_table(section, cmdstan.version)
        write_tables(store.tables(name), [*section.tables, claims])
        sections.append(section)
        for claim in section.claims:
            print(f"{name}: {claim.verdict}: {claim.statement}", file=sys.stderr)
    facts = _facts(cmdstan, time.perf_counter() - started)
    if settings.form == "md":
        return write_markdown(store.report, sections, facts=facts)
    return write_site(
        store.report, sections, facts=facts, fits=settings.fits, workers=settings.workers
    )


def _facts(cmdstan: CmdStan, seconds: float) -> dict[str, str]:
    return {
        "Made": time.strftime("%Y-%m-%d %H:%M %Z"),
        "This run took": f"{seconds:.0f} s (fits that were in the store already not counted)",
        "CmdStan": f"{cmdstan.version} ({cmdstan.source})",
        "CmdStanPy, ArviZ": f"{version('cmdstanpy')}, {version('arviz-stats')}",
        "Python": platform.python_version(),
        "Machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
