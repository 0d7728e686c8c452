"""A tempered run that goes on in rounds, each from where the last one ended, while it helps.

Each round has as many draws as all before it together.  Earlier rounds count unless the later ones
alone leave fewer doubts: then the run had not settled before.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from harness import evidence
from harness.diagnosis import Finding, Severity, diagnose, outer_tenths
from harness.diagnosis.agreement import agreement, effective_draws
from harness.diagnosis.path import ROUND_TRIPS_WARNING
from harness.errors import HarnessError
from harness.fit import Fit, continued

MOST_ROUNDS = 8

Again = Callable[[Fit, int, int], Fit]
"""Continues a fit's chains: from the fit, with a number of draws, in a round with a number."""


@dataclass(frozen=True)
class Rounds:
    """A run in rounds.

    Attributes
    ----------
    fit
        The rounds that count, one after the other.
    made, kept
        Rounds that were made, and that count: the last ones.
    seconds
        Wall time of all rounds but the first.
    """

    fit: Fit
    made: int
    kept: int
    seconds: float

    @property
    def findings(self) -> list[Finding]:
        """Say how the run went on, if it did."""
        if self.made == 1:
            return []
        draws = self.fit.posterior.sizes["draw"]
        which = "all" if self.kept == self.made else f"the last {self.kept}"
        return [
            Finding(
                Severity.FINE,
                f"The tempered run went on in {self.made} rounds, each from where the last one "
                f"ended, because its first draws left doubts; {which} of them count, with "
                f"{draws:,} draws a chain.",
            )
        ]


def in_rounds(
    first: Fit, again: Again, *, first_seconds: float, most_seconds: float, seed: int
) -> Rounds:
    """Continue a tempered run while more draws may help and there is time.

    More draws may help if chains do not quite agree or effective draws are few, and the inverse
    temperature makes round trips.  If it makes too few, the path is at fault.

    Parameters
    ----------
    first
        The first round.
    again
        Makes the next round; if it fails, the rounds so far are the run.
    first_seconds
        Wall time of the first round, from which that of the next ones is predicted.
    most_seconds
        Wall time for all others; no round begins that would exceed it.
    seed
        Seed of the choice among weighted draws.
    """
    began = time.perf_counter()
    rounds, best, kept = [first], first, 1
    rate = first_seconds / first.posterior.sizes["draw"]
    while len(rounds) < MOST_ROUNDS and _more_would_help(best):
        draws = sum(each.posterior.sizes["draw"] for each in rounds)
        started = time.perf_counter()
        if started - began + rate * draws > most_seconds:
            break
        try:
            rounds.append(again(rounds[-1], draws, len(rounds) + 1))
        except HarnessError:
            break
        rate = (time.perf_counter() - started) / draws
        candidates = [continued(rounds[k:], seed=seed) for k in range(len(rounds))]
        # Of several that leave equal doubts, the one with the most draws.
        best = min(candidates, key=lambda each: severities(diagnose(each)))
        kept = len(rounds) - candidates.index(best)
    return Rounds(best, len(rounds), kept, time.perf_counter() - began)


def severities(findings: Iterable[Finding]) -> tuple[int, ...]:
    """Return how many findings there are of each severity above fine, the worst first."""
    counted = Counter(each.severity for each in findings)
    return tuple(counted[each] for each in sorted(Severity, reverse=True) if each > Severity.FINE)


def _more_would_help(fit: Fit) -> bool:
    doubts = [*agreement(fit), *effective_draws(fit)]
    return any(each.severity > Severity.FINE for each in doubts) and _travels(fit)


def _travels(fit: Fit) -> bool:
    """Whether the inverse temperature of every chain travels between base and target."""
    tempered = fit.tempered
    lower, upper = outer_tenths(tempered)
    trips = evidence.round_trips(tempered.inv_temp, lower=lower, upper=upper)
    return bool(trips.min() > 0 and np.mean(trips) >= ROUND_TRIPS_WARNING)
