"""A Gaussian base cut by a box: how much of it is inside, and the mean of that part."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogMass
from harness.path.gaussian import GaussianBase

# If there is no closed form: the number of draws at a time, the largest number of draws, and an
# error of the log mass, in nats, that is small enough.
_BLOCK, _MOST_DRAWS, _ENOUGH = 2**16, 2**21, 0.003


@dataclass(frozen=True)
class CutBase:
    """The part of a Gaussian base inside a box.

    Attributes
    ----------
    mass
        Share of the base's mass inside the box.
    mean
        Mean of the base cut to the box, shape (D,).
    """

    mass: LogMass
    mean: FloatArray


def cut_to_box(base: GaussianBase, lower: npt.ArrayLike, upper: npt.ArrayLike) -> CutBase:
    """Cut a Gaussian base to a box.

    There is a closed form if its covariance is diagonal.  Otherwise draws of the base are used: as
    many as determine the log of the mass to 0.003 nats, but two million at most.  The draws are the
    same each time.

    Parameters
    ----------
    base
        The base.
    lower, upper
        Sides of the box, shape (D,), infinite if there is none.

    Raises
    ------
    DataError
        If the sides do not have the base's dimension, or hardly any of the base is inside.
    """
    sides = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    if any(side.shape != base.mean.shape for side in sides):
        raise DataError(
            f"a box in {base.mean.size} dimensions has as many lower and upper sides; got shapes "
            f"{sides[0].shape} and {sides[1].shape}"
        )
    if np.count_nonzero(base.cholesky) == base.mean.size:
        return _by_axes(base, *sides)
    return _by_draws(base, *sides)


def _by_axes(base: GaussianBase, lower: FloatArray, upper: FloatArray) -> CutBase:
    """Return mass and mean from each axis separately: those of a truncated normal distribution."""
    log_mass, mean = 0.0, base.mean.copy()
    for axis, sd in enumerate(np.diag(base.cholesky).tolist()):
        a, b = ((float(side[axis]) - base.mean[axis]) / sd for side in (lower, upper))
        share = _between(a, b)
        if share == 0:
            raise _outside()
        log_mass += math.log(share)
        mean[axis] += sd * (_height(a) - _height(b)) / share
    return CutBase(LogMass(log_mass), mean)


def _between(a: float, b: float) -> float:
    """Return the mass of the standard normal between a and b, precise in either tail."""
    if a > 0:
        a, b = -b, -a
    below, above = (0.5 * math.erfc(-each / math.sqrt(2)) for each in (a, -b))
    # Below the middle, the mass is a difference of small numbers; otherwise it is what the two
    # tails leave.
    return 0.5 * math.erfc(-b / math.sqrt(2)) - below if b < 0 else 1 - below - above


def _height(z: float) -> float:
    """Return the density of the standard normal."""
    return math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


def _by_draws(base: GaussianBase, lower: FloatArray, upper: FloatArray) -> CutBase:
    rng = np.random.default_rng(0)
    drawn, inside = 0, 0
    total = np.zeros(base.mean.size)
    error = math.inf
    while drawn < _MOST_DRAWS and error > _ENOUGH:
        points = base.sample(rng, _BLOCK)
        kept = points[np.all((points > lower) & (points < upper), axis=1)]
        drawn, inside, total = drawn + _BLOCK, inside + len(kept), total + kept.sum(axis=0)
        error = math.sqrt((1 - inside / drawn) / inside) if inside else math.inf
    if not inside:
        raise _outside()
    return CutBase(LogMass(math.log(inside / drawn), error), total / inside)


def _outside() -> DataError:
    return DataError(
        "hardly any of the base lies within the model's bounds: choose a base inside them"
    )
