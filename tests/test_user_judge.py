"""What follows from comparisons: neither NUTS nor a pilot nor a tempered run is the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from harness.diagnosis import Severity
from harness.engine.nuts import NutsSettings
from harness.evidence import LogEvidence
from harness.user.arbitrate import arbitrate
from harness.user.compare import Comparison, Population, Region, compare
from harness.user.judge import (
    cannot_temper,
    from_both,
    judge,
    judge_alone,
    missed_by_tempered,
    seen_by_replicas,
    shortened,
)
from harness.user.near import points_of_search
from harness.user.scouted import BRIDGE, Scouted

RNG = np.random.default_rng(11)
LEFT = -4 + RNG.normal(size=(16, 64))
RIGHT = 4 + RNG.normal(size=(16, 64))
BOTH = np.where(RNG.random((16, 64)) < 0.5, LEFT, RIGHT)


def population(values: np.ndarray) -> Population:
    return Population({"x": values}, np.zeros(len(values)))


def scouted(search: np.ndarray | None, near: np.ndarray | None) -> Scouted:
    return Scouted(
        search=None if search is None else population(search),
        near=None if near is None else population(near),
        path=None,
        origin="the prior",
        estimates={"the prior": (LogEvidence(0.0, 0.1),)},
        constant=LogEvidence(0.0, 0.0),
        prior=None,
        failures={} if search is not None else {"search": "it ran out of time"},
        gradients=0,
        seconds=0.0,
        starts={},
    )


def nuts(values: np.ndarray) -> dict[str, np.ndarray]:
    return {"x": values.reshape(4, -1)}


def compared(draws: np.ndarray, other: np.ndarray) -> Comparison:
    return compare(nuts(draws), population(other))


def test_a_mode_where_nuts_stays_is_tempered() -> None:
    found = judge(compared(RIGHT, BOTH), scouted(BOTH, RIGHT), nuts_stays=True)
    assert found.temper
    assert found.nuts_misses
    assert found.search_is_sound
    assert [each.severity for each in found.findings] == [Severity.WARNING]


def test_particles_that_nuts_leaves_do_not_overrule_it() -> None:
    """The pilot was left behind at places of next to no mass, as on the way from a vague prior."""
    found = judge(compared(RIGHT, LEFT), scouted(LEFT, RIGHT), nuts_stays=False)
    assert not found.temper
    assert not found.search_is_sound
    assert all(each.severity == Severity.WARNING for each in found.findings)


def test_a_region_that_the_search_misses_speaks_against_the_search() -> None:
    draws = np.where(np.arange(BOTH.size).reshape(BOTH.shape) % 2, LEFT, RIGHT)
    found = judge(compared(draws, RIGHT), scouted(RIGHT, draws), nuts_stays=False)
    assert not found.temper
    assert not found.search_is_sound
    assert any("missed a region that plain NUTS found" in each.sentence for each in found.findings)


@pytest.mark.parametrize(("search", "fine"), [(-1.6, True), (-0.1, False)])
def test_a_rough_search_that_is_unsure_casts_no_doubt(search: float, fine: bool) -> None:
    """It is rough if its log Z is below what NUTS has seen by a bridge and a path that agree."""
    made = replace(
        scouted(BOTH, BOTH),
        estimates={
            "the prior": (LogEvidence(search, 0.1),),
            "a Gaussian fitted to draws of NUTS": (LogEvidence(-0.02, 0.05),),
            BRIDGE: (LogEvidence(0.0, 0.003),),
        },
    )
    region = Region("x", 0, "x", ((-np.inf, 0.0),), 0.5, 0.01, 0.35, 0.05)
    unsure = replace(compared(BOTH, BOTH), unsure=region, notable=region)
    found = judge(unsure, made, nuts_stays=True)
    assert not found.temper
    (finding,) = found.findings
    assert (finding.severity == Severity.FINE) is fine
    assert found.doubted is not fine
    assert ("is rough" in finding.sentence) is fine
    assert "0.35 ± 0.05" in finding.sentence


def test_a_difference_that_chance_brings_about_is_fine() -> None:
    """1.9 standard errors, of the one coordinate among several in which it is largest."""
    region = Region("x", 0, "x", ((-np.inf, 0.0),), 0.5, 0.01, 0.35, 0.08)
    unsure = replace(compared(BOTH, BOTH), unsure=region, largest=region.size)
    found = judge(unsure, scouted(BOTH, BOTH), nuts_stays=True)
    (finding,) = found.findings
    assert finding.severity == Severity.FINE
    assert not found.doubted
    assert "differ by at most 0.15, which is within their errors" in finding.sentence


def test_chains_that_disagree_are_tempered() -> None:
    apart = np.where(np.arange(16)[:, None] < 8, LEFT, RIGHT)
    assert judge(compared(apart, BOTH), scouted(BOTH, apart), nuts_stays=False).temper
    assert judge_alone(nuts(apart), scouted(None, apart)).temper
    agreed = judge_alone(nuts(RIGHT), scouted(None, RIGHT))
    assert not agreed.temper
    # Of another method's draws it would not be true.
    assert not agreed.findings
    (said,) = agreed.about_nuts
    assert said.sentence.startswith("These are the draws of plain NUTS")


def test_agreement_is_fine_and_says_so() -> None:
    other = 4 + np.random.default_rng(12).normal(size=(16, 64))
    found = judge(compared(RIGHT, other), scouted(other, RIGHT), nuts_stays=False)
    assert not found.temper
    assert [each.severity for each in found.findings] == [Severity.FINE]


def test_other_proportions_of_the_same_modes_are_a_warning() -> None:
    mostly_left = np.where(np.random.default_rng(13).random((16, 64)) < 0.9, LEFT, RIGHT)
    even = np.where(np.arange(BOTH.size).reshape(BOTH.shape) % 2, LEFT, RIGHT)
    found = judge(compared(even, mostly_left), scouted(mostly_left, even), nuts_stays=False)
    assert found.temper
    assert not found.nuts_misses
    assert [each.severity for each in found.findings] == [Severity.WARNING]
    assert "different probabilities" in found.findings[0].sentence


def test_a_tempered_run_that_misses_what_nuts_found() -> None:
    even = np.where(np.arange(BOTH.size).reshape(BOTH.shape) % 2, LEFT, RIGHT)
    lost = missed_by_tempered(compared(even, RIGHT), scouted(None, even))
    assert lost is not None
    assert lost.severity == Severity.PROBLEM
    # A chain of NUTS that was stuck where next to nothing of the posterior is does not count.
    assert missed_by_tempered(compared(even, RIGHT), scouted(None, RIGHT)) is None
    assert missed_by_tempered(compared(even, BOTH), scouted(None, even)) is None


def test_chains_start_from_particles_and_draws_by_turns() -> None:
    particles = {"x": np.arange(6.0), "v": np.arange(12.0).reshape(6, 2)}
    draws = {"x": 100 + np.arange(8.0).reshape(2, 4), "v": 100 + np.arange(16.0).reshape(2, 4, 2)}
    mixed = from_both(particles, draws)
    # Both chains' last draws first.
    np.testing.assert_array_equal(mixed["x"][:6], [0, 103, 1, 107, 2, 102])
    np.testing.assert_array_equal(mixed["v"][1], [106, 107])


def test_nothing_takes_the_place_of_nuts_where_there_is_no_path() -> None:
    found = judge(compared(RIGHT, BOTH), scouted(BOTH, RIGHT), nuts_stays=True)
    added = found.adding(cannot_temper("no\npath"))
    assert added.findings[-1].severity == Severity.PROBLEM
    assert "(no path)" in added.findings[-1].sentence
    assert replace(added, findings=found.findings) == found


def _region_of(share: float, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"x": np.where(rng.random((4, 1000)) < share, 4.0, -4.0) + rng.normal(size=(4, 1000))}


def test_different_probabilities_are_a_dispute_that_a_tempered_run_decides() -> None:
    """NUTS gives the right mode .8 and the search .5; independent draws, errors below .01."""
    rng = np.random.default_rng(3)
    by_nuts = _region_of(0.8, rng)
    found = judge(compare(by_nuts, population(BOTH)), scouted(BOTH, BOTH), nuts_stays=False)
    assert found.temper
    assert not found.nuts_misses
    assert found.search_is_sound
    dispute = found.dispute
    assert dispute is not None
    assert dispute.finding in found.findings
    assert found.accepted == ()
    expected = {0.8: "nuts", 0.5: "search", 0.2: "neither"}
    for share, right in expected.items():
        side, finding = arbitrate(dispute, _region_of(share, rng))
        assert side == right
        after = found.settled(side, finding)
        assert finding in after.findings
        assert dispute.finding not in after.findings
        assert (after.dispute is None) == (side != "neither")
        assert after.nuts_misses == (side == "search")
        assert after.search_is_sound == (side == "search")
        assert (finding in after.accepted) == (side != "neither")


def test_a_tempered_run_that_hardly_moves_decides_nothing() -> None:
    """Each chain changes its mode some three times, so its share is uncertain by .2 and more."""
    rng = np.random.default_rng(4)
    by_nuts = _region_of(0.8, rng)
    found = judge(compare(by_nuts, population(BOTH)), scouted(BOTH, BOTH), nuts_stays=False)
    assert found.dispute is not None
    sides = np.repeat(np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1]]), 300, axis=1)
    draws = {"x": np.where(sides, 4.0, -4.0) + rng.normal(size=sides.shape)}
    side, finding = arbitrate(found.dispute, draws)
    assert side == "open"
    assert finding is found.dispute.finding
    assert found.settled(side, finding).search_is_sound


def test_parallel_tempering_starts_near_what_is_known_to_be_right() -> None:
    sound = judge(compared(RIGHT, BOTH), scouted(BOTH, RIGHT), nuts_stays=True)
    near = points_of_search(scouted(BOTH, RIGHT), nuts(RIGHT), sound)
    assert near is not None
    np.testing.assert_array_equal(near["x"], BOTH.ravel())
    unsound = judge(compared(BOTH, RIGHT), scouted(RIGHT, BOTH), nuts_stays=False)
    assert not unsound.search_is_sound
    both = points_of_search(scouted(RIGHT, BOTH), nuts(BOTH), unsound)
    assert both is not None
    assert np.mean(both["x"] < 0) == pytest.approx(np.mean(BOTH < 0) / 2, abs=0.02)
    assert points_of_search(scouted(None, BOTH), nuts(BOTH), unsound) is None


def test_a_run_that_would_not_end_in_time_gets_shorter_and_says_so() -> None:
    wanted = NutsSettings(chains=4, warmup=1000, draws=600)
    most = 4 * 1600 * 2**10
    assert wanted.within(most) == wanted
    assert shortened(wanted.within(most), wanted, 10) == []
    shallow = wanted.within(most / 3)
    assert (shallow.max_treedepth, shallow.warmup, shallow.draws) == (8, 1000, 600)
    assert shortened(shallow, wanted, 7) == []  # no transition has missed anything
    (finding,) = shortened(shallow, wanted, 8)
    assert finding.severity == Severity.FINE
    few = wanted.within(4 * 1600 * 2**5 * 0.5)
    assert (few.max_treedepth, few.warmup, few.draws) == (5, 500, 300)
    (finding,) = shortened(few, wanted, 3)
    assert finding.severity == Severity.WARNING
    assert "300 draws" in finding.sentence
    assert wanted.within(1).draws == 150  # never below a quarter
    # If an iteration is known to take 20 gradients, it is these that count, and not the longest.
    usual = 20.0
    known = wanted.within(4 * 1600 * usual, usual=usual)
    assert (known.max_treedepth, known.warmup, known.draws) == (8, 1000, 600)
    half = wanted.within(4 * 1600 * usual / 2, usual=usual)
    assert (half.max_treedepth, half.warmup, half.draws) == (8, 500, 300)
    assert wanted.within(1, usual=1.0).max_treedepth == 5
    assert wanted.within(most, usual=500.0).max_treedepth == 10


@pytest.mark.parametrize(
    ("sound", "genuine", "severity", "told"),
    [
        (True, True, Severity.WARNING, "misses part"),
        (False, True, Severity.PROBLEM, "misses part"),
        (False, False, Severity.WARNING, "NUTS leaves that place"),
    ],
)
def test_replicas_on_their_way_do_not_accuse_nuts(
    *, sound: bool, genuine: bool, severity: Severity, told: str
) -> None:
    """In 2,000 dimensions replicas were still far from the draws of a sound run of NUTS."""
    found = seen_by_replicas(compared(RIGHT, LEFT), sound=sound, genuine=genuine)
    assert found is not None
    assert found.severity == severity
    assert told in found.sentence
    assert seen_by_replicas(compared(RIGHT, RIGHT), sound=sound, genuine=genuine) is None
