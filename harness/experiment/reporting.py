"""Write an experiment's pages and tables from the fits in the store, here or in another process."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from harness.engine.toolchain import CmdStan
from harness.experiment.results import read_results, without_damage, write_index
from harness.experiment.run import Plan, make_plan
from harness.experiment.store import Store
from harness.plan.catalogue import load_file
from harness.plan.spec import Claim, Profile
from harness.progress import say
from harness.report.experiment_page import Section, build_section
from harness.report.overview import Entry
from harness.report.site import FitPages, write_experiment, write_tables
from harness.report.verdicts import claims_table


@dataclass(frozen=True)
class PageJob:
    """A description of an experiment's page, which another process can write.

    Attributes
    ----------
    name, file
        The experiment, and the file that defines it.
    profile
        Size of the runs.
    root
        Folder of the store.
    data_dir
        Folder with the user's own files, if there is one.
    cmdstan
        CmdStan that made the draws.
    fits
        Which fits get a page.
    workers
        Number of processes that write such pages.
    """

    name: str
    file: Path
    profile: Profile
    root: Path
    data_dir: Path | None
    cmdstan: CmdStan
    fits: FitPages = "one"
    workers: int = 1


def write_pages(job: PageJob) -> Entry | None:
    """Write an experiment's tables and pages; return None if there is nothing to report.

    Raises
    ------
    StoreError
        If a file cannot be written, or a damaged fit cannot be set aside.
    """
    experiment = load_file(job.name, job.file)
    plan = make_plan(experiment, job.profile, job.cmdstan, data_dir=job.data_dir)
    store = Store(job.root)

    def write() -> Entry | None:
        section = evaluate(plan, store, job.cmdstan, job.data_dir)
        if section is None:
            return None
        return write_experiment(store.report, section, fits=job.fits, workers=job.workers)

    return without_damage(plan, store, write)


def evaluate(
    plan: Plan, store: Store, cmdstan: CmdStan, data_dir: Path | None = None
) -> Section | None:
    """Read a plan's results from the store, write index and tables, and return its section.

    Raises
    ------
    StoreError
        If a file cannot be written, or a fit is damaged.
    """
    store.refuse_foreign(plan.experiment.name)
    results = read_results(plan, store)
    write_index(plan, store, results)
    if not results.cells:
        return None
    options = "" if data_dir is None else f"--data-dir {data_dir}"
    try:
        section = build_section(plan.experiment, results, options=options)
    except (LookupError, ValueError, AttributeError, TypeError) as error:
        missing = len(plan.cells) - len(results.cells)
        if not missing:
            raise
        say(
            f"{plan.experiment.name}: its tables cannot be made without the {missing} of "
            f"{len(plan.cells)} cells that lack fits ({type(error).__name__}: {error})"
        )
        return None
    claims = claims_table(section, cmdstan.version)
    write_tables(store.tables(plan.experiment.name), [*section.tables, claims])
    return section


def tell_claims(name: str, claims: Sequence[Claim]) -> None:
    """Print the verdicts on an experiment's claims."""
    for claim in claims:
        say(f"{name}: {claim.verdict}: {claim.statement}")


def run_facts(cmdstan: CmdStan, seconds: float) -> dict[str, str]:
    """Return facts about the run for the overview: versions, machine, date.

    Parameters
    ----------
    cmdstan
        CmdStan that made the draws.
    seconds
        Seconds that the run has taken.
    """
    return {
        "Made": time.strftime("%Y-%m-%d %H:%M %Z"),
        "This run took": f"{seconds:.0f} s (without fits that were already in the store)",
        "CmdStan": f"{cmdstan.version} ({cmdstan.source})",
        "CmdStanPy, ArviZ": f"{version('cmdstanpy')}, {version('arviz-stats')}",
        "Python": platform.python_version(),
        "Machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
