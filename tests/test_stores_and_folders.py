"""Stores and folders in bad hands: links out of them, other users, other versions, removal."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from survival_world import TinyWorld, finish, until
from test_experiment_store import stored, task

from harness import folders
from harness.engine.nuts import NutsSettings
from harness.engine.why_ended import stan_message
from harness.errors import DataError, StoreError
from harness.experiment import store as store_module
from harness.experiment.store import Store
from harness.fit import Fit
from harness.fit import fit as fit_module
from harness.folders import changed_by_others, warn_of_others
from harness.report.written import record_files, remember_files, remove_report


@pytest.fixture
def tiny(tmp_path: Path, undisturbed: TinyWorld) -> TinyWorld:
    """A world with a finished run."""
    made = TinyWorld(tmp_path / "tiny")
    shutil.copytree(undisturbed.store, made.store)
    return made


def test_a_report_removes_nothing_through_links(tmp_path: Path) -> None:
    elsewhere, report = tmp_path / "elsewhere", tmp_path / "store" / "report"
    for folder in (elsewhere, report):
        folder.mkdir(parents=True)
    (elsewhere / "precious.html").write_text("mine")
    (report / "sub").symlink_to(elsewhere)
    (report / "page.html").symlink_to(elsewhere / "precious.html")
    (report / "old.html").write_text("ours")
    remember_files(report, "html", ["sub/precious.html", "page.html", "old.html"])
    record_files(report, "html", ["index.html"])
    assert not (report / "old.html").exists()
    remember_files(report, "html", ["sub/precious.html", "page.html"])
    remove_report(report)
    assert (elsewhere / "precious.html").read_text() == "mine"
    # The same where the folder of the report is a link itself.
    shutil.rmtree(report)
    remember_files(elsewhere, "html", ["precious.html"])
    report.symlink_to(elsewhere)
    assert remove_report(report) == 0
    assert (elsewhere / "precious.html").read_text() == "mine"


def test_clean_keeps_what_is_not_ours(tiny: TinyWorld, tmp_path: Path) -> None:
    experiment = tiny.store / "tiny"
    cell = next(experiment.glob("fits/*"))
    elsewhere = tmp_path / "elsewhere"
    shutil.move(cell / next(cell.iterdir()).name, elsewhere)
    (cell / "00000-linked").symlink_to(elsewhere)
    theirs = {
        experiment / "notes.txt": "a",
        experiment / "fits" / "plan.csv": "b",
        experiment / "aside" / "x-00001" / "thesis.txt": "c",
        cell / "task.json": "d",
        elsewhere / "keep.me": "e",
    }
    for path, text in theirs.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    ours = {elsewhere / "task.json", elsewhere / "fit-1.nc"}
    done = tiny.invoke("clean", "tiny", "--yes", "--store", tiny.store)
    assert done.exit_code == 0, done.stderr
    assert "files that harness did not write stay" in done.stderr
    for path, text in theirs.items():
        assert path.read_text() == text
    assert all(path.is_file() for path in ours)
    left = {
        path for path in experiment.rglob("*") if path.is_file() and elsewhere not in path.parents
    }
    assert {path for path in left if "00000-linked" not in path.parts} == set(theirs) - {
        elsewhere / "keep.me"
    }
    shutil.rmtree(experiment)


def test_clean_removes_all_that_is_ours(tiny: TinyWorld) -> None:
    assert tiny.invoke("clean", "tiny", "--yes", "--store", tiny.store).exit_code == 0
    assert not (tiny.store / "tiny").exists()


def test_fits_of_the_first_version_are_read_under_their_old_name(tiny: TinyWorld) -> None:
    for path in tiny.fits("fit-1.nc"):
        path.rename(path.with_name("fit.nc"))
    before = tiny.results()
    tiny.quick_run()
    assert tiny.executed() == []
    assert tiny.results() == before
    assert not (tiny.store / "tiny" / "aside").exists()


@pytest.mark.parametrize("name", ["fit-1.nc", "fit.nc"])
def test_fits_of_another_version_are_set_aside(
    name: str,
    tiny: TinyWorld,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As the next version will meet a store of this one."""
    for path in tiny.fits("fit-1.nc"):
        path.rename(path.with_name(name))
    monkeypatch.setattr(store_module, "VERSION", 2)
    monkeypatch.setattr(store_module, "FIT_NAME", "fit-2.nc")
    tiny.quick_run()
    assert capsys.readouterr().err.count("has the form of another version of harness") == 24
    assert len(tiny.executed()) == 24
    assert len(tiny.fits("fit-2.nc")) == 24
    assert len(list((tiny.store / "tiny" / "aside").glob(f"*/{name}"))) == 24


def test_a_fit_of_another_version_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    stored(store)
    monkeypatch.setattr(fit_module, "FORMAT", "harness-fit-2")
    with pytest.raises(StoreError, match=r"another version of harness \(harness-fit-1\)"):
        Fit.load(store.fit_path(task()))


def test_a_store_that_is_removed_during_a_run_is_told_of(tmp_path: Path) -> None:
    tiny = TinyWorld(tmp_path / "tiny")
    options = ("run", "tiny", "--profile", "smoke", "--workers", 2, "--store", tiny.store)
    with tiny.start(*options, TINY_SECONDS="0.2") as run:
        until(lambda: len(tiny.records()) >= 3, "three finished tasks")
        tiny.store.rename(tmp_path / "away")
        result = finish(run)
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert "was removed or moved while results were written to it" in last
    assert "Traceback" not in result.stderr


def test_fits_that_are_removed_during_a_run_are_told_of(tmp_path: Path) -> None:
    tiny = TinyWorld(tmp_path / "tiny")
    options = ("run", "tiny", "--profile", "smoke", "--workers", 2, "--store", tiny.store)
    with tiny.start(*options, TINY_GATE=str(tiny.gate)) as run:
        until(lambda: len(tiny.executed()) >= 2, "tasks")
        for pid in {run.pid}:
            tiny.permit(pid, 4)
        until(lambda: len(tiny.records()) >= 2, "two finished tasks")
        shutil.rmtree(tiny.fits("task.json")[0].parent)
        tiny.open_gate()
        result = finish(run)
    assert result.returncode == 1
    assert "1 fits that this run has written are gone" in result.stderr


@pytest.mark.skipif(os.name == "nt", reason="permissions of files are others there")
def test_folders_that_others_can_write_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "_WARNED", set())
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    inner.parent.chmod(0o755)
    assert changed_by_others(inner) is None
    warn_of_others(inner)
    assert capsys.readouterr().err == ""
    inner.chmod(0o777)
    assert changed_by_others(inner) == f"everybody can write to {inner}"
    inner.chmod(0o1777)  # others can add files, although they cannot replace ours
    assert changed_by_others(inner) == f"everybody can write to {inner}"
    inner.chmod(0o755)
    inner.parent.chmod(0o777)
    assert changed_by_others(inner) == f"everybody can write to {inner.parent}"
    inner.parent.chmod(0o1777)
    assert changed_by_others(inner) is None
    inner.parent.chmod(0o777)
    for _ in range(2):
        warn_of_others(inner)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"warning: everybody can write to {inner.parent}, so others")
    inner.parent.chmod(0o755)


def test_a_shared_store_is_told_of(tiny: TinyWorld) -> None:
    tiny.store.chmod(0o777)
    done = tiny.invoke("report", "tiny", "--profile", "smoke", "--store", tiny.store)
    assert done.exit_code == 0
    assert f"warning: everybody can write to {tiny.store}" in done.stderr


USUAL = (
    "num_threads = 1 (Default)\n\nGradient evaluation took 4e-06 seconds\n1000 transitions using "
    "10 leapfrog steps per transition would take 0.04 seconds.\n"
    "Adjust your expectations accordingly!\n\nIteration:   1 / 2000 [  0%]  (Warmup)\n"
)


def test_the_reason_of_a_failure_is_the_error(tmp_path: Path) -> None:
    """Not what Stan says of every run, nor the head of CmdStanPy's report."""
    console = tmp_path / "program_0-stdout.txt"
    console.write_text(USUAL)
    limit = RuntimeError(f"Error during sampling:\n\n retcodes=[{-signal.SIGXFSZ}, 0]\n")
    assert stan_message(tmp_path, limit) == (
        "The system ended it with SIGXFSZ (a file grew beyond the limit of `ulimit -f`)."
    )
    cannot = RuntimeError("Error during sampling:\n\n retcodes=[74]\n")
    assert "could not write its output" in stan_message(tmp_path, cannot)
    console.write_text(f"{USUAL}Exception: no\nError: writing failed\n")
    plain = RuntimeError("Error during sampling:\n\n retcodes=[1]\n")
    assert stan_message(tmp_path, plain) == "Exception: no Error: writing failed"
    console.write_text(f"{USUAL}Exception: index 6 out of range\n")
    told = stan_message(tmp_path, plain)
    assert told.startswith("Exception: index 6 out of range Such an error ends a run of Stan;")
    console.write_text("")
    assert stan_message(tmp_path, plain) == "Error during sampling:"


def test_no_limit_of_time_is_no_number(tiny: TinyWorld) -> None:
    for command in (("run", "tiny"), ("sample", "never_read.stan")):
        for value in ("nan", "0", "-1", "inf"):
            done = tiny.invoke(*command, "--time-limit", value)
            assert done.exit_code == 2
            assert "Invalid value for '--time-limit'" in done.stderr
    with pytest.raises(DataError, match="time limit"):
        NutsSettings(time_limit=float("nan"))


def test_a_run_replaces_nothing_that_harness_did_not_write(tmp_path: Path) -> None:
    tiny = TinyWorld(tmp_path / "tiny")
    options = ("tiny", "--profile", "smoke", "--store", tiny.store)
    theirs = {
        tiny.store / "report" / "index.html": "<html>my own page</html>",
        tiny.store / "tiny" / "index.csv": "my,own,table",
    }
    for path, text in theirs.items():
        path.parent.mkdir(parents=True)
        path.write_text(text)
    for command in ("run", "report"):
        done = tiny.invoke(command, *options)
        assert done.exit_code == 1
        assert "index.html is not a page that harness wrote" in done.stderr
    shutil.rmtree(tiny.store / "report")
    for command in ("run", "report"):
        done = tiny.invoke(command, *options)
        assert done.exit_code == 1
        assert "holds files that harness did not write, such as index.csv" in done.stderr
    assert (tiny.store / "tiny" / "index.csv").read_text() == "my,own,table"
    assert tiny.executed() == []
