"""Kernels leave the tempered densities invariant, get there, and tune themselves in warm-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pytest
from scipy.stats import kstest, norm
from tempered_truth import Tempered, gaussian_case, mixture_case

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.model.python_target import function_target
from harness.path import gaussian_base
from harness.samplers.annealed_importance import annealed_importance
from harness.samplers.geometric_path import GeometricPath, State
from harness.samplers.kernels import (
    Hmc,
    Kernel,
    PartialHmc,
    RandomWalk,
    Slice,
    StepSizes,
    mala,
)

CHAINS = 8000
TRANSITIONS = 3
ERROR = 1e-3
"""Probability that a correct kernel fails a test, shared among its comparisons."""

# Step sizes with an acceptance well below one, so that a wrong one shows.
KERNELS: dict[str, tuple[Kernel, float]] = {
    "hmc": (Hmc(leapfrog_steps=3), 0.9),
    "mala": (mala(), 1.1),
    "random walk": (RandomWalk(), 1.2),
    "slice": (Slice(most_widths=3), 0.4),
    "slice of one width": (Slice(most_widths=1), 2.5),
}
CASES: dict[str, Callable[[], Tempered]] = {"gaussian": gaussian_case, "mixture": mixture_case}


def assert_distribution(
    case: Tempered, points: FloatArray, beta: float, comparisons: int, momentum: FloatArray
) -> None:
    """Kolmogorov-Smirnov on each direction, and on each momentum."""
    exact = case.exact(beta)
    for cdf in exact.cdfs:
        assert kstest(cdf(points), "uniform").pvalue > ERROR / comparisons
    for column in momentum.T:
        assert kstest(column, norm.cdf).pvalue > ERROR / comparisons


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_exact_draws_stay_exact_at_every_inverse_temperature(kernel: str, case: str) -> None:
    move, step = KERNELS[kernel]
    tempered = CASES[case]()
    rng = np.random.default_rng(len(kernel) + 100 * len(case))
    ladder = (0.0, 0.3, 1.0)
    path = GeometricPath(tempered.target, tempered.base)
    # All inverse temperatures in one batch, as samplers along the path have them.
    beta = np.repeat(ladder, CHAINS)
    starts = [tempered.exact(each).draw(CHAINS, rng) for each in ladder]
    begin = state = path.start(np.concatenate(starts))
    acceptance = []
    for _ in range(TRANSITIONS):
        moved = move.move(path, state, beta, step, rng)
        state = moved.state
        acceptance.append(moved.acceptance)
    distinct = np.mean(np.any(state.points != begin.points, axis=1))
    assert distinct > 0.5
    if not isinstance(move, Slice):
        assert 0.2 < np.mean(acceptance) < 0.97
    consistent(path, state)
    number = len(ladder) * tempered.target.dimension
    for each in ladder:
        points = state.points[beta == each]
        assert_distribution(tempered, points, each, number, np.empty((0, 0)))


@pytest.mark.parametrize("case", CASES)
def test_partial_refreshment_leaves_points_and_momenta_invariant(case: str) -> None:
    kernel = PartialHmc(Hmc(leapfrog_steps=2, jitter=0.1), persistence=0.8)
    tempered = CASES[case]()
    rng = np.random.default_rng(7)
    ladder = (0.0, 0.3, 1.0)
    path = GeometricPath(tempered.target, tempered.base)
    beta = np.repeat(ladder, CHAINS)
    starts = [tempered.exact(each).draw(CHAINS, rng) for each in ladder]
    state = path.start(np.concatenate(starts))
    momentum = kernel.start(state, rng)
    acceptance = []
    for _ in range(2 * TRANSITIONS):
        moved = kernel.move(path, state, momentum, beta, 0.9, rng)
        state, momentum = moved.state, moved.momentum
        acceptance.append(moved.acceptance)
    assert 0.2 < np.mean(acceptance) < 0.97
    consistent(path, state)
    number = len(ladder) * 2 * tempered.target.dimension
    for each in ladder:
        rows = beta == each
        assert_distribution(tempered, state.points[rows], each, number, momentum[rows])


def test_momenta_are_kept_and_turned_where_a_proposal_is_refused() -> None:
    tempered = gaussian_case()
    path = GeometricPath(tempered.target, tempered.base)
    rng = np.random.default_rng(3)
    state = path.start(tempered.exact(1.0).draw(200, rng))
    kernel = PartialHmc(Hmc(leapfrog_steps=1, jitter=0.0), persistence=1 - 1e-15)
    momentum = kernel.start(state, rng)
    refused = kernel.move(path, state, momentum, 1.0, 50.0, rng)
    stayed = np.all(refused.state.points == state.points, axis=1)
    assert stayed.all()
    np.testing.assert_allclose(refused.momentum, -momentum, atol=1e-6)
    small = kernel.move(path, state, momentum, 1.0, 1e-3, rng)
    assert np.mean(np.sum(small.momentum * momentum, axis=1) > 0) > 0.99


def test_no_persistence_is_hmc() -> None:
    tempered = gaussian_case()
    state = GeometricPath(tempered.target, tempered.base).start(
        tempered.exact(1.0).draw(50, np.random.default_rng(0))
    )
    hmc = Hmc(leapfrog_steps=3)
    path = GeometricPath(tempered.target, tempered.base)
    moved = hmc.move(path, state, 0.7, 0.8, np.random.default_rng(1))
    kept = PartialHmc(hmc, persistence=0.0).move(
        path, state, np.full((50, 3), 9.0), 0.7, 0.8, np.random.default_rng(1)
    )
    np.testing.assert_array_equal(moved.state.points, kept.state.points)
    np.testing.assert_array_equal(moved.acceptance, kept.acceptance)


@pytest.mark.parametrize("kernel", KERNELS)
def test_chains_from_elsewhere_reach_the_target(kernel: str) -> None:
    move, step = KERNELS[kernel]
    tempered = gaussian_case()
    rng = np.random.default_rng(5)
    path = GeometricPath(tempered.target, tempered.base)
    state = path.start(tempered.base.mean + 4 + rng.normal(size=(2000, 3)))
    for _ in range(120):
        state = move.move(path, state, 1.0, 0.5 * step, rng).state
    for cdf in tempered.exact(1.0).cdfs:
        assert kstest(cdf(state.points), "uniform").pvalue > ERROR / 3


def test_mala_is_the_metropolis_adjusted_langevin_proposal() -> None:
    """Acceptance of one leapfrog step is the ratio with Langevin proposal densities."""
    tempered = gaussian_case()
    path = GeometricPath(tempered.target, tempered.base)
    state = path.start(tempered.exact(1.0).draw(40, np.random.default_rng(2)))
    step, beta = 0.9, 0.6
    moved = mala().move(path, state, beta, step, np.random.default_rng(4))
    # The same draws: jitter's uniforms first, then momenta.
    rng = np.random.default_rng(4)
    rng.uniform(size=40)
    cholesky = tempered.base.cholesky
    whiten = np.linalg.inv(cholesky)

    def drifted(at: State) -> FloatArray:
        slope: FloatArray = path.gradient(at, beta) @ cholesky
        return at.points @ whiten.T + 0.5 * step**2 * slope

    noise = rng.standard_normal((40, 3))
    proposed = path.state((drifted(state) + step * noise) @ cholesky.T)
    there, back = drifted(state), drifted(proposed)
    forth_log = np.sum(norm.logpdf(proposed.points @ whiten.T, there, step), axis=1)
    back_log = np.sum(norm.logpdf(state.points @ whiten.T, back, step), axis=1)
    log_ratio = path.log_density(proposed, beta) + back_log
    log_ratio -= path.log_density(state, beta) + forth_log
    np.testing.assert_allclose(moved.acceptance, np.exp(np.minimum(0, log_ratio)), rtol=1e-9)


def test_a_slice_stays_inside_the_support() -> None:
    """Uniform on a box: the target is not finite outside it, where no gradient is."""
    tempered = mixture_case()
    path = GeometricPath(tempered.target, tempered.base)
    rng = np.random.default_rng(8)
    state = path.start(np.full((500, 1), 29.9))
    for _ in range(5):
        state = Slice().move(path, state, 0.0, 20.0, rng).state
    assert np.all(np.abs(state.points) < 30)
    assert np.all(np.isfinite(state.log_gamma))


@pytest.mark.parametrize("kernel", ["hmc", "mala", "random walk"])
def test_warm_up_reaches_the_target_acceptance_of_each_group(kernel: str) -> None:
    move = KERNELS[kernel][0]
    tempered = gaussian_case()
    rng = np.random.default_rng(6)
    path = GeometricPath(tempered.target, tempered.base)
    beta = np.repeat([0.0, 1.0], 50)
    group = np.repeat(np.arange(2), 50)
    state = path.start(tempered.base.sample(rng, 100))
    steps = StepSizes(2, 0.1, move.target_acceptance)
    for _ in range(300):
        moved = move.move(path, state, beta, steps.current(group), rng)
        steps.learn(group, moved.acceptance)
        state = moved.state
    tuned, seen = steps.tuned(group), []
    for _ in range(200):
        moved = move.move(path, state, beta, tuned, rng)
        state = moved.state
        seen.append(moved.acceptance)
    for each in range(2):
        mean = np.mean(np.array(seen)[:, group == each])
        assert abs(mean - move.target_acceptance) < 0.07


def test_a_slice_width_is_left_alone() -> None:
    steps = StepSizes(1, 0.7, Slice().target_acceptance)
    group = np.zeros(3, dtype=np.intp)
    steps.learn(group, np.ones(3))
    np.testing.assert_allclose(steps.current(group), 0.7)
    np.testing.assert_allclose(steps.tuned(group), 0.7)


def test_bad_settings_are_refused() -> None:
    for bad in (-0.1, 1.0):
        with pytest.raises(DataError, match="persistence"):
            PartialHmc(persistence=bad)
    with pytest.raises(DataError, match="target_acceptance"):
        RandomWalk(target_acceptance=0)
    with pytest.raises(DataError, match="width"):
        Slice(most_widths=0)


def consistent(path: GeometricPath, state: State) -> None:
    """What a state knows of its points is true of them, whichever rows were accepted."""
    again = path.state(state.points)
    for name in ("log_gamma", "log_base", "log_gamma_gradient", "log_base_gradient"):
        np.testing.assert_allclose(getattr(state, name), getattr(again, name), atol=1e-9)


@pytest.mark.parametrize("order", ["fixed", "random"])
def test_axes_differ_after_sweeps_in_a_fixed_order_only(order: Literal["random", "fixed"]) -> None:
    """Murray (2007, section 4.7.1): of chains that are not in equilibrium, although axes are alike.

    The target is symmetric in its axes, but they are correlated: on a spherical Gaussian slices
    treat each axis as if there were no other, so that their order does not matter.  Chains are
    replications: the difference of the first and the last axis has its error from them.
    """
    dimension, correlation, chains = 3, -0.4, 2000
    precision = np.linalg.inv(np.full((dimension,) * 2, correlation) + 1.4 * np.eye(dimension))
    fit = annealed_importance(
        function_target(
            "symmetric", lambda x: (-0.5 * ((x @ precision) * x).sum(axis=1), -x @ precision), 3
        ),
        gaussian_base(np.zeros(dimension), 100 * np.eye(dimension)),
        ladder=[0, 0.5, 1],
        chains=chains,
        kernel=Slice(order=order),
        step_size=1.0,
        seed=4,
    )
    ends = np.log(np.square(fit.tree["extended"]["x"].to_numpy()[0]))
    difference = ends[:, 0] - ends[:, -1]
    score = difference.mean() / difference.std(ddof=1) * np.sqrt(chains)
    # Without a difference it lies beyond 4 with probability 6e-5.
    assert (abs(score) > 4) == (order == "fixed")


@pytest.mark.parametrize("setting", [{"most_widths": 0}, {"order": "descending"}])
def test_slices_with_settings_that_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"slice|order"):
        Slice(**setting)
