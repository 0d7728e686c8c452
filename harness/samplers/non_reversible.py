"""Non-reversible parallel tempering from one reference or from two, tuned in rounds.

A replica stands at every rung between a reference and the target.  In a scan each replica moves at
its rung (:mod:`harness.samplers.explorers`, :mod:`harness.samplers.hops`), draws of a reference
that can be drawn from replacing the replica there, and then neighbours swap, even pairs and odd
pairs in turn.  Rounds of scans,
each twice as long as the last, tune the ladder to equal rejection, the number of its rungs to the
communication barrier, and step sizes and scales at each rung to its own draws.  The draws of the
last round, in which nothing changes, are those that count.

With a second reference the target stands between two ladders.  That reference may be a Gaussian,
or a mixture of them, which each round fits to the target's draws: few rungs then reach it, however
vague the first one is.  If it takes more rungs than the first one all the same, it is given up.

All rungs of all systems, which are independent of each other, are evaluated in one call.

References
----------
Syed, S., Bouchard-Cote, A., Deligiannidis, G. and Doucet, A. (2021). Non-reversible parallel
tempering: a scalable highly parallel MCMC scheme. Journal of the Royal Statistical Society B 84,
321-350.

Surjanovic, N., Syed, S., Bouchard-Cote, A. and Campbell, T. (2022). Parallel tempering with a
variational reference. Advances in Neural Information Processing Systems 35.

Surjanovic, N., Biron-Lattes, M., Tiede, P., Syed, S., Campbell, T. and Bouchard-Cote, A. (2023).
Pigeons.jl: distributed sampling from intractable distributions. arXiv:2308.09769.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from harness.arrays import FloatArray, LogDensity
from harness.errors import DataError, SamplingError
from harness.evidence import normalised_weights
from harness.samplers.hops import Hops, Trials
from harness.samplers.kernels import StepSizes
from harness.samplers.ladders import (
    communication_barrier,
    equal_rejection_ladder,
    overlap_ladder,
)
from harness.samplers.rung_path import (
    Densities,
    Places,
    Reference,
    Rungs,
    joined,
    log_height,
    slope,
)
from harness.samplers.rung_replicas import SLICES_EVERY, Replicas, Tuned
from harness.samplers.tempering_round import FEWEST_FOR_SCALE, Round, root_or
from harness.samplers.tempering_run import (
    MOST_DIVERGENT,
    SHORTEST_ROUND,
    LadderFound,
    TemperingRun,
    TemperingSettings,
)

_TARGET_ACCEPTANCE = 0.8
_POOR_ACCEPTANCE, _POOR_STEP = 0.5, 0.05
"""Below either, auto takes slice sampling at a rung; the step is in the rung's own scales."""
_LEAST_SPREAD = 0.05  # of the first guess at a rung's spread, as a share of the reference's
_DRAWS_A_DIMENSION = 20  # below which no reference is fitted to them
_ROUNDS_TO_FIT = 2  # after which a second reference has been fitted to the target's draws
_LONGER = 1.0  # than the first ladder's barrier, about two rungs: the second is then of no use
_FEWEST_DRAWS = 20  # of a chain, which are made whatever the time is
_WARMUP_SHARE = 0.5  # of the time
_EVALUATIONS_A_SLICE = 6  # of one coordinate
_MOST_EVERY = 64  # scans a draw, however much time there is

Fitted = Callable[[FloatArray], Reference]
"""Makes a reference from draws of the target, shape (chains, draws, D)."""


def non_reversible_tempering(
    target: LogDensity,
    references: Sequence[Reference],
    candidates: Sequence[FloatArray],
    *,
    settings: TemperingSettings | None = None,
    fitted: Fitted | None = None,
    begin_round: Callable[[str], None] | None = None,
    seed: int,
) -> TemperingRun:
    """Sample a target by non-reversible parallel tempering.

    Parameters
    ----------
    target
        Log density of the target, all constants included.
    references
        One or two that ladders start from.
    candidates
        Draws of each reference, shape (n, D), from which the first ladder is made and its replicas
        start.
    settings
        Settings; by default those of :class:`TemperingSettings`.
    fitted
        Makes the second reference anew from the target's draws, after each round of warm-up.
    begin_round
        Is given a few words as each round begins.
    seed
        Seed.  The same seed gives the same draws unless the time runs out.

    Raises
    ------
    DataError
        If the target's density is zero at all candidates of a reference.
    SamplingError
        If a scan takes so long that there is no time for a few draws.
    """
    tempering = _Tempering(
        target, references, settings or TemperingSettings(), fitted, begin_round, seed
    )
    return tempering.run(candidates)


class _Tempering:
    """State of a run."""

    def __init__(
        self,
        target: LogDensity,
        references: Sequence[Reference],
        settings: TemperingSettings,
        fitted: Fitted | None,
        begin_round: Callable[[str], None] | None,
        seed: int,
    ) -> None:
        self._target, self._references = target, list(references)
        self._settings, self._fitted = settings, fitted
        self._begin = begin_round or (lambda _: None)
        self._rng = np.random.default_rng([seed, 8])
        self._densities = Densities(target, self._references)
        self._began = time.perf_counter()

    def run(self, candidates: Sequence[FloatArray]) -> TemperingRun:
        """Run warm-up and the last round."""
        settings = self._settings
        replicas = self._started(candidates)
        scans, lengths = 0, settings.rounds()
        for done, length in enumerate(lengths, 1):
            self._begin(f"tuning: {length} scans of {len(replicas.tuned.rungs)} rungs")
            began = self._elapsed
            made = self._tuning_round(replicas, length)
            self._refuse_if_hopeless((self._elapsed - began) / len(made.scans))
            self._try_hops(replicas, made)
            scans += len(made.scans)
            if done > _ROUNDS_TO_FIT and self._second_is_longer(made):
                self._use(self._references[:1], replicas)
            elif done < len(lengths):
                self._fit_reference(replicas, made)
            replicas = self._adapted(replicas, made)
            if self._late(_WARMUP_SHARE):
                break
        number = 1  # of times the draws that are asked for
        while True:
            before = self._densities.evaluations, self._elapsed
            made, number, found = self._last_round(replicas, number, scans, before)
            if not self._begins_anew(found, number, before[1]):
                return found
            scans += len(made.scans)
            replicas = self._adapted(replicas, made)
            number *= 2

    def _last_round(
        self, replicas: Replicas, number: int, warmup: int, before: tuple[int, float]
    ) -> tuple[Round, int, TemperingRun]:
        """Make a round that may be the last, at least ``number`` times the draws asked for.

        It goes on while there is time and its draws are not enough, unless a new round with a
        better ladder promises more.
        """
        settings, made = self._settings, Round(replicas)
        while True:
            length = number * settings.scans
            self._begin(f"{length:,} scans of {len(replicas.tuned.rungs)} rungs for draws")
            while len(made.scans) < length:
                if len(made.scans) >= _FEWEST_DRAWS and self._late(1.0):
                    break
                made.add(replicas.scan())
            found = self._found(replicas, made, warmup, before)
            done = not found.few_trips and found.is_enough(settings.enough)
            over = done or self._late(1.0) or number >= _MOST_EVERY
            if over or self._begins_anew(found, number, before[1]):
                return made, number, found
            number += max(1, number // 2)

    def _begins_anew(self, found: TemperingRun, number: int, began: float) -> bool:
        """Whether there is reason to make a round anew, with rungs placed anew, and time for it."""
        twice = self._elapsed + 2 * (self._elapsed - began)
        return found.few_trips and number < _MOST_EVERY and twice <= self._settings.most_seconds

    def _refuse_if_hopeless(self, scan: float) -> None:
        """Raise an error if the fewest draws alone would take all the time, by seconds a scan."""
        most = self._settings.most_seconds
        if _FEWEST_DRAWS * scan > most:
            raise SamplingError(
                f"parallel tempering takes {scan:.1f} s for each draw of a chain, and there are "
                f"{most:.0f} s for it: the density is slow, if only in some places. Give it more "
                "time (--budget), or less vague priors"
            )

    @property
    def _elapsed(self) -> float:
        return time.perf_counter() - self._began

    def _late(self, share: float) -> bool:
        return self._elapsed > share * self._settings.most_seconds

    # Start

    def _started(self, candidates: Sequence[FloatArray]) -> Replicas:
        """Make first ladders and choose where replicas start, by weights of the candidates."""
        drawn = [self._densities(each) for each in candidates]
        ladders = [
            overlap_ladder(
                each.values[:, 0] - each.values[:, j + 1], most=self._settings.most_rungs
            )
            for j, each in enumerate(drawn)
        ]
        rungs = Rungs(ladders)
        count, dimension = len(rungs), candidates[0].shape[1]
        tuned = Tuned(
            rungs,
            spread=np.empty((count, dimension)),
            scale=np.empty((count, dimension)),
            step_size=np.full(count, dimension**-0.25),
            sliced=np.full(count, self._settings.explorer == "slice"),
            also_sliced=np.full(count, self._settings.explorer == "both"),
            hops=Hops.none(count, dimension),
        )
        self._trials = Trials(dimension, self._rng)
        chosen: list[Places | None] = [None] * count
        for j, places in enumerate(drawn):
            own = places.values[:, j + 1]
            whole = places.points.std(axis=0)
            for k in rungs.rungs_of_ladder(j):
                # At the reference its own draws count the same, whatever the target's density.
                height = log_height(places.values, rungs.powers[k])
                share = normalised_weights(height - own)
                deviation = places.points - share @ places.points
                spread = np.sqrt(share @ np.square(deviation))
                tuned.spread[k] = np.maximum(spread, _LEAST_SPREAD * whole)
                powers = np.broadcast_to(rungs.powers[k], places.values.shape)
                with np.errstate(over="ignore", invalid="ignore"):
                    squares = share @ np.square(slope(places.gradients, powers))
                tuned.scale[k] = 1 / root_or(squares, 1 / tuned.spread[k])
                chosen[k] = places.take(
                    self._rng.choice(len(share), size=self._settings.replicas, p=share)
                )
        starts = [each for each in chosen if each is not None]
        return self._replicas(tuned, joined(starts))

    def _replicas(self, tuned: Tuned, places: Places) -> Replicas:
        settings = self._settings
        return Replicas(
            self._densities,
            self._references,
            tuned,
            places,
            slices_every=1 if settings.explorer == "both" else SLICES_EVERY,
            most_leapfrog_steps=settings.most_leapfrog_steps,
            rng=self._rng,
        )

    # Rounds

    def _tuning_round(self, replicas: Replicas, length: int) -> Round:
        """Make a round of scans in which step sizes are tuned."""
        tuned = replicas.tuned
        rung = np.arange(len(tuned.rungs))
        hmc = np.repeat(~tuned.sliced, replicas.chains)
        group = np.repeat(rung, replicas.chains)[hmc]
        sizes = StepSizes(len(rung), tuned.step_size, _TARGET_ACCEPTANCE)
        made = Round(replicas)
        while len(made.scans) < length:
            if len(made.scans) >= SHORTEST_ROUND and self._late(_WARMUP_SHARE):
                break
            tuned.step_size = sizes.current(rung)
            scan = replicas.scan()
            sizes.learn(group, scan.acceptance.ravel()[hmc])
            made.add(scan)
        tuned.step_size = sizes.tuned(rung)
        return made

    def _try_hops(self, replicas: Replicas, made: Round) -> None:
        """Try slices that are as wide as all draws, and note where they lead across valleys."""
        tuned, scans = replicas.tuned, len(made.scans)
        number = self._trials.affordable(scans, _evaluations(replicas, made))
        if scans < FEWEST_FOR_SCALE or number < 1:
            return
        reach = np.repeat(made.reach(tuned.spread), replicas.chains, axis=0)
        powers = np.repeat(tuned.rungs.powers, replicas.chains, axis=0)
        replicas.places, hopped = self._trials.made(
            self._densities, replicas.places, powers, reach=reach, number=number
        )
        by_rung = hopped.reshape(len(tuned.rungs), replicas.chains, -1)
        tuned.hops = tuned.hops.seen(np.asarray(by_rung.any(axis=1)))

    def _fit_reference(self, replicas: Replicas, made: Round) -> None:
        """Fit the second reference to the target's draws, if there are enough of them."""
        draws = np.stack(made.points, axis=1)
        chains, count, dimension = draws.shape
        if (
            self._fitted is None
            or len(self._references) < 2
            or chains * count < _DRAWS_A_DIMENSION * dimension
        ):
            return
        try:
            fitted = self._fitted(draws)
        except (DataError, SamplingError):  # draws that do not move: the next round's may
            return
        self._use([self._references[0], fitted], replicas)

    def _can_slice(self, replicas: Replicas, rungs: int) -> bool:
        """Whether the fewest draws could be made in time with sweeps at so many rungs."""
        dimension = replicas.places.points.shape[1]
        evaluations = rungs * replicas.chains * dimension * _EVALUATIONS_A_SLICE
        seconds = evaluations * self._elapsed / max(1, self._densities.evaluations)
        return bool(_FEWEST_DRAWS * seconds <= (1 - _WARMUP_SHARE) * self._settings.most_seconds)

    def _second_is_longer(self, made: Round) -> bool:
        """Whether replicas get to the target from the first reference within fewer rungs."""
        rungs, rejection = made.rungs, made.avoidable_rejection()
        barriers = [float(rungs.of_ladder(j, rejection).sum()) for j in range(len(rungs.ladders))]
        return (
            self._fitted is not None and len(barriers) == 2 and barriers[1] > barriers[0] + _LONGER
        )

    def _use(self, references: Sequence[Reference], replicas: Replicas) -> None:
        """Take other references, or one less."""
        spent = self._densities.evaluations
        self._references = list(references)
        self._densities = Densities(self._target, self._references)
        self._densities.evaluations = spent
        replicas.places = self._densities(replicas.places.points)

    def _adapted(self, replicas: Replicas, made: Round) -> Replicas:
        """Place rungs anew along the barrier, and carry over what is known of the old ones."""
        old, settings = replicas.tuned, self._settings
        old.spread, old.scale = made.spread(old.spread), made.scale(old.scale)
        if settings.explorer == "auto" and len(made.scans) >= FEWEST_FOR_SCALE:
            poor = (made.acceptance() < _POOR_ACCEPTANCE) | (old.step_size < _POOR_STEP)
            divergent = made.divergent(later=True) > MOST_DIVERGENT
            if self._can_slice(replicas, int(np.sum(poor | divergent))):
                old.sliced, old.also_sliced = old.sliced | poor, old.also_sliced | divergent
        rejection = made.avoidable_rejection()
        ladders, nearest, spread, scale, step, reach = [], [], [], [], [], []
        ranges = made.reach(old.spread)
        for j, ladder in enumerate(old.rungs.ladders[: len(self._references)]):
            own = old.rungs.of_ladder(j, rejection)
            barrier = communication_barrier(own)
            number = int(np.clip(np.ceil(2 * barrier[-1]) + 2, 4, settings.most_rungs))
            ladders.append(equal_rejection_ladder(ladder, own, number))
            of = old.rungs.rungs_of_ladder(j)
            at = np.linspace(0, barrier[-1], number)
            near = np.abs(at[:, None] - barrier).argmin(axis=1)
            near[1:] = np.maximum(near[1:], 1)  # a reference's state may have no density elsewhere
            nearest.append(of[near])
            reach.append(_between(at, barrier, ranges[of]))
            spread.append(_between(at, barrier, old.spread[of]))
            scale.append(_between(at, barrier, old.scale[of]))
            step.append(_between(at, barrier, old.step_size[of, None])[:, 0])

        def arranged(each: list[Any]) -> Any:
            return np.concatenate([each[0], *(part[-2::-1] for part in each[1:])])

        like = arranged(nearest)
        tuned = Tuned(
            Rungs(ladders),
            spread=arranged(spread),
            scale=arranged(scale),
            step_size=arranged(step),
            sliced=old.sliced[like],
            also_sliced=old.also_sliced[like],
            hops=Hops.within(old.hops.along[like], arranged(reach), _evaluations(replicas, made)),
        )
        rows = like[:, None] * replicas.chains + np.arange(replicas.chains)
        return self._replicas(tuned, replicas.places.take(rows.ravel()))

    def _found(
        self, replicas: Replicas, made: Round, warmup: int, before: tuple[int, float]
    ) -> TemperingRun:
        tuned, settings = replicas.tuned, self._settings
        rungs, rejection = tuned.rungs, made.rejection()
        ladders = []
        for j, ladder in enumerate(rungs.ladders):
            of = rungs.rungs_of_ladder(j)
            ladders.append(
                LadderFound(
                    ladder,
                    rungs.of_ladder(j, rejection),
                    tuned.step_size[of],
                    tuned.sliced[of],
                    tuned.also_sliced[of],
                    tuned.hops.along[of],
                    made.evidence(j, self._references[j]),
                )
            )
        # As many as were asked for, evenly, the last one included; all of them if time ran out.
        every = max(1, len(made.scans) // settings.scans)
        kept = slice(-1 - every * (min(settings.scans, len(made.scans)) - 1), None, every)

        trips = replicas.travels.round_trips.reshape(len(ladders), settings.chains, -1)

        def by_chain(scans: Sequence[FloatArray]) -> FloatArray:
            """Put the draws of a chain's systems one after the other."""
            series = np.stack(scans, axis=1)
            return series.reshape(settings.chains, -1, *series.shape[2:])

        return TemperingRun(
            points=by_chain(made.points[kept]),
            systems=settings.systems,
            log_density=by_chain(made.log_density[kept]),
            acceptance=by_chain([s.acceptance[rungs.target] for s in made.scans[kept]]),
            divergent=float(made.divergent()[rungs.target]),
            ladders=tuple(ladders),
            round_trips=trips.sum(axis=2),
            scans=len(made.scans),
            asked=settings.draws,
            warmup=warmup,
            evaluations_warmup=before[0],
            evaluations=self._densities.evaluations - before[0],
            seconds_warmup=before[1],
            seconds=self._elapsed - before[1],
        )


def _evaluations(replicas: Replicas, made: Round) -> float:
    """Return the evaluations of a replica in a scan of a round, but for hops."""
    return replicas.evaluations / (len(made.scans) * len(replicas.places.points))


def _between(at: FloatArray, barrier: FloatArray, values: FloatArray) -> FloatArray:
    """Interpolate positive values (K, D) at places of the barrier, by their logarithms."""
    columns = [np.interp(at, barrier, column) for column in np.log(values).T]
    return np.asarray(np.exp(np.stack(columns, axis=1)), dtype=np.float64)
