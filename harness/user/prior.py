"""Draws of a program's prior: the base of a pilot, and whether they can be relied on."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from harness import evidence
from harness.arrays import FloatArray, LogDensity
from harness.engine.batched import BatchedDensity
from harness.engine.nuts import NutsSettings
from harness.engine.short_nuts import run_short_nuts
from harness.errors import HarnessError, SamplingError
from harness.evidence import LogEvidence
from harness.model import Model
from harness.path import GaussianBase
from harness.user.simulated import simulated_prior

_log = logging.getLogger(__name__)

PRIOR = "prior"
"""Variant of a tempered model that holds only its untempered part."""

CHAINS = 16
_WARMUP, _DRAWS = 300, 256
_LONGER, _MOST_SECONDS = 4, 4.0
"""If chains disagree there is a second run, so many times as long, unless the first took longer."""
DRIFTS = 1.1
"""R-hat of prior draws above which they are not relied on."""


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
        return self.density(np.asarray(points, dtype=np.float64))[0]

    def log_density_gradient(self, points: npt.ArrayLike) -> FloatArray:
        """Its gradient, shape (n, D)."""
        return self.density(np.asarray(points, dtype=np.float64))[1]

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
    def reliable(self) -> bool:
        """Whether these are draws of the prior: they are simulated, or the chains agree."""
        return self.independent or self.r_hat <= DRIFTS

    def base(self, chains: slice) -> PriorBase:
        """Return some of the chains as the base of a pilot."""
        points = self.points[chains]
        flat = points.reshape(-1, points.shape[2])
        spread = np.maximum(flat.std(axis=0), np.finfo(np.float64).tiny)
        return PriorBase(flat.mean(axis=0), np.diag(spread), 0.0, self.density, points)


def known_integral(model: Model, prior: PriorDraws) -> LogEvidence | None:
    """Return the log of the prior's integral that the program's text or the simulation shows."""
    if model.log_prior_integral is not None:
        return LogEvidence(model.log_prior_integral, 0.0)
    return prior.log_integral


def prior_draws(model: Model, seed: int) -> PriorDraws:
    """Draw from the prior of a tempered model.

    Where its statements allow it, the prior is simulated, so that draws are independent; see
    :mod:`harness.temper.simulate`.  Otherwise NUTS samples its ``prior`` program.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.
    seed
        Seed.  The same seed gives the same draws.

    Raises
    ------
    SamplingError
        If NUTS does not run on the prior, or a draw is not finite: draws of an improper prior
        drift off to infinity.
    """
    density = BatchedDensity(model.program(PRIOR), model.data)
    try:
        made = simulated_prior(model, density, CHAINS * _DRAWS, seed)
    except HarnessError as error:
        _log.info("%s: NUTS samples its prior: %s", model.name, error)
        return _sampled_longer(model, density, seed)
    points = made.points.reshape(CHAINS, _DRAWS, -1)
    r_hat = float(np.nanmax(evidence.r_hat(points)))
    return PriorDraws(points, density, r_hat, made.evaluations, True, made.log_integral)


def _sampled_longer(model: Model, density: BatchedDensity, seed: int) -> PriorDraws:
    """Sample the prior by NUTS, and once more for longer if the chains disagree."""
    began = time.perf_counter()
    found = _sampled(model, density, seed)
    if found.reliable or time.perf_counter() - began > _MOST_SECONDS:
        return found
    (again,) = np.random.SeedSequence([seed, 1]).generate_state(1)
    try:
        longer = _sampled(model, density, int(again), times=_LONGER)
    except SamplingError:
        return found
    better = longer if longer.r_hat < found.r_hat else found
    return replace(better, gradients=found.gradients + longer.gradients)


def _sampled(model: Model, density: BatchedDensity, seed: int, *, times: int = 1) -> PriorDraws:
    """Sample the prior by NUTS, with so many times the iterations, of which as many are kept."""
    settings = NutsSettings(
        chains=CHAINS, warmup=times * _WARMUP, draws=times * _DRAWS, parallel_chains=2
    )
    run = run_short_nuts(model.program(PRIOR), model.data, settings, seed)
    flat = {
        name: run.variables[name][:, ::times].reshape(-1, *run.variables[name].shape[2:])
        for name in model.parameters
        if name in run.variables
    }
    points = density.unconstrain_draws(flat).reshape(CHAINS, _DRAWS, -1)
    if not np.all(np.isfinite(points)):
        raise SamplingError(
            f"draws of the prior of {model.name} drift to infinity: it is improper, or so vague "
            "that its parameters overflow"
        )
    r_hat = float(np.nanmax(evidence.r_hat(points)))
    return PriorDraws(points, density, r_hat, int(run.gradients.sum()))
