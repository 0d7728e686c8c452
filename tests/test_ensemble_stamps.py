"""Hidalgo's stamps by the ensemble quasi-Newton sampler: its mean against NUTS, its efficiency."""

from __future__ import annotations

import numpy as np
import pytest
from stamps_mixture import (
    COORDINATES,
    MEANS,
    REFERENCE,
    REFERENCE_SD,
    Stamps,
    quantities,
    starts,
)

from harness.arrays import FloatArray
from harness.evidence import autocorrelation_times, expectation
from harness.folders import shipped
from harness.samplers.ensemble import EnsembleRun, EnsembleSettings, run_ensemble
from harness.samplers.ensemble.walkers import walker_streams

WALKERS = 64
# Section 2.2's settings: distances in the means alone, in 0.01 mm.
LOCAL = EnsembleSettings(dt=0.015, gamma=1.0, eta=100.0, lam=12.0, select=MEANS)
# NUTS's reference has 16,000 draws, worth some 3,000 independent ones at its worst.
REFERENCE_DRAWS = 3000


def stamps() -> Stamps:
    return Stamps(shipped("data") / "stamps" / "hidalgo_stamps.csv")


@pytest.mark.parametrize("unconstrained", [True, False])
def test_gradients_agree_with_central_differences(unconstrained: bool) -> None:
    density = stamps().unconstrained if unconstrained else stamps().raw
    at, width = starts(4, np.random.default_rng(1), unconstrained=unconstrained), 1e-6
    shifts = width * np.eye(COORDINATES)
    slopes = [(density(at + d)[0] - density(at - d)[0]) / (2 * width) for d in shifts]
    np.testing.assert_allclose(density(at)[1], np.stack(slopes, 1), rtol=1e-5, atol=1e-4)


def test_both_ways_to_write_it_differ_by_the_jacobian() -> None:
    rng, density = np.random.default_rng(2), stamps()
    at = starts(20, rng, unconstrained=True) + 0.05 * rng.standard_normal((20, COORDINATES))
    logit = np.concatenate([at[:, 6:8], np.zeros((20, 1))], axis=1)
    z = np.exp(logit) / np.exp(logit).sum(axis=1, keepdims=True)
    natural = np.concatenate([at[:, :3], np.exp(at[:, 3:6]), z[:, :2], np.exp(at[:, 8:])], axis=1)
    jacobian = at[:, 3:6].sum(axis=1) + at[:, 8] + np.log(z).sum(axis=1)
    np.testing.assert_allclose(
        density.unconstrained(at)[0], density.raw(natural)[0] + jacobian, rtol=1e-12
    )


def test_outside_the_support_the_raw_density_is_zero() -> None:
    at = starts(4, np.random.default_rng(3), unconstrained=False)
    at[0, 3], at[1, 6], at[2, 8] = -1.0, 0.9, 0.0
    value, gradient = stamps().raw(at)
    assert (value[:3] == -np.inf).all()
    assert np.isfinite(value[3])
    assert np.isfinite(gradient).all()


def sampled(settings: EnsembleSettings, sweeps: int, *, unconstrained: bool) -> EnsembleRun:
    density = stamps().unconstrained if unconstrained else stamps().raw
    at = starts(WALKERS, np.random.default_rng(4), unconstrained=unconstrained)
    return run_ensemble(density, at, settings, sweeps, walker_streams(5, WALKERS))


def check_means(run: EnsembleRun, *, unconstrained: bool) -> dict[str, FloatArray]:
    """Check the four means within 4 errors, and return the series without their first quarter."""
    kept = run.points[:, run.points.shape[1] // 4 :]
    found = quantities(kept, unconstrained=unconstrained)
    for name, series in found.items():
        estimate = expectation(series.mean(axis=0)[None])
        error = np.hypot(estimate.mcse, REFERENCE_SD[name] / np.sqrt(REFERENCE_DRAWS))
        # The reference is rounded to its last digit, half a unit at most.
        assert abs(estimate.value - REFERENCE[name]) < 4 * error + 5e-4, name
    order = np.argsort(run.points[..., :3], axis=-1)
    assert (order == order[:, :1]).all()  # no walker changes its labels
    return found


def test_walkers_stay_inside_the_support_of_raw_coordinates() -> None:
    """Refused steps leave everybody inside, and a sweep of six label orders moves."""
    run = sampled(LOCAL, 4, unconstrained=False)
    assert np.isfinite(run.log_density).all()
    assert (run.points[..., 3:6] > 0).all()
    assert run.acceptance.mean() > 0.5


@pytest.mark.slow
def test_unconstrained_stamps() -> None:
    run = sampled(LOCAL, 1000, unconstrained=True)
    assert run.acceptance.mean() > 0.8
    found = check_means(run, unconstrained=True)
    for name, series in found.items():
        time = autocorrelation_times(series).own
        assert time.closed, name
        assert time.value < 60, name


@pytest.mark.slow
def test_raw_stamps_and_plain_langevin() -> None:
    """Two orders of magnitude, as in table 1: a property of these coordinates."""
    run = sampled(LOCAL, 1000, unconstrained=False)
    found = check_means(run, unconstrained=False)
    times = {name: autocorrelation_times(series).own for name, series in found.items()}
    for name, time in times.items():
        assert time.closed, name
        assert time.value < 150, name
    number = 100
    plain = EnsembleSettings(
        dt=0.01, gamma=0.1, eta=0.0, groups=1, steps=number, steps_per_decision=number
    )
    slow = sampled(plain, 700, unconstrained=False)
    kept = quantities(slow.points[:, 175:], unconstrained=False)["max lambda"]
    ratio = number * autocorrelation_times(kept).own.value / times["max lambda"].value
    assert 30 < ratio < 500
