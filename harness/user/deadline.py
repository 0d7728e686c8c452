"""End a command that does not react to an interrupt, and one that takes longer than it may.

Python handles Ctrl-C when the main thread is back from the library that it called.  A program with
an endless loop never comes back, so another thread watches: the operating system writes each signal
to a pipe at once.
"""

from __future__ import annotations

import _thread
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from harness.engine.processes import end_descendants
from harness.engine.signals import ENDING, passed_on
from harness.errors import SamplingError

PATIENCE = 15.0
"""Seconds in which the main thread must react to an interrupt; ending CmdStan takes up to 10."""
_OUT_OF_TIME = 1


@contextmanager
def stoppable(seconds: float | None = None, *, patience: float = PATIENCE) -> Iterator[None]:
    """Run a block that Ctrl-C, SIGTERM or SIGHUP always ends, and a time limit if there is one.

    The process itself ends, with status 130, 143, 129 or 1, if the main thread is still in the
    block ``patience`` seconds after a signal or the limit, or at a second signal.  Only the main
    thread can use this; in another thread the block runs as it is.

    Parameters
    ----------
    seconds
        Time limit; None for none.
    patience
        Seconds in which the main thread must react.

    Raises
    ------
    SamplingError
        If the limit is reached, and the block ends by the interrupt.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    watch = _Watch(seconds, patience)
    try:
        with watch:
            yield
    except KeyboardInterrupt as interrupt:
        if not watch.out_of_time:
            raise
        stopped = SamplingError(watch.why)
        for note in getattr(interrupt, "__notes__", []):
            stopped.add_note(note)
        raise stopped from None


class _Watch:
    """The thread that watches, and the pipe through which it hears of signals."""

    def __init__(self, seconds: float | None, patience: float) -> None:
        self._seconds, self._patience = seconds, patience
        self._heard, self._told = socket.socketpair()
        self._told.setblocking(False)
        self._done = threading.Event()
        self.out_of_time = False
        self._status = _OUT_OF_TIME
        self.why = f"stopped at the time limit of {seconds:g} s" if seconds is not None else ""

    def __enter__(self) -> _Watch:
        self._before = signal.set_wakeup_fd(self._told.fileno(), warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        signal.set_wakeup_fd(self._before)
        with suppress(OSError):
            self._told.send(b"\0")
        self._thread.join()
        self._told.close()
        self._heard.close()

    def _work(self) -> None:
        limit = None if self._seconds is None else time.monotonic() + self._seconds
        interrupts = other = 0
        while not self._done.is_set():
            self._heard.settimeout(None if limit is None else max(limit - time.monotonic(), 1e-3))
            try:
                number = self._heard.recv(1)[0]
                if number == signal.SIGINT and passed_on() > other:
                    other += 1  # heard of already, under its own number
                    continue
                if number not in ENDING or signal.getsignal(number) is signal.SIG_IGN:
                    continue
            except TimeoutError:
                if interrupts or self.out_of_time:
                    self._end()
                self.out_of_time = True
                interrupts -= 1  # the one that we send ourselves
                _interrupt_main()
            else:
                interrupts += 1
                if not self.out_of_time:
                    self._status = 128 + number
                if interrupts > 1:
                    self._end()
            limit = time.monotonic() + self._patience

    def _end(self) -> None:
        print(f"harness: {self.why}" if self.out_of_time else "interrupted", file=sys.stderr)
        end_descendants()
        os._exit(self._status)


def _interrupt_main() -> None:
    """Interrupt the main thread as Ctrl-C does, also where it waits for the operating system."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()
