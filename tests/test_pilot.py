"""The pilot against closed forms: log Z along the whole path, its error, points and bases."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from calibration import few_and_many
from log_gaussian import log_gaussian
from scipy.integrate import quad
from scipy.stats import ks_2samp, norm

from harness.arrays import FloatArray, LogDensity
from harness.errors import DataError, SamplingError
from harness.evidence import log_mean_weight
from harness.models.gaussian_mixture import GaussianMixture
from harness.path import (
    GaussianBase,
    Pilot,
    PilotSettings,
    gaussian_base,
    particles_by_parameter,
    pilot,
    pilot_of_density,
    starting_values,
)
from harness.path.moves import HmcMoves

LOG_Z = 3.25
WEIGHT, MEAN, SD = np.array([0.3, 0.7]), np.array([-2.0, 2.5]), np.array([0.3, 0.7])
BASE = gaussian_base([0.4], [[6.0]], log_zeta=1.0)
SMALL = PilotSettings(particles=512)


def mixture(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """exp(LOG_Z) times a mixture in one dimension, unequal in weights and widths."""
    z = (points - MEAN) / SD
    log_component = np.log(WEIGHT / SD) - 0.5 * z**2
    value = np.logaddexp(log_component[:, 0], log_component[:, 1])
    gradient = -(np.exp(log_component - value[:, None]) * z / SD).sum(axis=1, keepdims=True)
    return value - 0.5 * np.log(2 * np.pi) + LOG_Z, gradient


def gaussian_target(truth: GaussianBase) -> LogDensity:
    def log_density(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        return truth.log_density(points) + truth.log_zeta, truth.log_density_gradient(points)

    return log_density


def gaussian_path(base: GaussianBase, truth: GaussianBase, beta: float) -> float:
    """Log Z(beta) of the path between two Gaussians, by completing the square."""
    total, precision, shift = 0.0, np.zeros(base.covariance.shape), np.zeros(base.mean.size)
    for share, end in ((1 - beta, base), (beta, truth)):
        own = np.linalg.inv(end.covariance)
        precision += share * own
        shift += share * own @ end.mean
        total -= 0.5 * share * (end.mean @ own @ end.mean - np.linalg.slogdet(own)[1])
    total += 0.5 * (shift @ np.linalg.solve(precision, shift) - np.linalg.slogdet(precision)[1])
    return float(total + beta * (truth.log_zeta - base.log_zeta))


def test_a_gaussian_path_has_the_log_z_that_completing_the_square_gives() -> None:
    rng = np.random.default_rng(3)
    root = rng.normal(size=(4, 4))
    truth = gaussian_base(rng.normal(size=4), root @ root.T / 4 + 0.1 * np.eye(4), log_zeta=-40)
    base = gaussian_base(np.zeros(4), 4 * np.eye(4), log_zeta=-35)
    made = pilot_of_density(gaussian_target(truth), base, settings=SMALL, seed=5)
    assert made.inv_temp[0] == 0
    assert made.inv_temp[-1] == 1
    assert np.all(np.diff(made.inv_temp) > 0)
    assert 0 < made.log_evidence.mcse < 0.2
    assert abs(made.log_evidence.value - truth.log_zeta) < 4 * made.log_evidence.mcse
    # The path that is reported starts from a base whose zeta is the estimate.
    assert made.base.log_zeta == made.log_evidence.value
    assert made.refined_base.log_zeta == made.log_evidence.value
    assert np.array_equal(made.base.mean, base.mean)
    exact = [gaussian_path(made.base, truth, beta) for beta in made.inv_temp]
    # Each value errs as the estimate at its rung and as beta times the one at the end.
    assert np.all(np.abs(made.log_normaliser - exact) < 8 * made.log_evidence.mcse)
    assert np.ptp(exact) > 12 * made.log_evidence.mcse
    assert made.log_normaliser[[0, -1]] == pytest.approx([0, 0], abs=1e-10)


@pytest.fixture(scope="module")
def runs() -> list[Pilot]:
    settings = PilotSettings(particles=256, leapfrog_steps=5)
    return [pilot_of_density(mixture, BASE, settings=settings, seed=s) for s in range(40)]


def test_the_error_of_log_z_is_honest(runs: list[Pilot]) -> None:
    z = np.array([(run.log_evidence.value - LOG_Z) / run.log_evidence.mcse for run in runs])
    assert 0.6 < z.var(ddof=1) < 1.6
    assert abs(z.mean()) < 4 * z.std() / np.sqrt(len(z))


def test_g_makes_the_inverse_temperature_even(runs: list[Pilot]) -> None:
    """Log g(beta_k) + log Z(beta_k) by quadrature is the same at every rung."""
    worst = []
    for run in runs[:8]:

        def path(x: float, beta: float, base: GaussianBase = run.base) -> float:
            point = np.array([[x]])
            log_target = mixture(point)[0][0] - base.log_zeta
            log_path = beta * log_target + (1 - beta) * base.log_density(point)[0]
            return float(np.exp(log_path))

        beta, log_g = np.transpose(run.log_g)
        assert np.array_equal(beta, run.inv_temp)
        exact = [
            np.log(quad(path, -25, 25, args=(b,), points=[-2, 0, 2.5], limit=200)[0]) for b in beta
        ]
        assert np.ptp(exact) > 0.2
        worst.append(np.abs(log_g + exact).max() / run.log_evidence.mcse)
    # Twice the error of log Z, as above, and the largest of a dozen rungs.
    assert np.max(worst) < 8


def test_g_by_rung_gives_each_rung_the_mass_of_any_other(runs: list[Pilot]) -> None:
    """Between the middles of a rung's two intervals: g(beta_k) Z(beta_k) times their distance."""
    for run in runs[:8]:
        beta, log_g = np.transpose(run.log_g_by_rung)
        middle = (beta[1:] + beta[:-1]) / 2
        mass = np.exp(log_g + run.log_normaliser) * np.diff([0, *middle, 1])
        assert np.array_equal(beta, run.inv_temp)
        np.testing.assert_allclose(mass, 1, rtol=1e-12)


def test_points_and_the_refined_base_are_the_targets(runs: list[Pilot]) -> None:
    points = np.array([run.points for run in runs])
    assert points.shape == (40, 256, 1)
    mean = WEIGHT @ MEAN
    variance = WEIGHT @ (SD**2 + MEAN**2) - mean**2
    for estimates, truth in (
        (points.mean(axis=(1, 2)), mean),
        (np.array([run.refined_base.mean[0] for run in runs]), mean),
        (np.array([run.refined_base.covariance[0, 0] for run in runs]), variance),
    ):
        error = estimates.std(ddof=1) / np.sqrt(len(runs))
        # The estimate from a few hundred particles is biased by about its variance.
        assert abs(estimates.mean() - truth) < 4 * error + 0.02
        assert error < 0.15
    in_random_order = np.array([np.corrcoef(p[:-1, 0], p[1:, 0])[0, 1] for p in points])
    assert abs(in_random_order.mean()) < 4 / np.sqrt(points.size)


def test_the_same_seed_makes_the_same_pilot(runs: list[Pilot]) -> None:
    settings = PilotSettings(particles=256, leapfrog_steps=5)
    again = pilot_of_density(mixture, BASE, settings=settings, seed=1)
    assert np.array_equal(again.points, runs[1].points)
    assert again.log_evidence == runs[1].log_evidence
    assert not np.array_equal(runs[0].points, runs[1].points)


def test_gradients_are_counted_and_a_finer_ladder_has_more_rungs(runs: list[Pilot]) -> None:
    calls = []

    def counting(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        calls.append(len(points))
        return mixture(points)

    settings = PilotSettings(particles=256, leapfrog_steps=5, conditional_ess=0.99)
    fine = pilot_of_density(counting, BASE, settings=settings, seed=1)
    assert fine.gradients == sum(calls) - 1  # the first asks for the dimension
    assert len(fine.inv_temp) > 2 * len(runs[1].inv_temp)
    assert fine.acceptance.shape == (len(fine.inv_temp) - 1,)
    assert np.all((fine.acceptance > 0.4) & (fine.acceptance < 1))
    assert fine.log_evidence.mcse < runs[1].log_evidence.mcse


def test_a_base_that_reaches_over_the_edge_is_cut_there() -> None:
    """Half a normal, x > 0, of mass exp(LOG_Z) / 2, from a base that is partly below 0."""

    def half(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        inside = points[:, 0] > 0
        value = np.where(inside, norm.logpdf(points[:, 0]) + LOG_Z, -np.inf)
        return value, np.where(inside[:, None], -points, 0)

    base = gaussian_base([0.5], [[1.0]])
    made = [pilot_of_density(half, base, settings=SMALL, seed=s) for s in range(10)]
    z = [(m.log_evidence.value - LOG_Z + np.log(2)) / m.log_evidence.mcse for m in made]
    assert abs(np.mean(z)) < 4 / np.sqrt(10)
    start = [m.log_normaliser[0] for m in made]
    mass = norm.cdf(0.5)
    error = np.sqrt((1 - mass) / (mass * 512 * 10))
    assert abs(np.mean(start) - np.log(mass)) < 4 * error
    assert all(np.all(m.points > 0) for m in made)


def test_a_model_with_a_positive_parameter_through_its_stan_program() -> None:
    pytest.importorskip("stanli", reason="stanli is not installed")
    model, truth = log_gaussian()
    base = gaussian_base(np.zeros(5), 3 * np.eye(5))
    settings = PilotSettings(particles=256, moves=2, leapfrog_steps=5)
    made = pilot(model, base, settings=settings, seed=4)
    assert abs(made.log_evidence.value - truth.log_zeta) < 4 * made.log_evidence.mcse
    assert made.log_evidence.mcse < 0.3
    points = particles_by_parameter(model, made)
    alone = starting_values(points, chains=3)
    for start, point in zip(alone, made.points[:3], strict=True):
        assert np.array_equal(np.ravel(start["x"], order="F"), point[:4])
        assert start["scale"] == pytest.approx(np.exp(point[4]))
    together = starting_values(points, chains=2, num_pseudo_samples=3)
    for chain, start in enumerate(together):
        x, scale = np.array(start["x"]), np.array(start["scale"])
        assert x.shape == (2, 2, 3)
        for n in range(3):
            point = made.points[3 * chain + n]
            assert np.array_equal(x[..., n].ravel(order="F"), point[:4])
            assert scale[n] == pytest.approx(np.exp(point[4]))
    with pytest.raises(DataError, match="2 chains of 200 points need 400 starting points"):
        starting_values(points, chains=2, num_pseudo_samples=200)
    with pytest.raises(DataError, match="got 0 and 1"):
        starting_values(points, chains=0)


def test_particles_need_a_pilot_of_the_model(runs: list[Pilot]) -> None:
    with pytest.raises(DataError, match="not run on the model log_gaussian"):
        particles_by_parameter(log_gaussian()[0], runs[0])


def test_a_mixture_in_a_box_through_its_stan_program() -> None:
    pytest.importorskip("stanli", reason="stanli is not installed")
    target = GaussianMixture(WEIGHT, np.array([[-2.0, 0.0], [2.5, 1.0]]), SD)
    model = target.model("boxed", lower=-10, upper=10)
    settings = PilotSettings(particles=256, moves=2, leapfrog_steps=5)
    # A third of the base's mass lies outside the box.
    made = pilot(model, gaussian_base([3, 0], 49 * np.eye(2)), settings=settings, seed=6)
    assert abs(made.log_evidence.value) < 4 * made.log_evidence.mcse
    assert made.log_evidence.mcse < 0.4
    inside = np.prod([norm.cdf(10, m, 7) - norm.cdf(-10, m, 7) for m in (3, 0)])
    assert made.log_normaliser[0] == pytest.approx(np.log(inside), abs=4 * np.sqrt(1 / 256))


def test_hmc_moves_leave_the_target_as_it_is() -> None:
    rng = np.random.default_rng(12)
    n = 20_000
    which = rng.random(n) < WEIGHT[1]
    points = np.where(which, rng.normal(MEAN[1], SD[1], n), rng.normal(MEAN[0], SD[0], n))[:, None]
    moves = HmcMoves(1, 6, 4)
    moves.adapt_to(points, np.full(n, 1 / n))
    started = points
    for _ in range(8):
        made = moves.move(mixture, points, rng)
        points = made.points
    assert 0.6 < made.acceptance < 0.95
    moved = np.abs(points - started)[which & (points[:, 0] > 0.5)]
    assert moved.mean() > 0.5 * SD[1]  # within a mode as far as independent draws, or nearly
    for power in (1, 2, 3):
        values = points[:, 0] ** power
        truth = sum(w * norm.moment(power, m, s) for w, m, s in zip(WEIGHT, MEAN, SD, strict=True))
        assert abs(values.mean() - truth) < 4 * values.std() / np.sqrt(n)


def test_moves_that_diverge_end_there() -> None:
    """Steps of ten standard deviations multiply energies by ten thousand each."""
    asked = 0

    def target(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        nonlocal asked
        asked += len(points)
        return standard_normal(2)(points)

    points = np.random.default_rng(19).normal(size=(400, 2))
    moves = HmcMoves(2, 50, 4, step_size=10.0)
    moves.adapt_to(points, np.full(400, 1 / 400))
    made = moves.move(target, points, np.random.default_rng(20))
    assert asked <= 4 * 400
    assert made.acceptance == 0
    assert np.array_equal(made.points, points)


def test_moves_end_before_a_step_that_leads_far_and_leave_the_target_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Further on, a differential equation may never end.

    Here a normal momentum often leads too far, so that a difference would show.
    """
    monkeypatch.setattr("harness.path.moves.FARTHEST", 3.0)
    farthest = 0.0

    def target(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        nonlocal farthest
        farthest = max(farthest, float(np.abs(points).max()))
        value = -(np.abs(points) ** 1.2).sum(axis=1)
        return value, -1.2 * np.sign(points) * np.abs(points) ** 0.2

    rng = np.random.default_rng(21)
    size = rng.gamma(1 / 1.2, size=40_000) ** (1 / 1.2)  # |x|^1.2 has a gamma distribution
    points = (size * rng.choice([-1, 1], size=size.size))[:, None]
    moves = HmcMoves(1, 4, 4, step_size=1.3)
    moves.adapt_to(points, np.full(len(points), 1 / len(points)))
    made = moves.move(target, points, rng)
    assert farthest <= np.abs(points).max() + 4 * 3 * points.std()
    moved = made.points != points
    assert 0.2 < moved.mean() < 0.8
    fresh = rng.gamma(1 / 1.2, size=40_000) ** (1 / 1.2)
    assert ks_2samp(np.abs(made.points[:, 0]), fresh).pvalue > 0.01


@pytest.mark.parametrize("dimension", [3, 201])
def test_a_population_moves_with_the_metric_of_the_others(dimension: int) -> None:
    """What a particle's metric depends on may not be the particle: its law would not be left."""
    rng = np.random.default_rng(15)
    points = rng.normal(size=(4 * 8, dimension))
    own = slice(8, 16)
    changed = points.copy()
    changed[own] *= 5
    equal, uneven = np.full(32, 1 / 32), np.full(32, 0.3 / 24)
    uneven[own] = 0.7 / 8
    ends = []
    for cloud, share in ((points, equal), (changed, uneven)):
        moves = HmcMoves(dimension, 3, 4, step_size=0.05)
        moves.adapt_to(cloud, share)
        made = moves.move(standard_normal(dimension), points, np.random.default_rng(16))
        assert made.acceptance > 0.9
        ends.append(made.points)
    np.testing.assert_allclose(ends[0][own], ends[1][own], rtol=1e-12)
    for other in (slice(8), slice(16, None)):
        assert np.abs(ends[0][other] - ends[1][other]).max() > 0.1


def standard_normal(dimension: int) -> LogDensity:
    return gaussian_target(gaussian_base(np.zeros(dimension), np.eye(dimension)))


def test_moves_have_a_metric_where_all_weight_is_in_one_population() -> None:
    points = np.random.default_rng(17).normal(size=(32, 2))
    moves = HmcMoves(2, 3, 4)
    moves.adapt_to(points, np.repeat([0.0, 1 / 8, 0.0, 0.0], 8))
    made = moves.move(standard_normal(2), points, np.random.default_rng(18))
    assert np.all(np.isfinite(made.points))
    assert made.acceptance > 0.3


@few_and_many(12, 100)
def test_few_particles_in_many_dimensions_leave_log_z_unbiased(runs: int) -> None:
    """Z itself is unbiased, so its mean over runs has their standard error.

    With one metric of all particles it was exp(0.30) times too large, 14 standard errors.
    """
    truth = gaussian_base(np.zeros(26), np.eye(26), log_zeta=-3.0)
    base = gaussian_base(np.ones(26), 9 * np.eye(26))
    settings = PilotSettings(particles=256, populations=8)
    found = [
        pilot_of_density(gaussian_target(truth), base, settings=settings, seed=seed).log_evidence
        for seed in range(runs)
    ]
    mean = log_mean_weight(np.array([each.value for each in found]))
    assert abs(mean.value - truth.log_zeta) < 4 * mean.mcse
    assert mean.mcse < 0.3 / 4  # fine enough to tell that error


def test_the_energy_error_of_a_trajectory_falls_with_the_square_of_the_step() -> None:
    rng = np.random.default_rng(13)
    root = rng.normal(size=(3, 3))
    truth = gaussian_base(rng.normal(size=3), root @ root.T + np.eye(3))
    points = truth.sample(rng, 4000)
    refused = []
    for step in (0.2, 0.1, 0.05):
        moves = HmcMoves(3, 8, 4, step_size=step)
        moves.adapt_to(points, np.full(4000, 1 / 4000))
        made = moves.move(gaussian_target(truth), points, np.random.default_rng(14))
        refused.append(1 - made.acceptance)
    ratio = np.array(refused[:-1]) / refused[1:]
    # As step^2 times the length of the trajectory, which for as many steps is step^3, until the
    # trajectory is so long that its length no longer counts.
    assert np.all((ratio > 3.5) & (ratio < 9))
    assert refused[-1] < 1e-3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"particles": 0}, "8 or more in each"),
        ({"particles": 100}, "evenly"),
        ({"particles": 64}, "8 or more in each"),
        ({"populations": 3}, "4 or more"),
        ({"conditional_ess": 1.0}, "between 0 and 1"),
        ({"conditional_ess": np.nan}, "between 0 and 1"),
        ({"moves": 0}, "moves of 1 or more"),
        ({"leapfrog_steps": 0}, "leapfrog_steps of 1 or more"),
        ({"most_rungs": 0}, "most_rungs of 1 or more"),
        ({"most_seconds": 0.0}, "more than 0 seconds"),
        ({"in_seconds": -1.0}, "more than 0 seconds"),
    ],
)
def test_settings_that_make_no_pilot_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        PilotSettings(**settings)


def test_too_few_particles_and_a_base_of_another_dimension_are_refused() -> None:
    model, _ = log_gaussian()
    with pytest.raises(DataError, match="the base has dimension 2, but log_gaussian has 5"):
        pilot(model, gaussian_base([0, 0], np.eye(2)), seed=1)
    many = gaussian_base(np.zeros(60), np.eye(60))
    with pytest.raises(DataError, match="60 dimensions needs 300 particles"):
        pilot_of_density(gaussian_target(many), many, settings=PilotSettings(particles=256), seed=1)
    two = gaussian_target(gaussian_base([0, 0], np.eye(2)))
    with pytest.raises(DataError, match="dimension 2; got points"):
        pilot_of_density(two, BASE, seed=1)


@pytest.mark.parametrize(
    ("log_density", "message"),
    [
        (lambda x: (np.zeros(len(x) + 1), x), r"returned shapes \(2,\)"),
        (lambda x: (np.zeros(len(x)), np.zeros(len(x))), "gradients"),
        (lambda x: (np.zeros(len(x)), np.zeros((len(x), 2))), "the base has dimension 1"),
        (lambda x: (x @ np.ones(3), x), "does not take points of the base's dimension, 1"),
        (lambda x: (np.full(len(x), np.nan), x), "hardly any of the base"),
        (lambda x: (np.where(x[:, 0] > 8, 0, -np.inf), 0 * x), "hardly any of the base"),
        (lambda x: (np.full(len(x), np.inf), x), "hardly any of the base"),
    ],
)
def test_densities_that_make_no_pilot_are_refused(log_density: LogDensity, message: str) -> None:
    with pytest.raises(DataError, match=message):
        pilot_of_density(log_density, BASE, seed=1)


def test_a_ladder_that_does_not_arrive_is_given_up() -> None:
    settings = PilotSettings(particles=256, leapfrog_steps=2, most_rungs=3)
    with pytest.raises(SamplingError, match="has not reached the target in 3 rungs"):
        pilot_of_density(mixture, BASE, settings=settings, seed=1)


def test_a_pilot_that_would_be_late_takes_longer_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that counts evaluations, in a density far narrower than the base."""
    evaluated = 0

    def narrow(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        nonlocal evaluated
        evaluated += len(points)
        return -0.5 * np.square(points).sum(axis=1), -points

    monkeypatch.setattr(time, "monotonic", lambda: float(evaluated))
    base = gaussian_base(np.zeros(3), 1e6 * np.eye(3))
    took: list[int] = []
    pilots = []
    for in_seconds in (np.inf, 2.0, 0.4):  # the latter as multiples of what the first one takes
        settings = PilotSettings(particles=256, most_moves=6)
        if took:
            settings = replace(settings, in_seconds=in_seconds * took[0])
        evaluated = 0
        pilots.append(pilot_of_density(narrow, base, settings=settings, seed=4))
        took.append(evaluated)
    usual, in_time, late = pilots
    assert np.array_equal(usual.inv_temp, in_time.inv_temp)
    # With a conditional ESS of 1/2 instead of 9/10 steps are sqrt(log 2 / log(10 / 9)) = 2.6 times
    # as long where log ratios are normal, so that in all it takes about 0.4 of the rungs.
    assert took[2] < 0.55 * took[0]
    assert len(late.inv_temp) < 0.55 * len(usual.inv_temp)
    exact = 1.5 * np.log(2 * np.pi)
    # With rungs that are so long the logs of the populations of 16 particles spread by over a nat.
    for each, largest in ((usual, 0.5), (late, 1.0)):
        assert abs(each.log_evidence.value - exact) < 4 * each.log_evidence.mcse < 4 * largest


def test_a_pilot_that_would_be_late_makes_few_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between far modes particles seem never to have moved enough, so that moves would go on."""
    evaluated = 0

    def far_apart(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        nonlocal evaluated
        evaluated += len(points)
        distance = points - 30 * np.sign(points)
        return -0.5 * np.square(distance).sum(axis=1), -distance

    monkeypatch.setattr(time, "monotonic", lambda: float(evaluated))
    base = gaussian_base(np.zeros(3), 900 * np.eye(3))
    a_rung, settings = [], PilotSettings(particles=256, most_moves=12)
    for in_seconds in (np.inf, 1.0):  # by this clock it is late once it has begun
        evaluated = 0
        made = replace(settings, in_seconds=in_seconds)
        found = pilot_of_density(far_apart, base, settings=made, seed=4)
        a_rung.append(evaluated / (256 * (len(found.inv_temp) - 1)))
        # Each of three coordinates has two modes of mass sqrt(2 pi).
        exact = 3 * np.log(2 * np.sqrt(2 * np.pi))
        assert abs(found.log_evidence.value - exact) < 4 * found.log_evidence.mcse < 2
    usual, late = a_rung
    fewest = 3 * 8  # leapfrog steps
    assert fewest <= late < 1.3 * fewest
    assert usual > 2 * late


def test_each_rung_makes_all_its_moves_one_after_the_other() -> None:
    """More moves take the particles further from where the rung before left them."""

    def correlation(moves: int) -> float:
        settings = PilotSettings(particles=512, moves=moves, leapfrog_steps=1)
        made = pilot_of_density(watched, BASE, settings=settings, seed=2)
        # The last rung's moves: where it began and where it ended, particle by particle.
        began, ended = seen[-moves * 2][:, 0], made.particles.reshape(-1)
        return float(np.corrcoef(began, ended)[0, 1])

    seen: list[FloatArray] = []

    def watched(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        seen.append(points.copy())
        return mixture(points)

    one, many = correlation(1), correlation(12)
    assert one > 0.9  # a single leapfrog step goes nowhere
    # Within modes twelve steps go far; between the two modes particles do not pass.
    assert many < one - 0.01


def test_moves_are_repeated_until_particles_have_left_where_they_were() -> None:
    """On a Gaussian in 30 dimensions, whose particles a single leapfrog step hardly moves."""
    wide = gaussian_base(np.zeros(30), 2 * np.eye(30))
    truth = gaussian_base(np.full(30, 0.5), np.eye(30), log_zeta=2.0)
    common: dict[str, Any] = {"particles": 512, "moves": 1, "leapfrog_steps": 1}
    gradients = {}
    for most in (0, 30):
        settings = PilotSettings(most_moves=most, **common)
        made = pilot_of_density(gaussian_target(truth), wide, settings=settings, seed=3)
        rungs = len(made.inv_temp) - 1
        gradients[most] = made.gradients / rungs / 512
        assert abs(made.log_evidence.value - 2) < 4 * made.log_evidence.mcse
    assert gradients[30] > 1.5 * gradients[0]


def test_a_ladder_begins_with_a_step_as_small_as_a_vague_base_needs() -> None:
    """A Poisson regression's log likelihood under a vague prior: as low as -1e40 and below."""
    base = gaussian_base([0.0], [[2500.0]])

    def log_density(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        x = points[:, 0]
        rate = np.exp(np.minimum(3 * x, 700))
        value = norm.logpdf(x, 0, 50) + 7 * 3 * x - rate - 8.5251613610654
        return value, (-x / 2500 + 21 - 3 * rate)[:, None]

    truth = np.log(
        quad(lambda x: float(np.exp(log_density(np.array([[x]]))[0][0])), -3, 3, points=[0.6])[0]
    )
    made = pilot_of_density(log_density, base, settings=SMALL, seed=4)
    assert made.inv_temp[1] < 1e-30
    assert abs(made.log_evidence.value - truth) < 4 * made.log_evidence.mcse


def test_a_limit_on_time() -> None:
    settings = PilotSettings(particles=256, most_seconds=1e-9)
    with pytest.raises(SamplingError, match=r"has not finished in 1e-09 s"):
        pilot_of_density(mixture, BASE, settings=settings, seed=1)


def test_particles_too_few_for_a_covariance_spoil_no_more_than_the_refined_base() -> None:
    """Weights that leave next to one population of four."""
    made = pilot_of_density(
        mixture, BASE, settings=PilotSettings(particles=32, populations=4), seed=1
    )
    rank_one = replace(
        made,
        particles=made.particles[:, :1],
        population_log_weight=np.array([0.0, -50.0, -50.0, -50.0]),
    )
    with pytest.raises(DataError, match="too few for a covariance"):
        _ = rank_one.refined_base


def test_places_where_the_density_overflows_count_as_outside_the_support() -> None:
    """A Gaussian target, but the density is +inf above 1: log Z is that of the rest.

    Within five standard errors.
    """

    def overflowing(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        value = norm.logpdf(points[:, 0])
        return np.where(points[:, 0] > 1, np.inf, value), np.where(points > 1, 0.0, -points)

    found = pilot_of_density(overflowing, gaussian_base([0.0], [[2.0]]), settings=SMALL, seed=1)
    assert found.infinite > 0
    assert found.points.max() <= 1
    apart = found.log_evidence.value - norm.logcdf(1)
    assert abs(apart) < 5 * found.log_evidence.mcse
