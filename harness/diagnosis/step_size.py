"""Whether one step size suits NUTS along the whole path from base to target.

NUTS adapts one step size to the acceptance rate that it aims at on average.  Near the base, which
is wide, nearly all of a trajectory is accepted, so that much less may be near a sharp target.
Chains then stay out of it for long, and once inside stay in it for long.  No transition need
diverge.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from harness.diagnosis.advice import advice_for
from harness.diagnosis.finding import Finding, Severity
from harness.errors import DataError
from harness.fit import Fit

ACCEPTANCE_WARNING, ACCEPTANCE_PROBLEM = 0.5, 0.3
"""Acceptance rates of a tenth of the draws, by inverse temperature, below which steps are too long.

Our choice.  On many wells (docs/hard/many_wells.md) rates around 0.3 made log Z too low by 0.25 to
1.2 in each of eight runs, with errors of 0.10 to 0.36; with rates around 0.7 it was right.
"""
_TENTHS = 10
_FEWEST = 100
"""Draws below which rates are not compared."""


class Acceptance(NamedTuple):
    """Mean acceptance rate of a tenth of the draws, and the inverse temperatures of these."""

    rate: float
    lowest: float
    highest: float


def least_acceptance(fit: Fit) -> Acceptance | None:
    """Return the tenth of the draws, by inverse temperature, that NUTS accepts the least of.

    Parameters
    ----------
    fit
        Result of any method.

    Returns
    -------
    Acceptance or None
        None if the fit is no run of NUTS with one inverse temperature a draw.
    """
    stats = fit.sample_stats
    if "acceptance_rate" not in stats or "tree_depth" not in stats:
        return None
    try:
        inv_temp = fit.tempered.inv_temp
    except DataError:
        return None
    rate = stats["acceptance_rate"].transpose("chain", "draw").to_numpy()
    if inv_temp.shape != rate.shape or rate.size < _FEWEST:
        return None
    order = np.argsort(inv_temp, axis=None, kind="stable")
    found = [
        Acceptance(float(rate.ravel()[each].mean()), *np.ravel(inv_temp)[each[[0, -1]]].tolist())
        for each in np.array_split(order, _TENTHS)
    ]
    return min(found)


def step_size(fit: Fit) -> Iterable[Finding]:
    """Check that steps are not too long in a part of the path."""
    least = least_acceptance(fit)
    if least is None:
        return
    low, high = f"{least.lowest:.2g}", f"{least.highest:.2g}"
    part = f"where the inverse temperature is {low if low == high else f'between {low} and {high}'}"
    accepts = f"NUTS accepts {least.rate:.2f} of a trajectory on average"
    if least.rate >= ACCEPTANCE_WARNING:
        yield Finding(
            Severity.FINE,
            f"One step size suits the whole path: {accepts} or more, and the least {part}.",
        )
        return
    yield Finding(
        Severity.PROBLEM if least.rate < ACCEPTANCE_PROBLEM else Severity.WARNING,
        f"Steps are too long in a part of the path, so that log Z and its error may be wrong: "
        f"{accepts} {part}.",
        advice_for(fit).sharp,
    )
