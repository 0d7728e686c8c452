"""Rockets: the beta-binomial density from its definition, log Z and means by quadrature."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hard_target import Parts
from scipy.special import betaln, gammaln, logsumexp
from scipy.stats import betabinom, norm

from harness.models.hard.rockets import rockets

POINTS = [[0.024, 4.88], [-25.0, 3.0], [30.0, -30.0], [12.0, 40.0]]


def test_density(tmp_path: Path) -> None:
    model = rockets()
    parts = Parts(model, tmp_path)
    for p in POINTS:
        log_prior, likelihood = parts.at({"p": p})
        shape = np.logaddexp(0, p)
        expected = betabinom.logpmf(model.data["failures"], model.data["launches"], *shape).sum()
        assert likelihood == pytest.approx(expected, rel=1e-9)
        assert log_prior == pytest.approx(norm(0, 10).logpdf(p).sum())


def test_truth() -> None:
    """The trapezoidal rule converges faster than any power of its step on smooth densities."""
    model = rockets()
    pairs, count = np.unique(
        np.stack([model.data["failures"], model.data["launches"]]), axis=1, return_counts=True
    )
    failures, launches = pairs[:, :, None, None]
    found = []
    for size in (61, 121):
        first, second = np.linspace(-2.8, 2.8, size), np.linspace(-6, 20, size)
        p = np.stack(np.meshgrid(first, second, indexing="ij"))
        a, b = np.logaddexp(0, p)
        choose = gammaln(launches + 1) - gammaln(failures + 1) - gammaln(launches - failures + 1)
        each = choose + betaln(failures + a, launches - failures + b) - betaln(a, b)
        log_density = np.tensordot(count, each, 1) + norm(0, 10).logpdf(p).sum(axis=0)
        cell = (first[1] - first[0]) * (second[1] - second[0])
        total = logsumexp(log_density)
        mean = np.sum(np.exp(log_density - total) * p, axis=(1, 2))
        found.append((total + np.log(cell), mean))
    truth = model.truth
    (rough, _), (log_z, mean) = found
    assert rough == pytest.approx(log_z, abs=1e-7)
    assert log_z == pytest.approx(truth.log_evidence.value, abs=truth.log_evidence.error)
    np.testing.assert_allclose(mean, truth.expected("p"), rtol=0, atol=1e-6)
