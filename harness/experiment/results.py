"""Read an experiment's results from its store: records, metrics, index and status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from harness.errors import DataError
from harness.experiment.run import Plan
from harness.experiment.store import DamagedTaskError, Store
from harness.files import write_text
from harness.fit import Fit
from harness.plan.spec import Cell, Failure, Results, Task
from harness.progress import say

T = TypeVar("T")


def read_results(plan: Plan, store: Store) -> Results:
    """Collect the finished fits of a plan.

    A cell with a single finished replication is left out, because its error cannot be estimated.
    A damaged result is set aside, which is reported, and counts as missing.

    Raises
    ------
    StoreError
        If a damaged result cannot be set aside.
    """
    rows: list[dict[str, Any]] = []
    times: list[str] = []
    failures: list[Failure] = []
    tasks: dict[tuple[str, int], Task] = {}
    for task in plan.tasks:
        record = _record(plan, store, task)
        if record is not None:
            rows += rows_of(task, record)
            times.append(record["finished"])
            tasks |= {(task.cell.key, each): task for each in task.replications}
        elif (message := store.failure(task)) is not None:
            failures.append(Failure(task.cell.label, task.replication, message))
    finished = Counter(row["cell"] for row in rows)
    cells = tuple(cell for cell in plan.cells if finished[cell.key] >= 2)
    metrics = pd.DataFrame(rows, columns=None if rows else ["cell", "replication"])

    def load(cell: Cell, replication: int) -> Fit:
        task = tasks[cell.key, replication]
        return task.run_of(store.load(task), replication)

    @lru_cache(maxsize=1)  # replications of a batch are asked for one after the other
    def draws_of_batch(key: str, first: int) -> dict[str, np.ndarray]:
        return store.target_draws(tasks[key, first])

    def draws(cell: Cell, replication: int) -> dict[str, np.ndarray]:
        task = tasks[cell.key, replication]
        if cell.batch == 1:
            return store.target_draws(task)
        part = replication - task.replication
        whole = draws_of_batch(cell.key, task.replication)
        return {name: np.split(array, cell.batch)[part] for name, array in whole.items()}

    return Results(
        plan.profile,
        cells,
        metrics,
        load,
        sum(len(task.replications) for task in plan.tasks),
        tuple(failures),
        draws,
        max(times, default=""),
    )


def write_index(plan: Plan, store: Store, results: Results) -> None:
    """Write ``STORE/EXPERIMENT/index.csv``: a row per finished replication."""
    write_text(store.root / plan.experiment.name / "index.csv", results.metrics.to_csv(index=False))


def status(plan: Plan, store: Store) -> pd.DataFrame:
    """Count tasks by state (finished, failed, damaged, to do), with one row per cell."""
    counts: dict[str, Counter[str]] = {cell.key: Counter() for cell in plan.cells}
    for task in plan.tasks:
        try:
            state = "to do" if store.checked(task) is None else "finished"
        except DamagedTaskError:
            state = "damaged"
        if state == "to do" and store.failure(task) is not None:
            state = "failed"
        counts[task.cell.key][state] += 1
    states = ["finished", "failed", "damaged", "to do"]
    return pd.DataFrame(
        [[counts[cell.key][state] for state in states] for cell in plan.cells],
        index=pd.Index([cell.label for cell in plan.cells], name=plan.experiment.name),
        columns=states,
    )


def without_damage(plan: Plan, store: Store, work: Callable[[], T]) -> T:
    """Do work with stored fits; if one turns out to be damaged, set it aside and begin again.

    Raises
    ------
    StoreError
        If a damaged result cannot be set aside.
    """
    while True:
        try:
            return work()
        except DamagedTaskError as error:
            _set_aside(plan, store, error)


def _record(plan: Plan, store: Store, task: Task) -> dict[str, Any] | None:
    try:
        return store.checked(task)
    except DamagedTaskError as error:
        _set_aside(plan, store, error)
        return None


def _set_aside(plan: Plan, store: Store, error: DamagedTaskError) -> None:
    place = store.set_aside(error.task)
    say(f"{plan.experiment.name}: {error}; moved to {place}, and left out until it is run again")


def rows_of(task: Task, record: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each replication of a fit, which share its cost equally.

    Raises
    ------
    DataError
        If something measured has the name of one of the cell's factors, which would hide it.
    """

    def cost(kind: str) -> float:
        return float(
            sum(
                sum(_as_list(record.get(f"{kind}_{phase}", 0)))
                for phase in ("pilot", "warmup", "sampling")
            )
            / task.cell.batch
        )

    metrics = record["metrics"]
    runs = metrics if isinstance(metrics, list) else [metrics]
    if both := sorted(set(task.cell.factors) & {name for own in runs for name in own}):
        raise DataError(
            f"{task.cell.key} measures something with the name of its factor {both[0]}: rename it"
        )
    return [
        {
            "cell": task.cell.key,
            **task.cell.factors,
            "replication": replication,
            "seed": task.seed,
            "seconds": cost("seconds"),
            "gradients": cost("gradients"),
            **own,
        }
        for replication, own in zip(task.replications, runs, strict=True)
    ]


def _as_list(value: Any) -> list[float]:
    """Return the chains' costs; NetCDF returns a single number as a number, several as a list."""
    return list(value) if isinstance(value, list) else [value]
