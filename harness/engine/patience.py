"""Work in a library that may never return: a thread does it, and may be left behind.

The library cannot be stopped, and Python waits for it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import TypeVar

from harness.engine.program import StanProgram
from harness.errors import SamplingError

T = TypeVar("T")

LATE = 3.0
"""Multiple of the time that is planned for a run of NUTS, after which it counts as stuck."""

_ITERATIVE = re.compile(
    r"\b(while|(solve_newton|solve_powell|algebra_solver|ode|integrate|dae|laplace)(_\w+)?)\b"
)


class NeverReturned(SamplingError):
    """The library has not returned from what it was asked for."""


def may_not_return(program: StanProgram) -> bool:
    """Whether a program's text has a loop with a condition, or a solver that iterates."""
    text = program.path.read_text(encoding="utf-8")
    return _ITERATIVE.search(text) is not None


def within(seconds: float, work: Callable[[], T], what: str) -> T:
    """Return what work returns, if it does so in time.

    Parameters
    ----------
    seconds
        Seconds of wall time.
    work
        Must not write to anything that the caller goes on to use, nor print: it may end later.
    what
        What it is, in words, for the error.

    Raises
    ------
    NeverReturned
        If it does not return in time.  Its thread goes on.
    Exception
        What the work raised.
    """
    made: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            made.append(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if thread.is_alive() or not made:
        raise NeverReturned(
            f"{what} did not end within {seconds:.3g} s: a solver or a loop of the program may "
            "never end at some points of its parameters"
        )
    return made[0]
