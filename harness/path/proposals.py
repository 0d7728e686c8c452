"""Normalised densities fitted to draws, for a bridge: a Gaussian, and a mixture of Gaussians."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from harness.arrays import FloatArray, LogDensity
from harness.errors import DataError, SamplingError
from harness.path.gaussian import GaussianBase, gaussian_base

_SHRINKAGES = np.array([0.0, 1e-3, 1e-2, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0])
_SMALLEST = 1e-10
"""Smallest eigenvalue of a correlation matrix that is kept, as a share of the mean one."""
_FEW = 0.1
"""Fitted numbers for each draw from which on the target's curvature is tried."""
_DIFFERENCE = 1e-3
"""Differences of gradients are taken over so many standard deviations."""
_FLATTEST = 0.01
"""Smallest curvature that is used, where that of the draws' variances is 1."""
_MOST_PARTS = 4
_DRAWS_A_PART = 10
"""Draws for each dimension that a part of a mixture needs at least."""
_ITERATIONS = 40
_WORTH = 0.02
"""Gain in nats for each held-out draw from which on another part is worth it."""
_JUDGES = 3
"""One of so many draws is held out to choose by."""


@dataclass(frozen=True)
class Mixture:
    """A mixture of Gaussians.

    Attributes
    ----------
    weight
        Weights, positive and summing to one, shape (K,).
    parts
        Its K Gaussians.
    """

    weight: FloatArray
    parts: tuple[GaussianBase, ...]

    def log_density(self, points: npt.ArrayLike) -> FloatArray:
        """Return the normalised log density at points (..., D); shape (...)."""
        value: FloatArray = np.logaddexp.reduce(self._terms(points), axis=0)
        return value

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw n points, shape (n, D), in random order."""
        counts = rng.multinomial(n, self.weight)
        points = np.concatenate(
            [part.sample(rng, int(count)) for part, count in zip(self.parts, counts, strict=True)]
        )
        return rng.permutation(points)

    def _terms(self, points: npt.ArrayLike) -> FloatArray:
        """Return the log of each part's weighted density, shape (K, ...)."""
        return np.stack(
            [
                np.log(weight) + part.log_density(points)
                for weight, part in zip(self.weight, self.parts, strict=True)
            ]
        )


def fitted_proposal(draws: FloatArray, log_density: LogDensity | None = None) -> GaussianBase:
    """Fit a Gaussian to draws; its correlations are shrunk as much as held-out draws suggest.

    A covariance matrix of D dimensions that is fitted to n draws is off by about D^2 / 4n nats.
    With many dimensions it is therefore mixed with the diagonal matrix of the variances (as in
    Schäfer and Strimmer 2005, Statistical Applications in Genetics and Molecular Biology 4(1)).
    If the target's density is given, that is done also in coordinates in which its curvature at the
    mean of the draws is the identity: if the target is nearly Gaussian, nothing but variances has
    to be fitted there.  The share of the diagonal, and the coordinates, maximise the log density at
    the last third of each chain under a fit to the rest; the fit that is returned uses all draws.

    Parameters
    ----------
    draws
        Shape (chains, draws, D).
    log_density
        Log density of the target, with its gradient; used where the draws are few for their number
        of dimensions.

    Raises
    ------
    DataError
        If there are too few draws.
    SamplingError
        If a coordinate does not move, or the draws are not finite.
    """
    fit, judge = _held_out(draws)
    flat = draws.reshape(-1, draws.shape[2])
    if not np.all(np.isfinite(flat)):
        raise SamplingError("a proposal cannot be fitted to draws that are not finite")
    share, score = _shrunk(fit, judge)
    root: FloatArray | None = None
    dimension = flat.shape[1]
    if log_density is not None and dimension * (dimension + 3) / 2 > _FEW * len(flat):
        turned = _curvature_root(log_density, fit.mean(axis=0), fit.std(axis=0))
        if turned is not None:
            other, better = _shrunk(*(_turned(turned, each) for each in (fit, judge)))
            better -= float(np.log(np.diag(turned)).sum())
            if better > score:
                root, share = turned, other
    points = flat if root is None else _turned(root, flat)
    mean, spread, correlation = _moments(points)
    shrunk = (1 - share) * correlation + (share + _SMALLEST) * np.eye(dimension)
    covariance = shrunk * np.outer(spread, spread)
    try:
        found = gaussian_base(mean, 0.5 * (covariance + covariance.T))
    except DataError as error:
        raise SamplingError(
            f"a Gaussian cannot be fitted to draws that lie in a plane ({error})"
        ) from None
    if root is None:
        return found
    return GaussianBase(root @ found.mean, root @ found.cholesky, 0.0)


def _shrunk(fit: FloatArray, judge: FloatArray) -> tuple[float, float]:
    """Return the best share of the diagonal, and the log density that it gives held-out draws."""
    mean, spread, correlation = _moments(fit)
    value, vector = np.linalg.eigh(correlation)
    value = np.maximum(value, 0.0)
    along = np.square(((judge - mean) / spread) @ vector)
    scores = []
    for share in _SHRINKAGES:
        variance = np.maximum((1 - share) * value + share, _SMALLEST)
        scores.append(-0.5 * float((along / variance).sum(axis=1).mean() + np.log(variance).sum()))
    best = int(np.argmax(scores))
    return float(_SHRINKAGES[best]), scores[best] - float(np.log(spread).sum())


def _turned(root: FloatArray, points: FloatArray) -> FloatArray:
    """Return points in the coordinates of a lower triangular root, shape (n, D)."""
    return np.asarray(solve_triangular(root, points.T, lower=True).T, dtype=np.float64)


def _curvature_root(
    log_density: LogDensity, centre: FloatArray, spread: FloatArray
) -> FloatArray | None:
    """Return the Cholesky factor of the inverse of a density's curvature at a point.

    Curvature that is negative, or small against that of the draws' own spread, is replaced.
    Returns None if the density is not finite nearby, or a coordinate does not move.
    """
    if not np.all(spread > 0):
        return None
    shift = np.diag(_DIFFERENCE * spread)
    value, slope = log_density(np.concatenate([centre + shift, centre - shift]))
    if not np.all(np.isfinite(value)):
        return None
    up, down = np.split(slope * spread, 2)
    bent = -(up - down) / (2 * _DIFFERENCE)
    size, vector = np.linalg.eigh(0.5 * (bent + bent.T))
    inverse = (vector / np.maximum(size, _FLATTEST)) @ vector.T * np.outer(spread, spread)
    root: FloatArray = np.asarray(np.linalg.cholesky(0.5 * (inverse + inverse.T)))
    return root


def fitted_mixture(draws: FloatArray, whole: GaussianBase, seed: int) -> Mixture | None:
    """Fit a mixture of Gaussians to draws by EM; return None if one Gaussian does as well.

    The number of parts, up to four, is chosen by the log density at the last third of each chain.
    The covariance of each part is mixed with that of all draws, which counts like D + 2 draws.

    Parameters
    ----------
    draws
        Shape (chains, draws, D).
    whole
        The Gaussian that :func:`fitted_proposal` fitted to them.
    seed
        Seed of the starting points.  The same seed gives the same mixture.
    """
    dimension = draws.shape[2]
    fit, judge = _held_out(draws)
    most = min(_MOST_PARTS, len(fit) // (_DRAWS_A_PART * dimension))
    if most < 2:
        return None
    one = fitted_proposal(draws[:, : -(draws.shape[1] // _JUDGES)])
    best, number = float(one.log_density(judge).mean()), 1
    for more in range(2, most + 1):
        tried = _expectation_maximisation(one.whiten(fit), more, seed)
        log_det = float(np.log(np.diag(one.cholesky)).sum())
        score = float(tried.log_density(one.whiten(judge)).mean()) - log_det
        if score > best + _WORTH:
            best, number = score, more
    if number == 1:
        return None
    found = _expectation_maximisation(whole.whiten(draws.reshape(-1, dimension)), number, seed)
    parts = tuple(
        GaussianBase(whole.mean + whole.cholesky @ part.mean, whole.cholesky @ part.cholesky, 0.0)
        for part in found.parts
    )
    return Mixture(found.weight, parts)


def _held_out(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the first two thirds of each chain, and the rest, both flat."""
    judged = draws.shape[1] // _JUDGES
    dimension = draws.shape[2]
    if judged < 1 or draws.shape[0] * (draws.shape[1] - judged) < 4:
        raise DataError(f"a proposal needs more draws; got {draws.shape[:2]} (chains, draws)")
    return draws[:, :-judged].reshape(-1, dimension), draws[:, -judged:].reshape(-1, dimension)


def _moments(points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean, standard deviations and correlations."""
    mean, spread = points.mean(axis=0), points.std(axis=0, ddof=1)
    if not np.all(spread > 0):
        raise SamplingError("a proposal cannot be fitted to draws that do not move")
    scaled = (points - mean) / spread
    correlation: FloatArray = scaled.T @ scaled / (len(points) - 1)
    return mean, spread, correlation


def _expectation_maximisation(points: FloatArray, number: int, seed: int) -> Mixture:
    """Fit a mixture to whitened points (n, D), from means that are far apart."""
    count, dimension = points.shape
    mean = _apart(points, number, np.random.default_rng([seed, number]))
    weight = np.full(number, 1 / number)
    root = np.broadcast_to(np.eye(dimension), (number, dimension, dimension)).copy()
    for _ in range(_ITERATIONS):
        log_share = np.stack(
            [
                np.log(weight[k])
                - np.log(np.diag(root[k])).sum()
                - 0.5
                * np.square(solve_triangular(root[k], (points - mean[k]).T, lower=True)).sum(axis=0)
                for k in range(number)
            ]
        )
        share = np.exp(log_share - np.logaddexp.reduce(log_share, axis=0))
        held = share.sum(axis=1)
        weight = (held + 0.5) / (count + 0.5 * number)
        mean = (share @ points + 0.5 * mean) / (held + 0.5)[:, None]
        for k in range(number):
            offset = points - mean[k]
            spread = (share[k] * offset.T) @ offset + (dimension + 2) * np.eye(dimension)
            root[k] = np.linalg.cholesky(spread / (held[k] + dimension + 2))
    return Mixture(weight, tuple(GaussianBase(mean[k], root[k], 0.0) for k in range(number)))


def _apart(points: FloatArray, number: int, rng: np.random.Generator) -> FloatArray:
    """Choose points at random, each with probability as its squared distance from the others."""
    chosen = [points[rng.integers(len(points))]]
    distance = np.full(len(points), np.inf)
    while len(chosen) < number:
        distance = np.minimum(distance, np.square(points - chosen[-1]).sum(axis=1))
        chosen.append(points[rng.choice(len(points), p=distance / distance.sum())])
    return np.array(chosen)
