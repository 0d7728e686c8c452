"""Count what a run of a sampler has cost so far."""

from __future__ import annotations

import time


class Cost:
    """The cost of a run so far: evaluations over all chains, and seconds since it began."""

    def __init__(self) -> None:
        self.gradients = 0
        self.densities = 0
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Wall time since the run began."""
        return time.perf_counter() - self._started
