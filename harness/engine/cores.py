"""How many cores a run may use: all that its process has, or fewer where several runs share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from harness.errors import DataError

_MOST: ContextVar[int | None] = ContextVar("most_cores", default=None)


def cores() -> int:
    """Return the number of threads that compute at once in a run: 1 or more."""
    found, most = _of_process(), _MOST.get()
    return found if most is None else min(found, most)


def _of_process() -> int:
    """Return the cores that the process may use: where that is known, not all of the machine's."""
    if hasattr(os, "sched_getaffinity"):  # on Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
