"""Riemannian HMC for the log-Gaussian Cox process, by blocks: the paper's RMHMC of Table 2.

The log intensities given variance and range have a constant metric; the logarithms of variance and
range have the Fisher information of the field, plus the prior's curvature, as their metric, and
move by the generalised leapfrog.

References
----------
Girolami, M. and Calderhead, B. (2011). Riemann manifold Langevin and Hamiltonian Monte Carlo
methods. Journal of the Royal Statistical Society B 73, 123-214, sections 6 and 9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from harness.arrays import FloatArray
from harness.models.log_gaussian_cox import LogGaussianCox

_TOLERANCE = 1e-11
_MOST_ROUNDS = 50
_SAME = 1e-8
_FAR = 1e4  # an iteration that gets there is lost


class Surface(NamedTuple):
    """A density and a metric at a point of D dimensions."""

    log_density: float
    gradient: FloatArray
    """Of the log density, shape (D,)."""
    metric: FloatArray
    """Positive definite, shape (D, D)."""
    slope: FloatArray
    """Derivative of the metric by coordinate j, shape (D, D, D) with j first."""


SurfaceAt = Callable[[FloatArray], "Surface | None"]
"""A point (D,) to density and metric, None outside of the support."""


class Proposal(NamedTuple):
    """Where a trajectory ends; None if it cannot be taken, or not be taken back."""

    q: FloatArray
    p: FloatArray
    energy: float


def energy(surface: Surface, p: FloatArray) -> float:
    """Return -log pi + log|G| / 2 + p' G^-1 p / 2."""
    factor = cho_factor(surface.metric, lower=True)
    half_log = float(np.log(np.diag(factor[0])).sum())
    return -surface.log_density + half_log + 0.5 * float(p @ cho_solve(factor, p))


def generalised_leapfrog(
    q: FloatArray, p: FloatArray, step: float, surface_at: SurfaceAt, *, check: bool = True
) -> Proposal | None:
    """Take a step of the implicit integrator of a metric that depends on the place.

    It is reversible and keeps volume (Girolami and Calderhead 2011, eqs. 16 to 18).

    Parameters
    ----------
    q, p
        Position and momentum, shape (D,).
    step
        Step size.
    surface_at
        Density and metric.
    check
        Whether to take the step back, and refuse it if that does not end at its start.

    Returns
    -------
    Proposal or None
        None if an implicit equation has no solution or another one on the way back.
    """
    here = surface_at(q)
    if here is None:
        return None
    half = _solved(lambda x: p - 0.5 * step * _force(here, x), p)
    if half is None:
        return None
    velocity = np.linalg.solve(here.metric, half)

    def onward(x: FloatArray) -> FloatArray | None:
        there = surface_at(x)
        if there is None:
            return None
        return q + 0.5 * step * (velocity + np.linalg.solve(there.metric, half))

    end = _solved(onward, q)
    there = None if end is None else surface_at(end)
    if end is None or there is None:
        return None
    last = half - 0.5 * step * _force(there, half)
    if check:
        back = generalised_leapfrog(end, -last, step, surface_at, check=False)
        if back is None or max(np.abs(back.q - q).max(), np.abs(back.p + p).max()) > _SAME * (
            1 + np.abs(q).max() + np.abs(p).max()
        ):
            return None
    return Proposal(end, last, energy(there, last))


def _force(surface: Surface, p: FloatArray) -> FloatArray:
    """Return the derivative of the energy by the position."""
    inverse = np.linalg.inv(surface.metric)
    velocity = inverse @ p
    trace = np.einsum("jab,ba->j", surface.slope, inverse)
    return np.asarray(
        -surface.gradient
        + 0.5 * trace
        - 0.5 * np.einsum("jab,a,b->j", surface.slope, velocity, velocity)
    )


def _solved(
    onward: Callable[[FloatArray], FloatArray | None], start: FloatArray
) -> FloatArray | None:
    """Iterate to a fixed point; None if there is none within some rounds."""
    x = start
    for _ in range(_MOST_ROUNDS):
        moved = onward(x)
        if moved is None or not np.abs(moved - start).max() < _FAR:
            return None
        if np.abs(moved - x).max() < _TOLERANCE * (1 + np.abs(x).max()):
            return moved
        x = moved
    return None


def hyper_surface(process: LogGaussianCox, x: FloatArray) -> SurfaceAt:
    """Return density and metric of (log sigma2, log range) given log intensities x, (N,).

    The metric is the Fisher information of x ~ N(field_mean, Sigma), tr(Sigma^-1 dSigma_i Sigma^-1
    dSigma_j) / 2, plus the prior's curvature, which is diagonal: sigma2 and range.
    """

    def at(theta: FloatArray) -> Surface | None:
        value, gradient = process.hyper_log_density(theta[None], x)
        if not np.isfinite(value[0]):
            return None
        field = process.field(theta)
        scales = np.exp(theta)
        a = field.precision @ field.slope
        turn = field.precision @ field.curvature - a @ a  # derivative of a by log range
        metric = 0.5 * np.array(
            [[process.size, np.trace(a)], [np.trace(a), np.vdot(a, a.T)]]
        ) + np.diag(scales)
        slope = np.zeros((2, 2, 2))
        slope[0, 0, 0] = scales[0]
        slope[1] = [
            [0, 0.5 * np.trace(turn)],
            [0.5 * np.trace(turn), np.vdot(a, turn.T) + scales[1]],
        ]
        return Surface(float(value[0]), gradient[0], metric, slope)

    return at


@dataclass(frozen=True)
class Moved:
    """A point after a decision, and whether it is a new one."""

    q: FloatArray
    acceptance: float


def move_hyper(
    process: LogGaussianCox,
    theta: FloatArray,
    x: FloatArray,
    step: float,
    steps: int,
    rng: np.random.Generator,
) -> Moved:
    """Move (log sigma2, log range) given x by Riemannian HMC."""
    at = hyper_surface(process, x)
    here = at(theta)
    if here is None:
        return Moved(theta, 0.0)
    p = np.linalg.cholesky(here.metric) @ rng.standard_normal(2)
    before = energy(here, p)
    draw = rng.standard_exponential()
    now = Proposal(theta, p, before)
    for _ in range(steps):
        made = generalised_leapfrog(now.q, now.p, step, at)
        if made is None:
            return Moved(theta, 0.0)
        now = made
    ratio = before - now.energy
    return Moved(now.q if ratio > -draw else theta, float(np.exp(min(ratio, 0))))


def latent_metric(process: LogGaussianCox, theta: FloatArray) -> FloatArray:
    """Return Sigma^-1 + diag(exp(field_mean + sigma2) / N), as the program of 2011 has it."""
    metric = process.precision(theta).copy()
    weight = np.exp(process.field_mean + np.exp(theta[0])) / process.size
    metric[np.diag_indices_from(metric)] += weight
    return metric


def move_latent(
    process: LogGaussianCox,
    x: FloatArray,
    theta: FloatArray,
    step: float,
    steps: int,
    rng: np.random.Generator,
) -> Moved:
    """Move x given theta by HMC with the metric of :func:`latent_metric`."""
    precision = process.precision(theta)
    root = cholesky(latent_metric(process, theta), lower=True)
    p = root @ rng.standard_normal(process.size)
    draw = rng.standard_exponential()

    def kinetic(momentum: FloatArray) -> float:
        return 0.5 * float(np.square(solve_triangular(root, momentum, lower=True)).sum())

    value, gradient = process.latent_log_density(x[None], precision)
    before, q = kinetic(p) - value[0], x
    for _ in range(steps):
        p = p + 0.5 * step * gradient[0]
        q = q + step * cho_solve((root, True), p)
        value, gradient = process.latent_log_density(q[None], precision)
        p = p + 0.5 * step * gradient[0]
    ratio = float(before - (kinetic(p) - value[0]))
    return Moved(q if ratio > -draw else x, float(np.exp(min(ratio, 0))))
