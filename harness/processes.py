"""End the processes that a process started, and those that they started."""

from __future__ import annotations

import contextlib
import time

import psutil

_SECONDS_TO_END = 10.0
_SECONDS_A_LOOK = 0.1


def terminate_descendants(pid: int | None = None) -> None:
    """Ask every descendant of a process to end; of this one if none is named."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                child.terminate()


def end_descendants() -> None:
    """End every descendant of this process, those that its threads start meanwhile too.

    Returns when none has been seen for a while, or after some seconds.
    """
    quiet, until = 0, time.monotonic() + _SECONDS_TO_END
    while quiet < 3 and time.monotonic() < until:
        quiet = 0 if psutil.Process().children(recursive=True) else quiet + 1
        terminate_descendants()
        time.sleep(_SECONDS_A_LOOK)
