"""Verdicts: what is lacking, too short or undecided is 'not run', all else is decided."""

from __future__ import annotations

import pandas as pd
import pytest

from harness.fit import Fit
from harness.plan.claims import judged
from harness.plan.spec import Cell, Profile, Results


def results(profile: Profile) -> Results:
    def load(cell: Cell, replication: int) -> Fit:
        raise AssertionError

    return Results(profile, (), pd.DataFrame(), load, 0)


@pytest.mark.parametrize(
    ("profile", "holds", "verdict"),
    [
        ("quick", True, "reproduced"),
        ("paper", False, "not reproduced"),
        ("paper", None, "not run"),
        ("smoke", True, "not run"),
        ("smoke", False, "not run"),
    ],
)
def test_verdicts(profile: Profile, holds: bool | None, verdict: str) -> None:
    claim = judged(results(profile), "It works.", (), lambda: ("Measured.", holds))
    assert (claim.statement, claim.measured, claim.verdict) == ("It works.", "Measured.", verdict)


def test_what_is_lacking_is_named_and_nothing_is_measured() -> None:
    def judge() -> tuple[str, bool]:
        raise AssertionError

    claim = judged(results("quick"), "It works.", {"pe-2", "hmc"}, judge)
    assert claim.measured == "Not in these results: hmc, pe-2."
    assert claim.verdict == "not run"
