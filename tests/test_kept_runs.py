"""Runs that are kept: what a store's runs become, what goes together, and the committed ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from doc_blocks import ROOT
from test_experiment_store import small_fit
from test_report_site import CELLS
from test_report_site import EXPERIMENT as MADE_UP

from harness.errors import DataError
from harness.experiment import kept_runs
from harness.experiment.kept_runs import KeptRuns
from harness.experiment.run import Plan
from harness.experiment.store import Store
from harness.plan.catalogue import load_experiment
from harness.plan.spec import Cell, Claim, Experiment, Results, Task, tasks_of
from harness.report.kept import read_kept
from harness.report.verdicts import read_verdicts

PUBLISHED = ROOT / "experiments" / "published"
COMMITTED = kept_runs.read_all_runs(PUBLISHED)
REVISION = "a" * 40


def claims(results: Results) -> list[Claim]:
    told = f"{results.metrics['error'].mean():.2f} in {len(results.metrics)} runs"
    return [Claim("holds", "paper", "It holds.", told, "reproduced")]


CELL = replace(CELLS[0], key="pair", replications=4, batch=2)
EXPERIMENT: Experiment = replace(
    MADE_UP, name="made_up", grid=lambda _: (CELL, *CELLS[1:]), claims=claims
)


def tasks(name: str, cells: tuple[Cell, ...]) -> tuple[Task, ...]:
    digests = {cell.program: "p" for cell in cells if cell.program is not None}
    return tuple(tasks_of(name, cells, digests, "2.39.0"))


PLAN = Plan(EXPERIMENT, "paper", tasks("made_up", (CELL,)))


def stored(root: Path, *revisions: str) -> Store:
    """A store with as many fits of two runs each as there are revisions."""
    store = Store(root)
    for number, (task, revision) in enumerate(zip(PLAN.tasks, revisions, strict=False)):
        measured = [{"error": 2.0 * number}, {"error": 2.0 * number + 1}]
        store.write(task, small_fit(), measured, {"git_revision": revision})
    return store


def test_runs_of_a_store_come_back_as_results(tmp_path: Path) -> None:
    store = stored(tmp_path / "store", REVISION, REVISION)
    kept_runs.write_runs(kept_runs.runs_of_store(PLAN, store, "2.39.0"), tmp_path)
    (kept,) = kept_runs.read_all_runs(tmp_path)
    assert (kept.experiment, kept.profile) == ("made_up", "paper")
    assert (kept.stan_version, kept.revision) == ("2.39.0", REVISION)
    found = kept_runs.results_of(EXPERIMENT, kept)
    assert found.cells == (CELL,)
    assert found.replications(CELL) == [0, 1, 2, 3]
    assert found.metrics["error"].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert found.metrics["method"].tolist() == [CELL.factors["method"]] * 4
    # Two runs share the time and gradients of a fit.
    assert found.metrics["seconds"].tolist() == found.metrics["gradients"].tolist() == [1.0] * 4
    assert found.metrics["seed"].tolist() == [t.seed for t in PLAN.tasks for _ in range(2)]
    assert found.planned == 4 + 2 * len(CELLS[1:])
    assert not found.complete
    with pytest.raises(DataError, match="the draws of pair, run 3, were not kept"):
        found.load(CELL, 3)


def test_cells_that_are_not_finished_are_left_out(tmp_path: Path) -> None:
    plan = replace(PLAN, tasks=tasks("made_up", (CELL, CELLS[1])))
    found = kept_runs.runs_of_store(plan, stored(tmp_path, REVISION, REVISION), "2.39.0")
    assert set(found.frame["cell"]) == {CELL.key}
    assert len(found.frame) == 4


def test_a_measured_value_does_not_hide_a_factor(tmp_path: Path) -> None:
    """It would take the factor's place in the table, or be lost where the factors are left out."""
    store = Store(tmp_path / "store")
    measured = [{"error": 1.0, "method": 2.0}] * CELL.batch
    store.write(PLAN.tasks[0], small_fit(), measured, {"git_revision": REVISION})
    store.write(PLAN.tasks[1], small_fit(), measured, {"git_revision": REVISION})
    with pytest.raises(DataError, match="pair measures something with the name of its factor meth"):
        kept_runs.runs_of_store(PLAN, store, "2.39.0")


def test_later_runs_are_added_or_replace_those_of_the_same_number(tmp_path: Path) -> None:
    store = stored(tmp_path, REVISION, REVISION)
    whole = kept_runs.runs_of_store(PLAN, store, "2.39.0")
    first = replace(whole, frame=whole.frame.iloc[:2])
    again = whole.frame.iloc[1:].assign(error=9.0)
    both = first.with_runs(replace(whole, frame=again))
    assert both.frame["replication"].tolist() == [0, 1, 2, 3]
    assert both.frame["error"].tolist() == [0.0, 9.0, 9.0, 9.0]
    for other in (
        replace(whole, revision="b" * 40),
        replace(whole, stan_version="2.40.0"),
        replace(whole, profile="quick"),
    ):
        with pytest.raises(DataError, match="run the same revision, or remove the kept runs"):
            whole.with_runs(other)


def test_runs_that_cannot_be_kept_are_refused(tmp_path: Path) -> None:
    for store in (Store(tmp_path / "none"), stored(tmp_path / "half", REVISION)):
        with pytest.raises(DataError, match=r"no cell of made_up in .* with all its runs"):
            kept_runs.runs_of_store(PLAN, store, "2.39.0")
    mixed = stored(tmp_path / "mixed", REVISION, "b" * 40)
    with pytest.raises(DataError, match=r"one checkout; those .* revisions aaa.*, bbb"):
        kept_runs.runs_of_store(PLAN, mixed, "2.39.0")
    with pytest.raises(DataError, match="are of the revisions unknown"):
        kept_runs.runs_of_store(PLAN, stored(tmp_path / "installed", "", ""), "2.39.0")


def test_files_that_are_no_runs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs-made_up.csv"
    with pytest.raises(DataError, match="cannot read the runs"):
        kept_runs.read_runs(path)
    for head in ("cell,replication\n", "# Profile whole; Stan 2.39.0; revision aaa\n"):
        path.write_text(head, encoding="utf-8")
        with pytest.raises(DataError, match="does not say what made the runs"):
            kept_runs.read_runs(path)
    rows = pd.DataFrame({"cell": ["gone"] * 2, "replication": [0, 1], "finished": "2026-11-27"})
    with pytest.raises(DataError, match="cells that its profile paper lacks: gone"):
        kept_runs.results_of(EXPERIMENT, KeptRuns("made_up", "paper", "2.39.0", REVISION, rows))


def test_verdicts_are_made_from_all_kept_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_runs, "load_experiment", lambda _: EXPERIMENT)
    monkeypatch.setattr("harness.report.verdicts.load_experiment", lambda _: EXPERIMENT)
    monkeypatch.setattr("harness.report.verdicts.experiment_names", lambda: ["made_up"])
    readme = tmp_path / "README.md"
    readme.write_text("<!-- verdicts: begin -->\n<!-- verdicts: end -->\n", encoding="utf-8")
    published = tmp_path / "experiments" / "published"
    kept = kept_runs.runs_of_store(PLAN, stored(tmp_path / "store", REVISION, REVISION), "2.39.0")
    kept_runs.write_runs(replace(kept, frame=kept.frame.iloc[:2]), published)
    for frame, told in ((kept.frame.iloc[:2], "0.50 in 2 runs"), (kept.frame, "1.50 in 4 runs")):
        kept_runs.write_runs(replace(kept, frame=frame), published)
        kept_runs.write_verdicts_of_runs(tmp_path)
        row = read_verdicts(published / "ours-verdicts.csv").iloc[0]
        assert (row["measured"], row["profile"], row["runs"]) == (told, "paper", str(len(frame)))
        assert [table.name for table in read_kept(published)] == ["moments"]
        assert "| It holds. | reproduced | paper |" in readme.read_text(encoding="utf-8")


def test_what_cannot_be_kept_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert kept_runs.main(str(tmp_path)) == 2
    assert "usage" in capsys.readouterr().err
    assert kept_runs.main(str(tmp_path), "no-experiment") == 1
    assert "there is no experiment 'no-experiment'" in capsys.readouterr().err


@pytest.mark.parametrize("kept", COMMITTED, ids=lambda kept: kept.experiment)
def test_committed_runs_are_those_of_the_grid(kept: KeptRuns) -> None:
    """Each once, with the seed that its cell and number have, none beyond the grid."""
    assert kept.profile == "paper"
    assert len(kept.revision) == 40
    assert not kept.frame.duplicated(["cell", "replication"]).any()
    grid = {cell.key: cell for cell in load_experiment(kept.experiment).grid("paper")}
    cells = tuple(grid[key] for key in kept.frame["cell"].unique())
    seeds = {
        (task.cell.key, each): task.seed
        for task in tasks(kept.experiment, cells)
        for each in task.replications
    }
    rows = kept.frame.set_index(["cell", "replication"])
    assert set(rows.index) <= set(seeds)
    assert rows["seed"].to_dict() == {key: seeds[key] for key in rows.index}
    assert np.isfinite(rows[["seconds", "gradients"]]).all(axis=None)


@pytest.mark.parametrize("kept", COMMITTED, ids=lambda kept: kept.experiment)
def test_committed_verdicts_and_tables_are_those_of_the_runs(
    kept: KeptRuns, tmp_path: Path
) -> None:
    kept_runs.write_tables_of(kept, tmp_path)
    tables = tmp_path / kept.experiment / "tables"
    now = read_verdicts(tables / "claims.csv")
    decided = now[now["verdict"] != "not run"].set_index("key")
    assert len(decided) > 0
    before = read_verdicts(PUBLISHED / "ours-verdicts.csv").loc[[kept.experiment]].set_index("key")
    pd.testing.assert_frame_equal(before.loc[decided.index], decided)
    for path in tables.glob("*.csv"):
        if path.stem != "claims":
            text = (PUBLISHED / f"ours-{kept.experiment}-{path.name}").read_text(encoding="utf-8")
            assert text.split("\n", 1)[1] == path.read_text(encoding="utf-8")
