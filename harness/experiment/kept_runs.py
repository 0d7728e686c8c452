"""Runs of a long profile, kept as a row each, from which tables and verdicts are made.

``python -m harness.experiment.kept_runs [STORE EXPERIMENT ...]`` adds what a store has of
experiments' ``paper`` profiles to ``experiments/published/runs-EXPERIMENT.csv`` of this checkout.
Then it makes tables and verdicts from all rows (:mod:`harness.report.verdicts`).  So a profile that
takes days can be run in parts, of whole cells, on several machines.  Draws are not kept: only what
was measured of each run.  All runs of a file come from one revision of the project.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Never, get_args

import pandas as pd

from harness.engine.toolchain import require_cmdstan
from harness.errors import DataError, HarnessError
from harness.experiment.results import rows_of
from harness.experiment.run import Plan, make_plan
from harness.experiment.store import Store
from harness.files import write_text
from harness.folders import shipped
from harness.plan.catalogue import load_experiment
from harness.plan.spec import Cell, Experiment, Profile, Results
from harness.report.experiment_page import Section
from harness.report.site import write_tables
from harness.report.verdicts import claims_table, write_verdicts

_COMMAND = "python -m harness.experiment.kept_runs"
_PROFILE: Profile = "paper"
_MADE = re.compile(r"# Profile (\w+); Stan (\S+); revision (\w+)\n")
_KEY = ["cell", "replication"]


@dataclass(frozen=True)
class KeptRuns:
    """What was measured of some runs of an experiment.

    Attributes
    ----------
    experiment, profile
        What was run.
    stan_version, revision
        The version of Stan, and the revision of the project, that made all of them.
    frame
        A row a run: ``cell`` (its key), ``replication``, ``seed``, ``finished`` (a date),
        ``seconds``, ``gradients`` and what the experiment measures.
    """

    experiment: str
    profile: Profile
    stan_version: str
    revision: str
    frame: pd.DataFrame

    def with_runs(self, other: KeptRuns) -> KeptRuns:
        """Return these runs and other ones, which replace those of the same cell and number.

        Raises
        ------
        DataError
            If the others were made by another revision, version of Stan, or profile.
        """
        made, others = ((each.profile, each.stan_version, each.revision) for each in (self, other))
        if made != others:
            raise DataError(
                f"the kept runs of {self.experiment} are of {', '.join(made)}, and the new ones of "
                f"{', '.join(others)}: run the same revision, or remove the kept runs first"
            )
        both = pd.concat([self.frame, other.frame]).drop_duplicates(_KEY, keep="last")
        return replace(self, frame=both.sort_values(_KEY, ignore_index=True))


def runs_of_store(plan: Plan, store: Store, stan_version: str) -> KeptRuns:
    """Return what a store has of a plan's runs, of cells whose runs are all there.

    Raises
    ------
    DataError
        If it has none, or they were not made from a single checkout.
    StoreError
        If a result is damaged.
    """
    rows: list[dict[str, Any]] = []
    revisions: set[str] = set()
    found = [(task, store.checked(task)) for task in plan.tasks]
    partly = {task.cell.key for task, record in found if record is None}
    for task, record in found:
        if record is not None and task.cell.key not in partly:
            revisions.add(record.get("git_revision") or "unknown")
            finished = {"finished": str(record["finished"])[:10]}
            factors = task.cell.factors
            rows += [
                {name: value for name, value in (row | finished).items() if name not in factors}
                for row in rows_of(task, record)
            ]
    name = plan.experiment.name
    if not rows:
        raise DataError(
            f"{store.root} has no cell of {name} in the profile {plan.profile} with all its runs"
        )
    if len(revisions) > 1 or revisions == {"unknown"}:
        raise DataError(
            f"runs are kept if they come from one checkout; those of {name} in {store.root} are of "
            f"the revisions {', '.join(sorted(revisions))}"
        )
    frame = pd.DataFrame(rows)
    first = [*_KEY, "seed", "finished"]
    frame = frame[first + [column for column in frame if column not in first]]
    return KeptRuns(name, plan.profile, stan_version, revisions.pop(), frame)


def write_runs(kept: KeptRuns, folder: Path) -> None:
    """Write runs to their file in a folder.

    Raises
    ------
    StoreError
        If it cannot be written.
    """
    made = f"# Profile {kept.profile}; Stan {kept.stan_version}; revision {kept.revision}\n"
    text = kept.frame.to_csv(index=False, float_format="%.9g")
    write_text(folder / f"runs-{kept.experiment}.csv", made + text)


def read_runs(path: Path) -> KeptRuns:
    """Read a file of runs.

    Raises
    ------
    DataError
        If it cannot be read, or its first line does not say what made it.
    """
    try:
        with path.open(encoding="utf-8") as file:
            made = _MADE.fullmatch(file.readline())
            if made is None or made[1] not in get_args(Profile):
                raise DataError(f"the first line of {path} does not say what made the runs")
            frame = pd.read_csv(file, dtype={"finished": str})
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read the runs in {path}: {error}") from error
    profile = next(each for each in get_args(Profile) if each == made[1])
    return KeptRuns(path.stem.removeprefix("runs-"), profile, made[2], made[3], frame)


def read_all_runs(folder: Path) -> list[KeptRuns]:
    """Read all files of runs in a folder.

    Raises
    ------
    DataError
        For the same reasons as in :func:`read_runs`.
    """
    return [read_runs(path) for path in sorted(folder.glob("runs-*.csv"))]


def results_of(experiment: Experiment, kept: KeptRuns) -> Results:
    """Return kept runs as an experiment's results, without draws.

    Raises
    ------
    DataError
        If there are runs of a cell that is not in the grid.
    """
    grid = {cell.key: cell for cell in experiment.grid(kept.profile)}
    strange = sorted(set(kept.frame["cell"]) - set(grid))
    if strange:
        raise DataError(
            f"the kept runs of {experiment.name} have cells that its profile {kept.profile} lacks: "
            f"{', '.join(strange)}"
        )
    factors = pd.DataFrame([{"cell": key, **cell.factors} for key, cell in grid.items()])
    metrics = factors.merge(kept.frame.drop(columns="finished"), on="cell")
    counts = metrics["cell"].value_counts()

    def load(cell: Cell, replication: int) -> Never:
        raise DataError(f"the draws of {cell.key}, run {replication}, were not kept")

    return Results(
        kept.profile,
        tuple(cell for key, cell in grid.items() if counts.get(key, 0) >= 2),
        metrics,
        load,
        sum(cell.replications for cell in grid.values()),
        finished=str(kept.frame["finished"].max()),
    )


def write_tables_of(kept: KeptRuns, root: Path) -> None:
    """Write an experiment's tables and verdicts from kept runs as in a store, below ``root``.

    Raises
    ------
    DataError
        For the same reasons as in :func:`results_of`, or if a table needs draws.
    """
    experiment = load_experiment(kept.experiment)
    results = results_of(experiment, kept)
    tables, claims = experiment.tables(results), experiment.claims(results)
    section = Section(experiment, results, claims, tables, (), {}, "", "")
    verdicts = claims_table(section, kept.stan_version)
    write_tables(root / kept.experiment / "tables", [*tables, verdicts])


def add_runs(checkout: Path, store: Store, name: str) -> None:
    """Add a store's runs of an experiment to those that a checkout keeps.

    Raises
    ------
    DataError
        If the store has no such runs, or they do not go with the kept ones.
    StoreError
        If a result is damaged, or the file cannot be written.
    ToolchainError
        If there is no CmdStan, which tells which runs are of the present programs.
    """
    cmdstan = require_cmdstan()
    plan = make_plan(load_experiment(name), _PROFILE, cmdstan)
    now = runs_of_store(plan, store, cmdstan.version)
    path = _folder(checkout) / f"runs-{name}.csv"
    write_runs(read_runs(path).with_runs(now) if path.exists() else now, path.parent)


def write_verdicts_of_runs(checkout: Path) -> None:
    """Write tables, README and page of a checkout from the runs that it keeps.

    Raises
    ------
    DataError
        If it keeps none, a file cannot be read, or a table needs draws.
    StoreError
        If a file cannot be written.
    """
    with TemporaryDirectory() as folder:
        made = Path(folder)
        for kept in read_all_runs(_folder(checkout)):
            write_tables_of(kept, made)
        # As the default profile's store, and as a longer one, whose tables are kept.
        write_verdicts(checkout, made, made)


def _folder(checkout: Path) -> Path:
    return checkout / "experiments" / "published"


def main(*arguments: str) -> int:
    """Keep runs, and write verdicts and pages; on failure print why and return 1."""
    if len(arguments) == 1:
        print(f"usage: {_COMMAND} [STORE EXPERIMENT ...]", file=sys.stderr)
        return 2
    checkout = shipped("experiments").parent
    try:
        for name in arguments[1:]:
            add_runs(checkout, Store(Path(arguments[0])), name)
        write_verdicts_of_runs(checkout)
    except HarnessError as error:
        print(f"harness: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
