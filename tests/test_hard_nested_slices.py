"""What the points of blackjax's nested sampling weigh, against ideal runs and blackjax's own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from experiments.hard.peers.nested_slices import weighed
from harness.arrays import FloatArray

SCALE = 0.01
"""The likelihood is exp(-v / scale) of the volume v in which it is larger."""


def ideal_run(
    rng: np.random.Generator, live: int = 100, batch: int = 10
) -> tuple[FloatArray, FloatArray]:
    """Nested sampling with independent new points: log likelihoods and those at birth."""
    volume, birth = rng.random(live), np.full(live, np.nan)
    gone: list[tuple[FloatArray, FloatArray]] = []
    for _ in range(live * 12 // batch):
        order = np.argsort(-volume)
        out, kept = order[:batch], order[batch:]
        gone.append((volume[out], birth[out]))
        limit = volume[out].min()
        volume = np.append(volume[kept], limit * rng.random(batch))
        birth = np.append(birth[kept], np.full(batch, -limit / SCALE))
    every = [*gone, (volume, birth)]
    return -np.concatenate([v for v, _ in every]) / SCALE, np.concatenate([b for _, b in every])


def test_log_z_and_its_error_of_ideal_nested_sampling() -> None:
    rng = np.random.default_rng(13)
    runs, truth = 50, math.log(SCALE)
    z = np.empty(runs)
    for run in range(runs):
        _, found = weighed(*ideal_run(rng), rng)
        z[run] = (found.value - truth) / found.mcse
    # Mean 0 with an error of 1 / sqrt(runs); the sum of squares is chi-squared.
    assert abs(z.mean()) < 4 / math.sqrt(runs)
    assert 1e-4 < stats.chi2(runs).cdf(np.sum(z**2)) < 1 - 1e-4


def test_shares_and_log_z_are_those_of_blackjax() -> None:
    """The same dead points; only the random volumes differ."""
    jax = pytest.importorskip("jax")
    pytest.importorskip("blackjax")
    from blackjax.ns.base import NSInfo, StateWithLogLikelihood
    from blackjax.ns.utils import log_weights

    rng = np.random.default_rng(14)
    value, birth = ideal_run(rng)
    share, found = weighed(value, birth, rng)
    with jax.enable_x64(True):
        nothing = np.zeros(len(value))
        particles = StateWithLogLikelihood(nothing, nothing, value, birth)
        weight: Any = log_weights(jax.random.key(1), NSInfo(particles, None), shape=400)
        log_z = np.asarray(jax.scipy.special.logsumexp(weight, axis=0))
        theirs = np.exp(np.asarray(weight) - log_z).mean(axis=1)
    # Means over 200 and 400 sequences; standard deviations, of which 1 / sqrt(2 n) is the error.
    error = log_z.std() * math.sqrt(1 / 200 + 1 / 400)
    assert abs(found.value - log_z.mean()) < 4 * error
    assert found.mcse == pytest.approx(log_z.std(), rel=4 * math.sqrt(1 / 400 + 1 / 800))
    # The likelihood's expectation; volumes make it vary by a few percent.
    assert share @ value == pytest.approx(theirs @ value, rel=0.05)
