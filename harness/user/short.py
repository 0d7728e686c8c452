"""Short runs of NUTS from random starting points, to whose draws Gaussians are fitted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.nuts import NutsRun, NutsSettings
from harness.engine.short_nuts import (
    affordable,
    chains_at_once,
    run_short_nuts,
    seconds_a_gradient,
)
from harness.errors import DataError, SamplingError
from harness.model import Model
from harness.user.draw_prior import CHAINS

_SETTINGS = NutsSettings(chains=CHAINS, warmup=300, draws=250, parallel_chains=2)
_FEWEST_CHAINS = 4
"""Chains of a run where a gradient takes long."""
_FAR = (10.0, 40.0, 160.0)
"""Radii of starting points on the unconstrained scale, from five times Stan's on."""
_LOW = 20.0
"""Nats, besides one for each dimension, by which chains are below others if they do not count."""


class ShortRuns:
    """Draws of short runs of NUTS on a target, many chains, made when they are first asked for.

    Parameters
    ----------
    model, density
        From :func:`harness.temper.tempered_model`, and its ``target``.
    most_seconds
        Seconds that the runs from either kind of starting points may take, roughly.
    seed, far_seed
        Seeds of the runs from Stan's starting points and from those further out.  The same seeds
        give the same draws, unless a gradient takes so long that there is no time for long
        trajectories.
    begin
        Is given a few words before the first run.

    Attributes
    ----------
    gradients
        Gradient evaluations so far.
    """

    def __init__(
        self,
        model: Model,
        density: BatchedDensity,
        *,
        most_seconds: float,
        seed: int,
        far_seed: int,
        begin: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._model, self._density, self._most_seconds = model, density, most_seconds
        self._seed, self._far_seed, self._begin = seed, far_seed, begin
        self.gradients = 0

    @cached_property
    def near(self) -> FloatArray:
        """Draws from Stan's own starting points, on the unconstrained space, shape (n, D).

        Raises
        ------
        SamplingError
            If the runs do not finish.
        """
        self._begin("short runs of NUTS")
        return self._points(self._run(self._seed, None))

    @cached_property
    def wide(self) -> FloatArray:
        """These and draws from starting points further and further out, shape (n, D).

        A wide Gaussian takes the place of a prior that a program does not have.  Fitted to these,
        it has modes beyond Stan's starting points, which lie within 2, inside it.  Chains that stay
        where the density is far below that of others do not count.  If no run starts so far out,
        as where a parameter overflows, there is none from further out either.

        Raises
        ------
        SamplingError
            If the runs from Stan's starting points do not finish.
        """
        found, began = self.near, time.perf_counter()
        highest = float(np.max(self._density(found)[0]))
        for radius in _FAR:
            if time.perf_counter() - began > self._most_seconds:
                break
            try:
                run = self._run(self._far_seed, radius, 1 / len(_FAR))
                chains = self._points(run)
            except (DataError, SamplingError):
                break
            height = self._density(chains)[0].reshape(self._settings.chains, -1).mean(axis=1)
            highest = max(highest, float(np.max(height)))
            kept = height > highest - _LOW - chains.shape[1]
            each = chains.reshape(self._settings.chains, -1, chains.shape[1])
            found = np.concatenate([found, each[kept].reshape(-1, chains.shape[1])])
        return found

    @cached_property
    def _settings(self) -> NutsSettings:
        """Settings of a run, with fewer chains if the shortest one of all takes too long."""
        shortest = _SETTINGS.within(0.0)
        gradients = (shortest.warmup + shortest.draws) * 2**shortest.max_treedepth
        each = gradients * seconds_a_gradient(self._density)
        at_once = chains_at_once(_SETTINGS)
        chains = _SETTINGS.chains
        while chains > _FEWEST_CHAINS and chains * each > at_once * self._most_seconds:
            chains //= 2
        return replace(_SETTINGS, chains=chains)

    def _run(self, seed: int, radius: float | None, share: float = 1.0) -> NutsRun:
        seconds = share * self._most_seconds
        run = run_short_nuts(
            self._model.program("target"),
            self._model.data,
            affordable(self._settings, self._density, seconds),
            seed,
            inits=radius,
            most_seconds=seconds,
        )
        self.gradients += int(run.gradients.sum())
        return run

    def _points(self, run: NutsRun) -> FloatArray:
        flat = {
            name: run.variables[name].reshape(-1, *run.variables[name].shape[2:])
            for name in self._model.parameters
            if name in run.variables
        }
        return self._density.unconstrain_draws(flat)
