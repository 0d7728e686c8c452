"""Hidalgo's stamps as a mixture of three Gaussians: the density in NumPy, two ways to write it.

y is 100 times the thickness in mm, with m its mean and r its range.  mu_k ~ N(m, r^2 / 4),
lambda_k ~ Gamma(2, beta), z ~ Dirichlet(1, 1, 1), beta ~ Gamma(0.2, 10 / r^2) (Richardson and Green
1997).  ``raw`` coordinates are (mu, lambda, z1, z2, beta), with density zero outside the support;
``unconstrained`` ones have log lambda, log(z1 / z3), log(z2 / z3) and log beta, with the Jacobian.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from harness.arrays import FloatArray

COORDINATES = 9
MEANS = (0, 1, 2)
"""The coordinates of the three mu."""

# Means of a long run of NUTS (16,000 draws), components in ascending order of mu: mu, lambda, z.
_NEAR = np.array([[7.17, 7.90, 9.92], [34.0, 23.5, 0.54], [0.23, 0.34, 0.43]])
REFERENCE = {"min z": 0.228, "max lambda": 38.1, "min mu": 7.168, "beta": 0.1097}
REFERENCE_SD = {"min z": 0.033, "max lambda": 12.2, "min mu": 0.0445, "beta": 0.0495}


class Stamps:
    """The posterior of the 486 thicknesses in a table with the columns thickness_mm and count."""

    def __init__(self, table: Path) -> None:
        with table.open(encoding="utf-8", newline="") as file:
            rows = [(float(row["thickness_mm"]), int(row["count"])) for row in csv.DictReader(file)]
        kept = np.array([row for row in rows if row[1]])
        self._y, self._count = 100 * kept[:, 0], kept[:, 1]
        self._mean = float(self._count @ self._y / self._count.sum())
        spread = float(np.ptp(self._y))
        self._kappa, self._rate = 4 / spread**2, 10 / spread**2

    def raw(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        mu, lam, beta = theta[:, :3], theta[:, 3:6], theta[:, 8]
        z = np.concatenate([theta[:, 6:8], 1 - theta[:, 6:8].sum(axis=1, keepdims=True)], axis=1)
        out = ((lam <= 0).any(axis=1)) | ((z <= 0).any(axis=1)) | (beta <= 0)
        if out.any():
            mu, lam = np.where(out[:, None], 8.0, mu), np.where(out[:, None], 1.0, lam)
            z, beta = np.where(out[:, None], 1 / 3, z), np.where(out, 0.1, beta)
        value, of_mu, of_lam, of_z, of_beta = self._natural(mu, lam, z, beta)
        gradient = np.concatenate([of_mu, of_lam, of_z[:, :2] - of_z[:, 2:], of_beta[:, None]], 1)
        return np.where(out, -np.inf, value), np.where(out[:, None], 0.0, gradient)

    def unconstrained(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        mu, log_lam, log_beta = theta[:, :3], theta[:, 3:6], theta[:, 8]
        logit = np.concatenate([theta[:, 6:8], np.zeros((len(theta), 1))], axis=1)
        logit = logit - logit.max(axis=1, keepdims=True)
        z = np.exp(logit)
        z /= z.sum(axis=1, keepdims=True)
        lam, beta = np.exp(log_lam), np.exp(log_beta)
        value, of_mu, of_lam, of_z, of_beta = self._natural(mu, lam, z, beta)
        value = value + log_lam.sum(axis=1) + log_beta + np.log(z).sum(axis=1)
        inner = of_z * z + 1 - z * ((of_z * z).sum(axis=1, keepdims=True) + 3)
        gradient = np.concatenate(
            [of_mu, of_lam * lam + 1, inner[:, :2], (of_beta * beta + 1)[:, None]], axis=1
        )
        return value, gradient

    def _natural(
        self, mu: FloatArray, lam: FloatArray, z: FloatArray, beta: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Log density, up to a constant, and its gradients in mu, lambda, all of z, and beta."""
        off = self._y - mu[:, :, None]  # (n, 3, values)
        square = np.square(off)
        terms = -0.5 * lam[:, :, None] * square
        terms += (np.log(z) + 0.5 * np.log(lam))[:, :, None]
        largest = terms.max(axis=1, keepdims=True)
        share = np.exp(terms - largest)
        total = share.sum(axis=1, keepdims=True)
        share *= self._count / total
        each = share.sum(axis=2)
        value = (largest[:, 0] + np.log(total[:, 0])) @ self._count
        value += (-self._kappa / 2 * np.square(mu - self._mean)).sum(axis=1)
        value += (np.log(lam) - beta[:, None] * lam).sum(axis=1) + 6 * np.log(beta)
        value += -0.8 * np.log(beta) - self._rate * beta
        of_mu = lam * (share * off).sum(axis=2) - self._kappa * (mu - self._mean)
        of_lam = 0.5 * each / lam - 0.5 * (share * square).sum(axis=2) + 1 / lam - beta[:, None]
        return value, of_mu, of_lam, each / z, 5.2 / beta - self._rate - lam.sum(axis=1)


def starts(walkers: int, rng: np.random.Generator, *, unconstrained: bool) -> FloatArray:
    """Places near the posterior mean, each with its components in an order of its own."""
    places = []
    for _ in range(walkers):
        mu, lam, z = _NEAR[:, rng.permutation(3)]
        noise = rng.standard_normal(3)
        mu, lam = mu + 0.02 * noise, lam * np.exp(0.05 * rng.standard_normal(3))
        if unconstrained:
            places.append([*mu, *np.log(lam), *np.log(z[:2] / z[2]), np.log(0.11)])
        else:
            places.append([*mu, *lam, *z[:2], 0.11])
    return np.array(places)


def quantities(theta: FloatArray, *, unconstrained: bool) -> dict[str, FloatArray]:
    """The four quantities of table 1, of coordinates (..., 9)."""
    if unconstrained:
        logit = np.concatenate([theta[..., 6:8], np.zeros((*theta.shape[:-1], 1))], axis=-1)
        z = np.exp(logit) / np.exp(logit).sum(axis=-1, keepdims=True)
        lam, beta = np.exp(theta[..., 3:6]), np.exp(theta[..., 8])
    else:
        z = np.concatenate(
            [theta[..., 6:8], 1 - theta[..., 6:8].sum(axis=-1, keepdims=True)], axis=-1
        )
        lam, beta = theta[..., 3:6], theta[..., 8]
    return {
        "min z": z.min(axis=-1),
        "max lambda": lam.max(axis=-1),
        "min mu": theta[..., :3].min(axis=-1),
        "beta": beta,
    }
