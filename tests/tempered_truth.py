"""Targets whose tempered densities are known exactly: draws and distribution functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from harness.arrays import FloatArray
from harness.model.python_target import Target, function_target, numpy_target
from harness.models.gaussian_mixture import GaussianMixture
from harness.path import GaussianBase, gaussian_base

MIXTURE = GaussianMixture(np.array([0.35, 0.65]), np.array([[-3.0], [2.0]]), np.array([0.4, 0.9]))
"""One dimension, unequal weights and widths."""
MIXTURE_MODEL = MIXTURE.model("one_dimension", lower=-30, upper=30)
MIXTURE_BASE = gaussian_base([0.5], [[9.0]], log_zeta=0.4)

Cdf = Callable[[FloatArray], FloatArray]


class Exact(NamedTuple):
    """A tempered density: draws (n, D), and the distribution of each whitened direction."""

    draw: Callable[[int, np.random.Generator], FloatArray]
    cdfs: list[Cdf]


@dataclass(frozen=True)
class Tempered:
    """A target, a base, and the exact tempered density at each inverse temperature."""

    target: Target
    base: GaussianBase
    exact: Callable[[float], Exact]


def gaussian_target(
    dimension: int, log_z: float, seed: int = 0
) -> tuple[Target, FloatArray, FloatArray]:
    """Make a correlated Gaussian times exp(log_z); also its mean and covariance."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=dimension)
    root = rng.normal(size=(dimension, dimension)) / np.sqrt(dimension)
    covariance = root @ root.T + 0.3 * np.eye(dimension)
    precision = np.linalg.inv(covariance)
    constant = log_z - 0.5 * (np.linalg.slogdet(covariance)[1] + dimension * np.log(2 * np.pi))

    def log_density(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        slope = -(points - mean) @ precision
        return constant + 0.5 * np.sum(slope * (points - mean), axis=1), slope

    return function_target("gaussian", log_density, dimension), mean, covariance


def gaussian_case(dimension: int = 3) -> Tempered:
    """Gaussian between a Gaussian base and a Gaussian target: every tempered one is Gaussian."""
    target, mean, covariance = gaussian_target(dimension, log_z=1.7)
    root = np.tri(dimension) * 0.3 + np.eye(dimension)
    base = gaussian_base(mean + 0.7, 1.5 * root @ root.T, log_zeta=-0.6)

    def exact(beta: float) -> Exact:
        above, below = np.linalg.inv(covariance), np.linalg.inv(base.covariance)
        spread = np.linalg.inv(beta * above + (1 - beta) * below)
        centre = spread @ (beta * above @ mean + (1 - beta) * below @ base.mean)
        root = np.linalg.cholesky(spread)

        def draw(count: int, rng: np.random.Generator) -> FloatArray:
            points: FloatArray = centre + rng.normal(size=(count, dimension)) @ root.T
            return points

        def along(axis: int) -> Cdf:
            row = np.linalg.inv(root)[axis]
            return lambda points: np.asarray(norm.cdf((points - centre) @ row))

        return Exact(draw, [along(axis) for axis in range(dimension)])

    return Tempered(target, base, exact)


def mixture_case() -> Tempered:
    """One-dimensional mixture, its tempered densities by quadrature on a fine grid."""
    grid = np.linspace(-30, 30, 200_001)[1:-1]
    log_gamma = MIXTURE.log_density(grid[:, None])
    log_base = norm.logpdf(grid, MIXTURE_BASE.mean[0], MIXTURE_BASE.cholesky[0, 0])

    def exact(beta: float) -> Exact:
        log_density = beta * log_gamma + (1 - beta) * log_base
        density = np.exp(log_density - log_density.max())
        mass = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
        mass /= mass[-1]

        def draw(count: int, rng: np.random.Generator) -> FloatArray:
            return np.interp(rng.random(count), mass, grid)[:, None]

        return Exact(draw, [lambda points: np.interp(points[:, 0], grid, mass)])

    target = numpy_target(MIXTURE_MODEL, MIXTURE.log_density_and_gradient)
    return Tempered(target, MIXTURE_BASE, exact)
