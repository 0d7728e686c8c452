"""Tempered SMC on a user's program: the library's sampler, from the program's own prior."""

from __future__ import annotations

import math

from harness.diagnosis import Finding, Severity, remember
from harness.engine.batched import BatchedDensity
from harness.fit import Fit
from harness.model import Model
from harness.model.python_target import Target
from harness.path import GaussianBase, PilotSettings
from harness.samplers.sequential_monte_carlo import sequential_monte_carlo
from harness.seeds import derived_seeds
from harness.temper import What
from harness.user.clock import Clock
from harness.user.draw_prior import prior_draws
from harness.user.legs import WIDER, fitted_gaussian
from harness.user.prepare import prepare
from harness.user.prior import starts_from_prior
from harness.user.short import ShortRuns

from .sampled import parameters_of

POPULATIONS = 8
_MOST_MOVES = 12
_NUTS_SECONDS = 30.0
"""Wall time of the short runs of NUTS to which a base is fitted, roughly."""


def sample_by_particles(
    model: Model,
    *,
    particles: int,
    what: What = "likelihood",
    most_seconds: float = math.inf,
    seed: int,
) -> tuple[Fit, float]:
    """Sample a target's program by adaptive tempered SMC, as the search of ``auto`` begins.

    Particles start from draws of the prior, or from a wide Gaussian where there is no prior to
    draw from, so log Z is what ``harness sample`` reports.

    Parameters
    ----------
    model
        A target with its ``target.stan``.
    particles
        Number of particles, rounded up to a multiple of 8 populations.
    what
        What is tempered; see :func:`harness.temper.temper`.
    most_seconds
        Seconds of wall time after which it gives up.
    seed
        Seed.

    Returns
    -------
    tuple of Fit and float
        The fit, and the gradients that were spent before its particles moved.

    Raises
    ------
    DataError, SamplingError, ToolchainError
        If the program cannot be tempered, or the particles do not reach the target.
    """
    path = model.program("target").path
    clock = Clock(1, show=False)
    tempered = prepare(path, model.data, what, (), "stanli", clock, tempered="yes").model
    density = BatchedDensity(tempered.program("target"), tempered.data)
    seeds = derived_seeds(2, seed, 2)
    base, before, findings = _base(tempered, density, seeds[0])
    parameters = parameters_of(density, tempered.parameters)
    each = max(8, -(-particles // POPULATIONS))
    fit = sequential_monte_carlo(
        Target(model.name, density.dimension, density, parameters, tempered.data, engine="stanli"),
        base,
        settings=PilotSettings(
            particles=each * POPULATIONS,
            populations=POPULATIONS,
            most_moves=_MOST_MOVES,
            most_seconds=most_seconds,
        ),
        seed=seeds[1],
    )
    remember(fit, findings)
    fit.tree.attrs["gradients_pilot"] = before
    return fit, before


def _base(
    tempered: Model, density: BatchedDensity, seed: int
) -> tuple[GaussianBase, float, list[Finding]]:
    """Return what particles start from, its gradients, and what is to say of it."""
    if starts_from_prior(tempered):
        prior = prior_draws(tempered, seed)
        doubt = Finding(
            Severity.PROBLEM,
            f"Draws of the prior, from which the particles start, disagree: R-hat is "
            f"{prior.r_hat:.2f}.",
            "Parametrise the prior so that it is easy to draw from.",
        )
        return prior.base(slice(None)), float(prior.gradients), [] if prior.reliable else [doubt]
    short = ShortRuns(tempered, density, most_seconds=_NUTS_SECONDS, seed=seed, far_seed=seed)
    return fitted_gaussian(short.near, widened=WIDER[0]), float(short.gradients), []
