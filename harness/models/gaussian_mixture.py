"""Mixtures of isotropic Gaussians: data for ``stan/gaussian_mixture`` and their truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.folders import shipped
from harness.model import Model, Truth
from harness.model.truth import Expectations, normalised, without_error

Scenario = Literal["a", "b"]


@dataclass(frozen=True)
class GaussianMixture:
    """Mixture sum_k w_k N(mu_k, sigma_k^2 I) of K Gaussians in D dimensions.

    Attributes
    ----------
    weight
        Mixture weights, shape (K,), summing to one.
    mean
        Component means, shape (K, D).
    sd
        Component standard deviations, shape (K,), equal in every direction.

    Raises
    ------
    DataError
        If shapes do not match, a number is not finite, a weight or standard deviation is not
        positive, or the weights do not sum to one.
    """

    weight: FloatArray
    mean: FloatArray
    sd: FloatArray

    def __post_init__(self) -> None:
        if self.mean.ndim != 2 or 0 in self.mean.shape:
            raise DataError(f"mixture means must have shape (K, D); got {self.mean.shape}")
        shape = (self.mean.shape[0],)
        if self.weight.shape != shape or self.sd.shape != shape:
            raise DataError(
                f"a mixture of {shape[0]} components needs as many weights and standard "
                f"deviations; got shapes {self.weight.shape} and {self.sd.shape}"
            )
        for name in ("weight", "mean", "sd"):
            if not np.all(np.isfinite(getattr(self, name))):
                raise DataError(f"mixture {name} has a value that is not finite")
        if not (np.all(self.weight > 0) and np.all(self.sd > 0)):
            raise DataError("mixture weights and standard deviations must be positive")
        if abs(self.weight.sum() - 1) > 1e-8:
            raise DataError(f"mixture weights must sum to one; they sum to {self.weight.sum()}")

    @property
    def truth(self) -> Truth:
        """Log Z = 0; ``x``: E[X] = sum_k w_k mu_k; ``x_squared``: sum_k w_k (mu_k^2 + sigma_k^2).

        The expectations have shape (D,); they are those of the mixture that no box cuts off.
        """
        return Truth("closed form", normalised, self._expectations)

    def _expectations(self) -> Expectations:
        first: FloatArray = self.weight @ self.mean
        second: FloatArray = self.weight @ (self.mean**2 + self.sd[:, None] ** 2)
        return {"x": without_error(first), "x_squared": without_error(second)}

    def log_density(self, x: npt.ArrayLike) -> FloatArray:
        """Return log densities at points of shape (..., D), for pictures of the target.

        Draws are never weighted with it, because every Stan program writes its own log weights.
        """
        points = np.asarray(x, dtype=np.float64)
        squared = np.square(points[..., None, :] - self.mean).sum(axis=-1)
        dimension = self.mean.shape[1]
        log_component = (
            np.log(self.weight)
            - 0.5 * dimension * np.log(2 * np.pi * self.sd**2)
            - 0.5 * squared / self.sd**2
        )
        log_density: FloatArray = np.logaddexp.reduce(log_component, axis=-1)
        return log_density

    def log_density_and_gradient(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return log densities and gradients at many points, for samplers driven from Python.

        It knows no box; :func:`harness.model.python_target.numpy_target` applies the model's.

        Parameters
        ----------
        points
            Shape (n, D).

        Returns
        -------
        tuple of FloatArray
            Log densities, shape (n,), and their gradients, shape (n, D).
        """
        precision = self.sd**-2.0
        pull = self.mean * precision[:, None]
        # log w_k N(x | mu_k, sigma_k^2 I) is affine in (x, x'x), so one matrix product serves all.
        constant = np.log(self.weight) - 0.5 * (
            self.mean.shape[1] * np.log(2 * np.pi * self.sd**2) + np.sum(pull * self.mean, axis=1)
        )
        share = points @ pull.T
        share -= np.einsum("ij,ij->i", points, points)[:, None] * (0.5 * precision)
        share += constant
        highest = share.max(axis=1, keepdims=True)
        share -= highest
        np.exp(share, out=share)
        total = share.sum(axis=1, keepdims=True)
        share /= total
        gradient: FloatArray = share @ pull - points * (share @ precision)[:, None]
        return (highest + np.log(total))[:, 0], gradient

    def model(self, name: str, *, lower: float, upper: float) -> Model:
        """Return the mixture inside the box [lower, upper]^D as a model.

        The box bounds x so that the tempered densities have finite mass.  Its edges must be far
        from the modes, because the true moments are those of the unbounded mixture.

        Raises
        ------
        DataError
            If a component mean lies within 10 of its standard deviations of the box's edge.
        """
        margin = 10 * self.sd[:, None]
        if not (np.all(self.mean - margin > lower) and np.all(self.mean + margin < upper)):
            raise DataError(
                f"the box [{lower}, {upper}] must leave 10 standard deviations around every "
                f"mean of the mixture; widen it"
            )
        data: dict[str, Any] = {
            "D": self.mean.shape[1],
            "K": self.mean.shape[0],
            "weight": self.weight,
            "mu": self.mean.T,
            "sigma": self.sd,
            "lower_bound": lower,
            "upper_bound": upper,
        }
        folder = shipped("stan") / "gaussian_mixture"
        bounds = {"x": (lower, upper)}
        return Model(
            name,
            folder,
            data,
            ("x",),
            self.mean.shape[1],
            bounds=bounds,
            log_density=self.log_density_and_gradient,
            truth=self.truth,
        )


def kou_mixture(scenario: Scenario) -> GaussianMixture:
    """Return 20 bivariate Gaussians (Kou, Zhou and Wong 2006; Nemeth et al. 2019, 4.1).

    Parameters
    ----------
    scenario
        ``"a"``: equal weights and variance 1/100, with modes far apart.  ``"b"``: weights
        proportional to 1/r and variances r/20, where r is the distance of a mean from (5, 5).
    """
    mean = np.loadtxt(
        shipped("data") / "gaussian_mixture" / "kou_means.csv", delimiter=",", skiprows=1
    )
    match scenario:
        case "a":
            weight = np.full(len(mean), 1 / len(mean))
            sd = np.full(len(mean), 0.1)
        case "b":
            radius = np.linalg.norm(mean - 5.0, axis=1)
            weight = (1 / radius) / (1 / radius).sum()
            sd = np.sqrt(radius / 20)
        case _:
            raise DataError(f"the mixture's scenario must be 'a' or 'b'; got '{scenario}'")
    return GaussianMixture(weight, mean, sd)
