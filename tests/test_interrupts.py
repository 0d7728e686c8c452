"""An interrupt that comes while a result is written waits until it is."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from survival_world import PACKAGE, finish, started

from harness.engine.signals import (
    ENDING,
    StoppedBySignal,
    exit_status,
    interrupted_by_signals,
    interrupts_put_off,
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_block_is_finished_first(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    done = []

    def interrupted_while_writing() -> None:
        with interrupts_put_off():
            os.kill(os.getpid(), number)
            done.append("written")

    with interrupted_by_signals(), pytest.raises(StoppedBySignal):
        interrupted_while_writing()
    assert done == ["written"]
    assert signal.getsignal(number) is before


def test_a_signal_that_was_put_off_reaches_its_usual_handler() -> None:
    with pytest.raises(KeyboardInterrupt) as raised, interrupts_put_off():
        os.kill(os.getpid(), signal.SIGINT)
    assert raised.type is KeyboardInterrupt  # Python's own, not ours


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


@pytest.mark.parametrize("number", ENDING)
def test_other_signals_reach_who_waits_for_ctrl_c(number: signal.Signals) -> None:
    """As stanli does while it samples: an exception inside its callback would be lost."""
    heard: list[int] = []
    with interrupted_by_signals():
        before = signal.signal(signal.SIGINT, lambda received, _frame: heard.append(received))
        try:
            os.kill(os.getpid(), number)
        finally:
            signal.signal(signal.SIGINT, before)
        assert heard == [signal.SIGINT]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    if number != signal.SIGINT:
        assert exit_status() == 128 + number


class Dropping:
    """Is sent a signal where Python drops exceptions."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_whose_exception_is_dropped_comes_again(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    reached = []

    def wait() -> None:
        with interrupted_by_signals():
            Dropping(number)
            reached.append(True)
            time.sleep(30)

    with pytest.raises(KeyboardInterrupt):
        wait()
    assert reached
    assert exit_status() == 128 + number
    assert "Traceback" not in capsys.readouterr().err


def test_other_dropped_exceptions_are_shown_as_usual(capsys: pytest.CaptureFixture[str]) -> None:
    class Failing:
        def __del__(self) -> None:
            raise ValueError("as usual")

    with interrupted_by_signals():
        Failing()
    assert "ValueError: as usual" in capsys.readouterr().err


def test_what_an_interrupt_leaves_half_made_ends_in_silence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As with h5netcdf's files, which close in ``__del__`` what ``__init__`` has not yet opened."""
    ended: list[str] = []

    class File:
        def __init__(self, *, within: object = None) -> None:
            self.within = within
            self.itself = self if within else None  # a cycle, which only the collector removes
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(30)
            self.closed = False

        def __del__(self) -> None:
            ended.append("file")
            assert not self.closed  # AttributeError: __init__ did not come so far

    for within in (None, "a cycle"):
        ended.clear()
        with pytest.raises(KeyboardInterrupt), interrupted_by_signals():
            File(within=within)
        assert ended == ["file"]
    assert capsys.readouterr().err == ""


def test_what_compiled_code_makes_of_a_signal_is_turned_back() -> None:
    """A lock that returns although an exception is set makes Python raise SystemError from it."""

    def stopped() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        except KeyboardInterrupt as interrupt:
            raise SystemError("returned a result with an exception set") from interrupt

    with pytest.raises(KeyboardInterrupt) as raised, interrupted_by_signals():
        stopped()
    assert isinstance(raised.value.__cause__, SystemError)
    assert exit_status() == 128 + signal.SIGTERM
    with pytest.raises(SystemError, match="of its own"), interrupted_by_signals():
        raise SystemError("of its own")


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupted_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


IN_EXEC = """
import os, signal, sys
from harness.engine.signals import exit_status, interrupted_by_signals
try:
    with interrupted_by_signals():
        exec("os.kill(os.getpid(), signal.SIGTERM)")
except KeyboardInterrupt:
    sys.exit(exit_status())
"""


def test_the_exit_status_is_ours_even_within_exec() -> None:
    """Modules that are being imported run such code, for instance for their data classes."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    with started("-c", IN_EXEC, environment=environment) as process:
        assert finish(process).returncode == 143
