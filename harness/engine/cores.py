"""How many cores a run may use: all that its process has, or fewer where several runs share."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from harness.errors import DataError

_GROUPS, _OWN_GROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")

_MOST: ContextVar[int | None] = ContextVar("most_cores", default=None)


def cores() -> int:
    """Return the number of threads that compute at once in a run: 1 or more."""
    found, most = _of_process(), _MOST.get()
    return found if most is None else min(found, most)


def _of_process() -> int:
    """Return the cores that the process may use: where that is known, not all of the machine's."""
    if hasattr(os, "sched_getaffinity"):  # on Linux
        found = len(os.sched_getaffinity(0))
    else:
        found = os.cpu_count() or 1
    return max(1, math.ceil(min(found, _quota())))


def _quota() -> float:
    """Return how many cores' time the process's control group has; infinity if it has no limit.

    A container that is given two cores usually sees all of the machine's, but is stopped for the
    rest of each period once its threads have used up the time of two.  Version 2 of the kernel's
    control groups tells that in ``cpu.max``: microseconds, or ``max``, and those of a period.
    """
    try:
        lines = _OWN_GROUP.read_text(encoding="utf-8").splitlines()
    except OSError:
        return math.inf
    own = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    shares = [math.inf]
    for group in (_GROUPS / own, *(_GROUPS / own).parents):
        if group.is_relative_to(_GROUPS):
            try:
                time, period = (group / "cpu.max").read_text(encoding="utf-8").split()
            except (OSError, ValueError):
                continue
            if time.isdigit() and period.isdigit() and int(period):
                shares.append(int(time) / int(period))
    return min(shares)


@contextmanager
def at_most_cores(number: int) -> Iterator[None]:
    """Let runs that begin in a block use so many cores at most; results do not depend on it.

    Parameters
    ----------
    number
        Number of cores, 1 or more.

    Raises
    ------
    DataError
        If the number is below 1.
    """
    if number < 1:
        raise DataError(f"a run takes 1 core or more; got {number}")
    token = _MOST.set(number)
    try:
        yield
    finally:
        _MOST.reset(token)
