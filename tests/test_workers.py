"""Threads of local workers when a signal comes."""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest

from harness.experiment.workers import LocalWorkers


def test_a_signal_leaves_no_lock_of_the_threads_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes while work is handed over, just after the executor has taken a lock."""
    done = threading.Event()
    with LocalWorkers(1) as workers:
        assert workers.in_thread(lambda: 1).result(timeout=60) == 1
        idle = workers._threads._idle_semaphore
        acquire = idle.acquire
        lock: threading.Condition = vars(idle)["_cond"]

        def interrupted(*arguments: Any, **options: Any) -> bool:
            lock.acquire()
            signal.raise_signal(signal.SIGINT)
            lock.release()
            return acquire(*arguments, **options)

        monkeypatch.setattr(idle, "acquire", interrupted)
        with pytest.raises(KeyboardInterrupt):
            workers.in_thread(done.set)
        monkeypatch.undo()
        free = lock.acquire(timeout=10)
        lock.release()  # also if it was not ours: the threads could not end otherwise
        assert free
        assert done.wait(timeout=60)
