"""Prior and likelihood of a hard target as its tempered programs have them, for tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_t
from stan_density import StanDensity

from harness.arrays import FloatArray
from harness.engine.program import StanProgram
from harness.model import Model
from harness.temper import tempered_model


class Parts:
    """The parts of a target's density on its declared parameters, all constants included."""

    def __init__(self, model: Model, folder: Path) -> None:
        self.tempered = tempered_model(model.folder / "target.stan", model.data)
        self.whole = StanDensity(self.tempered.program("target"), model.data)
        self.prior = StanDensity(self.tempered.program("prior"), model.data)
        text = (model.folder / "target.stan").read_text(encoding="utf-8")
        head = re.split(r"^(?:transformed parameters|model) \{", text, flags=re.MULTILINE)[0]
        (folder / "flat.stan").write_text(head + "model { }")
        self.jacobian = StanDensity(StanProgram(folder / "flat.stan"), model.data)

    def at(self, values: Mapping[str, Any]) -> tuple[float, float]:
        """Return log prior and log likelihood at values of the parameters."""
        point = self.whole.unconstrain(values)
        prior = self.prior.value(point)
        return prior - self.jacobian.value(point), self.whole.value(point) - prior


class Sampled(NamedTuple):
    """Weighted points, with the log of their mean weight and its standard error."""

    log_mean: float
    error: float
    points: FloatArray
    weights: FloatArray

    def mean(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return expectations of values (n, ...) and their standard errors."""
        mean = np.tensordot(self.weights, values, 1)
        return mean, np.sqrt(np.tensordot(self.weights**2, (values - mean) ** 2, 1))


def importance_sample(
    log_density: Callable[[FloatArray], FloatArray],
    mean: FloatArray,
    covariance: FloatArray,
    seed: int,
    *,
    draws: int,
) -> Sampled:
    """Integrate a density of (n, D) points with a Student t that is fitted in four rounds."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        proposal = multivariate_t(mean, covariance, df=8, seed=rng)
        points = np.reshape(proposal.rvs(draws), (draws, len(mean)))
        log_weight = log_density(points) - proposal.logpdf(points)
        log_mean = float(logsumexp(log_weight) - np.log(draws))
        weights = np.exp(log_weight - log_mean - np.log(draws))
        mean = weights @ points
        covariance = (points - mean).T @ (weights[:, None] * (points - mean))
    return Sampled(log_mean, float(np.std(weights * draws) / np.sqrt(draws)), points, weights)
