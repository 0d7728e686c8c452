"""Judge a claim of a paper by the results that are available."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from harness.plan.spec import Claim, Results, Verdict


def judged(
    results: Results,
    claim: Claim,
    lacking: Collection[str],
    judge: Callable[[], tuple[str, bool | None]],
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
        Returns what was measured, in words, and whether the claim holds, or None if that cannot be
        decided.  It is not called if results are missing.
    """
    if lacking:
        missing = ", ".join(sorted(lacking))
        return replace(claim, measured=f"Not in these results: {missing}.", verdict="not run")
    measured, holds = judge()
    verdict: Verdict = "reproduced" if holds else "not reproduced"
    if holds is None or results.profile == "smoke":
        verdict = "not run"
    return replace(claim, measured=measured, verdict=verdict)
