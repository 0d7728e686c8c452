"""A three-dimensional banana with exact draws, and the ensemble step's intermediate momenta.

The step is written again here from equations 13a to 13g, so that misprints of the paper's
acceptance ratio can be put in on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.arrays import FloatArray
from harness.samplers.ensemble import EnsembleSettings, LocalPreconditioner, Place
from harness.samplers.ensemble.roots import Preconditioner

OTHERS = 12
ETA, LAM = 3.0, 1.5
_CURVE, _NARROW = 0.6, 0.5


def log_density(q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """X is N(0, 1); y is N(0.6 x^2, 0.5^2); z is N(x / 2, 1)."""
    x, y, z = q.T
    off, side = (y - _CURVE * x**2) / _NARROW**2, z - x / 2
    value = -(x**2) / 2 - off**2 * _NARROW**2 / 2 - side**2 / 2
    gradient = np.stack([-x + 2 * _CURVE * x * off + side / 2, -off, -side], axis=1)
    return value, gradient


def whitened(q: FloatArray) -> FloatArray:
    x, y, z = q.T
    return np.stack([x, (y - _CURVE * x**2) / _NARROW, z - x / 2], axis=1)


def exact_draws(count: int, rng: np.random.Generator) -> FloatArray:
    x, u, v = rng.standard_normal((3, count))
    return np.stack([x, _CURVE * x**2 + _NARROW * u, x / 2 + v], axis=1)


def banana_preconditioner(seed: int, select: tuple[int, ...] | None = None) -> LocalPreconditioner:
    others = exact_draws(OTHERS, np.random.default_rng(seed))
    return LocalPreconditioner(others, ETA, LAM, select)


def place_at(q: FloatArray, p: FloatArray, preconditioner: Preconditioner) -> Place:
    return Place(q, p, *log_density(q), preconditioner.root(q))


@dataclass(frozen=True)
class ByHand:
    """Everything that a step passes through, and the log acceptance ratios made of it."""

    end: Place
    p1: FloatArray
    p2: FloatArray
    turned: FloatArray
    p3: FloatArray
    noise: FloatArray
    noise_back: FloatArray
    log_ratio: FloatArray
    """As it should be."""
    without_determinants: FloatArray
    inverted_determinants: FloatArray
    third: FloatArray
    """With I - dt / 3 A in the denominator."""
    printed_gaussians: FloatArray
    """With the Gaussian factors upside down, but f(sigma R) and 1/2."""
    printed: FloatArray
    """All misprints: f_alpha(R), upside down, 1/3."""


def step_by_hand(
    place: Place,
    noise: FloatArray,
    settings: EnsembleSettings,
    preconditioner: LocalPreconditioner,
) -> ByHand:
    half = np.full((len(noise), 1), settings.dt / 2)
    kept = np.exp(-settings.gamma * settings.dt)
    sigma = np.sqrt(1 - kept**2)
    p1 = place.p + half * place.root.transposed_times(place.gradient)
    middle = preconditioner.midpoint(place.q, p1, half, place.root)
    root = middle.root
    pull = root.divergence()
    assert pull is not None
    pull = half * pull if settings.divergence else np.zeros_like(p1)
    p2 = p1 + pull
    turned = kept * p2 + sigma * noise
    p3 = turned + pull
    q = middle.q + half * root.times(p3)
    at_end = preconditioner.root(q)
    value, gradient = log_density(q)
    last = p3 + half * at_end.transposed_times(gradient)
    end = Place(q, last, value, gradient, at_end)
    noise_back = (kept * turned - p2) / sigma if settings.gamma > 0 else -noise
    above, below = root.log_determinant(half, p3), root.log_determinant(-half, p1)
    third = root.log_determinant(-half * 2 / 3, p1)
    assert above is not None
    assert below is not None
    assert third is not None
    rise = value - place.log_density + (squared(place.p) - squared(last)) / 2
    gaussian = (squared(noise) - squared(noise_back)) / 2
    printed_gaussian = squared(noise_back) / 2 - squared(noise) / 2 / max(sigma**2, 1e-300)
    return ByHand(
        end,
        p1,
        p2,
        turned,
        p3,
        noise,
        noise_back,
        rise + gaussian + above - below,
        rise + gaussian,
        rise + gaussian - above + below,
        rise + gaussian + above - third,
        rise - gaussian + above - below,
        rise + printed_gaussian + above - third,
    )


def squared(v: FloatArray) -> FloatArray:
    total: FloatArray = np.square(v).sum(axis=1)
    return total


def functions(q: FloatArray, p: FloatArray) -> FloatArray:
    """31 functions of the whitened place u and of p: moments up to the second, u^3, log density."""
    u = whitened(q)
    i, j = np.triu_indices(3)
    columns = [u, u[:, i] * u[:, j], p, p[:, i] * p[:, j], u**3, log_density(q)[0][:, None]]
    mixed = (u[:, :, None] * p[:, None]).reshape(len(q), 9)
    return np.concatenate([*columns, mixed], axis=1)


def largest_score(change: FloatArray) -> float:
    """Largest |mean| of paired changes (n, 31), in units of its standard error."""
    error = change.std(axis=0, ddof=1) / np.sqrt(len(change))
    return float(np.abs(change.mean(axis=0) / error).max())
