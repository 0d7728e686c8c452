"""Galaxies: the density from its definition, log Z by importance sampling of one order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from hard_target import Parts, importance_sample
from scipy.special import logsumexp
from scipy.stats import dirichlet, invgamma, norm

from harness.arrays import FloatArray
from harness.models.hard.galaxies import ORDERS, galaxies

POINTS = [
    ([0.096, 0.833, 0.071], [9.9, 21.3, 30.9], [1.0, 5.0, 4.0]),
    ([1e-6, 0.5, 0.499999], [-20.0, 60.0, 21.0], [0.1, 300.0, 5.0]),
]


def log_parts(
    q: FloatArray, mu: FloatArray, s: FloatArray, y: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Log prior and likelihood at points of shape (n, 3) each."""
    log_prior = (
        np.log(2) + norm(20, 10).logpdf(mu).sum(-1) + invgamma(3, scale=20).logpdf(s).sum(-1)
    )
    part = np.log(q)[:, None] + norm.logpdf(y[:, None], mu[:, None], np.sqrt(s)[:, None])
    return log_prior, logsumexp(part, axis=-1).sum(-1)


def test_density(tmp_path: Path) -> None:
    model = galaxies()
    parts = Parts(model, tmp_path)
    for q, mu, s in POINTS:
        log_prior, likelihood = parts.at({"q": q, "mu": mu, "s": s})
        point = np.array([q]), np.array([mu]), np.array([s])
        prior, expected = log_parts(*point, model.data["y"])
        assert dirichlet([1, 1, 1]).logpdf(q) == pytest.approx(np.log(2))
        assert log_prior == pytest.approx(prior[0])
        assert likelihood == pytest.approx(expected[0])


def test_truth() -> None:
    """Integrate over one order of the means; there are six, of equal mass."""
    model = galaxies()

    def log_density(x: FloatArray) -> FloatArray:
        # Coordinates are the log of q_1 / q_2 and q_3 / q_2, mu, and log s.
        log_ratio = np.insert(x[:, :2], 1, 0.0, axis=1)
        log_q = log_ratio - logsumexp(log_ratio, axis=1, keepdims=True)
        mu, log_s = x[:, 2:5], x[:, 5:]
        prior, likelihood = log_parts(np.exp(log_q), mu, np.exp(log_s), model.data["y"])
        ascending = np.all(np.diff(mu, axis=1) > 0, axis=1)
        value = prior + likelihood + log_q.sum(axis=1) + log_s.sum(axis=1)
        return np.where(ascending, value, -np.inf)

    start = np.array([-2.2, 0, -2.5, 9.9, 21.3, 30.9, 1.5, 1.5, 1.7])[[0, 2, 3, 4, 5, 6, 7, 8]]
    spread = np.diag(np.array([0.4, 0.5, 1.0, 0.3, 3.0, 0.5, 0.3, 0.7]) ** 2)
    one = importance_sample(log_density, start, spread, 4, draws=6_000)
    evidence = model.truth.log_evidence
    difference = one.log_mean + np.log(6) - evidence.value
    assert one.error < 0.02
    assert abs(difference) < 4 * np.hypot(one.error, evidence.error)


def test_orders() -> None:
    """Each order of the means is the event of that number."""
    test = galaxies().truth.mode_test
    assert test is not None
    mean = np.empty((2, 3, 3))
    for number, order in enumerate(ORDERS):
        mean.reshape(6, 3)[number, list(order)] = [10.0, 20.0, 30.0]
    happens = test.happens(xr.Dataset({"mu": (("chain", "draw", "k"), mean)}))
    np.testing.assert_array_equal(happens.to_numpy().reshape(6, 6), np.eye(6))
    assert test.names[1] == "mu[1] < mu[3] < mu[2]"
