"""Climb each component of a mixture by itself, so that climbs of the mixture begin near its modes.

A narrow component next to a wide one has no slope that leads to it: everywhere else the wide one is
higher, so climbs, tempered paths and chains all end there.  But a program that adds densities up
shows its components, and each by itself is easy to climb.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from harness.arrays import FloatArray, LogDensity
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.engine.stanli_package import stanli_source
from harness.errors import FAILURES, SamplingError
from harness.files import write_text
from harness.folders import folder_of_programs
from harness.modes.climb import LONGEST_STEP, climb, everywhere
from harness.temper.components import component_programs

_log = logging.getLogger(__name__)

_COMPARED = 8
"""Starting points at which components are compared: equal ones are one."""
_SAME = 1e-9


def component_peaks(
    density: BatchedDensity,
    program: StanProgram,
    data: Mapping[str, Any],
    start: FloatArray,
    *,
    scale: FloatArray,
    most_seconds: float = np.inf,
) -> tuple[FloatArray, int]:
    """Return where climbs of each component's density end, on the unconstrained space.

    There are none if stanli does not evaluate the program, as each component would have to be
    compiled.

    Parameters
    ----------
    density
        The program's density.
    program, data
        The program, which includes nothing, and its data.
    start
        Where climbs begin, shape (n, D).
    scale
        Size of each coordinate, shape (D,).
    most_seconds
        Seconds of wall time after which nothing further is climbed.

    Returns
    -------
    ndarray, int
        Shape (m, D), empty if the program adds no densities up; and how many gradients it took.
    """
    found, limited = [np.empty((0, density.dimension))], _Limited(most_seconds)
    if density.engine != "stanli":
        return found[0], 0
    try:
        for component in _components(program, data, start[:_COMPARED], limited):
            possible = start[np.isfinite(component(start)[0])]
            if len(possible):
                climbed = climb(
                    possible,
                    component,
                    scale=scale,
                    box=everywhere(density.dimension),
                    longest_step=10 * LONGEST_STEP,
                )
                found.append(climbed.points[climbed.arrived])
    except FAILURES as error:
        _log.info("%s: not all of its components are looked at: %s", program.name, error)
    return np.concatenate(found), limited.gradients


class _Limited:
    """Counts gradients of several densities, and gives up after a time: a climb may take long."""

    def __init__(self, most_seconds: float) -> None:
        self._until, self.gradients = time.perf_counter() + most_seconds, 0

    def of(self, density: BatchedDensity) -> LogDensity:
        """Return a density whose gradients count; it raises an error when the time is over."""

        def evaluated(points: FloatArray, /) -> tuple[FloatArray, FloatArray]:
            if time.perf_counter() > self._until:
                raise SamplingError("the time is over")
            self.gradients += len(points)
            return density(points)

        return evaluated


def _components(
    program: StanProgram, data: Mapping[str, Any], points: FloatArray, limited: _Limited
) -> Iterator[LogDensity]:
    """Yield densities of a program's components, as far as they differ at some points (n, D)."""
    known: list[FloatArray] = []
    for text in component_programs(program.path):
        digest = hashlib.sha256(text.encode()).hexdigest()
        path = folder_of_programs("components", digest, program.path) / "component.stan"
        write_text(path, text)
        component = StanProgram(path)
        if not known:  # otherwise a library would have to be compiled
            stanli_source(component, data).instance()
        density = limited.of(BatchedDensity(component, data))
        values = density(points)[0]
        if not any(np.allclose(values, each, rtol=_SAME, atol=_SAME) for each in known):
            known.append(values)
            yield density
