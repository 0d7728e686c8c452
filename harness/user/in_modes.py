"""Draws of NUTS in each known mode, put together by the masses of the modes.

Where modes are known, but no method gives enough draws of all of them, each can be sampled by
itself: NUTS that starts in a mode stays in it, and a bridge from its draws tells the integral of
the density over it.  The bridge's proposal is fitted to these draws, far from other modes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness import evidence
from harness.arrays import FloatArray
from harness.diagnosis import R_HAT_PROBLEM
from harness.engine.batched import BatchedDensity
from harness.engine.cores import cores
from harness.engine.nuts import NutsSettings
from harness.engine.short_nuts import affordable, run_short_nuts
from harness.errors import SamplingError
from harness.evidence import LogEvidence, normalised_weights, strata_errors
from harness.fit import Fit, build_fit, in_extended
from harness.model import Model
from harness.modes import FoundModes, Mode, ModeTable
from harness.modes.words import CLIMBS
from harness.path import starting_values
from harness.user.compare import unconstrained
from harness.user.in_which_mode import InWhichMode
from harness.user.mode_alone import mass_by_bridge
from harness.user.peaked_lengths import PeakedLengths

METHOD = "nuts_in_modes"
MOST_MODES = 16
"""Modes above which nothing is tried."""
_NEGLIGIBLE = 1e-3
"""Probability of a mode without draws below which it is left out."""
_WARMUP = 500
_STAYS = 0.95
"""Share of the draws of each chain in its mode, below which NUTS does not stay there."""
_NUTS_SHARE, _BRIDGE_SHARE = 0.5, 0.4
"""Shares of the time for each mode."""
_STATS = ("lp", "acceptance_rate", "step_size", "tree_depth", "n_steps", "diverging")
"""Statistics that are kept; energies are not, because their levels differ between modes."""


class InModes(NamedTuple):
    """NUTS's draws in each mode."""

    fit: Fit
    """All draws, those of one mode after those of another in each chain, unweighted."""
    mode: npt.NDArray[np.intp]
    """Mode of each draw, from 0, among those that were sampled, shape (chains, draws)."""
    log_mass: Sequence[LogEvidence]
    """Log of the integral of the density over each of these."""
    sampled: Sequence[int]
    """Their numbers in the table of modes, from 0."""

    @property
    def probability(self) -> FloatArray:
        """Probability of each mode by its mass, shape (K,)."""
        return normalised_weights(np.array([each.value for each in self.log_mass]))

    @property
    def log_error(self) -> FloatArray:
        """Standard error of the log of each mass, shape (K,)."""
        return np.array([each.mcse for each in self.log_mass])

    @property
    def log_integral(self) -> LogEvidence:
        """Log of the integral of the density over all these modes."""
        value = np.logaddexp.reduce([each.value for each in self.log_mass])
        error = np.sqrt(np.square(self.probability * self.log_error).sum())
        return LogEvidence(float(value), float(error))

    def table(self, before: ModeTable) -> ModeTable:
        """Return a table of modes with these probabilities, and what all methods saw."""
        p, error = self.probability, strata_errors(self.probability, self.log_error)

        def changed(number: int, mode: Mode) -> Mode:
            if number not in self.sampled:
                return replace(mode, probability=0.0)
            at = self.sampled.index(number)
            share, mcse = float(p[at]), float(error[at])
            return replace(
                mode,
                probability=share,
                error=mcse,
                seen_by={METHOD: share, **mode.seen_by},
                local=(share, mcse),
            )

        modes = tuple(changed(k, mode) for k, mode in enumerate(before.modes))
        return replace(before, modes=modes, methods=(METHOD, *before.methods))


def known_modes(table: ModeTable) -> list[int]:
    """Return the numbers, from 0, of the modes that are worth sampling."""
    return [
        k
        for k, mode in enumerate(table.modes)
        if mode.probability > 0 or _may_have(mode) >= _NEGLIGIBLE
    ]


def _may_have(mode: Mode) -> float:
    """Return the probability that a mode without draws may have."""
    if mode.local is not None:
        return mode.local[0]
    # Where climbs end is no probability.
    return 1.0 if CLIMBS in mode.seen_by else max(mode.seen_by.values())


def nuts_in_modes(
    model: Model, found: FoundModes, nuts: NutsSettings, *, most_seconds: float, seed: int
) -> InModes:
    """Run NUTS in each known mode, and weigh the modes by bridges from its draws.

    A mode that had no draws, and that NUTS leaves, is left out.

    Parameters
    ----------
    model
        The tempered model.
    found
        Its modes.
    nuts
        Settings of the run in each mode, which is shorter if there is no time.
    most_seconds
        Seconds of wall time, roughly.
    seed
        Seed.

    Raises
    ------
    SamplingError
        If there are fewer than two or too many modes, NUTS leaves one of them or does not mix in
        it, or the bridge cannot be relied on.
    """
    chosen = known_modes(found.table)
    if not 2 <= len(chosen) <= MOST_MODES:
        raise SamplingError(f"there are {len(chosen)} modes, and not 2 to {MOST_MODES}")
    began = time.perf_counter()
    density = BatchedDensity(model.program("target"), model.data, threads=cores())
    known, peaked = InWhichMode(found), PeakedLengths(density)
    each = most_seconds / len(chosen)
    runs = {}
    for k in chosen:
        run = _sampled(model, density, peaked, known, k, found.inside[k], nuts, each, seed)
        if run is not None:
            runs[k] = run
        elif found.table.modes[k].probability > 0:
            raise SamplingError(f"NUTS does not stay in mode {k + 1}")
    if len(runs) < 2:
        raise SamplingError("NUTS stays in one mode only")
    seconds = time.perf_counter() - began
    return _together(model, density, runs, nuts, seconds, seed)


class _Run(NamedTuple):
    values: dict[str, FloatArray]
    stats: dict[str, FloatArray]
    log_mass: LogEvidence
    gradients: FloatArray
    evaluations: int


def _sampled(
    model: Model,
    density: BatchedDensity,
    peaked: PeakedLengths,
    known: InWhichMode,
    number: int,
    inside: FloatArray,
    nuts: NutsSettings,
    most_seconds: float,
    seed: int,
) -> _Run | None:
    """Run NUTS in a mode; None if it leaves the mode."""
    one_seed = int(np.random.SeedSequence([seed, 16, number]).generate_state(1)[0])
    rng = np.random.default_rng(one_seed)
    settings = affordable(
        replace(nuts, warmup=min(nuts.warmup, _WARMUP)), density, _NUTS_SHARE * most_seconds
    )
    few = len(inside) < settings.chains
    start = inside[rng.choice(len(inside), size=settings.chains, replace=few)]
    run = run_short_nuts(
        model.program("target"),
        model.data,
        settings,
        one_seed,
        inits=starting_values(density.constrain(start), chains=settings.chains),
    )
    values = {name: run.variables[name] for name in density.shapes}
    points = unconstrained(values, 2, density)
    flat = peaked.of_draws(points).reshape(-1, points.shape[2])
    own = ~known.elsewhere(flat, number).reshape(points.shape[:2])
    if own.mean(axis=1).min() < _STAYS:
        return None
    # The draws in a mode of a chain that leaves it now and then are draws of the mode.
    kept = _first_of_each(own)
    chain = np.arange(len(own))[:, None]
    points = points[chain, kept]
    if evidence.largest_r_hat(points) > R_HAT_PROBLEM:
        raise SamplingError(f"chains of NUTS disagree in mode {number + 1}")
    log_mass, evaluations = mass_by_bridge(
        density, points, most_seconds=_BRIDGE_SHARE * most_seconds, seed=one_seed
    )
    if log_mass is None:
        raise SamplingError(f"no bridge tells the mass of mode {number + 1}")
    return _Run(
        {name: each[chain, kept] for name, each in values.items()},
        {name: run.sample_stats[name][chain, kept] for name in _STATS if name in run.sample_stats},
        log_mass,
        run.gradients,
        evaluations,
    )


def _first_of_each(own: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Return, of each chain, the places of as many draws of its own as the fewest that one has."""
    count = int(own.sum(axis=1).min())
    return np.stack([np.flatnonzero(each)[:count] for each in own])


def _together(
    model: Model,
    density: BatchedDensity,
    runs: dict[int, _Run],
    nuts: NutsSettings,
    seconds: float,
    seed: int,
) -> InModes:
    """Put the draws of all modes into one fit."""
    parts = list(runs.values())
    values = {
        name: np.concatenate([each.values[name] for each in parts], axis=1)
        for name in density.shapes
    }
    stats = {
        name: np.concatenate([each.stats[name] for each in parts], axis=1)
        for name in parts[0].stats
    }
    counts = [next(iter(each.values.values())).shape[1] for each in parts]
    chains = len(next(iter(values.values())))
    mode = np.tile(np.repeat(np.arange(len(parts)), counts), (chains, 1))
    gradients = np.sum([each.gradients for each in parts], axis=0)
    bridges = sum(each.evaluations for each in parts)
    fit = build_fit(
        posterior=values,
        extended=in_extended(values) | {"log_w1": np.zeros(mode.shape)},
        sample_stats=stats,
        constant_data=model.data,
        attrs={
            "method": METHOD,
            "engine": density.engine,
            "model": model.name,
            "program": model.program("target").name,
            "settings": {"modes": len(parts), "nuts": nuts.identity()},
            "seed": seed,
            "draws_asked": nuts.draws,
            "parameters": json.dumps(list(model.parameters)),
            "gradients_warmup": gradients[:, 0] + bridges / chains,
            "gradients_sampling": gradients[:, 1],
            "seconds_warmup": np.zeros(chains),
            "seconds_sampling": np.full(chains, seconds / chains),
            "harness_version": version("harness"),
        },
        weighting="across draws",
        pseudo_samples=False,
    )
    return InModes(fit, mode, [each.log_mass for each in parts], list(runs))
