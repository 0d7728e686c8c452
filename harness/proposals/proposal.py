"""Distributions from which new points are proposed, given where a chain is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.proposals.chance import Chance


class Proposal(Protocol):
    """A distribution q(x' <- x)."""

    @property
    def symmetric(self) -> bool:
        """Whether q(x' <- x) = q(x <- x') for all pairs."""

    def draw(self, here: FloatArray, chance: Chance) -> FloatArray:
        """Draw a point from each of the points ``here``; both have shape (n, D)."""

    def log_density(self, there: FloatArray, here: FloatArray) -> FloatArray:
        """Return log q(there <- here), shape (n,), of points (n, D)."""


class GaussianStep:
    """A spherical Gaussian around the chain's point.

    Parameters
    ----------
    sd
        Its standard deviation in each coordinate.

    Raises
    ------
    DataError
        If it is not positive.
    """

    symmetric = True

    def __init__(self, sd: float) -> None:
        if not 0 < sd < np.inf:
            raise DataError(f"a Gaussian proposal needs a positive standard deviation; got {sd}")
        self.sd = sd

    def draw(self, here: FloatArray, chance: Chance) -> FloatArray:
        """Draw a point from each of the points ``here``; both have shape (n, D)."""
        return here + self.sd * chance.rng.standard_normal(here.shape)

    def log_density(self, there: FloatArray, here: FloatArray) -> FloatArray:
        """Return log q(there <- here), shape (n,), of points (n, D)."""
        return spherical_log_density(there - here, np.full(len(here), self.sd))


class GaussianSteps:
    """A spherical Gaussian around the chain's point, of a width that is drawn uniformly from a set.

    Its density is that of the mixture over the widths.

    Parameters
    ----------
    widths
        Standard deviations to draw from.

    Raises
    ------
    DataError
        If there is none, or one that is not positive.
    """

    symmetric = True

    def __init__(self, widths: Sequence[float]) -> None:
        self.widths = np.asarray(widths, dtype=np.float64)
        if not self.widths.size or not np.all((self.widths > 0) & np.isfinite(self.widths)):
            raise DataError(f"proposals need one positive width or more; got {list(widths)}")

    def draw(self, here: FloatArray, chance: Chance) -> FloatArray:
        """Draw a point from each of the points ``here``; both have shape (n, D)."""
        width = self.widths[chance.rng.integers(self.widths.size, size=len(here))]
        return here + width[:, None] * chance.rng.standard_normal(here.shape)

    def log_density(self, there: FloatArray, here: FloatArray) -> FloatArray:
        """Return log q(there <- here), shape (n,), of points (n, D)."""
        log_share = np.full((len(here), self.widths.size), -np.log(self.widths.size))
        return mixture_log_density(there - here, self.widths, log_share)


def spherical_log_density(step: FloatArray, sd: FloatArray) -> FloatArray:
    """Return log N(step; 0, sd^2 I), shape (n,), of steps (n, D) and standard deviations (n,)."""
    dimension = step.shape[1]
    value: FloatArray = -0.5 * np.square(step / sd[:, None]).sum(axis=1) - dimension * np.log(
        sd * np.sqrt(2 * np.pi)
    )
    return value


def mixture_log_density(step: FloatArray, sd: FloatArray, log_share: FloatArray) -> FloatArray:
    """Return the log density of a mixture of spherical Gaussians of W widths.

    Parameters
    ----------
    step
        Shape (n, D).
    sd
        Standard deviations, shape (W,).
    log_share
        Log probabilities of the widths, shape (n, W).

    Returns
    -------
    FloatArray
        Shape (n,).
    """
    squared = np.square(step).sum(axis=1)[:, None]
    parts = log_share - 0.5 * squared / sd**2 - step.shape[1] * np.log(sd * np.sqrt(2 * np.pi))
    return log_sum(parts)


def log_sum(log_terms: FloatArray) -> FloatArray:
    """Return log sum exp over the last axis; -inf where all terms are."""
    most = log_terms.max(axis=-1, keepdims=True)
    most = np.where(np.isneginf(most), 0.0, most)
    with np.errstate(divide="ignore"):
        value: FloatArray = np.log(np.exp(log_terms - most).sum(axis=-1)) + most[..., 0]
    return value
