"""A grid of fits that take milliseconds and no CmdStan, for tests with real processes.

``smoke`` sleeps in threads, ``quick`` runs in threads and in processes, ``paper`` has tasks that
fail until the file ``$TINY_MENDED`` is there.
"""

from __future__ import annotations

from pathlib import Path

from survival_method import IN_PROCESSES, IN_THREADS

from harness.engine.nuts import NutsSettings
from harness.fit import Fit
from harness.forms.method import Method
from harness.model import Model
from harness.plan.spec import Cell, Experiment, Profile, Results, Table

MODEL = Model("tiny", Path("no-folder"), {"scale": [1.0, 2.0]}, ("x",), dimension=2)
NUTS = NutsSettings(chains=2, warmup=20, draws=40)


def cell(
    key: str, method: Method, replications: int, *, draws: int = 40, fails: str | None = None
) -> Cell:
    return Cell(
        key=key,
        label=f"Cell {key}",
        factors={"key": key},
        model=MODEL,
        method=method,
        settings={"fails": fails},
        nuts=NutsSettings(chains=2, warmup=20, draws=draws),
        replications=replications,
    )


def grid(profile: Profile) -> tuple[Cell, ...]:
    if profile == "smoke":
        return tuple(cell(f"thread-{n}", IN_THREADS, 6) for n in range(4))
    if profile == "quick":
        return (
            cell("thread-long", IN_THREADS, 3, draws=2500),
            cell("process", IN_PROCESSES, 5),
        )
    ways = {"stan": IN_THREADS, "memory": IN_THREADS, "bug": IN_THREADS, "killed": IN_PROCESSES}
    return (
        *(cell(f"fails-{how}", method, 1, fails=how) for how, method in ways.items()),
        cell("works-process", IN_PROCESSES, 3),
        cell("works-thread", IN_THREADS, 3),
    )


def measure(_: Cell, fit: Fit) -> dict[str, float]:
    x = fit.posterior["x"]
    return {
        "mean": float(x.mean()),
        "square": float((x**2).mean()),
        "draws": float(x.sizes["draw"]),
    }


def tables(results: Results) -> list[Table]:
    moments = results.metrics.groupby("cell")[["mean", "square", "draws"]].agg(["mean", "std"])
    return [Table("moments", "Moments of the draws.", moments)]


EXPERIMENT = Experiment(
    name="tiny",
    title="Small fits",
    source="nowhere",
    summary="Normal draws from the seed.",
    reductions={"smoke": "", "quick": "", "paper": ""},
    grid=grid,
    measure=measure,
    tables=tables,
    figures=lambda _: [],
    claims=lambda _: [],
    processor_seconds={"smoke": 2.0, "quick": 2.0, "paper": 2.0},
)
