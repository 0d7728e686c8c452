"""Runs from Stan's approximations and the bootstrap, on a regression with exact evidence."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from harness.engine.compile import CompiledProgram
from harness.engine.nuts import NutsSettings
from harness.errors import DataError, SamplingError
from harness.forms.common import Run
from harness.forms.continuous_tempering import CollapsedTempering, JointTempering
from harness.forms.form import sample
from harness.forms.from_approximation import (
    Bootstrap,
    FromApproximation,
    approximate,
    draws_as_starts,
)
from harness.forms.pseudo_extended import PseudoExtended
from harness.model import Model
from harness.model.coordinates import flatten
from harness.model.density import TargetDensity
from harness.models.radon import load_radon
from harness.models.radon_exact import exact_log_evidence
from harness.path import Advi, gaussian_base
from harness.samplers.from_approximation import sample_annealed_importance_from_approximation
from harness.samplers.ladders import sigmoidal_ladder

DATA = load_radon().subset(["AITKIN", "ANOKA", "BECKER", "CARVER"])
MODEL: Model = DATA.model("four counties")
TRUTH = exact_log_evidence(DATA).value
NUTS = NutsSettings(chains=2, warmup=400, draws=2500)


@pytest.fixture(scope="module", autouse=True)
def _needs_stanli() -> None:
    pytest.importorskip("stanli", reason="stanli evaluates Stan programs with no compile")


def test_the_numpy_density_is_the_stan_program() -> None:
    rng = np.random.default_rng(1)
    points = np.concatenate([s * rng.normal(size=(40, MODEL.dimension)) for s in (0.1, 1.0, 4.0)])
    assert MODEL.log_density is not None
    value, gradient = MODEL.log_density(points)
    stan, slope = TargetDensity(MODEL)(points)
    np.testing.assert_allclose(value, stan, rtol=1e-10, atol=1e-10)
    scale = 1e-10 * (1 + np.abs(slope).max(axis=1, keepdims=True))
    assert np.all(np.abs(gradient - slope) <= scale)
    assert dict(MODEL.shapes) == TargetDensity(MODEL).shapes


@pytest.mark.filterwarnings("error")
def test_the_numpy_density_far_out_is_no_number_and_no_warning() -> None:
    assert MODEL.log_density is not None
    for height in (-800.0, 800.0):
        point = np.zeros((1, MODEL.dimension))
        point[0, 2:5] = height
        value, gradient = MODEL.log_density(point)
        assert not (np.isfinite(value[0]) and np.all(np.isfinite(gradient)))


@pytest.mark.compiled
def test_a_bootstrap_comes_to_the_exact_evidence_and_counts_all_of_its_cost() -> None:
    path = FromApproximation(bootstrap=Bootstrap(3, NUTS, until_rest=True))
    fit = sample(MODEL, CollapsedTempering(), path, Run(seed=3, nuts=NUTS))
    log_z, attrs = fit.log_evidence, fit.tree.attrs
    # Within four standard errors, which are small beside the bound's own gap of several nats.
    assert log_z.mcse < 0.6
    assert abs(log_z.value - TRUTH) < 4 * log_z.mcse
    # ADVI's bound holds in expectation; its last value is a mean over 1,000 draws.
    assert attrs["approximation_log_zeta"] < TRUTH + 0.2
    steps = np.size(attrs["bootstrap_log_zeta"])
    assert 1 <= steps <= 3
    assert np.all(np.asarray(attrs["bootstrap_divergence"])[: steps - 1] >= 4)
    assert attrs["elbo"][-1] == attrs["approximation_log_zeta"]
    own = np.sum(attrs["gradients_warmup"]) + np.sum(attrs["gradients_sampling"])
    assert fit.gradients == pytest.approx(own + attrs["gradients_pilot"])
    assert attrs["gradients_pilot"] > steps * NUTS.draws
    assert attrs["seconds_pilot"] > attrs["approximation_seconds"] > 0
    assert fit.settings["bootstrap"]["most_steps"] == 3


@pytest.mark.compiled
def test_annealed_runs_from_a_variational_base_come_to_the_exact_evidence() -> None:
    fit = sample_annealed_importance_from_approximation(
        MODEL, ladder=sigmoidal_ladder(300), chains=400, seed=4
    )
    log_z = fit.log_evidence
    assert log_z.mcse < 0.3
    assert abs(log_z.value - TRUTH) < 4 * log_z.mcse
    assert fit.seconds > fit.tree.attrs["seconds_pilot"] > 0


@pytest.mark.compiled
def test_chains_start_at_draws_of_the_base() -> None:
    found = approximate(MODEL, "laplace", seed=1)
    assert found.trace.shape == (2, 0)
    starts = draws_as_starts(MODEL, found.base, MODEL.shapes, chains=400, seed=2)
    points = np.stack([flatten(MODEL, start, leading=0) for start in starts])
    z = found.base.whiten(points)
    # Of 400 draws: means to 1 / 20, variances to sqrt(2 / 400); five of each.
    assert np.abs(z.mean(axis=0)).max() < 5 / 20
    assert np.abs(z.var(axis=0) - 1).max() < 5 * np.sqrt(2 / 400)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(DataError, match="coordinates: leave it out"):
        sample(MODEL, JointTempering(), FromApproximation(base_metric=True), Run(seed=1))
    with pytest.raises(DataError, match="0 steps or more"):
        Bootstrap(-1)
    with pytest.raises(DataError, match="does not start from an approximation"):
        sample(MODEL, PseudoExtended(), FromApproximation(), Run(seed=1))


def test_the_best_of_three_runs_of_advi_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends thousands of nats low, or without an end, costs time and nothing else."""
    bounds = iter([-18763.6, None, -1052.3])
    seeds = []

    def fake(model: Model, *, seed: int, **_: object) -> Advi:
        seeds.append(seed)
        bound = next(bounds)
        if bound is None:
            raise SamplingError("All proposed step-sizes failed.")
        base = gaussian_base(np.zeros(2), np.eye(2), log_zeta=bound)
        return Advi(base, np.array([100.0]), np.array([bound]), converged=True)

    def degenerate(*_: object, **__: object) -> Advi:
        raise DataError("the base's covariance is not positive definite")

    monkeypatch.setattr("harness.forms.from_approximation.advi", fake)
    compiled = cast("CompiledProgram", object())
    found = approximate(MODEL, "mean_field", seed=5, compiled=compiled)
    assert found.base.log_zeta == -1052.3
    np.testing.assert_array_equal(found.trace, [[100.0], [-1052.3]])
    # Two came to their end: a hundred iterations each, and 5 step sizes for 50 before.
    assert found.gradients == 2 * (100 + 250)
    assert len(set(seeds)) == 3

    monkeypatch.setattr("harness.forms.from_approximation.advi", degenerate)
    with pytest.raises(DataError, match="positive definite"):
        approximate(MODEL, "mean_field", seed=5, compiled=compiled)
    monkeypatch.setattr("harness.forms.from_approximation.advi", fake)
    bounds = iter([None, None, None])
    with pytest.raises(SamplingError, match="step-sizes"):
        approximate(MODEL, "full_rank", seed=5, compiled=compiled)
