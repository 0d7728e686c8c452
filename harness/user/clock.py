"""Show and time the steps of a user's job, and keep other programs quiet."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness.engine.nuts import quiet_cmdstanpy
from harness.progress import Steps


@contextmanager
def quiet() -> Iterator[None]:
    """Keep CmdStanPy and stanli from repeating what the progress and the findings say."""
    with quiet_cmdstanpy(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="stanli:", category=RuntimeWarning)
        yield


class Clock:
    """Steps of the job, so many or as they turn out: shown on standard error, and timed."""

    def __init__(self, total: int | None, *, show: bool) -> None:
        self._steps = Steps(total) if show else None
        self.seconds: dict[str, float] = {}

    def __enter__(self) -> Clock:
        if self._steps is not None:
            self._steps.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._steps is not None:
            self._steps.__exit__(*error)

    def say(self, text: str) -> None:
        """Say what the step is about now."""
        if self._steps is not None:
            self._steps.describe(text)

    def share(self, done: float) -> None:
        """Say which share of the run that was announced last, 0 to 1, is done."""
        if self._steps is not None:
            self._steps.share(done)

    @contextmanager
    def step(self, text: str, name: str) -> Iterator[None]:
        """Announce a step and time it under its name, also one that fails."""
        if self._steps is not None:
            self._steps.begin(text)
        with self.timed(name):
            yield

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time of a block to that of a step which has been announced before."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
