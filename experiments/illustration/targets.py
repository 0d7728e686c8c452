"""The two mixtures on a line, their bases, exact answers, and densities for pictures.

The pseudo-extended half has that paper's mixture, N(-1, 0.1) + N(1, 0.02) by variances, and its
wide Gaussian N(0, 2) as instrumental distribution.  The other paper does not print the constants
of its mixture: 0.35 N(-4, 0.6^2) + 0.65 N(4, 0.4^2) is ours.  Its base has the mixture's mean and
variance, and zeta is Z, as there.
"""

from __future__ import annotations

import math

import numpy as np

from harness.arrays import FloatArray
from harness.models.gaussian_mixture import GaussianMixture
from harness.path import GaussianBase, gaussian_base

MIXTURES = {
    "pe": GaussianMixture(
        np.array([0.5, 0.5]), np.array([[-1.0], [1.0]]), np.sqrt(np.array([0.1, 0.02]))
    ),
    "ct": GaussianMixture(np.array([0.35, 0.65]), np.array([[-4.0], [4.0]]), np.array([0.6, 0.4])),
}
BOX = {"pe": (-12.0, 12.0), "ct": (-40.0, 40.0)}
"""Far outside of what either base reaches, eight of its standard deviations or more."""


def bases() -> dict[str, GaussianBase]:
    """Base of each half: the wide Gaussian, and the one with the mixture's own moments."""
    truth = MIXTURES["ct"].truth
    mean = truth.expected("x")
    variance = truth.expected("x_squared") - mean**2
    return {
        "pe": gaussian_base(np.zeros(1), np.array([[2.0]])),
        "ct": gaussian_base(mean, variance[:, None]),
    }


def distribution(mixture: GaussianMixture, x: FloatArray) -> FloatArray:
    """Distribution function of a one-dimensional mixture at points of shape (n,)."""
    z = (x[:, None] - mixture.mean[:, 0]) / (mixture.sd * math.sqrt(2))
    value: FloatArray = 0.5 * (1 + np.vectorize(math.erf)(z)) @ mixture.weight
    return value


def exact_right(half: str) -> float:
    """Mass of the right mode, P(x > 0), in closed form."""
    return 1 - float(distribution(MIXTURES[half], np.zeros(1))[0])


def extended_density(x1: FloatArray, x2: FloatArray) -> FloatArray:
    """Pseudo-extended density of two pseudo-samples (Nemeth et al. 2019, eq. 2)."""
    mixture, base = MIXTURES["pe"], bases()["pe"]

    p1, p2 = (np.exp(mixture.log_density(x[..., None])) for x in (x1, x2))
    q1, q2 = (np.exp(base.log_density(x[..., None])) for x in (x1, x2))
    density: FloatArray = 0.5 * (p1 * q2 + p2 * q1)
    return density


def potential(x: FloatArray, u: FloatArray) -> FloatArray:
    """Extended potential -log p(x, u) with beta = 1 / (1 + exp(-u)) and g(beta) = 1, up to log Z.

    beta times the target's potential, 1 - beta times the base's, and the map's Jacobian.
    """
    mixture, base = MIXTURES["ct"], bases()["ct"]
    beta = 1 / (1 + np.exp(-u))
    log_base = base.log_density(x[..., None])
    log_target = mixture.log_density(x[..., None])
    value: FloatArray = (
        -(beta * log_target + (1 - beta) * log_base) + np.logaddexp(0, u) + np.logaddexp(0, -u)
    )
    return value


def trajectory(
    x: float, u: float, momentum: tuple[float, float], *, step: float = 0.02, steps: int = 600
) -> FloatArray:
    """Leapfrog trajectory on the extended potential with unit masses: points (steps + 1, 2)."""
    width = 1e-5

    def slope(point: FloatArray) -> FloatArray:
        around = point + width * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
        value = potential(around[:, 0], around[:, 1])
        return (value[::2] - value[1::2]) / (2 * width)

    point, moving = np.array([x, u]), np.array(momentum)
    path = [point]
    for _ in range(steps):
        moving = moving - 0.5 * step * slope(point)
        point = point + step * moving
        moving = moving - 0.5 * step * slope(point)
        path.append(point)
    return np.array(path)
