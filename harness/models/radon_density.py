"""Log density of the radon regression at many points at once, in NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.arrays import FloatArray

_PRIOR_SCALE = 2.5
# There are five coordinates before it: mu_a, mu_b, log sigma_a, log sigma_b and log eps.
_FIRST_COUNTY = 5


@dataclass(frozen=True)
class RadonDensity:
    """The unnormalised posterior of a :class:`harness.models.radon.RadonData`, with its gradient.

    As in the Stan program, the homes enter only through sums: with c = (beta_1, beta_2, -1, mu_a)
    and X = (floor, uranium, log radon, 1), the sum of squared residuals is
    c' X'X c + 2 sigma_a n' T c + sigma_a^2 sum_j T_j4 n_j^2.

    Attributes
    ----------
    gram
        X'X, shape (4, 4).
    totals
        T, sums of X over the homes of each county, shape (J, 4).
    """

    gram: FloatArray
    totals: FloatArray

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities (k,) and gradients (k, D) at base coordinates (k, D).

        Base coordinates are mu_a, mu_b, log sigma_a, log sigma_b, log eps, n and m.  The density is
        a density of these, including the Jacobian.
        """
        last = points.shape[1] - 2
        mu_a, mu_b = points[:, 0], points[:, 1]
        with np.errstate(over="ignore"):  # that far out, the density is NaN, which counts as 0
            scale = np.exp(points[:, 2:_FIRST_COUNTY])
            sigma_a, sigma_b, precision = scale[:, 0], scale[:, 1], np.exp(-2 * points[:, 4])
        n, m = points[:, _FIRST_COUNTY:last], points[:, last:]
        with np.errstate(over="ignore", invalid="ignore"):
            beta = mu_b[:, None] + sigma_b[:, None] * m
            c = np.column_stack([beta, np.full(len(points), -1.0), mu_a])
            gram_c, totals_c = c @ self.gram, c @ self.totals.T
            with_county = np.einsum("kj,kj->k", n, totals_c)
            spread = np.square(n) @ self.totals[:, 3]
            sum_square = np.einsum("ki,ki->k", c, gram_c) + sigma_a * (
                2 * with_county + sigma_a * spread
            )
            ratio = np.square(scale / _PRIOR_SCALE)
            normal = points.copy()
            normal[:, 2:_FIRST_COUNTY] = 0.0
            homes = self.gram[3, 3]
            value = (
                -0.5 * precision * sum_square
                - homes * (points[:, 4] + 0.5 * np.log(2 * np.pi))
                - 0.5 * np.einsum("ki,ki->k", normal, normal)
                - 0.5 * (points.shape[1] - 3) * np.log(2 * np.pi)
                - np.log1p(ratio).sum(axis=1)
                - 3 * np.log(0.5 * np.pi * _PRIOR_SCALE)
                + points[:, 2:_FIRST_COUNTY].sum(axis=1)
            )
            half_slope = gram_c + sigma_a[:, None] * (n @ self.totals)  # half the derivative in c
            of_square = np.empty_like(points)
            of_square[:, 0] = half_slope[:, 3]
            of_square[:, 1] = half_slope[:, 0] + half_slope[:, 1]
            of_square[:, 2] = sigma_a * (with_county + sigma_a * spread)
            of_square[:, 3] = sigma_b * np.einsum("ki,ki->k", m, half_slope[:, :2])
            of_square[:, 4] = -sum_square
            of_square[:, _FIRST_COUNTY:last] = sigma_a[:, None] * (
                totals_c + sigma_a[:, None] * n * self.totals[:, 3]
            )
            of_square[:, last:] = sigma_b[:, None] * half_slope[:, :2]
            gradient = -precision[:, None] * of_square - normal
            gradient[:, 2:_FIRST_COUNTY] += 1 - 2 * ratio / (1 + ratio)
            gradient[:, 4] -= homes
        return value, gradient


@dataclass(frozen=True)
class CentredRadonDensity:
    """The same posterior with beta = mu_b + sigma_b m in place of m, with its gradient.

    Attributes
    ----------
    standardised
        The density with m, which is multiplied by |dm/dbeta| = sigma_b^-2.
    """

    standardised: RadonDensity

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities (k,) and gradients (k, D) at base coordinates (k, D).

        Base coordinates are mu_a, mu_b, log sigma_a, log sigma_b, log eps, n and beta.
        """
        log_sigma_b = points[:, 3]
        # That far out, the density is NaN, which counts as 0.
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            sigma_b = np.exp(log_sigma_b)[:, None]
            m = (points[:, -2:] - points[:, 1:2]) / sigma_b
            value, gradient = self.standardised(np.hstack([points[:, :-2], m]))
            of_m = gradient[:, -2:].copy()
            gradient[:, -2:] = of_m / sigma_b
            gradient[:, 1] -= gradient[:, -2:].sum(axis=1)
            gradient[:, 3] -= np.einsum("ki,ki->k", of_m, m) + 2
        return value - 2 * log_sigma_b, gradient
