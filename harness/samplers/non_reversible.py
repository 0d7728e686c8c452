"""Non-reversible parallel tempering from one reference or from two, tuned in rounds.

A replica stands at every rung between a reference and the target.  In a scan each replica moves at
its rung (:mod:`harness.samplers.explorers`), draws of a reference that can be drawn from replacing
the replica there, and then neighbours swap, even pairs and odd pairs in turn.  Rounds of scans,
each twice as long as the last, tune the ladder to equal rejection, the number of its rungs to the
communication barrier, and step sizes and scales at each rung to its own draws.  The draws of the
last round, in which nothing changes, are those that count.

With a second reference the target stands between two ladders.  That reference may be a Gaussian
which each round fits to the target's draws: few rungs then reach it, however vague the first one
is.

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

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, LogDensity
from harness.errors import DataError, SamplingError
from harness.evidence import RungEvidence, normalised_weights, rung_evidence
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
from harness.samplers.rung_replicas import Explorer, Replicas, Scan, Tuned

FEW_TRIPS = 10
"""Round trips of all systems together, from one reference, that are too few; ours."""

_TARGET_ACCEPTANCE = 0.8
_POOR_ACCEPTANCE, _POOR_STEP = 0.5, 0.05
"""Below either, auto takes slice sampling at a rung; the step is in the rung's own scales."""
_LEAST_SPREAD = 0.05  # of the first guess at a rung's spread, as a share of the reference's
_SHORTEST_ROUND = 4
_FEWEST_FOR_SCALE = 32  # draws at a rung, or scans, below which they do not tell how to move there
_DRAWS_A_DIMENSION = 20  # below which no reference is fitted to them
_FEWEST_DRAWS = 20  # of a chain, which are made whatever the time is
_WARMUP_SHARE = 0.5  # of the time
_MOST_EVERY = 64  # scans a draw, however much time there is

Fitted = Callable[[FloatArray], Reference]
"""Makes a reference from draws of the target, shape (n, D)."""


@dataclass(frozen=True)
class TemperingSettings:
    """Settings of non-reversible parallel tempering.

    Attributes
    ----------
    chains
        Independent systems of replicas; each is a chain of draws.
    draws, warmup
        Draws to keep of each, one a scan of the last round, and scans before it.
    explorer
        What moves replicas.
    most_leapfrog_steps
        Most leapfrog steps of a trajectory.
    most_rungs
        Most rungs of each ladder.
    most_seconds
        Seconds of wall time after which no further scan is begun.  Until then rounds go on, twice
        as long each, while there are too few round trips (:data:`FEW_TRIPS`, or none in a system).

    Raises
    ------
    DataError
        If a setting is out of its range.
    """

    chains: int = 4
    draws: int = 1000
    warmup: int = 1000
    explorer: Explorer = "auto"
    most_leapfrog_steps: int = 16
    most_rungs: int = 64
    most_seconds: float = math.inf

    def __post_init__(self) -> None:
        if self.chains < 1 or self.draws < 4 or self.warmup < _SHORTEST_ROUND:
            raise DataError(
                f"parallel tempering needs 1 chain, 4 draws and {_SHORTEST_ROUND} scans of warm-up "
                f"or more; got {self.chains}, {self.draws} and {self.warmup}"
            )
        if self.explorer not in get_args(Explorer):
            known = ", ".join(get_args(Explorer))
            raise DataError(f"the explorer must be one of {known}; got '{self.explorer}'")
        if self.most_leapfrog_steps < 1 or self.most_rungs < 3:
            raise DataError("parallel tempering needs a leapfrog step and three rungs or more")
        if not self.most_seconds > 0:
            raise DataError(f"the time is more than 0 seconds; got {self.most_seconds}")

    def rounds(self) -> list[int]:
        """Return the scans of each round of warm-up: each about twice as long as the last."""
        lengths = [max(_SHORTEST_ROUND, -(-self.warmup // 2))]
        while sum(lengths) < self.warmup:
            lengths.append(max(_SHORTEST_ROUND, -(-(self.warmup - sum(lengths)) // 2)))
        return lengths[::-1]


@dataclass(frozen=True)
class LadderFound:
    """What a run found out along one ladder.

    Attributes
    ----------
    inv_temp
        Inverse temperatures from the reference, 0, to the target, 1, shape (K,).
    rejection
        Rates at which neighbours rejected swaps, shape (K - 1,).
    step_size
        Step sizes, in units of each rung's own scales, shape (K,).
    sliced
        Whether slice sampling has replaced Hamiltonian Monte Carlo there, shape (K,).
    evidence
        Log of the target's normalising constant over the reference's; None if no draw of a rung has
        density at its neighbour.
    """

    inv_temp: FloatArray
    rejection: FloatArray
    step_size: FloatArray
    sliced: npt.NDArray[np.bool_]
    evidence: RungEvidence | None

    @property
    def barrier(self) -> float:
        """Communication barrier Lambda: the sum of the rejection rates."""
        return float(self.rejection.sum())


@dataclass(frozen=True)
class TemperingRun:
    """Draws of the last round, and how it went.

    Attributes
    ----------
    points
        Draws of the target, shape (chains, draws, D).
    log_density
        The target's log density there, shape (chains, draws).
    acceptance
        Acceptance probability of the move at the target before each draw, shape (chains, draws).
    ladders
        What was found along each ladder.
    round_trips
        From each reference to the target and on to a reference, shape (R, chains).
    scans
        Scans of the last round, all of which count for log Z and round trips.
    asked
        Draws that were asked for; there are fewer if the time ran out.
    warmup
        Scans before the last round.
    evaluations_warmup, evaluations
        Points at which the densities were evaluated before the last round, and in it.
    seconds_warmup, seconds
        Wall time, likewise.
    """

    points: FloatArray
    log_density: FloatArray
    acceptance: FloatArray
    ladders: tuple[LadderFound, ...]
    round_trips: npt.NDArray[np.int64]
    scans: int
    asked: int
    warmup: int
    evaluations_warmup: int
    evaluations: int
    seconds_warmup: float
    seconds: float

    @property
    def few_trips(self) -> bool:
        """Whether there were too few round trips from the first reference."""
        first = self.round_trips[0]
        return bool(first.sum() < FEW_TRIPS or first.min() == 0)


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
    """
    tempering = _Tempering(target, references, settings or TemperingSettings(), fitted, seed)
    return tempering.run(candidates, begin_round or (lambda _: None))


class _Round:
    """What a round of scans collects.

    Parameters
    ----------
    replicas
        What makes the scans, which must not change but for its states.
    """

    def __init__(self, replicas: Replicas) -> None:
        rungs, chains = replicas.tuned.rungs, replicas.chains
        self._shape = (len(rungs), chains, -1)
        self._at_target = slice(rungs.target * chains, (rungs.target + 1) * chains)
        # Deviations from one state of each rung, so that nothing large cancels in variances.
        self._centre = replicas.places.points.reshape(self._shape)[:, :1]
        self._sum: FloatArray = np.zeros(self._centre[:, 0].shape)
        self._squares: FloatArray = np.zeros(self._centre[:, 0].shape)
        self._slopes: FloatArray = np.zeros(self._centre[:, 0].shape)
        self._powers = np.repeat(rungs.powers, chains, axis=0)
        self.scans: list[Scan] = []
        self.points: list[FloatArray] = []
        self.log_density: list[FloatArray] = []
        self._chains, self._rungs = chains, rungs

    def add(self, scan: Scan) -> None:
        """Take in a scan."""
        deviation = scan.places.points.reshape(self._shape) - self._centre
        self._sum += deviation.sum(axis=1)
        self._squares += np.square(deviation).sum(axis=1)
        gradient = slope(scan.places.gradients, self._powers).reshape(self._shape)
        with np.errstate(over="ignore"):
            self._slopes += np.square(gradient).sum(axis=1)
        # Copies, so that the states of all other rungs need not be kept.
        self.points.append(scan.places.points[self._at_target].copy())
        self.log_density.append(scan.places.values[self._at_target, 0].copy())
        self.scans.append(scan._replace(places=_NOWHERE))

    def rejection(self) -> FloatArray:
        """Mean rejection rate of each pair, shape (K - 1,)."""
        return np.asarray(1 - np.mean([each.probability for each in self.scans], axis=(0, 2)))

    def avoidable_rejection(self) -> FloatArray:
        """The same where both neighbours have density: the rest no ladder can avoid."""
        swap = np.array([each.probability for each in self.scans])
        possible = np.array([np.isfinite(each.up) & np.isfinite(each.down) for each in self.scans])
        count = np.maximum(possible.sum(axis=(0, 2)), 1)
        return np.asarray(1 - np.where(possible, swap, 0.0).sum(axis=(0, 2)) / count)

    def acceptance(self) -> FloatArray:
        """Mean acceptance rate of the later moves at each rung, shape (K,)."""
        late = self.scans[len(self.scans) // 2 :]
        return np.asarray(np.mean([each.acceptance for each in late], axis=(0, 2)))

    def spread(self, otherwise: FloatArray) -> FloatArray:
        """Standard deviations at each rung, shape (K, D); those given where there are none."""
        count = len(self.scans) * self._chains
        if count < _FEWEST_FOR_SCALE:
            return otherwise
        variance = self._squares / count - np.square(self._sum / count)
        return _root(variance, otherwise)

    def scale(self, otherwise: FloatArray) -> FloatArray:
        """Inverses of root mean squares of gradients, (K, D); those given where there are none."""
        count = len(self.scans) * self._chains
        if count < _FEWEST_FOR_SCALE:
            return otherwise
        return 1 / _root(self._slopes / count, 1 / otherwise)

    def evidence(self, ladder: int, reference: Reference) -> RungEvidence | None:
        """Log of the target's normalising constant over that of a ladder's reference."""
        up = np.stack([each.up for each in self.scans], axis=-1)
        down = np.stack([each.down for each in self.scans], axis=-1)
        if ladder == 1:  # which leads to the target from above
            up, down = -down, -up
        try:
            return rung_evidence(
                self._rungs.of_ladder(ladder, up),
                self._rungs.of_ladder(ladder, down),
                distinct=reference.distinct,
            )
        except DataError:
            return None


_NOWHERE = Places(np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 0, 0)))


class _Tempering:
    """State of a run."""

    def __init__(
        self,
        target: LogDensity,
        references: Sequence[Reference],
        settings: TemperingSettings,
        fitted: Fitted | None,
        seed: int,
    ) -> None:
        self._target, self._references = target, list(references)
        self._settings, self._fitted = settings, fitted
        self._rng = np.random.default_rng([seed, 8])
        self._densities = Densities(target, self._references)
        self._began = time.perf_counter()

    def run(
        self, candidates: Sequence[FloatArray], begin_round: Callable[[str], None]
    ) -> TemperingRun:
        """Run warm-up and the last round."""
        settings = self._settings
        replicas = self._started(candidates)
        scans, lengths = 0, settings.rounds()
        for number, length in enumerate(lengths):
            begin_round(f"tuning: {length} scans of {len(replicas.tuned.rungs)} rungs")
            made = self._tuning_round(replicas, length)
            scans += len(made.scans)
            if number + 1 < len(lengths):
                self._fit_reference(replicas, made)
            replicas = self._adapted(replicas, made)
            if self._late(_WARMUP_SHARE):
                break
        every = 1
        while True:
            before = self._densities.evaluations, self._elapsed
            length = every * settings.draws
            begin_round(f"{length} scans of {len(replicas.tuned.rungs)} rungs for draws")
            made = _Round(replicas)
            while len(made.scans) < length:
                if len(made.scans) >= _FEWEST_DRAWS * every and self._late(1.0):
                    break
                made.add(replicas.scan())
            found = self._found(replicas, made, every, scans, before)
            twice = self._elapsed + 2 * (self._elapsed - before[1])
            if not found.few_trips or twice > settings.most_seconds or every >= _MOST_EVERY:
                return found
            scans += len(made.scans)
            replicas = self._adapted(replicas, made)
            every *= 2

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
        )
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
                tuned.scale[k] = 1 / _root(squares, 1 / tuned.spread[k])
                chosen[k] = places.take(
                    self._rng.choice(len(share), size=self._settings.chains, p=share)
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
            also_slice=settings.explorer == "both",
            most_leapfrog_steps=settings.most_leapfrog_steps,
            rng=self._rng,
        )

    # Rounds

    def _tuning_round(self, replicas: Replicas, length: int) -> _Round:
        """Make a round of scans in which step sizes are tuned."""
        tuned = replicas.tuned
        rung = np.arange(len(tuned.rungs))
        hmc = np.repeat(~tuned.sliced, replicas.chains)
        group = np.repeat(rung, replicas.chains)[hmc]
        sizes = StepSizes(len(rung), tuned.step_size, _TARGET_ACCEPTANCE)
        made = _Round(replicas)
        while len(made.scans) < length:
            if len(made.scans) >= _SHORTEST_ROUND and self._late(_WARMUP_SHARE):
                break
            tuned.step_size = sizes.current(rung)
            scan = replicas.scan()
            sizes.learn(group, scan.acceptance.ravel()[hmc])
            made.add(scan)
        tuned.step_size = sizes.tuned(rung)
        return made

    def _fit_reference(self, replicas: Replicas, made: _Round) -> None:
        """Fit the second reference to the target's draws, if there are enough of them."""
        points = np.concatenate(made.points)
        if (
            self._fitted is None
            or len(self._references) < 2
            or len(points) < _DRAWS_A_DIMENSION * points.shape[1]
        ):
            return
        try:
            self._references[1] = self._fitted(points)
        except (DataError, SamplingError):  # draws that do not move: the next round's may
            return
        spent = self._densities.evaluations
        self._densities = Densities(self._target, self._references)
        self._densities.evaluations = spent
        replicas.places = self._densities(replicas.places.points)

    def _adapted(self, replicas: Replicas, made: _Round) -> Replicas:
        """Place rungs anew along the barrier, and carry over what is known of the old ones."""
        old, settings = replicas.tuned, self._settings
        old.spread, old.scale = made.spread(old.spread), made.scale(old.scale)
        if settings.explorer == "auto" and len(made.scans) >= _FEWEST_FOR_SCALE:
            poor = (made.acceptance() < _POOR_ACCEPTANCE) | (old.step_size < _POOR_STEP)
            old.sliced = old.sliced | poor
        rejection = made.avoidable_rejection()
        ladders, nearest, spread, scale, step, sliced = [], [], [], [], [], []
        for j, ladder in enumerate(old.rungs.ladders):
            own = old.rungs.of_ladder(j, rejection)
            barrier = communication_barrier(own)
            number = int(np.clip(np.ceil(2 * barrier[-1]) + 2, 4, settings.most_rungs))
            ladders.append(equal_rejection_ladder(ladder, own, number))
            of = old.rungs.rungs_of_ladder(j)
            at = np.linspace(0, barrier[-1], number)
            near = np.abs(at[:, None] - barrier).argmin(axis=1)
            near[1:] = np.maximum(near[1:], 1)  # a reference's state may have no density elsewhere
            nearest.append(of[near])
            sliced.append(old.sliced[of[near]])
            spread.append(_between(at, barrier, old.spread[of]))
            scale.append(_between(at, barrier, old.scale[of]))
            step.append(_between(at, barrier, old.step_size[of, None])[:, 0])

        def arranged(each: list[Any]) -> Any:
            return np.concatenate([each[0], *(part[-2::-1] for part in each[1:])])

        kept = (arranged(each) for each in (spread, scale, step, sliced))
        tuned = Tuned(Rungs(ladders), *kept)
        rows = arranged(nearest)[:, None] * replicas.chains + np.arange(replicas.chains)
        return self._replicas(tuned, replicas.places.take(rows.ravel()))

    def _found(
        self, replicas: Replicas, made: _Round, every: int, warmup: int, before: tuple[int, float]
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
                    made.evidence(j, self._references[j]),
                )
            )
        kept = slice(every - 1, None, every)
        return TemperingRun(
            points=np.stack(made.points[kept], axis=1),
            log_density=np.stack(made.log_density[kept], axis=1),
            acceptance=np.stack([s.acceptance[rungs.target] for s in made.scans[kept]], axis=1),
            ladders=tuple(ladders),
            round_trips=replicas.travels.round_trips,
            scans=len(made.scans),
            asked=settings.draws,
            warmup=warmup,
            evaluations_warmup=before[0],
            evaluations=self._densities.evaluations - before[0],
            seconds_warmup=before[1],
            seconds=self._elapsed - before[1],
        )


def _root(squares: FloatArray, otherwise: FloatArray) -> FloatArray:
    """Return square roots of mean squares, and what is given where those are of no use."""
    known = np.isfinite(squares) & (squares > 0)
    return np.where(known, np.sqrt(np.where(known, squares, 1.0)), otherwise)


def _between(at: FloatArray, barrier: FloatArray, values: FloatArray) -> FloatArray:
    """Interpolate positive values (K, D) at places of the barrier, by their logarithms."""
    columns = [np.interp(at, barrier, column) for column in np.log(values).T]
    return np.asarray(np.exp(np.stack(columns, axis=1)), dtype=np.float64)
