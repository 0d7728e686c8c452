"""Draw parameters in which a prior is quadratic, given all others: they are Gaussian, exactly.

A conditional autoregression, written as a function of the program's own or by ``target +=``, has
no random numbers in Stan, and nothing in its text shows that it is Gaussian.  Its gradients do:
differences of them are the precision, and with that the mean and the integral follow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from harness.arrays import FloatArray, rows_of
from harness.engine.batched import BatchedDensity
from harness.engine.blocks import moved_by
from harness.errors import DataError

_MOST_GRADIENTS = 2_000_000
"""Gradients that may be spent on precisions; NUTS draws a prior for less."""
_AT_ONCE = 4_000_000
"""Numbers in the points that are evaluated in one call."""
_TRIED = 8
"""Points at which it is tried whether a density is quadratic."""
_ROUNDING = 1e-6
"""Differences of gradients, relative to their size, that rounding explains."""

_SINGULAR = 1e-10
"""Share of a coordinate's precision, left when those before it are integrated out, that counts as
none."""
_FLAT = "a part of the prior has no finite integral"


class GaussianDraws(NamedTuple):
    """Points of which a part has been drawn."""

    points: FloatArray
    """Shape (n, D)."""
    log_density: FloatArray
    """Log density of the part that was drawn, normalised, given the rest; shape (n,)."""
    gradients: int
    """Gradient evaluations."""


class GaussianPart:
    """Coordinates of which a log density is a quadratic function, given all others.

    Parameters
    ----------
    density
        The log density, on Stan's unconstrained space.
    names
        Parameters whose coordinates these are.  Each has no constraint, or sums to zero.
    rng
        Random numbers for the points at which this is tried.

    Raises
    ------
    DataError
        If the density is not quadratic in them.
    """

    def __init__(
        self, density: BatchedDensity, names: Iterable[str], rng: np.random.Generator
    ) -> None:
        self._density = density
        self._columns = _columns(density, frozenset(names), rng)
        if not self._is_quadratic(rng):
            raise DataError(f"{density.name}: it is not quadratic in {', '.join(names)}")

    def drawn(self, points: FloatArray, rng: np.random.Generator) -> GaussianDraws:
        """Draw these coordinates at points (n, D) whose other coordinates stay.

        Raises
        ------
        DataError
            If the density has no finite integral over them, or precisions take too many gradients.
        """
        points = points.copy()
        points[:, self._columns] = 0.0
        n, size = len(points), len(self._columns)
        tried = min(n, _TRIED)
        precision = self._precisions(points[:tried])
        # All are compared with the density of the draws, so a few tell how to go on.
        if np.allclose(precision, precision[:1], rtol=_ROUNDING, atol=_ROUNDING):
            roots = np.broadcast_to(_root(precision[0]), (n, size, size))
            slope = self._slopes(points)
            spent = tried * (size + 1) + n
            moved, log_density = _gaussian(roots, slope, rng)
            points[:, self._columns] = moved
            return GaussianDraws(points, log_density, spent)
        if n * (size + 1) > _MOST_GRADIENTS:
            raise DataError(f"{self._density.name}: precisions take too many gradients")
        log_density = np.empty(n)
        step = max(1, _AT_ONCE // ((size + 1) * points.shape[1]))
        for first in range(0, n, step):
            some = slice(first, first + step)
            roots = np.array([_root(each) for each in self._precisions(points[some])])
            slope = self._slopes(points[some])
            points[some, self._columns], log_density[some] = _gaussian(roots, slope, rng)
        return GaussianDraws(points, log_density, (tried + n) * (size + 1) + n)

    def _slopes(self, points: FloatArray) -> FloatArray:
        """Return the gradients of these coordinates at points (n, D); shape (n, size)."""
        slopes: FloatArray = self._density(points)[1][:, self._columns]
        return slopes

    def _precisions(self, points: FloatArray) -> FloatArray:
        """Return minus the second derivatives at points (n, D), exact up to rounding.

        Shape (n, size, size).
        """
        size = len(self._columns)
        moved = np.repeat(points[:, None], size + 1, axis=1)
        moved[:, np.arange(1, size + 1), self._columns] += 1.0
        slopes = self._slopes(moved.reshape(-1, points.shape[1])).reshape(-1, size + 1, size)
        second = slopes[:, :1] - slopes[:, 1:]
        precision: FloatArray = 0.5 * (second + second.transpose(0, 2, 1))
        return precision

    def _is_quadratic(self, rng: np.random.Generator) -> bool:
        """Whether gradients change by the same amount from step to step, where there are any."""
        at = rng.standard_normal((_TRIED, self._density.dimension))
        along = np.zeros_like(at)
        along[:, self._columns] = rng.standard_normal((_TRIED, len(self._columns)))
        three = np.concatenate([at, at + along, at + 2 * along])
        value, _ = self._density(three)
        inside = np.all(np.isfinite(value.reshape(3, _TRIED)), axis=0)
        slopes = self._slopes(three).reshape(3, _TRIED, -1)[:, inside]
        bend = np.abs(slopes[2] - 2 * slopes[1] + slopes[0])
        return bool(inside.any() and np.all(bend <= _ROUNDING * (1 + np.abs(slopes).sum(axis=0))))


def _columns(
    density: BatchedDensity, names: frozenset[str], rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Return the unconstrained coordinates that move parameters of these names."""
    own = names & set(density.shapes)

    def constrain(points: FloatArray) -> FloatArray:
        values = density.constrain(points)
        return rows_of({name: values[name] for name in own})

    at = rng.standard_normal(density.dimension)
    return np.flatnonzero(moved_by(constrain, at).any(axis=1)) if own else np.zeros(0, np.intp)


def _root(precision: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of a precision."""
    try:
        root = np.asarray(np.linalg.cholesky(precision), dtype=np.float64)
    except np.linalg.LinAlgError as error:
        raise DataError(_FLAT) from error
    # Of a flat direction, rounding may leave a little.
    if np.any(np.diag(root) ** 2 < _SINGULAR * np.diag(precision)):
        raise DataError(_FLAT)
    return root


def _gaussian(
    roots: FloatArray, slopes: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw from Gaussians whose log densities have these slopes at 0.

    Parameters
    ----------
    roots
        Lower Cholesky factors of the precisions, shape (n, size, size).
    slopes
        Shape (n, size).

    Returns
    -------
    tuple
        Draws (n, size) and their log densities (n,).
    """
    z = rng.standard_normal(slopes.shape)
    drawn = np.empty_like(slopes)
    for row, (root, slope) in enumerate(zip(roots, slopes, strict=True)):
        half = solve_triangular(root, slope, lower=True)
        drawn[row] = solve_triangular(root, half + z[row], lower=True, trans="T")
    log_root: FloatArray = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    return drawn, log_root - 0.5 * np.sum(z**2 + np.log(2 * np.pi), axis=1)
