"""Draws of plain NUTS, spread over the copies of a posterior, with what its runs have come to."""

from __future__ import annotations

from typing import NamedTuple

from harness.diagnosis import Finding, Severity
from harness.fit import Fit
from harness.user.compare import r_hat_of_parameters
from harness.user.one_copy import InOneCopy
from harness.user.steps import Steps


class NutsDraws(NamedTuple):
    """Draws of plain NUTS.

    Attributes
    ----------
    fit
        In all copies of the posterior.
    in_one_copy
        The same draws in one copy, if they had to be spread.
    seconds
        Wall time of the run that made them.
    said
        What is to be said about further runs.
    """

    fit: Fit
    in_one_copy: InOneCopy | None = None
    seconds: float = 0.0
    said: tuple[Finding, ...] = ()

    @property
    def r_hat(self) -> float:
        """R-hat of the parameter where it is largest, in one copy if there are several."""
        if self.in_one_copy is not None:
            return self.in_one_copy.r_hat
        return r_hat_of_parameters(self.fit)


def saying(draws: NutsDraws, before: NutsDraws, sentence: str) -> NutsDraws:
    """Return draws with what is said of the runs before, and a sentence more."""
    return draws._replace(said=(*before.said, Finding(Severity.FINE, sentence)))


def seconds_of_nuts(steps: Steps) -> float:
    """Return the wall time of all runs of plain NUTS so far."""
    return steps.clock.seconds.get("nuts", 0.0)
