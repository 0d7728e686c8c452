"""Normalised densities fitted to draws, for a bridge: a Gaussian, and a mixture of Gaussians."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

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
PARTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
"""Numbers of parts that are tried."""
_MOST_POINTS = 20_000
"""More draws are thinned: they would not change a fit that matters."""
_NUMBERS_AT_ONCE = 65_536
"""Whitened coordinates, over all parts, that are computed at once: they fit into a cache."""
_IN_VAIN = 2
"""So many numbers in turn that are not worth it are the last."""
_FEWEST_IN_PART = 8
"""Points on either side of a cut."""
_DRAWS_A_PART = 10
"""Draws for each dimension that a part of a mixture needs at least."""
_ITERATIONS = 40
_SETTLED = 1e-4
"""Gain of an iteration, in nats for each draw, below which it is the last."""
_WORTH = 0.02
"""Gain in nats for each held-out draw from which on another part is worth it."""
_ALONE = 1.0
"""Draws like which the mean covariance counts where parts have very different shapes."""
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
        return self.shares(points)[1]

    def shares(self, points: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return each part's probability given points (..., D), and their log densities.

        The shapes are (K, ...) and (...).  Where the density is zero, so are all shares.
        """
        terms = self.terms(points)
        highest = terms.max(axis=0)
        # Faster than logaddexp, which has to go through the parts one after the other.
        terms -= np.where(np.isfinite(highest), highest, 0.0)
        share = np.exp(terms, out=terms)
        total = share.sum(axis=0)
        with np.errstate(divide="ignore"):
            value: FloatArray = highest + np.log(total)
        share /= np.where(total > 0, total, 1.0)
        return share, value

    def log_density_and_gradient(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the log density at points (n, D), shape (n,), and its gradient, (n, D)."""
        means, whiteners, constants = self._stacked
        z = (points - means[:, None]) @ whiteners.swapaxes(1, 2)
        terms = constants[:, None] - 0.5 * np.square(z).sum(axis=2)
        value: FloatArray = np.logaddexp.reduce(terms, axis=0)
        share = np.exp(terms - np.where(np.isfinite(value), value, 0.0))
        gradient: FloatArray = -((share[..., None] * z) @ whiteners).sum(axis=0)
        return value, gradient

    @cached_property
    def _stacked(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Means (K, D), inverses of Cholesky factors (K, D, D), and log densities at means (K,)."""
        means = np.stack([each.mean for each in self.parts])
        roots = np.stack([each.cholesky for each in self.parts])
        log_det = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        constant = np.log(self.weight) - log_det - 0.5 * means.shape[1] * np.log(2 * np.pi)
        whiteners = np.asarray(np.linalg.inv(roots), dtype=np.float64)
        return means, whiteners, np.asarray(constant, dtype=np.float64)

    def widened(self, factor: float) -> Mixture:
        """Return the same with parts so many times as wide."""
        parts = (GaussianBase(each.mean, factor * each.cholesky, 0.0) for each in self.parts)
        return Mixture(self.weight, tuple(parts))

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw n points, shape (n, D), in random order."""
        counts = rng.multinomial(n, self.weight)
        points = np.concatenate(
            [part.sample(rng, int(count)) for part, count in zip(self.parts, counts, strict=True)]
        )
        return rng.permutation(points)

    def terms(self, points: npt.ArrayLike) -> FloatArray:
        """Return the log of each part's weighted density at points (..., D); shape (K, ...)."""
        x = np.asarray(points, dtype=np.float64)
        means, whiteners, constants = self._stacked
        number, dimension = means.shape
        if x.ndim == 0 or x.shape[-1] != dimension:
            raise DataError(f"the mixture has dimension {dimension}; got points of shape {x.shape}")
        columns = x.reshape(-1, dimension).T
        count = columns.shape[1]
        found = np.empty((number, count))
        whiten = whiteners.reshape(number * dimension, dimension)
        offset = (whiteners @ means[..., None]).reshape(-1, 1)
        block = max(1, _NUMBERS_AT_ONCE // len(whiten))
        for begin in range(0, count, block):
            z = whiten @ columns[:, begin : begin + block]
            z -= offset
            np.square(z, out=z)
            found[:, begin : begin + block] = z.reshape(number, dimension, -1).sum(axis=1)
        found *= -0.5
        found += constants[:, None]
        return found.reshape(number, *x.shape[:-1])


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
    fit, judge = held_out(draws)
    flat = finite(draws)
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


def fitted_mixture(draws: FloatArray, seed: int, *, parts: Sequence[int] = PARTS) -> Mixture | None:
    """Fit a mixture of Gaussians to draws by EM; return None if one Gaussian does as well.

    The number of parts is chosen by the log density at the last third of each chain.
    The covariance of each part is mixed with the mean one of all parts, which counts like D + 2
    draws, or like one draw if held-out draws have a higher density then: even a twentieth of the
    mean makes a needle many times too wide.  (The covariance of all draws together may be far wider
    than any part, so it is no choice.)

    Parameters
    ----------
    draws
        Shape (chains, draws, D).
    seed
        Seed of the starting points.  The same seed gives the same mixture.
    parts
        Numbers of parts that are tried, ascending.
    """
    try:
        return _chosen_mixture(draws, seed, parts)
    except np.linalg.LinAlgError:  # of a part whose draws lie in a plane
        return None


def _chosen_mixture(draws: FloatArray, seed: int, parts: Sequence[int]) -> Mixture | None:
    dimension = draws.shape[2]
    draws = draws[:, :: -(-draws.shape[0] * draws.shape[1] // _MOST_POINTS)]
    fit, judge = held_out(draws)
    most = len(fit) // (_DRAWS_A_PART * dimension)
    if most < parts[0]:
        return None
    one = fitted_proposal(draws[:, : -(draws.shape[1] // _JUDGES)])
    inside, judged = one.whiten(fit), one.whiten(judge)
    like, chosen, in_vain = dimension + 2.0, None, 0
    best = float(one.log_density(judge).mean()) + float(np.log(np.diag(one.cholesky)).sum())
    for more in parts:
        if more > most or in_vain == _IN_VAIN:
            break
        tried = [
            _expectation_maximisation(inside, _indicators(start, more), like)
            for start in _starts(inside, one.cholesky, more, seed)
        ]
        scores = [float(each.log_density(judged).mean()) for each in tried]
        in_vain += 1
        if max(scores) > best + _WORTH:
            best, chosen, in_vain = max(scores), tried[int(np.argmax(scores))], 0
    if chosen is None:
        return None
    # Parts of very different shapes are better off on their own.
    alone = _expectation_maximisation(inside, chosen.shares(inside)[0], _ALONE)
    if float(alone.log_density(judged).mean()) > best + _WORTH:
        chosen, like = alone, _ALONE
    everything = one.whiten(draws.reshape(-1, dimension))
    found = _expectation_maximisation(everything, chosen.shares(everything)[0], like)
    turned = tuple(
        GaussianBase(one.mean + one.cholesky @ part.mean, one.cholesky @ part.cholesky, 0.0)
        for part in found.parts
    )
    return Mixture(found.weight, turned)


def held_out(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the first two thirds of each chain, and the rest, both flat.

    Parameters
    ----------
    draws
        Shape (chains, draws, D).

    Raises
    ------
    DataError
        If there are too few draws.
    """
    judged = draws.shape[1] // _JUDGES
    dimension = draws.shape[2]
    if judged < 1 or draws.shape[0] * (draws.shape[1] - judged) < 4:
        raise DataError(f"a proposal needs more draws; got {draws.shape[:2]} (chains, draws)")
    return draws[:, :-judged].reshape(-1, dimension), draws[:, -judged:].reshape(-1, dimension)


def finite(draws: FloatArray) -> FloatArray:
    """Return draws (chains, draws, D) as points (n, D).

    Raises
    ------
    SamplingError
        If one of them is not finite.
    """
    flat = draws.reshape(-1, draws.shape[2])
    if not np.all(np.isfinite(flat)):
        raise SamplingError("a proposal cannot be fitted to draws that are not finite")
    return flat


def moving(spread: FloatArray) -> FloatArray:
    """Return standard deviations of draws, shape (D,).

    Raises
    ------
    SamplingError
        If one of them is zero.
    """
    if not np.all(spread > 0):
        raise SamplingError("a proposal cannot be fitted to draws that do not move")
    return spread


def _moments(points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean, standard deviations and correlations."""
    mean, spread = points.mean(axis=0), moving(points.std(axis=0, ddof=1))
    scaled = (points - mean) / spread
    correlation: FloatArray = scaled.T @ scaled / (len(points) - 1)
    return mean, spread, correlation


def _starts(
    points: FloatArray, cholesky: FloatArray, number: int, seed: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Put each of some whitened points (n, D) into a part, in two ways; shape (n,) each.

    Means that are far apart suit modes that are far apart in many directions.  Cuts between points
    suit modes that are, but in one direction only: there the others hide it from distances.
    """
    rng = np.random.default_rng([seed, number])
    centres = _apart(points, number, rng)
    nearest = np.argmin([np.square(points - each).sum(axis=1) for each in centres], axis=0)
    along = cholesky / np.linalg.norm(cholesky, axis=1)[:, None]
    return nearest, _cut(points, np.concatenate([np.eye(len(along)), along]), number)


def _indicators(part: npt.NDArray[np.intp], number: int) -> FloatArray:
    """Return the shares of parts, (K, n), in points that each belong to one, shape (n,)."""
    return np.asarray(part == np.arange(number)[:, None], dtype=np.float64)


def _expectation_maximisation(points: FloatArray, share: FloatArray, like: float) -> Mixture:
    """Fit a mixture to points (n, D), starting from their shares of parts, (K, n)."""
    found, before = _maximised(points, share, like), -np.inf
    for _ in range(_ITERATIONS):
        share, value = found.shares(points)
        now = float(value.mean())
        if now < before + _SETTLED:
            break
        found, before = _maximised(points, share, like), now
    return found


def _maximised(points: FloatArray, share: FloatArray, like: float) -> Mixture:
    """Return the mixture that suits points (n, D) best, given their shares of parts, (K, n).

    The mean covariance of all parts counts like so many draws of each.
    """
    number, (count, dimension) = len(share), points.shape
    held = share.sum(axis=1)
    weight = (held + 0.5) / (count + 0.5 * number)
    mean = share @ points / (held + np.finfo(np.float64).tiny)[:, None]
    columns = np.ascontiguousarray(points.T)
    spread = np.empty((number, dimension, dimension))
    for k, own in enumerate(share):
        apart = columns - mean[k][:, None]
        spread[k] = (own * apart) @ apart.T
    within = spread.sum(axis=0) / count + _SMALLEST * np.eye(dimension)
    mixed = (spread + like * within) / (held + like)[:, None, None]
    root = np.linalg.cholesky(mixed)
    return Mixture(weight, tuple(map(GaussianBase, mean, root, np.zeros(number))))


def _cut(points: FloatArray, directions: FloatArray, number: int) -> npt.NDArray[np.intp]:
    """Cut points (n, D) into parts, one cut at a time; return the part of each.

    Each cut is the one, among all parts and directions (R, D), that takes most of the variance
    along its direction away.
    """
    part = np.zeros(len(points), dtype=np.intp)
    along = points @ directions.T
    waiting = {0: _best_cut(along)}
    for new in range(1, number):
        old = max(waiting, key=lambda each: waiting[each].gain)
        best = waiting[old]
        above = (part == old) & (along[:, best.direction] > best.value)
        part[above] = new
        for each in (old, new):
            waiting[each] = _best_cut(along[part == each])
    return part


class _Cut(NamedTuple):
    gain: float
    direction: int
    value: float


def _best_cut(along: FloatArray) -> _Cut:
    """Return the best cut of points, given where they are along each direction, shape (n, R)."""
    count = len(along)
    if count < 2 * _FEWEST_IN_PART:
        return _Cut(-np.inf, 0, np.inf)
    ordered = np.sort(along - along.mean(axis=0), axis=0)
    below = np.arange(1, count)[:, None]
    left = np.cumsum(ordered, axis=0)[:-1]
    # Variance between the two sides of each possible cut, as a share of the whole.
    between = np.square(left) * count / (below * (count - below))
    whole = np.square(ordered).sum(axis=0)
    share = between / np.where(whole > 0, whole, np.inf)
    share = share[_FEWEST_IN_PART - 1 : count - _FEWEST_IN_PART]
    row, direction = np.unravel_index(int(share.argmax()), share.shape)
    at = int(row) + _FEWEST_IN_PART - 1
    middle = ordered[at : at + 2, direction].mean() + along[:, direction].mean()
    # A Gaussian loses 2 / pi of its variance by its best cut.
    gain = count * (float(share[row, direction]) - 2 / np.pi)
    return _Cut(gain, int(direction), float(middle))


def _apart(points: FloatArray, number: int, rng: np.random.Generator) -> FloatArray:
    """Choose points at random, each with probability as its squared distance from the others."""
    chosen = [points[rng.integers(len(points))]]
    distance = np.full(len(points), np.inf)
    while len(chosen) < number:
        distance = np.minimum(distance, np.square(points - chosen[-1]).sum(axis=1))
        chosen.append(points[rng.choice(len(points), p=distance / distance.sum())])
    return np.array(chosen)
