"""Runs of NUTS in basins: modes between which it does not move.

A basin is one mode at first.  If NUTS leaves it, it grows by the modes that NUTS goes to, and is
sampled as a whole.  If most chains stay, though, those that leave it are made anew: NUTS moves
between the modes, but too rarely to sample both.  A bridge from the draws tells the mass.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness import evidence
from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.cores import cores
from harness.engine.nuts import NutsRun, NutsSettings
from harness.engine.short_nuts import affordable, run_short_nuts, with_time_limit
from harness.errors import SamplingError
from harness.evidence import LogEvidence
from harness.model import Model
from harness.modes import FoundModes
from harness.modes.words import listed
from harness.path import starting_values
from harness.seeds import derived_seed
from harness.user.compare import unconstrained
from harness.user.in_which_mode import InWhichMode
from harness.user.mode_alone import mass_by_bridge
from harness.user.mode_metric import USUAL, in_metric, mixes, mode_metric
from harness.user.one_copy import InOneCopy
from harness.user.peaked_lengths import PeakedLengths

_WARMUP = 500
_STAYS = 0.95
"""Share of the draws of each chain in its mode, below which NUTS does not stay there."""
_MOST = 0.5
"""Share of the chains that stay in a basin from which on they are draws of it."""
_VISITED = 0.01
"""Share of the draws in another mode from which on NUTS goes there."""
_TIMES = 4
"""Factor of the draws where chains in a basin disagree."""
_NUTS_SHARE, _AGAIN_SHARE, _BRIDGE_SHARE = 0.5, 0.3, 0.4
"""Shares of the time for each mode: a run, another one if a few chains leave it, and a bridge."""
_TIMED = 8
"""Points in each mode at which the density is timed, or a few more."""
_STATS = ("lp", "acceptance_rate", "step_size", "tree_depth", "n_steps", "diverging")
"""Statistics that are kept; energies are not, because their levels differ between modes."""


class Basin(NamedTuple):
    """One mode, or several that NUTS moves between."""

    log_mass: LogEvidence
    """Log of the integral of the density over it."""
    shares: Mapping[int, tuple[float, float]]
    """Share of its draws in each of its modes, by the mode's number from 0, with its error."""


class BasinRun(NamedTuple):
    """Draws of NUTS in a basin."""

    values: dict[str, FloatArray]
    stats: dict[str, FloatArray]
    basin: Basin
    gradients: FloatArray
    evaluations: int


class _Drawn(NamedTuple):
    """Draws of NUTS that began in a basin; arrays start with axes (chain, draw)."""

    values: dict[str, FloatArray]
    stats: dict[str, FloatArray]
    points: FloatArray
    """On the unconstrained space, shape (chains, draws, D)."""
    told_apart: FloatArray
    """The same where modes are told apart, shape (chains, draws, D)."""
    own: npt.NDArray[np.bool_]
    """Whether a draw is in the basin."""
    gradients: FloatArray
    """In warm-up and in sampling, shape (chains, 2)."""

    @property
    def stays(self) -> npt.NDArray[np.bool_]:
        """Whether each chain stays in the basin."""
        stays: npt.NDArray[np.bool_] = self.own.mean(axis=1) >= _STAYS
        return stays

    def kept(self, chains: npt.NDArray[np.intp], draws: int) -> _Drawn:
        """Return some chains and their first draws."""
        return _Drawn(
            {name: each[chains, :draws] for name, each in self.values.items()},
            {name: each[chains, :draws] for name, each in self.stats.items()},
            self.points[chains, :draws],
            self.told_apart[chains, :draws],
            self.own[chains, :draws],
            self.gradients[chains],
        )

    def with_those_that_stay(self, other: _Drawn) -> _Drawn | None:
        """Return as many chains that stay, also from another run; None if there are too few."""
        count, draws = len(self.own), min(self.own.shape[1], other.own.shape[1])
        stays = [np.flatnonzero(each.stays) for each in (self, other)]
        if sum(map(len, stays)) < count:
            return None
        one = self.kept(stays[0][:count], draws)
        two = other.kept(stays[1][: count - len(stays[0])], draws)
        return _Drawn(
            {name: np.concatenate([each, two.values[name]]) for name, each in one.values.items()},
            {name: np.concatenate([each, two.stats[name]]) for name, each in one.stats.items()},
            np.concatenate([one.points, two.points]),
            np.concatenate([one.told_apart, two.told_apart]),
            np.concatenate([one.own, two.own]),
            self.gradients + other.gradients,  # those of all chains
        )


class _DisagreeError(SamplingError):
    """Chains in one basin disagree."""


class BasinRuns:
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

    def in_basins(self, chosen: Sequence[int]) -> list[BasinRun]:
        """Return a run in each basin of some modes."""
        waiting = [frozenset([k]) for k in chosen]
        runs: dict[frozenset[int], BasinRun] = {}
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
            if isinstance(made, BasinRun):
                runs[one] = made
            elif has_draws:
                # Every basin that it goes to is a part of the new one.
                parts = [each for each in (*waiting, *runs) if each & made]
                waiting = [each for each in waiting if each not in parts]
                runs = {each: run for each, run in runs.items() if each not in parts}
                waiting.append(one.union(made, *parts))
        return self._equal([run for _, run in sorted(runs.items(), key=lambda item: min(item[0]))])

    def _equal(self, runs: Sequence[BasinRun]) -> list[BasinRun]:
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

    def _sampled(self, basin: frozenset[int], most_seconds: float) -> BasinRun | set[int]:
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
    ) -> BasinRun | set[int]:
        """Do so once; ``known`` are points whose covariance is the metric, if there are enough."""
        numbers = sorted(basin)
        told = f"mode{'s' * (len(numbers) > 1)} {listed(k + 1 for k in numbers)}"
        seed = derived_seed(self._seed, 16, *numbers)
        metric = None if known is None else mode_metric(known)
        run = self._run(numbers, nuts, metric, _NUTS_SHARE * most_seconds, seed)
        drawn = self._drawn(run, numbers)
        stay = drawn if np.all(drawn.stays) else None
        if stay is None and drawn.stays.mean() >= _MOST:
            seconds, other = _AGAIN_SHARE * most_seconds, derived_seed(seed, 1)
            again = self._run(numbers, nuts, metric, seconds, other)
            stay = drawn.with_those_that_stay(self._drawn(again, numbers))
        if stay is None:
            outside = self._known.near(drawn.told_apart[~drawn.own])
            to, counts = np.unique(outside, return_counts=True)
            there = {int(k) for k in to[counts >= _VISITED * drawn.own.size]} - basin - {-1}
            if there:
                return there
            raise SamplingError(f"NUTS does not stay in {told}")
        # The draws in a basin of a chain that leaves it now and then are draws of the basin.
        own, kept = stay.own, _first_of_each(stay.own)
        chain = np.arange(len(own))[:, None]
        points = stay.points[chain, kept]
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
            shares = self._shares(stay.told_apart[chain, kept], numbers)
        return BasinRun(
            {name: each[chain, kept] for name, each in stay.values.items()},
            {name: each[chain, kept] for name, each in stay.stats.items()},
            Basin(log_mass, shares),
            stay.gradients,
            evaluations,
        )

    def _drawn(self, run: NutsRun, numbers: Sequence[int]) -> _Drawn:
        """Return the draws of a run that began in some modes, and whether they are in these."""
        values, points = self._in_one(run)
        told_apart = self._peaked.of_draws(points)
        flat = told_apart.reshape(-1, points.shape[2])
        own = ~self._known.elsewhere(flat, numbers).reshape(points.shape[:2])
        stats = {n: run.sample_stats[n] for n in _STATS if n in run.sample_stats}
        return _Drawn(values, stats, points, told_apart, own, run.gradients)

    def _in_one(self, run: NutsRun) -> tuple[dict[str, FloatArray], FloatArray]:
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
        points = np.concatenate([each[:: max(1, len(each) // _TIMED)] for each in inside])
        settings = affordable(
            in_metric(nuts, metric), self.density, most_seconds, usual=usual, points=points
        )
        settings = with_time_limit(settings, self.density, most_seconds, points)
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
