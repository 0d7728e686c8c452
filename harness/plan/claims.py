"""The verdict on a claim, given the results that there are."""

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
        Results of its experiment.  Those of the smoke profile are measured but not judged, because
        its runs are too short.
    statement
        What is claimed.
    lacking
        Names of the results that it needs and that are missing.
    judge
        Returns what was measured, in words, and whether the statement holds; None if that cannot be
        said.  It is not called if something is missing.
    """
    if lacking:
        return Claim(statement, f"Not in these results: {', '.join(sorted(lacking))}.", "not run")
    measured, holds = judge()
    verdict: Verdict = "reproduced" if holds else "not reproduced"
    if holds is None or results.profile == "smoke":
        verdict = "not run"
    return Claim(statement, measured, verdict)
