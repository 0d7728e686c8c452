"""`auto` on ordinary posteriors, against draws of plain NUTS and a bridge that is written here.

Twenty programs of the corpus, of the kinds that people write most: regressions, series, hidden
states, Gaussian processes, item responses, hierarchies, survival, differential equations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arviz_stats.base import array_stats
from corpus_data import corpus_data
from corpus_oracle import CORPUS, Reference
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from stan_density import StanDensity, stanli

from harness.arrays import FloatArray
from harness.evidence import LogEvidence
from harness.user import UserFit, sample
from harness.user.compare import parameters_of

assert stanli is not None

ORDINARY = (
    "arma11",
    "autoregressive",
    "eight_schools_noncentred",
    "garch11",
    "gp_poisson_latent",
    "gp_regression",
    "hierarchical_binomial",
    "hmm_forward",
    "irt_1pl",
    "kidiq_interaction",
    "log_earnings",
    "logistic_wells",
    "lotka_volterra_ode",
    "mesquite",
    "negative_binomial_roaches",
    "ordered_logit",
    "poisson_offset",
    "radon_varying_slope",
    "stochastic_volatility",
    "survival_weibull",
)
CHAINS, DRAWS = 8, 2000
ERRORS = 5.0
"""As wide as what the product promises; a sound run is outside once in a million numbers."""


def run(name: str, **settings: Any) -> UserFit:
    path, data = CORPUS / f"{name}.stan", corpus_data(name)
    return sample(path, data, engine="stanli", progress=False, **settings)


def bridge(density: StanDensity, chains: FloatArray) -> LogEvidence:
    """Meng and Wong's (1996) optimal bridge from a Gaussian, eq. 4.1, once for each chain.

    The Gaussian is that of all other chains.  The error is that of the mean over chains, whose
    draws depend on each other within chains only.
    """
    rng, found = np.random.default_rng(1), []
    for k, draws in enumerate(chains):
        others = np.delete(chains, k, axis=0).reshape(-1, draws.shape[1])
        proposal = multivariate_normal(others.mean(axis=0), np.cov(others.T))
        new = proposal.rvs(len(draws), random_state=rng).reshape(draws.shape)
        # Log ratios of the density to the proposal, at draws of either.
        ratio, ratio_new = (density.batched.values(x) - proposal.logpdf(x) for x in (draws, new))
        log_z, before, half = float(np.median(ratio)), np.inf, np.log(0.5)
        while abs(log_z - before) > 1e-9:
            before = log_z
            above = logsumexp(ratio_new - np.logaddexp(half + ratio_new, half + log_z))
            below = logsumexp(-np.logaddexp(half + ratio, half + log_z))
            log_z = float(above - below)
        found.append(log_z)
    return LogEvidence(float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(len(found))))


def mean_and_error(draws: FloatArray) -> tuple[float, float]:
    error = array_stats.mcse(draws, chain_axis=0, draw_axis=1, method="mean")
    return float(draws.mean()), float(error)


@pytest.mark.slow
@pytest.mark.parametrize("name", ORDINARY)
def test_means_and_log_evidence_of_an_ordinary_posterior(name: str, tmp_path: Path) -> None:
    long = parameters_of(run(name, method="nuts", seed=77, chains=CHAINS, draws=DRAWS).fit)
    density = Reference(name, tmp_path).joint
    flat = {each: values.reshape(-1, *values.shape[2:]) for each, values in long.items()}
    points = density.batched.unconstrain_draws(flat).reshape(CHAINS, DRAWS, -1)
    known = bridge(density, points)
    result = run(name, seed=3)
    found = result.log_integral
    assert found is not None
    assert found.mcse < 0.1
    assert abs(found.minus(known).value) < ERRORS * found.minus(known).mcse
    own = parameters_of(result.fit)
    for each, values in long.items():
        for entry in np.ndindex(values.shape[2:]):
            (one, error), (other, of_other) = (
                mean_and_error(draws[each][(..., *entry)]) for draws in (own, long)
            )
            assert abs(one - other) < ERRORS * np.hypot(error, of_other), (each, entry)
