"""Let SIGTERM and SIGHUP end a command as Ctrl-C does, with nothing half done.

Each of them becomes a SIGINT, so that libraries that wait for Ctrl-C react to it, and it raises
KeyboardInterrupt in the main thread.  The exit status says which one it was.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from types import FrameType

ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""The signals that ask a process to end."""


_SOON = 0.05
"""Seconds after which a signal is sent again that Python could not act on."""


class StoppedBySignal(KeyboardInterrupt):
    """A signal asks this process to end.

    A class of its own: where Python's ``exec`` lets KeyboardInterrupt itself pass, as it does while
    modules are imported, Python would end with SIGINT whatever exit status is asked for.
    """


_log = logging.getLogger(__name__)

_came: list[int] = []
_passed_on: list[int] = []


def exit_status() -> int:
    """Return the exit status of a command that a signal has ended: 128 and the signal's number.

    It is 130 for Ctrl-C, 143 for SIGTERM and 129 for SIGHUP.
    """
    return 128 + (_came[0] if _came else signal.SIGINT)


@contextlib.contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise KeyboardInterrupt in a block, as SIGINT does.

    A signal that is ignored stays ignored (``nohup``).  Where Python drops exceptions, as in a
    ``__del__``, the signal is sent again soon; where compiled code makes a SystemError of one, that
    is turned back.  What an interrupt leaves half made is removed within the block, and what its
    ``__del__`` raises is only logged.  Outside the main thread, where signals never arrive, this
    does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _came.clear()
    _passed_on.clear()
    usual = (signal.SIG_DFL, signal.default_int_handler)
    changed = [each for each in ENDING if signal.getsignal(each) in usual]
    before = {each: signal.signal(each, _interrupt) for each in changed}
    hook, sys.unraisablehook = sys.unraisablehook, _send_again
    try:
        yield
    except KeyboardInterrupt as interrupt:
        _remove_half_made(interrupt)
        raise
    except SystemError as error:
        if is_from_signal(error):
            _remove_half_made(error)
            raise StoppedBySignal from error
        raise
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)


def is_from_signal(error: BaseException) -> bool:
    """Whether an exception comes from a signal.

    Compiled code that returns although the signal's exception is set, as the locks of h5py and
    netCDF4 do at times, makes Python raise SystemError because of it.
    """
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def _remove_half_made(error: BaseException) -> None:
    """Remove the objects that only the frames of an interrupted call still hold."""
    each: BaseException | None = error
    while each is not None:
        traceback.clear_frames(each.__traceback__)
        each = each.__cause__ or each.__context__
    gc.collect()


def _send_again(dropped: sys.UnraisableHookArgs) -> None:
    """Send a signal again whose exception Python had to drop; show others, unless one has come."""
    if not isinstance(dropped.exc_value, StoppedBySignal):
        if _came:  # an object whose __init__ was interrupted, say a file, fails in its __del__
            _log.debug("dropped after a signal: %r in %r", dropped.exc_value, dropped.object)
        else:
            sys.__unraisablehook__(dropped)
        return
    number = _came[-1]

    def send() -> None:
        if signal.getsignal(number) is _interrupt:  # otherwise the block has ended meanwhile
            os.kill(os.getpid(), number)

    again = threading.Timer(_SOON, send)
    again.daemon = True
    again.start()


@contextlib.contextmanager
def interrupts_put_off() -> Iterator[None]:
    """Finish the block before a signal that asks the process to end has its effect.

    In the middle of writing, KeyboardInterrupt would leave HDF5 with a half-open file.  Outside the
    main thread, where signals never arrive, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    kept = [each for each in ENDING if signal.getsignal(each) is not signal.SIG_IGN]
    before = {
        number: signal.signal(number, lambda received, _frame: came.append(received))
        for number in kept
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])  # for whoever handles it, ours or not


def passed_on() -> int:
    """Return how many SIGINTs were no Ctrl-C but another signal, in the block that is running."""
    return len(_passed_on)


def _interrupt(number: int, _: FrameType | None) -> None:
    _came.append(number)
    handler = signal.getsignal(signal.SIGINT)
    if number != signal.SIGINT and callable(handler) and handler is not _interrupt:
        _passed_on.append(number)
        signal.raise_signal(signal.SIGINT)
    else:
        raise StoppedBySignal
