"""The verdict of a claim: what can be said of a statement by the results there are."""

from __future__ import annotations

from collections.abc import Callable, Collection

from harness.plan.spec import Claim, Results, Verdict


def judged(
    results: Results,
    statement: str,
    lacking: Collection[str],
    judge: Callable[[], tuple[str, bool | None]],
) -> Claim:
    """Judge a statement.

    Parameters
    ----------
    results
        Results of its experiment.  Those of the smoke profile are measured and not judged: its
        runs are too short to say anything.
    statement
        What is claimed.
    lacking
        Names of what it takes and the results do not have.
    judge
        What was measured, in words, and whether the statement holds; None if that cannot be said.
        Not called where something is lacking.
    """
    if lacking:
        return Claim(statement, f"Not in these results: {', '.join(sorted(lacking))}.", "not run")
    measured, holds = judge()
    verdict: Verdict = "reproduced" if holds else "not reproduced"
    if holds is None or results.profile == "smoke":
        verdict = "not run"
    return Claim(statement, measured, verdict)
