"""Chains of NUTS that are stuck where the posterior has hardly any probability.

A chain that starts in a mode far below all others stays there, and its draws look like a region
that every other method misses.  How high the density is in them, and how far they spread, tells
what that region has at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.diagnosis import R_HAT_PROBLEM, Finding, Severity
from harness.errors import FAILURES
from harness.evidence import (
    NEGLIGIBLE_AT_MOST,
    LogEvidence,
    independent_draws,
    log_mass_at_most,
    log_masses_at_most,
    shares_at_most,
)
from harness.model import Model
from harness.modes.words import listed
from harness.user.compare import Region, largest_r_hat, unconstrained
from harness.user.one_copy import InOneCopy, density_of

_DRAWS = 500
"""Draws of each chain that are looked at."""
_FAR_BELOW = 0.01
"""Ratio of masses by which a chain is far below another."""
_RIDGE = 1e-9
"""Share of each variance that is added to it, in case all draws lie in a plane."""


class ChainsOfNuts:
    """Draws of chains of NUTS, and what the density integrates to at most where each chain is.

    Parameters
    ----------
    model
        The tempered model.
    draws
        By parameter, shape (chains, draws, ...).
    """

    def __init__(self, model: Model, draws: Mapping[str, FloatArray]) -> None:
        every = max(1, next(iter(draws.values())).shape[1] // _DRAWS)
        density = density_of(model)
        some = {name: each[:, ::every] for name, each in draws.items()}
        self.points = unconstrained(some, 2, density)
        """Some of the draws on the unconstrained space, shape (chains, n, D)."""
        flat = self.points.reshape(-1, self.points.shape[2])
        self._heights = density.values(flat).reshape(self.points.shape[:2])

    @cached_property
    def _worth(self) -> list[float]:
        return [independent_draws(each) for each in self.points]

    def log_mass_at_most(
        self, at: FloatArray | None = None, like: FloatArray | None = None
    ) -> FloatArray:
        """Return the log of what the density integrates to at most where each chain is, (chains,).

        Parameters
        ----------
        at
            Images of the points, of the same shape, in copies with the same density; by default the
            points themselves.
        like
            Points (n, D) that spread as those of the chains probably do.  In coordinates in which
            they do not correlate the bound is closer, if there are few draws.
        """
        points = self.points if at is None else at
        own = self._at_most(points)
        if like is None:
            return own
        covariance = np.atleast_2d(np.cov(like, rowvar=False))
        covariance = covariance + np.diag(_RIDGE * np.diag(covariance))
        try:
            root = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            return own
        whitened = np.linalg.solve(root, points.reshape(-1, len(root)).T).T
        scale = float(np.log(np.diag(root)).sum())
        closer = self._at_most(whitened.reshape(points.shape)) + scale
        return np.asarray(np.minimum(own, closer))

    def _at_most(self, points: FloatArray) -> FloatArray:
        return log_masses_at_most(self._heights, points, self._worth)


def chains_of_nuts(model: Model, draws: Mapping[str, FloatArray]) -> ChainsOfNuts | None:
    """Return chains of NUTS, or None if the density cannot be evaluated at their draws.

    What they tell is worth having, but no reason to lose anything else.
    """
    try:
        return ChainsOfNuts(model, draws)
    except FAILURES:
        return None


class Stuck(NamedTuple):
    """Chains that are stuck.

    Attributes
    ----------
    chains
        Their numbers, from 0.
    share
        Probability that the parts of the posterior where they are have at most, together.
    """

    chains: tuple[int, ...]
    share: float


def stuck_chains(
    model: Model, draws: Mapping[str, FloatArray], log_integral: LogEvidence
) -> Stuck | None:
    """Return the chains that are stuck where hardly any probability is; None if there are none.

    Parameters
    ----------
    model
        The tempered model.
    draws
        NUTS's draws by parameter, shape (chains, draws, ...).
    log_integral
        Log of the integral of the program's density, by a method that need not have been where
        these chains are.
    """
    own = chains_of_nuts(model, draws) if np.isfinite(log_integral.value) else None
    if own is None:
        return None
    shares = shares_at_most(own.log_mass_at_most(), log_integral)
    chains = np.flatnonzero(shares < NEGLIGIBLE_AT_MOST)
    if not chains.size:
        return None
    return Stuck(tuple(chains.tolist()), float(shares[chains].sum()))


def share_at_most(
    model: Model,
    points: FloatArray,
    log_integral: LogEvidence,
    in_one_copy: InOneCopy | None = None,
) -> float:
    """Return the most that the part of a posterior where some particles are has of it.

    Parameters
    ----------
    model
        The tempered model.
    points
        Particles of a population that has arrived there, shape (n, D), some of which may be alike.
    log_integral
        Log of the integral of the program's density, by a method that need not have been there.
    in_one_copy
        The copy to which the particles are brought, if they may be in several.
    """
    total = log_integral
    if in_one_copy is not None:
        points, total = in_one_copy.brought(points), in_one_copy.part_of(total)
    points = np.unique(points, axis=0)
    most = log_mass_at_most(density_of(model).values(points), points)
    return float(shares_at_most(most, total))


def about_low(region: Region, share: float) -> Finding:
    """Say that a search ended where hardly any probability is."""
    return Finding(
        Severity.FINE,
        f"Particles of the search ended at {region}, where the posterior has hardly any "
        f"probability: at most {share:.1g}, by the height of the density there. That plain NUTS "
        "has no draws there is no reason to doubt it.",
    )


def about_stuck(stuck: Stuck, chains: int) -> Finding:
    """Say which of so many chains are stuck, and that they do not count."""
    who, are, they = in_words(stuck.chains, chains)
    return Finding(
        Severity.FINE,
        f"{who} of plain NUTS {are} stuck where the posterior has hardly any probability: at "
        f"most {stuck.share:.1g}, by the height of the density there. That other methods have no "
        f"draws where {they} is no reason to doubt them.",
    )


def far_below(log_mass: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether chains are where the density integrates to much less than where the best one is."""
    known = np.isfinite(log_mass)
    below: npt.NDArray[np.bool_] = known & (
        log_mass < np.where(known, log_mass, -np.inf).max() + np.log(_FAR_BELOW)
    )
    return below


def seems_stuck(model: Model, draws: Mapping[str, FloatArray]) -> list[Finding]:
    """Say which chains are far below others, if these agree; nothing if there are none.

    Parameters
    ----------
    model
        The tempered model.
    draws
        By parameter, shape (chains, draws, ...).
    """
    own = chains_of_nuts(model, draws)
    if own is None:
        return []
    most = own.log_mass_at_most()
    below = far_below(most)
    others = {name: each[~below] for name, each in draws.items()}
    if not np.any(below) or ((~below).sum() > 1 and largest_r_hat(others)[0] > R_HAT_PROBLEM):
        return []
    chains = tuple(np.flatnonzero(below).tolist())
    who, are, they = in_words(chains, len(most))
    ratio = float(np.exp(np.logaddexp.reduce(most[below]) - most[~below].max()))
    return [
        Finding(
            Severity.WARNING,
            f"{who} {are} probably stuck: by the height of the density, the part of the posterior "
            f"where {they} has about {ratio:.1g} times the probability of the other chains' part.",
            "If so, leave them out, or sample them again from draws of another chain."
            if len(chains) > 1
            else "If so, leave it out, or sample it again from a draw of another chain.",
        )
    ]


def in_words(chains: tuple[int, ...], every: int) -> tuple[str, str, str]:
    """Return which of so many chains they are, by their numbers from 0, with two verbs."""
    if len(chains) == every:
        return "All chains", "are", "they are"
    numbers = listed(each + 1 for each in chains)
    if len(chains) == 1:
        return f"Chain {numbers}", "is", "it is"
    return f"Chains {numbers}", "are", "they are"
