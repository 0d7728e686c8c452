"""A mixture of Gaussians that folds a target: one point y stands for many points x.

Let b(x) = sum_f w_f N(x | m_f, S_f S_f') be close to the target gamma, and let
x_f = m_f + s_f S_f y and D_f(y) = log gamma(x_f) - log b(x_f).  The folded density is
r(y) = N(y | 0, I) sum_f w_f exp(D_f).  It has the target's Z and, if b covers the target, a single
mode.

References
----------
Wang, L., Jones, D. E. and Meng, X.-L. (2016). Warp bridge sampling: the next generation.
arXiv:1609.07690.

Ding, Y. et al. (2024). The Warp-U sampler. arXiv:2401.00667.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, LogDensity, values_of
from harness.errors import DataError


@dataclass(frozen=True)
class Fold:
    """Mixture of F Gaussians in D dimensions, each of which is a frame for placing y.

    Attributes
    ----------
    weight
        Weights w_f, shape (F,), positive and summing to one.
    mean
        Means m_f, shape (F, D).
    scale
        Invertible scale matrices S_f, shape (F, D, D); or (1, D, D) for one that all share.
    sign
        Signs s_f, 1 or -1, shape (F,): the orientation in which y is placed.  They only matter for
        efficiency, because N(m_f, S_f S_f') does not depend on them.

    Raises
    ------
    DataError
        If shapes do not match, a number is not finite, or a value breaks a condition above.
    """

    weight: FloatArray
    mean: FloatArray
    scale: FloatArray
    sign: FloatArray

    def __post_init__(self) -> None:
        if self.mean.ndim != 2 or 0 in self.mean.shape:
            raise DataError(f"a fold's means have shape (F, D); got {self.mean.shape}")
        number, dimension = self.mean.shape
        if self.weight.shape != (number,) or self.sign.shape != (number,):
            raise DataError(
                f"a fold of {number} Gaussians needs as many weights and signs; got shapes "
                f"{self.weight.shape} and {self.sign.shape}"
            )
        if self.scale.shape not in ((number, dimension, dimension), (1, dimension, dimension)):
            raise DataError(
                f"a fold of {number} Gaussians needs as many scale matrices of shape "
                f"{(dimension,) * 2}, or one for all; got shape {self.scale.shape}"
            )
        for name in ("weight", "mean", "scale"):
            if not np.all(np.isfinite(getattr(self, name))):
                raise DataError(f"a fold's {name} has a value that is not finite")
        if np.any(self.weight <= 0) or abs(self.weight.sum() - 1) > 1e-8:
            raise DataError("a fold's weights must be positive and sum to one")
        if not np.all(np.abs(self.sign) == 1):
            raise DataError("a fold's signs must be 1 or -1")
        if np.any(np.linalg.slogdet(self.scale).sign == 0):
            raise DataError("a fold's scale matrix is singular")

    def points(self, y: npt.ArrayLike) -> FloatArray:
        """Place y, shape (..., D), in every frame; return x_f, shape (..., F, D)."""
        at = np.asarray(y, dtype=np.float64)
        scale = np.broadcast_to(self.scale, (len(self.weight), *self.scale.shape[1:]))
        turned = np.einsum("fij,...j->...fi", scale, at) * self.sign[:, None]
        placed: FloatArray = self.mean + turned
        return placed

    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Return the log density of the mixture b at points of shape (..., D); shape (...)."""
        offset = np.asarray(x, dtype=np.float64)[..., None, :] - self.mean
        root = np.broadcast_to(np.linalg.inv(self.scale), (len(self.weight), *self.scale.shape[1:]))
        z = np.einsum("fij,...fj->...fi", root, offset)
        log_det = np.linalg.slogdet(self.scale).logabsdet
        log_component = (
            np.log(self.weight)
            - log_det
            - 0.5 * np.square(z).sum(axis=-1)
            - 0.5 * self.mean.shape[1] * np.log(2 * np.pi)
        )
        value: FloatArray = np.logaddexp.reduce(log_component, axis=-1)
        return value

    def log_weight(self, y: FloatArray, log_density: LogDensity) -> FloatArray:
        """Return log w_f + D_f of a target at points y, shape (n, D); shape (n, F).

        Their log sum over f is the log ratio of the folded density to N(0, I), and their softmax
        over f gives the probability of each place given y.
        """
        placed = self.points(y)
        flat = placed.reshape(-1, placed.shape[-1])
        log_gamma = values_of(log_density)(flat).reshape(placed.shape[:-1])
        value: FloatArray = np.log(self.weight) + log_gamma - self.log_density(placed)
        return np.where(np.isnan(value), -np.inf, value)

    def data(self) -> dict[str, Any]:
        """Return the data that a folded Stan program takes in addition to the model's own."""
        return {
            "F": len(self.weight),
            "D_f": self.mean.shape[1],
            "fold_weight": self.weight,
            "fold_mean": self.mean.T,
            "S": len(self.scale),
            "fold_scale": self.scale,
            "fold_sign": self.sign,
        }
