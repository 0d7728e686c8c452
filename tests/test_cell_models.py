"""A model for each replication, and fits that an experiment condenses before it keeps them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import xarray as xr
from survival_method import IN_THREADS

from harness.engine.nuts import NutsSettings
from harness.engine.toolchain import CmdStan
from harness.errors import DataError
from harness.experiment.run import Plan, run_plan
from harness.experiment.store import Store
from harness.experiment.workers import LocalWorkers
from harness.fit import Fit
from harness.model import Model
from harness.plan.spec import Cell, Experiment, tasks_of

MODELS = tuple(Model(f"split-{i}", Path(), {"scale": [1.0 + i]}, ("x",), 1) for i in range(3))
CELL = Cell(
    key="split",
    label="Split",
    factors={},
    model=MODELS[0],
    method=IN_THREADS,
    settings={"fails": None},
    nuts=NutsSettings(chains=1, warmup=20, draws=40),
    replications=3,
    models=MODELS,
    extras={"held out": 1},
)


def test_every_replication_has_its_model_in_its_digest() -> None:
    tasks = list(tasks_of("e", (CELL,), {}, "2.39"))
    assert [task.model for task in tasks] == list(MODELS)
    same = list(tasks_of("e", (replace(CELL, models=()),), {}, "2.39"))
    assert [task.model for task in same] == [MODELS[0]] * 3
    assert [task.seed for task in tasks] == [task.seed for task in same]
    assert tasks[0].digest == same[0].digest
    assert tasks[1].digest != same[1].digest
    other = replace(CELL, models=(*MODELS[:2], replace(MODELS[2], data={"scale": [9.0]})))
    digests = [task.digest for task in tasks_of("e", (other,), {}, "2.39")]
    assert [a == task.digest for a, task in zip(digests, tasks, strict=True)] == [1, 1, 0]


def test_what_draws_do_not_depend_on_is_in_no_digest() -> None:
    (task, *_) = tasks_of("e", (replace(CELL, extras={}),), {}, "2.39")
    assert task.digest == next(tasks_of("e", (CELL,), {}, "2.39")).digest


def test_too_few_models_are_refused() -> None:
    with pytest.raises(DataError, match="need a model each, or one for all; got 2"):
        replace(CELL, models=MODELS[:2])


def test_an_experiment_condenses_before_it_measures_and_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_LOG", str(tmp_path / "log"))

    def condense(cell: Cell, fit: Fit) -> Fit:
        tree = xr.DataTree.from_dict(
            {f"/{name}": node.to_dataset() for name, node in fit.tree.children.items()}
        )
        tree["posterior"] = xr.DataTree(fit.posterior[["x"]].isel(x_dim_0=[0]))
        tree.attrs = fit.tree.attrs
        return Fit(tree)

    def measure(cell: Cell, fit: Fit) -> dict[str, float]:
        return {"width": float(fit.posterior["x"].sizes["x_dim_0"])}

    experiment = Experiment(
        name="e",
        title="E",
        source="",
        summary="",
        reductions={},
        grid=lambda _: (CELL,),
        measure=measure,
        tables=lambda _: [],
        figures=lambda _: [],
        claims=lambda _: [],
        condense=condense,
    )
    tasks = tuple(tasks_of("e", (CELL,), {}, "2.39"))
    cmdstan = CmdStan(tmp_path, "2.39.0", "home")
    store = Store(tmp_path / "store")
    with LocalWorkers(1) as workers:
        counts = run_plan(Plan(experiment, "smoke", tasks), store, cmdstan, workers)
    assert counts["finished"] == 3
    for task in tasks:
        record = store.record(task)
        assert record is not None
        assert record["metrics"] == {"width": 1.0}
        assert store.load(task).posterior["x"].sizes["x_dim_0"] == 1
