"""Work in pools when a signal comes: results, and no lock that is left taken."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from survival_world import PACKAGE

from harness.engine.futures import done_soon, result_of, sent

_INTERRUPTED = """
import itertools, signal, sys, time
from concurrent.futures import ThreadPoolExecutor
from harness.engine.futures import done_soon, result_of, sent
from harness.engine.signals import interrupted_by_signals

def signal_after_lock(number):
    def follow(frame, event, called):
        nonlocal number
        if event == "c_return" and called.__name__ in ("acquire", "__enter__"):
            number -= 1
            if not number:
                signal.raise_signal(signal.SIGTERM)
    return follow

for number in itertools.count(1):
    stopped = False
    with ThreadPoolExecutor(2) as pool:
        try:
            with interrupted_by_signals():
                sys.setprofile(signal_after_lock(number))
                try:
                    running = [sent(pool, time.sleep, 0.01) for _ in range(3)]
                    done_soon(running, first=True, seconds=0.001)
                    for each in running:
                        result_of(each)
                finally:
                    sys.setprofile(None)
        except KeyboardInterrupt:
            stopped = True
    if not stopped:
        break
print(number - 1)
"""


def test_a_signal_leaves_no_lock_taken() -> None:
    """It comes after each lock in turn that the main thread takes, and the pool ends every time."""
    done = subprocess.run(  # it would wait for ever, and Python's end with it
        [sys.executable, "-c", _INTERRUPTED],
        cwd=PACKAGE,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not done.stderr
    assert int(done.stdout) > 10  # locks; there are some for each piece of work


def test_results_and_failures_arrive() -> None:
    def fails() -> None:
        raise ValueError("of the work")

    with ThreadPoolExecutor(1) as pool:
        assert result_of(sent(pool, divmod, 7, 2)) == (3, 1)
        with pytest.raises(ValueError, match="of the work"):
            result_of(sent(pool, fails))


def test_a_look_ends_with_the_first_with_all_or_with_the_time() -> None:
    go = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        short, long = sent(pool, threading.Event().wait, 0), sent(pool, go.wait, 60)
        assert done_soon([short, long], first=True, seconds=60) == {short}
        assert done_soon([short, long], seconds=0.01) == {short}
        go.set()
        assert done_soon([short, long], seconds=60) == {short, long}
