"""mRNA transfection: its density from the paper's equation, its truth by importance sampling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hard_target import Parts, importance_sample

from harness.arrays import FloatArray
from harness.model import Model
from harness.models.hard.mrna import LOWER, PARAMETERS, UPPER, mrna, mrna_m1a

TOO_LARGE = 1e4


def log_likelihood(theta: FloatArray, model: Model) -> FloatArray:
    """Log likelihoods at log10 parameters of shape (n, 5)."""
    t0, km0, beta, delta, sigma = (10.0**theta).T[:, :, None]
    u = model.data["t"] - t0
    with np.errstate(over="ignore", invalid="ignore"):
        # Both terms are taken relative to the slower decay, which is exact for u > 0.
        slow, fast = np.minimum(beta, delta), np.maximum(beta, delta)
        f = km0 * np.exp(-slow * u) * (1 - np.exp(-(fast - slow) * u)) / (fast - slow)
    f = np.where(-fast * u > 300, TOO_LARGE, f)
    if model.data["zero_before"]:
        f = np.where(u > 0, f, 0)
    residual = (model.data["y"] - f) / sigma
    return np.sum(-0.5 * residual**2 - np.log(sigma) - 0.5 * np.log(2 * np.pi), axis=1)


def log_density(theta: FloatArray, model: Model) -> FloatArray:
    inside = np.all((theta > LOWER) & (theta < UPPER), axis=1)
    value = np.full(len(theta), -np.inf)
    value[inside] = log_likelihood(theta[inside], model) - np.log(UPPER - LOWER).sum()
    return value


POINTS = {
    "the mode": [0.3009, 0.7032, -0.1039, -0.6858, -1.029],
    "its twin": [0.3009, 0.7032, -0.6858, -0.1039, -1.029],
    "M1a's mode": [0.18, 1.084, -0.752, -2.593, 0.396],
    "fast rates": [0.9, 4.9, 4.9, 4.8, -1.9],
    "fast and slow rate": [0.9, 4.9, 4.9, -4.9, 1.9],
    "slow rates, early start": [-1.9, -4.9, -4.9, -4.5, 0.0],
    "start after all data": [0.99, 0.0, 0.5, 0.4, 0.0],
}


@pytest.fixture(scope="module", params=[mrna, mrna_m1a])
def parts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    model = request.param()
    return model, Parts(model, tmp_path_factory.mktemp(model.name))


@pytest.mark.parametrize("where", POINTS)
def test_density(parts: tuple[Model, Parts], where: str) -> None:
    model, found = parts
    theta = np.array(POINTS[where])
    log_prior, likelihood = found.at(dict(zip(PARAMETERS, theta, strict=True)))
    expected = log_likelihood(theta[None], model)[0]
    assert np.isfinite(expected)
    # The two differ by rounding of 1 - exp(-x) at small x, and of 10^theta; both are squared.
    assert likelihood == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert log_prior == pytest.approx(-np.log(3 * 10 * 10 * 10 * 4))


def test_equal_rates_have_the_limit(parts: tuple[Model, Parts]) -> None:
    _, found = parts
    close, equal = (
        found.at(dict(zip(PARAMETERS, [0.2, 0.7, -0.4, -0.4 + gap, 0.3], strict=True)))[1]
        for gap in (1e-9, 0.0)
    )
    assert close == pytest.approx(equal, rel=1e-7)


def test_never_undefined(parts: tuple[Model, Parts], tmp_path: Path) -> None:
    """Values and gradients are finite over the whole prior, out to its corners."""
    model, found = parts
    points = np.random.default_rng(3).normal(0, 4, (400, model.dimension))
    value, gradient = found.whole.batched(points)
    assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(gradient))


def test_truth() -> None:
    """Errors of both are standard errors: 4 of the difference's."""
    model = mrna()
    start = np.array(POINTS["the mode"])
    spread = np.diag(np.array([0.0011, 0.0024, 0.0041, 0.0094, 0.045]) ** 2)
    one = importance_sample(lambda x: log_density(x, model), start, spread, 1, draws=20_000)
    evidence = model.truth.log_evidence
    assert abs(one.log_mean + np.log(2) - evidence.value) < 4 * np.hypot(one.error, evidence.error)
    both_orders = np.stack([one.points, one.points[:, [0, 1, 3, 2, 4]]]).mean(axis=0)
    mean, error = one.mean(both_orders)
    for number, name in enumerate(PARAMETERS):
        truth = model.truth.expectations[name]
        assert abs(mean[number] - truth.value) < 4 * np.hypot(error[number], truth.error)
