"""Auxiliary variable methods: the chain's state has data of its own, bridged to an estimate.

The single auxiliary variable method (SAVM; Moller et al. 2006) and its extension by K bridges
(MAVM) need an estimate of theta before they start.  They are here to compare with:
:mod:`harness.intractable.exchange` needs none, and unlike these it accepts nearly every step that
is small enough.

References
----------
Moller, J., Pettitt, A. N., Reeves, R. and Berthelsen, K. K. (2006). An efficient Markov chain Monte
Carlo method for distributions with intractable normalising constants. Biometrika 93, 451-458.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London: (5.35) and Algorithm 5.4.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.fit import Fit
from harness.intractable.bridging import Bridge, Transition
from harness.intractable.problem import IntractableProblem
from harness.intractable.proposals import Proposal
from harness.intractable.run import Starts, sampled

METHOD = "auxiliary_variables"


@dataclass(frozen=True)
class AuxiliaryVariables:
    """The correction of MAVM; the log product of the current auxiliary data is remembered.

    Attributes
    ----------
    estimate
        The fixed estimate of theta, (D,).
    bridge
        From theta to the estimate; its transition need not be reversible.
    """

    estimate: FloatArray
    bridge: Bridge = field(default_factory=Bridge)

    def start(
        self, problem: IntractableProblem, points: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Return log products of data that are drawn as for a proposal.

        That is not their stationary law, so that a chain must forget it.
        """
        return self.fresh(problem, points, rng)

    def fresh(
        self, problem: IntractableProblem, points: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Return log products (n,) of new auxiliary data at points (n, D)."""
        end = np.broadcast_to(self.estimate, points.shape)
        return self.bridge.log_ratio(problem, points, end, rng)

    def __call__(
        self,
        problem: IntractableProblem,
        points: FloatArray,
        proposed: FloatArray,
        memory: FloatArray,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, FloatArray]:
        """See :class:`harness.intractable.run.Correction`."""
        fresh = self.fresh(problem, proposed, rng)
        return fresh - memory, fresh


def auxiliary_variables(
    problem: IntractableProblem,
    starts: Starts,
    *,
    estimate: npt.ArrayLike,
    proposal: Proposal | npt.ArrayLike,
    draws: int,
    seed: int,
    chains: int = 4,
    warmup: int | None = None,
    thin: int = 1,
    adapt: bool = True,
    bridges: int = 0,
    transition: Transition | None = None,
) -> Fit:
    """Sample a doubly intractable posterior by SAVM (no bridges) or MAVM.

    Parameters
    ----------
    estimate
        A fixed estimate of theta in the problem's coordinates, (D,), for instance by maximum
        pseudo-likelihood.
    problem, starts, proposal, draws, seed, chains, warmup, thin, adapt, bridges, transition
        The same as for :func:`harness.intractable.exchange.exchange`; the transition need not be
        reversible.

    Returns
    -------
    Fit
        As :func:`harness.intractable.exchange.exchange`.

    Raises
    ------
    DataError
        For the same reasons, and if the estimate has another shape than (D,).
    """
    at = np.asarray(estimate, dtype=np.float64)
    if at.shape != (problem.dimension,) or not np.isfinite(at).all():
        raise DataError(
            f"the estimate for {problem.name} must be {problem.dimension} finite numbers; got "
            f"shape {at.shape}"
        )
    return sampled(
        METHOD,
        problem,
        AuxiliaryVariables(at, Bridge(bridges, transition)),
        starts,
        proposal=proposal,
        draws=draws,
        chains=chains,
        warmup=warmup,
        thin=thin,
        adapt=adapt,
        seed=seed,
        settings={"bridges": bridges, "estimate": at.tolist()},
    )
