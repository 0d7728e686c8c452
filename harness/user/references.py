"""What ladders of parallel tempering start from: draws of the prior, or densities fitted to draws.

A mixture of Gaussians is drawn from exactly, as a Gaussian is, but has parts in several modes.
Replicas then get from mode to mode within a few rungs, in proportions that do not depend on the
fit.  Modes that the draws lack come from the other ladder.
"""

from __future__ import annotations

import numpy as np

from harness.arrays import FloatArray
from harness.path import GaussianBase
from harness.path.proposals import PARTS, Mixture, fitted_mixture
from harness.samplers.rung_path import Reference
from harness.user.legs import fitted_gaussian

_CANDIDATES = 1024
_DRAWS_A_POINT = 3
"""Draws of the target for each point near it, to which a reference is fitted anew."""
_PARTS = tuple(each for each in PARTS if each <= 16)
"""More would take longer than a step takes otherwise."""


class Dealt:
    """Deals draws out in random order, and shuffles them again when all have been dealt.

    Parameters
    ----------
    points
        The draws, shape (n, D).
    """

    def __init__(self, points: FloatArray) -> None:
        self._points = points
        self._order = np.empty(0, dtype=np.intp)

    def __call__(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Return the next draws, shape (count, D)."""
        while len(self._order) < count:
            self._order = np.append(self._order, rng.permutation(len(self._points)))
        dealt, self._order = self._order[:count], self._order[count:]
        return self._points[dealt]


def reference(density: GaussianBase | Mixture) -> Reference:
    """Return a Gaussian, or a mixture of them, as a reference that is drawn from exactly."""
    return Reference(density.log_density_and_gradient, density.sample)


def fitted_base(draws: FloatArray, *, widened: float, seed: int) -> GaussianBase | Mixture:
    """Fit a mixture of Gaussians to draws, or one Gaussian if that does as well.

    Parameters
    ----------
    draws
        Shape (chains, draws, D).
    widened
        Factor by which parts are made wider.
    seed
        Seed of a mixture's starting points.

    Raises
    ------
    DataError, SamplingError
        If no Gaussian can be fitted to the draws.
    """
    one = fitted_gaussian(draws, widened=widened)
    mixture = fitted_mixture(draws, seed, parts=_PARTS)
    return one if mixture is None else mixture.widened(widened)


def refitted_base(
    draws: FloatArray, known: FloatArray, *, widened: float, seed: int
) -> GaussianBase | Mixture:
    """Fit anew as :func:`fitted_base` does, to draws of the target and to points near it.

    Few draws may lack a mode that such points are in, and without a part there replicas would
    hardly get to it again.

    Parameters
    ----------
    draws
        Of the target, shape (chains, draws, D).
    known
        Points near it, shape (n, D), in random order.  There is one of them for three draws, if
        there are as many.
    widened, seed
        As for :func:`fitted_base`.

    Raises
    ------
    DataError, SamplingError
        As :func:`fitted_base`.
    """
    chains, count, dimension = draws.shape
    each = min(count // _DRAWS_A_POINT, len(known) // chains)
    near = known[: chains * each].reshape(chains, each, dimension)
    # The last third of each chain judges the fit, so it has its share of both.
    first, last = zip(
        *(np.array_split(part, [2 * part.shape[1] // 3], axis=1) for part in (draws, near)),
        strict=True,
    )
    return fitted_base(np.concatenate([*first, *last], axis=1), widened=widened, seed=seed)


def drawn_from(
    base: GaussianBase | Mixture, rng: np.random.Generator
) -> tuple[Reference, FloatArray]:
    """Return a density as a reference, and draws from it, shape (n, D)."""
    return reference(base), base.sample(rng, _CANDIDATES)
