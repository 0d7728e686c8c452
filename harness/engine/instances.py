"""Instances of a Stan program with its data, each of which works for one thread at a time."""

from __future__ import annotations

import threading

from harness.engine.stan_library import StanInstance, StanSource
from harness.errors import NotEnoughMemory


class Instances:
    """As many instances as are needed at once, or as there is memory for.

    Parameters
    ----------
    first
        The first one, of whose source the others are made.
    """

    def __init__(self, first: StanInstance) -> None:
        self.source: StanSource = first.source
        self._idle, self._made, self._full = [first], 1, False
        self._returned = threading.Condition()

    def take(self) -> StanInstance:
        """Return an instance that nobody else uses, until it is put back.

        If there is no memory for another one, this waits until one is put back.
        """
        while (found := self.one_more()) is None:
            with self._returned:
                self._returned.wait_for(lambda: self._idle or not self._full)
        return found

    def one_more(self) -> StanInstance | None:
        """Return the same for a thread that has one already; None if there is no memory for it."""
        with self._returned:
            if self._idle:
                return self._idle.pop()  # the last one, whose memory is in a cache the soonest
            if self._full:
                return None
            self._made += 1
        try:
            return self.source.instance()
        except BaseException as error:
            self.lose(1)
            with self._returned:
                self._full = bool(self._made) and isinstance(error, NotEnoughMemory)
                if not self._full:
                    raise
            return None

    def put_back(self, *instances: StanInstance) -> None:
        """Let others use instances."""
        with self._returned:
            self._idle.extend(instances)
            self._returned.notify_all()

    def lose(self, count: int) -> None:
        """Say that so many instances will not be put back."""
        with self._returned:
            self._made -= count
            self._full = False
            self._returned.notify_all()
