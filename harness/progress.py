"""Show how a long job gets on: a bar on a terminal, plain lines anywhere else.

:class:`Steps` is for a few steps, each with words of its own; :class:`Progress` for many equal
ones, with the time left.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Never, Self

from tqdm import tqdm

_SECONDS_BETWEEN_LINES = 15.0
_COUNTED = "{elapsed} {desc}"
_OF_TOTAL = "{n_fmt}/{total_fmt} |{bar:20}| {elapsed} {desc}"
"""What is shown on a terminal without and with a number of steps that is known."""


class Steps:
    """Progress of a job of ``total`` steps, shown on standard error.

    Use it as a context manager; :meth:`begin` starts a step and thereby ends the one before.

    Parameters
    ----------
    total
        Number of steps; None if what one finds decides what follows, so that steps are only
        counted.
    """

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._begun = 0
        self._bar: tqdm[Any] | None = None
        self._text = ""
        self._since = self._said = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            if error is None:
                self._bar.update(self._begun - self._bar.n)
            self._bar.close()

    def begin(self, text: str) -> None:
        """Start the next step, which ``text`` describes."""
        self._about(text)
        if sys.stderr.isatty():
            if self._bar is None:
                self._bar = tqdm(
                    total=self._total,
                    file=sys.stderr,
                    bar_format=_COUNTED if self._total is None else _OF_TOTAL,
                )
            self._bar.update(self._begun - self._bar.n)
            self._bar.set_description_str(text)
        else:
            of_total = "" if self._total is None else f"/{self._total}"
            self.say(f"[{self._begun + 1}{of_total}] {text}")
        self._begun += 1

    def describe(self, text: str) -> None:
        """Say what the step has come to: beside the bar, or as a line below its own."""
        self._about(text)
        if self._bar is not None:
            self._bar.set_description_str(text)
        elif not sys.stderr.isatty():
            self.say(f"      {text}")

    def share(self, done: float) -> None:
        """Say which share of a long run, 0 to 1, is done, and how long the rest may take.

        Without a bar this is a line every quarter of a minute.
        """
        now = time.monotonic()
        if done <= 0:
            return
        left = (now - self._since) / done * (1 - done)
        text = f"{done:.0%} done" + (f", about {_duration(left)} left" if left else "")
        if self._bar is not None:
            self._bar.set_description_str(f"{self._text}: {text}")
        elif now - self._said >= _SECONDS_BETWEEN_LINES:
            self._said = now
            self.say(f"      {text}")

    def _about(self, text: str) -> None:
        self._text = text
        self._since = self._said = time.monotonic()

    def tick(self) -> None:
        """Let the clock on the bar move; a waiting loop calls this about once a second."""
        if self._bar is not None:
            self._bar.refresh()

    def say(self, text: str) -> None:
        """Print one line without disturbing the bar."""
        _say(text, self._bar)


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
        _say(line, self._bar)


def say(line: str) -> None:
    """Print a line on standard error, above any bar, from whatever thread."""
    tqdm.write(line, file=sys.stderr)


def _say(line: str, bar: tqdm[Any] | None) -> None:
    if bar is not None:
        say(line)
    else:
        print(line, file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
