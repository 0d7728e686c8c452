"""Judge a claim of a paper by the results that are available."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from harness.plan.effects import Decision, Undecided, share
from harness.plan.spec import Claim, Results, Verdict


def judged(
    results: Results,
    claim: Claim,
    lacking: Collection[str],
    judge: Callable[[], tuple[str, Decision | None]],
) -> Claim:
    """Return a claim with what was measured and its verdict.

    Parameters
    ----------
    results
        Results of its experiment.  Those of the smoke profile are measured but not judged, because
        its runs are too short.
    claim
        What is claimed.
    lacking
        Names of the results that the claim needs and that are missing.
    judge
        Returns what was measured, in words, and whether the claim holds or what would decide it;
        None instead if results are missing that only it can name.  It is not called if ``lacking``
        has any.
    """
    if lacking:
        missing = ", ".join(sorted(lacking))
        return replace(claim, measured=f"Not in these results: {missing}.", verdict="not run")
    measured, decision = judge()
    if decision is None or results.profile == "smoke":
        return replace(claim, measured=measured, verdict="not run")
    if isinstance(decision, Undecided):
        measured = f"{measured} To decide it would take {decision.needs}."
        return replace(claim, measured=measured, verdict="undecided")
    verdict: Verdict = "reproduced" if decision else "not reproduced"
    return replace(claim, measured=measured, verdict=verdict)


def mostly(successes: int, runs: int) -> tuple[str, Decision]:
    """Decide whether something happens in more than half of runs.

    A paper that shows one run claims as much: what it shows is the rule.

    Parameters
    ----------
    successes, runs
        In how many of how many runs it happened.

    Returns
    -------
    tuple
        The share with its 95 % interval, in words, and whether it is above a half; undecided if
        the interval contains a half.

    Raises
    ------
    DataError
        If there are no runs, or more successes than runs.
    """
    found, low, high = share(successes, runs)
    told = f"{successes} of {runs} runs, {found:.0%} [{low:.0%}, {high:.0%}]"
    if low <= 0.5 <= high:
        return told, Undecided("more runs: the interval contains a half")
    return told, found > 0.5
