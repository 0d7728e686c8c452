"""Metropolis with a function for log Z(theta): exact where Z can be added up, else approximate.

With an exact log Z it is the truth that the other samplers are compared with (Murray 2007,
Algorithm 5.1).  With an approximation, such as those of :mod:`harness.intractable.approximate`, its
draws are of another posterior, and nothing in them shows how far away that is (section 5.2).

References
----------
Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.fit import Fit
from harness.intractable.problem import IntractableProblem
from harness.intractable.proposals import Proposal
from harness.intractable.run import Starts, sampled

METHOD = "known_constant"

LogConstant = Callable[[FloatArray], FloatArray]
"""Points (n, D) to log Z(theta), shape (n,)."""


@dataclass(frozen=True)
class KnownConstant:
    """The difference of a function for log Z; its value at the current point is remembered."""

    log_constant: LogConstant

    def start(
        self, problem: IntractableProblem, points: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """See :class:`harness.intractable.run.Correction`."""
        value = np.asarray(self.log_constant(points), dtype=np.float64)
        if value.shape != (len(points),) or not np.isfinite(value).all():
            raise DataError(
                f"log Z of {problem.name} must be a finite number at each of {len(points)} points; "
                f"got shape {value.shape}"
            )
        return value

    def __call__(
        self,
        problem: IntractableProblem,
        points: FloatArray,
        proposed: FloatArray,
        memory: FloatArray,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, FloatArray]:
        """See :class:`harness.intractable.run.Correction`."""
        there = self.start(problem, proposed, rng)
        return memory - there, there


def metropolis(
    problem: IntractableProblem,
    starts: Starts,
    *,
    log_constant: LogConstant,
    proposal: Proposal | npt.ArrayLike,
    draws: int,
    seed: int,
    chains: int = 4,
    warmup: int | None = None,
    thin: int = 1,
    adapt: bool = True,
) -> Fit:
    """Sample with a function for log Z(theta).

    Parameters
    ----------
    log_constant
        Points (n, D) to log Z(theta), (n,), of the likelihood of all the data: with N independent
        observations it is N times that of one.
    problem, starts, proposal, draws, seed, chains, warmup, thin, adapt
        The same as for :func:`harness.intractable.exchange.exchange`.  The simulator is not used.

    Returns
    -------
    Fit
        As :func:`harness.intractable.exchange.exchange`.

    Raises
    ------
    DataError
        For the same reasons, and if log Z has another shape or is not finite.
    """
    return sampled(
        METHOD,
        problem,
        KnownConstant(log_constant),
        starts,
        proposal=proposal,
        draws=draws,
        chains=chains,
        warmup=warmup,
        thin=thin,
        adapt=adapt,
        seed=seed,
        settings={},
    )
