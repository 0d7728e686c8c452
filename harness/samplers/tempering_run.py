"""Settings and result of non-reversible parallel tempering.

References
----------
Margossian, C. C., Hoffman, M. D., Sountsov, P., Riou-Durand, L., Vehtari, A. and Gelman, A. (2024).
Nested R-hat: assessing the convergence of Markov chain Monte Carlo when running many short chains.
Bayesian Analysis 19.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

import numpy as np
import numpy.typing as npt

from harness import evidence
from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import RungEvidence
from harness.samplers.rung_replicas import Explorer

FEW_TRIPS = 10
"""Round trips of all systems together, from one reference, that are too few; ours."""

MOST_DIVERGENT = 1e-3
"""Share of divergent trajectories above which a part of the target may be missing; ours.

Where nothing is sharp there are none at all: in the necks of funnels and at bends it is 0.004 and
more.
"""

SHORTEST_ROUND = 4
"""Fewest scans of a round of warm-up."""


@dataclass(frozen=True)
class Enough:
    """What draws are enough, so that the last round need not go on.

    Attributes
    ----------
    effective
        Effective draws of each coordinate on the unconstrained space.
    r_hat
        Largest R-hat of a coordinate.
    error
        Standard error of log Z, in nats, along the ladder where it is smaller.
    """

    effective: float = 0.0
    r_hat: float = math.inf
    error: float = math.inf


ANY = Enough()
"""However many draws there are."""


@dataclass(frozen=True)
class TemperingSettings:
    """Settings of non-reversible parallel tempering.

    Attributes
    ----------
    chains
        Chains of draws.
    draws, warmup
        Draws to keep of each, one a scan of the last round, and scans before it.
    systems
        Independent systems of replicas for each chain, which holds their draws one after the other.
        All systems move in the same calls of the density, so that several cost little more than one
        where a density takes less time than what Python does around it; and R-hat compares chains
        that are worth several systems (as in Margossian et al. 2024).
    explorer
        What moves replicas.
    most_leapfrog_steps
        Most leapfrog steps of a trajectory.
    most_rungs
        Most rungs of each ladder.
    most_seconds
        Seconds of wall time after which no further scan is begun.  Until then rounds go on, twice
        as long each, while there are too few round trips (:data:`FEW_TRIPS`, or none in a chain),
        and then the last round goes on until the draws are enough.
    enough
        What draws are enough.

    Raises
    ------
    DataError
        If a setting is out of its range.
    """

    chains: int = 4
    draws: int = 1000
    warmup: int = 1000
    systems: int = 1
    explorer: Explorer = "auto"
    most_leapfrog_steps: int = 16
    most_rungs: int = 64
    most_seconds: float = math.inf
    enough: Enough = ANY

    def __post_init__(self) -> None:
        if self.chains < 1 or self.draws < 4 or self.warmup < SHORTEST_ROUND:
            raise DataError(
                f"parallel tempering needs 1 chain, 4 draws and {SHORTEST_ROUND} scans of warm-up "
                f"or more; got {self.chains}, {self.draws} and {self.warmup}"
            )
        if self.systems < 1:
            raise DataError(f"each chain needs a system of replicas or more; got {self.systems}")
        if self.explorer not in get_args(Explorer):
            known = ", ".join(get_args(Explorer))
            raise DataError(f"the explorer must be one of {known}; got '{self.explorer}'")
        if self.most_leapfrog_steps < 1 or self.most_rungs < 3:
            raise DataError("parallel tempering needs a leapfrog step and three rungs or more")
        if not self.most_seconds > 0:
            raise DataError(f"the time is more than 0 seconds; got {self.most_seconds}")

    @property
    def replicas(self) -> int:
        """Replicas at each rung: one of each system."""
        return self.chains * self.systems

    @property
    def scans(self) -> int:
        """Scans that make the draws asked for."""
        return -(-self.draws // self.systems)

    def rounds(self) -> list[int]:
        """Return the scans of each round of warm-up: each about twice as long as the last."""
        lengths = [max(SHORTEST_ROUND, -(-self.warmup // 2))]
        while sum(lengths) < self.warmup:
            lengths.append(max(SHORTEST_ROUND, -(-(self.warmup - sum(lengths)) // 2)))
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
    also_sliced
        Whether slice sampling has followed Hamiltonian Monte Carlo there, shape (K,).
    hops
        Along which coordinates wide slices have led from mode to mode there, shape (K, D).
    evidence
        Log of the target's normalising constant over the reference's; None if no draw of a rung has
        density at its neighbour.
    """

    inv_temp: FloatArray
    rejection: FloatArray
    step_size: FloatArray
    sliced: npt.NDArray[np.bool_]
    also_sliced: npt.NDArray[np.bool_]
    hops: npt.NDArray[np.bool_]
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
        Draws of the target, shape (chains, draws, D); of a chain's systems one after the other.
    systems
        Systems of replicas for each chain.
    log_density
        The target's log density there, shape (chains, draws).
    acceptance
        Acceptance probability of the move at the target before each draw, shape (chains, draws).
    divergent
        Share of the trajectories at the target that diverged.
    ladders
        What was found along each ladder.
    round_trips
        From each reference to the target and on to a reference, shape (R, chains): those of all
        systems of a chain.
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
    systems: int
    log_density: FloatArray
    acceptance: FloatArray
    divergent: float
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

    def is_enough(self, wanted: Enough) -> bool:
        """Whether there are as many effective draws as wanted, and log Z is as precise."""
        errors = [each.evidence.log_evidence.mcse for each in self.ladders if each.evidence]
        if min(errors, default=math.inf) > wanted.error:
            return False
        if math.isfinite(wanted.r_hat) and evidence.largest_r_hat(self.points) > wanted.r_hat:
            return False
        if wanted.effective <= 0:
            return True
        runs = evidence.apart(self.points, self.systems)
        even = np.zeros(runs.shape[:2])
        return bool(np.nanmin(evidence.effective_draws(runs, even)) >= wanted.effective)
