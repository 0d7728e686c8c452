"""Start the tiny experiment as a process, watch it, and compare what it leaves."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
import pytest
import survival_driver
from click.testing import CliRunner, Result
from survival_method import CHILD, permit_path, sampled_log

import harness
from harness.cli import main
from harness.engine import watcher
from harness.plan import catalogue

TESTS = Path(__file__).parent
# Where the tests import the package from, so that what they start imports the same one.
PACKAGE = Path(harness.__file__).parents[1]


class TinyWorld:
    """A folder with a store, a log of executed tasks and a CmdStan that is only looked at.

    Parameters
    ----------
    folder
        Folder to keep them in.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "store"
        self.log = folder / "log"
        self.gate = folder / "gate"
        self.mended = folder / "mended"
        # Enough of a CmdStan to be found: the tiny experiment has no Stan program.
        (folder / "cmdstan" / "bin").mkdir(parents=True, exist_ok=True)
        stanc = folder / "cmdstan" / "bin" / "stanc"
        stanc.write_text("#!/bin/sh\necho 'stanc3 v2.39.0 (Unix)'\n")
        stanc.chmod(0o755)
        (folder / "cmdstan" / "makefile").write_text("CMDSTAN_VERSION := 2.39.0\n")
        self.environment = {
            **os.environ,
            "CMDSTAN": str(folder / "cmdstan"),
            "HARNESS_CACHE": str(folder / "cache"),
            "PYTHONPATH": os.pathsep.join(map(str, (TESTS, PACKAGE))),
            "TINY_LOG": str(self.log),
            "TINY_MENDED": str(self.mended),
            "TINY_SECONDS": "0.01",
        }
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            self.environment.pop(variable, None)

    def start(
        self, *arguments: object, **environment: str
    ) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
        """Start the driver, for a block; see :func:`started`."""
        command = (str(TESTS / "survival_driver.py"), *map(str, arguments))
        return started(*command, environment={**self.environment, **environment})

    def call(self, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the driver to its end."""
        with self.start(*arguments, **environment) as process:
            return finish(process)

    def invoke(self, *arguments: object) -> Result:
        """Run a command in this process, for what it says and leaves behind.

        A process of its own takes seconds to start; :meth:`start` and :meth:`call` are for runs
        that are watched, stopped, or have to end well.
        """
        with (
            patch.dict(os.environ, self.environment),
            patch.object(catalogue, "shipped", survival_driver.tiny_folder),
        ):
            return CliRunner().invoke(main, list(map(str, arguments)))

    def quick_run(self, workers: int = 2) -> None:
        """Run the smoke grid with no report, in this process."""
        with patch.dict(os.environ, self.environment):
            survival_driver.quick_run(self.store, workers)

    def executed(self) -> list[tuple[int, int, str]]:
        """Seed, process and number of threads of each execution that has begun so far."""
        return _lines(self.log)

    def times_executed(self) -> Counter[int]:
        """Executions by seed."""
        return Counter(seed for seed, _, _ in self.executed())

    def sampled(self) -> list[tuple[int, int, str]]:
        """Seed, process and number of threads of each fit that was truly made so far."""
        return _lines(sampled_log(self.log))

    def times_sampled(self) -> Counter[int]:
        """Fits made by seed."""
        return Counter(seed for seed, _, _ in self.sampled())

    def permit(self, pid: int, fits: int) -> None:
        """Let a process make its first fits, so many of them, in a run with ``$TINY_GATE``."""
        self.gate.mkdir(exist_ok=True)
        for before in range(fits):
            permit_path(self.gate, pid, before).touch()

    def open_gate(self) -> None:
        """Let everybody go on."""
        self.gate.mkdir(exist_ok=True)
        (self.gate / "open").touch()

    def records(self) -> dict[int, dict[str, Any]]:
        """Records of finished tasks by seed."""
        found = [json.loads(path.read_text()) for path in self.fits("task.json")]
        return {record["seed"]: record for record in found}

    def fits(self, name: str) -> list[Path]:
        """Files of this name in the folders of finished tasks."""
        return sorted(self.store.glob(f"tiny/fits/*/[0-9]*/{name}"))

    def failures(self) -> dict[str, str]:
        """Why tasks failed, by the cell: what the store has recorded."""
        return {
            path.parent.name: json.loads(path.read_text(encoding="utf-8"))["message"]
            for path in self.store.glob("tiny/fits/*/*.failed.json")
        }

    def left_overs(self) -> list[Path]:
        """Files under temporary names."""
        return [path for path in self.store.rglob(".*") if path.name != ".lock"]

    def results(self) -> dict[str, bytes]:
        """Index and tables, byte for byte; not the report's own table, which bears a date."""
        tiny = self.store / "tiny"
        paths = [tiny / "index.csv", *sorted((tiny / "tables").iterdir())]
        return {path.name: path.read_bytes() for path in paths if path.name != "claims.csv"}


def _lines(log: Path) -> list[tuple[int, int, str]]:
    lines = log.read_text().splitlines() if log.exists() else []
    found = [line.split() for line in lines]
    return [(int(seed), int(pid), threads) for seed, pid, threads in found]


@contextlib.contextmanager
def started(
    *arguments: str, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Start Python with these arguments; its output is piped.

    Whatever becomes of the block, the process ends with it and its pipes are closed: a test that
    fails says why, and no more.
    """
    with subprocess.Popen(
        [sys.executable, "-X", "faulthandler", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def finish(
    process: subprocess.Popen[str], seconds: float = 180
) -> subprocess.CompletedProcess[str]:
    """Wait for the end of a process and return what it said.

    The time is for a machine that does much else; what is measured here is never how long it took.
    """
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        left = psutil.Process(process.pid).children(recursive=True)
        # Started with '-X faulthandler' it says where each of its threads is.
        process.send_signal(signal.SIGABRT)
        process.wait()
        for child in left:  # they have its pipes, whose end we wait for
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        out, err = process.communicate()
        pytest.fail(f"still running after {seconds} s; it said:\n{out}\n{err}")
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def end_watchers(pid: int) -> None:
    """Kill what waits for the end of a process, as soon as it has left that one's family.

    It begins as a child and leaves by a fork: killed before, it could have a child that waits on.
    """
    found: list[psutil.Process] = []

    def have_left() -> bool:
        found[:] = [each for each in _running(watcher.__file__, str(pid)) if _leads_session(each)]
        return bool(found)

    until(have_left, "a process that waits")
    for process in found:
        process.kill()


def descendants_with(pid: int, word: str) -> list[psutil.Process]:
    """Return the processes below one that have a word in their name or on their command line."""
    found = []
    for child in psutil.Process(pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # what starts it ends at any moment
            if word in " ".join([child.name(), *child.cmdline()]):
                found.append(child)
    return found


def children_of_tasks(pid: int) -> list[psutil.Process]:
    """Return what the tasks of a run in this process have started, with ``$TINY_CHILD``."""
    return [each for each in _running(CHILD) if each.info["ppid"] == pid]


def _running(*words: str) -> list[psutil.Process]:
    """Return the processes that have all these words on their command line."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "ppid"])
        if set(words) <= set(process.info["cmdline"] or [])
    ]


def _leads_session(process: psutil.Process) -> bool:
    with contextlib.suppress(ProcessLookupError):
        return os.getsid(process.pid) == process.pid
    return False


def until(condition: Callable[[], bool], what: str, seconds: float = 120) -> None:
    """Poll until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for: {what}"
        time.sleep(0.005)


@contextlib.contextmanager
def tmpfs(folder: Path, options: str) -> Iterator[None]:
    """Mount a file system in memory; skip the test where that is not permitted."""
    folder.mkdir(exist_ok=True)
    if not mount("-t", "tmpfs", "-o", options, "tmpfs", str(folder)):
        pytest.skip("no permission to mount a tmpfs")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def mount(*arguments: str) -> bool:
    """Call mount; tell whether it worked."""
    try:
        return (
            subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0
        )
    except OSError:
        return False
