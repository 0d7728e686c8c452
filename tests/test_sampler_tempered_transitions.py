"""Tempered transitions: their transition matrices on three states, summed over every path."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from discrete_walk import DiscreteWalk, record_directions, scanning_walk
from known_targets import ten_unit_relaxation
from log_gaussian import log_gaussian
from scipy.stats import norm
from tempered_truth import MIXTURE, MIXTURE_BASE, gaussian_target, mixture_case

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.model.python_target import function_target
from harness.path import gaussian_base
from harness.samplers.annealing import AnnealingKernel, anneal
from harness.samplers.kernels import Hmc, PartialHmc, Slice
from harness.samplers.tempered_transitions import (
    TEMPERED_TRANSITIONS,
    Variant,
    excursion,
    tempered_transitions,
)

LADDER = np.array([0.0, 0.3, 1.0])


def operator(walk: DiscreteWalk, variant: Variant, *, mirrored: bool) -> FloatArray:
    """Transition matrix of one excursion, row to column, rejections on the diagonal."""
    paths = walk.all_paths(2 * (len(walk.ladder) - 1))
    end, log_ratio = excursion(walk, walk.ladder, paths, variant, np.full(len(paths.way), mirrored))
    assert end.moves == paths.way.shape[1] - 1
    accepted = end.probability * np.exp(np.minimum(0.0, log_ratio))
    matrix = np.zeros((3, 3))
    np.add.at(matrix, (paths.here, end.here), accepted)
    np.add.at(matrix, (paths.here, paths.here), end.probability - accepted)
    assert matrix.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-13)
    return matrix


def flow(walk: DiscreteWalk, matrix: FloatArray) -> FloatArray:
    between: FloatArray = walk.density[-1][:, None] * matrix
    return between


def test_the_walk_is_what_the_tests_need() -> None:
    """Transitions leave each rung's density invariant, and are not reversible."""
    walk = scanning_walk(LADDER)
    for density, forward, backward in zip(
        walk.density, walk.transition, walk.reversal, strict=True
    ):
        assert density @ forward == pytest.approx(density, abs=1e-15)
        assert backward.sum(axis=1) == pytest.approx(np.ones(3), abs=1e-14)
        assert np.abs(forward - backward).max() > 0.05


@pytest.mark.parametrize("mirrored", [False, True])
def test_paired_excursions_satisfy_detailed_balance(mirrored: bool) -> None:
    walk = scanning_walk(LADDER)
    between = flow(walk, operator(walk, "paired", mirrored=mirrored))
    assert between == pytest.approx(between.T, abs=1e-16)
    assert between[0, 1] > 1e-3


def test_forward_excursions_satisfy_detailed_balance_with_a_coin_only() -> None:
    walk = scanning_walk(LADDER)
    one, other = (operator(walk, "forward", mirrored=side) for side in (False, True))
    coin = flow(walk, (one + other) / 2)
    assert coin == pytest.approx(coin.T, abs=1e-16)
    # What they accept mirrors each other; what they refuse does not, and either alone is wrong.
    between, mirrored = flow(walk, one), flow(walk, other)
    off = ~np.eye(3, dtype=bool)
    assert between[off] == pytest.approx(mirrored.T[off], abs=1e-16)
    for each in (one, other):
        assert np.abs(walk.density[-1] @ each - walk.density[-1]).max() > 1e-3


def test_the_forward_operator_alone_misses_the_target_by_what_can_be_worked_out_by_hand() -> None:
    """One cyclic shift on three states, from an even density to (1, 2, 3) / 6.

    From state i the excursion comes to i + 2 with the ratio of the target's probabilities:
    1 to 3 always, 2 to 1 in half of the cases, 3 to 2 in two thirds of them.
    """
    shift = np.roll(np.eye(3), 1, axis=1)
    rise = np.log([0.5, 1.0, 1.5])
    walk = DiscreteWalk(np.full(3, 1 / 3), rise, np.array([0.0, 1.0]), np.tile(shift, (2, 1, 1)))
    assert walk.density[-1] == pytest.approx(np.array([1, 2, 3]) / 6)
    one, other = (operator(walk, "forward", mirrored=side) for side in (False, True))
    assert walk.density[-1] @ one == pytest.approx([1 / 6, 1 / 2, 1 / 3])
    assert walk.density[-1] @ (one + other) / 2 == pytest.approx(walk.density[-1], abs=1e-15)


def test_single_passes_leave_annealing_runs_at_the_target_invariant() -> None:
    """The chain's state is a whole run, whose law at equilibrium is Q(X) w(X) / Z."""
    walk = scanning_walk(np.array([0.0, 0.2, 0.7, 1.0]))
    start = walk.all_paths(2)
    end, log_weight = anneal(walk, walk.ladder, start, np.zeros(len(start.way), bool))
    proposed = walk.base[start.here] * end.probability
    matrix = proposed * np.exp(np.minimum(0.0, log_weight - log_weight[:, None]))
    matrix[np.diag_indices(len(matrix))] += 1 - matrix.sum(axis=1)
    weighted = proposed * np.exp(log_weight)
    law = weighted / weighted.sum()
    assert law @ matrix == pytest.approx(law, abs=1e-15)
    assert np.bincount(end.here, weights=law) == pytest.approx(walk.density[-1], abs=1e-14)


@pytest.mark.parametrize("variant", get_args(Variant))
def test_the_sampler_goes_up_and_down_in_the_directions_that_were_proved(
    variant: Variant, monkeypatch: pytest.MonkeyPatch
) -> None:
    directions = record_directions(monkeypatch)
    iterations, chains = 25, 40
    tempered_transitions(
        mixture_case().target,
        MIXTURE_BASE,
        ladder=[0, 0.5, 1],
        variant=variant,
        chains=chains,
        draws=iterations,
        warmup=0,
        moves=0,
        kernel=PartialHmc(),
        step_size=0.2,
        seed=1,
    )
    assert not directions.pop(0).any()  # the annealing run that chains start from
    if variant == "single_pass":
        assert len(directions) == iterations
        assert not np.any(directions)
        return
    up, down = np.array(directions).reshape(iterations, 2, chains).swapaxes(0, 1)
    if variant == "paired":
        assert up.all()
        assert not down.any()
        return
    # A fair coin for each of 1,000 proposals: 4 standard errors are 0.063.
    assert np.array_equal(up, down)
    assert abs(up.mean() - 0.5) < 0.063


VARIANTS: list[tuple[Variant, AnnealingKernel]] = [
    ("paired", Hmc(leapfrog_steps=3)),
    ("paired", PartialHmc(Hmc(leapfrog_steps=3))),
    ("forward", PartialHmc(Hmc(leapfrog_steps=3))),
    ("single_pass", PartialHmc()),
]


@pytest.mark.parametrize(("variant", "kernel"), VARIANTS)
def test_draws_are_of_the_mixture(variant: Variant, kernel: AnnealingKernel) -> None:
    fit = tempered_transitions(
        mixture_case().target,
        MIXTURE_BASE,
        ladder=np.linspace(0, 1, 11),
        variant=variant,
        chains=100,
        draws=100,
        warmup=10,
        kernel=kernel,
        step_size=0.3,
        seed=3,
    )
    assert fit.posterior["x"].shape == (100, 100, 1)
    accepted = float(fit.sample_stats["accepted"].mean())
    assert 0.1 < accepted < 0.98
    weight, (left, right), (narrow, wide) = MIXTURE.weight, MIXTURE.mean[:, 0], MIXTURE.sd
    known = [
        (MIXTURE.truth.expected("x")[0], fit.expectation(lambda draws: draws["x"][..., 0])),
        (
            MIXTURE.truth.expected("x_squared")[0],
            fit.expectation(lambda draws: draws["x"][..., 0] ** 2),
        ),
        (
            weight @ norm.cdf([(-1 - left) / narrow, (-1 - right) / wide]),
            fit.expectation(lambda draws: (draws["x"][..., 0] < -1).astype(float)),
        ),
    ]
    for truth, estimate in known:
        assert estimate.mcse < 0.1
        assert abs(estimate.value - truth) < 4 * estimate.mcse


def test_moments_of_a_gaussian() -> None:
    target, mean, covariance = gaussian_target(10, log_z=2.0)
    fit = tempered_transitions(
        target,
        gaussian_base(np.zeros(10), 2.0 * np.eye(10)),
        ladder=np.linspace(0, 1, 11),
        chains=50,
        draws=100,
        seed=1,
    )
    bound = norm.isf(1e-4 / 20)
    for truth, estimate in (
        (mean, fit.expectation(lambda draws: draws["x"])),
        (np.diag(covariance) + mean**2, fit.expectation(lambda draws: draws["x"] ** 2)),
    ):
        assert np.all(np.abs(estimate.value - truth) < bound * estimate.mcse)


@pytest.mark.parametrize("variant", get_args(Variant))
def test_draws_are_of_the_relaxation(variant: Variant) -> None:
    """Whose modes are far apart: the mean against the sum over all states of the machine."""
    known = ten_unit_relaxation()
    fit = tempered_transitions(
        known.target,
        known.base,
        ladder=np.linspace(0, 1, 21),
        variant=variant,
        chains=60,
        draws=60,
        warmup=10,
        kernel=PartialHmc(Hmc(leapfrog_steps=3)),
        seed=4,
    )
    assert 0.1 < float(fit.sample_stats["accepted"].mean()) < 0.98
    mean = fit.expectation(lambda draws: draws["x"])
    # The largest of D normal scores, three variants: one run in 10^4 is beyond.
    bound = norm.isf(1e-4 / (2 * 3 * known.mean.size))
    assert np.all(np.abs(mean.value - known.mean) < bound * mean.mcse)
    sd = fit.posterior["x"].std(("chain", "draw")).to_numpy()
    assert np.all(mean.mcse < 0.25 * sd)  # no run that is stuck


@pytest.mark.parametrize("variant", get_args(Variant))
def test_same_seed_same_draws(variant: Variant) -> None:
    def draws(seed: int) -> FloatArray:
        fit = tempered_transitions(
            mixture_case().target,
            MIXTURE_BASE,
            ladder=[0, 0.5, 1],
            variant=variant,
            chains=3,
            draws=5,
            warmup=0,
            kernel=PartialHmc(),
            seed=seed,
        )
        return fit.posterior["x"].to_numpy()

    assert np.array_equal(draws(1), draws(1))
    assert not np.array_equal(draws(1), draws(2))


def test_an_experiment_runs_it_on_a_model() -> None:
    model, truth = log_gaussian()
    base = gaussian_base(truth.mean + 0.3, 2 * truth.covariance)
    fit = TEMPERED_TRANSITIONS.sample(
        model,
        nuts=None,
        seed=1,
        compiled=None,
        base=base,
        ladder=[0, 0.5, 1],
        chains=4,
        draws=20,
        warmup=2,
        step_size=0.3,
    )
    assert set(fit.posterior) == {"x", "scale"}
    assert float(fit.posterior["scale"].min()) > 0
    # Starts, 22 iterations of two moves at beta = 1/2, one at 1, and two fresh draws.
    assert fit.gradients == 4 * (1 + 5 + 22 * (3 * 5 + 2))


def test_bad_input_is_one_clear_error() -> None:
    target = mixture_case().target
    good: dict[str, Any] = {"ladder": [0, 0.5, 1], "chains": 2, "draws": 5, "seed": 1}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ladder": []}, "ladder"),
        ({"ladder": [0, 0.5]}, "ladder"),
        ({"variant": "reverse"}, "variant"),
        ({"chains": 0}, "chain"),
        ({"draws": 0}, "draw"),
        ({"kernel": Slice(order="fixed")}, "reversal"),
        ({"step_size": np.inf}, "step size"),
    ]
    for bad, message in cases:
        with pytest.raises(DataError, match=message):
            tempered_transitions(target, MIXTURE_BASE, **(good | bad))
    nowhere = function_target("nowhere", lambda x: (np.full(len(x), -np.inf), 0 * x), 1)
    with pytest.raises(DataError, match="support"):
        tempered_transitions(nowhere, MIXTURE_BASE, **good)
