"""How far the chains of a run are, from what Stan prints while it samples."""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Follow = Callable[[float], None]
"""Is called now and then, from any thread, with the share of its iterations that a run has done."""

_LINES = 100
_LINE = re.compile(r"(?:Chain \[(\d+)\] )?Iteration: *(\d+) / (\d+)")
_SECONDS_A_LOOK = 0.5


def between_lines(iterations: int) -> int:
    """Return after how many of its iterations a chain that is followed prints where it is."""
    return max(1, iterations // _LINES)


class Iterations(io.TextIOBase):
    """A place to print to, which counts iterations and drops everything else.

    Parameters
    ----------
    chains
        Number of chains of the run.
    follow
        See :data:`Follow`; the share is that of all chains together.
    """

    def __init__(self, chains: int, follow: Follow) -> None:
        self._done = dict.fromkeys(range(1, chains + 1), 0.0)
        self._follow = follow

    def write(self, text: str) -> int:
        """Count the iterations of each chain that a text names."""
        self.count(text)
        return len(text)

    def count(self, text: str, chain: int = 0) -> None:
        """Count iterations in a text, of the chain that each line names or else of ``chain``."""
        before = sum(self._done.values())
        for named, done, total in _LINE.findall(text):
            number = int(named or chain)
            if number in self._done:
                self._done[number] = max(self._done[number], int(done) / int(total))
        now = sum(self._done.values())
        if now > before:
            self._follow(now / len(self._done))


@contextmanager
def followed(consoles: Path, chains: int, follow: Follow | None) -> Iterator[None]:
    """Follow chains of CmdStan while a block runs, by the files that CmdStanPy has them print to.

    Parameters
    ----------
    consoles
        Folder with the files, in which nothing else is called so.
    chains
        Number of chains.
    follow
        See :data:`Follow`; without it nothing is read.
    """
    if follow is None:
        yield
        return
    iterations, ended = Iterations(chains, follow), threading.Event()

    def look() -> None:
        while not ended.wait(_SECONDS_A_LOOK):
            for number, file in enumerate(sorted(consoles.glob("*stdout*.txt")), start=1):
                iterations.count(file.read_text(errors="replace"), number)

    watching = threading.Thread(target=look, daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()
