"""Count what a run of a sampler has cost so far."""

from __future__ import annotations

import time


class Cost:
    """The cost of a run so far: evaluations over all chains, and seconds since it began.

    On a machine that does other things too, the processor's seconds are those to compare.
    """

    def __init__(self) -> None:
        self.gradients = 0
        self.densities = 0
        self._started, self._processor = time.perf_counter(), time.process_time()

    @property
    def seconds(self) -> float:
        """Wall time since the run began."""
        return time.perf_counter() - self._started

    @property
    def processor_seconds(self) -> float:
        """Processor time of this process since the run began."""
        return time.process_time() - self._processor
