"""With whom a tempered run sides if NUTS and the search give a region different probabilities.

NUTS's chains agree and both have found the same places, so neither is known to be wrong: NUTS may
cross between two modes so rarely that its error is too small, or the search may have lost particles
on its way.  The tempered run, whose path is the search's and whose starting points come from both,
is a third opinion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness import evidence
from harness.arrays import FloatArray
from harness.diagnosis import Finding, Severity
from harness.user.compare import LEAST_SHARE, Region

Side = Literal["nuts", "search", "neither", "open"]
"""Who is right: ``open`` if the tempered run is too short to tell, ``neither`` if it contradicts
both."""

_ERRORS = 3.0
"""Standard errors within which two probabilities agree."""


@dataclass(frozen=True)
class Dispute:
    """A region to which NUTS and the search give different probabilities.

    Attributes
    ----------
    region
        The region, with the probabilities by NUTS and by the search.
    finding
        What is said of it as long as it is not settled.
    """

    region: Region
    finding: Finding


def arbitrate(dispute: Dispute, tempered: Mapping[str, FloatArray]) -> tuple[Side, Finding]:
    """Decide a dispute by the draws of a tempered run.

    Parameters
    ----------
    dispute
        The region.
    tempered
        Draws of the tempered run by parameter, shape (chains, draws, ...).

    Returns
    -------
    Side, Finding
        Who is right, and what is to be said in place of the dispute's own finding.
    """
    region = dispute.region
    held = region.holds(tempered).astype(np.float64)
    estimate = evidence.expectation(held)
    share, error = float(estimate.value), float(estimate.mcse)
    if not np.isfinite(error):  # all draws are on one side
        error = 1 / held.size

    def agrees(other: float, other_error: float) -> bool:
        apart = abs(share - other)
        return apart <= max(_ERRORS * float(np.hypot(error, other_error)), LEAST_SHARE / 2)

    with_nuts = agrees(region.nuts, region.nuts_error)
    with_search = agrees(region.other, region.other_error)
    measured = (
        f"{region} has probability {region.nuts:.2f} ± {region.nuts_error:.2f} by NUTS, "
        f"{region.other:.2f} ± {region.other_error:.2f} by the search and {share:.2f} ± "
        f"{error:.2f} by a tempered run"
    )
    if with_nuts and with_search:
        return "open", dispute.finding
    if with_nuts:
        return "nuts", Finding(
            Severity.FINE,
            "The search for further modes gave a region another probability than plain NUTS, and "
            f"a tempered run sides with NUTS: {measured}.",
        )
    if with_search:
        return "search", Finding(
            Severity.WARNING,
            "Plain NUTS moves between modes too rarely for its probabilities to be right, although "
            f"its chains agree: {measured}.",
            "Use tempered draws and not those of plain NUTS.",
        )
    return "neither", Finding(
        Severity.WARNING,
        "Plain NUTS, the search for further modes and a tempered run give a region three different "
        f"probabilities: {measured}.",
        "Run longer (--draws, --warmup, --budget).",
    )
