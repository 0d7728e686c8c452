"""Wait for the end of a process, then end what it started and remove its temporary folders.

``python watcher.py VARIABLE MARK PID FOLDER...``: the pipe at standard input closes when that
process ends, however it ends; a byte in it says that nothing is left.  Processes are known by the
mark in their environment.  This is a program of its own, which imports nothing of the package;
:mod:`harness.engine.processes` starts it.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import sys
import time

import psutil

_TRACKER = "multiprocessing.resource_tracker"
_SECONDS_A_LOOK = 0.1
_SECONDS_TO_END = 3.0
_SECONDS_BETWEEN = 5.0


def marked(variable: str, mark: str) -> list[psutil.Process]:
    """Return the processes whose environment has this value of a variable, this one left out.

    Other users' processes, whose environment cannot be read, are none of them.  Nor is what Python
    itself starts to clean up behind its worker processes, which ends with the last of them.
    """
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(variable) != mark or process.pid == os.getpid():
                continue
            if _TRACKER not in " ".join(process.cmdline()):
                found.append(process)
    return found


def end_marked(variable: str, mark: str, *, seconds: float) -> int:
    """End the marked processes and those that they start meanwhile; return their number.

    They are asked first, and killed after some seconds.
    """
    ended: set[psutil.Process] = set()
    until = time.monotonic() + seconds
    while alive := [process for process in marked(variable, mark) if lives(process)]:
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                if time.monotonic() > until:
                    process.kill()
                elif process not in ended:
                    process.terminate()
        ended.update(alive)
        if time.monotonic() > until + seconds:
            break  # something that not even the system can end
        time.sleep(_SECONDS_A_LOOK)
    return len(ended)


def lives(process: psutil.Process) -> bool:
    """Whether a process is still running; without a proper init, ended ones may stay unreaped."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def has_left(pid: int) -> bool:
    """Wait for the end of a process, and tell whether it may have left something.

    It has ended when the pipe closes, or when it is gone and another process holds the pipe.
    """
    while psutil.pid_exists(pid):
        if select.select([sys.stdin], [], [], _SECONDS_BETWEEN)[0]:
            return not os.read(sys.stdin.fileno(), 1)
    return True


def main(variable: str, mark: str, pid: str, *folders: str) -> None:
    """Leave the family of the process that started this one, so that nothing ends both; wait."""
    if os.fork():
        os._exit(0)
    os.setsid()
    if has_left(int(pid)):
        end_marked(variable, mark, seconds=_SECONDS_TO_END)
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
