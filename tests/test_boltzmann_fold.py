"""The relaxation folded by mean-field fixed points: its Stan program, its mixture, its answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm
from stan_density import StanDensity

from harness.errors import DataError
from harness.models.boltzmann import generate, relax
from harness.models.boltzmann_fold import mean_field_fold
from harness.models.boltzmann_mean_field import mean_field_points
from harness.path.fold import Fold

RELAXATION = relax(generate(7, np.random.default_rng(2)))
MODEL = RELAXATION.model("boltzmann-7")
D = MODEL.dimension
FOLD = mean_field_fold(RELAXATION, np.random.default_rng(0), components=4, starts=50)


def any_fold(shared: bool = True) -> Fold:
    """Return a fold that is not triangular, not symmetric and not near the target."""
    rng = np.random.default_rng(3)
    scale = rng.normal(size=(1 if shared else 3, D, D)) + 2 * np.eye(D)
    return Fold(
        np.array([0.2, 0.3, 0.5]), rng.normal(size=(3, D)), scale, np.array([-1.0, 1.0, -1.0])
    )


@pytest.mark.parametrize("fold", [FOLD, any_fold()], ids=["mean field", "any"])
def test_stan_density_and_gradient_match_numpy(fold: Fold) -> None:
    density = StanDensity(MODEL.program("folded"), {**MODEL.data, **fold.data()})

    def expected(y: np.ndarray) -> float:
        log_weight = fold.log_weight(y[None], RELAXATION.log_density_and_gradient)[0]
        return float(norm.logpdf(y).sum() + logsumexp(log_weight))

    for y in np.random.default_rng(1).normal(size=(5, D)):
        value, slope = density(y)
        assert value == pytest.approx(expected(y), rel=1e-11, abs=1e-10)
        step = 1e-5 * np.eye(D)
        differences = [(expected(y + e) - expected(y - e)) / 2e-5 for e in step]
        np.testing.assert_allclose(slope, differences, rtol=1e-5, atol=1e-5)


def test_one_scale_matrix_is_asked_for() -> None:
    fold = any_fold(shared=False)
    with pytest.raises(Exception, match="one scale matrix"):
        StanDensity(MODEL.program("folded"), {**MODEL.data, **fold.data()}).value(np.zeros(D))


def test_mixture_is_that_of_the_heaviest_fixed_points() -> None:
    point = mean_field_points(RELAXATION.machine, np.random.default_rng(0), starts=50)
    mean, bound = point.mean[:4], point.log_bound[:4]
    weight = np.exp(bound) / np.exp(bound).sum()
    np.testing.assert_allclose(FOLD.weight, weight, rtol=1e-12)
    np.testing.assert_allclose(FOLD.mean, mean @ RELAXATION.q, atol=1e-12)
    spread = sum(w * (np.eye(7) - np.diag(m**2)) for w, m in zip(weight, mean, strict=True))
    covariance = RELAXATION.q.T @ spread @ RELAXATION.q + np.eye(D)
    np.testing.assert_allclose(FOLD.scale[0] @ FOLD.scale[0].T, covariance, rtol=1e-10)


def test_folding_keeps_log_z_and_the_moments() -> None:
    """By importance sampling from N(0, I); bounds are five standard errors of the ratios."""
    truth = RELAXATION.exact()
    y = np.random.default_rng(5).standard_normal((40_000, D))
    log_weight = FOLD.log_weight(y, RELAXATION.log_density_and_gradient)
    total = np.exp(logsumexp(log_weight, axis=1) - truth.log_z)
    assert abs(total.mean() - 1) < 5 * total.std() / np.sqrt(len(y))
    share = np.exp(log_weight - truth.log_z)
    first = np.einsum("tf,tfk->tk", share, FOLD.points(y))
    error = first.mean(axis=0) - truth.expected_x
    assert np.all(np.abs(error) < 5 * first.std(axis=0) / np.sqrt(len(y)))


def test_signs_make_the_log_weights_of_the_mixture_agree() -> None:
    """Aligned, the mean over components varies more along y than with the signs all one."""
    relaxation = relax(generate(12, np.random.default_rng(8)))
    fold = mean_field_fold(relaxation, np.random.default_rng(1), components=6, starts=100)
    y = np.random.default_rng(2).standard_normal((2000, fold.mean.shape[1]))

    def common(sign: np.ndarray) -> float:
        signed = replace(fold, sign=sign)
        log_weight = signed.log_weight(y, relaxation.log_density_and_gradient)
        return float((log_weight @ fold.weight).std())

    others = np.array(np.meshgrid(*[[1.0, -1.0]] * 5)).reshape(5, -1).T
    every = [common(np.concatenate([[1.0], rest])) for rest in others]
    # The search is greedy: it must reach the upper tail of all 32 choices, not their top.
    assert common(fold.sign) >= np.quantile(every, 0.8)
    assert common(fold.sign) > common(np.ones(6))


def test_components_are_counted() -> None:
    with pytest.raises(DataError, match="1 component or more; got 0"):
        mean_field_fold(RELAXATION, np.random.default_rng(0), components=0)
    whole = mean_field_fold(RELAXATION, np.random.default_rng(0), components=999, starts=20)
    found = mean_field_points(RELAXATION.machine, np.random.default_rng(0), starts=20)
    assert len(whole.weight) == len(found.log_bound)
