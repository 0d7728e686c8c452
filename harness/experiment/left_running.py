"""End what a killed run left running, before its tasks are done again."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

from harness.engine.processes import end_marked
from harness.files import write_text

_VARIABLE = "HARNESS_RUN"


@contextlib.contextmanager
def marked_run(folder: Path) -> Iterator[int]:
    """Mark the processes that a run starts, after ending those that a killed one left.

    A run that is killed outright cannot end the CmdStan processes it waits for.  They inherited
    its mark in an environment variable; the file ``.run`` holds the mark until a run ends in good
    order.  A mark is of one process alone, so nothing else is ever ended; of all runs of that
    process, since worker processes that one experiment has started work for the next one too.

    Parameters
    ----------
    folder
        Folder that the run writes to.  The caller holds its lock: whose mark is there is gone.

    Yields
    ------
    int
        How many processes were ended.

    Raises
    ------
    StoreError
        If the mark cannot be written.
    """
    path = folder / ".run"
    before = ""
    with contextlib.suppress(OSError, ValueError):
        before = path.read_text(encoding="utf-8")
    ended = end_marked(_VARIABLE, before) if before else 0
    mark = os.environ.get(_VARIABLE, "")
    if not mark.startswith(f"{os.getpid()}-"):  # nor a mark that this process has inherited
        mark = f"{os.getpid()}-{uuid.uuid4().hex}"
    write_text(path, mark)
    os.environ[_VARIABLE] = mark
    try:
        yield ended
    finally:
        with contextlib.suppress(OSError):  # the next run looks for nothing, and finds it
            path.unlink()
