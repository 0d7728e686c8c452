"""Short runs of NUTS for pilots: by stanli without a compiler, or by CmdStan if stanli cannot."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.compile import compile_programs
from harness.engine.cores import cores
from harness.engine.nuts import NutsRun, NutsSettings, run_nuts
from harness.engine.patience import in_time
from harness.engine.program import StanProgram
from harness.engine.restarts import started_anew
from harness.engine.stan_source import compiling_helps
from harness.engine.stanli_apart import stanli_nuts
from harness.engine.stanli_package import stanli_is_installed
from harness.engine.toolchain import require_cmdstan
from harness.errors import DataError, SamplingError

_RADIUS = 2.0  # of Stan's starting points
_TIMED = 8
_OVER = 2.0
_LATE, _TO_BEGIN = 3.0, 5.0
"""Times the seconds that there are after which a run is ended, and seconds for its processes to
begin."""
_USUAL_SECONDS = 20.0
"""Seconds that a run takes at most, if nothing else is known."""


def run_short_nuts(
    program: StanProgram,
    data: Mapping[str, Any],
    settings: NutsSettings,
    seed: int,
    *,
    inits: Sequence[Mapping[str, Any]] | float | None = None,
    inv_metric: FloatArray | None = None,
    most_seconds: float = _USUAL_SECONDS,
) -> NutsRun:
    """Run NUTS; the program is compiled only if stanli is missing or cannot read it.

    The parameters are those of :func:`harness.engine.nuts.run_nuts`, but for ``most_seconds``: the
    seconds that the run probably takes at most.  Where the program has a solver or a loop that may
    never end, a run that takes several times as long is given up.  If some chains do not get on
    from where they start, and they start at random, all start anew.

    Raises
    ------
    ToolchainError, CompileError
        If the program must be compiled, but cannot be.
    DataError, SamplingError
        If the program or its data are refused, or the run does not finish.
    """
    settings = replace(settings, parallel_chains=min(settings.parallel_chains, cores()))
    settings = in_time(settings, program, most_seconds)
    if inits is None or isinstance(inits, float):
        return started_anew(
            lambda seed: _run(program, data, settings, seed, inits, inv_metric), seed
        ).made
    return _run(program, data, settings, seed, inits, inv_metric)


def _run(
    program: StanProgram,
    data: Mapping[str, Any],
    settings: NutsSettings,
    seed: int,
    inits: Sequence[Mapping[str, Any]] | float | None,
    inv_metric: FloatArray | None,
) -> NutsRun:
    if stanli_is_installed():
        try:
            return stanli_nuts(program, data, settings, seed, inits=inits, inv_metric=inv_metric)
        except (DataError, SamplingError) as error:
            if not compiling_helps(error):
                raise
    compiled = compile_programs([program], require_cmdstan())[program]
    return run_nuts(compiled, data, settings, seed, inits=inits, inv_metric=inv_metric)


def affordable(
    settings: NutsSettings,
    density: BatchedDensity,
    most_seconds: float,
    *,
    weight: float = 1.0,
    usual: float | None = None,
    points: FloatArray | None = None,
) -> NutsSettings:
    """Return settings of a run that ends in about the time that there is.

    Nothing can stop stanli in the middle of a run.  The longest trajectories that the settings
    allow would take twice the time; most are shorter.

    Parameters
    ----------
    settings
        Those that are wanted.
    density
        A density; that of the run costs about ``weight`` times as much.  It is timed at a few
        points.
    most_seconds
        Seconds of wall time.
    weight
        See ``density``.
    usual
        Gradients that an iteration takes, with warm-up, if another run has shown that.
    points
        As for :func:`seconds_a_gradient`.
    """
    cost = weight * seconds_a_gradient(density, points)
    over = _OVER if usual is None else 1.0
    return settings.within(over * chains_at_once(settings) * most_seconds / cost, usual=usual)


def with_time_limit(
    settings: NutsSettings,
    density: BatchedDensity,
    most_seconds: float,
    points: FloatArray | None = None,
) -> NutsSettings:
    """Return settings of a run that is ended where it takes several times the time that there is.

    A run that would not, even if every trajectory were the longest that is allowed, has no limit:
    it needs no process of its own, which takes a second to start.  On a busy machine it may take
    more, and processes of CmdStan always do, so every limit allows for that.

    Parameters
    ----------
    settings
        Settings that are affordable if trajectories are as long as they usually are.
    density
        The density of the run.
    most_seconds
        Seconds of wall time.
    points
        As for :func:`seconds_a_gradient`.
    """
    gradients = settings.chains * (settings.warmup + settings.draws) * 2**settings.max_treedepth
    latest = _LATE * most_seconds + _TO_BEGIN
    if gradients * seconds_a_gradient(density, points) / chains_at_once(settings) <= latest:
        return settings
    return replace(settings, time_limit=latest)


def chains_at_once(settings: NutsSettings) -> int:
    """Return how many chains run at once."""
    return min(settings.parallel_chains, settings.chains, cores())


def seconds_a_gradient(density: BatchedDensity, points: FloatArray | None = None) -> float:
    """Return the wall time of a gradient.

    Parameters
    ----------
    density
        The density.
    points
        Where a run will be, as far as that is known, shape (n, D): a solver may take much longer
        there than elsewhere.  A few of them are used; by default, of those where Stan's chains
        start.
    """
    if points is None:
        points = np.random.default_rng(0).uniform(-_RADIUS, _RADIUS, (_TIMED, density.dimension))
    points = points[:: max(1, len(points) // _TIMED)][:_TIMED]
    density(points)  # with patience: a solver may never end at one of them
    ends = [time.perf_counter()]
    for point in points:
        with suppress(RuntimeError):  # it is rejected
            density.at(point)
        ends.append(time.perf_counter())
    # The median, so that another process that takes over for a moment shortens no run.
    return float(np.median(np.diff(ends)))
