"""Fit a mixture of Gaussians to particles of a target: find its modes, then run EM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harness.arrays import FloatArray, LogDensity
from harness.errors import DataError, SamplingError
from harness.path.fold import Fold

_SEARCH_STEPS = 25
_LONGEST_STEP = 3.0  # in standard deviations of the local quadratic approximation
_ROUGH = 1e-4  # difference for second derivatives, in standard deviations of the particles
_ARRIVED = 1e-3  # step length that ends a search, in the same units as the longest step


@dataclass(frozen=True)
class FoldSettings:
    """How a fold is fitted to particles.

    Attributes
    ----------
    searches
        Number of particles from which modes are searched for.
    separation
        Modes closer to each other than this many standard deviations count as one.
    iterations
        Iterations of EM.
    widen
        Final factor on the covariances, so that the mixture covers the target's tails.

    Raises
    ------
    DataError
        If a number is out of range.
    """

    searches: int = 512
    separation: float = 1.0
    iterations: int = 20
    widen: float = 1.1

    def __post_init__(self) -> None:
        if self.searches < 1 or self.iterations < 0:
            raise DataError(
                f"a fold needs one search or more and no negative iterations; got {self.searches} "
                f"and {self.iterations}"
            )
        if not (self.separation > 0 and self.widen > 0):
            raise DataError(
                f"separation and widen must be positive; got {self.separation} and {self.widen}"
            )


class FittedFold(NamedTuple):
    """A fold, and how many evaluations of the target's density and gradient it took."""

    fold: Fold
    gradients: int


def fit_fold(
    points: FloatArray, log_density: LogDensity, *, settings: FoldSettings | None = None
) -> FittedFold:
    """Fit a mixture of Gaussians, with one component per mode, to draws of a target.

    Newton's method climbs from some of the draws, all at the same time, with second derivatives
    from differences of gradients.  EM then fits each mode's Gaussian to all draws; the covariance
    of its Laplace approximation counts like D + 2 draws.

    Parameters
    ----------
    points
        Draws in random order, shape (n, D), such as :attr:`harness.path.Pilot.points`.
    log_density
        Log density of the target, with its gradient.
    settings
        Settings; the defaults if not given.

    Raises
    ------
    SamplingError
        If no search ends at a mode.
    """
    settings = settings or FoldSettings()
    found = _climb(points[: settings.searches], log_density, points.std(axis=0))
    order = np.argsort(-found.height)
    kept: list[int] = []
    for index in order:
        offset = found.points[kept] - found.points[index]
        apart = np.einsum("ki,kij,kj->k", offset, found.precision[kept], offset)
        if np.all(apart > settings.separation**2):
            kept.append(int(index))
    if not kept:
        raise SamplingError(
            f"none of {min(settings.searches, len(points))} searches ended at a mode of the "
            "target: take more searches"
        )
    laplace = np.asarray(np.linalg.inv(found.precision[kept]), dtype=np.float64)
    weight, mean, covariance = _expectation_maximisation(
        points, found.points[kept], laplace, settings.iterations
    )
    scale = np.asarray(np.linalg.cholesky(settings.widen * covariance), dtype=np.float64)
    return FittedFold(Fold(weight, mean, scale, np.ones(len(weight))), found.gradients)


class _Found(NamedTuple):
    """The modes at which searches ended; most of them occur several times."""

    points: FloatArray
    height: FloatArray
    precision: FloatArray
    gradients: int


def _climb(start: FloatArray, log_density: LogDensity, spread: FloatArray) -> _Found:
    """Climb by Newton's method with the absolute curvature; halve steps that overshoot."""
    count, dimension = start.shape
    shift = np.diag(_ROUGH * spread)
    gradients = 0

    def curvature(at: FloatArray) -> FloatArray:
        nonlocal gradients
        near = np.concatenate([at[:, None] + shift, at[:, None] - shift], axis=1)
        _, slope = log_density(near.reshape(-1, dimension))
        gradients += near.shape[0] * near.shape[1]
        up, down = np.split(slope.reshape(len(at), 2 * dimension, dimension), 2, axis=1)
        bent = (up - down) / (2 * np.diag(shift))[:, None]
        return np.asarray(0.5 * (bent + bent.transpose(0, 2, 1)))

    points = np.array(start)
    height, slope = (np.array(each) for each in log_density(points))
    gradients += count
    length, step = np.ones(count), np.full(count, np.inf)
    hessian = curvature(points)
    active = np.arange(count)
    for _ in range(_SEARCH_STEPS):
        value, vector = np.linalg.eigh(hessian[active])
        size = np.maximum(np.abs(value), 1e-8)
        along = np.einsum("nij,ni->nj", vector, slope[active])
        step[active] = np.sqrt(np.sum(along**2 / size, axis=1))
        left = step[active] >= _ARRIVED
        active = active[left]
        if not active.size:
            break
        towards = np.einsum("nij,nj->ni", vector[left], along[left] / size[left])
        reach = length[active] * np.minimum(1.0, _LONGEST_STEP / step[active])
        proposed = points[active] + reach[:, None] * towards
        new_height, new_slope = log_density(proposed)
        gradients += len(active)
        better = new_height > height[active]
        length[active] = np.where(better, np.minimum(1.0, 2 * length[active]), 0.5 * length[active])
        moved = active[better]
        points[moved], height[moved] = proposed[better], new_height[better]
        slope[moved] = new_slope[better]
        if moved.size:
            hessian[moved] = curvature(points[moved])
    at_mode = (step < 0.1) & (np.linalg.eigvalsh(hessian)[:, -1] < 0)
    return _Found(points[at_mode], height[at_mode], -hessian[at_mode], gradients)


def _expectation_maximisation(
    points: FloatArray, mean: FloatArray, laplace: FloatArray, iterations: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return weights, means and covariances.

    The prior counts like half a draw for means and weights, and like D + 2 draws with the Laplace
    approximation's covariance for covariances.
    """
    number, dimension = mean.shape
    weight, covariance = np.full(number, 1 / number), laplace
    prior = dimension + 2
    for _ in range(iterations):
        offset = points[:, None, :] - mean
        root = np.linalg.inv(np.linalg.cholesky(covariance))
        z = np.einsum("fij,nfj->nfi", root, offset)
        log_share = np.log(weight) + np.linalg.slogdet(root).logabsdet - 0.5 * (z**2).sum(axis=-1)
        share = np.exp(log_share - np.logaddexp.reduce(log_share, axis=1, keepdims=True))
        count = share.sum(axis=0)
        weight = (count + 0.5) / (len(points) + 0.5 * number)
        # Half a draw at the old mean keeps an empty component where it is.
        mean = (share.T @ points + 0.5 * mean) / (count + 0.5)[:, None]
        offset = points[:, None, :] - mean
        spread = np.einsum("nf,nfi,nfj->fij", share, offset, offset)
        covariance = (spread + prior * laplace) / (count + prior)[:, None, None]
    return weight, mean, np.asarray(covariance, dtype=np.float64)
