"""Bases from Stan's approximations, on a Gaussian target of known log Z and on a mixture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from log_gaussian import log_gaussian
from scipy.stats import chi2

from harness import path
from harness.engine.compile import CompiledProgram, compile_programs
from harness.engine.nuts import NutsSettings, run_nuts
from harness.engine.program import StanProgram
from harness.engine.toolchain import require_cmdstan
from harness.errors import DataError, SamplingError
from harness.model import Model
from harness.models.gaussian_mixture import GaussianMixture
from harness.path import (
    GaussianBase,
    PilotSettings,
    advi,
    gaussian_base,
    laplace_base,
    local_base,
    local_fits,
    particles_by_parameter,
    pathfinder_base,
    pilot,
    starting_values,
)

MIXTURE = GaussianMixture(
    np.array([0.2, 0.3, 0.5]),
    np.array([[0.0, 0.0], [4.0, 1.0], [1.0, 5.0]]),
    np.array([0.1, 0.3, 0.2]),
)
BOXED = MIXTURE.model("three modes", lower=-10, upper=15)


@pytest.fixture(scope="module")
def compiled(cmdstan_home: Path) -> dict[StanProgram, CompiledProgram]:
    programs = [model.program("target") for model in (log_gaussian()[0], BOXED)]
    return compile_programs(programs, require_cmdstan())


def of(model: Model, compiled: dict[StanProgram, CompiledProgram]) -> CompiledProgram:
    return compiled[model.program("target")]


@pytest.mark.compiled
def test_laplace_is_exact_for_a_gaussian(compiled: dict[StanProgram, CompiledProgram]) -> None:
    """A positive parameter, a matrix, and the Jacobian and constants in log Z among it."""
    model, truth = log_gaussian()
    base = laplace_base(model, seed=1, compiled=of(model, compiled))
    assert base.log_zeta == pytest.approx(truth.log_zeta, abs=1e-6)
    np.testing.assert_allclose(base.covariance, truth.covariance, rtol=1e-6, atol=1e-8)
    assert np.all(np.abs(truth.whiten(base.mean)) < 1e-3)  # the optimiser's tolerance


@pytest.mark.compiled
def test_pathfinder_estimates_the_evidence_of_a_gaussian(
    compiled: dict[StanProgram, CompiledProgram],
) -> None:
    model, truth = log_gaussian()
    fits = [
        pathfinder_base(model, seed=seed, draws=1000, compiled=of(model, compiled))
        for seed in range(1, 9)
    ]
    ratio = np.exp([fit.log_zeta - truth.log_zeta for fit in fits])
    assert abs(ratio.mean() - 1) < 4 * ratio.std(ddof=1) / np.sqrt(len(fits))
    assert ratio.std() < 0.3
    for fit in fits:
        assert np.all(np.abs(truth.whiten(fit.mean)) < 1)
    again = pathfinder_base(model, seed=3, draws=1000, compiled=of(model, compiled))
    assert np.array_equal(again.mean, fits[2].mean)


def expected_elbo(q: GaussianBase, truth: GaussianBase) -> float:
    """Log Z - KL(q | target), in closed form."""
    precision = np.linalg.inv(truth.covariance)
    shift = q.mean - truth.mean
    log_det = np.linalg.slogdet(truth.covariance)[1] - np.linalg.slogdet(q.covariance)[1]
    trace = np.trace(precision @ q.covariance)
    return float(truth.log_zeta - 0.5 * (trace + shift @ precision @ shift - shift.size + log_det))


@pytest.mark.compiled
@pytest.mark.parametrize("full_rank", [False, True])
def test_advi_keeps_its_moments_and_its_bound(
    full_rank: bool, compiled: dict[StanProgram, CompiledProgram]
) -> None:
    model, truth = log_gaussian()
    fit = advi(model, full_rank=full_rank, draws=4000, seed=2, compiled=of(model, compiled))
    assert fit.base.log_zeta == fit.elbo[-1]
    assert np.all(np.diff(fit.iteration) > 0)
    assert fit.elbo.shape == fit.iteration.shape
    off_diagonal = fit.base.covariance[~np.eye(5, dtype=bool)]
    assert np.all(off_diagonal == 0) != full_rank
    # Stan's Gaussian is known by its draws alone.  Its ELBO from 1000 draws has a standard error
    # of sqrt(D / 2 / 1000) = 0.05, the moments of 4000 draws move it by as much or less.
    assert fit.base.log_zeta == pytest.approx(expected_elbo(fit.base, truth), abs=0.25)
    assert expected_elbo(fit.base, truth) < truth.log_zeta
    squared = np.square(truth.whiten(fit.base.mean)).sum()
    assert squared < chi2.ppf(0.5, 5)  # within the target's bulk


@pytest.mark.compiled
def test_a_fit_that_ran_out_of_iterations_says_so(
    compiled: dict[StanProgram, CompiledProgram],
) -> None:
    model, _ = log_gaussian()
    short = advi(model, iterations=100, seed=2, compiled=of(model, compiled))
    assert not short.converged
    assert short.elbo.size == 1


@pytest.mark.compiled
def test_local_fits_find_every_mode_and_its_weight(
    compiled: dict[StanProgram, CompiledProgram],
) -> None:
    fits = local_fits(BOXED, starts=12, init_radius=3, seed=3, compiled=of(BOXED, compiled))
    assert len(fits) == 3
    # On the logit scale a component is Gaussian up to terms of order (sd / box)^2, below 1e-3.
    for fit, k in zip(fits, (2, 1, 0), strict=True):
        assert fit.log_zeta == pytest.approx(np.log(MIXTURE.weight[k]), abs=5e-3)
        error = MIXTURE.sd[k] / np.sqrt(10_000)
        assert np.all(np.abs(fit.mean - MIXTURE.mean[k]) < 4 * error + 1e-3 * MIXTURE.sd[k])
        spread = np.sqrt(np.diag(fit.covariance))
        np.testing.assert_allclose(spread, MIXTURE.sd[k], rtol=4 / np.sqrt(20_000) + 1e-3)
    base = local_base(BOXED, starts=12, init_radius=3, seed=3, compiled=of(BOXED, compiled))
    assert base.log_zeta == pytest.approx(0, abs=5e-3)
    np.testing.assert_allclose(base.mean, MIXTURE.truth.expected("x"), atol=0.02)
    variance = MIXTURE.truth.expected("x_squared") - MIXTURE.truth.expected("x") ** 2
    np.testing.assert_allclose(np.diag(base.covariance), variance, rtol=0.02)


@pytest.mark.compiled
def test_pathfinder_finds_modes_too(compiled: dict[StanProgram, CompiledProgram]) -> None:
    fits = local_fits(
        BOXED,
        starts=8,
        method="pathfinder",
        init_radius=3,
        seed=3,
        compiled=of(BOXED, compiled),
    )
    nearest = [int(np.argmin(np.linalg.norm(MIXTURE.mean - fit.mean, axis=1))) for fit in fits]
    assert len(set(nearest)) == len(nearest) >= 2
    for fit, k in zip(fits, nearest, strict=True):
        assert fit.log_zeta == pytest.approx(np.log(MIXTURE.weight[k]), abs=0.1)


@pytest.mark.compiled
def test_what_stan_refuses_is_said_in_its_words(
    compiled: dict[StanProgram, CompiledProgram],
) -> None:
    model, _ = log_gaussian()
    broken = replace(model, data={**model.data, "mu": np.zeros(4)})
    fitters: list[Callable[..., object]] = [advi, pathfinder_base, laplace_base, local_fits]
    for fitter in fitters:
        with pytest.raises(SamplingError, match="mismatch in dimension"):
            fitter(broken, seed=1, compiled=of(model, compiled))


@pytest.mark.compiled
def test_chains_start_at_a_pilots_particles(compiled: dict[StanProgram, CompiledProgram]) -> None:
    pytest.importorskip("stanli", reason="stanli is not installed")
    settings = PilotSettings(particles=128, moves=1, leapfrog_steps=4)
    nuts = NutsSettings(chains=6, warmup=20, draws=4)
    scouted = pilot(BOXED, gaussian_base([2, 2], 6 * np.eye(2)), settings=settings, seed=4)
    inits = starting_values(particles_by_parameter(BOXED, scouted), chains=6)
    run = run_nuts(of(BOXED, compiled), BOXED.data, nuts, 5, inits=inits)
    # No chain crosses ten standard deviations and more to another mode in 20 iterations.
    started, ended = (
        [int(np.argmin(np.linalg.norm(MIXTURE.mean - point, axis=1))) for point in points]
        for points in (scouted.points[:6], run.variables["x"][:, 0])
    )
    assert len(set(started)) > 1
    assert ended == started
    # CmdStan takes a matrix and a real, too: it refuses another shape.
    model, _ = log_gaussian()
    scouted = pilot(model, gaussian_base(np.zeros(5), 3 * np.eye(5)), settings=settings, seed=4)
    inits = starting_values(particles_by_parameter(model, scouted), chains=6)
    first, other = (
        run_nuts(of(model, compiled), model.data, nuts, 5, inits=values).variables["x"]
        for values in (inits, inits[::-1])
    )
    assert first.shape == (6, 4, 2, 2)
    assert not np.array_equal(first, other)


def test_settings_are_refused_before_anything_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiles(*_: object) -> None:
        raise AssertionError("compiled")

    monkeypatch.setattr(path.approximations, "compile_programs", compiles)
    model, _ = log_gaussian()
    with pytest.raises(DataError, match="5 dimensions needs 100 draws or more; got 99"):
        advi(model, draws=99, seed=1)
    with pytest.raises(DataError, match="got 40"):
        pathfinder_base(model, draws=40, seed=1)
    with pytest.raises(DataError, match="200 dimensions needs 2000 draws"):
        pathfinder_base(replace(model, dimension=200), draws=1999, seed=1)
    with pytest.raises(DataError, match="one start or more; got 0"):
        local_fits(model, starts=0, seed=1)
    with pytest.raises(DataError, match="'laplace' or 'pathfinder'; got 'advi'"):
        local_fits(model, method="advi", seed=1)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="separation of modes must be positive"):
        local_fits(model, separation=0, seed=1)
    with pytest.raises(AssertionError, match="compiled"):
        laplace_base(model, seed=1)
