"""Closed-form evidence of the conjugate programs in ``tests/corpus``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from corpus_data import corpus_data
from scipy.special import gammaln
from scipy.stats import betabinom, dirichlet_multinomial, multivariate_normal, multivariate_t

Data = dict[str, Any]


def _normal(data: Data) -> float:
    y = np.asarray(data["y"])
    covariance = data["sigma"] ** 2 * np.eye(len(y)) + data["prior_sd"] ** 2
    mean = np.full(len(y), data["prior_mean"])
    return float(multivariate_normal(mean, covariance).logpdf(y))


def _beta_binomial(data: Data) -> float:
    return float(betabinom(data["n"], data["a"], data["b"]).logpmf(data["y"]))


def _gamma_poisson(data: Data) -> float:
    """Integral of rate^shape / Gamma(shape) lambda^(shape - 1 + sum k) exp(-(rate + N) lambda)."""
    k, shape, rate = np.asarray(data["k"]), data["shape"], data["rate"]
    after = shape + k.sum()
    log_z = shape * np.log(rate) - gammaln(shape)
    log_z += gammaln(after) - after * np.log(rate + len(k)) - np.sum(gammaln(k + 1))
    return float(log_z)


def _dirichlet_multinomial(data: Data) -> float:
    counts = np.asarray(data["counts"])
    return float(dirichlet_multinomial(data["alpha"], counts.sum()).logpmf(counts))


def _regression(data: Data) -> float:
    """With both parameters integrated out y is Student's t (Bernardo and Smith 1994)."""
    X, y = np.asarray(data["X"]), np.asarray(data["y"])
    a, b = data["a0"], data["b0"]
    shape = b / a * (np.eye(len(y)) + X @ np.asarray(data["V0"]) @ X.T)
    return float(multivariate_t(X @ np.asarray(data["m0"]), shape, df=2 * a).logpdf(y))


_EVIDENCE: dict[str, Callable[[Data], float]] = {
    "conjugate_normal": _normal,
    "conjugate_beta_binomial": _beta_binomial,
    "conjugate_gamma_poisson": _gamma_poisson,
    "dirichlet_multinomial": _dirichlet_multinomial,
    "conjugate_regression": _regression,
}

CONJUGATE = tuple(_EVIDENCE)
"""Programs whose evidence is known."""


def log_evidence(name: str) -> float:
    """Log evidence of a program of the corpus with its data."""
    return _EVIDENCE[name](corpus_data(name))
