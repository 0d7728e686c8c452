"""Chains of NUTS that are stuck where the posterior has hardly any probability.

A chain that starts in a mode far below all others stays there, and its draws look like a region
that every other method misses.  How high the density is in them, and how far they spread, tells
what that region has at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray
from harness.diagnosis import Finding, Severity
from harness.evidence import LogEvidence, effective_draws, log_mass_at_most
from harness.model import Model
from harness.modes.words import listed
from harness.user.compare import unconstrained
from harness.user.one_copy import density_of

_NEGLIGIBLE = float(np.log(1e-4))
"""Log of the probability that a stuck chain's part of the posterior has at most.  The chain need
not have seen all of that part, so it is less than what matters."""
_DRAWS = 500
"""Draws of each chain that are looked at."""
_ERRORS = 4.0
"""Standard errors by which log Z may be too high."""


class Stuck(NamedTuple):
    """Chains that are stuck.

    Attributes
    ----------
    chains
        Their numbers, from 0.
    share
        Probability that the parts of the posterior where they are have at most, together.
    """

    chains: tuple[int, ...]
    share: float


def stuck_chains(
    model: Model, draws: Mapping[str, FloatArray], log_integral: LogEvidence
) -> Stuck | None:
    """Return the chains that are stuck where hardly any probability is; None if there are none.

    Parameters
    ----------
    model
        The tempered model.
    draws
        NUTS's draws by parameter, shape (chains, draws, ...).
    log_integral
        Log of the integral of the program's density, by a method that need not have been where
        these chains are.
    """
    if not np.isfinite(log_integral.value):
        return None
    every = max(1, next(iter(draws.values())).shape[1] // _DRAWS)
    density = density_of(model)
    points = unconstrained({name: each[:, ::every] for name, each in draws.items()}, 2, density)
    heights = density.values(points.reshape(-1, points.shape[2])).reshape(points.shape[:2])
    least = log_integral.value - _ERRORS * float(log_integral.mcse)
    most = np.array(
        [
            log_mass_at_most(height, each, _worth(each))
            for height, each in zip(heights, points, strict=True)
        ]
    )
    chains = np.flatnonzero(most - least < _NEGLIGIBLE)
    if not chains.size:
        return None
    share = float(np.exp(np.logaddexp.reduce(most[chains]) - least))
    return Stuck(tuple(chains.tolist()), share)


def _worth(points: FloatArray) -> float:
    """Return the independent draws that those of a chain (n, D) are worth, in any coordinate.

    A chain that has hardly moved does not tell how wide the place is where it is.
    """
    equal = np.zeros((1, len(points)))
    return float(min(np.min(effective_draws(points[None], equal)), len(points)))


def about_stuck(stuck: Stuck, chains: int) -> Finding:
    """Say which of so many chains are stuck, and that they do not count."""
    numbers = [each + 1 for each in stuck.chains]
    which = "All chains" if len(numbers) == chains else f"Chain{'s'[: len(numbers) > 1]} "
    if len(numbers) < chains:
        which += listed(numbers)
    are, they = ("are", "they are") if len(numbers) > 1 else ("is", "it is")
    return Finding(
        Severity.FINE,
        f"{which} of plain NUTS {are} stuck where the posterior has hardly any probability: at "
        f"most {stuck.share:.1g}, by the height of the density there. That other methods have no "
        f"draws where {they} is no reason to doubt them.",
    )
