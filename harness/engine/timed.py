"""How long a density takes."""

from __future__ import annotations

import time

from harness.arrays import FloatArray, LogDensity, LogValues


def seconds_a_point(
    density: LogDensity | LogValues, points: FloatArray, *, times: int = 1
) -> float:
    """Return the wall time for a point, by evaluating a density at some.

    It is evaluated with gradients if what is given returns them.

    Parameters
    ----------
    density
        The density.
    points
        Where, shape (n, D).
    times
        How often: the shortest time counts, because whatever else the machine does adds to it.
    """
    took = []
    for _ in range(times):
        began = time.perf_counter()
        density(points)
        took.append(time.perf_counter() - began)
    return min(took) / len(points)
