"""Programs with hundreds of parameters: what needs no more draws than they have, and ends in time.

Targets are linear maps of independent log-gamma variables, which have closed forms and are skewed.
"""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import chi2

from harness.arrays import FloatArray
from harness.diagnosis import Finding, Severity
from harness.errors import SamplingError
from harness.evidence import LogEvidence, largest_r_hat, log_mean_weight
from harness.path import GaussianBase
from harness.path.moves import MOST_DENSE
from harness.path.pilot import fewest_particles
from harness.user import auto
from harness.user.bridged import bridged
from harness.user.compare import FALSE_ALARM, Population, Region, _by_chance, compare
from harness.user.evidence import pilots_evidence, search_is_rough
from harness.user.judge import ROUGH, Judgement, judge
from harness.user.legs import run_leg
from harness.user.scouted import BRIDGE, Scouted

SHAPE = 8.0


class LogGammas:
    """x = A u with u_i the log of gamma variables of one shape; its integral is exp(log_z)."""

    def __init__(self, dimension: int, log_z: float, seed: int) -> None:
        rng = np.random.default_rng(seed)
        turn = rng.normal(size=(dimension, dimension)) / math.sqrt(dimension)
        self.map = np.eye(dimension) + 0.5 * turn
        self._back = np.linalg.inv(self.map)
        log_det = float(np.linalg.slogdet(self.map)[1])
        self._constant = log_z - log_det - dimension * float(gammaln(SHAPE))

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        u = points @ self._back.T
        value = (SHAPE * u - np.exp(u)).sum(axis=1) + self._constant
        return value, (SHAPE - np.exp(u)) @ self._back

    def draws(self, chains: int, count: int, rng: np.random.Generator) -> FloatArray:
        u = np.log(rng.gamma(SHAPE, size=(chains, count, len(self.map))))
        return np.asarray(u @ self.map.T, dtype=np.float64)


def scouted_in(dimension: int, search: LogEvidence, bridge: LogEvidence) -> Scouted:
    """What pilots found whose search arrived and whose near leg did not."""
    return Scouted(
        search=Population({"x": np.zeros((8, 2, dimension))}, np.zeros(8)),
        near=None,
        path=None,
        origin="the prior",
        estimates={"the prior": (search,), BRIDGE: (bridge,)},
        constant=LogEvidence(0.0, 0.0),
        prior=None,
        failures={"near": "it is too late"},
        gradients=0,
        seconds=0.0,
        starts={},
    )


def test_a_bridge_needs_no_more_draws_than_dimensions() -> None:
    # Half of the draws, to which a Gaussian is fitted, are fewer than the dimensions.
    scores = []
    for seed in range(5):
        target = LogGammas(150, 3.0, seed)
        draws = target.draws(4, 70, np.random.default_rng([seed, 1]))
        made = bridged(target, draws, seed=seed)
        value, mcse = made.log_evidence
        assert made.sound
        assert mcse < 0.5
        scores.append((value - 3.0) / mcse)
    # The sum of squares of five standard normals exceeds this once in ten thousand times.
    assert float(np.sum(np.square(scores))) < chi2.isf(1e-4, 5)


def test_a_bridge_whose_time_is_over_still_is_one() -> None:
    target = LogGammas(20, 0.0, 1)
    draws = target.draws(4, 200, np.random.default_rng(1))
    whole, late = (bridged(target, draws, most_seconds=most, seed=1) for most in (np.inf, 0.0))
    assert late.reshuffled is None
    assert whole.reshuffled is not None
    assert {"gaussian", "warp3"} <= {each.proposal for each in late.each}
    assert late.chosen.log_evidence.value == pytest.approx(0.0, abs=5 * late.log_evidence.mcse)


@pytest.mark.parametrize(
    ("dimension", "fewest"), [(10, 50), (MOST_DENSE, 1000), (MOST_DENSE + 1, 100), (2003, 100)]
)
def test_variances_need_few_particles_whatever_the_dimension(dimension: int, fewest: int) -> None:
    assert fewest_particles(dimension) == fewest


def test_pilots_that_cannot_arrive_are_not_begun() -> None:
    asked = 0

    def slow(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        nonlocal asked
        asked += len(points)
        return -0.5 * np.square(points).sum(axis=1), -points

    base = GaussianBase(np.zeros(300), np.eye(300), 0.0)
    with pytest.raises(SamplingError, match=r"in 300 dimensions would take some .* s, and there"):
        run_leg(slow, [base], origin="far away", most_seconds=1e-3, seed=1)
    assert asked < 100  # those that were timed


@pytest.mark.parametrize(("weights", "alarm"), [([0.0] * 16, True), ([0.0] + [-9.0] * 15, False)])
def test_populations_without_weight_tell_no_errors(weights: list[float], alarm: bool) -> None:
    # Within each population probabilities are 0.35 instead of 0.5.  If one of them has all weight,
    # nothing tells how far such populations are from each other.
    rng = np.random.default_rng(3)
    draws = rng.normal(size=(4, 1000, 2))
    particles = np.where(rng.random((16, 400, 2)) < 0.35, -1.0, 1.0)
    particles *= np.abs(rng.normal(size=particles.shape))
    compared = compare({"x": draws}, Population({"x": particles}, np.array(weights)))
    assert (compared.differs is not None) is alarm


@pytest.mark.parametrize(
    ("inside", "cells", "chance"), [(3, 40, False), (3, 80_000, True), (8, 80_000, False)]
)
def test_few_particles_in_a_narrow_gap_between_draws_are_chance_in_many_coordinates(
    inside: int, cells: int, chance: bool
) -> None:
    # 16 particles have all the weight; so many of them are where NUTS has 10 of 4,000 draws.
    region = Region("x", 0, "x", ((0.499, 0.501),), 10 / 4000, 1e-3, inside / 16, 0.1)
    other = Population({"x": np.zeros((8, 16))}, np.array([0.0] + [-50.0] * 7))
    draws = {"x": np.random.default_rng(1).normal(size=(4, 1000))}
    assert _by_chance(region, draws, other, cells) is chance
    # In any of these cells, with the probability that NUTS and one more draw give it.
    tail = sum(
        math.comb(16, k) * (11 / 4000) ** k * (1 - 11 / 4000) ** (16 - k) for k in range(inside, 17)
    )
    assert (cells * tail > FALSE_ALARM) is chance


@pytest.mark.parametrize(("width", "chance"), [(0.02, True), (0.5, False)])
def test_a_narrow_place_of_chains_that_hardly_move_is_a_gap_between_draws(
    width: float, chance: bool
) -> None:
    # A quarter of the draws of a run that are worth eight, in one of a thousand coordinates.
    region = Region("x", 0, "x", ((1.0, 1.0 + width),), 0.0, 0.0, 0.25, 0.1)
    other = Population({"x": np.zeros((4, 1000))}, np.zeros(4), effective=8.0)
    draws = {"x": np.random.default_rng(1).normal(size=(4, 1000))}
    assert _by_chance(region, draws, other, 40_000) is chance


def test_a_search_with_one_population_is_rough_in_few_dimensions_too() -> None:
    """Its error of log Z is 1 by its populations, so that it can be 5 too low within 3 errors."""
    made = scouted_in(14, LogEvidence(-15.0, 1.5), LogEvidence(-10.0, 0.01))
    assert not search_is_rough(made)
    assert made.search is not None
    one = np.array([0.0] + [-30.0] * 7)
    made = replace(made, search=replace(made.search, log_weight=one))
    assert search_is_rough(made)
    model: Any = SimpleNamespace(own_base="prior", tempered_whole=False)
    found, told = pilots_evidence(model, made, search_is_sound=True, nuts_is_sound=True)
    # Its distance from the bridge is no part of the error.
    assert found == LogEvidence(-10.0, 0.01)
    assert any("too rough for log Z: -15.000 ± 1.500" in each.sentence for each in told)
    # A search that is above the bridge may have seen more than NUTS.
    above = replace(made, estimates={**made.estimates, "the prior": (LogEvidence(-7.0, 1.5),)})
    assert not search_is_rough(above)


@pytest.mark.parametrize(
    ("dimension", "search", "error", "rough"),
    [
        (300, -12.0, 0.03, True),
        (300, -9.0, 0.03, False),  # more than NUTS has seen: there may be a further mode
        (300, -12.0, 0.2, False),
        (50, -12.0, 0.03, False),  # there a path from a Gaussian can arrive, and confirm the bridge
    ],
)
def test_a_precise_bridge_shows_alone_that_a_search_is_rough_in_many_dimensions(
    dimension: int, search: float, error: float, rough: bool
) -> None:
    made = scouted_in(dimension, LogEvidence(search, 0.4), LogEvidence(-10.0, error))
    assert search_is_rough(made) is rough
    assert not search_is_rough(replace(made, estimates={}))


@pytest.mark.parametrize(
    ("method", "by_bridge", "sound", "severity", "spent", "late"),
    [
        ("nuts", True, None, Severity.WARNING, 100.0, True),  # the search did not arrive
        ("nuts", True, False, Severity.WARNING, 100.0, True),
        ("nuts", True, True, Severity.WARNING, 100.0, False),
        ("nuts", False, True, Severity.WARNING, 121.0, True),  # nothing is left of the budget
        ("nuts", False, True, Severity.PROBLEM, 121.0, False),
        ("nuts", True, None, Severity.WARNING, 20.0, False),
        ("nuts", True, None, Severity.PROBLEM, 100.0, False),
        ("nuts", False, None, Severity.WARNING, 100.0, False),
        ("collapsed_tempering", True, None, Severity.WARNING, 100.0, False),
    ],
)
def test_replicas_exceed_the_budget_only_for_a_fit_that_needs_them(
    method: str, by_bridge: bool, sound: bool | None, severity: Severity, spent: float, late: bool
) -> None:
    steps: Any = SimpleNamespace(budget=120.0, spent=spent)
    found: Any = SimpleNamespace(method=method, log_evidence=LogEvidence(-1.0, 0.1))
    scouted: Any = SimpleNamespace(
        search_has_weight=sound is not None,
        by_bridge=LogEvidence(-1.0, 0.1) if by_bridge else None,
    )
    judged = Judgement(temper=False, nuts_misses=False, search_is_sound=bool(sound), findings=())
    troubles = [Finding(severity, "Something.")]
    decided = auto._Auto(steps, "hmc")
    assert decided._is_late(found, troubles, scouted, judged) is late
    doubted = replace(judged, doubted=True)
    assert not decided._is_late(found, troubles, scouted, doubted)
    unknown: Any = SimpleNamespace(method=method, log_evidence=None)
    if sound:
        assert not decided._is_late(unknown, troubles, scouted, judged)


@pytest.mark.parametrize(
    ("one", "other", "more"), [(4.0, 1.5, True), (1.5, 4.0, False), (4.0, 0.0, False)]
)
def test_chains_that_disagree_more_do_not_take_over(one: float, other: float, more: bool) -> None:
    rng = np.random.default_rng(1)

    def fit(apart: float) -> Any:
        chains = rng.normal(size=(4, 200, 3))
        chains[::2] += apart
        return SimpleNamespace(parameters=["x"], largest_r_hats={"x": largest_r_hat(chains)})

    assert auto._disagree_more(fit(one), fit(other)) is more


@pytest.mark.parametrize(("lost", "warned"), [(0.5, False), (7.0, True)])
def test_a_search_whose_weight_is_in_one_population_is_too_rough(lost: float, warned: bool) -> None:
    rng = np.random.default_rng(2)
    particles = Population({"x": rng.normal(size=(8, 64))}, np.array([0.0] + [-lost] * 7))
    estimate = log_mean_weight(particles.log_weight)
    assert estimate.mcse < ROUGH  # which the error by the delta method never exceeds
    scouted = replace(
        scouted_in(1, estimate, estimate),
        search=particles,
        estimates={"the prior": (estimate,)},
        failures={},
    )
    judged = judge(compare({"x": rng.normal(size=(4, 500))}, particles), scouted, nuts_stays=False)
    said = [each for each in judged.findings if "too rough to tell" in each.sentence]
    assert [each.severity for each in said] == [Severity.WARNING] * warned


@pytest.mark.parametrize(
    ("dimension", "search", "alone", "warned"),
    [
        (300, -9.5, True, False),  # above the bridge by hardly more than its error
        (300, -8.0, True, True),  # there may be a mode that NUTS misses
        (50, -9.5, False, False),
    ],
)
def test_rough_paths_above_a_bridge_leave_it_its_precision_in_many_dimensions(
    dimension: int, search: float, alone: bool, warned: bool
) -> None:
    model: Any = SimpleNamespace(own_base="flat", tempered_whole=True)
    made = scouted_in(dimension, LogEvidence(search, 0.4), LogEvidence(-10.0, 0.05))
    found, findings = pilots_evidence(model, made, search_is_sound=True, nuts_is_sound=True)
    assert found is not None
    assert (found == LogEvidence(-10.0, 0.05)) is alone
    assert any("disagree" in each.sentence for each in findings) is warned
