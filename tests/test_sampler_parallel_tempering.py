"""Parallel tempering: swaps by enumeration, invariance, log Z with honest errors, the ladder."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from known_targets import KNOWN, one_dimensional_mixture
from log_gaussian import log_gaussian
from scipy.stats import chi2, ks_2samp

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.fit import part_of
from harness.model.python_target import function_target
from harness.path import gaussian_base
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.kernels import Hmc, RandomWalk
from harness.samplers.ladders import equal_rejection_ladder
from harness.samplers.parallel_tempering import (
    PARALLEL_TEMPERING,
    Replicas,
    parallel_tempering,
)
from harness.samplers.rungs import stepping_stones, thermodynamic_integration
from harness.samplers.swaps import even_odd_swaps

LADDER = np.array([0.0, 0.03, 0.12, 0.35, 0.65, 1.0])


@pytest.mark.parametrize("parity", [0, 1])
def test_swaps_leave_the_joint_density_of_all_rungs_invariant(parity: int) -> None:
    """By enumeration of three states at each of four rungs."""
    base, gamma = np.array([0.2, 0.5, 0.3]), np.array([0.7, 0.05, 0.25])
    delta = np.log(base) - np.log(gamma)
    ladder = np.array([0.0, 0.2, 0.6, 1.0])
    tempered = base * np.exp(-ladder[:, None] * delta)
    tempered /= tempered.sum(axis=1, keepdims=True)
    places = list(itertools.product(range(3), repeat=4))
    joint = np.array([np.prod([tempered[k, s] for k, s in enumerate(p)]) for p in places])
    transition = np.zeros((81, 81))
    for row, place in enumerate(places):
        log_ratio = np.diff(ladder) * np.diff(delta[list(place)])
        swaps = even_odd_swaps(log_ratio[:, None], parity, np.random.default_rng(0))
        pairs = list(range(parity, 3, 2))
        for outcome in itertools.product([False, True], repeat=len(pairs)):
            moved, chance = list(place), 1.0
            for k, swapped in zip(pairs, outcome, strict=True):
                p = swaps.probability[k, 0]
                chance *= p if swapped else 1 - p
                if swapped:
                    moved[k], moved[k + 1] = moved[k + 1], moved[k]
            transition[row, places.index(tuple(moved))] += chance
    flow = joint[:, None] * transition
    np.testing.assert_allclose(flow, flow.T, atol=1e-15)
    np.testing.assert_allclose(joint @ transition, joint, atol=1e-14)


def test_swaps_happen_as_often_as_they_should_and_only_in_their_pairs() -> None:
    rng = np.random.default_rng(4)
    delta = np.repeat(rng.normal(0, 4, size=(6, 1)), 40_000, axis=1)
    log_ratio = np.diff(LADDER)[:, None] * np.diff(delta, axis=0)
    for parity in (0, 1):
        swaps = even_odd_swaps(log_ratio, parity, rng)
        up = swaps.source[:-1] == np.arange(1, 6)[:, None]
        assert np.all(np.sort(swaps.source, axis=0) == np.arange(6)[:, None])
        chance = swaps.probability[:, 0] * (np.arange(5) % 2 == parity)
        error = np.sqrt(chance * (1 - chance) / 40_000)
        assert np.all(np.abs(up.mean(axis=1) - chance) <= 4.5 * error)


def test_one_iteration_leaves_exact_draws_exact() -> None:
    """Replicas start where they should be at every rung, and still are after an iteration."""
    known = one_dimensional_mixture()
    chains, grid = 4000, np.linspace(-14, 14, 20_001)
    log_gamma = known.target.log_density(grid[:, None])[0]
    log_base = known.base.log_density(grid[:, None])
    ladder = np.array([0.0, 0.3, 1.0])
    rng = np.random.default_rng(5)
    log_path = ladder[:, None] * log_gamma + (1 - ladder[:, None]) * log_base
    density = np.exp(log_path - log_path.max(axis=1, keepdims=True))
    below = np.cumsum(density, axis=1) / density.sum(axis=1, keepdims=True)
    exact = [np.interp(rng.random(chains), share, grid) for share in below]
    replicas = Replicas(
        GeometricPath(known.target, known.base), Hmc(leapfrog_steps=3), ladder, chains, rng
    )
    replicas.step_size = np.array([0.3, 0.25])
    replicas.state = replicas.path.start(np.concatenate(exact)[:, None])
    for _ in range(2):  # both parities
        made = replicas.iterate()
    assert 0.5 < made.acceptance.mean() < 0.999
    assert 0.2 < made.swap.mean() < 0.95
    for k, share in enumerate(below):
        after = replicas.state.points[k * chains : (k + 1) * chains, 0]
        again = np.interp(rng.random(chains), share, grid)
        assert ks_2samp(after, again).pvalue > 0.01 / 3


@pytest.mark.parametrize("name", KNOWN)
def test_log_evidence_and_mean(name: str) -> None:
    known = KNOWN[name]()
    fit = parallel_tempering(
        known.target, known.base, ladder=LADDER, chains=16, draws=500, warmup=200, seed=3
    )
    estimate = fit.log_evidence
    assert 0 < estimate.mcse < 0.1
    assert abs(estimate.value - known.log_z) < 4 * estimate.mcse
    attrs = fit.tree.attrs
    for side in ("forward", "backward"):
        error = attrs[f"log_evidence_{side}_mcse"]
        assert abs(attrs[f"log_evidence_{side}"] - known.log_z) < 4 * error
    # The integral's quadrature error is of the order of its end correction at most.
    gap = abs(attrs["log_evidence_integral"] - known.log_z)
    spread = attrs["log_evidence_integral_mcse"]
    assert gap < 4 * spread + abs(attrs["log_evidence_integral_correction"])
    mean = fit.expectation(lambda draws: draws["x"])
    assert np.all(np.abs(mean.value - known.mean) < 4.5 * mean.mcse)


@pytest.mark.slow
def test_reported_errors_are_honest() -> None:
    """Forty runs: z scores have variance one."""
    known = one_dimensional_mixture()
    z = {"log_z": np.empty(40), "mean": np.empty(40)}
    for seed in range(40):
        fit = parallel_tempering(
            known.target,
            known.base,
            ladder=LADDER,
            chains=8,
            draws=150,
            warmup=64,
            kernel=Hmc(leapfrog_steps=3),
            seed=seed,
        )
        z["log_z"][seed] = (fit.log_evidence.value - known.log_z) / fit.log_evidence.mcse
        mean = fit.expectation(lambda draws: draws["x"])
        z["mean"][seed] = float((mean.value - known.mean)[0] / mean.mcse[0])
    # 40 z scores of variance one: their mean square is chi^2_40 / 40, within these bounds but for
    # 0.8% (0.5) and 0.1% (1.8).
    low, high = 0.5, 1.8
    assert chi2.cdf(40 * low, 40) < 0.01
    assert chi2.sf(40 * high, 40) < 0.01
    for scores in z.values():
        assert low < np.mean(scores**2) < high


def test_ladders_taken_apart_have_honest_errors_of_their_own() -> None:
    known = one_dimensional_mixture()
    fit = parallel_tempering(
        known.target, known.base, ladder=LADDER, chains=60, draws=1000, warmup=100, seed=4
    )
    alone = [part_of(fit, index, 60) for index in range(60)]
    estimate = np.array([each.log_evidence for each in alone])
    z = (estimate[:, 0] - known.log_z) / estimate[:, 1]
    # Chi squared with 60 degrees of freedom, but for one seed in a thousand on either side.
    assert chi2.ppf(0.001, 60) < np.sum(z**2) < chi2.ppf(0.999, 60)
    assert alone[7].tree.attrs["gradients_sampling"] == fit.tree.attrs["gradients_sampling"][7]
    np.testing.assert_array_equal(alone[7].posterior["x"][0], fit.posterior["x"][7])


def test_warm_up_makes_neighbours_reject_equally() -> None:
    known = one_dimensional_mixture()
    crowded = np.concatenate([[0.0], np.linspace(0.8, 1, 5)])

    def rejection(adapt: bool) -> FloatArray:
        fit = parallel_tempering(
            known.target,
            known.base,
            ladder=crowded,
            chains=16,
            draws=400,
            warmup=640,
            adapt_ladder=adapt,
            seed=2,
        )
        ladder = fit.tree.attrs["ladder"]
        assert ladder[0] == 0
        assert ladder[-1] == 1
        assert np.array_equal(ladder, crowded) != adapt
        return np.asarray(fit.tree.attrs["swap_rejection"])

    before, after = rejection(False), rejection(True)
    assert np.ptp(before) > 0.3
    assert np.ptp(after) < 0.06


def test_ladder_of_a_linear_barrier_is_uniform_in_it() -> None:
    ladder = np.array([0.0, 0.1, 0.4, 1.0])
    moved = equal_rejection_ladder(ladder, np.array([0.3, 0.1, 0.2]))
    # The barrier is 0, 0.3, 0.4, 0.6 at the rungs: its thirds lie at 0.2 and 0.4.
    np.testing.assert_allclose(moved, [0, 0.1 * 0.2 / 0.3, 0.4, 1], atol=1e-12)
    assert np.all(np.diff(equal_rejection_ladder(ladder, np.zeros(3))) > 0)


def test_estimates_of_log_z_from_exact_draws() -> None:
    """Gaussian base and target of one mean: Delta is quadratic, all rungs are Gaussian."""
    rng = np.random.default_rng(9)
    ladder = np.linspace(0, 1, 9)
    precision = 1 + 3 * ladder  # base N(0, 1), gamma = exp(-2 x^2 + 0.4)
    log_z = 0.4 + 0.5 * np.log(2 * np.pi / 4)
    x = rng.standard_normal((4000, 9, 2)) / np.sqrt(precision)[None, :, None]
    delta = -0.5 * x**2 - 0.5 * np.log(2 * np.pi) + 0.3 - (0.4 - 2 * x**2)
    inside = rng.random((4000, 2)) < 0.25  # as if the support had a quarter of the base's mass
    stones = stepping_stones(delta, ladder, 0.3, inside)
    integral = thermodynamic_integration(delta, ladder, 0.3, inside).log_evidence
    for estimate in (*stones, integral):
        assert 0.005 < estimate.mcse < 0.1
        assert abs(estimate.value - (log_z + np.log(0.25))) < 4 * estimate.mcse


def test_a_base_that_the_support_cuts_off() -> None:
    """Half-normal target x > 0: the base's lower half is cut off, and Z does not know of it."""

    def half_normal(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        value = -0.5 * np.square(points[:, 0])
        return np.where(points[:, 0] > 0, value, -np.inf), -points

    base = gaussian_base([0.5], [[2.0]])
    fit = parallel_tempering(
        function_target("half", half_normal, 1), base, ladder=[0, 0.5, 1], warmup=200, seed=1
    )
    estimate = fit.log_evidence
    assert abs(estimate.value - 0.5 * np.log(np.pi / 2)) < 4 * estimate.mcse
    assert float(fit.posterior["x"].min()) > 0
    mean = fit.expectation(lambda draws: draws["x"])
    assert abs(mean.value[0] - np.sqrt(2 / np.pi)) < 4 * mean.mcse[0]


def test_round_trips_are_those_of_independent_swaps() -> None:
    """Two rungs of one density always swap: every replica goes up and down in turn."""

    def normal(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -0.5 * np.square(points).sum(axis=1) - np.log(2 * np.pi), -points

    fit = parallel_tempering(
        function_target("normal", normal, 2),
        gaussian_base(np.zeros(2), np.eye(2)),
        ladder=[0, 1],
        chains=3,
        draws=20,
        warmup=0,
        seed=1,
    )
    # Ten swaps, each of which but the first ends a trip that began at the base.
    np.testing.assert_array_equal(fit.tree.attrs["round_trips"], 9)
    np.testing.assert_allclose(fit.tree.attrs["swap_rejection"], 0, atol=1e-12)
    assert fit.log_evidence.value == pytest.approx(0, abs=1e-12)


def test_round_trips_come_at_the_rate_of_non_reversible_swaps() -> None:
    """1 / (2 + 2 sum r / (1 - r)) an iteration where rungs explore well (Syed et al. 2021)."""
    known = one_dimensional_mixture()
    fit = parallel_tempering(
        known.target, known.base, ladder=LADDER, chains=16, draws=800, warmup=320, seed=6
    )
    rejection = fit.tree.attrs["swap_rejection"]
    rate = 1 / (2 + 2 * np.sum(rejection / (1 - rejection)))
    trips = fit.tree.attrs["round_trips"] / 800
    # The rate takes each move to forget its rung's last state, which it does not quite.
    assert 0.85 * rate < trips.mean() < rate * (1 + 4 * trips.std(ddof=1) / rate / np.sqrt(16))
    assert fit.tree.attrs["communication_barrier"] == pytest.approx(rejection.sum())


def test_same_seed_same_draws_and_cost() -> None:
    known = one_dimensional_mixture()

    def run(seed: int) -> FloatArray:
        fit = parallel_tempering(
            known.target, known.base, ladder=LADDER, chains=4, draws=30, warmup=40, seed=seed
        )
        # Per iteration and chain: 1 at the base, 5 leapfrog steps at each rung above it.
        assert fit.gradients == 4 * 6 + 4 * (1 + 5 * 5) * 70
        assert fit.posterior.sizes["chain"] == 4
        assert fit.sample_stats["swap_rate"].shape == (4, 30)
        return np.asarray(fit.posterior["x"])

    first = run(8)
    np.testing.assert_array_equal(first, run(8))
    assert not np.array_equal(first, run(9))
    assert len(np.unique(first[:, -1])) == 4


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"ladder": []}, "ladder"),
        ({"ladder": [0.1, 1]}, "ladder"),
        ({"ladder": [0, 0.5, 0.4, 1]}, "ladder"),
        ({"chains": 0}, "1 chain"),
        ({"draws": 0}, "4 draws"),
        ({"warmup": -1}, "warm-up"),
    ],
)
def test_bad_settings_are_one_clear_error(settings: dict[str, Any], says: str) -> None:
    known = one_dimensional_mixture()
    given: dict[str, Any] = {"ladder": LADDER, "seed": 1} | settings
    with pytest.raises(DataError, match=says):
        parallel_tempering(known.target, known.base, **given)


def test_a_target_without_density_near_the_base_is_refused() -> None:
    def nowhere(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full(len(points), -np.inf), np.zeros(points.shape)

    with pytest.raises(DataError, match="starting point"):
        parallel_tempering(
            function_target("nowhere", nowhere, 1),
            gaussian_base([0.0], [[1.0]]),
            ladder=LADDER,
            seed=1,
        )


def test_an_experiment_runs_it_on_a_model() -> None:
    pytest.importorskip("stanli", reason="stanli, which evaluates Stan programs, is missing")
    model, truth = log_gaussian()
    base = gaussian_base(truth.mean + 0.3, 2 * truth.covariance)
    fit = PARALLEL_TEMPERING.sample(
        model,
        nuts=None,
        seed=1,
        compiled=None,
        base=base,
        ladder=LADDER,
        chains=8,
        draws=300,
        warmup=100,
    )
    assert fit.tree.attrs["method"] == PARALLEL_TEMPERING.name
    assert set(fit.posterior) == {"x", "scale"}
    assert abs(fit.log_evidence.value - truth.log_zeta) < 4 * fit.log_evidence.mcse
    mean = fit.expectation(lambda draws: draws["x"])
    exact = truth.mean[:4].reshape(2, 2).T  # column-major
    # 4 standard errors of four coordinates, and a quarter for what they are known to.
    assert np.all(np.abs(mean.value - exact) < 5 * mean.mcse)
    assert np.all(mean.mcse < 0.3)


def test_random_walks_move_the_rungs_as_well() -> None:
    known = one_dimensional_mixture()
    fit = parallel_tempering(
        known.target,
        known.base,
        ladder=LADDER,
        kernel=RandomWalk(),
        chains=16,
        draws=600,
        warmup=300,
        seed=3,
    )
    mean = fit.expectation(lambda draws: draws["x"])
    assert np.all(np.abs(mean.value - known.mean) < 4.5 * mean.mcse)
    assert abs(fit.log_evidence.value - known.log_z) < 4.5 * fit.log_evidence.mcse
    # Tuned to the kernel's own acceptance rate, at beta = 1 as well.
    rate = float(fit.sample_stats["acceptance_rate"].mean())
    assert abs(rate - RandomWalk().target_acceptance) < 0.1
    assert fit.settings["kernel"].startswith("RandomWalk")
