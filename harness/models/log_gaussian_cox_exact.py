"""Evidence and posterior moments of a small log-Gaussian Cox process, without a Markov chain.

Given its variance and range, the field is integrated out by independent draws of a Gaussian that is
near it, weighted so that nothing is approximated.  There remains an integral over the logarithms of
variance and range, for which the trapezoidal rule converges exponentially, because the integrand is
smooth and falls exponentially in every direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import gammaln, logsumexp

from harness.arrays import FloatArray
from harness.errors import DataError, SamplingError
from harness.model.truth import TrueValue

LARGEST = 64
"""Largest number of cells for which this takes seconds."""

# log sigma2 and log range; beyond, priors and the likelihood's limits leave less than 1e-5 of the
# mass: the prior density of a logarithm falls like exp(u) below and like exp(-exp(u)) above.
_LOWEST, _HIGHEST = -13.0, 4.0
_STEP = 0.25
# Nodes with less of the peak than this are left out: a few thousand of them are below 1e-8.
_NEGLIGIBLE = 28.0
_BATCHES = 16
_NEWTON = 60
_ROUNDS = 15  # of the variational Gaussian, which need not have converged to be drawn from
_WIDER = 1.1  # than that Gaussian, whose tails are too light


class CoxPosterior(NamedTuple):
    """Log evidence and posterior means by name, each with its error."""

    log_evidence: TrueValue[float]
    mean: dict[str, TrueValue[FloatArray]]


@dataclass(frozen=True)
class _Laplace:
    """The Gaussian about the mode of the whitened field z at one variance and range.

    Attributes
    ----------
    root
        sigma L, which takes z to the field's deviation from its mean, (N, N).
    mode
        Mode of z, (N,).
    factor
        Lower Cholesky factor of minus the Hessian there, (N, N).
    log_mass
        Laplace's approximation to log p(y | sigma2, range).
    """

    root: FloatArray
    mode: FloatArray
    factor: FloatArray
    log_mass: float


@dataclass(frozen=True)
class _Counts:
    """Points in N cells of area 1 / N, and the mean of the log intensity."""

    points: FloatArray
    field_mean: float

    def log_likelihood(self, x: FloatArray) -> FloatArray:
        """Log probability of all points at log intensities (..., N)."""
        with np.errstate(over="ignore"):
            expected = np.exp(x) / self.points.size
        constant = gammaln(self.points + 1).sum() + self.points.sum() * np.log(self.points.size)
        return np.asarray(x @ self.points - expected.sum(axis=-1) - constant)

    def laplace(self, root: FloatArray, start: FloatArray) -> _Laplace:
        """Find the mode by Newton's method, with steps that are halved until they climb.

        Raises
        ------
        SamplingError
            If it is not found.
        """
        z, value = start, self._log_density(root, start)
        for _ in range(_NEWTON):
            expected = np.exp(self.field_mean + root @ z) / self.points.size
            gradient = root.T @ (self.points - expected) - z
            curvature = root.T @ (expected[:, None] * root)
            curvature[np.diag_indices_from(curvature)] += 1
            factor: FloatArray = np.asarray(np.linalg.cholesky(curvature), dtype=np.float64)
            step = cho_solve((factor, True), gradient)
            if gradient @ step < 1e-18 * z.size:
                log_mass = value - float(np.log(np.diag(factor)).sum())
                return _Laplace(root, z, factor, log_mass)
            size = 1.0
            while size > 1e-6 and self._log_density(root, z + size * step) < value:
                size /= 2
            z = z + size * step
            value = self._log_density(root, z)
        raise SamplingError("the mode of the Cox process's field was not found: report this")

    def proposal(self, at: _Laplace) -> tuple[FloatArray, FloatArray]:
        """Return mean and Cholesky factor of the precision of a Gaussian near z's conditional.

        It is the Gaussian whose Kullback-Leibler divergence from it is least, found by damped
        rounds from Laplace's: E exp(x) takes the place of exp(x).  Laplace's own mean, the mode, is
        far from the mass of a skewed density: of its draws 3% would count where 30% of these do.
        """
        z, spread = at.mode, np.zeros_like(at.mode)
        factor: FloatArray = at.factor
        for _ in range(_ROUNDS):
            expected = np.exp(self.field_mean + at.root @ z + spread / 2) / self.points.size
            precision = at.root.T @ (expected[:, None] * at.root)
            precision[np.diag_indices_from(precision)] += 1
            factor = np.asarray(np.linalg.cholesky(precision), dtype=np.float64)
            gradient = at.root.T @ (self.points - expected) - z
            z = z + 0.7 * cho_solve((factor, True), gradient)
            width = solve_triangular(factor, at.root.T, lower=True)
            spread = 0.5 * (spread + np.square(width).sum(axis=0))
        return z, factor / _WIDER

    def _log_density(self, root: FloatArray, z: FloatArray) -> float:
        """Log p(y, z) without the normal density's constant."""
        return float(self.log_likelihood(self.field_mean + root @ z) - 0.5 * z @ z)


def exact_posterior(
    points: FloatArray,
    scaled_distance: FloatArray,
    field_mean: float,
    *,
    draws: int = 256,
    step: float = _STEP,
    seed: int = 1,
) -> CoxPosterior:
    """Integrate the field by weighted draws at each node of a grid, and the nodes by a rule.

    Parameters
    ----------
    points
        Number of points in each of N cells, shape (N,).
    scaled_distance
        Distances whose ratio to the range is minus a log correlation, shape (N, N).
    field_mean
        Mean of the log intensity.
    draws
        Draws at each node, a multiple of 32: 16 batches of pairs z and its mirror image.
    step
        Distance of the grid's nodes in log sigma2 and in log range.
    seed
        Seed of the draws.

    Returns
    -------
    CoxPosterior
        The means' names: ``sigma2``, ``range`` and the same with ``log_`` before it, shape ();
        ``x``, the log intensity, ``x_squared`` and ``z``, the whitened log intensity, (N,).
        Errors are standard errors over batches of draws and, added in squares, the difference of
        the rule with steps twice as long, where Laplace's approximation stands for the draws.

    Raises
    ------
    DataError
        If there are more than :data:`LARGEST` cells, or the number of draws is no multiple of 32.
    """
    if points.size > LARGEST:
        raise DataError(f"the exact posterior takes {LARGEST} cells at most; got {points.size}")
    if draws < 1 or draws % (2 * _BATCHES):
        raise DataError(f"draws must be a multiple of {2 * _BATCHES}; got {draws}")
    counts = _Counts(points, field_mean)
    line = np.arange(_LOWEST, _HIGHEST + step / 2, step)
    found: dict[tuple[int, int], _Laplace] = {}
    start = np.zeros(points.size)
    for j, log_range in enumerate(line):
        factor = np.linalg.cholesky(np.exp(-scaled_distance * np.exp(-log_range)))
        for i, log_sigma2 in enumerate(line):
            # The mode next to this one is near.
            near = found[i - 1, j].mode if i else start
            found[i, j] = counts.laplace(np.exp(log_sigma2 / 2) * factor, near)
    places = np.array(list(found))
    theta = line[places]
    log_prior = (theta - np.exp(theta)).sum(axis=1)
    rough = log_prior + np.array([each.log_mass for each in found.values()])
    kept = np.flatnonzero(rough > rough.max() - _NEGLIGIBLE)
    rng = np.random.default_rng(seed)
    laplaces = list(found.values())
    sums = [_weighted(counts, laplaces[k], theta[k], draws, rng) for k in kept]
    # Of the nodes, log mass (K, B), and means within each node and batch, (K, B, ...).
    log_mass = np.stack([each.log_mass for each in sums]) + log_prior[kept, None]
    mean = {name: np.stack([each.mean[name] for each in sums]) for name in sums[0].mean}
    at_modes = {name: value[:, None] for name, value in _at_modes(counts, laplaces, theta).items()}
    every_second = (places % 2 == 0).all(axis=1)
    rules = [_combined(rough[use, None], {n: v[use] for n, v in at_modes.items()}, h)
             for use, h in ((slice(None), step), (every_second, 2 * step))]  # fmt: skip
    log_evidence, each_mean = _combined(log_mass, mean, step)
    pooled = logsumexp(log_mass, axis=1) - np.log(_BATCHES)
    share = np.exp(log_mass - logsumexp(log_mass, axis=1, keepdims=True))
    within = {name: _over_batches(share, value) for name, value in mean.items()}
    whole, whole_mean = _combined(pooled[:, None], within, step)
    (fine, fine_mean), (coarse, coarse_mean) = rules
    return CoxPosterior(
        TrueValue(
            float(whole[0]),
            float(np.hypot(_standard_error(log_evidence), fine[0] - coarse[0])),
        ),
        {
            name: TrueValue(
                whole_mean[name][0],
                np.hypot(
                    _standard_error(each_mean[name]), fine_mean[name][0] - coarse_mean[name][0]
                ),
            )
            for name in mean
        },
    )


class _Weighted(NamedTuple):
    """Of each batch of draws at a node: log mean weights (B,), and weighted means (B, ...)."""

    log_mass: FloatArray
    mean: dict[str, FloatArray]


def _weighted(
    counts: _Counts, at: _Laplace, theta: FloatArray, draws: int, rng: np.random.Generator
) -> _Weighted:
    half = rng.standard_normal((_BATCHES, draws // (2 * _BATCHES), at.mode.size))
    noise = np.concatenate([half, -half], axis=1)
    flat = noise.reshape(-1, at.mode.size)
    centre, factor = counts.proposal(at)
    z = centre + solve_triangular(factor, flat.T, lower=True, trans="T").T
    x = counts.field_mean + z @ at.root.T
    log_weight = (
        counts.log_likelihood(x)
        + 0.5 * (np.square(flat).sum(axis=1) - np.square(z).sum(axis=1))
        - np.log(np.diag(factor)).sum()
    ).reshape(_BATCHES, -1)
    log_mass = logsumexp(log_weight, axis=1) - np.log(log_weight.shape[1])
    share = np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))
    fields = {"x": x, "x_squared": np.square(x), "z": z}
    mean = {
        name: np.einsum("bm,bmn->bn", share, value.reshape(*noise.shape))
        for name, value in fields.items()
    }
    scales = {name: np.full(_BATCHES, value) for name, value in _scales(theta).items()}
    return _Weighted(log_mass, scales | mean)


def _scales(theta: FloatArray) -> dict[str, FloatArray]:
    """Return functions of (log sigma2, log range), (..., 2), by name."""
    names = ("sigma2", "range")
    natural = {name: np.exp(theta[..., k]) for k, name in enumerate(names)}
    return natural | {f"log_{name}": theta[..., k] for k, name in enumerate(names)}


def _at_modes(
    counts: _Counts, laplaces: list[_Laplace], theta: FloatArray
) -> dict[str, FloatArray]:
    """Return what stands for the means within each node when rules are compared, (K, ...)."""
    z = np.stack([each.mode for each in laplaces])
    x = counts.field_mean + np.stack([each.root @ each.mode for each in laplaces])
    return _scales(theta) | {"x": x, "x_squared": np.square(x), "z": z}


def _combined(
    log_mass: FloatArray, mean: Mapping[str, FloatArray], step: float
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return log evidences (B,) and means (B, ...) from those of nodes, (K, B) and (K, B, ...)."""
    log_evidence = np.asarray(logsumexp(log_mass, axis=0))
    share = np.exp(log_mass - log_evidence)
    means = {name: np.einsum("kb,kb...->b...", share, value) for name, value in mean.items()}
    return log_evidence + 2 * np.log(step), means


def _over_batches(share: FloatArray, mean: FloatArray) -> FloatArray:
    """Return means over batches (K, 1, ...) of means (K, B, ...), weighted by shares (K, B)."""
    return np.asarray(np.einsum("kb,kb...->k...", share, mean)[:, None])


def _standard_error(batches: FloatArray) -> FloatArray:
    """Return the standard error of the mean of batches (B, ...)."""
    return np.asarray(batches.std(axis=0, ddof=1) / np.sqrt(len(batches)))
