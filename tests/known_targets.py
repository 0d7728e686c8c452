"""Targets of the samplers' tests whose normalising constant and mean are known exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness.arrays import FloatArray
from harness.model.python_target import Target, function_target
from harness.models.boltzmann import generate, relax
from harness.models.boltzmann_mean_field import mean_field_base
from harness.path import GaussianBase, gaussian_base


@dataclass(frozen=True)
class Known:
    """A target, a base for it, and its truth."""

    target: Target
    base: GaussianBase
    log_z: float
    mean: FloatArray


def one_dimensional_mixture() -> Known:
    """Two modes of unequal weight and width, with Z = exp(1.7)."""
    weight, mean, sd, log_z = np.array([0.3, 0.7]), np.array([-3.0, 2.0]), np.array([0.4, 1.2]), 1.7
    constant = log_z + np.log(weight / sd) - 0.5 * np.log(2 * np.pi)

    def log_density(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        scaled = (points - mean) / sd
        log_part = constant - 0.5 * scaled**2
        value = np.logaddexp.reduce(log_part, axis=1)
        share = np.exp(log_part - value[:, None])
        return value, -(share * scaled / sd).sum(axis=1, keepdims=True)

    target = function_target("mixture", log_density, 1)
    return Known(target, gaussian_base([0.4], [[9.0]], log_zeta=1.0), log_z, weight @ mean[:, None])


def ten_dimensional_gaussian() -> Known:
    """A correlated Gaussian with sds from 0.3 to 3, and Z = exp(-2.3)."""
    rng = np.random.default_rng(7)
    rotation = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    covariance = rotation @ np.diag(np.geomspace(0.3, 3, 10) ** 2) @ rotation.T
    precision, mean, log_z = np.linalg.inv(covariance), rng.standard_normal(10), -2.3
    constant = log_z - 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]

    def log_density(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        gradient = -(points - mean) @ precision
        return constant + 0.5 * np.sum(gradient * (points - mean), axis=1), gradient

    base = gaussian_base(np.zeros(10), np.diag(np.diag(covariance)) * 1.5)
    return Known(function_target("gaussian", log_density, 10), base, log_z, mean)


def ten_unit_relaxation() -> Known:
    """A relaxation of a Boltzmann machine of ten units, from its mean-field base."""
    relaxation = relax(generate(10, np.random.default_rng(11)))
    truth = relaxation.exact()
    return Known(
        function_target("relaxation", relaxation.log_density_and_gradient, relaxation.q.shape[1]),
        mean_field_base(relaxation, np.random.default_rng(1), starts=50),
        truth.log_z,
        truth.expected_x,
    )


KNOWN = {
    "mixture": one_dimensional_mixture,
    "gaussian": ten_dimensional_gaussian,
    "relaxation": ten_unit_relaxation,
}
