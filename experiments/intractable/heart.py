"""The heart disease data as a Boltzmann machine, sampled in five ways (Murray 2007, 5.2.4)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.fit import Fit
from harness.forms.method import python_method
from harness.intractable import IntractableProblem, Walk, exchange, metropolis
from harness.intractable.approximate import log_bethe, log_mean_field
from harness.intractable.langevin import langevin
from harness.model import Model
from harness.models.heart_disease import FACTORS, PAIRS, load_heart_disease

METHOD = "unknown_constant_of_machine"
WIDTH = 0.1
"""Of a step in one parameter: the thesis says variance 0.01."""
STEP = 0.01
"""Of brief Langevin, as in the thesis."""
_UNITS = len(FACTORS)
_FIRST, _SECOND = (np.array(each) for each in zip(*PAIRS, strict=True))


def log_probabilities(w: FloatArray, features: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log f of each state at parameters (n, D), (n, 64), and log Z of one man, (n,)."""
    value = w @ features.T
    top = value.max(axis=1)
    return value, top + np.log(np.exp(value - top[:, None]).sum(axis=1))


def problem(model: Model) -> IntractableProblem:
    """Return the unnormalised posterior; the data y are the numbers of men in each state."""
    features, counts = (np.asarray(model.data[name]) for name in ("features", "counts"))
    scale, men = float(model.data["prior_sd"]), int(counts.sum())

    def simulate(w: FloatArray, rng: np.random.Generator) -> FloatArray:
        value, log_z = log_probabilities(w, features)
        share = np.exp(value - log_z[:, None])
        return rng.multinomial(men, share / share.sum(axis=1, keepdims=True)).astype(np.float64)

    return IntractableProblem(
        model.name,
        counts,
        model.dimension,
        log_prior=lambda w: -0.5 * np.square(w / scale).sum(axis=1),
        log_factor=lambda w, data: np.einsum("nd,nd->n", w, data @ features),
        simulate=simulate,
        parameters=lambda w: {"w": w},
        data=model.data,
    )


def machine(w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return biases (n, 6) and symmetric weights (n, 6, 6) of parameters (n, 21)."""
    weights = np.zeros((len(w), _UNITS, _UNITS))
    weights[:, _FIRST, _SECOND] = weights[:, _SECOND, _FIRST] = w[:, _UNITS:]
    return w[:, :_UNITS], weights


@cache
def likeliest(prior_sd: float) -> tuple[FloatArray, FloatArray]:
    """Return the posterior's mode and the standard deviations of its normal approximation."""
    features, counts = load_heart_disease()
    men, w = counts.sum(), np.zeros(features.shape[1])
    for _ in range(30):
        value, log_z = log_probabilities(w[None], features)
        share = np.exp(value[0] - log_z)
        mean = share @ features
        slope = counts @ features - men * mean - w / prior_sd**2
        curvature = men * (features.T @ (share[:, None] * features) - np.outer(mean, mean))
        inverse = np.linalg.inv(curvature + np.eye(len(w)) / prior_sd**2)
        w = w + inverse @ slope
    return w, np.sqrt(np.diag(inverse))


class BriefSampling:
    """The gradient of the log posterior from Gibbs sweeps that start at the data.

    The men are counts of states, so that a Gibbs update of one factor splits each pair of counts by
    a binomial draw.  A sweep takes the factors in random order.
    """

    def __init__(self, model: Model, sweeps: int) -> None:
        self._features, counts = (np.asarray(model.data[n]) for n in ("features", "counts"))
        self._counts, self._scale = counts.astype(np.int64), float(model.data["prior_sd"])
        self._sweeps = sweeps
        states = self._features[:, :_UNITS]
        number = states @ 2 ** np.arange(_UNITS)
        order = np.argsort(number)
        self._off, self._on = [], []
        for unit in range(_UNITS):
            off = order[np.sort(number).astype(int) >> unit & 1 == 0]
            self._off.append(off)
            self._on.append(order[np.searchsorted(np.sort(number), number[off] + 2**unit)])
        self._change = [
            self._features[on] - self._features[off]
            for on, off in zip(self._on, self._off, strict=True)
        ]

    def __call__(self, w: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return gradients (n, D) at parameters (n, D)."""
        counts = np.tile(self._counts, (len(w), 1))
        for unit in (u for _ in range(self._sweeps) for u in rng.permutation(_UNITS)):
            off, on = self._off[unit], self._on[unit]
            both = counts[:, off] + counts[:, on]
            share = 1 / (1 + np.exp(-(w @ self._change[unit].T)))
            up = rng.binomial(both, share)
            counts[:, on], counts[:, off] = up, both - up
        slope: FloatArray = (self._counts - counts) @ self._features - w / self._scale**2
        return slope


def sample_machine(
    model: Model,
    *,
    scheme: str,
    chains: int,
    iterations: int,
    thin: int,
    seed: int,
    sweeps: int = 1,
) -> Fit:
    """Sample the parameters from starts spread as the posterior's normal approximation.

    Parameters
    ----------
    model
        :func:`harness.models.heart_disease.heart_disease`.
    scheme
        ``exact``, ``exchange``, ``loopy``, ``mean field`` or ``brief Langevin``.
    chains, iterations
        Number of chains, and iterations of each after a tenth of them without record.
    thin
        Iterations for each draw that is kept.
    sweeps
        Gibbs sweeps of brief Langevin.
    """
    target = problem(model)
    features, counts = (np.asarray(model.data[name]) for name in ("features", "counts"))
    mode, sd = likeliest(float(model.data["prior_sd"]))
    rng, men = np.random.default_rng([seed, 1]), counts.sum()
    starts = mode + sd * rng.standard_normal((chains, len(mode)))
    length: dict[str, Any] = {
        "draws": iterations // thin, "chains": chains, "seed": seed, "warmup": iterations // 10,
        "thin": thin,
    }  # fmt: skip
    if scheme == "brief Langevin":
        return langevin(target, starts, gradient=BriefSampling(model, sweeps), step=STEP, **length)
    steps: dict[str, Any] = {"proposal": Walk(WIDTH, one_at_a_time=True), "adapt": False, **length}
    if scheme == "exchange":
        return exchange(target, starts, **steps)
    constants = {
        "exact": lambda w: men * log_probabilities(w, features)[1],
        "loopy": lambda w: men * log_bethe(*machine(w)),
        "mean field": lambda w: men * log_mean_field(*machine(w)),
    }
    return metropolis(target, starts, log_constant=constants[scheme], **steps)


MACHINE = python_method(METHOD, sample_machine)
