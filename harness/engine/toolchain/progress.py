"""Show the steps of a long job: a bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from tqdm import tqdm


class Steps:
    """Progress of a job of ``total`` steps, shown on standard error.

    Use it as a context manager; :meth:`begin` starts a step and thereby ends the one before.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._begun = 0
        self._bar: tqdm[Any] | None = None

    def __enter__(self) -> Steps:
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
        if sys.stderr.isatty():
            if self._bar is None:
                self._bar = tqdm(
                    total=self._total,
                    file=sys.stderr,
                    bar_format="{n_fmt}/{total_fmt} |{bar:20}| {elapsed} {desc}",
                )
            self._bar.update(self._begun - self._bar.n)
            self._bar.set_description_str(text)
        else:
            self.say(f"[{self._begun + 1}/{self._total}] {text}")
        self._begun += 1

    def tick(self) -> None:
        """Let the clock on the bar move; a waiting loop calls this about once a second."""
        if self._bar is not None:
            self._bar.refresh()

    def say(self, text: str) -> None:
        """Print one line without disturbing the bar."""
        if self._bar is not None:
            self._bar.write(text, file=sys.stderr)
        else:
            print(text, file=sys.stderr, flush=True)
