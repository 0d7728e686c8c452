"""Show how a grid gets on: a bar on a terminal, plain lines with the time left elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Never, Self

from tqdm import tqdm

_SECONDS_BETWEEN_LINES = 15.0


class Progress:
    """Progress of a known number of equal steps.

    Parameters
    ----------
    total
        Number of steps.
    name
        What the steps belong to.
    unit
        What a step is.
    """

    def __init__(self, total: int, name: str, unit: str) -> None:
        self._total, self._name, self._unit = total, name, unit
        self._done = 0
        self._started = self._said = time.monotonic()
        self._bar: tqdm[Never] | None = None
        if sys.stderr.isatty() and total:
            self._bar = tqdm(total=total, desc=name, unit=unit, dynamic_ncols=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def step(self) -> None:
        """Count one step; without a bar, say where things stand every quarter of a minute."""
        self._done += 1
        if self._bar is not None:
            self._bar.update()
            return
        now = time.monotonic()
        if now - self._said >= _SECONDS_BETWEEN_LINES or self._done == self._total:
            self._said = now
            left = (now - self._started) / self._done * (self._total - self._done)
            self.say(
                f"{self._name}: {self._done} of {self._total} {self._unit}s"
                + (f", about {_duration(left)} left" if self._done < self._total else "")
            )

    def say(self, line: str) -> None:
        """Print a line on standard error, above the bar where there is one."""
        if self._bar is not None:
            self._bar.write(line, file=sys.stderr)
        else:
            print(line, file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
