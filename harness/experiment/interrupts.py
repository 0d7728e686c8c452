"""Delay Ctrl-C while a result is being written."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def interrupts_put_off() -> Iterator[None]:
    """Finish the block before SIGINT or SIGTERM raises KeyboardInterrupt.

    In the middle of writing, the exception would leave HDF5 with a half-open file.  Outside the
    main thread, where signals never arrive, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda received, _frame: came.append(received))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt
