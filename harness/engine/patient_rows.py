"""Evaluate rows of a program that may never return from one, such as where a solver circles.

They are evaluated on copies of the arrays (see :mod:`harness.engine.patience`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import numpy as np

from harness.arrays import FloatArray
from harness.engine.patience import NeverReturned, Workers
from harness.engine.stan_library import StanInstance
from harness.engine.stan_rows import RowEvaluator

PATIENCE = 10.0
"""Seconds after which an evaluation is given up.  A point that takes as long is of no use."""
_SECONDS_A_CALL = 0.1
"""Seconds that a thread shall work, so that a few slow points do not make it look stuck."""


class PatientRows:
    """Evaluates rows by another evaluator, and gives up where it does not return.

    Parameters
    ----------
    rows
        The other one.
    patience
        Seconds of wall time for an evaluation.
    """

    def __init__(self, rows: RowEvaluator, patience: float = PATIENCE) -> None:
        self._rows, self._patience = rows, patience
        self._at_once = 1
        self._stuck = ""
        self._workers = Workers()

    def __call__(
        self,
        instances: Sequence[StanInstance],
        points: FloatArray,
        value: FloatArray,
        gradient: FloatArray | None,
    ) -> None:
        """See :class:`harness.engine.stan_rows.RowEvaluator`.

        Raises
        ------
        NeverReturned
            If an evaluation takes too long.  Its thread goes on, so the next call raises at once.
        """
        done = 0
        while done < len(points):
            part = slice(done, done + max(self._at_once, len(instances)))
            at = points[part].copy()
            to, slope = np.empty(len(at)), None if gradient is None else np.empty(at.shape)
            started = time.perf_counter()
            self._evaluate(instances, at, to, slope)
            rate = len(at) / max(time.perf_counter() - started, 1e-9)
            self._at_once = max(1, int(rate * _SECONDS_A_CALL))
            value[part] = to
            if gradient is not None:
                gradient[part] = slope
            done += len(at)

    def _evaluate(
        self,
        instances: Sequence[StanInstance],
        at: FloatArray,
        to: FloatArray,
        slope: FloatArray | None,
    ) -> None:
        if self._stuck:
            raise NeverReturned(self._stuck)
        own = tuple(instances)  # the caller's may be another list by the time this is over
        work = partial(self._rows, own, at, to, slope)
        try:
            self._workers.within(self._patience, work, "an evaluation of the log density")
        except NeverReturned as error:
            self._stuck = str(error)
            raise
