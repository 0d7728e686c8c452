"""Distribution functions, quantiles and densities of Stan's univariate distributions, as arrays.

They are those of SciPy's special functions, because a call of ``scipy.stats`` takes longer than
many a likelihood.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from harness.arrays import FloatArray

Function = Callable[..., Any]


@dataclass(frozen=True)
class Standard:
    """A distribution with location 0 and scale 1; its functions take its shapes last.

    Attributes
    ----------
    cdf, quantile, log_density
        Its distribution function, the inverse of it, and the log density, within its support.
    low, high
        Ends of its support.
    """

    cdf: Function
    quantile: Function
    log_density: Function
    low: float = -np.inf
    high: float = np.inf


_LOG_ROOT_2_PI = 0.5 * np.log(2 * np.pi)

STANDARD: Mapping[str, Standard] = {
    "uniform": Standard(lambda z: z, lambda p: p, np.zeros_like, 0.0, 1.0),
    "normal": Standard(special.ndtr, special.ndtri, lambda z: -0.5 * z**2 - _LOG_ROOT_2_PI),
    "student_t": Standard(
        lambda z, nu: special.stdtr(nu, z),
        lambda p, nu: special.stdtrit(nu, p),
        lambda z, nu: (
            special.gammaln((nu + 1) / 2)
            - special.gammaln(nu / 2)
            - 0.5 * np.log(nu * np.pi)
            - (nu + 1) / 2 * np.log1p(z**2 / nu)
        ),
    ),
    "cauchy": Standard(
        lambda z: 0.5 + np.arctan(z) / np.pi,
        lambda p: np.tan(np.pi * (p - 0.5)),
        lambda z: -np.log(np.pi) - np.log1p(z**2),
    ),
    "double_exponential": Standard(
        lambda z: np.where(z < 0, 0.5 * np.exp(-np.abs(z)), 1 - 0.5 * np.exp(-np.abs(z))),
        lambda p: np.where(
            p < 0.5, np.log(2 * np.minimum(p, 0.5)), -np.log(2 * np.minimum(1 - p, 0.5))
        ),
        lambda z: -np.log(2) - np.abs(z),
    ),
    "logistic": Standard(
        special.expit, special.logit, lambda z: -np.abs(z) - 2 * np.log1p(np.exp(-np.abs(z)))
    ),
    "gumbel": Standard(
        lambda z: np.exp(-np.exp(-z)), lambda p: -np.log(-np.log(p)), lambda z: -z - np.exp(-z)
    ),
    "lognormal": Standard(
        lambda z, s: special.ndtr(np.log(z) / s),
        lambda p, s: np.exp(s * special.ndtri(p)),
        lambda z, s: -0.5 * (np.log(z) / s) ** 2 - _LOG_ROOT_2_PI - np.log(s * z),
        0.0,
    ),
    "gamma": Standard(
        lambda z, a: special.gammainc(a, z),
        lambda p, a: special.gammaincinv(a, p),
        lambda z, a: special.xlogy(a - 1, z) - z - special.gammaln(a),
        0.0,
    ),
    "inv_gamma": Standard(
        lambda z, a: special.gammaincc(a, 1 / z),
        lambda p, a: 1 / special.gammainccinv(a, p),
        lambda z, a: -(a + 1) * np.log(z) - 1 / z - special.gammaln(a),
        0.0,
    ),
    "weibull": Standard(
        lambda z, a: -np.expm1(-(z**a)),
        lambda p, a: (-np.log1p(-p)) ** (1 / a),
        lambda z, a: np.log(a) + special.xlogy(a - 1, z) - z**a,
        0.0,
    ),
    "frechet": Standard(
        lambda z, a: np.exp(-(z**-a)),
        lambda p, a: (-np.log(p)) ** (-1 / a),
        lambda z, a: np.log(a) - (a + 1) * np.log(z) - z**-a,
        0.0,
    ),
    "loglogistic": Standard(
        lambda z, b: special.expit(b * np.log(z)),
        lambda p, b: np.exp(special.logit(p) / b),
        lambda z, b: np.log(b) + (b - 1) * np.log(z) - 2 * np.log1p(z**b),
        0.0,
    ),
    "beta": Standard(
        lambda z, a, b: special.betainc(a, b, z),
        lambda p, a, b: special.betaincinv(a, b, p),
        lambda z, a, b: special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b),
        0.0,
        1.0,
    ),
    "pareto": Standard(
        lambda z, a: -np.expm1(-a * np.log(z)),
        lambda p, a: np.exp(-np.log1p(-p) / a),
        lambda z, a: np.log(a) - (a + 1) * np.log(z),
        1.0,
    ),
    "pareto_type_2": Standard(
        lambda z, a: -np.expm1(-a * np.log1p(z)),
        lambda p, a: np.expm1(-np.log1p(-p) / a),
        lambda z, a: np.log(a) - (a + 1) * np.log1p(z),
        0.0,
    ),
}

Standardised = tuple[str, tuple[FloatArray, ...]]
"""A standard distribution's name, and location, scale and shapes."""

FAMILIES: Mapping[str, Callable[[FloatArray, FloatArray, FloatArray], Standardised]] = {
    "uniform": lambda a, b, _: ("uniform", (a, b - a)),
    "normal": lambda a, b, _: ("normal", (a, b)),
    "std_normal": lambda a, _, __: ("normal", (0 * a, 1 + 0 * a)),
    "student_t": lambda a, b, c: ("student_t", (b, c, a)),
    "cauchy": lambda a, b, _: ("cauchy", (a, b)),
    "double_exponential": lambda a, b, _: ("double_exponential", (a, b)),
    "logistic": lambda a, b, _: ("logistic", (a, b)),
    "gumbel": lambda a, b, _: ("gumbel", (a, b)),
    "lognormal": lambda a, b, _: ("lognormal", (0 * a, np.exp(a), b)),
    "exponential": lambda a, _, __: ("gamma", (0 * a, 1 / a, 1 + 0 * a)),
    "gamma": lambda a, b, _: ("gamma", (0 * a, 1 / b, a)),
    "chi_square": lambda a, _, __: ("gamma", (0 * a, 2 + 0 * a, a / 2)),
    "inv_gamma": lambda a, b, _: ("inv_gamma", (0 * a, b, a)),
    "inv_chi_square": lambda a, _, __: ("inv_gamma", (0 * a, 0.5 + 0 * a, a / 2)),
    "scaled_inv_chi_square": lambda a, b, _: ("inv_gamma", (0 * a, a * b**2 / 2, a / 2)),
    "weibull": lambda a, b, _: ("weibull", (0 * a, b, a)),
    "rayleigh": lambda a, _, __: ("weibull", (0 * a, np.sqrt(2) * a, 2 + 0 * a)),
    "frechet": lambda a, b, _: ("frechet", (0 * a, b, a)),
    "loglogistic": lambda a, b, _: ("loglogistic", (0 * a, a, b)),
    "beta": lambda a, b, _: ("beta", (0 * a, 1 + 0 * a, a, b)),
    "beta_proportion": lambda a, b, _: ("beta", (0 * a, 1 + 0 * a, a * b, (1 - a) * b)),
    "pareto": lambda a, b, _: ("pareto", (0 * a, a, b)),
    "pareto_type_2": lambda a, b, c: ("pareto_type_2", (a, b, c)),
}
"""Stan's distributions by name: from up to three arguments to a standard distribution."""


@dataclass(frozen=True)
class Cut:
    """Elements with one standard distribution, each between two ends.

    Attributes
    ----------
    standard
        The distribution.
    location, scale, shapes
        Its arguments for each element, shape (E,) each.
    low, high
        The ends, shape (E,) each; they may be infinite.
    """

    standard: Standard
    location: FloatArray
    scale: FloatArray
    shapes: tuple[FloatArray, ...]
    low: FloatArray
    high: FloatArray

    def _below(self, x: FloatArray) -> FloatArray:
        """Probability below x without the cut."""
        z = np.clip((x - self.location) / self.scale, self.standard.low, self.standard.high)
        with np.errstate(all="ignore"):  # infinite or zero where the probability is 0 or 1
            return np.asarray(self.standard.cdf(z, *self.shapes))

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities below either end, without the cut."""
        return self._below(self.low), self._below(self.high)

    def quantile(self, p: FloatArray) -> FloatArray:
        """Return quantiles (n, E) of probabilities (n, E) without the cut."""
        with np.errstate(all="ignore"):
            return np.asarray(self.location + self.scale * self.standard.quantile(p, *self.shapes))

    def log_density(self, x: FloatArray) -> FloatArray:
        """Return log densities (n, E) without the cut, at points (n, E) within the support."""
        z = (x - self.location) / self.scale
        return np.asarray(self.standard.log_density(z, *self.shapes) - np.log(self.scale))
