"""Groups of walkers: frozen others, streams of their own, rejections, bad input, fits."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from ensemble_banana import exact_draws, log_density, place_at

from harness.arrays import FloatArray
from harness.diagnosis import Severity, diagnose
from harness.errors import DataError
from harness.evidence import autocorrelation_times, expectation
from harness.fit import Fit
from harness.model.python_target import function_target
from harness.path import gaussian_base
from harness.report import FitReport
from harness.samplers.ensemble import (
    EnsembleSettings,
    FixedRoot,
    LocalPreconditioner,
    decide,
    run_ensemble,
)
from harness.samplers.ensemble.walkers import walker_streams
from harness.samplers.ensemble_quasi_newton import (
    ENSEMBLE_QUASI_NEWTON,
    ensemble_quasi_newton,
    hmc,
    langevin,
)

LOCAL = EnsembleSettings(dt=0.3, eta=3.0, lam=1.5, groups=2, steps=3)
SD = np.array([0.3, 1.0, 3.0])
COVARIANCE = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 1.0]]) * np.outer(SD, SD)
WIDE = gaussian_base(np.zeros(3), COVARIANCE)


def gaussian(q: FloatArray) -> tuple[FloatArray, FloatArray]:
    gradient = -q @ np.linalg.inv(COVARIANCE)
    return 0.5 * (q * gradient).sum(axis=1), gradient


TARGET = function_target("gaussian", gaussian, 3)


def outside_is_zero(q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The banana, cut at x = 0: what is below has no density, and a gradient of NaN."""
    value, gradient = log_density(q)
    out = q[:, 0] < 0
    return np.where(out, -np.inf, value), np.where(out[:, None], np.nan, gradient)


def test_walkers_of_one_group_do_not_see_each_other() -> None:
    """B of the rest stays the same bit for bit when one of them moves."""
    rng = np.random.default_rng(1)
    preconditioner = LocalPreconditioner(exact_draws(12, rng), 3.0, 1.5)
    q = exact_draws(8, rng)
    moved = q.copy()
    moved[3] += 1.0
    before, after = preconditioner.root(q).factor, preconditioner.root(moved).factor
    assert not np.array_equal(before[3], after[3])
    rest = np.arange(8) != 3
    np.testing.assert_array_equal(before[rest], after[rest])


@pytest.mark.parametrize(
    "settings", [LOCAL, replace(LOCAL, lam=0.0), replace(LOCAL, gamma=0.0, jitter=0.2)]
)
def test_order_within_a_group_does_not_matter(settings: EnsembleSettings) -> None:
    """Walkers and their streams in another order: the same results, but for rounding."""
    starts = exact_draws(16, np.random.default_rng(2))
    order = np.array([3, 0, 7, 1, 6, 2, 5, 4, *range(15, 7, -1)])
    plain = run_ensemble(log_density, starts, settings, 4, walker_streams(5, 16))
    streams = [walker_streams(5, 16)[w] for w in order]
    shuffled = run_ensemble(log_density, starts[order], settings, 4, streams)
    # Sums over the others run in another order, and twelve steps make that a little larger.
    np.testing.assert_allclose(shuffled.points, plain.points[order], rtol=1e-8, atol=1e-8)
    assert plain.gradients == 16 * (1 + 4 * 3)


def test_rows_hold_each_group_at_its_own_turn() -> None:
    """With one step a turn, the second group's B comes from the first group's new places."""
    starts = exact_draws(8, np.random.default_rng(3))
    seen: list[FloatArray] = []

    def watched(others: FloatArray) -> FixedRoot:
        seen.append(others.copy())
        return FixedRoot()

    settings = replace(LOCAL, steps=1, steps_per_decision=1)
    run = run_ensemble(log_density, starts, settings, 2, walker_streams(1, 8), precondition=watched)
    np.testing.assert_array_equal(seen[0], starts[4:])
    np.testing.assert_array_equal(seen[1], run.points[:4, 0])
    np.testing.assert_array_equal(seen[2], run.points[4:, 0])
    np.testing.assert_array_equal(seen[3], run.points[:4, 1])


@pytest.mark.parametrize("number", [1, 4])
def test_rejection_restores_the_first_state_and_flips_the_momentum(number: int) -> None:
    rng = np.random.default_rng(4)
    settings = EnsembleSettings(dt=0.3, eta=0.0, steps=number, steps_per_decision=number)
    q, p, identity = exact_draws(20, rng), rng.standard_normal((20, 3)), FixedRoot()
    noise = rng.standard_normal((number, 20, 3))
    place, dt = place_at(q, p, identity), np.full((20, 1), 0.3)
    # Nobody accepts at -inf, everybody who can at inf.
    stays = decide(place, noise, np.full(20, -np.inf), dt, settings, identity, log_density)
    assert not stays.accepted.any()
    np.testing.assert_array_equal(stays.place.q, q)
    np.testing.assert_array_equal(stays.place.p, -p)
    np.testing.assert_array_equal(stays.place.gradient, place.gradient)
    goes = decide(place, noise, np.full(20, np.inf), dt, settings, identity, log_density)
    assert goes.accepted.all()
    assert np.abs(goes.place.q - q).min() > 0


def test_no_density_no_step() -> None:
    """Zero density, a gradient of NaN and NaN itself all refuse, without a warning."""

    def faulty(q: FloatArray) -> tuple[FloatArray, FloatArray]:
        value, gradient = log_density(q)
        value = np.where(q[:, 0] > 1, -np.inf, np.where(q[:, 1] > 1, np.nan, value))
        return value, np.where(q[:, 2:] > 1, np.nan, gradient)

    starts = 0.1 * np.random.default_rng(5).standard_normal((16, 3))
    for settings in (LOCAL, replace(LOCAL, metropolis=False), replace(LOCAL, eta=0.0)):
        run = run_ensemble(faulty, starts, settings, 30, walker_streams(6, 16))
        assert run.points.max() <= 1
        assert run.invalid.any()
        assert np.isfinite(run.log_density).all()


def test_a_cut_target_keeps_its_law() -> None:
    """Refused steps that are half-way outside do no harm: x is half normal in the end."""
    starts = np.abs(exact_draws(64, np.random.default_rng(7)))
    fit = ensemble_quasi_newton(
        function_target("cut", outside_is_zero, 3),
        dt=0.25,
        gamma=0.5,
        eta=2.0,
        starts=starts,
        draws=1500,
        warmup=100,
        seed=8,
    )
    assert fit.sample_stats["refused"].mean() > 0.01
    x = fit.expectation(lambda p: p["x"].isel(x_dim_0=0))
    assert abs(x.value - np.sqrt(2 / np.pi)) < 4 * x.mcse
    # And z given x is N(x / 2, 1).
    z = fit.expectation(lambda p: p["x"].isel(x_dim_0=2) - p["x"].isel(x_dim_0=0) / 2)
    assert abs(z.value) < 4 * z.mcse


def test_the_process_is_the_same_in_coordinates_of_a_lower_triangular_map() -> None:
    """With B = chol(cov) and the same noise (appendix 5; for other maps B turns the noise)."""

    def root(others: FloatArray) -> FixedRoot:
        return FixedRoot(np.asarray(np.linalg.cholesky(np.cov(others.T, bias=True)), float))

    rng = np.random.default_rng(9)
    starts = exact_draws(16, rng)
    matrix = np.tril(rng.standard_normal((3, 3))) + 3 * np.eye(3)  # its diagonal is positive

    def mapped(y: FloatArray) -> tuple[FloatArray, FloatArray]:
        value, gradient = log_density(y @ matrix.T)
        return value, gradient @ matrix

    settings = replace(LOCAL, dt=0.2)
    one = run_ensemble(log_density, starts, settings, 5, walker_streams(3, 16), precondition=root)
    moved = np.linalg.solve(matrix, starts.T).T
    other = run_ensemble(mapped, moved, settings, 5, walker_streams(3, 16), precondition=root)
    np.testing.assert_allclose(other.points @ matrix.T, one.points, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(one.acceptance > 0, other.acceptance > 0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"dt": 0.0}, "dt must be positive"),
        ({"dt": np.nan}, "dt must be positive"),
        ({"gamma": -1.0}, "gamma must be 0 or more"),
        ({"eta": -1.0}, "eta must be 0 or more"),
        ({"lam": -1.0}, "lam must be 0 or more"),
        ({"groups": 1}, "2 groups or more"),
        ({"groups": 5}, "16 walkers do not divide into 5 groups"),
        ({"steps": 0}, "1 or more"),
        ({"steps_per_decision": 3}, "must divide the 10 steps"),
        ({"select": [3], "lam": 1.0}, "different coordinates from 0 to 2"),
        ({"select": [0, 0], "lam": 1.0}, "different coordinates"),
        ({"scale": [1.0], "lam": 1.0}, "scale needs a factor for each of the 3"),
        ({"low_rank": True, "lam": 1.0}, "low_rank is for lam = 0"),
        ({"starts": np.zeros((16, 3))}, "all walkers start at one point"),
        ({"starts": np.zeros((16, 2))}, r"shape \(walkers, 3\)"),
        ({"starts": np.ones((4, 3)) * np.arange(4)[:, None], "groups": 4}, "more than 3 others"),
        ({"starts": np.full((16, 3), np.nan)}, "starting point is not finite"),
        ({"starts": None}, "give one of the two"),
        ({"draws": 3}, "4 draws"),
    ],
)
def test_bad_input_gets_one_sentence(settings: dict[str, Any], said: str) -> None:
    given = {"dt": 0.1, "starts": np.random.default_rng(1).standard_normal((16, 3)), **settings}
    with pytest.raises(DataError, match=said) as caught:
        ensemble_quasi_newton(TARGET, **given, seed=1)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("what", ["value", "gradient"])
def test_starts_outside_the_support(what: str) -> None:
    def faulty(q: FloatArray) -> tuple[FloatArray, FloatArray]:
        value, gradient = log_density(q)
        if what == "value":
            return np.where(q[:, 0] > 0, value, -np.inf), gradient
        return value, np.where(q[:, :1] > 0, gradient, np.nan)

    starts = np.random.default_rng(1).standard_normal((16, 3))
    target = function_target("faulty", faulty, 3)
    with pytest.raises(DataError, match=f"{'log density is' if what == 'value' else 'gradient'}"):
        ensemble_quasi_newton(target, dt=0.1, starts=starts, seed=1)


@cache
def fit_of(method: str) -> Fit:
    short: dict[str, Any] = {"draws": 1000, "warmup": 100, "walkers": 32, "seed": 3}
    if method == "hmc":
        return hmc(TARGET, WIDE, dt=0.35, leapfrog_steps=8, **short)
    if method == "langevin":
        return langevin(TARGET, WIDE, dt=0.3, gamma=0.3, steps_per_decision=10, **short)
    extra: dict[str, Any] = (
        {"lam": 0.05} if method == "local" else {"lam": 0.0, "steps_per_decision": 2}
    )
    return ensemble_quasi_newton(
        TARGET, WIDE, dt=0.25, gamma=0.5, eta=10.0, groups=2, **extra, **short
    )


@pytest.mark.parametrize("method", ["local", "global", "langevin", "hmc"])
def test_methods_sample_the_target(method: str) -> None:
    """Means and second moments of a Gaussian with widths from 0.3 to 3, 4 standard errors wide."""
    fit = fit_of(method)
    assert fit.chains_interact == (method in ("local", "global"))
    mean = fit.expectation(itemgetter("x"))
    assert (np.abs(mean.value) < 4 * mean.mcse).all()
    second = fit.expectation(lambda p: p["x"] * p["x"].rename(x_dim_0="other"))
    assert (np.abs(second.value - COVARIANCE) < 4 * second.mcse).all()


def test_errors_come_from_the_mean_over_walkers(tmp_path: Path) -> None:
    fit = fit_of("local")
    x = fit.posterior["x"].to_numpy()[:, :, 0]

    def first(parameters: xr.Dataset) -> xr.DataArray:
        return parameters["x"].isel(x_dim_0=0)

    estimate = fit.expectation(first)
    assert estimate.mcse == expectation(x.mean(axis=0)[None]).mcse
    # Another estimate of the same error, from the time of the mean.
    time = autocorrelation_times(x).mean.value
    assert estimate.mcse == pytest.approx(np.sqrt(x.mean(axis=0).var() * time / 1000), rel=0.25)
    assert fit.effective_draws(first) == pytest.approx(x.var() / estimate.mcse**2)
    path = tmp_path / "fit.nc"
    fit.save(path)
    assert Fit.load(path).expectation(first) == estimate


def test_diagnosis_and_page_do_not_compare_walkers(tmp_path: Path) -> None:
    """Walkers that stay apart have a large R-hat, which would mean nothing; a drift does."""
    fit = fit_of("local")
    told = diagnose(fit)
    assert any("walkers' mean does not drift" in each.sentence for each in told)
    assert not any("chains" in each.sentence.lower() and "R-hat" in each.sentence for each in told)
    drifting = Fit(fit.tree.copy())
    x = fit.posterior["x"]
    drifting.tree["posterior"]["x"] = x + x["draw"] / 500
    worst = diagnose(drifting)[0]
    assert worst.severity == Severity.PROBLEM
    assert "walkers' mean drifts" in worst.sentence
    path = tmp_path / "page.html"
    FitReport(fit).save(path)
    html = path.read_text(encoding="utf-8")
    assert "They depend on each other" in html
    assert "ess_bulk" not in html


def test_registered_method_takes_what_an_experiment_gives() -> None:
    fit = ENSEMBLE_QUASI_NEWTON.sample(
        TARGET, base=WIDE, dt=0.3, eta=1.0, draws=20, warmup=0, seed=1, nuts=None, compiled=None
    )
    assert fit.posterior["x"].shape == (64, 20, 3)
    assert fit.gradients == 64 * (1 + 20)
    assert fit.settings["dt"] == 0.3
