"""A pilot of somebody's program: from its prior or, where that is flat, from a wide Gaussian."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from harness import weights
from harness.bases import GaussianBase, Pilot, PilotSettings, gaussian_base, pilot_of_density
from harness.bases import pilot as gaussian_pilot
from harness.bases.moments import weighted_base
from harness.coordinates import flatten, unflatten
from harness.density import StanDensity
from harness.errors import DataError
from harness.methods.continuous_tempering import COLLAPSED_VARIANT
from harness.methods.path import path_data
from harness.model import LogDensity, Model
from harness.nuts import NutsSettings
from harness.stanli_nuts import run_stanli_nuts, variables_at
from harness.weights import FloatArray, LogEvidence, LogG

POPULATIONS = 16
_PARTICLES = 512
_THINNING = 8
_NEVER = -1e300
"""Log weight of a rung that is not to be visited; the programs take finite numbers."""
_PRIOR_ALONE: LogG = ((0.0, 0.0), (1.0, _NEVER))
_WIDER = 2.0
"""How much wider than the draws of short runs a Gaussian base is."""


@dataclass(frozen=True)
class Scouted:
    """A pilot of a program, in the program's own parameters.

    Attributes
    ----------
    found
        The pilot.
    base
        Gaussian base of tempered runs; None where they start from the prior.
    particles
        Particles at beta = 1 by parameter, shape (populations, each, ...).
    log_weight
        Log weight of each population, shape (populations,).
    starts
        Particles resampled to equal weights, by parameter, shape (n, ...).
    start_r_hat
        Largest R-hat of the draws that the pilot began with.
    gradients, seconds
        Gradient evaluations and wall time.
    """

    found: Pilot
    base: GaussianBase | None
    particles: Mapping[str, FloatArray]
    log_weight: FloatArray
    starts: Mapping[str, FloatArray]
    start_r_hat: float
    gradients: int
    seconds: float

    @property
    def log_evidence(self) -> LogEvidence:
        """The pilot's own estimate of log Z."""
        return self.found.log_evidence

    @property
    def origin(self) -> str:
        """Where the particles came from, in words."""
        return "the prior" if self.base is None else "a wide Gaussian"

    def inits(self, chains: int, num_pseudo_samples: int | None = None) -> list[dict[str, Any]]:
        """Initial values of each chain, each from particles of its own.

        Parameters
        ----------
        chains
            Number of chains.
        num_pseudo_samples
            N of a pseudo-extended form, whose values have a last axis over pseudo-samples.
        """
        each = num_pseudo_samples or 1
        count = len(next(iter(self.starts.values())))
        if chains * each > count:
            raise DataError(
                f"{chains} chains of {each} points need as many particles; the pilot has {count}"
            )
        inits = []
        for chain in range(chains):
            rows = slice(chain * each, (chain + 1) * each)
            values = {name: value[rows] for name, value in self.starts.items()}
            inits.append(
                {
                    name: value[0] if num_pseudo_samples is None else np.moveaxis(value, 0, -1)
                    for name, value in values.items()
                }
            )
        return inits


def scout_program(model: Model, *, seed: int) -> Scouted:
    """Run a pilot on a tempered program.

    From the prior, where it is proper: draws of it, of which each chain is a population, are
    brought to the posterior by tempered SMC on Stan's unconstrained space.  Otherwise from a
    Gaussian that is wider than what short runs from random starts have drawn.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.
    seed
        Seed; same seed, same pilot.

    Raises
    ------
    ToolchainError
        If stanli is not installed, which evaluates the densities.
    DataError
        If the prior is flat over something unbounded, and there is no Gaussian base either.
    SamplingError
        If there are no draws to begin with, or the ladder does not reach the posterior.
    """
    started = time.perf_counter()
    seeds = [int(s) for s in np.random.SeedSequence([seed, 2]).generate_state(4)]
    each = max(_PARTICLES // POPULATIONS, -(-5 * model.dimension // POPULATIONS))
    settings = PilotSettings(particles=each * POPULATIONS, populations=POPULATIONS)
    no_gaussian = model.no_gaussian_base is not None
    if model.own_base == "prior" or (model.own_base == "flat" and no_gaussian):
        drawn = _prior_draws(model, each, seeds[0])
        density = _UnconstrainedDensity(model, {}, "target")
        found = pilot_of_density(density, drawn.base, settings=settings, seed=seeds[1])
        base = None
    else:
        if model.no_gaussian_base is not None:
            raise DataError(
                f"the prior of {model.name} is flat over something unbounded, so that no path can "
                f"start from it, nor from a Gaussian: {model.no_gaussian_base}; give every "
                "parameter a prior"
            )
        drawn = _wide_gaussian(model, each, seeds[0])
        found = gaussian_pilot(model, drawn.base, settings=settings, seed=seeds[1])
        base = found.base
    flat = found.particles.reshape(-1, model.dimension)
    values = _parameters(model, found, np.concatenate([flat, found.points]), seeds[2])
    shape = found.particles.shape[:2]
    return Scouted(
        found=found,
        base=base,
        particles={n: v[: len(flat)].reshape(*shape, *v.shape[1:]) for n, v in values.items()},
        log_weight=found.population_log_weight,
        starts={name: value[len(flat) :] for name, value in values.items()},
        start_r_hat=drawn.r_hat,
        gradients=found.gradients + drawn.gradients,
        seconds=time.perf_counter() - started,
    )


def _parameters(model: Model, found: Pilot, points: FloatArray, seed: int) -> dict[str, FloatArray]:
    """Parameters of the pilot's points, each (n, ...)."""
    if found.shapes is not None:  # base coordinates
        return unflatten(model, points, found.shapes)
    written = variables_at(model.program("target"), model.data, points, seed)
    return {name: written[name] for name in model.parameters}


class _UnconstrainedDensity:
    """Log density and gradient of a variant on Stan's unconstrained space, point by point."""

    def __init__(self, model: Model, data: Mapping[str, Any], variant: str) -> None:
        self._stan = StanDensity(model.program(variant), {**model.data, **data})
        self._last: tuple[FloatArray, FloatArray, FloatArray] | None = None

    def __call__(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        # Value and gradient of the same points are asked for one after the other.
        if self._last is not None and np.array_equal(self._last[0], points):
            return self._last[1], self._last[2]
        value = np.full(len(points), -np.inf)
        gradient = np.zeros(points.shape)
        for row in np.flatnonzero(np.all(np.isfinite(points), axis=1)):
            try:
                value[row], gradient[row] = self._stan(points[row])
            except RuntimeError:  # as Stan's own sampler: the density there is zero
                continue
        unusable = ~(np.isfinite(value) & np.all(np.isfinite(gradient), axis=1))
        value[unusable], gradient[unusable] = -np.inf, 0.0
        self._last = points.copy(), value, gradient
        return value, gradient

    def unconstrain(self, values: Mapping[str, Any]) -> FloatArray:
        """Return the unconstrained point of parameter values."""
        return self._stan.unconstrain(values)


@dataclass(frozen=True)
class PriorBase(GaussianBase):
    """A prior as the base of a pilot: its density, and draws of it.

    Mean and Cholesky factor are those of the draws.

    Attributes
    ----------
    density
        Log density of the prior and its gradient; it need not be normalised.
    draws
        Draws of it, shape (n, D).
    """

    density: LogDensity = field(repr=False)
    draws: FloatArray = field(repr=False)

    def log_density(self, points: npt.ArrayLike) -> FloatArray:
        """Log density at points (n, D), as the program has it; shape (n,)."""
        return self.density(np.asarray(points, dtype=np.float64))[0]

    def log_density_gradient(self, points: npt.ArrayLike) -> FloatArray:
        """Its gradient, shape (n, D)."""
        return self.density(np.asarray(points, dtype=np.float64))[1]

    def sample(self, rng: np.random.Generator, n: int) -> FloatArray:
        """All draws in their order if n are wanted, else n of them at random."""
        if n == len(self.draws):
            return self.draws.copy()
        return self.draws[rng.integers(len(self.draws), size=n)]


@dataclass(frozen=True)
class _Drawn:
    """What a pilot begins with."""

    base: GaussianBase
    r_hat: float
    gradients: int


def _prior_draws(model: Model, each: int, seed: int) -> _Drawn:
    """Draw the prior by NUTS, as the collapsed program with the rung at 0 alone."""
    aliases = model.aliases.get(COLLAPSED_VARIANT, {})
    extra = path_data(model, None, 0.0, _PRIOR_ALONE) | {"ladder": 1}
    data = {aliases.get(name, name): value for name, value in extra.items()}
    settings = NutsSettings(
        chains=POPULATIONS, warmup=300, draws=each * _THINNING, parallel_chains=2
    )
    program = model.program(COLLAPSED_VARIANT)
    run = run_stanli_nuts(program, {**model.data, **data}, settings, seed)
    prior = _UnconstrainedDensity(model, data, COLLAPSED_VARIANT)
    kept = {name: run.variables[name][:, ::_THINNING] for name in model.parameters}
    points = np.array(
        [
            prior.unconstrain({name: value[chain, draw] for name, value in kept.items()})
            for chain in range(POPULATIONS)
            for draw in range(each)
        ]
    )
    moments = weighted_base(points, log_zeta=0.0)
    base = PriorBase(moments.mean, moments.cholesky, 0.0, prior, points)
    by_chain = points.reshape(POPULATIONS, each, -1)
    return _Drawn(base, _largest_r_hat(by_chain), int(run.gradients.sum()))


def _wide_gaussian(model: Model, each: int, seed: int) -> _Drawn:
    """Match a Gaussian to short runs of NUTS on the target, and widen it."""
    draws = max(250, each)
    settings = NutsSettings(chains=POPULATIONS, warmup=300, draws=draws, parallel_chains=2)
    run = run_stanli_nuts(model.program("target"), model.data, settings, seed)
    points = flatten(model, {name: run.variables[name] for name in model.parameters}, leading=2)
    moments = weighted_base(points.reshape(-1, model.dimension), log_zeta=0.0)
    base = gaussian_base(moments.mean, _WIDER**2 * moments.covariance)
    return _Drawn(base, _largest_r_hat(points), int(run.gradients.sum()))


def _largest_r_hat(by_chain: FloatArray) -> float:
    return float(np.nanmax(weights.r_hat(by_chain)))
