"""A Gaussian base for a Boltzmann machine relaxation, from mean-field fixed points.

References
----------
Graham, M. M. and Storkey, A. J. (2017). Continuously tempered Hamiltonian Monte Carlo.
Uncertainty in Artificial Intelligence, section 7.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.models.boltzmann import BoltzmannMachine, BoltzmannRelaxation
from harness.path import GaussianBase, gaussian_base

_CONVERGED = 1e-10  # largest change of a mean in one sweep
_MOST_SWEEPS = 20_000
_SAME = 1e-5  # fixed points that are closer than this in every mean count as one


class MeanField(NamedTuple):
    """Mean-field approximations of a Boltzmann machine, one per fixed point, the best first."""

    mean: FloatArray
    """Means m of the units, which satisfy m = tanh(Wm + b), shape (P, d_b)."""
    log_bound: FloatArray
    """Lower bounds m'Wm/2 + b'm + H(m) on the machine's log Z_b, in nats, shape (P,)."""


def mean_field_points(
    machine: BoltzmannMachine, rng: np.random.Generator, *, starts: int = 500
) -> MeanField:
    """Find mean-field fixed points of a machine from random starts.

    Units are updated one after another.  This never lowers the bound, so every start ends in one of
    its local maxima.

    Parameters
    ----------
    machine
        The Boltzmann machine.
    rng
        Source of randomness for the starts, which are uniform on (-1, 1)^d_b.
    starts
        Number of starts.

    Raises
    ------
    DataError
        If ``starts`` < 1, or a start has not converged after 20,000 sweeps.
    """
    if starts < 1:
        raise DataError(f"mean-field fixed points need 1 start or more; got {starts}")
    mean = rng.uniform(-1, 1, (starts, machine.biases.size))
    moving = np.arange(starts)
    for _ in range(_MOST_SWEEPS):
        swept = mean[moving]
        for k, bias in enumerate(machine.biases):
            swept[:, k] = np.tanh(swept @ machine.weights[:, k] + bias)
        change = np.abs(swept - mean[moving]).max(axis=1)
        mean[moving] = swept
        moving = moving[change > _CONVERGED]
        if moving.size == 0:
            break
    else:
        raise DataError(f"{moving.size} of {starts} mean-field starts did not converge")
    bound = _log_bound(machine, mean)
    points: list[int] = []
    for i in np.argsort(-bound, kind="stable"):
        if not points or np.abs(mean[points] - mean[i]).max(axis=1).min() > _SAME:
            points.append(int(i))
    return MeanField(mean[points], bound[points])


def mean_field_base(
    relaxation: BoltzmannRelaxation, rng: np.random.Generator, *, starts: int = 500
) -> GaussianBase:
    """Return the Gaussian with the moments of the mixture of mean-field approximations.

    A fixed point m approximates the relaxation by a distribution with mean Q'm and covariance
    Q' diag(1 - m^2) Q + I.  Each approximation is weighted by its bound on the evidence.  The sum
    of the bounds is the guess at Z, as if their modes did not overlap.

    Parameters
    ----------
    relaxation
        The relaxation.
    rng, starts
        See :func:`mean_field_points`.

    Raises
    ------
    DataError
        See :func:`mean_field_points`.
    """
    point = mean_field_points(relaxation.machine, rng, starts=starts)
    log_total = float(np.logaddexp.reduce(point.log_bound))
    weight = np.exp(point.log_bound - log_total)
    expected_s = weight @ point.mean
    deviation = point.mean - expected_s
    spread = deviation.T @ (weight[:, None] * deviation)
    spread += np.diag(weight @ (1 - point.mean**2))
    q = relaxation.q
    covariance = q.T @ spread @ q + np.eye(q.shape[1])
    return gaussian_base(
        q.T @ expected_s,
        (covariance + covariance.T) / 2,
        log_zeta=relaxation.log_z_from(log_total),
    )


def _log_bound(machine: BoltzmannMachine, mean: FloatArray) -> FloatArray:
    """Return the mean-field bound on log Z_b at means of shape (P, d_b)."""
    energy = np.sum((0.5 * mean @ machine.weights + machine.biases) * mean, axis=1)
    bound: FloatArray = energy + (_entropy_part(mean) + _entropy_part(-mean)).sum(axis=1)
    return bound


def _entropy_part(mean: FloatArray) -> FloatArray:
    """Return -p log p with p = (1 + m) / 2, which is zero at p = 0."""
    p = (1 + mean) / 2
    part: FloatArray = -p * np.log(np.where(p > 0, p, 1))
    return part
