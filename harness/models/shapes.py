"""Banana and flower: data for ``stan/banana`` and ``stan/flower``, with truth and quantiles.

References
----------
Haario, H., Saksman, E. and Tamminen, J. (1999). Adaptive proposal distribution for random walk
Metropolis algorithm. Computational Statistics 14: the banana.

Sejdinovic, D., Strathmann, H., Lomeli Garcia, M., Andrieu, C. and Gretton, A. (2014). Kernel
adaptive Metropolis-Hastings. International Conference on Machine Learning: the flower.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.folders import shipped
from harness.model import Model, TrueValue, Truth
from harness.model.truth import Expectations, normalised, without_error
from harness.path import GaussianBase, gaussian_base

_TAIL = 9.0
"""Standard deviations beyond which a Gaussian has no mass in double precision (2e-19)."""


@dataclass(frozen=True)
class Banana:
    """A Gaussian that is bent along a parabola (Haario et al. 1999), normalised.

    x_1 ~ N(0, v), x_2 | x_1 ~ N(b (x_1^2 - v), 1), and the other coordinates are N(0, 1).

    Attributes
    ----------
    v
        Variance of x_1.
    b
        Bend, of either sign; 0 for none.
    dimension
        Number D of coordinates, 2 or more.

    Raises
    ------
    DataError
        If v is not positive, a number is not finite, or the dimension is below 2.
    """

    v: float = 100.0
    b: float = 0.1
    dimension: int = 2

    def __post_init__(self) -> None:
        if not (math.isfinite(self.v) and self.v > 0):
            raise DataError(f"the banana's variance v must be positive and finite; got {self.v}")
        if not math.isfinite(self.b):
            raise DataError(f"the banana's bend b must be finite; got {self.b}")
        if self.dimension < 2:
            raise DataError(f"the banana needs 2 dimensions or more; got {self.dimension}")

    @property
    def truth(self) -> Truth:
        """Log Z = 0; ``x``: E[X] = 0; ``x_squared``: (v, 1 + 2 b^2 v^2, 1, ...), shape (D,).

        E[X_2] is b (E[X_1^2] - v) = 0, and E[X_i X_j] = 0.
        """
        return Truth("closed form", normalised, self._expectations)

    def _expectations(self) -> Expectations:
        moment = np.ones(self.dimension)
        moment[0] = self.v
        moment[1] += 2 * (self.b * self.v) ** 2
        return {"x": without_error(np.zeros(self.dimension)), "x_squared": without_error(moment)}

    def quantile_x1(self, probability: float) -> float:
        """Return the quantile of X_1, that of N(0, v); the probability lies between 0 and 1."""
        return NormalDist(0, math.sqrt(self.v)).inv_cdf(_probability(probability))

    def cdf_x2(self, value: float) -> float:
        """Return P(X_2 <= value), by quadrature over z = x_1 / sqrt(v).

        P(X_2 <= t) = E[Phi(t - b v (Z^2 - 1))] for a standard normal Z.
        """
        bend = self.b * self.v
        if bend == 0:
            return NormalDist().cdf(value)
        if bend < 0:
            return 1 - Banana(self.v, -self.b).cdf_x2(-value)
        # Phi is 1 at nodes below the first bound and 0 above the second.
        first, second = (
            min(math.sqrt(max(0.0, 1 + (value + tail) / bend)), _TAIL) for tail in (-_TAIL, _TAIL)
        )
        nodes, share = _legendre(240, first, second)
        density = np.exp(-0.5 * nodes**2) * math.sqrt(2 / math.pi)
        return math.erf(first / math.sqrt(2)) + float(
            share @ (density * _normal_cdf(value - bend * (nodes**2 - 1)))
        )

    def quantile_x2(self, probability: float) -> float:
        """Return the quantile of X_2, by bisection; the probability lies between 0 and 1."""
        reach = _TAIL + abs(self.b * self.v) * (_TAIL**2 + 1)
        return _bisect(self.cdf_x2, _probability(probability), -reach, reach)

    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Return log densities at points of shape (..., D), for pictures of the target."""
        points = np.asarray(x, dtype=np.float64)
        residual = points.copy()
        residual[..., 0] /= math.sqrt(self.v)
        residual[..., 1] -= self.b * (points[..., 0] ** 2 - self.v)
        constant = 0.5 * self.dimension * math.log(2 * math.pi) + 0.5 * math.log(self.v)
        log_density: FloatArray = -0.5 * np.square(residual).sum(axis=-1) - constant
        return log_density

    def base(self) -> GaussianBase:
        """Return the Gaussian with the banana's mean and covariance, and log Z as log zeta."""
        second = np.diag(self.truth.expected("x_squared"))
        return gaussian_base(self.truth.expected("x"), second, log_zeta=0.0)

    def model(self, name: str = "banana") -> Model:
        """Return the banana, on all of R^D, as a model."""
        data = {"D": self.dimension, "v": self.v, "b": self.b}
        return Model(
            name,
            shipped("stan") / "banana",
            data,
            ("x",),
            self.dimension,
            own_base="improper",
            truth=self.truth,
        )


@dataclass(frozen=True)
class Flower:
    """A ring whose radius rises and falls with the angle (Sejdinovic et al. 2014).

    gamma(x) = exp(-(|x| - r - A cos(w atan2(x_2, x_1)))^2 / (2 s^2)) for x in the plane, with
    respect to Lebesgue measure.  It is not normalised.

    Attributes
    ----------
    r
        Mean radius.
    A
        Amplitude; the petals reach out to r + A.
    w
        Number of petals.
    s
        Half width of the ring.

    Raises
    ------
    DataError
        If r or s is not positive, A is negative, a number is not finite, or w is not an
        integer of 1 or more (the density would then jump at the angle pi).
    """

    r: float = 10.0
    A: float = 6.0
    w: int = 6
    s: float = 1.0

    def __post_init__(self) -> None:
        for name in ("r", "s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise DataError(f"the flower's {name} must be positive and finite; got {value}")
        if not (math.isfinite(self.A) and self.A >= 0):
            raise DataError(f"the flower's amplitude A must be finite and >= 0; got {self.A}")
        if not isinstance(self.w, (int, np.integer)) or self.w < 1:
            raise DataError(f"the flower needs an integer w of 1 petal or more; got {self.w}")

    @cached_property
    def _angles(self) -> FloatArray:
        """Angles of one petal, from its centre on, for the trapezoidal rule over a period."""
        count = 128 + 32 * math.ceil(self.A / self.s)
        return 2 * math.pi / self.w * np.arange(count) / count

    def _radial_moments(self, power: int, radius: float = math.inf, count: int = 100) -> FloatArray:
        """Integrate rho^power gamma over rho in [0, radius], at each of the angles."""
        centre = self.r + self.A * np.cos(self.w * self._angles)
        lower = np.maximum(-centre / self.s, -_TAIL)
        upper = np.maximum(np.minimum((radius - centre) / self.s, _TAIL), lower)
        nodes, share = _unit_rule(count)
        half = ((upper - lower) / 2)[:, None]
        t = lower[:, None] + half * (nodes + 1)
        integrand = (centre[:, None] + self.s * t) ** power * np.exp(-0.5 * t**2)
        moments: FloatArray = self.s * (half * integrand) @ share
        return moments

    @cached_property
    def _mass(self) -> float:
        return float(2 * math.pi * self._radial_moments(1).mean())

    @cached_property
    def truth(self) -> Truth:
        """Log Z; ``x``: E[X] and ``x_squared``: E[X^2], (2,); ``petal``: each petal's mass, (w,).

        E[X] is 0 unless there is a single petal.  A point belongs to the petal in whose sector it
        lies (:meth:`petal`); all have the same mass, because of the symmetry by 2 pi / w.
        The error is the difference from quadrature with fewer nodes.
        """
        return Truth("quadrature in polar coordinates", self._log_evidence, self._expectations)

    def _log_evidence(self) -> TrueValue[float]:
        fewer = math.log(2 * math.pi * self._radial_moments(1, count=60)[::2].mean())
        return TrueValue(math.log(self._mass), abs(math.log(self._mass) - fewer))

    def _expectations(self) -> Expectations:
        first = self._mean_over_petals(lambda angle: np.stack([np.cos(angle), np.sin(angle)]))
        second = self._mean_over_petals(
            lambda angle: np.stack([np.cos(angle) ** 2, np.sin(angle) ** 2])
        )
        return {
            "x": self._planar(first, 2),
            "x_squared": self._planar(second, 3),
            "petal": without_error(np.full(self.w, 1 / self.w)),
        }

    def _planar(self, direction: FloatArray, power: int) -> TrueValue[FloatArray]:
        """Return the expectation of rho^(power - 1) times a function of the angle."""
        moments, fewer = self._radial_moments(power), self._radial_moments(power, count=60)[::2]
        value = 2 * math.pi * (direction @ moments) / moments.size / self._mass
        coarse = 2 * math.pi * (direction[:, ::2] @ fewer) / fewer.size / self._mass
        return TrueValue(value, np.abs(value - coarse))

    def _mean_over_petals(self, f: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return the mean of f over the w angles at the same place in their petals."""
        turns = 2 * math.pi * np.arange(self.w) / self.w
        mean: FloatArray = f(self._angles[:, None] + turns).mean(axis=-1)
        return mean

    def radial_cdf(self, radius: float) -> float:
        """Return P(|X| <= radius), by quadrature."""
        return float(2 * math.pi * self._radial_moments(1, radius).mean()) / self._mass

    def radial_quantile(self, probability: float) -> float:
        """Return the quantile of |X|, by bisection; the probability lies between 0 and 1."""
        reach = self.r + self.A + _TAIL * self.s
        return _bisect(self.radial_cdf, _probability(probability), 0.0, reach)

    def petal(self, x: npt.ArrayLike) -> npt.NDArray[np.intp]:
        """Return the petal, 0 to w - 1, of points of shape (..., 2); petal 0 is along x_1 > 0."""
        points = np.asarray(x, dtype=np.float64)
        turn = np.arctan2(points[..., 1], points[..., 0]) / (2 * math.pi)
        index: npt.NDArray[np.intp] = np.rint(turn * self.w).astype(np.intp) % self.w
        return index

    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Return log gamma, unnormalised, at points (..., 2), for pictures of the target."""
        points = np.asarray(x, dtype=np.float64)
        angle = np.arctan2(points[..., 1], points[..., 0])
        centre = self.r + self.A * np.cos(self.w * angle)
        distance = np.hypot(points[..., 0], points[..., 1]) - centre
        log_density: FloatArray = -0.5 * (distance / self.s) ** 2
        return log_density

    def base(self) -> GaussianBase:
        """Return the Gaussian with the flower's mean and variances, and log Z as log zeta."""
        mean, log_evidence = self.truth.expected("x"), self.truth.log_evidence
        variance = self.truth.expected("x_squared") - mean**2
        return gaussian_base(mean, np.diag(variance), log_zeta=log_evidence.value)

    def model(self, name: str = "flower") -> Model:
        """Return the flower, on all of R^2, as a model."""
        data = {"r": self.r, "A": self.A, "w": int(self.w), "s": self.s}
        return Model(
            name,
            shipped("stan") / "flower",
            data,
            ("x",),
            2,
            own_base="improper",
            truth=self.truth,
        )


def _probability(probability: float) -> float:
    if not 0 < probability < 1:
        raise DataError(f"a quantile's probability must lie between 0 and 1; got {probability}")
    return probability


@cache
def _unit_rule(count: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of Gauss-Legendre quadrature on [-1, 1], which take time to find."""
    return np.polynomial.legendre.leggauss(count)


def _legendre(count: int, lower: float, upper: float) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights of Gauss-Legendre quadrature on [lower, upper]."""
    nodes, share = _unit_rule(count)
    half = (upper - lower) / 2
    return lower + half * (nodes + 1), half * share


def _normal_cdf(value: FloatArray) -> FloatArray:
    return np.array([0.5 * math.erfc(-each / math.sqrt(2)) for each in value])


def _bisect(cdf: Callable[[float], float], probability: float, lower: float, upper: float) -> float:
    """Find the point at which an increasing function reaches a probability, to rounding."""
    for _ in range(100):
        middle = (lower + upper) / 2
        if not lower < middle < upper:
            break
        if cdf(middle) < probability:
            lower = middle
        else:
            upper = middle
    return (lower + upper) / 2
