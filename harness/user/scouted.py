"""What pilots found out about a user's program, and what a tempered run along their path needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from harness.arrays import FloatArray
from harness.evidence import (
    NORMALISED,
    WHOLE_BASE,
    LogEvidence,
    LogMass,
    combined_log_evidence,
)
from harness.path import GaussianBase, Pilot
from harness.user.compare import Population
from harness.user.prior import PriorDraws

_FEWEST_POPULATIONS = 1.5
"""Populations of equal weight that the search's are worth, below which one of them is all."""
BRIDGE = "draws of NUTS themselves"
"""Origin of an estimate by bridge sampling, beside the near leg or in its place."""


@dataclass(frozen=True)
class FoundPath:
    """What a tempered run along the search's path needs.

    Attributes
    ----------
    found
        The pilot whose ladder it follows.
    base
        Gaussian base; None if the path starts from the prior.
    positive
        Share of the base where the likelihood is above zero: the part that a path reaches if all
        its inverse temperatures are above 0.
    prior
        Draws of the prior; None if the path does not start from it.
    log_factor
        As :attr:`harness.path.data.TemperedPath.log_factor` has it.
    """

    found: Pilot
    base: GaussianBase | None
    positive: LogMass = WHOLE_BASE
    prior: PriorDraws | None = None
    log_factor: LogEvidence | None = NORMALISED

    @property
    def zero_likelihood(self) -> bool:
        """Whether the likelihood is zero on a share of the base that matters."""
        return not self.positive.nearly_whole


@dataclass(frozen=True)
class Scouted:
    """What the pilots of a program found.

    Attributes
    ----------
    search
        Particles of the search at the posterior, by parameter; None if it failed.
    near
        Particles of the near leg.
    path
        What tempered runs follow; None if there is no path.
    origin
        Where the search started, in words.
    estimates
        Each leg's own estimates of log Z, by where it started; :data:`BRIDGE` is no leg.
    constant
        Log of what an integral of the program's density is divided by to give Z
        (:func:`harness.path.normalisation.divisor`); None if it is not known.
    prior
        Draws of the prior; None if the search did not start from it.
    drifts
        Whether draws of the prior drift to infinity, so that the search started from a wide
        Gaussian instead.
    failures
        Why a leg or the bridge failed, or is not reliable, by name: ``search``, ``near``,
        ``constant``, ``bridge``.
    gradients, seconds
        Gradient evaluations and wall time.
    infinite
        Share of the points visited by the search at which the log density is +inf.
    base_integral
        Log of the integral of the prior as the program writes it, or of a flat base that takes its
        place; None if it is not known.
    at_least
        Log Z by a bridge that is no estimate, because transitions of NUTS were divergent, or its
        chains do not quite agree: the draws may lack a part of the posterior, and the whole is no
        less than what they have seen.
    """

    search: Population | None
    near: Population | None
    path: FoundPath | None
    origin: str
    estimates: Mapping[str, tuple[LogEvidence, ...]]
    constant: LogEvidence | None
    prior: PriorDraws | None
    failures: Mapping[str, str]
    gradients: int
    seconds: float
    starts: Mapping[str, FloatArray]
    drifts: bool = False
    infinite: float = 0.0
    base_integral: LogEvidence | None = NORMALISED
    at_least: LogEvidence | None = None

    @property
    def by_bridge(self) -> LogEvidence | None:
        """Log Z by a bridge from the draws of NUTS; None if there is none."""
        return next(iter(self.estimates.get(BRIDGE, ())), None)

    @property
    def by_search(self) -> LogEvidence | None:
        """Log Z by the search alone; None if it tells none."""
        found = self.estimates.get(self.origin, ())
        return combined_log_evidence(found).estimate if found else None

    @property
    def search_has_weight(self) -> bool:
        """Whether the search's weight is in more than one of its populations.

        By their spread the error of log Z is 1 otherwise, however far it is from the truth.
        """
        return self.search is not None and self.search.worth >= _FEWEST_POPULATIONS

    @property
    def prior_and_integral(self) -> PriorDraws | None:
        """The draws of the prior, with its integral if a leg has told it."""
        if self.prior is None or self.base_integral is None:
            return self.prior
        return replace(self.prior, log_integral=self.base_integral)
