"""Run an experiment's tasks that are not in the store, and lose nothing if stopped."""

from __future__ import annotations

import math
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from harness.engine.compile import CompiledProgram, compile_programs, program_digest
from harness.engine.futures import done_soon
from harness.engine.program import StanProgram
from harness.engine.signals import interrupts_put_off
from harness.engine.stanc import self_contained
from harness.engine.toolchain import CmdStan
from harness.errors import DataError, WorkersError
from harness.experiment.job import Job, Outcome, SentProgram
from harness.experiment.left_running import marked_run
from harness.experiment.store import DamagedTaskError, Store
from harness.experiment.workers import Workers
from harness.fit import Fit
from harness.plan.spec import Cell, Experiment, Profile, Task, tasks_of
from harness.progress import Progress

Keep = Literal["draws", "summaries"]

_DRAWS_IN_A_SUMMARY = 1000
"""Draws per chain that ``--keep summaries`` keeps, for figures and rank plots."""


@dataclass(frozen=True)
class Plan:
    """Tasks of an experiment in one profile.

    Attributes
    ----------
    experiment, profile
        The experiment and profile that they belong to.
    tasks
        All tasks, cell by cell.
    """

    experiment: Experiment
    profile: Profile
    tasks: tuple[Task, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Cells of the tasks."""
        return tuple({task.cell.key: task.cell for task in self.tasks}.values())

    def limited(self, seconds: float | None) -> Plan:
        """Return the plan with a limit on the time of each CmdStan run."""

        def limit(task: Task) -> Task:
            nuts = replace(task.cell.nuts, time_limit=seconds)
            return replace(task, cell=replace(task.cell, nuts=nuts))

        return self if seconds is None else replace(self, tasks=tuple(map(limit, self.tasks)))


def make_plan(
    experiment: Experiment,
    profile: Profile,
    cmdstan: CmdStan,
    only: Sequence[Mapping[str, str]] = (),
    *,
    data_dir: Path | None = None,
) -> Plan:
    """List the tasks of a profile.

    Parameters
    ----------
    experiment, profile
        What to plan.
    cmdstan
        CmdStan that would make the draws; nothing is compiled.
    only
        Keep only cells that match one of these, factor by factor; keep all if empty.
    data_dir
        Folder with the user's own files, for the cells that need them.

    Raises
    ------
    DataError
        If no cell matches.
    CompileError
        If a program is not valid Stan.
    """
    cells = experiment.grid(profile)
    if data_dir is not None and experiment.user_grid is not None:
        cells += experiment.user_grid(profile, data_dir)
    cells = _chosen(experiment, cells, only)
    programs = {cell.program for cell in cells if cell.program is not None}
    digests = {program: program_digest(program, cmdstan.stanc) for program in programs}
    tasks = tuple(tasks_of(experiment.name, cells, digests, cmdstan.version))
    return Plan(experiment, profile, tasks)


def quickest_first(plans: Iterable[Plan], store: Store) -> list[Plan]:
    """Sort plans by the processor time that they still need.

    A plan needs the time that its experiment expects, multiplied by the share of its tasks that the
    store lacks, so finished ones come first.  An experiment that expects no time comes last.
    """

    def seconds(plan: Plan) -> float:
        missing = sum(not store.folder(task).exists() for task in plan.tasks)
        whole = plan.experiment.processor_seconds.get(plan.profile, math.inf)
        return whole * missing / len(plan.tasks) if missing else 0.0

    return sorted(plans, key=seconds)


def compile_missing(plan: Plan, store: Store, cmdstan: CmdStan) -> None:
    """Compile the programs of the tasks that the store lacks, one after another.

    Raises
    ------
    CompileError
        If a program does not compile.
    """
    tasks = [task for task in plan.tasks if not store.folder(task).exists()]
    compile_programs(_needed(tasks), cmdstan, workers=1)


def run_plan(
    plan: Plan,
    store: Store,
    cmdstan: CmdStan,
    workers: Workers,
    *,
    retry_failed: bool = False,
    keep: Keep = "draws",
    facts: Mapping[str, Any] | None = None,
    on_all_sent: Callable[[], None] | None = None,
) -> Counter[str]:
    """Run the tasks that are not in the store.

    Parameters
    ----------
    plan
        The tasks.
    store
        Store of finished fits.
    cmdstan
        CmdStan that compiles and runs programs on this machine.
    workers
        Workers that run the tasks.
    retry_failed
        Whether to run tasks again that failed before.
    keep
        ``summaries`` keeps at most 1,000 draws per chain of each fit, after the metrics are
        computed from all of them.
    facts
        Additional entries for the records, such as the git revision.
    on_all_sent
        Called once when the workers have the last task; slots that become free before it is
        finished can prepare what comes next.

    Returns
    -------
    Counter
        How many tasks were ``found``, ``finished`` now, ``failed`` now or ``failed before``, and
        damaged ones that were ``set aside``.

    Raises
    ------
    StoreError
        If another run writes to the store, or results cannot be written.
    CompileError
        If a program does not compile.
    WorkersError
        If the cluster that does the work is lost.
    KeyboardInterrupt
        If interrupted; its message says how to continue.
    """
    name = plan.experiment.name
    with store.writing(name), marked_run(store.root / name) as ended:
        counts: Counter[str] = Counter()
        missing = list(_missing(plan, store, counts, retry_failed=retry_failed))
        programs = _programs(name, missing, cmdstan, remote=workers.remote)
        with Progress(len(missing), name, "fit") as progress:
            if ended:
                progress.say(f"{name}: ended {ended} processes that a killed run had left")
            if counts["found"]:
                progress.say(f"{name}: {counts['found']} fits are already in the store")
            run = _Run(plan, store, keep, facts or {}, progress, counts, on_all_sent)
            try:
                run.perform(missing, programs, workers)
                store.refuse_lost(run.written)
            except CancelledError:
                workers.stop()
                raise WorkersError(
                    f"{name}: the Dask cluster is gone; {run.stopped()} are in {store.root}.\n"
                    "Run the same command again to continue."
                ) from None
            except KeyboardInterrupt:
                workers.stop()
                raise KeyboardInterrupt(
                    f"{name}: stopped with {run.stopped()} in {store.root}; run the same command "
                    "again to continue"
                ) from None
            except BaseException:
                workers.stop()
                raise
        return counts


def _chosen(
    experiment: Experiment, cells: tuple[Cell, ...], only: Sequence[Mapping[str, str]]
) -> tuple[Cell, ...]:
    def matches(cell: Cell, wanted: Mapping[str, str]) -> bool:
        factors = {name.lower(): str(value).lower() for name, value in cell.factors.items()}
        return all(factors.get(k.lower()) == v.lower() for k, v in wanted.items())

    chosen = tuple(c for c in cells if not only or any(matches(c, wanted) for wanted in only))
    if not chosen:
        known = sorted({f"{k}={v}" for cell in cells for k, v in cell.factors.items()})
        raise DataError(f"--only matches no cell of {experiment.name}; it has {', '.join(known)}")
    return chosen


def _missing(
    plan: Plan, store: Store, counts: Counter[str], *, retry_failed: bool
) -> Iterator[Task]:
    """Return the tasks to run; a damaged result is reported, set aside, and counts as missing."""
    with Progress(0, plan.experiment.name, "fit") as progress:
        for task in plan.tasks:
            try:
                if store.checked(task) is not None:
                    counts["found"] += 1
                    continue
            except DamagedTaskError as error:
                place = store.set_aside(task)
                counts["set aside"] += 1
                progress.say(f"{error}; moved to {place} and run again")
            if not retry_failed and store.failure(task) is not None:
                counts["failed before"] += 1
                continue
            yield task


def _needed(tasks: Iterable[Task]) -> list[StanProgram]:
    """Return the programs of tasks, each of them once."""
    return list(dict.fromkeys(t.cell.program for t in tasks if t.cell.program is not None))


def _programs(
    name: str, tasks: Sequence[Task], cmdstan: CmdStan, *, remote: bool
) -> dict[StanProgram, CompiledProgram | SentProgram]:
    """Compile the programs here, or write them out for another machine."""
    needed = _needed(tasks)
    if remote:
        return {
            program: SentProgram(
                f"{program.path.parent.name}/{program.path.name}",
                self_contained(program, cmdstan.stanc),
                program_digest(program, cmdstan.stanc),
            )
            for program in needed
        }
    with Progress(len(needed), f"{name}: compile", "program") as progress:
        return dict(compile_programs(needed, cmdstan, on_compiled=lambda _: progress.step()))


@dataclass
class _Run:
    """What is fixed while tasks run, and their results so far.

    Attributes
    ----------
    plan, store, keep, facts
        The same as for :func:`run_plan`.
    progress
        Where progress is shown.
    counts
        How many tasks have had each outcome.
    on_all_sent
        The same as for :func:`run_plan`.
    written
        Tasks whose fits have been written.
    """

    plan: Plan
    store: Store
    keep: Keep
    facts: Mapping[str, Any]
    progress: Progress
    counts: Counter[str]
    on_all_sent: Callable[[], None] | None
    written: list[Task] = field(default_factory=list)

    def perform(
        self,
        tasks: Sequence[Task],
        programs: Mapping[StanProgram, CompiledProgram | SentProgram],
        workers: Workers,
    ) -> None:
        """Keep every slot busy, with one more job waiting; write each fit as it arrives."""
        left_in_cell = Counter(task.cell.key for task in tasks)
        queue = deque(tasks)
        running: dict[Future[Outcome], Task] = {}
        all_sent = self.on_all_sent
        while True:
            while queue and len(running) < 2 * workers.slots:
                task = queue.popleft()
                running[workers.submit(_job(task, programs))] = task
            if not queue and all_sent is not None:
                all_sent()
                all_sent = None
            if not running:
                return
            for future in done_soon(running, first=True):
                task = running.pop(future)
                with interrupts_put_off():
                    self._finish(task, _outcome(future))
                    self.progress.step()
                    left_in_cell[task.cell.key] -= 1
                    if not left_in_cell[task.cell.key]:
                        name = self.plan.experiment.name
                        self.progress.say(f"{name}: {task.cell.label} is finished")

    def _finish(self, task: Task, outcome: Outcome) -> None:
        """Write a fit with its metrics, or the reason why there is none."""
        if outcome.fit is None:
            self.counts["failed"] += 1
            message = outcome.failure or "failed without a message"
            self.store.fail(task, message)
            self.progress.say(f"{task.name} failed: {message.splitlines()[0]}")
            return
        experiment, fit = self.plan.experiment, outcome.fit
        if experiment.condense is not None:
            fit = experiment.condense(task.cell, fit)
        found = measured(experiment, task, fit)
        metrics = found if task.cell.batch > 1 else found[0]
        if self.keep == "summaries":
            fit = fit.thinned(_DRAWS_IN_A_SUMMARY)
        facts = {"seconds_in_all": outcome.seconds, "kept": self.keep, "pid": os.getpid()}
        self.store.write(task, fit, metrics, facts | dict(self.facts))
        self.written.append(task)
        self.counts["finished"] += 1

    def stopped(self) -> str:
        """Say how many fits are in the store."""
        done = self.counts["found"] + self.counts["finished"]
        return f"{done} of {len(self.plan.tasks)} fits"


def measured(experiment: Experiment, task: Task, fit: Fit) -> list[dict[str, float]]:
    """Measure each replication that a task's fit holds."""
    found = [
        dict(experiment.measure(task.cell, task.run_of(fit, each))) for each in task.replications
    ]
    if task.cell.batch > 1 and experiment.measure_batch is not None:
        further = experiment.measure_batch(task.cell, fit)
        found = [{**own, **more} for own, more in zip(found, further, strict=True)]
    return found


def _outcome(future: Future[Outcome]) -> Outcome:
    """Return what a job sent back; if its worker died, it has failed, and other jobs continue.

    Raises
    ------
    CancelledError
        If the job will never finish, because the cluster is lost.
    """
    try:
        return future.result()
    except CancelledError:
        raise
    except Exception as error:
        return Outcome(None, f"its worker did not finish: {error}", 0.0)


def _job(task: Task, programs: Mapping[StanProgram, CompiledProgram | SentProgram]) -> Job:
    cell = task.cell
    program = None if cell.program is None else programs[cell.program]
    return Job(task.name, task.model, cell.method, cell.settings, cell.nuts, task.seed, program)
