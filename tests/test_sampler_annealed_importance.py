"""Annealed importance sampling: exact sums on three states, and targets with known Z."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from discrete_walk import DiscreteWalk, record_directions, scanning_walk
from scipy.stats import norm
from tempered_truth import (
    MIXTURE,
    MIXTURE_BASE,
    Tempered,
    gaussian_case,
    gaussian_target,
    mixture_case,
)

from harness.arrays import FloatArray
from harness.diagnosis import Severity, diagnose
from harness.errors import DataError
from harness.model.python_target import Target, function_target, numpy_target
from harness.models.boltzmann import generate, relax
from harness.models.boltzmann_mean_field import mean_field_base
from harness.path import GaussianBase, gaussian_base
from harness.samplers.annealed_importance import (
    ANNEALED_IMPORTANCE,
    annealed_importance,
    bidirectional,
)
from harness.samplers.annealing import AnnealingKernel, anneal, anneal_back
from harness.samplers.geometric_path import GeometricPath
from harness.samplers.kernels import Hmc, PartialHmc, RandomWalk, Slice

LADDER = np.array([0.0, 0.2, 0.7, 1.0])
KERNELS: dict[str, AnnealingKernel] = {
    "hmc": Hmc(leapfrog_steps=3),
    "hamiltonian": PartialHmc(),
    "random walk": RandomWalk(),
}


def still(ladder: FloatArray) -> DiscreteWalk:
    walk = scanning_walk(ladder)
    return DiscreteWalk(walk.base, walk.rise, ladder, np.tile(np.eye(3), (len(ladder), 1, 1)))


@pytest.mark.parametrize("make", [scanning_walk, still])
@pytest.mark.parametrize("mirrored", [False, True])
def test_weights_have_mean_z_and_take_the_ends_to_the_target(
    make: Callable[[FloatArray], DiscreteWalk], mirrored: bool
) -> None:
    """For transitions that are not reversible, for their reversals, and for none."""
    walk = make(LADDER)
    start = walk.all_paths(2)
    end, log_weight = anneal(walk, LADDER, start, np.full(len(start.way), mirrored))
    proposed = walk.base[start.here] * end.probability
    assert proposed.sum() == pytest.approx(1, abs=1e-14)
    z = np.sum(walk.base * np.exp(walk.rise))
    assert np.sum(proposed * np.exp(log_weight)) == pytest.approx(z, rel=1e-13)
    of_ends = np.bincount(end.here, weights=proposed * np.exp(log_weight))
    assert of_ends / z == pytest.approx(walk.density[-1], rel=1e-13)


def test_the_way_down_is_the_way_up_weighted() -> None:
    """Path by path P(X) = Q(X) w(X) / Z, with one weight on either way (Murray 2007, eq. 2.24)."""
    walk = scanning_walk(LADDER)
    up = walk.all_paths(2)
    end, log_weight = anneal(walk, LADDER, up, np.zeros(len(up.way), bool))
    down = up._replace(way=up.way[:, ::-1])
    start, log_weight_down = anneal_back(walk, LADDER, down, np.ones(len(up.way), bool))
    assert log_weight_down == pytest.approx(log_weight, abs=1e-14)
    z = np.sum(walk.base * np.exp(walk.rise))
    target = walk.density[-1][down.here] * start.probability
    proposed = walk.base[up.here] * end.probability
    assert target == pytest.approx(proposed * np.exp(log_weight) / z, rel=1e-12)
    assert np.sum(target * np.exp(-log_weight_down)) == pytest.approx(1 / z, rel=1e-13)


@pytest.mark.parametrize("case", [gaussian_case, mixture_case])
def test_the_reversal_of_partially_refreshed_hmc_is_its_reversal(
    case: Callable[[], Tempered],
) -> None:
    """E[f(z) g(T z)] = E[g(z) f(T' z)] for z = (x, v) at equilibrium, for odd functions too."""
    tempered = case()
    path, beta, count = GeometricPath(tempered.target, tempered.base), 0.6, 100_000
    rng = np.random.default_rng(12)
    kernel = PartialHmc(Hmc(leapfrog_steps=2, jitter=0.5), persistence=0.8)

    def features(points: FloatArray, momentum: FloatArray) -> FloatArray:
        x = path.base.whiten(points)[:, :1]
        v = momentum[:, :1]
        return np.hstack([np.tanh(x), np.tanh(v), np.tanh(x) * np.tanh(v), x > 0, v > 0.5])

    products = []
    for backward in (False, True):
        state = path.start(tempered.exact(beta).draw(count, rng))
        momentum = kernel.start(state, rng)
        moved = kernel.move(
            path, state, momentum, beta, 0.35, rng, backward=np.full(count, backward)
        )
        assert 0.3 < moved.acceptance.mean() < 0.95
        before, after = (
            features(state.points, momentum),
            features(moved.state.points, moved.momentum),
        )
        if backward:
            before, after = after, before
        products.append(before[:, :, None] * after[:, None, :])
    difference = products[0].mean(axis=0) - products[1].mean(axis=0)
    error = np.sqrt(sum(each.var(axis=0) for each in products) / count)
    z = difference / error
    assert np.abs(z).max() < norm.isf(1e-3 / z.size / 2)
    # The transition is not its own reversal: what it does to x and v is not symmetric.
    assert np.abs((products[0] - products[0].transpose(0, 2, 1)).mean(axis=0) / error).max() > 20


def test_up_goes_forward_and_down_goes_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    directions = record_directions(monkeypatch)
    case = mixture_case()
    exact = case.exact(1.0).draw(5, np.random.default_rng(1))
    bidirectional(
        case.target,
        case.base,
        exact,
        ladder=[0, 0.2, 0.6, 1],
        chains=3,
        kernel=PartialHmc(),
        step_size=0.2,
        seed=1,
    )
    assert [each.tolist() for each in directions] == 2 * [[False] * 3] + 2 * [[True] * 5]


class Known(NamedTuple):
    target: Target
    base: GaussianBase
    log_z: float
    mean: FloatArray


def mixture() -> Known:
    return Known(mixture_case().target, MIXTURE_BASE, 0.0, MIXTURE.truth.expected("x"))


def gaussian() -> Known:
    target, mean, _ = gaussian_target(10, log_z=-4.2)
    return Known(target, gaussian_base(np.zeros(10), 2.0 * np.eye(10)), -4.2, mean)


def boltzmann(d_b: int = 10) -> Known:
    rng = np.random.default_rng(5)
    relaxation = relax(generate(d_b, rng))
    truth = relaxation.exact()
    target = numpy_target(relaxation.model("boltzmann"), relaxation.log_density_and_gradient)
    return Known(target, mean_field_base(relaxation, rng), truth.log_z, truth.expected_x)


CASES = {"mixture": mixture, "gaussian": gaussian, "boltzmann": boltzmann}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("case", CASES)
def test_log_z_and_means_are_within_their_errors(case: str, kernel: str) -> None:
    known = CASES[case]()
    ladder = np.linspace(0, 1, 101)
    fit = annealed_importance(
        known.target, known.base, ladder=ladder, chains=500, kernel=KERNELS[kernel], seed=2
    )
    assert abs(fit.log_evidence.value - known.log_z) < 4 * fit.log_evidence.mcse
    assert fit.log_evidence.mcse < 0.2
    estimate = fit.expectation(lambda draws: draws["x"])
    # As many comparisons as coordinates, each with one chance of failing in 10,000.
    bound = norm.isf(5e-5 / known.mean.size)
    assert np.all(np.abs(estimate.value - known.mean) < bound * estimate.mcse)
    assert fit.posterior["x"].shape == (1, 500, known.mean.size)


def test_without_moves_it_is_importance_sampling() -> None:
    """A kernel that stays leaves the weights of draws of the base."""
    known = gaussian()
    ladder = np.linspace(0, 1, 7)
    fit = annealed_importance(
        known.target, known.base, ladder=ladder, kernel=Hmc(1), step_size=1e-12, seed=3
    )
    assert fit.extended is not None
    points = fit.extended["x"].to_numpy()[0]
    log_ratio = known.target.log_density(points)[0] - known.base.log_density(points)
    assert fit.extended["log_w1"].to_numpy()[0] == pytest.approx(log_ratio, abs=1e-6)


@pytest.mark.slow
def test_reported_errors_are_honest() -> None:
    """Variance of 40 z scores: within 0.5 and 1.8, which 39 degrees of freedom leave once in 500.

    The 0.001 and 0.999 quantiles of chi-squared_39 / 39 are 0.45 and 1.85.
    """
    known = mixture()
    ladder = np.linspace(0, 1, 41)
    z = []
    for seed in range(40):
        fit = annealed_importance(
            known.target, known.base, ladder=ladder, chains=300, step_size=0.3, seed=seed
        )
        mean = fit.expectation(lambda draws: draws["x"])
        z.append(
            [
                (fit.log_evidence.value - known.log_z) / fit.log_evidence.mcse,
                float((mean.value[0] - known.mean[0]) / mean.mcse[0]),
            ]
        )
    assert np.all(np.abs(np.mean(z, axis=0)) < 4 / np.sqrt(40))
    assert np.all(np.var(z, axis=0, ddof=1) > 0.5)
    assert np.all(np.var(z, axis=0, ddof=1) < 1.8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_forward_and_reverse_bracket_the_truth(kernel: str) -> None:
    """With ladders too short for the task both bounds are off, each to its own side.

    A bound is wrong by c nats with a probability below exp(-c): none of ten by 7, and the means
    of ten stand on their own sides.
    """
    known = boltzmann(8)
    rng = np.random.default_rng(5)
    relaxation = relax(generate(8, rng))
    truth = relaxation.exact()
    lower, upper = [], []
    for seed in range(10):
        exact = truth.draw(20, np.random.default_rng(seed))
        made = bidirectional(
            known.target,
            known.base,
            exact,
            ladder=np.linspace(0, 1, 11),
            kernel=KERNELS[kernel],
            step_size=0.3,
            seed=seed,
        )
        lower.append(made.lower.value - known.log_z)
        upper.append(made.upper.value - known.log_z)
        assert made.gap == pytest.approx(upper[-1] - lower[-1], abs=1e-9)
    assert np.max(lower) < 7
    assert np.min(upper) > -7
    assert np.mean(lower) < 0 < np.mean(upper)
    # With a long ladder they close in on the truth.
    made = bidirectional(
        known.target,
        known.base,
        truth.draw(200, rng),
        ladder=np.linspace(0, 1, 201),
        kernel=KERNELS[kernel],
        seed=1,
    )
    assert made.gap < 0.2
    assert abs(made.lower.value - known.log_z) < 4 * made.lower.mcse
    assert abs(made.upper.value - known.log_z) < 4 * made.upper.mcse


def test_a_run_that_a_few_chains_dominate_is_called_off() -> None:
    known = gaussian()
    found = {}
    base = gaussian_base(np.zeros(10), 0.5 * np.eye(10))
    for rungs in (2, 101):
        fit = annealed_importance(
            known.target, base, ladder=np.linspace(0, 1, rungs), chains=500, seed=4
        )
        (found[rungs],) = [each for each in diagnose(fit) if "Pareto k" in each.sentence]
    assert found[2].severity > Severity.FINE
    assert "inverse temperatures" in found[2].what_to_try
    assert found[101].severity == Severity.FINE


def test_draws_of_the_base_outside_the_support_weigh_nothing() -> None:
    """A normal cut to x > 0.3 from a standard normal: Z is the mass of the half-line."""

    def log_density(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        x = points[:, 0]
        inside = x > 0.3
        return np.where(inside, norm.logpdf(x), -np.inf), np.where(inside[:, None], -points, 0.0)

    target = function_target("cut", log_density, 1)
    fit = annealed_importance(
        target, gaussian_base([0.0], [[1.0]]), ladder=[0, 0.5, 1], chains=4000, seed=6
    )
    z = (fit.log_evidence.value - norm.logsf(0.3)) / fit.log_evidence.mcse
    assert abs(z) < 4
    assert float(fit.posterior["x"].min()) > 0.3


def test_a_model_runs_through_its_stan_program() -> None:
    known = boltzmann(4)
    relaxation = relax(generate(4, np.random.default_rng(5)))
    fits = [
        run(what, base=known.base, ladder=np.linspace(0, 1, 6), chains=20, step_size=0.3, seed=8)
        for run, what in (
            (ANNEALED_IMPORTANCE.sample, relaxation.model("boltzmann")),
            (annealed_importance, known.target),
        )
    ]
    draws = [fit.posterior["x"].to_numpy() for fit in fits]
    assert draws[0] == pytest.approx(draws[1], abs=1e-8)
    assert fits[0].settings == fits[1].settings
    # A gradient a leapfrog step at four rungs, and one where a chain starts.
    assert fits[0].gradients == fits[1].gradients == 20 * (4 * 5 + 1)


def test_same_seed_same_fit() -> None:
    known = mixture()
    ladder = np.linspace(0, 1, 5)
    first, again, other = (
        annealed_importance(known.target, known.base, ladder=ladder, chains=10, seed=seed)
        for seed in (1, 1, 2)
    )
    assert first.extended is not None
    assert again.extended is not None
    assert first.extended.equals(again.extended)
    assert first.log_evidence == again.log_evidence != other.log_evidence


def test_bad_input_is_one_clear_error() -> None:
    known = gaussian()
    good: dict[str, Any] = {"ladder": [0, 0.5, 1], "chains": 4, "seed": 1}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ladder": []}, "ladder"),
        ({"ladder": [0.1, 1]}, "ladder"),
        ({"chains": 0}, "2 chains"),
        ({"step_size": -1.0}, "step size"),
    ]
    for bad, message in cases:
        with pytest.raises(DataError, match=message):
            annealed_importance(known.target, known.base, **(good | bad))
    with pytest.raises(DataError, match="dimension"):
        annealed_importance(known.target, MIXTURE_BASE, **good)
    scan = Slice(order="fixed")
    with pytest.raises(DataError, match="reversal"):
        bidirectional(
            known.target, known.base, np.zeros((3, 10)), ladder=[0, 1], kernel=scan, seed=1
        )
    with pytest.raises(DataError, match=r"\(n, D\)"):
        bidirectional(known.target, known.base, np.zeros(10), ladder=[0, 1], seed=1)
    nowhere = function_target("nowhere", lambda x: (np.full(len(x), -np.inf), 0 * x), 10)
    with pytest.raises(DataError, match="support"):
        annealed_importance(nowhere, known.base, **good)
    broken = function_target("broken", lambda x: (np.full(len(x), np.nan), 0 * x), 10)
    with pytest.raises(DataError, match="NaN"):
        annealed_importance(broken, known.base, **good)
