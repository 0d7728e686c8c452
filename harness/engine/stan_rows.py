"""A Stan program's density at all rows of an array: in a compiled loop, or row by row.

Both ways give the same numbers.  If the program rejects a point, the value is NaN, the point itself
is not finite, or a finite value has a gradient that is not, the value becomes -inf and the gradient
zero.  A value of +inf stays, with a gradient of zero.

Values may be wanted alone.  The compiled loop then asks for no gradients, if the library can do
without, and does not see whether they are finite.
"""

from __future__ import annotations

import ctypes
import itertools
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np

from harness.arrays import FloatArray
from harness.engine.futures import result_of, sent
from harness.engine.stan_library import StanInstance, address_of
from harness.engine.toolchain.row_loop import RowLoop

_FIRST_ROWS = 64
_SECONDS_A_CALL = 0.25
"""Seconds that a call of the compiled loop may take: Python sees an interrupt when it returns."""
_SHORT = 100e-6
"""Seconds of a gradient for which other threads of Python may wait."""
_WORTH_THREADS = 2e-3
"""Seconds of work from which on it pays to start threads."""


class RowEvaluator(Protocol):
    """A way to evaluate rows."""

    def __call__(
        self,
        instances: Sequence[StanInstance],
        points: FloatArray,
        value: FloatArray,
        gradient: FloatArray | None,
    ) -> None:
        """Fill in values (n,) and gradients (n, D) at points (n, D), all of them contiguous.

        Gradients that are None are not wanted.  Uses at most as many threads as there are
        instances.
        """


class CompiledRows:
    """The compiled loop, called for a few rows at a time so that an interrupt is seen soon."""

    def __init__(self, loop: RowLoop) -> None:
        self._loop = loop
        self._at_once = _FIRST_ROWS

    def __call__(
        self,
        instances: Sequence[StanInstance],
        points: FloatArray,
        value: FloatArray,
        gradient: FloatArray | None,
    ) -> None:
        """See :class:`RowEvaluator`."""
        library = instances[0].library
        alone = gradient is None and library.value_address is not None
        if gradient is None and not alone:
            gradient = np.empty(points.shape)
        count = len(instances)
        models = (ctypes.c_void_p * count)(*[instance.pointer for instance in instances])
        functions = (None, library.value_address) if alone else (library.gradient_address, None)
        rows, dimension = points.shape
        at, to = address_of(points), address_of(value)
        slope = None if gradient is None or alone else address_of(gradient)
        done = 0
        while done < rows:
            now = min(self._at_once, rows - done)
            started, shift = time.perf_counter(), 8 * done * dimension
            self._loop(
                *(*functions, models, count, now, dimension),
                *(at + shift, to + 8 * done, None if slope is None else slope + shift),
            )
            rate = now / max(time.perf_counter() - started, 1e-9)
            self._at_once = max(count, int(rate * _SECONDS_A_CALL))
            done += now


def rows_from_python(
    instances: Sequence[StanInstance],
    points: FloatArray,
    value: FloatArray,
    gradient: FloatArray | None,
) -> None:
    """Evaluate rows one by one through ctypes, with gradients: see :class:`RowEvaluator`."""
    gradient = np.empty(points.shape) if gradient is None else gradient
    known = np.isfinite(points).all(axis=1)
    rows = iter(np.flatnonzero(known).tolist())
    library = instances[0].library
    stride = 8 * points.shape[1]
    starts = address_of(points), address_of(value), address_of(gradient)

    def work(instance: StanInstance, *, alone: bool = False, most: int | None = None) -> None:
        evaluate = library.gradient_alone if alone else library.gradient
        pointer, (at, to, slope) = instance.pointer, starts
        for row in itertools.islice(rows, most):
            shift = row * stride
            if evaluate(pointer, True, True, at + shift, to + 8 * row, slope + shift, None):
                value[row] = np.nan

    started = time.perf_counter()
    work(instances[0], most=1)
    seconds = time.perf_counter() - started
    if len(instances) > 1 and seconds > _SHORT and seconds * len(points) > _WORTH_THREADS:
        with ThreadPoolExecutor(len(instances)) as pool:
            for each in [sent(pool, work, instance) for instance in instances]:
                result_of(each)
    else:
        work(instances[0], alone=seconds < _SHORT)
    usable = known & np.isfinite(value) & np.isfinite(gradient).all(axis=1)
    if not usable.all():
        value[~usable & ~(known & (value == np.inf))] = -np.inf
        gradient[~usable] = 0.0
