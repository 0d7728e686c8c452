"""What bridges from draws of a posterior say, and whether they can be relied on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from harness.evidence import BridgeEstimate, LogEvidence, Reshuffled

Proposal = Literal["gaussian", "warp3", "mixture", "copula"]
LABELS: dict[Proposal, str] = {
    "gaussian": "Gaussian proposal",
    "warp3": "Warp-III",
    "mixture": "mixture proposal",
    "copula": "Gaussian copula",
}
LARGEST_K = 0.7
"""Above it the mean of the bridge's terms is not reliable (Vehtari et al. 2024)."""
LEAST_OVERLAP = 0.02
"""Below it proposal and posterior overlap too little for a bridge (our choice)."""
LARGEST_ERROR = 0.5
"""Standard error in nats above which errors are no longer normal (our choice)."""
_APART = 4.5
"""Standard errors by which estimates of one log Z may differ."""
_MATTERS = 0.05
"""Difference in nats that is worth refusing for."""


@dataclass(frozen=True)
class Bridged:
    """Log Z by one proposal.

    Attributes
    ----------
    proposal
        Which one.
    log_evidence
        Mean over both halves, with its error.
    halves
        The bridge to each half of the draws.
    score
        Difference of the halves in units of its standard error.
    """

    proposal: Proposal
    log_evidence: LogEvidence
    halves: tuple[BridgeEstimate, BridgeEstimate]
    score: float

    @property
    def k(self) -> tuple[float, float]:
        """Largest k at draws of the posterior, and of the proposal; -inf where it says nothing."""
        return (
            _largest(each.k_target for each in self.halves),
            _largest(each.k_base for each in self.halves),
        )

    @property
    def overlap(self) -> float:
        """The smaller overlap of both halves."""
        return min(each.overlap for each in self.halves)

    @property
    def label(self) -> str:
        """Its proposal in words."""
        return LABELS[self.proposal]

    def problems(self) -> list[str]:
        """Say why it cannot be relied on; nothing if it can."""
        found = []
        for value, where in zip(self.k, ("the posterior", "the proposal"), strict=True):
            if value > LARGEST_K:
                found.append(
                    f"Pareto k is {value:.2f} at draws of {where}, above {LARGEST_K}, so the "
                    "bridge's mean and its error cannot be relied on"
                )
        if self.overlap < LEAST_OVERLAP:
            found.append(
                f"proposal and posterior do not overlap: their overlap is {self.overlap:.2g}, "
                f"below {LEAST_OVERLAP} (1 would be perfect)"
            )
        if not self.log_evidence.mcse <= LARGEST_ERROR:  # nor is one that is not a number
            found.append(
                f"the error of log Z is {self.log_evidence.mcse:.2g} nats, and errors above "
                f"{LARGEST_ERROR} are not reliable"
            )
        if self.score > _APART and self._gap > _MATTERS:
            one, other = (each.log_evidence.value for each in self.halves)
            found.append(
                f"the halves of the draws disagree: {one:.3f} and {other:.3f}, "
                f"{self.score:.1f} standard errors apart"
            )
        return found

    @property
    def _gap(self) -> float:
        one, other = self.halves
        return abs(one.log_evidence.value - other.log_evidence.value)


@dataclass(frozen=True)
class Bridges:
    """All bridges from one set of draws.

    Attributes
    ----------
    each
        One for each proposal.
    chosen
        The one with the smallest error among those without problems.
    reshuffled
        How far bridges like the chosen one spread over reshuffled blocks; None if not tried.
    problems
        Why the chosen one cannot be relied on; empty if it can.
    """

    each: tuple[Bridged, ...]
    chosen: Bridged
    reshuffled: Reshuffled | None = None
    problems: tuple[str, ...] = field(default=())

    @property
    def log_evidence(self) -> LogEvidence:
        """Log Z, with the larger of the error and that from reshuffled blocks if they differ."""
        value, mcse = self.chosen.log_evidence
        if self.reshuffled is not None and self.reshuffled.too_wide:
            return LogEvidence(value, mcse * self.reshuffled.ratio)
        return LogEvidence(value, mcse)

    @property
    def sound(self) -> bool:
        """Whether there is no reason against it."""
        return not self.problems

    def times(self, count: int) -> Bridges:
        """Return the same for the whole, of which they have seen one of so many equal parts."""
        more = LogEvidence(math.log(count), 0.0)
        each = [replace(one, log_evidence=one.log_evidence.plus(more)) for one in self.each]
        chosen = next(k for k, one in enumerate(self.each) if one is self.chosen)
        return replace(self, each=tuple(each), chosen=each[chosen])


def disagreements(chosen: Bridged, each: Iterable[Bridged]) -> list[str]:
    """Say which other bridge without problems of its own differs from the chosen one."""
    found = []
    for other in each:
        if other is chosen or other.problems():
            continue
        gap = chosen.log_evidence.minus(other.log_evidence)
        if abs(gap.value) > max(_APART * gap.mcse, _MATTERS):
            found.append(
                f"{chosen.label} gives {chosen.log_evidence.text}, but {other.label} "
                f"{other.log_evidence.text}"
            )
    return found


def _largest(values: Iterable[float]) -> float:
    return max((value for value in values if not math.isnan(value)), default=-math.inf)
