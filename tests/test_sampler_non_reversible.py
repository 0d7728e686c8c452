"""Non-reversible parallel tempering: swaps, moves, ladders, and runs on targets that are known."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from calibration import few_and_many, mean_square_bounds
from known_targets import one_dimensional_mixture
from scipy.stats import ks_2samp, norm, truncnorm

from harness import evidence
from harness.arrays import Counted, FloatArray
from harness.errors import DataError, SamplingError
from harness.path import GaussianBase, gaussian_base
from harness.samplers import non_reversible
from harness.samplers.explorers import hmc, slice_sweep
from harness.samplers.ladders import overlap_ladder
from harness.samplers.non_reversible import non_reversible_tempering
from harness.samplers.rung_path import Densities, Places, Reference, Rungs, log_height
from harness.samplers.rung_replicas import neighbours
from harness.samplers.swaps import Travels, even_odd_swaps
from harness.samplers.tempering_run import (
    MOST_DIVERGENT,
    Enough,
    TemperingRun,
    TemperingSettings,
)


def gaussian(base: GaussianBase, *, drawn: bool = True) -> Reference:
    return Reference(
        lambda points: (base.log_density(points), base.log_density_gradient(points)),
        base.sample if drawn else None,
    )


WIDE, NEAR = gaussian_base([0.4], [[9.0]]), gaussian_base([1.0], [[4.0]])

# A normal density above an edge; 41 % of a base lies above it.
EDGE, MEAN, SD = 1.0, 1.5, 0.8
EDGED_LOG_Z = float(1.7 + norm.logsf(EDGE, MEAN, SD))
EDGED_BASE = gaussian_base([0.4], [[6.25]])


def edged(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """No density below the edge, with a gradient that is no number."""
    x = points[:, 0]
    value = np.where(x > EDGE, 1.7 + norm.logpdf(x, MEAN, SD), -np.inf)
    return value, np.where(x > EDGE, -(x - MEAN) / SD**2, np.nan)[:, None]


@pytest.mark.parametrize("parity", [0, 1])
def test_swaps_along_two_ladders_leave_the_joint_density_invariant(parity: int) -> None:
    """By enumeration of three states, one without density at the target, at each of five rungs."""
    target = np.array([0.7, 0.0, 0.3])
    references = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]])
    rungs = Rungs([[0, 0.4, 1], [0, 0.7, 1]])
    with np.errstate(divide="ignore"):
        values = np.log(np.stack([target, *references], axis=1))  # (state, density)
    height = log_height(values[None], rungs.powers[:, None])
    density = np.exp(height)
    density /= density.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(density[[0, 4]], references)
    np.testing.assert_allclose(density[2], target)
    np.testing.assert_allclose(density[3, 0] / density[3, 2], (7 / 3) ** 0.7 * 2**0.3)
    every = itertools.product(range(3), repeat=5)
    places = [p for p in every if all(density[k, s] > 0 for k, s in enumerate(p))]
    joint = np.array([np.prod([density[k, s] for k, s in enumerate(p)]) for p in places])
    transition = np.zeros((len(places), len(places)))
    for row, place in enumerate(places):
        there = Places(np.zeros((5, 1)), values[list(place)], np.zeros((5, 3, 1)))
        up, down = neighbours(there, rungs)
        swaps = even_odd_swaps(up - down, parity, np.random.default_rng(0))
        pairs = list(range(parity, 4, 2))
        for outcome in itertools.product([False, True], repeat=len(pairs)):
            moved, chance = list(place), 1.0
            for k, swapped in zip(pairs, outcome, strict=True):
                p = swaps.probability[k, 0]
                chance *= p if swapped else 1 - p
                if swapped:
                    moved[k], moved[k + 1] = moved[k + 1], moved[k]
            if chance > 0:
                transition[row, places.index(tuple(moved))] += chance
    flow = joint[:, None] * transition
    np.testing.assert_allclose(flow, flow.T, atol=1e-15)
    np.testing.assert_allclose(joint @ transition, joint, atol=1e-14)


def test_the_schedule_carries_replicas_from_end_to_end() -> None:
    """If every swap succeeds, a replica moves a rung a scan, and turns round at either end."""
    rng, rungs = np.random.default_rng(1), 5
    travels, where = Travels(rungs, 1, rungs - 1), np.arange(rungs)[:, None]
    paths = []
    for scan in range(100):
        source = even_odd_swaps(np.zeros((rungs - 1, 1)), scan % 2, rng).source
        where = np.take_along_axis(where, source, axis=0)
        travels.follow(source)
        paths.append(np.argsort(where[:, 0]))
    visited = np.array(paths)
    step = np.abs(np.diff(visited, axis=0))
    ends = (visited[1:] == visited[:-1]) & np.isin(visited[1:], [0, rungs - 1])
    assert np.all((step == 1) | ends)
    np.testing.assert_array_equal(visited[2 * rungs :], visited[: -2 * rungs])
    # A trip takes 2 K scans and K replicas are on their way; those above the base begin later.
    assert travels.round_trips.sum() == sum((100 - start) // 10 for start in (0, 1, 3, 5, 7))


def test_round_trips_count_from_the_reference_that_they_came_from() -> None:
    travels = Travels(3, 1, 1)  # reference, target, other reference
    stay, low, high = ([0], [1], [2]), ([1], [0], [2]), ([0], [2], [1])
    for source in (low, low, stay):  # from the first one to the target and back
        travels.follow(np.array(source))
    np.testing.assert_array_equal(travels.round_trips, [[1], [0]])
    # From the second one to the target, and on to the first one.  Meanwhile the replica that has
    # come from the first one to the target goes on to the second one, which is a trip as well.
    for source in (high, low):
        travels.follow(np.array(source))
    np.testing.assert_array_equal(travels.round_trips, [[2], [1]])


def test_the_first_step_of_a_ladder_keeps_half_of_the_draws() -> None:
    """Of normal log ratios of standard deviation s, exp(-beta^2 s^2) are kept."""
    log_ratio = np.append(40 * norm.ppf((np.arange(20_000) + 0.5) / 20_000), -np.inf)
    ladder = overlap_ladder(log_ratio)
    assert ladder[1] == pytest.approx(np.sqrt(np.log(2)) / 40, rel=0.01)
    np.testing.assert_allclose(np.diff(np.log(ladder[1:])), np.log(ladder[2] / ladder[1]))
    assert len(overlap_ladder(log_ratio / 100)) == 3
    assert len(overlap_ladder(log_ratio * 1e12, most=12)) == 12
    with pytest.raises(DataError, match="all draws"):
        overlap_ladder(np.full(5, -np.inf))


@pytest.mark.parametrize("kind", ["hmc", "slice"])
@pytest.mark.parametrize("name", ["mixture", "edged"])
def test_moves_leave_each_rung_as_it_is(kind: str, name: str) -> None:
    """Exact draws at each rung are still exact after moves of them all together."""
    target, base = (
        (one_dimensional_mixture().target.log_density, WIDE)
        if name == "mixture"
        else (edged, EDGED_BASE)
    )
    densities = Densities(target, [gaussian(base)])
    rungs, each = Rungs([[0, 0.3, 1]]), 4000
    grid = np.linspace(-14, 14, 20_001)
    values = densities(grid[:, None]).values
    rng = np.random.default_rng(5)
    density = np.exp(log_height(values[None], rungs.powers[:, None]))
    below = np.cumsum(density, axis=1) / density.sum(axis=1, keepdims=True)
    start = np.concatenate([np.interp(rng.random(each), share, grid) for share in below])
    places = densities(start[:, None])
    powers = np.repeat(rungs.powers, each, axis=0)
    # Interpolation leaves a few draws of the cut density just below the edge.
    possible = np.isfinite(log_height(places.values, powers))
    assert possible.mean() > 0.999
    usable = np.flatnonzero(possible)
    places.put(~possible, places.take(usable[len(usable) - np.count_nonzero(~possible) :]))
    start = places.points[:, 0].copy()
    count = len(start)
    for _ in range(2):
        if kind == "hmc":
            places, acceptance, _ = hmc(
                densities,
                places,
                powers,
                step_size=np.full(count, 0.5),
                scale=np.full((count, 1), 1.2),
                spread=np.full((count, 1), 2.0),
                leapfrog_steps=rng.integers(1, 5, size=3).repeat(each),
                rng=rng,
            )
            assert 0.3 < acceptance.mean() < 0.999
        else:
            places = slice_sweep(densities, places, powers, width=np.full((count, 1), 2.0), rng=rng)
    moved = places.points[:, 0] != start
    assert moved.mean() > 0.5
    for k, share in enumerate(below):
        exact = np.interp(rng.random(each), share, grid)
        after = places.points[k * each : (k + 1) * each, 0]
        assert ks_2samp(after, exact).pvalue > 0.01 / 12


def test_trajectories_that_diverge_end_there_and_leave_the_target_as_it_is() -> None:
    """Where they would go, that of a differential equation may take a thousand times as long.

    With steps of 0.5 standard deviations 50 steps are a trajectory; with more than 2 energies grow
    by a factor with each step, and by 100 with those of 3.5.
    """
    asked = 0

    def target(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        nonlocal asked
        asked += len(points)
        return norm.logpdf(points[:, 0]), -points

    rng = np.random.default_rng(8)
    densities = Densities(target, [gaussian(WIDE)])
    usual = ((0.5, 50, 1.0, True), (3.5, 5, 1e3, False), (2.05, 50, 5.0, True))
    for step, most, spread, moves in (*usual, (0.5, 50, 0.06, True)):
        start = rng.standard_normal((4000, 1))
        places = densities(start)
        asked = 0
        made = hmc(
            densities,
            places,
            np.tile([1.0, 0.0], (4000, 1)),
            step_size=np.full(4000, step),
            scale=np.ones((4000, 1)),
            spread=np.full((4000, 1), spread),
            leapfrog_steps=np.full(4000, 50),
            rng=rng,
        )
        assert asked <= most * 4000
        moved = made.places.points[:, 0] != start[:, 0]
        assert bool(moved.mean() > 0.2) is moves
        assert made.divergent.mean() > 0.5 or step != 3.5
        assert not np.any(made.divergent & moved)
        # With the small spread, steps of more than 0.6 are too long: where momenta exceed 1.2.
        assert moved.mean() < 0.8 or spread != 0.06
        exact = rng.standard_normal(4000)
        assert ks_2samp(made.places.points[:, 0], exact).pvalue > 0.01 / 4


def run(
    target: Any, bases: list[GaussianBase], *, seed: int, drawn: bool = True, **settings: Any
) -> TemperingRun:
    rng = np.random.default_rng([seed, 1])
    return non_reversible_tempering(
        target,
        [gaussian(base, drawn=drawn) for base in bases],
        [base.sample(rng, 500) for base in bases],
        settings=TemperingSettings(**settings),
        seed=seed,
    )


def test_ladders_become_even_where_the_barrier_is_known() -> None:
    """Between N(0, 1) and N(m, 1) the barrier is m / sqrt(pi), spread evenly over beta.

    Neighbours that are d m apart reject 2 Phi(d m / sqrt 2) - 1 of their swaps.
    """
    far, dimension = 6.0, 3
    shift = far / np.sqrt(dimension) * np.ones(dimension)

    def target(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -0.5 * np.square(points - shift).sum(axis=1), shift - points

    made = run(
        target,
        [gaussian_base(np.zeros(dimension), np.eye(dimension))],
        *(),
        seed=2,
        chains=8,
        draws=1500,
        warmup=1000,
    )
    (ladder,) = made.ladders
    barrier = far / np.sqrt(np.pi)
    rungs = len(ladder.inv_temp)
    assert rungs == int(np.ceil(2 * barrier)) + 2
    even = np.linspace(0, 1, rungs)
    # A rung lies where a round of 500 scans of 8 systems says, whose rejection rates have standard
    # errors of about .01 each.
    np.testing.assert_allclose(ladder.inv_temp, even, atol=0.02)
    known = 2 * norm.cdf(np.diff(ladder.inv_temp) * far / np.sqrt(2)) - 1
    np.testing.assert_allclose(ladder.rejection, known, atol=0.03)
    assert ladder.barrier == pytest.approx(known.sum(), abs=0.06)
    # Of coarse steps a little less is rejected than the barrier.
    assert 0.95 * barrier < ladder.barrier < barrier
    rate = 1 / (2 + 2 * np.sum(ladder.rejection / (1 - ladder.rejection)))
    assert 0.8 * rate < made.round_trips.mean() / made.scans < 1.1 * rate


def test_a_chain_holds_the_draws_of_its_systems_one_after_the_other() -> None:
    """The same seed makes the same systems, whether each is a chain of its own or not."""
    known = one_dimensional_mixture()
    settings: dict[str, Any] = {"warmup": 60, "draws": 80}
    apart = run(known.target.log_density, [WIDE, NEAR], seed=3, chains=6, **settings)
    settings["draws"] = 239  # of three systems, which make one draw more
    joined = run(known.target.log_density, [WIDE, NEAR], seed=3, chains=2, systems=3, **settings)
    assert (apart.systems, joined.systems) == (1, 3)
    assert joined.points.shape == (2, 240, 1)
    for name in ("points", "log_density", "acceptance"):
        each = getattr(apart, name)
        np.testing.assert_array_equal(
            getattr(joined, name), np.stack([np.concatenate(each[:3]), np.concatenate(each[3:])])
        )
    assert joined.scans == apart.scans
    np.testing.assert_array_equal(
        joined.round_trips, apart.round_trips.reshape(2, 2, 3).sum(axis=2)
    )
    one, other = joined.ladders[0].evidence, apart.ladders[0].evidence
    assert one is not None
    assert other is not None
    assert one.log_evidence == other.log_evidence


def test_an_error_that_no_ladder_avoids_takes_no_rungs() -> None:
    """Where the target has no density, a draw of the base cannot swap upwards at any rung."""
    made = run(edged, [EDGED_BASE], seed=4, draws=600, warmup=300)
    (ladder,) = made.ladders
    assert ladder.rejection[0] > norm.cdf(EDGE, 0.4, 2.5)
    assert np.ptp(ladder.rejection[1:]) < 0.1
    assert ladder.inv_temp[1] > 0.01
    assert made.points.min() > EDGE
    found = ladder.evidence
    assert found is not None
    for estimate in found[:3]:
        assert abs(estimate.value - EDGED_LOG_Z) < 4 * estimate.mcse
    mean = evidence.expectation(made.points)
    exact = truncnorm((EDGE - MEAN) / SD, np.inf, MEAN, SD).mean()
    assert abs(mean.value[0] - exact) < 4 * mean.mcse[0]


@few_and_many(20, 60)
@pytest.mark.parametrize("ladders", [1, 2])
def test_errors_of_log_z_and_of_mode_weights_are_honest(ladders: int, runs: int) -> None:
    known = one_dimensional_mixture()
    z = np.empty((2, runs))
    for seed in range(runs):
        made = run(
            known.target.log_density,
            [WIDE, NEAR][:ladders],
            seed=seed,
            chains=4,
            draws=200,
            warmup=100,
        )
        found = [each.evidence for each in made.ladders]
        assert all(each is not None for each in found)
        log_z = found[0].log_evidence  # type: ignore[union-attr]
        if ladders == 2:
            log_z = evidence.joined_evidence(*found).log_evidence  # type: ignore[arg-type]
        z[0, seed] = (log_z.value - known.log_z) / log_z.mcse
        # The modes are at -3 and 2, and the second one's lower tail ends where the first one's
        # upper tail does.
        share = evidence.expectation((made.points[..., 0] < -1.2).astype(float))
        exact = 0.3 * norm.cdf((-1.2 + 3) / 0.4) + 0.7 * norm.cdf((-1.2 - 2) / 1.2)
        z[1, seed] = (share.value - exact) / share.mcse
    # Errors from 200 draws of 4 chains are themselves uncertain: by a tenth, as with t on about 50
    # degrees of freedom, whose variance is 1.04.
    low, high = mean_square_bounds(runs)
    for scores in z:
        assert low < np.mean(scores**2) < 1.04 * high


def test_a_reference_that_cannot_be_drawn_from_moves_as_the_others_do() -> None:
    known = one_dimensional_mixture()
    made = run(known.target.log_density, [WIDE], seed=3, drawn=False, draws=1500, warmup=400)
    found = made.ladders[0].evidence
    assert found is not None
    assert abs(found.log_evidence.value - known.log_z) < 4 * found.log_evidence.mcse


@pytest.mark.parametrize("explorer", ["slice", "both"])
def test_other_explorers_find_the_same(explorer: str) -> None:
    known = one_dimensional_mixture()
    made = run(known.target.log_density, [WIDE], seed=6, draws=400, warmup=100, explorer=explorer)
    found = made.ladders[0].evidence
    assert found is not None
    assert abs(found.log_evidence.value - known.log_z) < 4 * found.log_evidence.mcse
    mean = evidence.expectation(made.points)
    assert abs(mean.value[0] - known.mean[0]) < 4 * mean.mcse[0]
    assert made.ladders[0].sliced.all() == (explorer == "slice")
    assert made.ladders[0].step_size.max() < 10


def test_slices_replace_trajectories_that_are_not_accepted() -> None:
    """A density of many steps: the gradient is zero wherever there is one."""

    def stairs(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -3 * np.floor(np.abs(5 * points)).sum(axis=1), np.zeros(points.shape)

    made = run(stairs, [gaussian_base(np.zeros(2), np.eye(2))], seed=1, draws=400, warmup=400)
    assert made.ladders[0].sliced[-1]
    found = made.ladders[0].evidence
    assert found is not None
    # Steps of width 1/5 on both sides: a geometric series.
    log_z = 2 * np.log(0.4 / (1 - np.exp(-3)))
    assert abs(found.log_evidence.value - log_z) < 4 * found.log_evidence.mcse


def funnel(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Neal's funnel: v with standard deviation 3, four x with standard deviations exp(v / 2)."""
    v, x = points[:, 0], points[:, 1:]
    scaled = x * np.exp(-v / 2)[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        value = norm.logpdf(v, 0, 3) + norm.logpdf(scaled).sum(axis=1) - x.shape[1] * v / 2
        by_v = -v / 9 + 0.5 * np.square(scaled).sum(axis=1) - x.shape[1] / 2
        return value, np.column_stack([by_v, -scaled * np.exp(-v / 2)[:, None]])


FUNNELS_BASE = gaussian_base(np.zeros(5), np.diag([9.0, *4 * [25.0]]))
NECK = float(norm.ppf(0.1, 0, 3))


def test_slices_follow_trajectories_that_diverge() -> None:
    """A tenth of a funnel is in its neck, where trajectories are refused."""
    settings: dict[str, Any] = {"seed": 4, "draws": 600, "warmup": 600}
    made = run(funnel, [FUNNELS_BASE], **settings)
    (ladder,) = made.ladders
    assert ladder.also_sliced[-1]
    assert not ladder.sliced[-1]
    assert made.divergent > MOST_DIVERGENT
    neck = evidence.expectation((made.points[..., 0] < NECK).astype(float))
    assert abs(neck.value - 0.1) < 4 * neck.mcse
    assert ladder.evidence is not None
    assert abs(ladder.evidence.log_evidence.value) < 4 * ladder.evidence.log_evidence.mcse
    alone = run(funnel, [FUNNELS_BASE], explorer="hmc", **settings)
    assert alone.divergent > MOST_DIVERGENT
    assert not alone.ladders[0].also_sliced.any()


@pytest.mark.parametrize("name", ["mixture", "edged"])
def test_nothing_diverges_where_nothing_is_sharp(name: str) -> None:
    """Nor where trajectories end without density: a step size cannot help that."""
    target, base = (
        (one_dimensional_mixture().target.log_density, WIDE)
        if name == "mixture"
        else (edged, EDGED_BASE)
    )
    made = run(target, [base], seed=2, draws=400, warmup=200)
    assert made.divergent == 0
    assert not made.ladders[0].also_sliced.any()


def test_scans_that_take_all_the_time_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that counts evaluations, of which a scan takes about 28."""
    now = 0.0

    def slow(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        nonlocal now
        now += len(points)
        return norm.logpdf(points[:, 0]), -points

    monkeypatch.setattr("harness.samplers.non_reversible.time.perf_counter", lambda: now)
    with pytest.raises(SamplingError, match="for each draw of a chain, and there are 400 s for"):
        run(slow, [WIDE], seed=1, draws=100, warmup=100, most_seconds=400)
    assert now < 700
    now = 0.0
    made = run(slow, [WIDE], seed=1, draws=100, warmup=100, most_seconds=30_000)
    assert made.points.shape == (4, 100, 1)


def test_same_seed_same_draws_and_rounds_double() -> None:
    known = one_dimensional_mixture()

    def draws(seed: int) -> FloatArray:
        return run(known.target.log_density, [WIDE, NEAR], seed=seed, draws=30, warmup=60).points

    np.testing.assert_array_equal(draws(8), draws(8))
    assert not np.array_equal(draws(8), draws(9))
    lengths = TemperingSettings(warmup=1000).rounds()
    assert lengths == sorted(lengths)
    assert 1000 <= sum(lengths) <= 1010
    assert all(a <= b <= 2 * a + 1 for a, b in itertools.pairwise(lengths))


def clocked(monkeypatch: pytest.MonkeyPatch, evaluations_a_second: int) -> Counted:
    """Return a density whose evaluations alone take time, by the clock of the runs."""
    density = Counted(one_dimensional_mixture().target.log_density)
    clock = SimpleNamespace(perf_counter=lambda: density.gradients / evaluations_a_second)
    monkeypatch.setattr(non_reversible, "time", clock)
    return density


def test_a_run_that_is_out_of_time_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    density = clocked(monkeypatch, 100_000)
    made = run(density, [WIDE], seed=1, draws=10**6, warmup=10**6, most_seconds=1.0)
    assert made.asked == 10**6
    assert 20 <= made.points.shape[1] < 10**5
    assert made.warmup < 10**5
    # It asks for the time after each scan, and a warm-up round that has begun is ended.
    assert made.seconds_warmup + made.seconds < 2


def test_rounds_go_on_while_there_are_few_round_trips() -> None:
    """Five draws are too few for ten round trips; more scans are made, of which five are kept."""
    known = one_dimensional_mixture()
    made = run(known.target.log_density, [WIDE], seed=1, draws=5, warmup=100)
    assert made.points.shape == (4, 5, 1)
    assert made.scans > 5
    assert not made.few_trips


@pytest.mark.parametrize(
    "enough",
    [Enough(effective=150), Enough(r_hat=1.005), Enough(error=0.02)],
    ids=["effective", "r-hat", "error"],
)
def test_the_last_round_goes_on_until_its_draws_are_enough(enough: Enough) -> None:
    known = one_dimensional_mixture()
    settings: dict[str, Any] = {"seed": 3, "draws": 60, "warmup": 60}
    short = run(known.target.log_density, [WIDE], **settings)
    assert short.scans == 60
    assert not short.is_enough(enough)
    made = run(known.target.log_density, [WIDE], **settings, enough=enough)
    assert made.points.shape == (4, 60, 1)  # of all scans, evenly
    assert made.scans > 60
    assert made.warmup == short.warmup
    assert made.is_enough(enough)


def test_a_second_ladder_that_is_longer_than_the_first_is_given_up() -> None:
    """As where no Gaussian is near the target; what it is fitted to stays out of it here."""
    known = one_dimensional_mixture()
    far = gaussian_base(np.array([60.0]), np.array([[1.0]]))
    rng = np.random.default_rng(1)

    def made(fitted: GaussianBase) -> TemperingRun:
        return non_reversible_tempering(
            known.target.log_density,
            [gaussian(WIDE), gaussian(WIDE)],
            [WIDE.sample(rng, 500)] * 2,
            settings=TemperingSettings(draws=500, warmup=200),
            fitted=lambda _: gaussian(fitted),
            seed=2,
        )

    run = made(far)
    assert len(run.ladders) == 1
    assert run.round_trips.shape == (1, 4)
    assert run.ladders[0].evidence is not None
    found = run.ladders[0].evidence.log_evidence
    assert abs(found.value - known.log_z) < 4 * found.mcse
    assert len(made(WIDE).ladders) == 2


def test_the_last_round_goes_on_no_longer_than_there_is_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    density = clocked(monkeypatch, 200_000)
    settings: dict[str, Any] = {"draws": 50, "warmup": 50, "most_seconds": 1.0}
    made = run(density, [WIDE], seed=1, **settings, enough=Enough(error=1e-9))
    assert made.points.shape == (4, 50, 1)
    assert made.scans > 50
    assert 1 < made.seconds_warmup + made.seconds < 1.1


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"chains": 0}, "1 chain"),
        ({"systems": 0}, "a system of replicas"),
        ({"draws": 3}, "4 draws"),
        ({"warmup": 2}, "warm-up"),
        ({"explorer": "walk"}, "explorer"),
        ({"most_rungs": 2}, "three rungs"),
        ({"most_seconds": 0}, "more than 0"),
    ],
)
def test_bad_settings_are_one_clear_error(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=says):
        TemperingSettings(**settings)


class Halfway:
    """A standard normal that has no gradient beyond 1, as a program may have none on a bound."""

    def __init__(self) -> None:
        self.gradients = 0

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        self.gradients += len(points)
        beyond = np.any(points > 1, axis=1)
        value = np.where(beyond, -np.inf, self.values(points))
        return value, np.where(beyond[:, None], 0.0, -points)

    def values(self, points: FloatArray) -> FloatArray:
        value: FloatArray = -0.5 * np.square(points).sum(axis=1)
        return value


def test_a_slice_sweep_takes_one_gradient_and_ends_where_there_is_one() -> None:
    rng = np.random.default_rng(17)
    target = Halfway()
    densities = Densities(target, [Reference(lambda points: (-(points[:, 0] ** 2), -2 * points))])
    before = densities(rng.uniform(-1, 0, size=(200, 2)))
    taken = target.gradients
    powers = np.tile([1.0, 0.0], (200, 1))
    after = slice_sweep(densities, before, powers, width=np.full((200, 2), 2.0), rng=rng)
    assert target.gradients - taken == 200
    assert np.all(np.isfinite(after.values))
    again = densities(after.points)
    np.testing.assert_array_equal(after.values, again.values)
    np.testing.assert_array_equal(after.gradients, again.gradients)
    stayed = np.all(after.points == before.points, axis=1)
    assert 0 < stayed.sum() < 150
