"""The truth of small Cox processes: against weighted draws of the prior, and against NUTS."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pytest
import xarray as xr

from harness.engine.nuts import NutsSettings
from harness.errors import DataError
from harness.evidence import expectation
from harness.forms import CollapsedTempering, Run, sample
from harness.forms.nuts import PLAIN_NUTS
from harness.model import Model
from harness.models.log_gaussian_cox import LogGaussianCox, generate
from harness.models.log_gaussian_cox_exact import CoxPosterior, exact_posterior


def small() -> LogGaussianCox:
    """So few points that draws of the prior serve as weighted draws of the posterior."""
    return LogGaussianCox(np.array([[1, 0], [2, 1]]), field_mean=1.0)


def exact_of(process: LogGaussianCox, step: float = 0.25) -> CoxPosterior:
    return exact_posterior(process.counts, process.scaled_distance, process.field_mean, step=step)


@cache
def exact_small() -> CoxPosterior:
    return exact_of(small(), 0.5)


def test_draws_of_the_prior_say_the_same() -> None:
    """Log evidence and means of scales and field within 4.5 errors of both together.

    20 batches of 20,000 draws weighted by the likelihood have standard errors with 19 degrees of
    freedom: of 19 quantities one is that far off with probability 5e-3.
    """
    process, rng = small(), np.random.default_rng(8)
    exact = exact_small()
    names = ("sigma2", "range", "log_sigma2", "log_range", "x", "x_squared", "z")
    mass, rows = [], []
    for _ in range(20):
        theta = np.log(rng.standard_exponential((20_000, 2)))
        steepness = process.scaled_distance * np.exp(-theta[:, 1, None, None])
        # A range a million times the side makes cells alike but for rounding.
        correlation = np.exp(-steepness) + 1e-12 * np.eye(4)
        root = np.exp(theta[:, 0] / 2)[:, None, None] * np.linalg.cholesky(correlation)
        z = rng.standard_normal((len(theta), 4))
        x = 1.0 + (root @ z[..., None])[..., 0]
        value, _ = process.log_likelihood(x)
        # What that leaves out: points! and the cells' areas, as in the Poisson probabilities.
        weight = np.exp(value) / 2 / 4.0 ** process.counts.sum()
        mass.append(weight.mean())
        columns = np.column_stack([np.exp(theta), theta, x, x**2, z])
        rows.append(weight @ columns / weight.sum())
    found = np.stack(rows)
    wanted = np.concatenate([np.atleast_1d(exact.mean[name].value) for name in names])
    off = np.concatenate([np.atleast_1d(exact.mean[name].error) for name in names])
    error = np.hypot(found.std(axis=0, ddof=1) / np.sqrt(20), off)
    assert np.all(np.abs(found.mean(axis=0) - wanted) < 4.5 * error)
    assert np.all(off < 0.01 * (1 + np.abs(wanted)))
    relative = np.std(mass, ddof=1) / np.sqrt(20) / np.mean(mass)
    log_evidence, error_of_it = exact.log_evidence
    assert abs(np.log(np.mean(mass)) - log_evidence) < 4.5 * np.hypot(relative, error_of_it)
    assert error_of_it < 0.01


def test_the_model_has_this_truth() -> None:
    """In both parametrisations, also after it was sent to another process; none if it is large."""
    process = small()
    for centred in (False, True):
        truth = process.model("small", centred=centred).truth
        assert "quadrature" in truth.source
    sent = pickle.loads(pickle.dumps(process.model("small")))  # noqa: S301
    assert sent.truth.source == truth.source
    with pytest.raises(DataError, match="true log Z of this target is not known"):
        _ = generate(9, "unit_square").model("large").truth.log_evidence


def test_what_it_does_not_take() -> None:
    large = generate(9, "unit_square")
    with pytest.raises(DataError, match="64 cells at most; got 81"):
        exact_of(large)
    process = small()
    with pytest.raises(DataError, match="multiple of 32; got 40"):
        exact_posterior(process.counts, process.scaled_distance, 1.0, draws=40)


def test_log_evidence_of_tempered_runs() -> None:
    """From the prior to the posterior in both parametrisations: within 4.5 errors of both."""
    log_evidence, error = exact_small().log_evidence
    for centred in (False, True):
        model = small().model("small", centred=centred)
        nuts = NutsSettings(chains=2, warmup=300, draws=1500, target_accept=0.9)
        run = Run(seed=3, nuts=nuts, engine="stanli")
        found = sample(model, CollapsedTempering(), None, run).log_evidence
        assert found.mcse < 0.2
        assert abs(found.value - log_evidence) < 4.5 * np.hypot(found.mcse, error)


def means(model: Model, centred: bool, nuts: NutsSettings) -> tuple[list[float], list[float]]:
    """Means of log variance, log range and all log intensities, with their errors."""
    fit = PLAIN_NUTS.sample(model, nuts=nuts, seed=5, engine="stanli")
    draws = fit.posterior
    scales = [np.log(draws[name].to_numpy()) for name in ("sigma2", "range")]
    if centred:
        field = draws["x"].to_numpy()
    else:
        process = generate(int(model.data["n"]), "unit_square")
        field = whitened_to_field(process, scales, draws["z"])
    series = [*scales, *np.moveaxis(field, -1, 0)]
    found = [expectation(each) for each in series]
    return [float(each.value) for each in found], [float(each.mcse) for each in found]


def whitened_to_field(
    process: LogGaussianCox, scales: list[np.ndarray], z: xr.DataArray
) -> np.ndarray:
    root = np.linalg.cholesky(
        np.exp(scales[0])[..., None, None]
        * np.exp(-process.scaled_distance * np.exp(-scales[1])[..., None, None])
    )
    return np.asarray(process.field_mean + (root @ z.to_numpy()[..., None])[..., 0])


@pytest.mark.slow
@pytest.mark.parametrize("centred", [False, True], ids=["whitened", "centred"])
def test_long_runs_of_two_programs_say_the_same(centred: bool) -> None:
    """36 cells by NUTS: 38 means within 4.5 errors of both, which chance exceeds in 1e-3 of cases.

    The errors come from 4 chains, whose number of independent draws is known to some 10%.
    """
    process = generate(6, "unit_square")
    exact = exact_of(process)
    model = process.model("cox-6", centred=centred)
    nuts = NutsSettings(chains=4, warmup=500, draws=2500, target_accept=0.9)
    value, mcse = means(model, centred, nuts)
    names = ("log_sigma2", "log_range", "x")
    wanted = np.concatenate([np.atleast_1d(exact.mean[name].value) for name in names])
    off = np.concatenate([np.atleast_1d(exact.mean[name].error) for name in names])
    score = (np.array(value) - wanted) / np.hypot(mcse, off)
    assert np.all(np.abs(score) < 4.5), score
