"""Run each case in a process of its own, which may crash, hang or end, and judge how it ended.

A server that has imported the package forks for each case, which takes milliseconds.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MOST_SECONDS = 60.0
"""Seconds after which a case counts as hanging; each has a shorter limit of its own."""


@dataclass(frozen=True)
class Ended:
    """How a case ended.

    Attributes
    ----------
    status
        Exit status; minus the number of the signal that ended it; None if it was hanging.
    said
        What it wrote on standard output and standard error.
    """

    status: int | None
    said: str


def isolated(work: Callable[[], int], log: Path) -> Ended:
    """Run work in a fork of this process, with its output in a file; it returns an exit status."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        _work(work, log)
    until = time.monotonic() + MOST_SECONDS
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return Ended(os.waitstatus_to_exitcode(status), _read(log))
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return Ended(None, _read(log))


def _work(work: Callable[[], int], log: Path) -> None:
    status = 99
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        status = work()
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 98
    except BaseException:  # whatever it is, it is the case's result
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _read(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""


def trouble(ended: Ended) -> str | None:
    """Say what is wrong with the end of a command: a hang, a crash or a traceback; None if nothing.

    A command may refuse what it is given, with a sentence of its own or click's.
    """
    if ended.status is None:
        return f"hangs; it said: {ended.said[-500:]}"
    if "Traceback" in ended.said or "please report it" in ended.said:
        return f"traceback: {ended.said[-1500:]}"
    if ended.status not in (0, 1, 2):
        return f"ended with {ended.status}; it said: {ended.said[-500:]}"
    lines = ended.said.strip().splitlines()
    if ended.status and not any(each.startswith(("harness:", "Error:")) for each in lines):
        return f"refused without a reason; it said: {ended.said[-500:]}"
    return None
