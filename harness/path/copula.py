"""A Gaussian copula fitted to draws: any margins, and a Gaussian between them.

Where many parameters have skewed margins, or two values each, a Gaussian is far from all of them,
and a mixture of Gaussians would need a part for each combination.  Here each margin is a mixture of
Gaussians on the line.  It is turned into a standard normal score, and a Gaussian is fitted to the
scores.  Between knots scores are linear, so that density and draws belong to each other exactly.

References
----------
Nelsen, R. B. (2006). An Introduction to Copulas, 2nd edition. Springer, chapter 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, ndtri_exp

from harness.arrays import FloatArray
from harness.path.gaussian import GaussianBase
from harness.path.proposals import finite, fitted_proposal, held_out, moving

_PARTS = (1, 2, 3, 4, 6)
"""Numbers of parts that are tried for each margin."""
_BINS = 256
"""Bins in which a margin's draws are counted."""
_ITERATIONS = 30
_ALONE = 1.0
"""Draws like which the mean variance of a margin's parts counts in each of them."""
_KNOTS = np.linspace(-5.0, 5.0, 41)
"""Knots of a part, in its standard deviations."""
_APART = 1e-6
"""Least difference of the scores of neighbouring knots."""


class _Margins(NamedTuple):
    """Mixtures on the line: weights, means and standard deviations, shape (parts, D) each."""

    weight: FloatArray
    mean: FloatArray
    spread: FloatArray

    def terms(self, points: FloatArray) -> FloatArray:
        """Return logs of weighted densities at points (n, D), shape (parts, n, D)."""
        z = (points - self.mean[:, None]) / self.spread[:, None]
        return np.asarray(
            np.log(self.weight / self.spread)[:, None] - 0.5 * (np.square(z) + np.log(2 * np.pi))
        )


class _Binned(NamedTuple):
    """Draws of each coordinate in bins: their centres, numbers and widths, shape (bins, D) each."""

    at: FloatArray
    number: FloatArray
    width: FloatArray


@dataclass(frozen=True)
class Margin:
    """A monotone map of a coordinate to its normal score, linear between knots and beyond.

    Attributes
    ----------
    knots, scores
        Both ascending, shape (K,).
    """

    knots: FloatArray
    scores: FloatArray

    def score(self, at: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return scores of values (n,), and the logs of the map's slopes there."""
        piece = np.clip(np.searchsorted(self.knots, at) - 1, 0, len(self.knots) - 2)
        slope = np.diff(self.scores) / np.diff(self.knots)
        found = self.scores[piece] + slope[piece] * (at - self.knots[piece])
        return found, np.log(slope)[piece]

    def value(self, score: FloatArray) -> FloatArray:
        """Return the values whose scores are given, shape (n,)."""
        return Margin(self.scores, self.knots).score(score)[0]


@dataclass(frozen=True)
class Copula:
    """A density whose normal scores are Gaussian.

    Attributes
    ----------
    margins
        One for each of D coordinates.
    base
        Density of the scores.
    """

    margins: tuple[Margin, ...]
    base: GaussianBase

    def log_density(self, points: npt.ArrayLike) -> FloatArray:
        """Return the normalised log density at points (..., D); shape (...)."""
        scores, slopes = self._scores(np.asarray(points, dtype=np.float64))
        value: FloatArray = self.base.log_density(scores) + slopes.sum(axis=-1)
        return value

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw n points, shape (n, D)."""
        scores = self.base.sample(rng, n)
        each = zip(self.margins, scores.T, strict=True)
        return np.stack([margin.value(score) for margin, score in each], axis=1)

    def _scores(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        each = zip(self.margins, np.moveaxis(points, -1, 0), strict=True)
        scores, slopes = zip(*(margin.score(at) for margin, at in each), strict=True)
        return np.stack(scores, axis=-1), np.stack(slopes, axis=-1)


def fitted_copula(draws: FloatArray) -> Copula:
    """Fit a Gaussian copula to draws.

    The number of parts of each margin is chosen by the log density at the last third of each chain;
    correlations of the scores are shrunk as in
    :func:`~harness.path.proposals.fitted_proposal`.

    Parameters
    ----------
    draws
        Shape (chains, draws, D).

    Raises
    ------
    DataError
        If there are too few draws.
    SamplingError
        If a coordinate does not move, or the draws are not finite.
    """
    fit, judge = held_out(draws)
    flat = finite(draws)
    edges = _edges(flat, moving(flat.std(axis=0)))
    chosen = _best(_binned(fit, edges), _binned(judge, edges))
    everything = _binned(flat, edges)
    fits = {number: _fitted(everything, number) for number in set(chosen.tolist())}
    margins = tuple(_margin(fits[number], axis) for axis, number in enumerate(chosen.tolist()))
    scores = np.stack(
        [margin.score(at)[0] for margin, at in zip(margins, flat.T, strict=True)], axis=1
    )
    return Copula(margins, fitted_proposal(scores.reshape(draws.shape)))


def _best(fit: _Binned, judge: _Binned) -> npt.NDArray[np.intp]:
    """Return the number of parts that suits each margin, shape (D,)."""
    scores = []
    for number in _PARTS:
        height = np.logaddexp.reduce(_fitted(fit, number).terms(judge.at), axis=0)
        scores.append((judge.number * height).sum(axis=0))
    chosen: npt.NDArray[np.intp] = np.array(_PARTS)[np.argmax(scores, axis=0)]
    return chosen


def _edges(points: FloatArray, spread: FloatArray) -> FloatArray:
    """Return edges of bins, shape (bins + 1, D): narrow in the middle, and wide in long tails."""
    low, middle, high = np.quantile(points, [0.25, 0.5, 0.75], axis=0)
    scale = np.where(high > low, high - low, spread)
    turned = np.arcsinh((points - middle) / scale)
    share = np.linspace(0, 1, _BINS + 1)[:, None]
    inner = turned.min(axis=0) + share * np.ptp(turned, axis=0)
    return np.asarray(middle + scale * np.sinh(inner))


def _binned(points: FloatArray, edges: FloatArray) -> _Binned:
    inner = edges[1:-1]
    bins = [np.searchsorted(inner[:, j], points[:, j]) for j in range(points.shape[1])]
    number = np.stack([np.bincount(each, minlength=_BINS) for each in bins], axis=1)
    centre = 0.5 * (edges[1:] + edges[:-1])
    return _Binned(centre, number.astype(np.float64), np.diff(edges, axis=0))


def _fitted(draws: _Binned, number: int) -> _Margins:
    """Fit mixtures of so many parts to all margins at once, by EM from equal shares in order."""
    total = draws.number.sum(axis=0)
    before = (np.cumsum(draws.number, axis=0) - 0.5 * draws.number) / total
    part = np.minimum((number * before).astype(np.intp), number - 1)
    share = (part == np.arange(number)[:, None, None]).astype(np.float64)
    found = _maximised(draws, share)
    for _ in range(_ITERATIONS if number > 1 else 0):
        terms = found.terms(draws.at)
        found = _maximised(draws, np.exp(terms - np.logaddexp.reduce(terms, axis=0)))
    return found


def _maximised(draws: _Binned, share: FloatArray) -> _Margins:
    held = share * draws.number
    number, count = held.sum(axis=1), draws.number.sum(axis=0)
    weight = (number + 0.5) / (count + 0.5 * len(number))
    mean = (held * draws.at).sum(axis=1) / (number + np.finfo(np.float64).tiny)
    # As if draws were even in their bins.
    squares = np.square(draws.at - mean[:, None]) + np.square(draws.width) / 12
    squares = (held * squares).sum(axis=1)
    variance = (squares + _ALONE * squares.sum(axis=0) / count) / (number + _ALONE)
    return _Margins(weight, mean, np.sqrt(variance))


def _margin(margins: _Margins, axis: int) -> Margin:
    """Return the map of a coordinate to its scores."""
    weight, mean, spread = (each[:, axis] for each in margins)
    knots = np.unique((mean + spread * _KNOTS[:, None]).ravel())
    z = (knots - mean[:, None]) / spread[:, None]
    below, above = (
        np.logaddexp.reduce(np.log(weight)[:, None] + log_ndtr(sign * z), axis=0)
        for sign in (1.0, -1.0)
    )
    scores = np.where(below < above, 1.0, -1.0) * ndtri_exp(np.minimum(below, above))
    # In a gap the scores hardly differ: there the map is one line.
    kept = [0]
    for k in range(1, len(knots)):
        if scores[k] > scores[kept[-1]] + _APART:
            kept.append(k)
    return Margin(knots[kept], scores[kept])
