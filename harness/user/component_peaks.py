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

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.engine.stanli_package import stanli_source
from harness.errors import FAILURES
from harness.files import write_text
from harness.folders import folder_of_programs
from harness.modes.climb import LONGEST_STEP, climb, everywhere
from harness.modes.limited import Limited
from harness.temper.components import component_programs

_log = logging.getLogger(__name__)

_SAME = 1e-9
"""Relative difference up to which components are one, at all starting points."""


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
    found, made = [np.empty((0, density.dimension))], list[Limited]()
    if density.engine != "stanli":
        return found[0], 0
    ends, known = time.perf_counter() + most_seconds, list[FloatArray]()
    try:
        for component in _components(program, data):
            limited = Limited(component, ends - time.perf_counter())
            made.append(limited)
            height = limited(start)[0]
            if any(np.allclose(height, each, rtol=_SAME, atol=_SAME) for each in known):
                continue
            known.append(height)
            possible = np.isfinite(height)
            if possible.any():
                climbed = climb(
                    start[possible],
                    limited,
                    scale=scale,
                    box=everywhere(density.dimension),
                    longest_step=10 * LONGEST_STEP,
                )
                found.append(climbed.points[climbed.arrived])
    except FAILURES as error:
        _log.info("%s: not all of its components are looked at: %s", program.name, error)
    return np.concatenate(found), sum(each.gradients for each in made)


def _components(program: StanProgram, data: Mapping[str, Any]) -> Iterator[BatchedDensity]:
    """Yield densities of a program's components, some of which may be equal."""
    for number, text in enumerate(component_programs(program.path)):
        digest = hashlib.sha256(text.encode()).hexdigest()
        path = folder_of_programs("components", digest, program.path) / "component.stan"
        write_text(path, text)
        component = StanProgram(path)
        if not number:  # otherwise a library would have to be compiled
            stanli_source(component, data).instance()
        yield BatchedDensity(component, data)
