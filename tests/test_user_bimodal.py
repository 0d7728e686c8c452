"""Programs whose posterior has several modes: plain NUTS is wrong, the tempered fit is right.

Truths are integrals over grids, after all that can be integrated by hand has been.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import xarray as xr
from corpus_data import corpus_data
from corpus_oracle import CORPUS
from scipy.stats import norm
from test_user_sample import AFTER_SEARCH

from harness import evidence
from harness.arrays import FloatArray
from harness.diagnosis import Severity
from harness.user import sample


class Truth(NamedTuple):
    """Log evidence, and the probability of one of two parts of the posterior."""

    log_evidence: float
    share: float


class Case(NamedTuple):
    """A program of the corpus, one part of its posterior, and what is true of it."""

    name: str
    truth: Callable[[], Truth]
    inside: Callable[[xr.Dataset], xr.DataArray]


def integrals(log_density: FloatArray, inside: FloatArray, *axes: FloatArray) -> Truth:
    """Integrate a density over a grid, and its part where ``inside`` is 1."""
    largest = log_density.max()
    totals = []
    for part in (1.0, inside):
        total = np.exp(log_density - largest) * part
        for axis in reversed(axes):
            total = np.trapezoid(total, axis, axis=-1)
        totals.append(float(total))
    return Truth(float(np.log(totals[0]) + largest), totals[1] / totals[0])


@cache
def mixture() -> Truth:
    """Two means on a grid; modes have widths of 0.3."""
    data = corpus_data("bimodal_mixture")
    y, share = np.asarray(data["y"]), data["share"]
    one = np.linspace(-9, 9, 361)
    log_prior = np.asarray(norm.logpdf(one, 0, 4))
    each = np.asarray(norm.logpdf(y, one[:, None], 1))
    both = np.logaddexp(np.log(share) + each[:, None], np.log1p(-share) + each[None])
    log_density = both.sum(axis=2) + log_prior[:, None] + log_prior
    # On the diagonal there is next to nothing.
    return integrals(log_density, (one[:, None] < one).astype(float), one, one)


@cache
def variance() -> Truth:
    """The mean integrated out: of the data's covariance v I + 4, one direction is apart."""
    y = np.asarray(corpus_data("bimodal_variance")["y"])
    tau, sigma = np.linspace(-6, 2.5, 401)[:, None], np.linspace(-6, 2.5, 401)
    v = np.exp(2 * tau) + np.exp(2 * sigma)
    along = v + 4 * y.size
    log_density = -0.5 * ((y.size - 1) * np.log(v) + np.log(along) + y.size * np.log(2 * np.pi))
    log_density -= 0.5 * (y.size * y.var() / v + y.size * y.mean() ** 2 / along)
    log_density += norm.logpdf(tau, -2.5, 0.45) + norm.logpdf(sigma, -2.55, 0.45)
    # Half of each cell on the diagonal, where there is next to nothing.
    inside = np.where(tau == sigma, 0.5, tau > sigma)
    return integrals(log_density, inside, tau[:, 0], sigma)


@cache
def signal() -> Truth:
    """Amplitudes integrated out: given the frequency y is Gaussian."""
    data = corpus_data("periodic_signal")
    t, y, sigma = (np.asarray(data[name]) for name in ("t", "y", "sigma"))
    frequency = np.linspace(0.05, 0.95, 7201)
    angle = 2 * np.pi * frequency[:, None] * t
    wave = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    root = np.linalg.cholesky(wave @ wave.transpose(0, 2, 1) + sigma**2 * np.eye(t.size))
    scaled = np.linalg.solve(root, np.broadcast_to(y[:, None], (frequency.size, t.size, 1)))
    log_density = -0.5 * np.sum(scaled[..., 0] ** 2, axis=1) - t.size / 2 * np.log(2 * np.pi)
    log_density -= np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    log_density -= np.log(0.95 - 0.05)
    return integrals(log_density, (frequency < 0.5).astype(float), frequency)


CASES = [
    Case(
        "bimodal_mixture",
        mixture,
        lambda draws: draws["mu"].isel(mu_dim_0=0) < draws["mu"].isel(mu_dim_0=1),
    ),
    Case("bimodal_variance", variance, lambda draws: draws["tau"] > draws["sigma"]),
    Case("periodic_signal", signal, lambda draws: draws["frequency"] < 0.5),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_modes_that_nuts_misses(case: Case) -> None:
    truth = case.truth()
    assert 0.1 < truth.share < 0.9
    data: dict[str, Any] = corpus_data(case.name)
    result = sample(
        *(CORPUS / f"{case.name}.stan", data), method="auto", seed=4, engine="stanli",
        progress=False,
    )  # fmt: skip
    # Chains of NUTS say, each by itself, that other modes are not there, and are sure of it; one
    # that happens to cross, once, is not.
    assert result.nuts is not None
    inside = case.inside(result.nuts.posterior).transpose("chain", "draw").to_numpy().astype(float)
    each = [evidence.expectation(chain[None]) for chain in inside]
    wrong = [abs(float(share) - truth.share) > 10 * float(mcse) for share, mcse in each]
    assert sum(wrong) >= 3
    told = [item for item in result.diagnosis if item.sentence.startswith("Plain NUTS misses")]
    assert told
    assert all(item.severity == Severity.WARNING for item in told)
    assert result.method in AFTER_SEARCH
    found = result.log_evidence
    assert found is not None
    assert found.mcse < 0.3
    assert abs(found.value - truth.log_evidence) < 4 * found.mcse
    share, mcse = result.fit.expectation(case.inside)
    assert mcse < 0.1
    assert abs(share - truth.share) < 4 * mcse
