"""Whatever ends a command ends what it started; the next command removes what was left lying."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from filelock import FileLock
from survival_world import PACKAGE, TinyWorld, descendants_with, finish, started, until
from test_attack_sample import REJECTS
from toolchain_world import World

from harness.engine.processes import VARIABLE, children_end_with_us
from harness.engine.staging import made_once, temporary_folder
from harness.engine.watcher import lives
from harness.files import sweep_unfinished, write_text

FAMILY = """
import subprocess, sys, time
from harness.engine.processes import children_end_with_us
from harness.engine.staging import temporary_folder
with children_end_with_us(), temporary_folder():
    # Grandchildren, as make's compilers are, in a group of their own; one ignores SIGTERM.
    subprocess.Popen(
        ["sh", "-c", "sleep 600 & trap '' TERM; sleep 600 & wait; wait"],
        stdout=subprocess.DEVNULL, start_new_session=True,
    )
    while True:
        print("begun", flush=True)
        time.sleep(0.1)
"""


@contextlib.contextmanager
def ended(processes: list[psutil.Process]) -> Iterator[None]:
    """Kill what a failing test would leave."""
    try:
        yield
    finally:
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def descendants(pid: int) -> list[psutil.Process]:
    return [each for each in psutil.Process(pid).children(recursive=True) if lives(each)]


def all_end(processes: list[psutil.Process]) -> None:
    until(lambda: not any(map(lives, processes)), f"the end of {processes}")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_children_of_children_end_with_a_process(sent: signal.Signals, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(PACKAGE)}
    with started("-c", FAMILY, environment=environment) as process:
        until(lambda: len(descendants(process.pid)) >= 3, "the family")
        family = descendants(process.pid)
        with ended(family):
            process.send_signal(sent)
            process.communicate()
            all_end(family)
    if sent != signal.SIGINT:  # nothing of it had the time to remove its folder
        assert len(list(tmp_path.glob("harness-*"))) == 1


def test_a_block_that_ends_well_ends_nothing() -> None:
    """What the user's own program has started meanwhile is left alone."""
    before = os.environ.get(VARIABLE)
    with children_end_with_us() as mark, children_end_with_us() as same:
        assert os.environ[VARIABLE] == mark == same
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    assert os.environ.get(VARIABLE) == before
    try:
        time.sleep(0.5)
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


INTERRUPTED = """
import os
import cmdstanpy
from harness.engine.processes import children_end_with_us
try:
    with children_end_with_us():
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print(cmdstanpy._TMPDIR, flush=True)
os._exit(3)  # what Python does at its end in order is not done
"""


def test_the_folder_of_cmdstanpy_goes_with_an_interrupted_process(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(PACKAGE)}
    with started("-c", INTERRUPTED, environment=environment) as process:
        result = finish(process)
    assert result.returncode == 3, result.stderr
    made = Path(result.stdout.strip())
    assert made.parent == tmp_path
    until(lambda: not made.exists(), "the end of CmdStanPy's own folder")


def long_sample(folder: Path) -> tuple[str, ...]:
    (folder / "program.stan").write_text(REJECTS)
    (folder / "data.json").write_text('{"y": 0.3}')
    return (
        *("-m", "harness", "sample", str(folder / "program.stan")),
        *("--data", str(folder / "data.json"), "--method", "nuts", "--engine", "cmdstan"),
        *("--chains", "2", "--draws", "1000000", "--out", str(folder / "fit.nc")),
    )


@pytest.mark.compiled
@pytest.mark.usefixtures("cmdstan_home")
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_cmdstan_ends_with_a_sample_command(sent: signal.Signals, tmp_path: Path) -> None:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": str(PACKAGE)}
    with started(*long_sample(tmp_path), environment=environment) as command:
        until(lambda: bool(descendants_with(command.pid, "original id=")), "CmdStan")
        family = descendants(command.pid)
        with ended(family):
            command.send_signal(sent)
            result = finish(command)
            all_end(family)
    assert result.returncode == (-sent if sent == signal.SIGKILL else 128 + sent)
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "fit.nc").exists()
    until(lambda: not list(scratch.glob("tmp*")), "the end of CmdStanPy's own folder")
    if sent == signal.SIGKILL:
        code = "from harness.engine.staging import *\nwith temporary_folder(): pass"
        with started("-c", code, environment=environment) as following:
            assert finish(following).returncode == 0
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_builders_end_with_an_assembly(world: World, sent: signal.Signals) -> None:
    command = world.command()[1:]
    environment = {k: v for k, v in {**os.environ, "FAKE_MAKE": "endless"}.items() if v is not None}
    with started(*command, environment=environment) as assembly:
        pids = [world.root / name for name in ("make.pid", "child.pid")]
        until(lambda: all(each.exists() and each.read_text().strip() for each in pids), "make")
        builders = [psutil.Process(int(each.read_text())) for each in pids]
        with ended(builders):
            assembly.send_signal(sent)
            assembly.communicate()
            all_end(builders)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_page_writers_end_with_a_report(
    tmp_path: Path, undisturbed: TinyWorld, sent: signal.Signals
) -> None:
    tiny = TinyWorld(tmp_path / "tiny")
    tiny.store.symlink_to(undisturbed.store)
    options = ("report", "tiny", "--profile", "smoke", "--fits", "all", "--workers", "2")
    with tiny.start(*options, "--store", tiny.store) as command:
        until(lambda: len(descendants_with(command.pid, "spawn_main")) >= 2, "two writers")
        writers = descendants(command.pid)
        with ended(writers):
            command.send_signal(sent)
            result = finish(command)
            all_end(writers)
    assert result.returncode == (-sent if sent == signal.SIGKILL else 128 + sent)
    assert "Traceback" not in result.stderr


BUILD = """
import sys, time
from pathlib import Path
from harness.engine.staging import made_once
def build(staging):
    (staging / "half").touch()
    print("begun", flush=True)
    time.sleep(600)
made_once(Path(sys.argv[1]), build)
"""


def test_staging_folders_of_killed_builds_are_swept(tmp_path: Path) -> None:
    """A build of something else removes them too, but not those of builds that go on."""
    cache = tmp_path / "programs"
    cache.mkdir()
    with (
        started("-c", BUILD, str(cache / "killed" / "exe")) as killed,
        started("-c", BUILD, str(cache / "alive" / "exe")) as alive,
    ):
        for each in (killed, alive):
            assert each.stdout is not None
            assert each.stdout.readline() == "begun\n"
        killed.kill()
        killed.communicate()
        assert len(list(cache.glob(".staging-*/half"))) == 2
        made_once(cache / "other" / "exe", lambda staging: (staging / "exe").touch())
        (left,) = cache.glob(".staging-*")
        assert left.name.startswith(".staging-alive-")
    made_once(cache / "alive" / "exe", lambda staging: (staging / "exe").touch())
    assert (cache / "alive" / "exe").is_file()
    assert list(cache.glob(".staging-*")) == []


def test_what_is_built_is_whole_or_absent(tmp_path: Path) -> None:
    def broken(staging: Path) -> None:
        (staging / "exe").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made_once(tmp_path / "thing" / "exe", broken)
    assert [each.name for each in tmp_path.iterdir() if not each.name.endswith(".lock")] == []


def test_temporary_folders_in_use_or_of_others_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    foreign = tmp_path / "harness-foreign"
    foreign.mkdir()
    precious = tmp_path / "precious"
    precious.write_text("mine")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".in-use").write_text("")
    (tmp_path / "harness-link").symlink_to(elsewhere)
    with temporary_folder() as one, temporary_folder() as other:
        assert one.is_dir()
        assert other.is_dir()
    assert not one.exists()
    assert foreign.is_dir()
    assert (elsewhere / ".in-use").exists()
    assert precious.read_text() == "mine"


def test_a_temporary_folder_that_is_swept_too_early_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process starts at the same time, and finds the folder before it is locked."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    swept: list[Path] = []

    class Swept(FileLock):
        def acquire(self, *arguments: Any, **options: Any) -> Any:
            lock = super().acquire(*arguments, **options)
            if not swept:
                swept.append(Path(self.lock_file).parent)
                shutil.rmtree(swept[0])
            return lock

    monkeypatch.setattr("harness.engine.staging.FileLock", Swept)
    with temporary_folder() as folder:
        assert folder.is_dir()
        assert [folder] != swept
    assert list(tmp_path.iterdir()) == []


def test_processes_make_temporary_folders_at_the_same_time(tmp_path: Path) -> None:
    """Each sweeps what the others make and remove; this failed once in some 500 folders."""
    code = (
        "import sys, tempfile\n"
        "from harness.engine.staging import temporary_folder\n"
        "tempfile.tempdir = sys.argv[1]\n"
        "for _ in range(100):\n"
        "    with temporary_folder() as folder:\n"
        "        (folder / 'file').touch()\n"
    )
    with contextlib.ExitStack() as stack:
        started_ones = [stack.enter_context(started("-c", code, str(tmp_path))) for _ in range(4)]
        assert [finish(each).returncode for each in started_ones] == [0] * 4
    assert list(tmp_path.iterdir()) == []


def test_unfinished_files_are_swept_after_an_hour(tmp_path: Path) -> None:
    write_text(tmp_path / "sub" / "page.html", "page")
    names = (".page.html-abcd1234", ".new.html-abcd1234", ".lock", ".hidden")
    for name in names:
        (tmp_path / "sub" / name).touch()
    for name in (".page.html-abcd1234", ".lock", ".hidden"):
        os.utime(tmp_path / "sub" / name, (0, 0))
    sweep_unfinished(tmp_path)
    left = {each.name for each in (tmp_path / "sub").iterdir()}
    assert left == {"page.html", ".new.html-abcd1234", ".lock", ".hidden"}
