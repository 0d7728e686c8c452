"""End the processes that a process started, and those that they started."""

from __future__ import annotations

import contextlib

import psutil


def terminate_descendants(pid: int | None = None) -> None:
    """Ask every descendant of a process to end; of this one if none is named."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for child in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                child.terminate()
