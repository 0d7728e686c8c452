"""Exact posterior draws of the conjugate programs in ``tests/corpus``, by parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.arrays import FloatArray

Data = dict[str, Any]
Draws = dict[str, FloatArray]
Shape = tuple[int, int]


def _beta_binomial(data: Data, rng: np.random.Generator, shape: Shape) -> Draws:
    y, n = data["y"], data["n"]
    return {"theta": rng.beta(data["a"] + y, data["b"] + n - y, shape)}


def _gamma_poisson(data: Data, rng: np.random.Generator, shape: Shape) -> Draws:
    k = np.asarray(data["k"])
    return {"lambda": rng.gamma(data["shape"] + k.sum(), 1 / (data["rate"] + len(k)), shape)}


def _dirichlet(data: Data, rng: np.random.Generator, shape: Shape) -> Draws:
    return {"theta": rng.dirichlet(np.asarray(data["alpha"]) + np.asarray(data["counts"]), shape)}


def _regression(data: Data, rng: np.random.Generator, shape: Shape) -> Draws:
    """Normal given an inverse gamma (Bernardo and Smith 1994)."""
    X, y, m0 = (np.asarray(data[name], dtype=float) for name in ("X", "y", "m0"))
    before = np.linalg.inv(np.asarray(data["V0"], dtype=float))
    precision = before + X.T @ X
    mean = np.linalg.solve(precision, before @ m0 + X.T @ y)
    rest = y @ y + m0 @ before @ m0 - mean @ precision @ mean
    sigma2 = 1 / rng.gamma(data["a0"] + len(y) / 2, 1 / (data["b0"] + rest / 2), shape)
    root = np.linalg.inv(np.linalg.cholesky(precision))
    noise = rng.standard_normal((*shape, len(m0))) @ root
    return {"beta": mean + np.sqrt(sigma2)[..., None] * noise, "sigma2": sigma2}


_DRAWS: dict[str, Callable[[Data, np.random.Generator, Shape], Draws]] = {
    "conjugate_regression": _regression,
    "conjugate_beta_binomial": _beta_binomial,
    "dirichlet_multinomial": _dirichlet,
    "conjugate_gamma_poisson": _gamma_poisson,
}

WITH_DRAWS = tuple(_DRAWS)
"""Programs whose posterior can be drawn from."""


def posterior_draws(name: str, data: Data, rng: np.random.Generator, shape: Shape) -> Draws:
    """Draw from a program's posterior; arrays (chain, draw, ...) by parameter."""
    return _DRAWS[name](data, rng, shape)
