"""End processes that a killed run left behind, before its tasks are run again."""

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

    A run that is killed outright cannot end the CmdStan processes that it waits for.  These inherit
    its mark in an environment variable, and the file ``.run`` holds the mark until the run ends
    normally.  Each mark identifies one process, so nothing else is ever ended.  All runs of that
    process share the mark, because worker processes of one experiment also work for the next.

    Parameters
    ----------
    folder
        Folder that the run writes to.  The caller holds its lock, so a run whose mark is there has
        ended.

    Yields
    ------
    int
        Number of processes that were ended.

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
    if not mark.startswith(f"{os.getpid()}-"):  # no mark, or one that this process has inherited
        mark = f"{os.getpid()}-{uuid.uuid4().hex}"
    write_text(path, mark)
    os.environ[_VARIABLE] = mark
    try:
        yield ended
    finally:
        with contextlib.suppress(OSError):  # if it stays, the next run looks and finds nothing
            path.unlink()
