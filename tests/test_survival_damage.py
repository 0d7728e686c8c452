"""Full disks, read-only stores, damaged files and failing tasks, with real runs."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from survival_world import TinyWorld, mount, tmpfs

from harness.fit import Fit


@pytest.fixture
def tiny(tmp_path: Path) -> TinyWorld:
    return TinyWorld(tmp_path / "tiny")


def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(
    tiny: TinyWorld, undisturbed: TinyWorld
) -> None:
    with tmpfs(tiny.store, "size=400k"):
        full = tiny.call("run", "tiny", "--profile", "smoke", "--store", tiny.store)
        assert full.returncode == 1
        (line,) = [line for line in full.stderr.splitlines() if line.startswith("harness:")]
        assert "cannot write" in line
        assert "No space left" in line
        assert full.stderr.splitlines()[-1] == line
        assert "Traceback" not in full.stderr
        kept = tiny.records()
        assert 0 < len(kept) < 24
        for path in tiny.fits("fit-1.nc"):
            Fit.load(path)
        assert len(tiny.fits("fit-1.nc")) == len(kept)
        assert mount("-o", "remount,size=50m", str(tiny.store))
        tiny.quick_run()
        assert all(tiny.times_executed()[seed] == 1 for seed in kept)
        assert tiny.results() == undisturbed.results()
        assert tiny.left_overs() == []


def test_a_read_only_store_is_one_line(tiny: TinyWorld, undisturbed: TinyWorld) -> None:
    with tmpfs(tiny.store, "size=50m"):
        shutil.copytree(undisturbed.store, tiny.store, dirs_exist_ok=True)
        assert mount("-o", "remount,ro", str(tiny.store))
        options = ("--profile", "smoke", "--store", tiny.store)
        for command in ("run", "report"):
            refused = tiny.invoke(command, "tiny", *options)
            assert refused.exit_code == 1
            assert refused.stderr.splitlines() == [
                f"harness: cannot write results to {tiny.store}: Read-only file system; "
                "name another folder with --store"
            ]
        told = tiny.invoke("status", "tiny", *options, "--json")
        assert told.exit_code == 0, told.stderr
        cells = json.loads(told.stdout)["tiny"]
        assert sum(cell["finished"] for cell in cells.values()) == 24
    assert tiny.executed() == []


def test_a_store_that_cannot_be_is_one_line(tiny: TinyWorld) -> None:
    (tiny.folder / "file").touch()
    result = tiny.invoke("run", "tiny", "--store", tiny.folder / "file" / "store")
    assert result.exit_code == 1
    assert result.stderr.startswith("harness: cannot write results to ")
    assert len(result.stderr.splitlines()) == 1


def flip_byte(folder: Path, _: Path) -> Path:
    path = folder / "fit-1.nc"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    return path


def truncate_record(folder: Path, _: Path) -> Path:
    path = folder / "task.json"
    path.write_bytes(path.read_bytes()[:100])
    return path


def edited_record(folder: Path, _: Path) -> Path:
    """A record that reads well and says something else."""
    path = folder / "task.json"
    text = path.read_text()
    edited = re.sub(r'("seconds_in_all": )[0-9.e-]+', r"\g<1>1.5", text)
    assert edited != text
    path.write_text(edited)
    return path


def other_record(folder: Path, other: Path) -> Path:
    shutil.copy(other / "task.json", folder)
    return folder / "task.json"


def foreign_folder(folder: Path, _: Path) -> Path:
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "thesis.txt").write_text("not ours")
    return folder / "thesis.txt"


def foreign_file(folder: Path, _: Path) -> Path:
    shutil.rmtree(folder)
    folder.write_text("not ours")
    return folder


def no_fit(folder: Path, _: Path) -> Path:
    (folder / "fit-1.nc").unlink()
    return folder / "task.json"


def test_damage_is_reported_moved_aside_and_recomputed(
    tiny: TinyWorld, undisturbed: TinyWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    """All kinds at once, each on another task; what was moved keeps its bytes."""
    shutil.copytree(undisturbed.store, tiny.store)
    folders = [path.parent for path in tiny.fits("fit-1.nc")]
    ways: list[Callable[[Path, Path], Path]] = [
        flip_byte,
        truncate_record,
        edited_record,
        other_record,
        foreign_folder,
        foreign_file,
        no_fit,
    ]
    damaged = {way(folders[n], folders[-1]): folders[n] for n, way in enumerate(ways)}
    content = [path.read_bytes() for path in damaged]
    shutil.rmtree(tiny.store / "tiny" / "tables")
    tiny.quick_run()
    said = [line for line in capsys.readouterr().err.splitlines() if "moved to" in line]
    assert len(said) == len(ways)
    assert all(any(str(folder) in line for line in said) for folder in damaged.values())
    kept = [
        path.read_bytes() for path in (tiny.store / "tiny" / "aside").rglob("*") if path.is_file()
    ]
    assert all(each in kept for each in content)
    assert len(tiny.executed()) == len(ways)
    assert tiny.results() == undisturbed.results()


def test_a_report_sets_damaged_fits_aside_and_shows_the_others(
    tiny: TinyWorld, undisturbed: TinyWorld
) -> None:
    """One is not the file that was written; the other is, but cannot be read."""
    shutil.copytree(undisturbed.store, tiny.store)
    folders = [path.parent for path in tiny.fits("fit-1.nc")]
    flip_byte(folders[0], Path())
    unreadable(folders[7])
    options = ("tiny", "--profile", "smoke", "--store", tiny.store)
    cells = json.loads(tiny.invoke("status", *options, "--json").stdout)["tiny"]
    assert sum(cell["damaged"] for cell in cells.values()) == 1
    assert sum(cell["finished"] for cell in cells.values()) == 23
    result = tiny.invoke("report", *options, "--fits", "all")
    assert result.exit_code == 0, result.stderr
    assert len([line for line in result.stderr.splitlines() if "moved to" in line]) == 2
    assert len(list((tiny.store / "tiny" / "aside").iterdir())) == 2
    assert len(pd.read_csv(tiny.store / "tiny" / "index.csv")) == 22
    assert len(list((tiny.store / "report" / "tiny").glob("*.html"))) == 22 + 1
    cells = json.loads(tiny.invoke("status", *options, "--json").stdout)["tiny"]
    assert sum(cell["to do"] for cell in cells.values()) == 2


def unreadable(folder: Path) -> None:
    """Write a fit that is no fit, with the right checksums."""
    (folder / "fit-1.nc").write_bytes(b"nonsense")
    record = json.loads((folder / "task.json").read_text())
    del record["record_sha256"]
    record["fit_sha256"] = hashlib.sha256(b"nonsense").hexdigest()
    told = json.dumps(record, sort_keys=True).encode()
    record["record_sha256"] = hashlib.sha256(told).hexdigest()
    (folder / "task.json").write_text(json.dumps(record))


def test_failing_tasks_do_not_stop_the_others(tiny: TinyWorld) -> None:
    """Stan, memory, a bug of ours, and a process that the system kills."""
    options = ("tiny", "--profile", "paper", "--store", tiny.store)
    first = tiny.call("run", *options, "--json", "--workers", 2)
    assert first.returncode == 1, first.stderr
    assert json.loads(first.stdout)["tasks"]["tiny"] == {"failed": 4, "finished": 6}
    messages = tiny.failures()
    assert "Initialization failed" in messages["fails-stan"]
    assert messages["fails-memory"] == "out of memory"
    assert "ZeroDivisionError: a bug" in messages["fails-bug"]
    assert "process was killed" in messages["fails-killed"]
    page = (tiny.store / "report" / "tiny" / "index.html").read_text()
    assert "Initialization failed" in page
    assert "out of memory" in page

    executed = len(tiny.executed())
    tiny.mended.touch()
    # One worker: the report's pages are then made by the run itself, with no further processes.
    again = tiny.invoke("run", *options, "--json", "--workers", 1)
    assert again.exit_code == 1
    assert json.loads(again.stdout)["tasks"]["tiny"] == {"failed before": 4, "found": 6}
    assert len(tiny.executed()) == executed
    status = tiny.invoke("status", *options, "--json")
    cells = json.loads(status.stdout)["tiny"]
    assert sum(cell["failed"] for cell in cells.values()) == 4

    retried = tiny.invoke("run", *options, "--json", "--workers", 1, "--retry-failed")
    assert json.loads(retried.stdout)["tasks"]["tiny"] == {"found": 6, "finished": 4}
    assert len(tiny.executed()) == executed + 4
    assert tiny.failures() == {}


def test_summaries_have_the_metrics_of_all_draws(tiny: TinyWorld, tmp_path: Path) -> None:
    stores = {"draws": tiny.store, "summaries": tmp_path / "summaries"}
    for keep, store in stores.items():
        result = tiny.invoke(
            "run", "tiny", "--profile", "quick", "--only", "key=thread-long",
            "--store", store, "--keep", keep,
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
    index = {keep: (store / "tiny" / "index.csv").read_bytes() for keep, store in stores.items()}
    assert index["draws"] == index["summaries"]
    whole, thinned = (sorted(store.rglob("fit-1.nc")) for store in stores.values())
    for long, short in zip(whole, thinned, strict=True):
        assert short.stat().st_size < long.stat().st_size
        assert (
            Fit.load(short).posterior.sizes["draw"] <= 1000 < Fit.load(long).posterior.sizes["draw"]
        )
    assert pd.read_csv(stores["summaries"] / "tiny" / "index.csv")["draws"].tolist() == [2500.0] * 3


@pytest.mark.compiled
def test_the_time_limit_fails_a_task(tmp_path: Path, cmdstan_home: Path) -> None:
    assert cmdstan_home.is_dir()
    command = ["run", "mixture", "--profile", "quick", "--only", "scenario=a,N=5", "--json"]
    result = subprocess.run(
        [sys.executable, "-m", "harness", *command, "--store", tmp_path, "--time-limit", "0.05"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 1, result.stderr
    # All of them, however many runs the profile has.
    assert list(json.loads(result.stdout)["tasks"]["mixture"]) == ["failed"]
    assert "stopped at the time limit of 0.05 s" in result.stderr
