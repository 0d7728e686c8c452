"""Worker processes do not outlive what they work for."""

from __future__ import annotations

from pathlib import Path

import psutil
from survival_world import descendants_with, started

SCRIPT = """
import os, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from harness.engine.processes import end_with_parent

if __name__ == "__main__":
    with ProcessPoolExecutor(2, get_context("spawn"), end_with_parent) as pool:
        both = [pool.submit(time.sleep, 0.3) for _ in range(2)]
        [each.result() for each in both]
        print(os.getpid(), flush=True)
        time.sleep(600)
"""


def test_idle_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    """Each of two holds the other's end of the queue that it waits for, which would never close."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with started(str(script)) as run:
        assert run.stdout is not None
        assert int(run.stdout.readline()) == run.pid
        workers = descendants_with(run.pid, "spawn_main")
        assert len(workers) == 2
        run.kill()
        run.wait()
        _, alive = psutil.wait_procs(workers, timeout=60)
        for process in alive:
            process.kill()
        assert alive == []
