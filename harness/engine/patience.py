"""Work in a library that may never return: threads do it, and may be left behind.

The library cannot be stopped, and Python waits for it.
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast

from harness.engine.nuts import NutsSettings
from harness.engine.program import StanProgram
from harness.errors import SamplingError

T = TypeVar("T")

_LATE = 3.0
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


def in_time(settings: NutsSettings, program: StanProgram, planned: float) -> NutsSettings:
    """Return settings of NUTS with a time limit, by the seconds planned, if it may never end."""
    if not may_not_return(program):
        return settings
    return replace(settings, time_limit=_LATE * planned)


class Workers:
    """Threads that do work for others, who do not wait for longer than they want.

    A thread that has done its work waits for more: to start one takes as long as a hundred
    evaluations of a small density.
    """

    def __init__(self) -> None:
        self._idle: list[_Worker] = []
        weakref.finalize(self, _end, self._idle)

    def within(self, seconds: float, work: Callable[[], T], what: str) -> T:
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
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = _Worker()
        worker.tasks.put(work)
        try:
            made, raised = worker.made.get(timeout=seconds)
        except Empty:
            worker.tasks.put(None)  # for when it comes back
            raise NeverReturned(
                f"{what} did not end within {seconds:.3g} s: a solver or a loop of the program may "
                "never end at some points of its parameters"
            ) from None
        self._idle.append(worker)
        if raised is not None:
            raise raised
        return cast(T, made)


class _Worker:
    """A thread with a queue of tasks, and one of what they returned or raised."""

    def __init__(self) -> None:
        self.tasks: SimpleQueue[Callable[[], Any] | None] = SimpleQueue()
        self.made: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        # The queues alone, so that the thread does not keep this object.
        threading.Thread(target=_work, args=(self.tasks, self.made), daemon=True).start()


def _work(
    tasks: SimpleQueue[Callable[[], Any] | None],
    made: SimpleQueue[tuple[Any, BaseException | None]],
) -> None:
    found: tuple[Any, BaseException | None]
    while (task := tasks.get()) is not None:
        try:
            found = task(), None
        except BaseException as error:
            found = None, error
        made.put(found)
        # Nothing that the task works on shall stay until the next one comes.
        del task, found


def _end(workers: list[_Worker]) -> None:
    for each in workers:
        each.tasks.put(None)
