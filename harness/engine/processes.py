"""End the processes that a process started, and those that they started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from multiprocessing import parent_process
from pathlib import Path

import psutil

from harness.engine import watcher

VARIABLE = "HARNESS_RUN"
"""Environment variable that marks the processes that a process of ours has started."""

_SECONDS_TO_END = 10.0
_SECONDS_A_LOOK = 0.1


def terminate_descendants(pid: int | None = None) -> None:
    """Ask every descendant of a process, by default of this one, to end."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                child.terminate()


def end_with_parent() -> None:
    """End this worker process when its parent is killed, or it would wait for work for ever.

    The ``initializer`` of a pool of processes; Ctrl-C is left to the parent from then on.
    """

    def watch() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    # Ctrl-C reaches the whole group; the parent decides what ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()


def end_descendants() -> None:
    """End every descendant of this process, including those that its threads start meanwhile.

    Returns when there has been none for a while, or after some seconds.
    """
    quiet, until = 0, time.monotonic() + _SECONDS_TO_END
    while quiet < 3 and time.monotonic() < until:
        quiet = 0 if psutil.Process().children(recursive=True) else quiet + 1
        terminate_descendants()
        time.sleep(_SECONDS_A_LOOK)


def end_marked(mark: str) -> int:
    """End the processes that have this mark, and return their number; see :func:`marked`."""
    return watcher.end_marked(VARIABLE, mark, seconds=_SECONDS_TO_END)


@contextlib.contextmanager
def children_end_with_us() -> Iterator[str]:
    """Let everything that this process starts in a block end with it, even if it is killed.

    What is started inherits a mark in the environment variable ``$HARNESS_RUN``.  A small process
    waits for our end, and then ends whatever has the mark: make's compilers, CmdStan, workers.
    (Linux' parent-death signal would reach only our own children, and would come when the thread
    that started them ends.)  At an interrupt they are ended here, and the small process
    goes on waiting for our end, since it has happened that CmdStanPy's folder was left behind then.
    When the block ends otherwise, nothing is ended.

    Blocks may overlap, in one thread or in several; they share one mark.  Where there is no
    ``fork``, as on Windows, nobody waits.

    Yields
    ------
    str
        The mark.
    """
    _WATCH.begin()
    interrupted = False
    try:
        yield _WATCH.mark
    except KeyboardInterrupt:
        interrupted = True
        end_marked(_WATCH.mark)
        raise
    finally:
        _WATCH.end(watch_on=interrupted)


class _Watch:
    """The mark, and the process that waits for as long as a block needs it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._before: str | None = None
        self.mark = ""

    def begin(self) -> None:
        with self._lock:
            self._blocks += 1
            if self._blocks > 1:
                return
            self._before = os.environ.get(VARIABLE)
            if not self.mark.startswith(f"{os.getpid()}-"):  # none yet, or from before a fork
                self.mark = f"{os.getpid()}-{uuid.uuid4().hex}"
                self._process = None
            if self._process is None and hasattr(os, "fork"):
                self._process = self._start()
            os.environ[VARIABLE] = self.mark

    def _start(self) -> subprocess.Popen[bytes] | None:
        # CmdStanPy makes a folder when it is imported, and removes it when Python ends in order.
        cmdstanpy = sys.modules.get("cmdstanpy")
        made = getattr(cmdstanpy, "_TMPDIR", None)
        folders = [] if made is None else [str(made)]
        quiet = subprocess.DEVNULL
        environment = {each: os.environ[each] for each in os.environ if each != VARIABLE}
        environment["PYTHONPATH"] = str(Path(psutil.__file__).parents[1])
        command = [sys.executable, "-S", "-P", watcher.__file__, VARIABLE, self.mark]
        try:
            started = subprocess.Popen(
                [*command, str(os.getpid()), *folders],
                stdin=subprocess.PIPE,
                stdout=quiet,
                stderr=quiet,
                env=environment,
                cwd="/",
            )
        except OSError:  # no more processes, for instance: the work itself will say so
            return None
        # It ends soon, and leaves a process behind that is not our child.
        threading.Thread(target=started.wait, daemon=True).start()
        return started

    def end(self, *, watch_on: bool) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks:
                return
            if self._before is None:
                os.environ.pop(VARIABLE, None)
            else:
                os.environ[VARIABLE] = self._before
            if watch_on:
                return
            if self._process is not None and self._process.stdin is not None:
                with contextlib.suppress(OSError):
                    self._process.stdin.write(b"0")
                    self._process.stdin.close()
                self._process.wait()
                self._process = None


_WATCH = _Watch()
