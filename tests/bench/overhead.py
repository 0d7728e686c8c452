"""Cost of everything but sampling: many tasks that do nothing, then status and index of them."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from harness.engine.nuts import NutsSettings
from harness.engine.toolchain import CmdStan
from harness.experiment.results import read_results, status, write_index
from harness.experiment.run import Plan, make_plan, run_plan
from harness.experiment.store import Store
from harness.experiment.workers import LocalWorkers
from harness.fit import Fit, build_fit
from harness.forms.method import Method
from harness.model import Model
from harness.plan.spec import Cell, Experiment

CELLS = 50
NO_CMDSTAN = CmdStan(Path("no-cmdstan"), "2.39.0", "environment")


def sample_nothing(model: Model, *, nuts: NutsSettings, seed: int, compiled: None) -> Fit:
    """Return a fit of the size of a short run's, at no cost."""
    shape = (nuts.chains, nuts.draws)
    one = np.ones(nuts.chains)
    return build_fit(
        posterior={"x": np.zeros((*shape, 2))},
        extended={"x": np.zeros((*shape, 2, 2)), "log_weight": np.zeros((*shape, 2))},
        sample_stats={
            name: np.zeros(shape) for name in ("lp", "diverging", "energy", "n_steps", "tree_depth")
        },
        constant_data=model.data,
        attrs={
            "method": "nothing",
            "settings": {},
            "seed": seed,
            **{f"{c}_{p}": one for c in ("seconds", "gradients") for p in ("warmup", "sampling")},
        },
    )


def plan_of(tasks: int) -> Plan:
    """Plan ``tasks`` tasks that do nothing, in 50 cells."""
    model = Model("nothing", Path("no-folder"), {"scale": [1.0, 2.0]}, ("x",), dimension=2)
    method = Method("nothing", None, sample_nothing)
    nuts = NutsSettings(chains=1, warmup=20, draws=100)
    cells = tuple(
        Cell(f"cell-{n}", f"Cell {n}", {"n": n}, model, method, {}, nuts, -(-tasks // CELLS))
        for n in range(CELLS)
    )
    experiment = Experiment(
        name="nothing",
        title="Nothing",
        source="",
        summary="",
        reductions={"smoke": "", "quick": "", "paper": ""},
        grid=lambda _: cells,
        measure=lambda _, fit: {"mean": float(fit.posterior["x"].mean())},
        tables=lambda _: [],
        figures=lambda _: [],
        claims=lambda _: [],
    )
    return make_plan(experiment, "smoke", NO_CMDSTAN)


def seconds(work: Callable[[], object]) -> float:
    """Wall time of a call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def print_overhead(options: argparse.Namespace) -> None:
    """Print the cost of a task, of status, of the index and of finding all tasks done."""
    with tempfile.TemporaryDirectory() as name:
        store, plan = Store(Path(name)), plan_of(options.tasks)
        number = len(plan.tasks)

        def run() -> None:
            with LocalWorkers(1) as workers:
                run_plan(plan, store, NO_CMDSTAN, workers)

        def index() -> None:
            write_index(plan, store, read_results(plan, store))

        print(f"\noverhead, {number} tasks that do nothing, one at a time:")
        print(f"  a task   {1e3 * seconds(run) / number:8.1f} ms (target: below 50)")
        print(f"  status   {seconds(lambda: status(plan, store)):8.2f} s  (target: below 2)")
        print(f"  index    {seconds(index):8.2f} s  (target: below 10)")
        print(f"  run again{seconds(run):8.2f} s  (all found, checksums compared)")
