"""Let an allocation that needs more memory than there is fail, so that it ends nothing else.

Linux grants memory that it does not have, and kills a process that uses it, with all that it has
made so far.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.engine.control_groups import own_groups, told_by

try:
    import resource
except ImportError:  # on Windows, where memory that is not there is not granted
    resource = None  # type: ignore[assignment]

_OF_MACHINE, _OF_PROCESS = Path("/proc/meminfo"), Path("/proc/self/status")
_SHARE = 0.8
"""Share of the memory that is left which a block may take."""
_ONE_AT_A_TIME = threading.RLock()
"""The limit is the whole process's."""


def memory_left() -> float:
    """Return the bytes that the process can still get; infinity where that is not known."""
    left = _bytes(_OF_MACHINE, "MemAvailable")
    for group in own_groups():
        most, used = told_by(group, "memory.max"), told_by(group, "memory.current")
        if most and used and most[0].isdigit() and used[0].isdigit():
            left = min(left, float(most[0]) - float(used[0]))
    return max(left, 0.0)


def _bytes(path: Path, name: str) -> float:
    """Return what a file of the kernel's says in kB; infinity if it does not."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return math.inf
    told = next((line.split()[1] for line in lines if line.startswith(f"{name}:")), "")
    return 1024.0 * int(told) if told.isdigit() else math.inf


@contextmanager
def within_memory() -> Iterator[float]:
    """Let allocations in a block fail that need more than most of the memory that is left.

    Other threads may allocate meanwhile, and what they take counts; blocks of several threads wait
    for each other.

    Yields
    ------
    float
        How many bytes the block may take; infinity where there is no limit, as on macOS, whose
        kernel does not heed it.
    """
    with _ONE_AT_A_TIME:
        most, size = _SHARE * memory_left(), _bytes(_OF_PROCESS, "VmSize")
        if resource is None or not math.isfinite(most + size):
            yield math.inf
            return
        before, hard = resource.getrlimit(resource.RLIMIT_AS)
        limit = int(size + most)
        for each in (before, hard):
            limit = limit if each == resource.RLIM_INFINITY else min(limit, each)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
        try:
            yield limit - size
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (before, hard))
