"""A tempered run that goes on in rounds, each from where the last one ended, while it helps.

Each round has as many draws as all before it together.  Earlier rounds count unless the later ones
alone leave fewer doubts: then the run had not settled before.  Chains need not have moved between
copies of the posterior, over which their draws can be spread.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from harness import evidence
from harness.diagnosis import R_HAT_WARNING, Finding, Severity, diagnose, outer_tenths
from harness.diagnosis.agreement import agreement, effective_draws
from harness.diagnosis.path import ROUND_TRIPS_WARNING
from harness.errors import FAILURES, one_line
from harness.evidence import LogEvidence
from harness.fit import Fit, continued

MOST_ROUNDS = 8
FEWEST_TRIPS = 1.0
"""Round trips of the inverse temperature per chain so far, below which the path is at fault."""

Again = Callable[[Fit, int, int], Fit]
"""Continues a fit's chains: from the fit, with a number of draws, in a round with a number."""
Spread = Callable[[Fit], tuple[Fit, float]]
"""Returns a fit spread over copies of the posterior, and the largest R-hat in one of them; the same
fit, and 1, if nothing is to be done."""


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
    failed
        Why the next round failed; empty if it did not.
    """

    fit: Fit
    made: int
    kept: int
    seconds: float
    failed: str = ""

    @property
    def findings(self) -> list[Finding]:
        """Say how the run went on, if it did, and why it did not go further."""
        if self.failed:
            return [
                *replace(self, failed="").findings,
                Finding(
                    Severity.WARNING,
                    f"The tempered run could not go on after round {self.made}: {self.failed}",
                    "Run longer (--draws, --warmup).",
                ),
            ]
        if self.made == 1:
            return []
        draws = self.fit.posterior.sizes["draw"]
        which = {self.made: "all of them count", 1: "only the last one counts"}.get(
            self.kept, f"only the last {self.kept} count"
        )
        return [
            Finding(
                Severity.FINE,
                f"The tempered run went on in {self.made} rounds, each from where the last one "
                f"ended, because its first draws left doubts; {which}, with "
                f"{draws:,} draws a chain.",
            )
        ]


def in_rounds(
    first: Fit,
    again: Again,
    spread: Spread = lambda fit: (fit, 1.0),
    *,
    first_seconds: float,
    most_seconds: float,
    seed: int,
) -> Rounds:
    """Continue a tempered run while more draws may help and there is time.

    More draws may help if chains do not quite agree, or effective draws or round trips of the
    inverse temperature are few.  If it makes less than one a chain, the path is at fault.

    Parameters
    ----------
    first
        The first round.
    again
        Makes the next round; if it fails, the rounds so far are the run.
    spread
        Spreads draws over copies of the posterior, so that they are judged as they can be then.
    first_seconds
        Wall time of the first round, from which that of the next ones is predicted.
    most_seconds
        Wall time for all others; no round begins that would exceed it.
    seed
        Seed of the choice among weighted draws.
    """
    began = time.perf_counter()
    rounds, failed = [first], ""
    best = _Counting(first, *spread(first), 1)
    rate = first_seconds / first.posterior.sizes["draw"]
    while len(rounds) < MOST_ROUNDS and _more_would_help(best):
        draws = sum(each.posterior.sizes["draw"] for each in rounds)
        started = time.perf_counter()
        if started - began + rate * draws > most_seconds:
            break
        try:
            rounds.append(again(rounds[-1], draws, len(rounds) + 1))
        except FAILURES as error:
            failed = one_line(error)
            break
        rate = (time.perf_counter() - started) / draws
        best = _best(rounds, spread, seed)
    return Rounds(best.fit, len(rounds), best.rounds, time.perf_counter() - began, failed)


class _Counting(NamedTuple):
    """Rounds that count: their draws, the same in all copies, R-hat in one, and how many rounds."""

    fit: Fit
    spread: Fit
    r_hat: float
    rounds: int


def _best(rounds: Sequence[Fit], spread: Spread, seed: int) -> _Counting:
    """Return the last rounds that leave the fewest doubts, the most of them."""
    found = []
    for left_out in range(len(rounds)):
        fit = continued(rounds[left_out:], seed=seed)
        counting = _Counting(fit, *spread(fit), len(rounds) - left_out)
        found.append((severities(diagnose(counting.spread)), counting))
        if not any(found[-1][0]):
            break
    return min(found, key=itemgetter(0))[1]


def severities(findings: Iterable[Finding]) -> tuple[int, ...]:
    """Return how many findings there are of each severity above fine, the worst first."""
    counted = Counter(each.severity for each in findings)
    return tuple(counted[each] for each in sorted(Severity, reverse=True) if each > Severity.FINE)


def doubt(
    findings: Iterable[Finding], log_evidence: LogEvidence | None
) -> tuple[tuple[int, ...], float]:
    """Return what orders fits, the best first.

    That is how many findings they have of each severity, the worst first; of fits that have as
    many, it is the standard error of log Z, infinite if there is none.
    """
    error = math.inf if log_evidence is None else log_evidence.mcse
    return severities(findings), error


def has_enough_draws(fit: Fit) -> bool:
    """Whether the chains agree and there are enough effective draws, without a doubt."""
    return not doubts_about_draws(fit)


def doubts_about_draws(fit: Fit) -> list[Finding]:
    """Return what more draws may mend: chains do not agree, or effective draws are few."""
    found = [*agreement(fit), *effective_draws(fit)]
    return [each for each in found if each.severity > Severity.FINE]


def _more_would_help(counting: _Counting) -> bool:
    tempered = counting.fit.tempered
    lower, upper = outer_tenths(tempered)
    trips = evidence.round_trips(tempered.inv_temp, lower=lower, upper=upper)
    if np.mean(trips) < FEWEST_TRIPS:
        return False
    few = trips.min() == 0 or np.mean(trips) < ROUND_TRIPS_WARNING
    return bool(few or counting.r_hat > R_HAT_WARNING or not has_enough_draws(counting.spread))
