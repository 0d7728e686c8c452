"""Draws of NUTS in each known mode, put together by the masses of the modes.

Where modes are known, but no method gives enough draws of all of them, each can be sampled by
itself: NUTS that starts in a mode stays in it, and a bridge from its draws tells the integral of
the density over it.  The bridge's proposal is fitted to these draws, far from other modes.  Modes
that NUTS does move between, as along a ring, are one basin, which is sampled as a whole.  If
only one mode has a probability that counts, it alone is sampled.  Where the posterior has many
copies, modes are those of one copy, to which draws are brought, and all draws are spread over the
copies in the end.
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

from harness.arrays import FloatArray
from harness.engine.nuts import NutsSettings
from harness.errors import FAILURES, SamplingError
from harness.evidence import LogEvidence, normalised_weights, strata_errors
from harness.fit import Fit, build_fit, in_extended
from harness.model import Model
from harness.modes import FoundModes, Mode, ModeTable
from harness.modes.table import NEGLIGIBLE
from harness.modes.words import CLIMBS
from harness.seeds import derived_seed
from harness.user.basins import Basin, BasinRun, BasinRuns
from harness.user.one_copy import COPIES, InOneCopy

METHOD = "nuts_in_modes"
MOST_MODES = 16
"""Modes above which nothing is tried."""
_SHORT = NutsSettings(chains=4, warmup=300, draws=500)


class InModes(NamedTuple):
    """NUTS's draws in each mode."""

    fit: Fit
    """All draws, those of one basin after those of another in each chain, unweighted."""
    basin: npt.NDArray[np.intp]
    """Basin of each draw, from 0, shape (chains, draws)."""
    basins: Sequence[Basin]
    """What each of them is."""
    copies: int = 1
    """Number of copies of the posterior, if basins are those of one copy."""

    @property
    def probability(self) -> FloatArray:
        """Probability of each basin by its mass, shape (K,)."""
        return normalised_weights(np.array([each.log_mass.value for each in self.basins]))

    @property
    def log_error(self) -> FloatArray:
        """Standard error of the log of each mass, shape (K,)."""
        return np.array([each.log_mass.mcse for each in self.basins])

    @property
    def log_integral(self) -> LogEvidence:
        """Log of the integral of the density over all basins, in all copies."""
        value = np.logaddexp.reduce([each.log_mass.value for each in self.basins])
        error = np.sqrt(np.square(self.probability * self.log_error).sum())
        return LogEvidence(float(value + np.log(self.copies)), float(error))

    @property
    def of_modes(self) -> dict[int, tuple[float, float]]:
        """Probability of each mode that was sampled, by its number from 0, with its error."""
        p, error = self.probability, strata_errors(self.probability, self.log_error)
        return {
            number: (float(p[k]) * share, float(np.hypot(error[k] * share, p[k] * mcse)))
            for k, each in enumerate(self.basins)
            for number, (share, mcse) in each.shares.items()
        }

    def table(self, before: ModeTable) -> ModeTable:
        """Return a table of modes with these probabilities, and what all methods saw."""
        known = self.of_modes

        def changed(number: int, mode: Mode) -> Mode:
            if number not in known:
                return replace(mode, probability=0.0)
            share, mcse = known[number]
            return replace(
                mode,
                probability=share,
                error=mcse,
                seen_by={METHOD: share, **mode.seen_by},
                local=(share, mcse),
            )

        modes = tuple(changed(k, mode) for k, mode in enumerate(before.modes))
        return replace(before, modes=modes, methods=(METHOD, *before.methods))

    def compared(self, before: ModeTable) -> ModeTable:
        """Return a table of modes whose draws stay, with these probabilities beside their own."""
        known = self.of_modes
        modes = tuple(
            replace(mode, local=known[k]) if k in known else mode
            for k, mode in enumerate(before.modes)
        )
        return replace(before, modes=modes, gradients=before.gradients + round(self.fit.gradients))


def known_modes(table: ModeTable) -> list[int]:
    """Return the numbers, from 0, of the modes that are worth sampling."""
    return [
        k
        for k, mode in enumerate(table.modes)
        if mode.probability > 0 or _may_have(mode) >= NEGLIGIBLE
    ]


def _may_have(mode: Mode) -> float:
    """Return the probability that a mode without draws may have."""
    if mode.local is not None:
        return mode.local[0]
    # Where climbs end is no probability.
    return 1.0 if CLIMBS in mode.seen_by else max(mode.seen_by.values())


def nuts_in_modes(
    model: Model,
    found: FoundModes,
    nuts: NutsSettings,
    *,
    in_one_copy: InOneCopy | None = None,
    usual: float | None = None,
    most_seconds: float,
    seed: int,
) -> InModes:
    """Run NUTS in each known mode, and weigh the modes by bridges from its draws.

    A mode that NUTS leaves is sampled together with those that it goes to.  If it had no draws, it
    is left out, and so is one without draws in which chains do not mix: its mass is not known.

    Parameters
    ----------
    model
        The tempered model.
    found
        Its modes.
    nuts
        Settings of the run in each mode, which is shorter if there is no time.
    in_one_copy
        The copy of the posterior that the modes are in; by default, they are everywhere.
    usual
        Gradients that an iteration of NUTS took in these modes before; None if that is not known.
    most_seconds
        Seconds of wall time, roughly.
    seed
        Seed.

    Raises
    ------
    SamplingError
        If the table has one mode only, none or too many of them are worth sampling, NUTS does not
        mix in one that has draws or moves between all, or a bridge cannot be relied on.
    """
    chosen = known_modes(found.table)
    if len(found.table.modes) < 2:
        raise SamplingError("only one mode is known")
    if not 1 <= len(chosen) <= MOST_MODES:
        raise SamplingError(f"{len(chosen)} modes are worth sampling, and not 1 to {MOST_MODES}")
    began = time.perf_counter()
    runs = BasinRuns(model, found, nuts, in_one_copy, usual, most_seconds, seed)
    made = runs.in_basins(chosen)
    if len(made) == 1 and len(made[0].basin.shares) > 1:
        raise SamplingError("NUTS moves between all modes")
    seconds = time.perf_counter() - began
    return _together(model, runs.density.engine, made, in_one_copy, nuts, seconds, seed)


def beside_masses(
    model: Model,
    found: FoundModes,
    nuts: NutsSettings,
    *,
    in_one_copy: InOneCopy | None = None,
    most_seconds: float,
    seed: int,
) -> ModeTable:
    """Return a table of modes with probabilities by short runs in each beside those by the draws.

    A tempered run that hardly ever finds its way into a narrow mode may not show that, and points
    around peaks do not weigh modes that are no ellipsoids.

    Parameters
    ----------
    model, found, nuts, in_one_copy, most_seconds, seed
        As for :func:`nuts_in_modes`.

    Returns
    -------
    ModeTable
        As it is if only one mode counts, or if :func:`nuts_in_modes` fails: then nothing but the
        draws is known.
    """
    if len(known_modes(found.table)) < 2:
        return found.table
    short = replace(
        nuts,
        warmup=min(nuts.warmup, _SHORT.warmup),
        draws=min(nuts.draws, _SHORT.draws),
        chains=_SHORT.chains,
    )
    try:
        made = nuts_in_modes(
            *(model, found, short), in_one_copy=in_one_copy, most_seconds=most_seconds, seed=seed
        )
    except FAILURES:
        return found.table
    return made.compared(found.table)


def _together(
    model: Model,
    engine: str,
    parts: Sequence[BasinRun],
    in_one_copy: InOneCopy | None,
    nuts: NutsSettings,
    seconds: float,
    seed: int,
) -> InModes:
    """Put the draws of all basins into one fit."""
    values = {
        name: np.concatenate([each.values[name] for each in parts], axis=1)
        for name in parts[0].values
    }
    stats = {
        name: np.concatenate([each.stats[name] for each in parts], axis=1)
        for name in parts[0].stats
    }
    if in_one_copy is not None:
        values = in_one_copy.spread(values, derived_seed(seed, 18))
    counts = [next(iter(each.values.values())).shape[1] for each in parts]
    chains = len(next(iter(values.values())))
    basin = np.tile(np.repeat(np.arange(len(parts)), counts), (chains, 1))
    gradients = np.sum([each.gradients for each in parts], axis=0)
    bridges = sum(each.evaluations for each in parts)
    fit = build_fit(
        posterior=values,
        extended=in_extended(values) | {"log_w1": np.zeros(basin.shape)},
        sample_stats=stats,
        constant_data=model.data,
        attrs={
            "method": METHOD,
            "engine": engine,
            "model": model.name,
            "program": model.program("target").name,
            "settings": {"basins": len(parts), "nuts": nuts.identity()},
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
    basins = [each.basin for each in parts]
    if in_one_copy is None:
        return InModes(fit, basin, basins)
    fit.tree.attrs[COPIES] = in_one_copy.copies
    return InModes(fit, basin, basins, in_one_copy.copies)
