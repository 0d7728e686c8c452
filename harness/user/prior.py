"""A program's prior as its draws tell: the base of a pilot, and whether they can be relied on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from harness import evidence
from harness.arrays import FloatArray, LogDensity, values_of
from harness.engine.batched import BatchedDensity
from harness.evidence import LogEvidence, LogMass, log_base_mass
from harness.fit import Fit
from harness.model import Model
from harness.path import GaussianBase

PRIOR = "prior"
"""Variant of a tempered model that holds only its untempered part."""

_ATTRIBUTES = ("log_prior_integral", "log_prior_integral_mcse")

DRIFTS = 1.1
"""R-hat of prior draws above which they are not relied on."""
_ROUGH = 1.05
"""The same, above which an integral that is estimated from them is rough."""


@dataclass(frozen=True)
class PriorBase(GaussianBase):
    """A prior as the base of a pilot: its density and draws from it.

    Mean and (diagonal) Cholesky factor are those of the draws.

    Attributes
    ----------
    density
        Log density of the prior and its gradient; it need not be normalised.
    draws
        Draws from it, shape (chains, each, D).
    """

    density: LogDensity = field(repr=False)
    draws: FloatArray = field(repr=False)

    def log_density(self, points: npt.ArrayLike) -> FloatArray:
        """Log density at points (n, D), as the program computes it; shape (n,)."""
        return values_of(self.density)(np.asarray(points, dtype=np.float64))

    def log_density_and_gradient(self, points: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return the same and its gradient, shape (n, D)."""
        return self.density(np.asarray(points, dtype=np.float64))

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Choose n draws at random, equally many from each chain; shape (n, D).

        No draw is chosen twice if there are enough of them.
        """
        chains, each, _ = self.draws.shape
        counts = np.full(chains, n // chains) + (np.arange(chains) < n % chains)
        chosen = [
            own[rng.choice(each, size=count, replace=count > each)]
            for own, count in zip(self.draws, counts, strict=True)
        ]
        return np.concatenate(chosen)


@dataclass(frozen=True)
class PriorDraws:
    """Draws of a program's prior.

    Attributes
    ----------
    points
        On Stan's unconstrained space, shape (chains, draws, D), finite.
    density
        Log density of the prior and its gradient, as the program computes them.
    r_hat
        Largest R-hat over coordinates: far above 1 if the prior is improper or hard to sample.
    gradients
        Gradient evaluations, or evaluations of the density if the draws are independent.
    independent
        Whether the prior has been simulated, so that there are no chains of NUTS that may disagree.
    log_integral
        Log of the integral of the prior as the program writes it, if the simulation shows it.  It
        is exact unless the prior rejects draws.
    """

    points: FloatArray
    density: BatchedDensity
    r_hat: float
    gradients: int
    independent: bool = False
    log_integral: LogEvidence | None = None

    @property
    def effective(self) -> float:
        """Effective number of draws, of the coordinate that has the fewest."""
        shape = self.points.shape[:2]
        if self.independent:
            return float(np.prod(shape))
        effective = evidence.effective_draws(self.points, np.zeros(shape))
        return float(np.fmin.reduce(effective, initial=np.prod(shape)))

    @property
    def rough(self) -> bool:
        """Whether what is estimated from these draws may be off by more than its error.

        Chains of NUTS that hardly mix, as in a funnel, may all lack the same part of the prior.
        """
        return not self.independent and self.r_hat > _ROUGH

    @property
    def reliable(self) -> bool:
        """Whether these are draws of the prior: they are simulated, or the chains agree."""
        return self.independent or self.r_hat <= DRIFTS

    def share_with(self, density: BatchedDensity) -> LogMass:
        """Return the share of the prior where another density of these points is above zero."""
        chains, draws, dimension = self.points.shape
        value = density.values(self.points.reshape(-1, dimension))
        return log_base_mass(np.isfinite(value).reshape(chains, draws))

    def base(self, chains: slice) -> PriorBase:
        """Return some of the chains as the base of a pilot."""
        points = self.points[chains]
        flat = points.reshape(-1, points.shape[2])
        spread = np.maximum(flat.std(axis=0), np.finfo(np.float64).tiny)
        return PriorBase(flat.mean(axis=0), np.diag(spread), 0.0, self.density, points)


def starts_from_prior(model: Model) -> bool:
    """Whether a path starts from the program's own prior, and not from a wide Gaussian."""
    flat_box = model.own_base == "flat" and model.no_gaussian_base is not None
    return model.own_base == "prior" or flat_box


def own_base(model: Model) -> str:
    """Return in words what such a path starts from: without a likelihood there is no prior."""
    return "the flat density between the bounds" if model.tempered_whole else "the prior"


def prior_attributes(log_integral: LogEvidence | None) -> dict[str, float]:
    """Return the attributes in which a fit keeps the log of its prior's integral, if it is known.

    Log Z is the log of the integral of the program's density less that.
    """
    return {} if log_integral is None else dict(zip(_ATTRIBUTES, log_integral, strict=True))


def log_prior_integral(fit: Fit) -> LogEvidence | None:
    """Return what :func:`prior_attributes` has kept; None if it is not known."""
    if _ATTRIBUTES[0] not in fit.tree.attrs:
        return None
    return LogEvidence(*(float(fit.tree.attrs[name]) for name in _ATTRIBUTES))


def over_prior(integral: LogEvidence, constant: LogEvidence) -> LogEvidence:
    """Divide an integral of the program's density by that of its prior, whose error is apart."""
    return LogEvidence(integral.value - constant.value, integral.mcse)


def known_integral(model: Model, prior: PriorDraws) -> LogEvidence | None:
    """Return the log of the prior's integral that the program's text or the simulation shows."""
    if model.log_prior_integral is not None:
        return LogEvidence(model.log_prior_integral, 0.0)
    return prior.log_integral
