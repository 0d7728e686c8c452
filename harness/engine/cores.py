"""How many cores a run may use: all that its process has, or fewer where several runs share."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from harness.engine.control_groups import own_groups, told_by
from harness.errors import DataError

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
    shares = [math.inf]
    for group in own_groups():
        told = told_by(group, "cpu.max")
        if len(told) == 2 and all(each.isdigit() for each in told) and int(told[1]):
            shares.append(int(told[0]) / int(told[1]))
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
