"""End the processes that a process started, and those that they started."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from multiprocessing import parent_process

import psutil

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


def end_marked(variable: str, value: str) -> int:
    """End the processes whose environment has this value of a variable, and return their number.

    They are asked first, and killed after some seconds.  Other users' processes, whose environment
    cannot be read, are left alone.
    """
    marked = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(variable) == value and process.pid != os.getpid():
                marked.append(process)
    for process in marked:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.terminate()
    until = time.monotonic() + _SECONDS_TO_END
    while (
        alive := [process for process in marked if _lives(process)]
    ) and time.monotonic() < until:
        time.sleep(_SECONDS_A_LOOK)
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    return len(marked)


def _lives(process: psutil.Process) -> bool:
    """Whether a process is still running; without a proper init, ended ones may stay unreaped."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
