"""The pilot: a short run of adaptive tempered SMC that explores the path before a long run.

It provides a ladder of inverse temperatures, log Z along the ladder (and so a g that makes the
marginal of the inverse temperature even), a refined base, starting points, and an estimate of log Z
with its error.

References
----------
Del Moral, P., Doucet, A. and Jasra, A. (2006). Sequential Monte Carlo samplers. Journal of the
Royal Statistical Society B 68, 411-436.

Zhou, Y., Johansen, A. M. and Aston, J. A. D. (2016). Toward automatic model comparison: an
adaptive sequential Monte Carlo approach. Journal of Computational and Graphical Statistics 25,
701-726.

Buchholz, A., Chopin, N. and Jacob, P. E. (2021). Adaptive tuning of Hamiltonian Monte Carlo within
sequential Monte Carlo. Bayesian Analysis 16, 745-771.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, LogDensity
from harness.errors import DataError, SamplingError
from harness.evidence import (
    LogEvidence,
    LogMass,
    log_base_mass,
    log_mean_of_populations,
    normalised_weights,
    resample,
)
from harness.model import Model
from harness.model.numpy_density import target_density
from harness.path.gaussian import GaussianBase
from harness.path.moves import MOST_DENSE, HmcMoves
from harness.path.pilot_moves import moved
from harness.path.pilot_path import PilotPath
from harness.path.pilot_result import Pilot, PilotSettings

_LEAST_OVERLAP = 1e-3
_BISECTIONS = 60
_SMALLEST_STEP = 1e-300
_HURRIED = 0.5
"""Conditional effective sample size of a pilot that would be late: its steps are 2.6 times as long
as those with 0.9."""
_PACE, _PACE_SHARE, _LATE = 4, 0.2, 1.25
"""Rungs that show a pilot's pace, or share of the time that does where a rung takes long, and
multiple of the time from which it counts as late: what else the machine does for a moment should
change nothing."""
_RUNG_SHARE = 0.1
"""Share of the time after which a rung makes no more moves than it has to."""
_FEWEST = 100
"""Particles that tell variances within 14 per cent."""


def pilot(
    model: Model, base: GaussianBase, *, settings: PilotSettings | None = None, seed: int
) -> Pilot:
    """Run a pilot from a Gaussian base to a model's target.

    Parameters
    ----------
    model
        The model.
    base
        Where the path starts, in base coordinates.
    settings
        Settings; the defaults if not given.
    seed
        Seed.  The same seed gives the same pilot.

    Raises
    ------
    ToolchainError
        If the model's density needs its Stan program, and there is neither the optional package
        stanli nor a C++ compiler to evaluate it.
    DataError, SamplingError
        For the same reasons as in :func:`pilot_of_density`.
    """
    settings = settings or PilotSettings()
    _refuse(base, settings, model.dimension, model.name)
    density = target_density(model)
    found = pilot_of_density(density, base, settings=settings, seed=seed)
    return replace(found, shapes=density.shapes)


def pilot_of_density(
    log_density: LogDensity,
    base: GaussianBase,
    *,
    settings: PilotSettings | None = None,
    seed: int,
) -> Pilot:
    """Run a pilot from a Gaussian base to a target that is given by a function.

    Outside the target's support the path has no mass: the base is cut to the support and not
    renormalised, as in a program whose parameters are bounded.

    Parameters
    ----------
    log_density
        Log density of the target with all its constants, and its gradient; see
        :data:`harness.arrays.LogDensity`.
    base, settings, seed
        The same as for :func:`pilot`.

    Raises
    ------
    DataError
        If the density does not have the base's dimension, there are fewer particles than
        :func:`fewest_particles`, or hardly any of the base's mass is within the target's support.
    SamplingError
        If the ladder does not reach the target.
    """
    settings = settings or PilotSettings()
    _refuse(base, settings, _dimension(log_density, base), "the target")
    began = time.monotonic()
    rng = np.random.default_rng(seed)
    path = PilotPath(log_density, base)
    points, overlap = _start(path, settings, rng)
    count, each = settings.populations, settings.particles // settings.populations
    moves = HmcMoves(base.mean.size, settings.leapfrog_steps, count)
    ladder, acceptance = [0.0], []
    log_z = np.zeros((1, count))  # for each population, at each rung

    def refuse_to_be_late() -> None:
        if time.monotonic() - began > settings.most_seconds:
            raise SamplingError(
                f"the pilot has not finished in {settings.most_seconds:.3g} s (it is at "
                f"beta = {ladder[-1]:.3g} after {len(ladder) - 1} rungs)"
            )

    while ladder[-1] < 1:
        if len(ladder) > settings.most_rungs:
            raise SamplingError(
                f"the pilot has not reached the target in {settings.most_rungs} rungs (it is at "
                f"beta = {ladder[-1]:.3g}); start from a base nearer to the target"
            )
        log_ratio = path.log_ratio(points).reshape(count, each)
        share = normalised_weights(log_z[-1])  # for each population
        step = _next_step(log_ratio, share, 1 - ladder[-1], settings.conditional_ess)
        made, taken = len(ladder) - 1, time.monotonic() - began
        arrives = taken + _rungs_left(ladder[-1], step) * taken / max(made, 1)
        paced = made >= _PACE or taken > _PACE_SHARE * settings.in_seconds
        late = paced and arrives > _LATE * settings.in_seconds
        if late:
            hurried = min(_HURRIED, settings.conditional_ess)
            step = _next_step(log_ratio, share, 1 - ladder[-1], hurried)
        beta = 1.0 if step >= 1 - ladder[-1] else ladder[-1] + step
        if not beta > ladder[-1]:
            raise SamplingError(
                f"the pilot's ladder makes no progress at beta = {ladder[-1]:.3g}: the target is "
                f"too far from the base"
            )
        log_weight = (beta - ladder[-1]) * log_ratio
        rise = np.logaddexp.reduce(log_weight, axis=1) - np.log(each)
        log_z = np.vstack([log_z, log_z[-1] + rise])
        ladder.append(beta)
        chosen = resample(log_weight, rng) + each * np.arange(count)[:, None]
        points = points[chosen.ravel()]
        particle_share = np.repeat(normalised_weights(log_z[-1]) / each, each)
        moves.adapt_to(points, particle_share)
        until = began + taken + (0.0 if late else _RUNG_SHARE * settings.in_seconds)
        points, rate = moved(
            moves, path.at(beta), points, settings, rng, refuse_to_be_late, until=until
        )
        acceptance.append(rate)
    return _summary(path, points, np.array(ladder), log_z, overlap, acceptance, rng)


def _refuse(base: GaussianBase, settings: PilotSettings, dimension: int, name: str) -> None:
    if base.mean.size != dimension:
        raise DataError(f"the base has dimension {base.mean.size}, but {name} has {dimension}")
    fewest = fewest_particles(dimension)
    if settings.particles < fewest:
        raise DataError(
            f"a pilot in {dimension} dimensions needs {fewest} particles or more to estimate their "
            f"covariance; got {settings.particles}"
        )


def fewest_particles(dimension: int) -> int:
    """Return how many particles a pilot needs for the metric of its moves.

    They are fewer in more than :data:`~harness.path.moves.MOST_DENSE` dimensions, where only
    variances are estimated.
    """
    return 5 * dimension if dimension <= MOST_DENSE else _FEWEST


def _dimension(log_density: LogDensity, base: GaussianBase) -> int:
    """Return the dimension of a density, found by evaluating it at the base's mean."""
    try:
        value, gradient = log_density(base.mean[None, :])
    except ValueError as error:
        raise DataError(
            f"the log density does not take points of the base's dimension, {base.mean.size}: "
            f"{error}"
        ) from error
    if np.shape(value) != (1,) or np.ndim(gradient) != 2 or len(gradient) != 1:
        raise DataError(
            f"a log density takes points (n, D) and returns values (n,) and gradients (n, D); with "
            f"n = 1 it returned shapes {np.shape(value)} and {np.shape(gradient)}"
        )
    return int(np.shape(gradient)[1])


def _start(
    path: PilotPath, settings: PilotSettings, rng: np.random.Generator
) -> tuple[FloatArray, LogMass]:
    """Draw particles of the base within the target's support, and estimate its mass there."""
    accepted: list[FloatArray] = []
    reached: list[npt.NDArray[np.bool_]] = []
    found = tried = 0
    while found < settings.particles:
        proposed = path.base.sample(rng, settings.particles)
        inside = np.isfinite(path.values(proposed))
        tried += len(inside)
        found += int(inside.sum())
        accepted.append(proposed[inside])
        reached.append(inside)
        if found < _LEAST_OVERLAP * tried:
            raise DataError(
                "hardly any of the base lies within the target's support (its log density is "
                "not finite at almost every draw of the base); choose a base inside it"
            )
    overlap = log_base_mass(np.concatenate(reached)[None])
    return np.concatenate(accepted)[: settings.particles], overlap


def _next_step(log_ratio: FloatArray, share: FloatArray, most: float, ess: float) -> float:
    """Return the step in beta at which the conditional effective sample size falls to ``ess``.

    The size is taken as a share of the particles.  With W_i their normalised weights and w_i the
    increments, it is (sum W_i w_i)^2 / sum W_i w_i^2 (Zhou et al. 2016, eq. 10, divided by the
    number of particles).
    """
    with np.errstate(divide="ignore"):  # a population may have lost all its weight
        log_share = np.log(share / log_ratio.shape[1])[:, None]

    def enough(step: float) -> bool:
        first = np.logaddexp.reduce(log_share + step * log_ratio, axis=None)
        second = np.logaddexp.reduce(log_share + 2 * step * log_ratio, axis=None)
        return bool(2 * first - second >= np.log(ess))

    if enough(most):
        return most
    low, high = 0.0, most
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if enough(middle) else (low, middle)
    if low > 0:
        return low
    # Log likelihoods of -1e40, which vague priors produce, need a step that is equally small, so
    # the bisection continues in the logarithm of the step.
    log_low, log_high = np.log(_SMALLEST_STEP), np.log(high)
    for _ in range(_BISECTIONS):
        log_middle = 0.5 * (log_low + log_high)
        if enough(float(np.exp(log_middle))):
            log_low = log_middle
        else:
            log_high = log_middle
    return float(np.exp(log_low))


def _rungs_left(beta: float, step: float) -> float:
    """Return how many rungs there are to beta = 1 if inverse temperatures grow at one rate."""
    if beta == 0 or step >= 1 - beta:
        return 0.0
    return math.log(1 / beta) / math.log1p(step / beta)


def _summary(
    path: PilotPath,
    points: FloatArray,
    ladder: FloatArray,
    log_z: FloatArray,
    overlap: LogMass,
    acceptance: list[float],
    rng: np.random.Generator,
) -> Pilot:
    base, populations = path.base, log_z.shape[1]
    along = overlap.value + np.logaddexp.reduce(log_z, axis=1) - np.log(populations)
    # The populations average Z itself.
    rise = overlap.added_to(log_mean_of_populations(log_z[-1]))
    found = rise.plus(LogEvidence(base.log_zeta, 0.0))
    log_weight = np.repeat(log_z[-1], len(points) // populations)
    chosen = resample(log_weight[None, :], rng)[0]
    return Pilot(
        base=replace(base, log_zeta=float(along[-1] + base.log_zeta)),
        inv_temp=ladder,
        # A new zeta divides gamma_beta by (new / old)^beta.
        log_normaliser=along - ladder * along[-1],
        points=points[rng.permutation(chosen)],
        log_evidence=found,
        particles=points.reshape(populations, -1, points.shape[1]),
        population_log_weight=log_z[-1] - log_z[-1].max(),
        acceptance=np.array(acceptance),
        gradients=path.gradients,
        infinite=path.infinite,
    )
