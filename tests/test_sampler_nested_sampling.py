"""Nested sampling: the law of the volumes, ties, moves, and log Z against closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt
import pytest
from calibration import few_and_many, mean_square_bounds
from known_targets import one_dimensional_mixture, ten_dimensional_gaussian
from scipy.stats import chi2, kstest, norm

from harness.arrays import FloatArray, LogDensity
from harness.errors import DataError
from harness.model.python_target import function_target
from harness.path import gaussian_base
from harness.samplers.nested_directions import Differences
from harness.samplers.nested_moves import MOVES, NestedExplorer, default_steps
from harness.samplers.nested_particles import Floor, Particles, PriorAndLikelihood, Rows, no_floor
from harness.samplers.nested_reflections import ReflectingHmc
from harness.samplers.nested_run import (
    NestedRun,
    NestedSettings,
    Summary,
    default_particles,
    nested_run,
    summary,
)
from harness.samplers.nested_sampling import nested_sampling
from harness.samplers.nested_slices import AxisSlices, SliceMoves
from harness.samplers.nested_volumes import (
    Removed,
    integrate,
    log_widths,
    mean_log_volume,
    together,
    weighted_chains,
)
from harness.samplers.parallel_tempering import parallel_tempering


def gaussian(sd: float, dimension: int) -> LogDensity:
    """A normalised spherical Gaussian at the origin."""
    constant = -dimension * (math.log(sd) + 0.5 * math.log(2 * math.pi))

    def density(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return constant - 0.5 * np.square(x / sd).sum(axis=1), -x / sd**2

    return density


def product(prior: LogDensity, likelihood: LogDensity) -> PriorAndLikelihood:
    def target(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        (value, slope), (more, steeper) = prior(x), likelihood(x)
        return value + more, slope + steeper

    return PriorAndLikelihood(prior, target)


def unit_interval(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.where((x[:, 0] >= 0) & (x[:, 0] <= 1), 0.0, -np.inf), np.zeros_like(x)


def removed(log_likelihood: FloatArray, alive: FloatArray) -> Removed:
    size = len(log_likelihood)
    points = np.zeros((size, 1))
    points[:, 0] = np.arange(size)
    particles = Particles(points, np.zeros(size), log_likelihood, np.zeros(size))
    return Removed(particles, np.asarray(alive, dtype=np.intp))


def z_bounds(z: list[float]) -> None:
    """Scores of sound runs: their squares as chi-square says, their mean within 4 errors of 0."""
    low, high = mean_square_bounds(len(z))
    assert low < np.mean(np.square(z)) < high
    assert abs(np.mean(z)) < 4 / np.sqrt(len(z))


# Volumes


def test_widths_are_those_of_the_trapezoidal_rule_and_sum_to_one() -> None:
    volume = np.array([0.9, 0.5, 0.3, 0.02])
    padded = np.array([2 - volume[0], *volume, -volume[-1]])
    expected = 0.5 * (padded[:-2] - padded[2:])
    np.testing.assert_allclose(np.exp(log_widths(np.log(volume))), expected, rtol=1e-12)
    assert expected.sum() == pytest.approx(1)
    assert np.exp(log_widths(np.log([[0.4]]))) == pytest.approx(1)
    assert np.isfinite(log_widths(np.array([-1.0, -2000.0, -2000.5]))).all()


def test_volumes_above_particles_that_are_removed_in_batches() -> None:
    """Uniform volumes themselves: after each removal of 3 of 10, three new ones in what remains."""
    rng, rounds, repeats = np.random.default_rng(1), 4, 4000
    found, alive = np.empty((repeats, 3 * rounds)), np.tile([10, 9, 8], rounds)
    for each in found:
        volume = np.sort(rng.random(10))[::-1]
        for number in range(rounds):
            each[3 * number : 3 * number + 3] = volume[:3]
            volume = np.sort(np.append(volume[3:], volume[2] * rng.random(3)))[::-1]
    log_volume = np.log(found)
    variance = np.cumsum(1 / alive.astype(float) ** 2)
    error = np.sqrt(variance / repeats)
    assert np.all(np.abs(log_volume.mean(axis=0) - mean_log_volume(alive)) < 4.5 * error)
    # A variance of 4000 draws has a relative error of about sqrt(kurtosis / 4000), below 0.05.
    np.testing.assert_allclose(log_volume.var(axis=0), variance, rtol=0.25)


def test_runs_together_have_the_particles_of_all() -> None:
    rng = np.random.default_rng(2)
    runs = []
    for count, size in ((4, 9), (6, 7)):
        likelihood = np.sort(rng.random(size))
        alive = np.append(np.full(size - count, count), np.arange(count, 0, -1))
        runs.append(removed(likelihood, alive))
    both = together(runs)
    assert np.all(np.diff(both.particles.log_likelihood) > 0)
    for value, alive in zip(both.particles.log_likelihood, both.alive, strict=True):
        expected = sum(
            int(run.alive[run.particles.log_likelihood >= value][0])
            for run in runs
            if (run.particles.log_likelihood >= value).any()
        )
        assert alive == expected
    assert both.alive[0] == 10
    assert both.alive[-1] == 1
    assert np.bincount(both.run).tolist() == [9, 7]


def test_log_z_and_its_error_of_given_particles() -> None:
    """Against volumes that are drawn here, a sequence at a time."""
    rng = np.random.default_rng(3)
    log_likelihood, alive = (
        np.sort(rng.normal(size=30)),
        np.append(np.full(20, 10), range(10, 0, -1)),
    )
    found = integrate(removed(log_likelihood, alive), np.random.default_rng(4), paths=4000)
    log_z, share = [], np.zeros(30)
    for _ in range(4000):
        volume = np.cumprod(rng.random(30) ** (1 / alive))
        padded = np.array([2 - volume[0], *volume, -volume[-1]])
        part = 0.5 * (padded[:-2] - padded[2:]) * np.exp(log_likelihood)
        log_z.append(np.log(part.sum()))
        share += part / part.sum() / 4000
    spread = np.std(log_z)
    assert abs(found.log_evidence.value - np.mean(log_z)) < 4 * spread * np.sqrt(2 / 4000)
    assert found.log_evidence.mcse == pytest.approx(spread, rel=4 * np.sqrt(1 / 4000))
    np.testing.assert_allclose(np.exp(found.log_weight), share, atol=4 * 0.5 * np.sqrt(2 / 4000))
    assert np.exp(found.log_weight).sum() == pytest.approx(1)
    assert found.effective == pytest.approx(1 / np.square(np.exp(found.log_weight)).sum())


def test_volumes_that_cannot_be_used() -> None:
    nothing = removed(np.full(3, -np.inf), np.array([3.0, 2.0, 1.0]))
    with pytest.raises(DataError, match="zero at every particle"):
        integrate(nothing, np.random.default_rng(1))
    with pytest.raises(DataError, match="2 sequences of volumes or more; got 1"):
        integrate(removed(np.zeros(1), np.ones(1)), np.random.default_rng(1), paths=1)


def test_chains_hold_each_particle_that_has_weight_once() -> None:
    runs = [removed(np.array([-50.0, 0.0, 1.0]), np.array([3, 2, 1]))]
    runs.append(removed(np.array([-50.0, -50.0, 0.5]), np.array([3, 2, 1])))
    both = together(runs)
    found = integrate(both, np.random.default_rng(1))
    rows, log_weight = weighted_chains(both, found.log_weight, np.random.default_rng(1))
    assert rows.shape == (2, 2)
    assert (both.run[rows] == np.arange(2)[:, None]).all()
    given = rows[np.isfinite(log_weight)]
    assert sorted(given.tolist()) == np.flatnonzero(found.log_weight > -20).tolist()
    assert np.exp(log_weight).sum() == pytest.approx(1, abs=1e-8)


# Ties


def test_the_share_of_keys_above_a_floor() -> None:
    floor = Floor(np.zeros(4), np.full(4, 0.75))
    likelihood = np.array([1.0, 0.0, -1.0, -np.inf])
    np.testing.assert_allclose(np.exp(floor.log_share(likelihood)), [1, 0.25, 0, 0])
    lowest = Floor(np.full(2, -np.inf), np.array([0.5, 1.0]))
    np.testing.assert_allclose(np.exp(lowest.log_share(np.full(2, -np.inf))), [0.5, 0])
    assert no_floor(1).log_share(np.array([-np.inf]))[0] == 0
    many = Floor(np.zeros(4000), np.full(4000, 0.75))
    rng = np.random.default_rng(1)
    assert kstest(many.draw_key(np.zeros(4000), rng), "uniform", (0.75, 0.25)).pvalue > 1e-4
    assert kstest(many.draw_key(np.ones(4000), rng), "uniform").pvalue > 1e-4


def test_values_alone_are_those_beside_gradients() -> None:
    """Also where a density is no number, and whether or not it has a method for values."""
    values = np.array([0.3, -2.0, np.nan, np.inf, -np.inf, 1.0, 7.0])
    prior = np.array([0.1, -0.5, 0.0, 0.0, -1.0, -np.inf, np.nan])
    asked = []

    class Density:
        def __call__(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
            return values[x[:, 0].astype(int)], np.ones_like(x)

        def values(self, x: FloatArray) -> FloatArray:
            asked.append(len(x))
            found: FloatArray = values[x[:, 0].astype(int)]
            return found

    points = np.arange(7.0)[:, None]
    space = PriorAndLikelihood(lambda x: (prior[x[:, 0].astype(int)], np.zeros_like(x)), Density())
    log_prior, slope = space.log_prior(points)
    np.testing.assert_array_equal(space.log_prior_alone(points), log_prior)
    known = log_prior > -np.inf
    beside, _ = space.log_likelihood(points[known], log_prior[known], slope[known])
    alone = space.log_likelihood_alone(points[known], log_prior[known])
    np.testing.assert_array_equal(alone, beside)
    np.testing.assert_allclose(np.exp(alone), np.exp([0.2, -1.5, -np.inf, -np.inf, -np.inf]))
    assert (asked, space.evaluations) == ([5], 10)
    start = space.particles(points, np.random.default_rng(1))
    assert np.isfinite(start.log_likelihood).tolist() == [True, True, *[False] * 5]


class OfStates:
    """Draws of a few states above a floor, without moves: Murray's eq. 4.32 and 4.33."""

    refused = tried = 0

    def __init__(self, share: FloatArray, space: PriorAndLikelihood) -> None:
        self.share, self.space = share, space

    def move(
        self,
        particles: Particles,
        floor: Floor,
        others: list[FloatArray],
        population: Rows,
        parent: Rows,
        rng: np.random.Generator,
    ) -> Particles:
        count = len(particles.key)
        assert len(others) == population.max() + 1
        assert len(parent) == count
        states = np.arange(len(self.share))[:, None].astype(float)
        known = self.space.particles(states, rng).log_likelihood
        allowed = np.array([np.exp(floor.log_share(np.full(count, each))) for each in known])
        weight = np.cumsum(self.share[:, None] * allowed, axis=0)
        state = (rng.random(count) * weight[-1] >= weight).sum(axis=0)
        likelihood = known[state]
        points = state[:, None].astype(float)
        return Particles(points, np.zeros(count), likelihood, floor.draw_key(likelihood, rng))


def of_states(
    share: FloatArray, log_likelihood: FloatArray, seed: int, particles: int
) -> NestedRun:
    """A run on states 0, 1, ..., whose points are their numbers."""

    def prior(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(len(x)), np.zeros_like(x)

    def target(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return log_likelihood[x[:, 0].astype(int)], np.zeros_like(x)

    start = np.random.default_rng([seed, 9]).choice(len(share), size=(1, particles, 1), p=share)
    return nested_run(
        PriorAndLikelihood(prior, target),
        start.astype(float),
        NestedSettings(particles, populations=1),
        make_mover=lambda space, *_: OfStates(share, space),
        seed=seed,
    )


def test_five_states_with_ties_and_a_zero_have_their_log_z() -> None:
    """Two states share a likelihood and one has none; z scores over 40 seeds."""
    share = np.array([0.5, 0.2, 0.2, 0.08, 0.02])
    log_likelihood = np.array([-np.inf, -1.0, -1.0, 0.5, 3.0])
    truth = np.log(share @ np.exp(log_likelihood))
    z = []
    for seed in range(40):
        run = of_states(share, log_likelihood, seed, 40)
        found = summary(run, seed).found
        z.append((found.log_evidence.value - truth) / found.log_evidence.mcse)
    z_bounds(z)


def test_a_population_that_starts_without_likelihood_goes_on() -> None:
    """Three populations, of which the first has no particle where the likelihood is not 0."""
    z = []
    for seed in range(8):

        def start(rng: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
            points = rng.random(shape)
            points[0] = 0.05 + 0.95 * points[0]
            return points

        def likelihood(x: FloatArray) -> tuple[FloatArray, FloatArray]:
            return np.where(x[:, 0] < 0.05, 0.0, -np.inf), np.zeros_like(x)

        said, run = ran(product(unit_interval, likelihood), 1, seed, populations=3, start=start)
        assert np.isfinite(run.removed[0].particles.log_likelihood).any()
        assert all(each.particles.log_likelihood[-1] == 0 for each in run.removed)
        z.append((said.by_population[1].value - math.log(0.05)) / said.by_population[1].mcse)
    z_bounds(z)


def test_a_plateau_is_left_at_its_volume() -> None:
    """Murray's eq. 4.29: 0.5 below x = 0.1 and 0.01 above, 100 log 10 = 230 removals of 100.

    With batches of 25 the volume after s removals has the mean log -s / 86.9, as
    sum of 1 / n over n = 100, ..., 76 is 0.2877.
    """
    counts = []
    for seed in range(30):
        run = of_states(np.array([0.9, 0.1]), np.log([0.01, 0.5]), seed, 100)
        (whole,) = run.removed
        low = int(np.flatnonzero(whole.particles.log_likelihood < np.log(0.1))[-1])
        counts.append(mean_log_volume(whole.alive)[low])
    # log volumes at the edge have variance sum of 1 / n^2, about 230 / 100 / 100.
    assert abs(np.mean(counts) - np.log(0.1)) < 4 * np.sqrt(0.03 / 30)


@few_and_many(6, 40)
def test_a_plateau_of_a_density_has_its_log_z(runs: int) -> None:
    """The same by slice sampling, where log likelihoods are differences with rounding errors."""

    def stepped(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        high = np.linalg.norm(x, axis=1) < norm.isf(0.05)
        return np.where(high, math.log(0.5), math.log(0.01)), np.zeros_like(x)

    truth, z = math.log(0.9 * 0.5 + 0.1 * 0.01), []
    for seed in range(runs):
        said, _ = ran(product(gaussian(1.0, 1), stepped), 1, seed, particles=100)
        z.append((said.found.log_evidence.value - truth) / said.found.log_evidence.mcse)
    z_bounds(z)


# Moves


def in_ball(dimension: int, radius: float, count: int, rng: np.random.Generator) -> FloatArray:
    """Exact draws of a standard Gaussian within a ball."""
    share = chi2.cdf(radius**2, dimension) * rng.random(count)
    direction = rng.standard_normal((count, dimension))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return np.sqrt(chi2.ppf(share, dimension))[:, None] * direction


@pytest.mark.parametrize("explorer", ["slice", "hmc", "axes"])
@pytest.mark.parametrize("tied", [False, True])
def test_moves_leave_the_prior_above_a_floor_as_it_is(explorer: NestedExplorer, tied: bool) -> None:
    """From exact draws within a ball, and with a tie also between it and a larger ball.

    The floor lies on the tie with a key of 0.75, so that the shell counts a quarter.
    """
    dimension, inner, outer, count = 3, 1.2, 2.0, 3000
    rng = np.random.default_rng(5)

    def likelihood(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        square = np.square(x).sum(axis=1)
        if not tied:
            return -0.5 * square, -x
        value = np.where(square < inner**2, 1.0, 0.0)
        return np.where(square < outer**2, value, -1.0), np.zeros_like(x)

    def draws(size: int) -> FloatArray:
        if not tied:
            return in_ball(dimension, inner, size, rng)
        points = in_ball(dimension, outer, 20 * size, rng)
        shell = np.square(points).sum(axis=1) >= inner**2
        chosen: FloatArray = points[~shell | (rng.random(len(points)) < 0.25)][:size]
        return chosen

    space = product(gaussian(1.0, dimension), likelihood)
    floor = Floor(np.full(count, 0.0 if tied else -0.5 * inner**2), np.full(count, 0.75 * tied))
    mover = MOVES[explorer](space, 12, lambda: None)
    zero = np.zeros(count, dtype=np.intp)
    start = space.particles(draws(count), rng)
    others = [draws(200)]
    for _ in range(8):  # which tunes widths and steps
        mover.move(
            start.take(slice(100)), floor.take(zero[:100]), others, zero[:100], zero[:100], rng
        )
    mover.tried = 0
    moved = mover.move(start, floor, others, zero, zero, rng)
    radius, exact = (np.linalg.norm(x, axis=1) for x in (moved.points, draws(20 * count)))
    assert kstest(radius, exact).pvalue > 1e-3
    angle = np.arctan2(moved.points[:, 0], moved.points[:, 1])
    assert kstest(angle, "uniform", (-np.pi, 2 * np.pi)).pvalue > 1e-3
    # They have gone somewhere, and what is known of them is right.
    assert np.abs(np.corrcoef(start.points[:, 0], moved.points[:, 0])[0, 1]) < 0.2
    again = space.particles(moved.points, rng)
    np.testing.assert_allclose(moved.log_prior, again.log_prior)
    np.testing.assert_allclose(moved.log_likelihood, again.log_likelihood)
    assert mover.tried == 12 * count


@pytest.mark.parametrize("order", ["fixed", "random"])
def test_axes_differ_after_a_sweep_in_a_fixed_order_only(
    order: Literal["fixed", "random"],
) -> None:
    """A sweep from the surface of a ball, where the last particle that was removed lay.

    Particles are replications: the difference of the first and the last axis has its error from
    them (Murray 2007, section 4.7.1).
    """
    dimension, count, radius = 3, 3000, 1.0
    rng = np.random.default_rng(9)
    direction = rng.standard_normal((count, dimension))
    surface = 0.999 * radius * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    space = product(gaussian(1.0, dimension), gaussian(1.0, dimension))
    lowest = -0.5 * (radius**2 + dimension * math.log(2 * math.pi))
    floor = Floor(np.full(count, lowest), np.zeros(count))
    mover = AxisSlices(space, dimension, lambda: None, order)
    zero = np.zeros(count, dtype=np.intp)
    others = [in_ball(dimension, radius, 100, rng)]
    moved = mover.move(space.particles(surface, rng), floor, others, zero, zero, rng)
    assert np.all(moved.log_likelihood >= lowest)
    difference = np.square(moved.points[:, 0]) - np.square(moved.points[:, -1])
    score = difference.mean() / difference.std(ddof=1) * np.sqrt(count)
    # Without a difference it lies beyond 4 with probability 6e-5.
    assert (abs(score) > 4) == (order == "fixed")


def test_moves_never_start_from_directions_of_the_particle_itself() -> None:
    """Differences are of two other particles, as the law of the moves needs it."""
    rng = np.random.default_rng(1)
    points = np.eye(12)
    parent = rng.integers(12, size=4000)
    for near in (True, False):
        wanted = np.full((4000, 2), near)
        deal = Differences([points], np.zeros(4000, dtype=np.intp), parent, wanted, rng)
        for slots in (2 * np.arange(4000), 2 * np.arange(4000) + 1):
            direction = deal(slots)
            assert (direction[np.arange(4000), parent] == 0).all()
            assert (np.abs(direction).sum(axis=1) == 2).all()


def test_a_reflected_trajectory_goes_back_the_way_it_came() -> None:
    rng, dimension, count = np.random.default_rng(6), 3, 50
    space = product(gaussian(1.0, dimension), gaussian(0.8, dimension))
    mover = ReflectingHmc(space, 1, lambda: None)
    state = space.particles(in_ball(dimension, 1.0, count, rng), rng)
    edge = np.array([[0.0, 0.0, 1.0]])
    (lowest,) = space.particles(edge, rng).log_likelihood
    floor = Floor(np.full(count, lowest), np.zeros(count))
    cholesky = np.broadcast_to(np.diag([1.0, 0.5, 2.0]), (count, 3, 3))
    step = np.full((count, 1), 0.2)
    momentum = rng.standard_normal((count, dimension))
    end, height, after = mover._trajectory(state, floor, cholesky, step, momentum)
    back, _, before = mover._trajectory(end, floor, cholesky, step, -after)
    np.testing.assert_allclose(back.points, state.points, atol=1e-10)
    np.testing.assert_allclose(before, -momentum, atol=1e-10)
    assert 5 < np.isfinite(height).sum() < count  # some end above the floor, not all


def test_time_that_runs_out_within_moves_leaves_a_sound_run() -> None:
    """Particles that were on their way are dropped, and the volumes know it."""
    settings = NestedSettings(40, populations=1, most_seconds=1e-9)
    space = product(gaussian(1.0, 2), gaussian(0.3, 2))
    start = np.random.default_rng(1).standard_normal((1, 40, 2))
    run = nested_run(space, start, settings, seed=1)
    assert not run.finished
    assert run.left > 1e-3
    (whole,) = run.removed
    assert whole.alive.tolist() == list(range(40, 0, -1))
    assert summary(run, 1).found.log_evidence.mcse > 0


# Log Z


def ran(
    space: PriorAndLikelihood,
    dimension: int,
    seed: int,
    *,
    particles: int = 40,
    populations: int = 1,
    explorer: NestedExplorer = "slice",
    start: Callable[[np.random.Generator, tuple[int, ...]], FloatArray] | None = None,
) -> tuple[Summary, NestedRun]:
    rng = np.random.default_rng([seed, 8])
    shape = (populations, particles, dimension)
    points = rng.standard_normal(shape) if start is None else start(rng, shape)
    settings = NestedSettings(particles, populations, explorer)
    run = nested_run(space, points, settings, seed=seed)
    assert run.finished
    return summary(run, seed), run


def gaussian_truth(dimension: int, sd: float) -> tuple[float, float]:
    """Log Z and H of a Gaussian likelihood at the origin, with a standard Gaussian prior."""
    variance = sd**2 / (1 + sd**2)
    log_z = -0.5 * dimension * math.log(2 * math.pi * (1 + sd**2))
    return log_z, 0.5 * dimension * (variance - 1 - math.log(variance))


@few_and_many(4, 40)
@pytest.mark.parametrize("explorer", ["slice", "hmc"])
@pytest.mark.parametrize("dimension", [1, 5])
def test_gaussians_have_their_log_z_and_information(
    dimension: int, explorer: NestedExplorer, runs: int
) -> None:
    sd, z, information, ranks = 0.1, [], [], []
    log_z, exact = gaussian_truth(dimension, sd)
    for seed in range(runs):
        space = product(gaussian(1.0, dimension), gaussian(sd, dimension))
        said, run = ran(space, dimension, seed, explorer=explorer)
        z.append((said.found.log_evidence.value - log_z) / said.found.log_evidence.mcse)
        information.append(said.found.information)
        ranks.append(run.p_value)
        assert said.found.log_evidence.mcse == pytest.approx(np.sqrt(exact / 40), rel=0.35)
    z_bounds(z)
    # H moves with log Z, whose error is sqrt(H / N), and little besides.
    assert abs(np.mean(information) - exact) < 4 * np.sqrt(exact / 40 / runs)
    assert min(ranks) > 1e-5


@few_and_many(6, 40)
def test_a_bounded_uniform_prior(runs: int) -> None:
    scale, z = 0.02, []
    truth = math.log(scale * -math.expm1(-1 / scale))

    def likelihood(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -x[:, 0] / scale, np.full_like(x, -1 / scale)

    for seed in range(runs):
        said, _ = ran(
            product(unit_interval, likelihood), 1, seed, start=lambda rng, shape: rng.random(shape)
        )
        z.append((said.found.log_evidence.value - truth) / said.found.log_evidence.mcse)
    z_bounds(z)


def two_modes(dimension: int, sd: tuple[float, float], weight: tuple[float, float]) -> LogDensity:
    """Gaussians at 0 and 1 on the first axis."""
    centre = np.zeros((2, dimension))
    centre[1, 0] = 1.0
    constant = np.log(weight) - dimension * (np.log(sd) + 0.5 * np.log(2 * np.pi))

    def density(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        away = x[:, None, :] - centre
        log_part = constant - 0.5 * np.square(away).sum(axis=2) / np.square(sd)
        value = np.logaddexp.reduce(log_part, axis=1)
        share = np.exp(log_part - value[:, None])
        return value, -np.einsum("ik,ikj,k->ij", share, away, np.array(sd) ** -2.0)

    return density


@pytest.mark.parametrize("runs", [1])
def test_two_modes_of_unequal_width_in_ten_dimensions(runs: int) -> None:
    """A first-order transition: the narrow mode has 3/4 of the mass, in 1e-10 of the volume.

    It lies in the wide one, and has next to nothing of the tempered mass until beta is nearly 1.
    """
    dimension = 10
    mode = two_modes(dimension, (1.0, 0.1), (0.25, 0.75))
    base = gaussian(3.0, dimension)
    space, z, share = PriorAndLikelihood(base, mode), [], []
    for seed in range(runs):
        said, _ = ran(
            space, dimension, seed, particles=200, populations=2,
            start=lambda rng, shape: 3.0 * rng.standard_normal(shape),
        )  # fmt: skip
        z.append(said.found.log_evidence.value / said.found.log_evidence.mcse)
        points = said.whole.particles.points
        share.append(np.exp(said.found.log_weight)[in_the_narrow_mode(points)].sum())
    z_bounds(z)
    # Log odds of the modes have an error of at most sqrt(H / N), with H below 35 and N = 400.
    odds = np.log(np.array(share) / (1 - np.array(share))) - np.log(3)
    assert abs(np.mean(odds)) < 4 * np.sqrt(35 / 400 / runs)


def in_the_narrow_mode(points: FloatArray) -> npt.NDArray[np.bool_]:
    """Within 0.7 of it, where the wide mode has a probability of 2e-5."""
    centre = np.zeros(points.shape[-1])
    centre[0] = 1.0
    return np.asarray(np.linalg.norm(points - centre, axis=-1) < 0.7)


@pytest.mark.slow
def test_tempering_misses_the_narrow_mode() -> None:
    """Parallel tempering with as many gradients has 3/4 of its draws there only by luck."""
    dimension = 10
    target = function_target("modes", two_modes(dimension, (1.0, 0.1), (0.25, 0.75)), dimension)
    base = gaussian_base(np.zeros(dimension), 9 * np.eye(dimension))
    nested = nested_sampling(target, base, particles=1000, populations=2, seed=1)
    ladder = np.concatenate([[0.0], np.geomspace(1e-3, 1.0, 11)])
    scans = nested.gradients // (11 * 5 * 8)
    fit = parallel_tempering(
        target, base, ladder=ladder, chains=8, draws=scans // 2, warmup=scans // 2, seed=1
    )
    assert fit.gradients > 0.9 * nested.gradients
    share = in_the_narrow_mode(fit.posterior["x"].to_numpy()).mean()
    assert share < 0.1
    assert fit.log_evidence is not None
    # The wide mode alone: log 1/4.
    assert abs(fit.log_evidence.value - math.log(0.25)) < 0.3
    assert abs(in_the_narrow_mode(nested.posterior["x"].to_numpy()).mean() - 0.75) < 0.3


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [1, 5, 10])
def test_another_program_says_the_same(dimension: int) -> None:
    """Dynesty on two Gaussian peaks of unequal weight and width."""
    dynesty = pytest.importorskip("dynesty")
    mode, prior = two_modes(dimension, (0.3, 0.2), (0.4, 0.6)), gaussian(1.0, dimension)
    space = PriorAndLikelihood(prior, mode)
    said, _ = ran(space, dimension, 1, particles=100, populations=4)

    def log_likelihood(x: FloatArray) -> float:
        return float(mode(x[None])[0][0] - prior(x[None])[0][0])

    other = dynesty.NestedSampler(
        log_likelihood, norm.ppf, dimension, nlive=400, sample="rslice",
        rstate=np.random.default_rng(2),
    )  # fmt: skip
    other.run_nested(print_progress=False)
    theirs, error = float(other.results.logz[-1]), float(other.results.logzerr[-1])
    ours = said.found.log_evidence
    assert abs(ours.value - theirs) < 4 * math.hypot(ours.mcse, error)
    assert abs(said.found.information - float(other.results.information[-1])) < 4 * error


# The method


def test_the_method_gives_a_fit_of_known_targets() -> None:
    for known in (ten_dimensional_gaussian(), one_dimensional_mixture()):
        fit = nested_sampling(known.target, known.base, particles=40, populations=2, seed=3)
        assert fit.log_evidence is not None
        assert abs(fit.log_evidence.value - known.log_z) < 4 * fit.log_evidence.mcse
        mean = fit.expectation(lambda draws: draws["x"])
        assert np.all(np.abs(mean.value - known.mean) < 5 * mean.mcse)
        attrs = fit.tree.attrs
        assert len(attrs["nested_log_evidence"]) == 2
        assert attrs["nested_effective_draws"] > 100
        assert fit.gradients > 0
    again = nested_sampling(known.target, known.base, particles=40, populations=2, seed=3)
    assert again.posterior.equals(fit.posterior)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"particles": 7}, "8 particles, 1 population and 1 step or more; got 7"),
        ({"steps": 0}, "nested sampling needs 8 particles"),
        ({"explorer": "nuts"}, "the explorer must be one of slice, hmc, axes; got 'nuts'"),
        ({"particles": 12}, "more particles than dimensions: each population has 12 in 10"),
    ],
)
def test_settings_that_are_refused(given: dict[str, object], message: str) -> None:
    known = ten_dimensional_gaussian()
    with pytest.raises(DataError, match=message):
        nested_sampling(known.target, known.base, seed=1, **given)  # type: ignore[arg-type]


def test_a_density_that_is_zero_at_all_draws_of_the_base_is_refused() -> None:
    def nowhere(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full(len(x), -np.inf), np.zeros_like(x)

    with pytest.raises(DataError, match="the likelihood is zero at all 1,000 draws of the prior"):
        nested_sampling(
            function_target("none", nowhere, 2), gaussian_base([0.0] * 2, np.eye(2)), seed=1
        )


def test_a_constant_likelihood_needs_no_step() -> None:
    def constant(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full(len(x), 1.5), np.zeros_like(x)

    said, run = ran(product(gaussian(1.0, 2), constant), 2, 1)
    assert run.iterations == 0
    assert said.found.log_evidence.value == pytest.approx(1.5)
    assert said.found.information == pytest.approx(0, abs=1e-9)


def test_slices_that_shrink_to_nothing_are_counted() -> None:
    """A prior that has density at no other point."""
    rng = np.random.default_rng(1)
    start = rng.standard_normal((20, 1))

    def atoms(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.where(np.isin(x[:, 0], start[:, 0]), 0.0, -np.inf), np.zeros_like(x)

    space = PriorAndLikelihood(atoms, atoms)
    mover = SliceMoves(space, 1, lambda: None)
    rows = np.arange(5)
    particles = space.particles(start[:5], rng)
    moved = mover.move(particles, no_floor(5), [start], np.zeros(5, dtype=np.intp), rows, rng)
    np.testing.assert_array_equal(moved.points, particles.points)
    assert mover.refused == mover.tried == 5


def test_default_numbers_follow_from_the_dimension() -> None:
    assert [default_particles(dimension) for dimension in (1, 50, 80)] == [250, 250, 400]
    steps = [default_steps("slice", 20, survivors) for survivors in (30, 60, 188, 10_000)]
    assert steps == [275, 73, 65, 65]
    assert [default_steps("hmc", dimension, 100) for dimension in (1, 6, 20)] == [6, 6, 20]
    assert default_steps("axes", 20, 100) == 100


@pytest.mark.slow
@pytest.mark.parametrize(("particles", "explorer"), [(40, "slice"), (100, "slice"), (100, "hmc")])
def test_log_z_is_calibrated_in_twenty_dimensions(particles: int, explorer: NestedExplorer) -> None:
    """Forty runs with default steps, as populations of one; 40 seconds of processor time each.

    With 2 particles a dimension and a quarter of these slices, scores have a mean above 2.
    """
    runs, dimension, sd = 40, 20, 0.1
    log_z, _ = gaussian_truth(dimension, sd)
    space = product(gaussian(1.0, dimension), gaussian(sd, dimension))
    start = np.random.default_rng(11).standard_normal((runs, particles, dimension))
    run = nested_run(space, start, NestedSettings(particles, runs, explorer), seed=1)
    score = np.array([(e.value - log_z) / e.mcse for e in summary(run, 1).by_population])
    assert abs(score.mean()) < 3 / np.sqrt(runs)
    # A variance of 40 scores has a relative standard error of sqrt(2 / 39) = 0.23.
    assert 0.6 < score.var(ddof=1) < 1.6
    assert run.p_value > 1e-4
