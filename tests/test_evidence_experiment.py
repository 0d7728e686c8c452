"""The experiment on nested sampling and annealing: its targets, samplers and claims."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import Any, Never

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp

from experiments.evidence.annealed import Anneal, annealed_runs, weighted_shares
from experiments.evidence.grid import FIGURE, OURS, ROWS, TABLE
from experiments.evidence.laws import (
    bridged_samples,
    bridged_variance,
    cost_laws,
    ladder_variance,
    linear_variance,
    multicanonical_variance,
    nested_iterations,
    nested_iterations_by_information,
)
from experiments.evidence.multicanonical import analytic_weights
from experiments.evidence.nested import Nest, log_evidence_of, nested_runs, shares_of
from experiments.evidence.samplers import sample_annealed, sample_nested
from experiments.evidence.sweep import slice_sweep, widths
from experiments.evidence.tables import EXPERIMENTS, agrees, printed, published
from experiments.evidence.targets import (
    DECEPTIVE,
    DISTRIBUTIONS,
    GAUSSIAN_A,
    GAUSSIAN_B,
    STUDENT,
    TWO_MODES,
)
from experiments.evidence.volumes import (
    CUBE_LOG_Z,
    PLATEAU_COUNTS,
    cube_log_likelihood,
    plateau_counts,
    volume_errors,
)
from harness.arrays import FloatArray
from harness.errors import DataError
from harness.model.python_target import target_of
from harness.models.evidence_targets import (
    EVIDENCE_TARGETS,
    QUADRANTS,
    deceptive,
    elliptical_student_log_evidence,
    gaussian_kernel,
    quadrants,
    sides,
    student_product,
    two_widths,
)
from harness.plan.catalogue import load_experiment
from harness.plan.spec import PROFILES, Cell, Profile, Results
from harness.samplers.ladders import fourth_power_ladder, uniform_ladder
from harness.samplers.nested_particles import PriorAndLikelihood

EVIDENCE = load_experiment("evidence")


# Targets


def lattice_means() -> FloatArray:
    """The means of (4.61), written out from the thesis, (4292, 2)."""
    small, large = np.arange(-5, 6), np.arange(-22, 23)
    blocks = []
    for steps, spacing, centre in (
        (small, 0.0025, (15, 15)),
        (small, 0.15, (-15, 15)),
        (large, 0.0025, (-15, -15)),
        (large, 0.15, (15, -15)),
    ):
        first, second = np.meshgrid(steps, steps)
        place = np.stack([first.ravel(), second.ravel()], axis=1)
        blocks.append(spacing * place + np.array(centre))
    return np.concatenate(blocks)


def by_hand(name: str, x: FloatArray) -> FloatArray:
    """Log densities in NumPy from the equations of the thesis."""
    if name == "gaussian":
        return np.asarray(-0.5 * np.square(x).sum(axis=1))
    if name == "student":
        log_pdf = stats.t(5).logpdf(x) - stats.t(5).logpdf(0)
        return np.asarray(log_pdf.sum(axis=1))
    if name == "two-widths":
        wide, narrow = np.square(x - 1).sum(axis=1), np.square(x + 1).sum(axis=1)
        both = [-0.5 * wide / 0.1**2, math.log(128) - 0.5 * narrow / 0.05**2]
        return np.asarray(logsumexp(both, axis=0))
    square = np.square(x[:, None] - lattice_means()).sum(axis=2)
    return np.asarray(logsumexp(-square / (2 * 0.001**2), axis=1))


@pytest.mark.parametrize("name", EVIDENCE_TARGETS)
def test_densities_and_gradients(name: str) -> None:
    model = EVIDENCE_TARGETS[name]()
    density = target_of(model).log_density
    rng = np.random.default_rng(1)
    draw = model.truth.draw
    assert draw is not None
    near = draw(30, rng)
    x = np.concatenate([near, near + 0.003 * rng.standard_normal(near.shape), 5 * near[:5]])
    value, gradient = density(x)
    # Rounding of squares of up to 1e9 is 1e-7.
    np.testing.assert_allclose(value, by_hand(name, x), rtol=1e-12, atol=1e-8)
    step = 1e-7 if name == "deceptive" else 1e-5
    for axis in range(model.dimension):
        beside = step * np.eye(model.dimension)[axis]
        slope = (by_hand(name, x + beside) - by_hand(name, x - beside)) / (2 * step)
        scale = np.abs(gradient).max(axis=1).max()
        np.testing.assert_allclose(gradient[:, axis], slope, rtol=1e-3, atol=1e-5 * scale)


def test_true_evidence() -> None:
    """Against quadrature where the integral is a product, and what the thesis prints."""
    found = {name: make().truth.log_evidence for name, make in EVIDENCE_TARGETS.items()}
    assert all(each.error == 0 for each in found.values())
    assert found["gaussian"].value == pytest.approx(5 * math.log(2 * math.pi), rel=1e-14)
    line = integrate.quad(lambda x: (1 + x**2 / 5) ** -3, -np.inf, np.inf)[0]
    assert found["student"].value == pytest.approx(10 * math.log(line), rel=1e-9)
    assert found["student"].value == pytest.approx(9.6862, abs=5e-5)
    wide, narrow = (
        integrate.quad(lambda x, s=sd: math.exp(-0.5 * (x / s) ** 2), -1, 1, points=[0])[0]
        for sd in (0.1, 0.05)
    )
    assert found["two-widths"].value == pytest.approx(math.log(wide**6 + 128 * narrow**6))
    assert found["two-widths"].value == pytest.approx(-7.20327, abs=5e-6)
    assert found["deceptive"].value == pytest.approx(-3.6131, abs=5e-5)
    assert len(lattice_means()) == 4292
    # Of the multivariate t, as the text says: radii by quadrature.
    area = 2 * math.pi**5 / math.gamma(5)
    radial = integrate.quad(lambda r: r**9 * (1 + r**2 / 5) ** -7.5, 0, np.inf)[0]
    assert elliptical_student_log_evidence() == pytest.approx(math.log(area * radial), rel=1e-8)
    assert elliptical_student_log_evidence() == pytest.approx(6.5212, abs=5e-5)
    assert gaussian_kernel(3, 4.0).truth.log_evidence.value == pytest.approx(
        1.5 * math.log(2 * math.pi / 4)
    )


def test_modes_and_exact_draws() -> None:
    """Shares of 20,000 draws are within 4 standard errors of the probabilities."""
    rng = np.random.default_rng(2)
    for model, events in ((two_widths(), sides), (deceptive(), quadrants)):
        test, draw = model.truth.mode_test, model.truth.draw
        assert test is not None
        assert draw is not None
        p = test.probabilities.value
        error = np.sqrt(p * (1 - p) / 20_000)
        assert np.all(np.abs(events(draw(20_000, rng)).mean(axis=0) - p) < 4 * error)
    np.testing.assert_allclose(two_widths().truth.mode_test.probabilities.value[0], 1 / 3)  # type: ignore[union-attr]
    np.testing.assert_array_equal(
        quadrants(np.array([[-1.0, 1], [1, 1], [-1, -1], [1, -1]])), np.eye(4)
    )
    paper = published("4.3").loc[list(QUADRANTS)]
    truth = deceptive().truth.mode_test
    assert truth is not None
    np.testing.assert_allclose(paper["ais"], truth.probabilities.value, atol=0.03)
    values = student_product().truth.draw(40_000, rng)  # type: ignore[misc]
    assert stats.kstest(values[:2000].ravel(), stats.t(5).cdf).pvalue > 1e-3


# Samplers, on a Gaussian target in one or two dimensions


def space(dimension: int, base_sd: float = 3.0) -> PriorAndLikelihood:
    """N(0, base_sd^2) as prior; the likelihood makes the target exp(-|x|^2 / 2)."""

    def prior(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        value = -0.5 * np.square(x / base_sd).sum(axis=1)
        return value - dimension * math.log(math.sqrt(2 * math.pi) * base_sd), -x / base_sd**2

    return PriorAndLikelihood(prior, lambda x: (-0.5 * np.square(x).sum(axis=1), -x))


@pytest.mark.parametrize("inv_temp", [0.0, 0.3, 1.0])
def test_sweeps_keep_the_tempered_density(inv_temp: float) -> None:
    """Exact draws stay exact: Kolmogorov-Smirnov at a chance of 1 in 1,000, each coordinate."""
    rng = np.random.default_rng(3)
    sd = 1 / math.sqrt(inv_temp + (1 - inv_temp) / 9)
    where, state = space(2), None
    state = where.particles(sd * rng.standard_normal((3000, 2)), rng)
    before = state.points.copy()
    for _ in range(2):
        slice_sweep(where, lambda a, b, _: a + inv_temp * b, state, np.full((3000, 2), 1.5), rng)
    for axis in range(2):
        assert stats.kstest(state.points[:, axis] / sd, "norm").pvalue > 1e-3
    assert np.all(state.points != before)
    value, _ = where.log_prior(state.points)
    np.testing.assert_allclose(state.log_prior, value)


def test_sweeps_stay_within_a_floor_and_forget() -> None:
    """From one point of the interval |x| < 1 under a flat prior to all of it."""
    rng = np.random.default_rng(4)
    flat = PriorAndLikelihood(
        lambda x: (np.zeros(len(x)), np.zeros_like(x)),
        lambda x: (-np.square(x[:, 0]), -2 * x),
    )
    state = flat.particles(np.full((4000, 1), 0.9), rng)

    def height(log_prior: FloatArray, log_likelihood: FloatArray, rows: Any) -> FloatArray:
        return np.where(log_likelihood > -1, log_prior, -np.inf)

    for _ in range(2):
        slice_sweep(flat, height, state, np.full((4000, 1), 0.5), rng)
    assert stats.kstest((state.points[:, 0] + 1) / 2, "uniform").pvalue > 1e-3


def test_widths() -> None:
    points = np.array([[[0.0, 1.0], [2.0, 1.0]], [[1.0, 5.0], [4.0, 7.0]]])
    np.testing.assert_array_equal(widths(points), [[2, 1], [3, 2]])
    np.testing.assert_array_equal(widths(points[:, :0]), np.ones((2, 2)))
    np.testing.assert_array_equal(widths(points[:, :1]), np.ones((2, 2)))


def test_nested_runs_have_the_right_evidence_and_errors() -> None:
    """40 runs of 40 particles: the mean error within 4 of its own; squares of z as by chance."""
    rng = np.random.default_rng(5)
    where = space(2)
    removed, share = nested_runs(where, 3 * rng.standard_normal((40, 40, 2)), Nest(40), rng)
    assert share.sum() == pytest.approx(1)
    found = np.array([log_evidence_of(run, rng)[:2] for run in removed])
    off = found[:, 0] - math.log(2 * math.pi)
    assert abs(off.mean()) < 4 * off.std(ddof=1) / math.sqrt(40)
    # The error is sqrt(H / N) with H = log 9 - 1 + 1 / 9 nats, up to its own law of a few percent.
    assert found[:, 1].mean() == pytest.approx(math.sqrt((math.log(9) - 8 / 9) / 40), rel=0.15)
    assert stats.chi2.sf(np.square(off / found[:, 1]).sum(), 40) > 1e-3
    for run in removed:
        assert np.all(np.diff(run.particles.log_likelihood) >= 0)
        assert run.alive[0] == 40
        assert run.alive[-1] == 1
    halves = np.stack([removed[0].particles.points[:, 0] > 0,
                       removed[0].particles.points[:, 0] <= 0], axis=1).astype(float)  # fmt: skip
    value, error = shares_of(removed[0], halves, rng)
    assert value.sum() == pytest.approx(1)
    assert 0 < error[0] < 0.2


def test_one_particle_moves_from_where_it_was() -> None:
    rng = np.random.default_rng(6)
    removed, _ = nested_runs(space(2), 3 * rng.standard_normal((3, 1, 2)), Nest(1, 5), rng)
    for run in removed:
        # Equal only where likelihoods are rounded, near the top.
        assert np.all(np.diff(run.particles.log_likelihood) >= 0)
        assert set(run.alive) == {1}


def test_annealing_is_unbiased_and_gets_better_with_its_length() -> None:
    """The mean weight is Z within 4 errors; the variance of log w falls as that of exact draws.

    Sweeps remember where they were, so that it is larger, but by the same factor at both lengths
    if these are long.  Variances of 2,000 log weights have errors of 3 to 5 %, and their ratio has
    one of 6 %, four of which are allowed.
    """
    rng = np.random.default_rng(7)
    where, variance, law = space(1), {}, {}
    for rungs in (80, 320):
        ladder = fourth_power_ladder(rungs + 2)
        start = 3 * rng.standard_normal((2000, 1))
        end, log_weight = annealed_runs(where, start, ladder, 1, rng)
        weight = np.exp(log_weight - 0.5 * math.log(2 * math.pi))
        assert abs(weight.mean() - 1) < 4 * weight.std(ddof=1) / math.sqrt(2000)
        variance[rungs] = log_weight.var()
        law[rungs] = ladder_variance(1, 9.0, ladder)
        assert variance[rungs] > 0.85 * law[rungs]
        halves = np.stack([end.points[:, 0] > 0, end.points[:, 0] <= 0], axis=1).astype(float)
        value, error = weighted_shares(halves, log_weight)
        assert abs(value[0] - 0.5) < 4 * error[0]
    assert variance[80] / variance[320] == pytest.approx(law[80] / law[320], rel=0.24)


def test_schedules() -> None:
    """A nested run of many particles sets the best ladder's length, (4.51), to within a tenth."""
    rng = np.random.default_rng(8)
    removed, _ = nested_runs(space(2), 3 * rng.standard_normal((1, 400, 2)), Nest(400), rng)
    how = Anneal(1, 10, "nest", 0, 0.05, 400)
    expected = bridged_samples(2, 9.0) / (0.05**2 * 10)
    assert len(how.ladder(removed[0])) == pytest.approx(expected, rel=0.15)
    np.testing.assert_array_equal(Anneal(1, 2, "linear", 8).ladder(None), uniform_ladder(10))
    with pytest.raises(DataError, match="needs a run of it"):
        how.ladder(None)
    refused: list[dict[str, Any]] = [
        {"repeats": 0, "chains": 1, "schedule": "linear", "rungs": 5},
        {"repeats": 1, "chains": 1},
    ]
    for wrong in refused:
        with pytest.raises(DataError, match="annealing takes"):
            Anneal(**wrong)
    with pytest.raises(DataError, match="takes 1 particle"):
        Nest(0)


def test_fits_of_several_runs() -> None:
    """What fits hold, on the Stan density; the same seed gives the same fit."""
    kind = DISTRIBUTIONS[TWO_MODES]
    model, base = kind.make(), kind.base()
    fits = [
        sample_nested(model, base=base, nest=Nest(8), runs=2, events="sides", seed=1)
        for _ in range(2)
    ]
    attrs = fits[0].tree.attrs
    assert np.shape(attrs["run_log_z"]) == np.shape(attrs["run_error"]) == (2,)
    np.testing.assert_allclose(np.reshape(attrs["shares"], (2, 2)).sum(axis=1), 1)
    np.testing.assert_array_equal(attrs["run_log_z"], fits[1].tree.attrs["run_log_z"])
    annealed = sample_annealed(
        model, base=base, anneal=Anneal(2, 5, "nest", 0, 0.8, 8), runs=2, events="sides", seed=1
    )
    attrs = annealed.tree.attrs
    assert attrs["rungs"] >= 1
    assert attrs["schedule_evaluations"] > 0
    assert np.shape(attrs["ends"]) == (4,)
    assert annealed.posterior["x"].shape == (2, 500, 6)
    cell = next(c for c in EVIDENCE.grid("quick") if c.key == "table-two-modes-nest-10-1")
    metrics = EVIDENCE.measure(cell, fits[0])
    truth = model.truth.log_evidence.value
    assert metrics["bias"] == pytest.approx(np.mean(fits[0].tree.attrs["run_log_z"]) - truth)
    assert metrics["share_1_0"] == np.reshape(fits[0].tree.attrs["shares"], (2, 2))[1, 0]


def test_analytic_weights_make_the_energy_even() -> None:
    """The density of l under b exp(h) is even: chances of bands of the base times exp(h)."""
    weights = analytic_weights(10, 10.0)
    base = stats.chi2(10)
    constant = 10 * math.log(math.sqrt(2 * math.pi) * 10.0)
    # R from l: l = -R / 2 + R / 200 + constant.
    radius = (constant - weights.edge) / (0.5 - 0.005)
    mass = -np.diff(base.cdf(radius / 100.0))
    chance = mass * np.exp(weights.log_weight)
    keep = slice(5, 200)  # wide bands at the base's end are not even within; tiny ones round
    ratio = chance[keep] / weights.share[keep]
    np.testing.assert_allclose(ratio / ratio.mean(), 1, atol=0.05)


# Volumes and laws


def by_place(frame: pd.DataFrame) -> dict[Any, dict[Any, Any]]:
    """Return the entries of a table by row and column."""
    return frame.to_dict("index")


def test_cost_laws() -> None:
    """The exact variances of D = 10 and a ratio of 100, and the printed laws."""
    table = by_place(cost_laws())
    assert table["K = 122"]["best ladder (4.50)"] == pytest.approx(0.895, abs=5e-4)
    assert table["K = 122"]["Gaussian ladder"] == pytest.approx(0.895, abs=5e-4)
    assert table["K = 122"]["linear"] == pytest.approx(6.00, abs=5e-3)
    assert linear_variance(10, 100.0, 122) == pytest.approx(4.02, abs=5e-3)
    assert table["K = 1,190"]["best ladder (4.50)"] == pytest.approx(0.0894, abs=5e-5)
    assert table["K = 1,190"]["linear"] == pytest.approx(0.429, abs=5e-4)
    assert bridged_variance(10, 100.0, 10_000) * 10_001 == pytest.approx(
        bridged_samples(10, 100.0), rel=1e-3
    )
    assert nested_iterations(10, 100.0) == pytest.approx(2120.8, abs=0.05)
    # H by quadrature over one coordinate: ten times the divergence of N(0, 1) from N(0, 100).
    narrow, wide = stats.norm(0, 1), stats.norm(0, 10)
    each = integrate.quad(lambda x: narrow.pdf(x) * (narrow.logpdf(x) - wide.logpdf(x)), -12, 12)
    assert nested_iterations_by_information(10, 100.0) == pytest.approx((10 * each[0]) ** 2)
    # (4.44) is the sum of var[w] / E[w]^2 for both ends, to a factor that the thesis calls terse.
    assert multicanonical_variance(10, 100.0) == pytest.approx(177.7, abs=0.05)


def test_ladder_variance_is_that_of_exact_draws() -> None:
    """Log w of 20,000 chains of exact draws: its variance within 4 errors of the formula."""
    rng = np.random.default_rng(9)
    ladder, dimension, ratio = uniform_ladder(12), 2, 4.0
    log_weight = np.zeros(20_000)
    for below, above in pairwise(ladder):
        tau = 1 + (ratio - 1) * below
        square = rng.chisquare(dimension, 20_000) / tau
        log_weight -= 0.5 * (above - below) * (ratio - 1) * square
    spread = np.square(log_weight - log_weight.mean())
    error = spread.std() / math.sqrt(20_000)
    assert abs(spread.mean() - ladder_variance(dimension, ratio, ladder)) < 4 * error


def test_plateau_counts() -> None:
    """Within 4 errors of what is expected, and of 230.5, 89.6 and 905.6 in another simulation."""
    table = by_place(plateau_counts(60))
    other = {"ties by keys": 230.5, "strict": 89.6, "not strict": 905.6}
    for rule, expected in PLATEAU_COUNTS.items():
        row = table[rule]
        assert abs(row["mean"] - expected) < 4 * row["error"]
        # The other one had errors of its own; with as many runs as ours, as large.
        assert abs(row["mean"] - other[rule]) < 4 * math.sqrt(2) * row["error"]
    assert PLATEAU_COUNTS["ties by keys"] == pytest.approx(230.26, abs=5e-3)
    assert PLATEAU_COUNTS["strict"] == pytest.approx(90)
    assert PLATEAU_COUNTS["not strict"] == pytest.approx(900)


def test_volume_errors() -> None:
    """Few volumes err more than many by the square root of their ratio; log Z is about 3 wide."""
    assert abs(CUBE_LOG_Z + 147.449) < 5e-4
    # At the radius of 5 of a ball of 40 dimensions.
    log_volume = 20 * math.log(math.pi) - math.lgamma(21) + 40 * math.log(5 / 100)
    assert cube_log_likelihood(np.array([log_volume]))[0] == pytest.approx(-12.5)
    table = by_place(volume_errors(50))
    width = table["log Z itself"]["sd"]
    # The information is 127.45 nats, so that the error of log Z is about sqrt(127.45 / 10).
    assert width == pytest.approx(3.57, rel=0.1)
    for size in (12, 1200):
        row = table[f"{size:,} sequences"]
        error = width / math.sqrt(size)
        assert row["sd"] == pytest.approx(error, rel=0.45)  # 4 errors of a deviation of 50
        assert abs(row["mean"]) < 4 * error / math.sqrt(50) + 0.05
    assert abs(table["geometric path"]["mean"]) < 0.1 * width


# The experiment


@pytest.fixture
def few_volumes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw volumes for 50 runs in every profile, which the tests above have done already."""
    for profile in PROFILES:
        monkeypatch.setitem(EXPERIMENTS, profile, (50, 60))


def no_fit(cell: Cell, replication: int) -> Never:
    raise AssertionError(f"no fit of {cell.key}, {replication} is needed")


def test_grids() -> None:
    for profile in PROFILES:
        cells = EVIDENCE.grid(profile)
        assert len({cell.key for cell in cells}) == len(cells)
        # A smoke run judges no claim.
        assert all(cell.replications >= 2 or profile == "smoke" for cell in cells)
        assert all(cell.content() for cell in cells)  # plain data, arrays, dataclasses
        assert {cell.factors["part"] for cell in cells} == {TABLE, OURS, FIGURE}
        assert not any("," in str(cell.factors["distribution"]) for cell in cells)  # for --only
    assert EVIDENCE.on_request


def test_every_published_row_is_there() -> None:
    """Each row of Table 4.2 runs in the paper profile, and nothing passes for published."""
    cells = EVIDENCE.grid("paper")
    ran = {(c.factors["distribution"], c.factors["row"]) for c in cells
           if c.factors["part"] == TABLE}  # fmt: skip
    assert set(published("4.2").index) <= ran
    by_row = {(row.distribution, row.key): row for row in ROWS}
    for (distribution, key), paper in by_place(published("4.2")).items():
        if (distribution, key) in by_row:
            label = by_row[distribution, key].label
            assert paper["method"].startswith(label.split(" (")[0]), key
    found = printed(TWO_MODES, "nest-1455-1")
    assert found == (1_197_722, -6.47, 0.11)
    assert printed(DECEPTIVE, "nest-1000-1") is None


@cache
def cells_of(profile: Profile) -> tuple[Cell, ...]:
    return EVIDENCE.grid(profile)


GOOD_Z: dict[tuple[str, str, str], tuple[float, float]] = {
    # Part, distribution, row: error in units of the reported one, and that.
    (TABLE, GAUSSIAN_A, "nest-1-1"): (4.0, 3.0),
    (TABLE, GAUSSIAN_A, "nest-1-10"): (4.0, 3.0),
    (TABLE, GAUSSIAN_A, "ais-linear"): (-2.5, 0.3),
    (TABLE, GAUSSIAN_A, "ais-100-1"): (-5.0, 0.5),
    (TABLE, GAUSSIAN_B, "multi-analytic-long"): (0.5, 0.7),
    (TABLE, STUDENT, "ais-fourth"): (0.5, 0.08),
    (TABLE, STUDENT, "nest-93-1"): (0.5, 0.28),
    (TABLE, "t (base as printed)", "nest-93-1"): (0.5, 0.43),
    (TABLE, TWO_MODES, "nest-1455-1"): (6.0, 0.1),
    (TABLE, DECEPTIVE, "nest-16000-1"): (-4.0, 0.03),
    (TABLE, DECEPTIVE, "ais-1-1000"): (0.5, 0.2),
    (OURS, DECEPTIVE, "joint"): (10.0, 0.5),
}


def results(
    changed: dict[tuple[str, str, str], tuple[float, float]],
    shares: dict[str, float] | None = None,
    figure: dict[str, float] | None = None,
    profile: Profile = "paper",
) -> Results:
    """Made-up numbers, two runs of each row, with which all claims hold."""
    share = {"ends": 0.97, "wide": 0.4, "lost": 0.0002, "quadrant": 0.54} | (shares or {})
    rows: list[dict[str, Any]] = []
    cells = cells_of(profile)
    for cell in cells:
        part, place, key = (cell.factors[name] for name in ("part", "distribution", "row"))
        z, error = (GOOD_Z | changed).get((part, place, key), (0.3, 0.05))
        truth = cell.model.truth.log_evidence.value
        for replication in range(2):
            row = {"cell": cell.key, **cell.factors, "replication": replication, "runs": 1.0}
            row |= {"evaluations": 1000.0}
            if part == FIGURE:
                row |= figure_numbers(key, figure or {})
            else:
                value = truth + z * error * (1 + 0.1 * replication)
                row |= {"log_z_0": value, "error_0": error}
                row |= share_numbers(cell, key, share)
            rows.append(row)
    return Results(profile, cells, pd.DataFrame(rows), no_fit, planned=len(rows))


def figure_numbers(key: str, changed: dict[str, float]) -> dict[str, float]:
    """Mean squares that fall as the cost grows, faster for annealing than for nested sampling."""
    method, chains, *rest = key.split("-")
    if method == "nest":
        cost = 1000.0 * float(chains)
        return {"evaluations": cost, "mse": 1e4 / cost, "bias": 0.0, "runs": 50,
                "normalised": changed.get("nest", 1.0)}  # fmt: skip
    error = float(f"{rest[0][0]}.{rest[0][1:]}")
    cost = 1000 / error**2
    worse = changed.get("many", 3.0) if chains == "100" and error == 0.3 else 1.0
    mse = worse * (1.5e4 if error == 0.3 else changed.get("ais", 5e3)) / cost
    bias = changed.get("bias", -0.8) * math.sqrt(mse) if error == 0.3 else 0.0
    return {"evaluations": cost, "mse": mse, "bias": bias, "runs": 50, "rungs": 10.0,
            "normalised": 5.0 if error == 0.3 else 1.0}  # fmt: skip


def share_numbers(cell: Cell, key: str, share: dict[str, float]) -> dict[str, float]:
    test = cell.model.truth.mode_test
    if test is None:
        return {}
    found = test.probabilities.value.copy()
    error = np.full(len(found), 0.001)
    if len(found) == 2:
        found, error = np.array([share["wide"], 1 - share["wide"]]), np.array([0.1, 0.1])
    elif key == "nest-16000-1":
        found[3] = share["quadrant"]
    elif key == "ais-1-1000":
        found[1] = share["lost"]
    row = {f"share_0_{m}": float(value) for m, value in enumerate(found)}
    row |= {f"share_error_0_{m}": float(value) for m, value in enumerate(error)}
    if key.startswith("ais"):
        row |= {f"end_0_{m}": share["ends"] if m == 0 else 0.01 for m in range(len(found))}
    return row


@pytest.mark.usefixtures("few_volumes")
def test_claims_hold_and_fail() -> None:
    verdicts = {claim.key: claim.verdict for claim in EVIDENCE.claims(results({}))}
    assert set(verdicts.values()) == {"reproduced"}, verdicts
    cases: list[tuple[str, dict[str, Any]]] = [
        ("nested-right", {"changed": {(TABLE, STUDENT, "nest-10-1"): (5.0, 0.8)}}),
        ("one-particle", {"changed": {(TABLE, GAUSSIAN_A, "nest-1-1"): (1.0, 3.0)}}),
        ("one-particle-too-sure", {"changed": {(TABLE, GAUSSIAN_A, "nest-1-1"): (1.0, 3.0)}}),
        ("multicanonical-b", {"changed": {(TABLE, GAUSSIAN_B, "multi-analytic-long"): (0.5, 0.1)}}),
        ("linear-on-gaussian", {"changed": {(TABLE, GAUSSIAN_A, "ais-linear"): (0.1, 0.05)}}),
        ("linear-on-t", {"changed": {(TABLE, STUDENT, "ais-fourth"): (0.5, 0.04)}}),
        ("short-schedule", {"changed": {(TABLE, GAUSSIAN_A, "ais-100-1"): (0.5, 0.5)}}),
        ("plus-mode", {"shares": {"ends": 0.5}}),
        ("plus-mode", {"shares": {"wide": 0.97}}),
        ("two-modes-too-sure", {"changed": {(TABLE, TWO_MODES, "nest-1455-1"): (0.5, 0.1)}}),
        ("deceptive", {"changed": {(TABLE, DECEPTIVE, "nest-16000-1"): (0.5, 0.03)}}),
        ("deceptive", {"changed": {(TABLE, DECEPTIVE, "ais-1-1000"): (0.5, 0.02)}}),
        ("quadrants", {"shares": {"lost": 0.03}}),
        ("quadrants", {"shares": {"quadrant": 2025 / 4292}}),
        ("annealing-at-low-cost", {"figure": {"bias": 0.0}}),
        ("annealing-at-low-cost", {"figure": {"nest": 4.0}}),
        ("crossing", {"figure": {"ais": 2e4}}),
        ("more-chains", {"figure": {"many": 1.0}}),
        ("t-misprint", {"changed": {(TABLE, "t (base as printed)", "nest-93-1"): (0.5, 0.28)}}),
        ("ours-easy", {"changed": {(OURS, STUDENT, "joint"): (6.0, 0.1)}}),
        ("ours-deceived", {"changed": {(OURS, DECEPTIVE, "joint"): (0.5, 0.1)}}),
    ]
    for key, case in cases:
        case = {"changed": {}} | case
        found = {claim.key: claim.verdict for claim in EVIDENCE.claims(results(**case))}
        assert found[key] == "not reproduced", (key, case)
    smoke = EVIDENCE.claims(results({}, profile="smoke"))
    assert {claim.verdict for claim in smoke} == {"not run"}


@pytest.mark.usefixtures("few_volumes")
def test_without_results_no_claim_is_judged() -> None:
    empty = Results("quick", (), pd.DataFrame(columns=["cell"]), no_fit, planned=9)
    assert {claim.verdict for claim in EVIDENCE.claims(empty)} == {"not run"}
    assert EVIDENCE.tables(empty) == []
    assert EVIDENCE.figures(empty) == []


@pytest.mark.usefixtures("few_volumes")
def test_tables_have_the_published_numbers_beside_ours() -> None:
    made = results({})
    tables = {table.name: table.frame for table in EVIDENCE.tables(made)}
    frame = by_place(tables["evidence"].reset_index().set_index(["distribution", "method"]))
    row = frame[TWO_MODES, "Nest N=1455, 1 step"]
    assert row["paper: evals"] == "1,197,722"
    assert row["paper: z"] == pytest.approx((-6.47 + 7.20327) / 0.11, abs=0.05)
    assert row["z"] == "6.0, 6.6"
    assert row["verdict"] == "off by its errors"
    assert row["ours - paper, errors"] == pytest.approx(
        (-7.20327 + 0.6 + 6.47) / math.hypot(0.1, 0.11), abs=0.06
    )
    assert frame[DECEPTIVE, "Joint tempering"]["paper: evals"] == "–"
    assert frame[GAUSSIAN_A, "AIS 1,1 (0.3, nest N=212)"]["paper: log Z"] == 8.96
    assert by_place(tables["quadrants"])["truth"]["upper left"] == pytest.approx(0.0282, abs=5e-5)
    assert tables["two-modes"]["wide, unweighted"].max() == 0.97
    assert len(tables["repeated"]) == 12
    assert len(EVIDENCE.figures(made)) == 1


def test_agreement() -> None:
    assert agrees(np.array([0.5, -1.2, 2.0]))
    assert not agrees(np.array([0.5, -1.2, 5.0]))
    assert agrees(np.array([np.nan])) is None
