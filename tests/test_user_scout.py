"""What estimates log Z from draws of NUTS if the pilots near them do not succeed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from stan_density import stanli
from test_user_sample import EIGHT_SCHOOLS, SCHOOLS, schools_log_evidence, write

from harness.arrays import FloatArray
from harness.diagnosis import Severity
from harness.engine.batched import BatchedDensity
from harness.engine.nuts import NutsSettings
from harness.engine.patience import NeverReturned
from harness.engine.short_nuts import run_short_nuts
from harness.errors import SamplingError
from harness.evidence import LogEvidence, combined_log_evidence, largest_r_hat
from harness.model import Model
from harness.path import Pilot, PilotSettings, gaussian_base, pilot_of_density
from harness.temper import tempered_model
from harness.user import legs, one_copy, scout
from harness.user.compare import Comparison, Region
from harness.user.evidence import pilots_evidence
from harness.user.legs import Leg, run_leg
from harness.user.prior import PriorDraws
from harness.user.prior_constant import prior_constant
from harness.user.scout import scout_program
from harness.user.scouted import BRIDGE, Scouted
from harness.user.settled import settles

assert stanli is not None

NO_TIME = "the pilot has not finished in 1 s"


@pytest.fixture(scope="module")
def schools(tmp_path_factory: pytest.TempPathFactory) -> Model:
    path, _ = write(tmp_path_factory.mktemp("schools"), "es", EIGHT_SCHOOLS, SCHOOLS)
    return tempered_model(path, SCHOOLS)


@pytest.fixture(scope="module")
def draws(schools: Model) -> Mapping[str, FloatArray]:
    settings = NutsSettings(chains=4, warmup=300, draws=500)
    run = run_short_nuts(schools.program("target"), SCHOOLS, settings, 2)
    return {name: run.variables[name] for name in schools.parameters}


def test_a_density_that_never_returned_to_the_search_costs_no_bridge(
    schools: Model, draws: Mapping[str, FloatArray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stuck far out, where a solver circles, is left behind; near the draws nothing is."""
    stuck: list[BatchedDensity] = []

    def run(*arguments: Any, origin: str, **options: Any) -> Leg:
        if not stuck:
            stuck.append(made[-1])
            raise NeverReturned(NO_TIME)
        return run_leg(*arguments, origin=origin, **options)

    def density_of(model: Model) -> BatchedDensity:
        made.append(one_copy.density_of(model))
        return made[-1]

    made: list[BatchedDensity] = []
    evaluate = BatchedDensity._evaluate

    def unless_stuck(self: BatchedDensity, *arguments: Any) -> None:
        if self in stuck:
            raise NeverReturned(NO_TIME)
        evaluate(self, *arguments)

    monkeypatch.setattr(BatchedDensity, "_evaluate", unless_stuck)
    monkeypatch.setattr(scout, "density_of", density_of)
    monkeypatch.setattr(scout, "run_leg", run)
    scouted = scout_program(schools, draws=draws, divergent=False, seed=3)
    assert scouted.failures == {"search": NO_TIME}
    assert scouted.by_bridge is not None
    exact = schools_log_evidence() - np.log(2)  # tau's prior is written for both signs
    assert abs(scouted.by_bridge.value - exact) < 4 * scouted.by_bridge.mcse < 0.2


@pytest.fixture
def no_near_leg(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*arguments: Any, origin: str, **options: Any) -> Leg:
        if "draws of NUTS" in origin:
            raise SamplingError(NO_TIME)
        return run_leg(*arguments, origin=origin, **options)

    monkeypatch.setattr(scout, "run_leg", run)


def test_gradients_of_a_leg_that_fails_are_counted(
    schools: Model, draws: Mapping[str, FloatArray], monkeypatch: pytest.MonkeyPatch
) -> None:
    spent = []

    def run(density: Any, bases: Any, *, origin: str, **options: Any) -> Leg:
        if "draws of NUTS" in origin:
            density(np.zeros((12_345, schools.dimension)))
            raise SamplingError(NO_TIME)
        leg = run_leg(density, bases, origin=origin, **options)
        spent.append(leg.gradients)
        return leg

    monkeypatch.setattr(scout, "run_leg", run)
    # Divergent transitions keep the search from being enough by itself.
    scouted = scout_program(schools, draws=draws, divergent=True, seed=3)
    assert scouted.failures["near"] == NO_TIME
    assert len(spent) == 1
    assert scouted.gradients > spent[0] + 12_345


def evidence_of(model: Model, scouted: Scouted, *, nuts_is_sound: bool) -> tuple[Any, list[str]]:
    found, findings = pilots_evidence(
        model, scouted, search_is_sound=False, nuts_is_sound=nuts_is_sound
    )
    return found, [str(each) for each in findings]


@pytest.mark.usefixtures("no_near_leg")
def test_a_bridge_takes_the_place_of_a_leg_that_fails(
    schools: Model, draws: Mapping[str, FloatArray]
) -> None:
    scouted = scout_program(schools, draws=draws, seed=3)
    assert set(scouted.estimates) == {"the prior", BRIDGE}
    found, said = evidence_of(schools, scouted, nuts_is_sound=True)
    # The search is left out, so that this is the bridge's estimate alone.
    assert abs(found.value - schools_log_evidence()) < 4 * found.mcse < 0.4
    assert any("bridge sampling" in each and NO_TIME in each for each in said)
    found, said = evidence_of(schools, scouted, nuts_is_sound=False)
    assert found is None
    assert any("There is no estimate of log Z" in each for each in said)


@pytest.mark.usefixtures("no_near_leg")
def test_chains_that_disagree_have_no_bridge(
    schools: Model, draws: Mapping[str, FloatArray]
) -> None:
    apart = {**draws, "mu": draws["mu"] + 20 * np.arange(4)[:, None]}
    assert BRIDGE not in scout_program(schools, draws=apart, seed=3).estimates


def test_a_bridge_from_chains_that_nearly_agree_is_a_bound(
    schools: Model, draws: Mapping[str, FloatArray]
) -> None:
    shift = 0.2 * draws["mu"].std() * np.array([-1, 1, -1, 1])
    apart = {**draws, "mu": draws["mu"] + shift[:, None]}
    assert 1.01 < largest_r_hat(apart["mu"][..., None]) < 1.05
    scouted = scout_program(schools, draws=apart, divergent=False, seed=3)
    assert BRIDGE not in scouted.estimates
    assert "bridge" not in scouted.failures
    assert scouted.at_least is not None
    # It is not divided by the integral of the prior, of which a constraint leaves half.
    assert abs(scouted.at_least.value + np.log(2) - schools_log_evidence()) < 0.1


@pytest.fixture
def never_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scout, "settles", lambda *_: False)


@pytest.mark.usefixtures("never_settled")
def test_a_bridge_adds_to_a_leg_that_succeeds(
    schools: Model, draws: Mapping[str, FloatArray]
) -> None:
    without, scouted = (
        scout_program(schools, draws=draws, divergent=each, seed=3) for each in (True, False)
    )
    assert set(scouted.estimates) == {*without.estimates, BRIDGE}
    # In a funnel's neck, where transitions diverge, a bridge would be too sure of itself.
    assert BRIDGE not in without.estimates
    found, said = evidence_of(schools, scouted, nuts_is_sound=True)
    alone, _ = evidence_of(schools, without, nuts_is_sound=True)
    assert found.mcse < alone.mcse
    assert abs(found.value - schools_log_evidence()) < 4 * found.mcse
    assert not any("bridge sampling" in each for each in said)
    # A bridge sees no more than draws that miss a mode.
    assert (
        evidence_of(schools, scouted, nuts_is_sound=False)[0]
        == (evidence_of(schools, without, nuts_is_sound=False)[0])
    )


@pytest.mark.usefixtures("never_settled")
def test_one_pilot_that_agrees_with_nuts_is_enough(
    schools: Model, draws: Mapping[str, FloatArray], monkeypatch: pytest.MonkeyPatch
) -> None:
    longer = scout_program(schools, draws=draws, divergent=False, seed=3)
    monkeypatch.setattr(scout, "settles", settles)
    shorter = scout_program(schools, draws=draws, divergent=False, seed=3)
    assert set(shorter.estimates) == {"the prior", BRIDGE}
    assert not shorter.failures
    assert shorter.near is None
    # It is the first of the same pilots, and log Z is that of the same bridge.
    assert shorter.estimates["the prior"] == longer.estimates["the prior"][:1]
    assert shorter.by_bridge == longer.by_bridge
    assert shorter.gradients < longer.gradients  # most are the bridge's
    found, _ = evidence_of(schools, shorter, nuts_is_sound=True)
    assert abs(found.value - schools_log_evidence()) < 4 * found.mcse < 0.1


def test_pilots_and_draws_that_differ_are_looked_at_from_all_sides(
    schools: Model, draws: Mapping[str, FloatArray]
) -> None:
    # As if NUTS had missed the lower half of mu.
    upper = {**draws, "mu": np.abs(draws["mu"] - 4) + 4}
    scouted = scout_program(schools, draws=upper, divergent=False, seed=3)
    assert len(scouted.estimates["the prior"]) == 2
    assert "a Gaussian fitted to draws of NUTS" in scouted.estimates


REGION = Region("mu", 0, "mu", ((-np.inf, 0.0),), 0.0, 0.01, 0.3, 0.02)


@pytest.mark.parametrize(
    ("changed", "found", "whole", "expected"),
    [
        ({}, (-1.0, 0.05), (-1.09, 0.003), True),
        ({}, (-1.0, 0.05), (-1.16, 0.003), False),
        ({}, (-1.0, 0.05), (-1.14, 0.003), True),
        # A mode with half of the probability changes log Z by log 2, which a rough pilot hides.
        ({}, (-1.0, 0.29), (-1.0 - np.log(2), 0.003), False),
        ({}, (-1.0, 0.29), (-1.29, 0.003), True),
        ({}, (-1.0, 0.31), (-1.0, 0.003), False),
        ({"r_hat": 1.2}, (-1.0, 0.05), (-1.0, 0.003), False),
        *(
            ({name: REGION}, (-1.0, 0.05), (-1.0, 0.003), False)
            for name in ("missed_by_nuts", "missed_by_other", "differs", "unsure")
        ),
    ],
)
def test_what_settles_a_search(
    changed: Mapping[str, Any],
    found: tuple[float, float],
    whole: tuple[float, float],
    expected: bool,
) -> None:
    alike = Comparison(1.001, "mu", None, None, None, None, None, 0.02, 10)
    compared = replace(alike, **changed)
    assert settles(compared, LogEvidence(*found), LogEvidence(*whole)) is expected


SOUND = {"search_is_sound": True, "nuts_is_sound": True}


@pytest.mark.parametrize(
    ("paths", "error", "told"),
    [
        ([(-1.00, 0.04), (-0.93, 0.03), (-0.91, 0.05)], 0.003, False),
        # Short paths' errors are too small; less than a tenth is no disagreement.
        ([(-0.91, 0.004)], 0.003, False),
        # One that three standard errors explain, and one that they do not.
        ([(-0.80, 0.10)], 0.003, False),
        ([(-0.79, 0.02)], 0.07, False),
        # Paths that differ among themselves explain everything, but not without a word.
        ([(-0.50, 0.01), (-0.70, 0.01), (-0.30, 0.01)], 0.003, True),
    ],
)
def test_a_bridge_that_no_path_contradicts_is_taken_alone(
    schools: Model,
    draws: Mapping[str, FloatArray],
    paths: list[tuple[float, float]],
    error: float,
    told: bool,
) -> None:
    scouted = scout_program(schools, draws=draws, divergent=False, seed=3)
    bridge = LogEvidence(-1.0, 0.003)
    made = replace(
        scouted,
        estimates={
            scouted.origin: tuple(LogEvidence(*each) for each in paths),
            BRIDGE: (bridge,),
        },
        constant=LogEvidence(0.0, 0.0),
        failures={},
    )
    found, findings = pilots_evidence(schools, made, **SOUND)
    assert found == pytest.approx((bridge.value, error))
    assert any("estimates of log Z disagree" in str(each) for each in findings) is told
    # A bridge from draws that miss a mode counts for nothing.
    # An exact path, as where the likelihood is constant, needs no bridge.
    exact = replace(made, estimates={**made.estimates, scouted.origin: (LogEvidence(-1.001, 0.0),)})
    found, _ = pilots_evidence(schools, exact, **SOUND)
    assert found == pytest.approx((-1.001, 0.0), abs=1e-6)
    unsound, _ = pilots_evidence(schools, made, **{**SOUND, "nuts_is_sound": False})
    assert unsound is not None
    assert unsound.value > bridge.value


@pytest.mark.parametrize(("rough", "alone"), [(-1.9, True), (-0.1, False)])
def test_a_rough_path_below_a_bridge_is_no_sign_of_a_missing_mode(
    schools: Model, draws: Mapping[str, FloatArray], rough: float, alone: bool
) -> None:
    """A path that is 2.2 of its errors above a bridge may be one, so that its error counts."""
    scouted = scout_program(schools, draws=draws, divergent=False, seed=3)
    made = replace(
        scouted,
        estimates={scouted.origin: (LogEvidence(rough, 0.4),), BRIDGE: (LogEvidence(-1, 0.003),)},
        constant=LogEvidence(0.0, 0.0),
        failures={"near": NO_TIME},
    )
    found, findings = pilots_evidence(schools, made, **SOUND)
    assert not any("disagree" in each.sentence for each in findings)
    assert found is not None
    assert (found == pytest.approx((-1.0, 0.003))) is alone
    if not alone:
        assert -1 < found.value < rough
        assert found.mcse > 0.3


NEAR = "a Gaussian fitted to draws of NUTS"


@pytest.mark.parametrize(
    ("search", "near", "constant", "rough"),
    [
        # Less than NUTS alone has seen of the whole: so the search has lost some of it.
        (-1.6, -1.08, 0.0, True),
        (-1.6 - 2.0, -1.08, 2.0, True),
        # More: there may be a mode that NUTS misses.
        (-0.4, -1.08, 0.0, False),
        # If the bridge is alone, it may be the one that is wrong.
        (-1.6, -1.35, 0.0, False),
        (-1.6, None, 0.0, False),
    ],
)
def test_a_search_that_loses_a_part_casts_no_doubt_on_nuts(
    schools: Model,
    draws: Mapping[str, FloatArray],
    search: float,
    near: float | None,
    constant: float,
    rough: bool,
) -> None:
    scouted = scout_program(schools, draws=draws, divergent=False, seed=3)
    near_leg = {} if near is None else {NEAR: (LogEvidence(near, 0.02),)}
    made = replace(
        scouted,
        estimates={
            scouted.origin: (LogEvidence(search, 0.05),),
            **near_leg,
            BRIDGE: (LogEvidence(-1.0, 0.003),),
        },
        constant=LogEvidence(constant, 0.0),
        failures={},
    )
    found, findings = pilots_evidence(schools, made, **SOUND)
    said = [each.sentence for each in findings if "is too rough" in each.sentence]
    assert bool(said) is rough
    if rough:
        assert found == pytest.approx((-1.0 - constant, 0.003))
        assert all(
            each.severity == Severity.FINE for each in findings if "is too rough" in str(each)
        )
        assert not any("disagree" in each.sentence for each in findings)
    _, findings = pilots_evidence(schools, made, **{**SOUND, "nuts_is_sound": False})
    assert not any("is too rough" in each.sentence for each in findings)


@pytest.mark.parametrize(("near", "told"), [(-1.7, True), (-0.5, True), (-1.2, False)])
def test_a_path_from_draws_of_nuts_and_a_bridge_that_disagree_are_told(
    schools: Model, draws: Mapping[str, FloatArray], near: float, told: bool
) -> None:
    scouted = scout_program(schools, draws=draws, divergent=False, seed=3)
    made = replace(
        scouted,
        estimates={NEAR: (LogEvidence(near, 0.02),), BRIDGE: (LogEvidence(-1.0, 0.003),)},
        constant=LogEvidence(0.0, 0.0),
        failures={"search": NO_TIME},
    )
    found, findings = pilots_evidence(schools, made, **SOUND)
    said = [each for each in findings if "from draws of NUTS disagree" in each.sentence]
    assert [each.severity for each in said] == [Severity.WARNING] * told
    assert found is not None
    # Each of the two is within three errors.
    assert all(abs(each - found.value) <= 3 * found.mcse + 1e-9 for each in (near, -1.0))


@pytest.mark.parametrize(("search", "rough"), [(-1.6, True), (-0.9, False), (-0.4, False)])
def test_a_bridge_from_divergent_runs_is_what_log_z_is_at_least(
    schools: Model, draws: Mapping[str, FloatArray], search: float, rough: bool
) -> None:
    """It is no estimate itself, but a search that is below it has lost some of the posterior."""
    scouted = scout_program(schools, draws=draws, divergent=True, seed=3)
    assert scouted.at_least is not None
    assert scouted.by_bridge is None
    made = replace(
        scouted,
        # Two pilots that differ, so that the search's error is large, but neither is near the rest.
        estimates={
            scouted.origin: tuple(LogEvidence(search + each, 0.02) for each in (-0.5, 0.5)),
            NEAR: (LogEvidence(-1.02, 0.03), LogEvidence(-0.98, 0.03)),
        },
        at_least=LogEvidence(-1.0, 0.003),
        constant=LogEvidence(0.0, 0.0),
        failures={},
    )
    found, findings = pilots_evidence(schools, made, **SOUND)
    assert any("is too rough" in each.sentence for each in findings) is rough
    assert found is not None
    if rough:
        assert [each.severity for each in findings] == [Severity.FINE]
        near = combined_log_evidence(made.estimates[NEAR]).estimate
        assert found == pytest.approx((near.value, near.mcse))
        assert near.mcse > 0.01  # the bridge's own error is not claimed


def normal(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    return -0.5 * (x**2).sum(1), -x


@pytest.mark.parametrize(
    ("milliseconds", "particles"),
    # In 30 seconds a pilot of 512 particles takes 205,000 gradients.
    [(0.01, 512), (0.14, 512), (0.16, 256), (0.28, 256), (0.31, 128), (1, 128)],
)
def test_pilots_of_slow_densities_have_fewer_particles(
    monkeypatch: pytest.MonkeyPatch, milliseconds: float, particles: int
) -> None:
    monkeypatch.setattr(legs, "seconds_a_point", lambda *_, **__: 1e-3 * milliseconds)
    monkeypatch.setattr(legs, "_beside", lambda *_: 0.0)
    bases = [gaussian_base(np.zeros(2), width * np.eye(2)) for width in (4.0, 9.0)]
    leg = run_leg(normal, bases, origin="two Gaussians", most_seconds=60, seed=5)
    assert [len(each.points) for each in leg.pilots] == [particles, particles]
    for each in leg.estimates:
        assert abs(each.value - np.log(2 * np.pi)) < 4 * each.mcse < 1


def test_a_pilot_whose_populations_are_stuck_has_its_own_weight() -> None:
    """Its log Z may be by how far they spread, which weighs nothing beside another pilot."""
    bases = [gaussian_base(np.zeros(2), width * np.eye(2)) for width in (4.0, 9.0)]
    sound = run_leg(normal, bases, origin="two Gaussians", most_seconds=60, seed=5)
    each = len(sound.log_weight) // 2
    for pilot, weights in zip(sound.pilots, sound.log_weight.reshape(2, each), strict=True):
        mean = np.logaddexp.reduce(weights) - np.log(each)
        assert mean == pytest.approx(pilot.log_evidence.value, abs=1e-9)
    first, second = sound.pilots
    stuck = replace(second, log_evidence=LogEvidence(7168.0, 4616.0))
    np.testing.assert_array_equal(
        replace(sound, pilots=(first, stuck)).log_weight, sound.log_weight
    )


@pytest.mark.parametrize(
    ("took", "limits"), [(20.0, [(30.0, 60.0), (30.0, 40.0)]), (35.0, [(30.0, 60.0)])]
)
def test_a_pilot_that_is_late_may_take_the_time_of_the_next(
    monkeypatch: pytest.MonkeyPatch, took: float, limits: list[tuple[float, float]]
) -> None:
    """One that arrives is worth more than two that do not, and no second one starts in vain."""
    now, given = [0.0], []

    def timed(*arguments: Any, settings: PilotSettings, **options: Any) -> Pilot:
        given.append((settings.in_seconds, settings.most_seconds))
        now[0] += took
        settings = replace(settings, in_seconds=np.inf, most_seconds=np.inf)  # of another clock
        return pilot_of_density(*arguments, settings=settings, **options)

    monkeypatch.setattr(legs, "pilot_of_density", timed)
    monkeypatch.setattr("harness.user.legs.time.monotonic", lambda: now[0])
    bases = [gaussian_base(np.zeros(2), width * np.eye(2)) for width in (4.0, 9.0)]
    leg = run_leg(normal, bases, origin="two Gaussians", most_seconds=60, seed=5)
    assert given == limits
    assert len(leg.pilots) == len(limits)


def test_a_leg_counts_the_gradients_that_it_is_timed_with() -> None:
    evaluated = []

    def slow(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        evaluated.append(len(x))
        return -0.5 * (x**2).sum(1), -x

    base = gaussian_base(np.zeros(2), 4 * np.eye(2))
    leg = run_leg(slow, [base], origin="a Gaussian", most_seconds=60, seed=5)
    assert leg.gradients == leg.timed + leg.pilots[0].gradients
    assert 0 < leg.timed == sum(evaluated) - leg.pilots[0].gradients - 1  # one shows its dimension


def test_pilots_that_miss_a_part_of_a_prior_do_not_give_its_integral() -> None:
    """From a Gaussian they do not get into the neck of a funnel, and disagree little."""
    rng = np.random.default_rng(1)
    v = 3 * rng.standard_normal((16, 256, 1))
    points = np.concatenate([v, np.exp(v / 2) * rng.standard_normal((16, 256, 9))], axis=2)

    def density(at: FloatArray) -> tuple[FloatArray, FloatArray]:
        v, x = at[:, :1], at[:, 1:]
        squares = np.square(x) * np.exp(-v)
        log = -(v[:, 0] ** 2) / 18 - 0.5 * squares.sum(axis=1) - 4.5 * v[:, 0]
        slope_v = -v / 9 + 0.5 * squares.sum(axis=1, keepdims=True) - 4.5
        constant = -np.log(3) - 5 * np.log(2 * np.pi)
        return log + constant, np.concatenate([slope_v, -x * np.exp(-v)], axis=1)

    drawn = PriorDraws(points, cast(BatchedDensity, density), 1.0, 0)
    model = cast(Model, SimpleNamespace(log_prior_integral=None))
    with pytest.raises(SamplingError, match="funnel"):
        prior_constant(model, drawn, most_seconds=60, seed=1)
    known = replace(drawn, log_integral=LogEvidence(0.0, 0.0))
    assert prior_constant(model, known, most_seconds=60, seed=1).log_integral == (0.0, 0.0)


UNNORMALISED = """
data { vector[3] y; }
parameters { real mu; }
model { target += -square(mu) / 50; y ~ normal(mu, 1); }
"""


def test_a_prior_of_unknown_integral_that_cannot_be_drawn_from_leaves_no_log_z(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bridge from NUTS's draws would be off by the log of that integral, 2.5 here."""
    path, _ = write(tmp_path, "unnormalised", UNNORMALISED, {"y": [1.0, 2.0, 3.0]})
    model = tempered_model(path, {"y": [1.0, 2.0, 3.0]})
    assert model.own_base == "prior"
    assert model.log_prior_integral is None
    settings = NutsSettings(chains=4, warmup=300, draws=500)
    run = run_short_nuts(model.program("target"), model.data, settings, 2)

    def refuse(*_: Any, **__: Any) -> PriorDraws:
        raise SamplingError("chains of the prior do not get on")

    monkeypatch.setattr(scout, "prior_draws", refuse)
    scouted = scout_program(
        model, draws={"mu": run.variables["mu"]}, divergent=False, budget=20, seed=1
    )
    assert scouted.constant is None
    found, told = evidence_of(model, scouted, nuts_is_sound=True)
    assert found is None
    assert any("could not be estimated: chains of the prior do not get on" in each for each in told)
