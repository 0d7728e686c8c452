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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness import evidence
from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.cores import cores
from harness.engine.nuts import NutsRun, NutsSettings
from harness.engine.short_nuts import affordable, run_short_nuts, with_time_limit
from harness.errors import FAILURES, SamplingError
from harness.evidence import LogEvidence, normalised_weights, strata_errors
from harness.fit import Fit, build_fit, in_extended
from harness.model import Model
from harness.modes import FoundModes, Mode, ModeTable
from harness.modes.table import NEGLIGIBLE
from harness.modes.words import CLIMBS, listed
from harness.path import starting_values
from harness.seeds import derived_seed
from harness.user.compare import unconstrained
from harness.user.in_which_mode import InWhichMode
from harness.user.mode_alone import mass_by_bridge
from harness.user.mode_metric import USUAL, in_metric, mixes, mode_metric
from harness.user.one_copy import COPIES, InOneCopy
from harness.user.peaked_lengths import PeakedLengths

METHOD = "nuts_in_modes"
MOST_MODES = 16
"""Modes above which nothing is tried."""
_WARMUP = 500
_SHORT = NutsSettings(chains=4, warmup=300, draws=500)
_STAYS = 0.95
"""Share of the draws of each chain in its mode, below which NUTS does not stay there."""
_VISITED = 0.01
"""Share of the draws in another mode from which on NUTS goes there."""
_TIMES = 4
"""Factor of the draws where chains in a basin disagree."""
_NUTS_SHARE, _BRIDGE_SHARE = 0.5, 0.4
"""Shares of the time for each mode."""
_STATS = ("lp", "acceptance_rate", "step_size", "tree_depth", "n_steps", "diverging")
"""Statistics that are kept; energies are not, because their levels differ between modes."""


class Basin(NamedTuple):
    """One mode, or several that NUTS moves between."""

    log_mass: LogEvidence
    """Log of the integral of the density over it."""
    shares: Mapping[int, tuple[float, float]]
    """Share of its draws in each of its modes, by the mode's number from 0, with its error."""


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
    runs = _Runs(model, found, nuts, in_one_copy, usual, most_seconds, seed)
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


class _Run(NamedTuple):
    values: dict[str, FloatArray]
    stats: dict[str, FloatArray]
    basin: Basin
    gradients: FloatArray
    evaluations: int


class _DisagreeError(SamplingError):
    """Chains in one basin disagree."""


class _Runs:
    """Runs of NUTS in basins, which grow while NUTS leaves them."""

    def __init__(
        self,
        model: Model,
        found: FoundModes,
        nuts: NutsSettings,
        in_one_copy: InOneCopy | None,
        usual: float | None,
        most_seconds: float,
        seed: int,
    ) -> None:
        self.density = BatchedDensity(model.program("target"), model.data, threads=cores())
        self._in_one_copy, self._usual = in_one_copy, usual
        self._model, self._found, self._seed = model, found, seed
        self._nuts = replace(nuts, warmup=min(nuts.warmup, _WARMUP))
        self._known, self._peaked = InWhichMode(found), PeakedLengths(self.density)
        self._ends = time.perf_counter() + most_seconds

    def in_basins(self, chosen: Sequence[int]) -> list[_Run]:
        """Return a run in each basin of some modes."""
        waiting = [frozenset([k]) for k in chosen]
        runs: dict[frozenset[int], _Run] = {}
        while waiting:
            one = waiting.pop(0)
            left = self._ends - time.perf_counter()
            if left <= 0:
                raise SamplingError("the time ran out")
            has_draws = any(self._found.table.modes[k].probability > 0 for k in one)
            try:
                made = self._sampled(one, left / (1 + len(waiting)))
            except SamplingError:
                if has_draws:
                    raise
                continue  # its probability stays unknown, and the table says so
            if isinstance(made, _Run):
                runs[one] = made
            elif has_draws:
                # Every basin that it goes to is a part of the new one.
                parts = [each for each in (*waiting, *runs) if each & made]
                waiting = [each for each in waiting if each not in parts]
                runs = {each: run for each, run in runs.items() if each not in parts}
                waiting.append(one.union(made, *parts))
        return self._equal([run for _, run in sorted(runs.items(), key=lambda item: min(item[0]))])

    def _equal(self, runs: Sequence[_Run]) -> list[_Run]:
        """Give basins of one mode each that are copies of each other the same mass."""
        basins = [run.basin for run in runs]
        alone = {k: n for n, one in enumerate(basins) if len(one.shares) == 1 for k in one.shares}
        families = [
            [alone[number - 1] for number in each if number - 1 in alone]
            for each in self._found.table.families().values()
        ]
        masses = evidence.equal_masses({n: one.log_mass for n, one in enumerate(basins)}, families)
        return [
            run._replace(basin=one._replace(log_mass=masses[n]))
            for n, (run, one) in enumerate(zip(runs, basins, strict=True))
        ]

    def _sampled(self, basin: frozenset[int], most_seconds: float) -> _Run | set[int]:
        """Run NUTS in a basin; return the modes that it goes to if it leaves it.

        Where chains disagree, longer ones are tried while there is time, which adapt a metric: what
        is known of a mode may tell it badly.
        """
        ends, nuts = time.perf_counter() + most_seconds, self._nuts
        inside = [self._found.inside[k] for k in sorted(basin)]
        known = inside[0] if len(inside) == 1 else None
        while True:
            began = time.perf_counter()
            try:
                return self._sampled_once(basin, nuts, known, ends - began)
            except _DisagreeError:
                now = time.perf_counter()
                if now + _TIMES * (now - began) > ends:
                    raise
                nuts, known = replace(nuts, draws=_TIMES * nuts.draws), None

    def _sampled_once(
        self,
        basin: frozenset[int],
        nuts: NutsSettings,
        known: FloatArray | None,
        most_seconds: float,
    ) -> _Run | set[int]:
        """Do so once; ``known`` are points whose covariance is the metric, if there are enough."""
        numbers = sorted(basin)
        told = f"mode{'s' * (len(numbers) > 1)} {listed(k + 1 for k in numbers)}"
        seed = derived_seed(self._seed, 16, *numbers)
        metric = None if known is None else mode_metric(known)
        run = self._run(numbers, nuts, metric, _NUTS_SHARE * most_seconds, seed)
        values, points = self._drawn(run)
        flat = self._peaked.of_draws(points).reshape(-1, points.shape[2])
        outside = self._known.elsewhere(flat, numbers)
        own = ~outside.reshape(points.shape[:2])
        if own.mean(axis=1).min() < _STAYS:
            to, counts = np.unique(self._known.near(flat[outside]), return_counts=True)
            there = {int(k) for k in to[counts >= _VISITED * len(flat)]} - basin - {-1}
            if there:
                return there
            raise SamplingError(f"NUTS does not stay in {told}")
        # The draws in a basin of a chain that leaves it now and then are draws of the basin.
        kept = _first_of_each(own)
        chain = np.arange(len(own))[:, None]
        points = points[chain, kept]
        if not mixes(points, metric):
            raise _DisagreeError(f"chains of NUTS disagree in {told}")
        log_mass, evaluations = mass_by_bridge(
            self._in_one_copy or self.density,
            points,
            most_seconds=_BRIDGE_SHARE * most_seconds,
            seed=seed,
        )
        if log_mass is None:
            raise SamplingError(f"no bridge tells the mass of {told}")
        shares = {numbers[0]: (1.0, 0.0)}
        if len(numbers) > 1:
            shares = self._shares(flat.reshape(*own.shape, -1)[chain, kept], numbers)
        return _Run(
            {name: each[chain, kept] for name, each in values.items()},
            {n: run.sample_stats[n][chain, kept] for n in _STATS if n in run.sample_stats},
            Basin(log_mass, shares),
            run.gradients,
            evaluations,
        )

    def _drawn(self, run: NutsRun) -> tuple[dict[str, FloatArray], FloatArray]:
        """Return a run's draws by parameter, and as points, all in one copy if modes are."""
        values = {name: run.variables[name] for name in self.density.shapes}
        points = unconstrained(values, 2, self.density)
        if self._in_one_copy is None:
            return values, points
        points = self._in_one_copy.brought(points)
        flat = self.density.constrain(points.reshape(-1, points.shape[2]))
        return {name: flat[name].reshape(each.shape) for name, each in values.items()}, points

    def _run(
        self,
        numbers: Sequence[int],
        nuts: NutsSettings,
        metric: FloatArray | None,
        most_seconds: float,
        seed: int,
    ) -> NutsRun:
        """Run NUTS from points in some modes, as many from each, in a metric that it may keep."""
        rng = np.random.default_rng(seed)
        inside = [self._found.inside[k] for k in numbers]
        usual = self._usual
        if metric is not None:
            usual = USUAL if usual is None else min(usual, USUAL)
        settings = affordable(in_metric(nuts, metric), self.density, most_seconds, usual=usual)
        settings = with_time_limit(settings, self.density, most_seconds)
        if len(inside) == 1:
            few = len(inside[0]) < settings.chains
            start = inside[0][rng.choice(len(inside[0]), size=settings.chains, replace=few)]
        else:
            modes = np.resize(rng.permutation(len(inside)), settings.chains)
            start = np.stack([inside[k][rng.integers(len(inside[k]))] for k in modes])
        return run_short_nuts(
            self._model.program("target"),
            self._model.data,
            settings,
            seed,
            inits=starting_values(self.density.constrain(start), chains=settings.chains),
            inv_metric=metric,
            most_seconds=most_seconds,
        )

    def _shares(self, points: FloatArray, numbers: Sequence[int]) -> dict[int, tuple[float, float]]:
        """Return shares of draws (chains, draws, D) in some modes, with their errors."""
        mode = self._known.of(points.reshape(-1, points.shape[2])).reshape(points.shape[:2])
        inside = np.isin(mode, numbers)
        found = {}
        for k in numbers:
            # Draws that are in no mode of the basin are in all of them alike.
            share = evidence.expectation((mode == k).astype(np.float64))
            found[k] = float(share.value) / inside.mean(), float(share.mcse) / inside.mean()
        return found


def _first_of_each(own: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Return, of each chain, the places of as many draws of its own as the fewest that one has."""
    count = int(own.sum(axis=1).min())
    return np.stack([np.flatnonzero(each)[:count] for each in own])


def _together(
    model: Model,
    engine: str,
    parts: Sequence[_Run],
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
