"""Repelling-attracting Metropolis: invariance, modes, honest errors, cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from known_targets import one_dimensional_mixture, ten_dimensional_gaussian
from log_gaussian import log_gaussian
from scipy.stats import chi2, kstest, norm

from harness.arrays import FloatArray
from harness.errors import DataError, SamplingError
from harness.model.python_target import function_target
from harness.path import gaussian_base
from harness.samplers.repelling_attracting import (
    REPELLING_ATTRACTING,
    Place,
    down_up,
    repelling_attracting,
)


def exact_place(count: int, scale: float, rng: np.random.Generator) -> Place:
    """Exact draws of the one-dimensional mixture, and of the auxiliary points given them."""
    known = one_dimensional_mixture()
    narrow = rng.random(count) < 0.3
    noise = rng.standard_normal(count)
    points = np.where(narrow, -3 + 0.4 * noise, 2 + 1.2 * noise)[:, None]
    auxiliary = points + scale * rng.standard_normal(points.shape)
    log_density = known.target.log_density
    return Place(points, log_density(points)[0], log_density(auxiliary)[0])


def mixture_cdf(x: FloatArray) -> FloatArray:
    return np.asarray(0.3 * norm.cdf(x, -3, 0.4) + 0.7 * norm.cdf(x, 2, 1.2))


@pytest.mark.parametrize("scale", [0.8, 4.0])
def test_exact_draws_stay_exact(scale: float) -> None:
    """The auxiliary point's law given x is the plain proposal (Tak et al. 2018)."""
    known, rng = one_dimensional_mixture(), np.random.default_rng(3)
    place, count = exact_place(40_000, scale, rng), 40_000
    before = place.points
    for _ in range(3):
        made = down_up(lambda x: known.target.log_density(x)[0], place, np.array([[scale]]), rng)
        place = made.place
    moved = np.mean(place.points != before)
    assert moved > 0.2
    # Two scales, two statistics each: a level of 1% over all four.
    assert kstest(mixture_cdf(place.points[:, 0]), "uniform").pvalue > 0.01 / 4
    again = np.sort(exact_place(count, scale, rng).log_auxiliary)
    # Kolmogorov's two-sample statistic, its 0.25% point 1.82 sqrt(2 / n).
    rank = np.searchsorted(again, np.sort(place.log_auxiliary)) / count
    assert np.abs(rank - np.arange(count) / count).max() < 1.83 * np.sqrt(2 / count)


def test_forced_moves_go_down_and_then_up() -> None:
    """From the top of a mode a down-up move lands elsewhere; both count their proposals."""
    known, rng = one_dimensional_mixture(), np.random.default_rng(1)
    points = np.full((20_000, 1), -3.0)
    height = known.target.log_density(points)[0]
    made = down_up(
        lambda x: known.target.log_density(x)[0],
        Place(points, height, height),
        np.array([[4.0]]),
        rng,
    )
    assert np.all(made.proposals >= 3)
    in_other = np.mean(made.place.points > -1)
    # Plain Metropolis of this scale: int q(x) min(1, ratio), by quadrature.
    x = np.linspace(-1, 12, 20_001)
    ratio = np.exp(known.target.log_density(x[:, None])[0] - height[0])
    metropolis = np.trapezoid(norm.pdf(x, -3, 4) * np.minimum(1, ratio), x)
    assert in_other > 1.5 * metropolis


@pytest.mark.slow
def test_mean_with_honest_errors() -> None:
    known = one_dimensional_mixture()
    z = np.empty(40)
    for seed in range(40):
        fit = repelling_attracting(
            known.target, known.base, scale=1.2, chains=10, draws=150, warmup=30, seed=seed
        )
        mean = fit.expectation(lambda draws: draws["x"])
        z[seed] = float((mean.value - known.mean)[0] / mean.mcse[0])
    # Mean squares of 40 z scores: chi^2_40 / 40 lies outside with 0.8% and 0.1%.
    assert chi2.cdf(40 * 0.5, 40) < 0.01
    assert chi2.sf(40 * 1.8, 40) < 0.01
    assert 0.5 < np.mean(z**2) < 1.8


def test_moments_of_a_gaussian() -> None:
    known = ten_dimensional_gaussian()
    fit = repelling_attracting(
        known.target, known.base, scale=0.25, chains=100, draws=400, warmup=200, seed=2
    )
    mean = fit.expectation(lambda draws: draws["x"])
    assert np.all(np.abs(mean.value - known.mean) < 4.5 * mean.mcse)
    assert np.all(mean.mcse < 0.3)


def test_same_seed_same_draws_and_cost() -> None:
    known = one_dimensional_mixture()

    def run(seed: int) -> FloatArray:
        fit = repelling_attracting(
            known.target, known.base, scale=1.0, chains=4, draws=50, warmup=0, seed=seed
        )
        # The start: one density to find it within the support, one gradient.
        assert fit.gradients == 4
        assert fit.tree.attrs["densities"] == 4 + int(fit.sample_stats["proposals"].sum())
        return np.asarray(fit.posterior["x"])

    first = run(8)
    np.testing.assert_array_equal(first, run(8))
    assert not np.array_equal(first, run(9))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"scale": 0.0}, "positive"),
        ({"scale": np.nan}, "positive"),
        ({"chains": 0}, "1 chain"),
        ({"draws": 2}, "4 draws"),
        ({"warmup": -1}, "warm-up"),
    ],
)
def test_bad_settings_are_one_clear_error(settings: dict[str, Any], says: str) -> None:
    known = one_dimensional_mixture()
    given: dict[str, Any] = {"scale": 1.0, "seed": 1} | settings
    with pytest.raises(DataError, match=says):
        repelling_attracting(known.target, known.base, **given)


def test_a_flat_support_that_proposals_leave_is_no_endless_loop() -> None:
    """Far outside its support a density is zero, and so is its padding's slope: any point does."""

    def point_like(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        inside = np.abs(points[:, 0]) < 1
        return np.where(inside, 0.0, -np.inf), np.zeros(points.shape)

    target = function_target("box", point_like, 1)
    fit = repelling_attracting(
        target, gaussian_base([0.0], [[0.25]]), scale=3.0, chains=50, draws=200, warmup=20, seed=4
    )
    x = fit.posterior["x"].to_numpy().ravel()
    assert np.abs(x).max() < 1
    second = fit.expectation(lambda draws: draws["x"] ** 2)
    assert abs(second.value[0] - 1 / 3) < 4.5 * second.mcse[0]


def test_a_move_that_finds_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the bottom of a narrow well there is no way down."""
    monkeypatch.setattr("harness.samplers.repelling_attracting._MOST_TRIES", 50)

    def well(points: FloatArray) -> FloatArray:
        return np.where(points[:, 0] == 0, -300.0, 0.0)

    start = Place(np.zeros((3, 1)), np.full(3, -300.0), np.full(3, -300.0))
    with pytest.raises(SamplingError, match="3 chains found no point to move down"):
        down_up(well, start, np.array([[1.0]]), np.random.default_rng(1))


def test_an_experiment_runs_it_on_a_model() -> None:
    pytest.importorskip("stanli", reason="stanli, which evaluates Stan programs, is missing")
    model, truth = log_gaussian()
    base = gaussian_base(truth.mean + 0.3, 2 * truth.covariance)
    fit = REPELLING_ATTRACTING.sample(
        model,
        nuts=None,
        seed=1,
        compiled=None,
        base=base,
        scale=0.7,
        chains=8,
        draws=400,
        warmup=100,
    )
    assert fit.tree.attrs["method"] == REPELLING_ATTRACTING.name
    assert set(fit.posterior) == {"x", "scale"}
    mean = fit.expectation(lambda draws: draws["x"])
    exact = truth.mean[:4].reshape(2, 2).T  # column-major
    # 4 standard errors of four coordinates, and a quarter for what they are known to.
    assert np.all(np.abs(mean.value - exact) < 5 * mean.mcse)
    assert np.all(mean.mcse < 0.3)
