"""Draw from a program's prior: by simulation, or by NUTS, with the modes that NUTS misses.

A prior that cannot be simulated may have several modes itself.  What starts from draws that lack
one, such as a path of temperatures, takes the rest of the prior for the whole.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from harness import evidence
from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.cores import cores
from harness.engine.nuts import NutsSettings
from harness.engine.short_nuts import run_short_nuts
from harness.errors import FAILURES, HarnessError, SamplingError
from harness.model import Model
from harness.samplers.non_reversible import non_reversible_tempering
from harness.samplers.tempering_run import TemperingRun, TemperingSettings
from harness.seeds import derived_seed
from harness.user.other_modes import OtherMode, other_modes
from harness.user.prior import PRIOR, PriorDraws
from harness.user.references import drawn_from, fitted_base
from harness.user.simulated import simulated_prior

CHAINS = 16
PRIOR_SHARE = 0.2
"""Share of a budget for draws of a prior that cannot be simulated."""
_WARMUP, _DRAWS = 300, 256
_MOST_SECONDS = 24.0
_LONGER, _LONGER_SHARE = 4, 1 / 6
"""If chains disagree there is a second run, so many times as long, unless the first has taken more
than this share of the time."""
_CLIMBS_SHARE, _REPLICAS_SHARE = 1 / 12, 2 / 3
"""Shares of the time for climbs to further modes of a prior, and for replicas that visit these as
well."""
_SYSTEMS = 4
_REPLICAS = TemperingSettings(chains=_SYSTEMS, warmup=500, draws=CHAINS * _DRAWS // _SYSTEMS)
_SETTLED = 1.03
"""R-hat of NUTS's draws above which replicas draw the prior: a spike in a wide prior, which NUTS
rarely enters, has a share of them that is off by several hundredths at 1.05."""
_WIDENED = 1.2
"""How much wider than draws the Gaussians are that replicas start from."""
_HUGE = 1e150
"""A number so large, or one over a number so small, comes from a density that has no end."""
_MOST_HUGE = 0.01
"""Share of draws with such numbers from which on draws drift to infinity."""
_log = logging.getLogger(__name__)


class DriftingPriorError(SamplingError):
    """Draws of a prior drift to infinity: it is improper, or as vague as gamma(.001, .001)."""


def prior_draws(model: Model, seed: int, *, most_seconds: float = _MOST_SECONDS) -> PriorDraws:
    """Draw from the prior of a tempered model.

    Where its statements allow it, the prior is simulated, so that draws are independent; see
    :mod:`harness.temper.simulate`.  Otherwise NUTS samples its ``prior`` program, and parallel
    tempering does if climbs from other starting points find modes of the prior that NUTS missed.

    Parameters
    ----------
    model
        From :func:`harness.temper.tempered_model`.
    seed
        Seed.  The same seed gives the same draws unless climbs or replicas run out of time.
    most_seconds
        Seconds of wall time for what follows a first run of NUTS, which itself is short.

    Raises
    ------
    DriftingPriorError
        If draws drift to infinity.
    SamplingError
        If NUTS does not run on the prior.
    """
    density = BatchedDensity(model.program(PRIOR), model.data, threads=cores())
    try:
        made = simulated_prior(model, density, CHAINS * _DRAWS, seed)
    except HarnessError as error:
        _log.info("%s: NUTS samples its prior: %s", model.name, error)
        found = _sampled_longer(model, density, seed, _LONGER_SHARE * most_seconds)
        return _with_all_modes(model, found, seed, most_seconds)
    points = made.points.reshape(CHAINS, _DRAWS, -1)
    r_hat = evidence.largest_r_hat(points)
    return PriorDraws(points, density, r_hat, made.evaluations, True, made.log_integral)


def _sampled_longer(
    model: Model, density: BatchedDensity, seed: int, most_seconds: float
) -> PriorDraws:
    """Sample the prior by NUTS, and once more for longer if the chains disagree."""
    began = time.perf_counter()
    found = _sampled(model, density, seed)
    if found.reliable or time.perf_counter() - began > most_seconds:
        return found
    try:
        longer = _sampled(model, density, derived_seed(seed, 1), times=_LONGER)
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
    if not np.all(np.isfinite(points)) or _run_away(flat):
        raise DriftingPriorError(
            f"draws of the prior of {model.name} drift to infinity: it is improper, or so vague "
            "that its numbers overflow"
        )
    r_hat = evidence.largest_r_hat(points)
    return PriorDraws(points, density, r_hat, int(run.gradients.sum()))


def _run_away(draws: Mapping[str, FloatArray]) -> bool:
    """Whether parameters, each of shape (n, ...), have numbers of no size that data have.

    Where a density has no end, floating-point numbers have one: chains agree there, at numbers like
    1e-308, and the integral of the density up to there looks finite.
    """
    for each in draws.values():
        size = np.abs(each).reshape(len(each), -1)
        far = np.any((size > _HUGE) | ((size < 1 / _HUGE) & (size > 0)), axis=1)
        if far.mean() > _MOST_HUGE:
            return True
    return False


def _with_all_modes(model: Model, found: PriorDraws, seed: int, most_seconds: float) -> PriorDraws:
    """Return draws of a prior that are also in modes where climbs end and NUTS was not."""
    rng = np.random.default_rng([seed, 23])
    draws = found.density.constrain(found.points.reshape(-1, found.points.shape[2]))
    values = {name: each.reshape(CHAINS, _DRAWS, *each.shape[1:]) for name, each in draws.items()}
    try:
        climbed = other_modes(
            model,
            found.density,
            values,
            found.points,
            variant=PRIOR,
            most_seconds=_CLIMBS_SHARE * most_seconds,
            seed=seed,
        )
    except FAILURES as error:  # the draws are worth having without
        _log.info("%s: no climbs to further modes of its prior: %s", model.name, error)
        return found
    found = replace(found, gradients=found.gradients + climbed.gradients)
    modes = climbed.that_matter()
    if not modes and found.r_hat <= _SETTLED:
        return found
    try:
        run = _replicas(found, modes, rng, seed, _REPLICAS_SHARE * most_seconds)
    except FAILURES as error:
        _log.info("%s: no replicas of its prior: %s", model.name, error)
        return _mixed(found, modes, rng)
    found = replace(found, gradients=found.gradients + run.evaluations_warmup + run.evaluations)
    log_integral = run.ladders[0].evidence
    if run.few_trips or log_integral is None or run.points.shape[1] < _REPLICAS.draws:
        return _mixed(found, modes, rng)
    points = run.points.reshape(CHAINS, _DRAWS, -1)
    r_hat = evidence.largest_r_hat(run.points)
    return replace(found, points=points, r_hat=r_hat, log_integral=log_integral.log_evidence)


def _replicas(
    found: PriorDraws,
    modes: Sequence[OtherMode],
    rng: np.random.Generator,
    seed: int,
    most_seconds: float,
) -> TemperingRun:
    """Sample a prior by parallel tempering from Gaussians that cover all its modes."""
    flat = found.points.reshape(-1, found.points.shape[2])
    each = len(flat) // (1 + len(modes))
    known = [rng.choice(flat, size=each, replace=False), *(m.points(each, rng) for m in modes)]
    base = fitted_base(rng.permutation(np.concatenate(known))[None], widened=_WIDENED, seed=seed)
    start = drawn_from(base, rng)
    settings = replace(_REPLICAS, most_seconds=most_seconds)
    return non_reversible_tempering(
        found.density, [start[0]], [start[1]], settings=settings, seed=seed
    )


def _mixed(found: PriorDraws, modes: Sequence[OtherMode], rng: np.random.Generator) -> PriorDraws:
    """Return draws of which one chain in each four is in other modes, so that chains disagree."""
    if not modes:
        return found
    points = found.points.copy()
    for number, chain in enumerate(range(0, CHAINS, 4)):
        points[chain] = modes[number % len(modes)].points(points.shape[1], rng)
    return replace(found, points=points, r_hat=evidence.largest_r_hat(points))
