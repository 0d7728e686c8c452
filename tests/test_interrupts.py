"""An interrupt that comes while a result is written waits until it is."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from harness.engine.signals import interrupts_put_off


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_block_is_finished_first(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    done = []

    def interrupted_while_writing() -> None:
        with interrupts_put_off():
            os.kill(os.getpid(), number)
            done.append("written")

    with pytest.raises(KeyboardInterrupt):
        interrupted_while_writing()
    assert done == ["written"]
    assert signal.getsignal(number) is before


def test_nothing_happens_without_a_signal_or_outside_the_main_thread() -> None:
    with interrupts_put_off():
        pass
    entered = []

    def elsewhere() -> None:
        with interrupts_put_off():
            entered.append(True)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert entered == [True]
