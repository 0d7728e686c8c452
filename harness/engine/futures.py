"""Send work to pools and wait for it, with no lock left taken when a signal ends the call.

Pools and futures take locks that their threads need too.  A signal's exception that is raised in
the main thread just after it has taken one leaves that lock taken: the threads that want it, and
Python's own end, which waits for them, would wait for ever.  So a signal has its effect only after
each of these calls, and none of them is long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Executor, Future, wait
from typing import ParamSpec, TypeVar

from harness.engine.signals import interrupts_put_off

P = ParamSpec("P")
T = TypeVar("T")

_SECONDS_A_LOOK = 0.5


def sent(pool: Executor, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> Future[T]:
    """Let a pool do work with these arguments as soon as it can."""
    with interrupts_put_off():
        return pool.submit(work, *args, **options)


def done_soon(
    futures: Collection[Future[T]], *, first: bool = False, seconds: float = _SECONDS_A_LOOK
) -> set[Future[T]]:
    """Wait for futures for a short while, and return those that are done.

    Parameters
    ----------
    futures
        What to wait for.
    first
        Whether one that is done ends the wait; otherwise all of them do.
    seconds
        The longest wait, and so the longest time that a signal waits for its effect.
    """
    until = FIRST_COMPLETED if first else ALL_COMPLETED
    with interrupts_put_off():
        return wait(futures, timeout=seconds, return_when=until).done


def result_of(future: Future[T]) -> T:
    """Wait for the result of a future, for as long as it takes.

    Raises
    ------
    Exception
        What the work raised.
    """
    while not done_soon([future]):
        pass
    return future.result()
