"""Verdicts: what is lacking or too short is 'not run'; all else is decided, or said to be open."""

from __future__ import annotations

import re
from typing import get_args

import pandas as pd
import pytest

from harness.fit import Fit
from harness.plan.catalogue import experiment_names, load_experiment
from harness.plan.claims import judged, mostly
from harness.plan.effects import Decision, Undecided
from harness.plan.spec import Cell, Claim, ClaimKind, Profile, Results, Verdict

WORKS = Claim("works", "paper", "It works.")


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
        ("quick", Undecided("20 runs"), "undecided"),
        ("smoke", Undecided("20 runs"), "not run"),
        ("smoke", True, "not run"),
        ("smoke", False, "not run"),
    ],
)
def test_verdicts(profile: Profile, holds: Decision | None, verdict: Verdict) -> None:
    claim = judged(results(profile), WORKS, (), lambda: ("Measured.", holds))
    measured = "Measured." + " To decide it would take 20 runs." * (verdict == "undecided")
    assert claim == Claim("works", "paper", "It works.", measured, verdict)


def test_what_is_lacking_is_named_and_nothing_is_measured() -> None:
    def judge() -> tuple[str, bool]:
        raise AssertionError

    claim = judged(results("quick"), WORKS, {"pe-2", "hmc"}, judge)
    assert claim.measured == "Not in these results: hmc, pe-2."
    assert claim.verdict == "not run"


@pytest.mark.parametrize(
    ("successes", "runs", "decision"),
    # Wilson's interval of 4 of 4 begins at 4 / (4 + 1.96^2) = 0.51, that of 3 of 3 at 0.44.
    [(4, 4, True), (3, 3, None), (0, 4, False), (10, 20, None), (15, 20, True), (14, 20, None)],
)
def test_what_one_run_shows_must_be_so_in_most(
    successes: int, runs: int, decision: bool | None
) -> None:
    told, found = mostly(successes, runs)
    assert (None if isinstance(found, Undecided) else found) is decision
    assert told.startswith(f"{successes} of {runs} runs, {successes / runs:.0%} [")


def test_claims_of_the_experiments_have_keys_of_their_own() -> None:
    """And their sentences begin as the kinds say, for those who read no kinds."""
    beginnings = {"ours": ("Ours",), "against": ("Against",), "why": ("Why", "Not why")}
    others = tuple(word for words in beginnings.values() for word in words)
    for name in experiment_names():
        empty = Results("quick", (), pd.DataFrame(columns=["cell"]), results("quick").load, 9)
        claims = load_experiment(name).claims(empty)
        keys = [claim.key for claim in claims]
        assert len(keys) == len(set(keys)) > 0
        assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", key) for key in keys)
        for claim in claims:
            assert claim.kind in get_args(ClaimKind)
            if claim.kind == "paper":
                assert not claim.statement.startswith(others)
            else:
                assert claim.statement.startswith(beginnings[claim.kind])
