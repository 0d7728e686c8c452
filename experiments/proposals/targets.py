"""Targets of the thesis's chapters 2 and 3, their densities in NumPy, and what is known of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.arrays import FloatArray
from harness.model import Model
from harness.proposals import Density

_STAN = Path(__file__).parent / "stan"

FREEDOM = 5
"""Degrees of freedom of Student's t; its variance is 5/3."""
MEAN_ABS = (
    2
    * math.sqrt(FREEDOM)
    * math.gamma((FREEDOM + 1) / 2)
    / (math.sqrt(math.pi) * (FREEDOM - 1) * math.gamma(FREEDOM / 2))
)
"""E|x| under Student's t, in closed form: 0.949."""
FUNNEL_SD = 3.0
"""Standard deviation of v."""
CORRELATION = 0.99
"""Of the bivariate Gaussian; the thesis says "highly correlated"."""
PILLAR = 0.1
"""Width a of the pillar; the interval's length A is 1."""


def log_student_t(points: FloatArray) -> FloatArray:
    """Log density of Student's t at points (n, 1), up to a constant."""
    value: FloatArray = -0.5 * (FREEDOM + 1) * np.log1p(np.square(points[:, 0]) / FREEDOM)
    return value


def log_funnel(points: FloatArray) -> FloatArray:
    """Log density of the funnel at points (n, 5), v first, up to a constant."""
    v, x = points[:, 0], points[:, 1:]
    with np.errstate(over="ignore"):
        squared = np.square(x).sum(axis=1) * np.exp(-v)
    value: FloatArray = -0.5 * (np.square(v / FUNNEL_SD) + squared + x.shape[1] * v)
    return value


def log_uniform(points: FloatArray) -> FloatArray:
    """Log density of Uniform[0, 1] at points (n, 1)."""
    x = points[:, 0]
    return np.where((x >= 0) & (x <= 1), 0.0, -np.inf)


def log_gaussian(points: FloatArray) -> FloatArray:
    """Log density of the correlated bivariate Gaussian at points (n, 2), up to a constant."""
    x, y = points.T
    value: FloatArray = -0.5 * (x**2 - 2 * CORRELATION * x * y + y**2) / (1 - CORRELATION**2)
    return value


def log_pillar(points: FloatArray) -> FloatArray:
    """Log density with half of the mass on (0, a) and half on (a, 1), at points (n, 1)."""
    x = points[:, 0]
    height = np.where(x < PILLAR, -np.log(2 * PILLAR), -np.log(2 * (1 - PILLAR)))
    return np.where((x > 0) & (x < 1), height, -np.inf)


@dataclass(frozen=True)
class WithSlope:
    """A log density with its gradient, from two functions of a module."""

    value: Density
    slope: Density

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities (n,) and gradients (n, D) at points (n, D)."""
        return self.value(points), self.slope(points)


@dataclass(frozen=True)
class Spherical:
    """The log density of a Gaussian around 0, up to a constant, with its gradient."""

    sd: float

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities (n,) and gradients (n, D) at points (n, D)."""
        value: FloatArray = -0.5 * np.square(points / self.sd).sum(axis=1)
        return value, -points / self.sd**2


def _student_t_slope(points: FloatArray) -> FloatArray:
    slope: FloatArray = -(FREEDOM + 1) * points / (FREEDOM + np.square(points))
    return slope


def _funnel_slope(points: FloatArray) -> FloatArray:
    v, x = points[:, :1], points[:, 1:]
    precision = np.exp(-v)
    squared = np.square(x).sum(axis=1, keepdims=True) * precision
    along = -v / FUNNEL_SD**2 + 0.5 * (squared - x.shape[1])
    return np.concatenate([along, -x * precision], axis=1)


def _gaussian_slope(points: FloatArray) -> FloatArray:
    slope: FloatArray = (CORRELATION * points[:, ::-1] - points) / (1 - CORRELATION**2)
    return slope


def student_t() -> Model:
    """Student's t with five degrees of freedom."""
    density = WithSlope(log_student_t, _student_t_slope)
    return Model("student-t", _STAN / "student_t", {}, ("x",), 1, log_density=density)


def funnel() -> Model:
    """The funnel; its coordinates are v and four x."""
    return Model(
        "funnel",
        _STAN / "funnel",
        {},
        ("v", "x"),
        5,
        log_density=WithSlope(log_funnel, _funnel_slope),
        shapes={"v": (), "x": (4,)},
    )


def uniform() -> Model:
    """Uniform[0, 1], which has no Stan program here."""
    density = WithSlope(log_uniform, np.zeros_like)
    return Model("uniform", _STAN, {}, ("x",), 1, bounds={"x": (0.0, 1.0)}, log_density=density)


def pillar() -> Model:
    """A pillar beside a plateau, of equal masses, which has no Stan program here."""
    density = WithSlope(log_pillar, np.zeros_like)
    return Model("pillar", _STAN, {}, ("x",), 1, bounds={"x": (0.0, 1.0)}, log_density=density)


def gaussian() -> Model:
    """The correlated bivariate Gaussian, which has no Stan program here."""
    density = WithSlope(log_gaussian, _gaussian_slope)
    return Model("correlated", _STAN, {}, ("x",), 2, log_density=density)


def product(prior_sd: float, likelihood_sd: float) -> Model:
    """A Gaussian prior times a Gaussian likelihood in two dimensions, both around 0."""
    return Model(
        f"product-{prior_sd:g}-{likelihood_sd:g}",
        _STAN,
        {"prior_sd": prior_sd, "likelihood_sd": likelihood_sd},
        ("x",),
        2,
        log_density=Spherical((prior_sd**-2 + likelihood_sd**-2) ** -0.5),
    )
