"""Evaluate rows of a program that may never return from one, such as where a solver circles.

The library cannot be stopped, and Python waits for it.  So rows are evaluated in a thread, on
copies of the arrays, and the thread is left behind if it does not return.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from harness.arrays import FloatArray
from harness.engine.program import StanProgram
from harness.engine.stan_library import StanInstance
from harness.engine.stan_rows import RowEvaluator
from harness.errors import SamplingError

PATIENCE = 10.0
"""Seconds after which an evaluation is given up.  A point that takes as long is of no use."""
_SECONDS_A_CALL = 0.1
"""Seconds that a thread shall work, so that a few slow points do not make it look stuck."""
_ITERATIVE = re.compile(
    r"\b(while|(solve_newton|solve_powell|algebra_solver|ode|integrate|dae|laplace)(_\w+)?)\b"
)


class NeverReturned(SamplingError):
    """The library has not returned from an evaluation."""


def may_not_return(program: StanProgram) -> bool:
    """Whether a program's text has a loop with a condition, or a solver that iterates."""
    text = program.path.read_text(encoding="utf-8")
    return _ITERATIVE.search(text) is not None


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
        self._at_once, self._stuck = 1, False

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
        if not self._stuck:
            own = tuple(instances)  # the caller's may be another list by the time this is over
            self._stuck = not _returned(lambda: self._rows(own, at, to, slope), self._patience)
        if self._stuck:
            raise NeverReturned(
                f"an evaluation of the log density did not end within {self._patience:g} s: a "
                "solver or a loop of the program may never end at some points of its parameters"
            )


def _returned(work: Callable[[], None], seconds: float) -> bool:
    """Do something in a thread, and say whether it was done in time; raise what it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    return not thread.is_alive()
