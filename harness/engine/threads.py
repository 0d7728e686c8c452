"""Work on each chain in a thread of its own: how far it is, and an end when the call is stopped."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from harness.engine.cores import cores
from harness.engine.futures import done_soon, sent
from harness.engine.iterations import Follow
from harness.engine.processes import children_end_with_us

T = TypeVar("T")

_SECONDS_A_LOOK = 0.5


class _Stopped(Exception):
    """Ends work whose result nobody waits for."""


def in_threads(
    work: Callable[[int, Callable[[], None]], T],
    chains: int,
    *,
    each: int,
    follow: Follow | None = None,
    processes: bool = False,
) -> list[T]:
    """Return what ``work`` makes of each chain.

    If the call is interrupted, or the work of a chain fails, the others end at their next item.

    Parameters
    ----------
    work
        Takes the number of a chain, from 0, and what it calls after each item.  It must leave the
        interpreter to others for most of its time, as foreign functions do.
    chains
        Number of chains.
    each
        Items of each chain.
    follow
        Is told, in the calling thread, which share of all items is done.
    processes
        Whether ``work`` waits for processes, which are ended then if the call is interrupted.

    Raises
    ------
    Exception
        What ``work`` raised, for the first chain that failed.
    """
    done, stop = [0] * chains, threading.Event()

    def worked(chain: int) -> T:
        def count() -> None:
            done[chain] += 1
            if stop.is_set():
                raise _Stopped

        try:
            return work(chain, count)
        except BaseException:
            stop.set()
            raise

    ended = children_end_with_us() if processes else contextlib.nullcontext()
    with ThreadPoolExecutor(max(1, min(chains, cores()))) as pool, ended:
        try:
            running = [sent(pool, worked, chain) for chain in range(chains)]
            while len(done_soon(running, seconds=_SECONDS_A_LOOK)) < chains:
                if follow is not None:
                    follow(sum(done) / max(chains * each, 1))
        except BaseException:
            stop.set()
            raise
    failures = [error for one in running if (error := one.exception()) is not None]
    for error in sorted(failures, key=lambda error: isinstance(error, _Stopped)):
        raise error
    return [one.result() for one in running]
