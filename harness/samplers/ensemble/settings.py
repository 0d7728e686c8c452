"""What a run of interacting walkers is told, checked before it starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import DataError


@dataclass(frozen=True)
class EnsembleSettings:
    """Settings of the ensemble quasi-Newton sampler, and of its special cases.

    ``eta=0`` is Langevin dynamics without preconditioning (BAOAB); walkers then do not interact.
    With ``gamma=0, refresh=True`` besides, it is HMC with a unit metric.

    Attributes
    ----------
    dt
        Step size, in units in which the target's narrowest direction has width of order 1.
    gamma
        Friction; exp(-gamma dt) of the momentum is kept in each step.
    eta
        Weight of the other walkers' covariance in B = chol(I + eta C).
    lam
        Sharpness of the weights of the other walkers, exp(-lam/2 |S (Q - q)|^2); 0 weighs them all
        alike, and then B does not depend on q.
    select
        Indices of the coordinates that enter the distance; by default all.
    scale
        Factors of these coordinates in the distance; by default 1.
    groups
        Number of groups of equal size, which move in turn.
    steps
        Steps T of every walker in a turn of its group.
    metropolis
        Whether to accept or reject; without it there is a bias of order dt^2.
    divergence
        Whether to include div(B^T).  With ``metropolis`` the target is sampled either way.
    reverse_check
        Whether to reject a step that its reverse would not take back.
    steps_per_decision
        Steps n from one Metropolis decision to the next; it divides ``steps``.
    low_rank
        With ``lam=0`` use a symmetric B of low rank, for many dimensions.  Then there may be fewer
        other walkers than dimensions.
    refresh
        Draw all momenta anew at each decision.
    jitter
        Each walker's step size is drawn between (1 - jitter) dt and (1 + jitter) dt for each
        decision.

    Raises
    ------
    DataError
        If a setting is out of its range.
    """

    dt: float
    gamma: float = 1.0
    eta: float = 100.0
    lam: float = 0.0
    select: Sequence[int] | None = None
    scale: Sequence[float] | None = None
    groups: int = 4
    steps: int = 10
    metropolis: bool = True
    divergence: bool = True
    reverse_check: bool = True
    steps_per_decision: int = 1
    low_rank: bool = False
    refresh: bool = False
    jitter: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.dt) and self.dt > 0):
            raise DataError(f"the step size dt must be positive and finite; got {self.dt}")
        for name in ("gamma", "eta", "lam"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise DataError(f"{name} must be 0 or more and finite; got {value}")
        if self.steps < 1 or self.steps_per_decision < 1:
            raise DataError(
                "steps and steps_per_decision are 1 or more; got "
                f"{self.steps} and {self.steps_per_decision}"
            )
        if self.steps % self.steps_per_decision:
            raise DataError(
                f"steps_per_decision must divide the {self.steps} steps of a turn; "
                f"got {self.steps_per_decision}"
            )
        if not 0 <= self.jitter < 1:
            raise DataError(f"the jitter lies in [0, 1); got {self.jitter}")
        if self.groups < (2 if self.interacting else 1):
            raise DataError(
                "walkers are preconditioned by those of other groups, so there must be 2 groups or "
                f"more; got {self.groups}"
            )
        if self.low_rank and self.lam > 0:
            raise DataError("low_rank is for lam = 0, where B does not depend on the place")

    @property
    def interacting(self) -> bool:
        """Whether a walker's moves depend on the others."""
        return self.eta > 0

    @property
    def decisions(self) -> int:
        """Decisions in each turn of a group."""
        return self.steps // self.steps_per_decision

    def check_walkers(self, walkers: int, dimension: int) -> None:
        """Check that there are enough walkers, in groups of equal size.

        Raises
        ------
        DataError
            If there are not.
        """
        if walkers < self.groups or walkers % self.groups:
            raise DataError(
                f"{walkers} walkers do not divide into {self.groups} groups of equal size"
            )
        others = walkers - walkers // self.groups
        if self.interacting and self.lam == 0 and not self.low_rank and others <= dimension:
            raise DataError(
                f"with lam = 0 a walker needs more than {dimension} others, one more than there "
                f"are dimensions, and has {others}: take more walkers, or set low_rank"
            )
