"""The peers of the package blackjax: densities, draws of the prior, and log Z.

Densities in JAX are compared with the Stan programs', and log Z with closed forms.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit
from stan_density import stanli

from experiments.hard.grid import IN_JAX, ROWS, cell
from experiments.hard.peers import tempered_particles
from experiments.hard.peers.nested_slices import sample_by_nested_slices
from experiments.hard.peers.tempered_particles import sample_by_tempered_particles
from experiments.hard.within import sample_within
from harness.arrays import FloatArray
from harness.diagnosis import Severity, diagnose
from harness.engine.batched import BatchedDensity
from harness.errors import DataError, SamplingError
from harness.fit import Fit
from harness.folders import shipped
from harness.model import Model
from harness.models.hard import TARGETS
from harness.temper import tempered_model

assert stanli is not None
pytest.importorskip("blackjax")

import jax  # noqa: E402

from experiments.hard.peers.jax_densities import (  # noqa: E402
    DENSITIES,
    JaxDensity,
    jax_density,
)


@pytest.fixture(autouse=True)
def _no_other_precision() -> Iterator[None]:
    """Nothing that ran here may have left JAX in double precision."""
    yield
    assert jax.numpy.ones(1).dtype == np.float32


# Densities


@pytest.mark.parametrize("name", IN_JAX)
def test_a_density_is_that_of_the_program(name: str) -> None:
    model = TARGETS[name]()
    tempered = tempered_model(model.program("target").path, model.data, what="likelihood")
    target, prior = (
        BatchedDensity(tempered.program(variant), tempered.data) for variant in ("target", "prior")
    )
    with jax.enable_x64(True):
        density = jax_density(model)
        u = random_points(name, density)
        log_prior, slope = map(np.asarray, jax.vmap(jax.value_and_grad(density.log_prior))(u))
        found, steep = map(np.asarray, jax.vmap(jax.value_and_grad(density.log_likelihood))(u))
    assert density.dimension == target.dimension
    # All constants are the same, too.
    np.testing.assert_allclose(log_prior, prior.values(u), rtol=1e-8, atol=1e-8)
    value, gradient = target(u)
    np.testing.assert_allclose(log_prior + found, value, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(slope + steep, gradient, rtol=1e-6, atol=1e-6)


def random_points(name: str, density: JaxDensity) -> FloatArray:
    """Return draws of the prior; of the vaccines, whose Stan program rounds far out, of N(0, 4)."""
    rng = np.random.default_rng(11)
    if name == "vaccines":
        return rng.normal(0, 2, size=(50, density.dimension))
    return density.draw_prior(rng, 50)


def test_the_grid_knows_which_targets_have_a_density() -> None:
    """Of programs with a prior; without one there is nothing to start from."""
    able = [
        name
        for name, make in TARGETS.items()
        if make().folder.name in DENSITIES and make().own_base == "prior"
    ]
    assert able == list(IN_JAX)
    with pytest.raises(DataError, match="sparse_car has no density in JAX; these programs do: "):
        jax_density(TARGETS["sparse-car"]())


def uniform(u: FloatArray) -> FloatArray:
    """Coordinates that are the log odds of uniform ones."""
    return expit(u)


def normal(sd: float, u: FloatArray) -> FloatArray:
    return stats.norm(0, sd).cdf(u)


def of_galaxies(u: FloatArray) -> FloatArray:
    """The weights 1 and 3 are Beta(1, 2); means; variances."""
    basis = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
    q = np.exp(u[:, :2] @ basis)
    q /= q.sum(axis=1, keepdims=True)
    return np.hstack(
        [
            stats.beta(1, 2).cdf(q[:, ::2]),
            stats.norm(20, 10).cdf(u[:, 2:5]),
            stats.invgamma(3, scale=20).cdf(np.exp(u[:, 5:])),
        ]
    )


def of_vaccines(u: FloatArray) -> FloatArray:
    hyper = u[:, :4]
    centre = np.repeat(hyper[:, ::2], 4, axis=1)
    sd = np.repeat(np.sqrt(np.log1p(np.exp(hyper[:, 1::2]))), 4, axis=1)
    # Where the spread is below what floating-point numbers show, effects say nothing.
    wide = (hyper[:, 1] > -20) & (hyper[:, 3] > -20)
    both = np.hstack(
        [stats.norm(0, math.sqrt(1000)).cdf(hyper), stats.norm(centre, sd).cdf(u[:, 4:])]
    )
    both[~wide, 4:] = np.nan
    return both


def of_pine(u: FloatArray) -> FloatArray:
    tau = np.exp(u[:, 2])
    each = [
        stats.norm(3000, 1 / np.sqrt(0.06 * tau)).cdf(u[:, 0]),
        stats.norm(185, 1 / np.sqrt(6 * tau)).cdf(u[:, 1]),
        stats.gamma(3, scale=1 / 180_000).cdf(tau),
    ]
    return np.stack(each, axis=1)


PROBABILITIES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "product": uniform,
    "unequal-wells-10": partial(normal, 5.0),
    "rockets": partial(normal, 10.0),
    "galaxies": of_galaxies,
    "mrna": uniform,
    "vaccines": of_vaccines,
    "radiata-pine-density": of_pine,
    "sensors-8d": partial(normal, 10.0),
}
"""Turns prior draws (n, D) into probabilities, which are uniform; for a target of each program."""


@pytest.mark.parametrize("name", PROBABILITIES)
def test_draws_of_the_prior(name: str) -> None:
    with jax.enable_x64(True):
        density = jax_density(TARGETS[name]())
    found = PROBABILITIES[name](density.draw_prior(np.random.default_rng(12), 4000))
    for column in found.T:
        # 61 coordinates of all programs: a false alarm in one of 160 sets of seeds.
        assert stats.kstest(column[np.isfinite(column)], "uniform").pvalue > 1e-4
    known = found[np.isfinite(found).all(axis=1)]
    correlation = np.atleast_2d(np.corrcoef(known, rowvar=False))
    # Of independent coordinates the sd is 1 / sqrt(n); the two weights of a simplex are not.
    off = correlation[np.triu_indices(len(correlation), 1)]
    assert np.sort(np.abs(off))[: len(off) - (name == "galaxies")].max() < 4.5 / math.sqrt(2000)


def test_every_program_has_its_draws_tested() -> None:
    assert {TARGETS[name]().folder.name for name in PROBABILITIES} == set(DENSITIES)


# Samplers

Y = np.array([2.0, -1.5, 0.5])
SD = 0.5


def gaussian(y: FloatArray = Y) -> Model:
    """The two measurements of unequal wells are one: x ~ N(0, 25), y ~ N(x, 1/4)."""
    data = {"D": 3, "y": np.stack([y, y]), "sigma": np.array([SD, SD])}
    folder = shipped("stan") / "unequal_wells"
    return Model("gaussian", folder, data, ("x",), 3, own_base="prior")


LOG_Z = float(stats.norm(0, math.hypot(5, SD)).logpdf(Y).sum())
SHRINK = 25 / (25 + SD**2)
SAMPLERS: dict[str, Callable[..., Fit]] = {
    "tempered SMC": partial(sample_by_tempered_particles, particles=2000),
    "nested slices": partial(sample_by_nested_slices, live_points=400),
}


def problems(fit: Fit) -> list[str]:
    return [each.sentence for each in diagnose(fit) if each.severity == Severity.PROBLEM]


@pytest.mark.parametrize("name", SAMPLERS)
def test_log_z_and_draws_of_a_gaussian(name: str) -> None:
    fit = SAMPLERS[name](gaussian(), seed=1)
    found = fit.log_evidence
    # Four reported standard errors.  That of SMC is from 8 populations, so its own sd is a quarter.
    assert abs(found.value - LOG_Z) < 4 * found.mcse
    # sqrt(H / n) for nested sampling, with an information H of 5 nats: .11; and less for SMC.
    assert 0.005 < found.mcse < 0.2
    draws = fit.posterior["x"].to_numpy().reshape(-1, 3)
    # Weighted points that are resampled have twice the variance of as many draws; particles of SMC
    # share ancestors, for which there is another factor of 2.
    error = math.sqrt(SHRINK) * SD * math.sqrt(4 / len(draws))
    assert np.all(np.abs(draws.mean(axis=0) - SHRINK * Y) < 4 * error)
    spread = draws.std(axis=0) / (math.sqrt(SHRINK) * SD)
    assert np.all(np.abs(spread - 1) < 4 * math.sqrt(2 / len(draws)))
    assert fit.gradients > len(draws)
    assert not problems(fit)


@pytest.mark.parametrize("name", SAMPLERS)
def test_log_z_of_the_product(name: str) -> None:
    model = TARGETS["product"]()
    found = SAMPLERS[name](model, seed=2).log_evidence
    # Four reported standard errors, which are at most sqrt(H / n) = .16 with H = 10.
    assert abs(found.value - model.truth.log_evidence.value) < 4 * found.mcse
    assert 0.01 < found.mcse < 0.25


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_run_that_stops_at_the_budget_says_so(name: str) -> None:
    fit = SAMPLERS[name](TARGETS["product"](), most_evaluations=1000, seed=1)
    assert "stopped at the budget" in "".join(problems(fit))
    # It is stopped after the step in which it passes the limit: 2,000 particles, 44 times each.
    assert 1000 < fit.gradients <= 2000 * 44
    late = SAMPLERS[name](TARGETS["product"](), most_seconds=0, seed=1)
    assert "stopped at the budget" in "".join(problems(late))


@pytest.mark.parametrize("name", SAMPLERS)
def test_likelihoods_that_are_not_finite_are_refused(name: str) -> None:
    far = gaussian(np.array([1e200, 0, 0]))
    with pytest.raises(SamplingError, match=r"blackjax's .* not finite"):
        SAMPLERS[name](far, seed=1)


def test_the_ladder_leaves_zero_where_the_prior_has_tiny_likelihoods() -> None:
    """A third of the prior of mrna has log likelihoods below -1e30: the first step is tiny."""
    fit = sample_by_tempered_particles(
        TARGETS["mrna"](), particles=200, most_evaluations=2 * 200 * 43, seed=1
    )
    (sentence,) = problems(fit)[:1]
    found = re.search(r"inverse temperature of (\S+),", sentence)
    assert found is not None
    assert 0 < float(found[1]) < 1e-6


def test_particles_that_do_not_arrive_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempered_particles, "_MOST_STEPS", 1)
    with pytest.raises(SamplingError, match="has not reached gaussian in 1 steps"):
        sample_by_tempered_particles(gaussian(), particles=100, seed=1)


@pytest.mark.parametrize("key", ["blackjax-smc", "blackjax-nested"])
def test_a_row_within_a_budget(key: str) -> None:
    (row,) = (row for row in ROWS if row.key == key)
    model = TARGETS["unequal-wells-10"]()
    made = cell("unequal-wells-10", model, "abc", row, 1, evaluations=4e6)
    fit = sample_within(model, **made.settings, seed=3)
    # The trial takes a million at most; what it foresees holds within the half that runs may err.
    assert 1.5e6 < fit.tree.attrs["evaluations"] < 6e6
    assert not fit.tree.attrs["trial_only"]
