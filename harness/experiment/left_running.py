"""End processes that a killed run left behind, before its tasks are run again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from harness.engine.processes import children_end_with_us, end_marked
from harness.files import write_text


@contextlib.contextmanager
def marked_run(folder: Path) -> Iterator[int]:
    """Mark the processes that a run starts, after ending those that a killed one left.

    A run that is killed outright cannot end the CmdStan processes that it waits for.  Another
    process does that, unless it is killed too: so the file ``.run`` holds the mark that they
    inherit, until the run ends normally.  Each mark identifies one process, so nothing else is
    ever ended.

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
    ended = end_marked(before) if before else 0
    with children_end_with_us() as mark:
        write_text(path, mark)
        try:
            yield ended
        finally:
            with contextlib.suppress(OSError):  # if it stays, the next run looks and finds nothing
                path.unlink()
