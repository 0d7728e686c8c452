"""Make regions of narrow peaks that have no barrier around them: each within a wider mode."""

from __future__ import annotations

import numpy as np

from harness.arrays import FloatArray
from harness.modes.limited import Limited
from harness.modes.local_mass import local_gaussian
from harness.modes.regions import Region, Regions
from harness.modes.rows import Rows


def with_cores(found: Regions, peaks: FloatArray, rows: Rows, target: Limited) -> Regions:
    """Divide regions into what is around some of their peaks and the rest.

    A wide mode may rise towards a narrow peak without a barrier.  In many dimensions its draws are
    far from there, and the peak has a mass of its own, as a mode outside of them has.

    Parameters
    ----------
    found
        Regions without barriers inside.
    peaks
        Narrow peaks that are among the rows, shape (k, D).
    rows
        The draws.
    target
        The density.
    """
    for peak in peaks:
        at = np.flatnonzero(np.all(rows.points == peak, axis=1))
        local = local_gaussian(peak, target, scale=rows.scale)
        if not at.size or local is None:
            continue
        number = found.labels[at[0]]
        own = found.labels == number
        rest = own & ~local.around(rows.points)
        if not rest.any():
            continue
        points = rows.points[rest]
        heights = target.values(points)
        best = int(np.argmax(heights))
        regions, labels = list(found.regions), found.labels.copy()
        regions[number] = Region(points[best], float(heights[best]), closed=False, rest=True)
        regions.append(Region(peak, local.height, closed=True))
        labels[own & ~rest] = len(regions) - 1
        found = found._replace(regions=tuple(regions), labels=labels)
    return found
