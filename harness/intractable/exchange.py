"""The exchange algorithm, which needs no normalising constant, with or without bridging.

Propose theta', draw x exactly from f(.; theta') / Z(theta'), and accept with the ratio

    [q(theta | theta') p(theta') f(y; theta')] / [q(theta' | theta) p(theta) f(y; theta)]
        * f(x; theta) / f(x; theta').

The last factor estimates Z(theta) / Z(theta'), and the posterior is exact all the same.  With
bridges the factor is the product of :mod:`harness.intractable.bridging` from theta' to theta.

References
----------
Murray, I., Ghahramani, Z. and MacKay, D. J. C. (2006). MCMC for doubly-intractable distributions.
Uncertainty in Artificial Intelligence 22, 359-366.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London: Algorithms 5.2 and 5.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.fit import Fit
from harness.intractable.bridging import Bridge, Transition
from harness.intractable.problem import IntractableProblem
from harness.intractable.proposals import Proposal
from harness.intractable.run import Starts, sampled

METHOD = "exchange"


@dataclass(frozen=True)
class Exchange:
    """The correction of the exchange algorithm; nothing is remembered."""

    bridge: Bridge = field(default_factory=Bridge)

    def start(
        self, problem: IntractableProblem, points: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """See :class:`harness.intractable.run.Correction`."""
        return np.zeros(len(points))

    def __call__(
        self,
        problem: IntractableProblem,
        points: FloatArray,
        proposed: FloatArray,
        memory: FloatArray,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, FloatArray]:
        """See :class:`harness.intractable.run.Correction`."""
        return self.bridge.log_ratio(problem, proposed, points, rng), memory


def exchange(
    problem: IntractableProblem,
    starts: Starts,
    *,
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
    """Sample a doubly intractable posterior by the exchange algorithm.

    Parameters
    ----------
    problem
        Prior, unnormalised likelihood and simulator.
    starts
        A point (D,), one for each chain (chains, D), or parameters by name.  R-hat can only say
        something if chains start in different places.
    proposal
        The width of a Gaussian walk in the problem's coordinates, one for all or one for each; or
        any :class:`harness.intractable.proposals.Proposal`.
    draws
        Draws of each chain that are kept.
    seed
        Seed; the same seed gives the same fit.
    chains
        Number of chains, which run together: functions of the problem get all their points at once.
    warmup
        Iterations before the first draw; by default half as many as draws.
    thin
        Iterations for each draw that is kept.
    adapt
        Whether warm-up scales the widths of a walk towards an acceptance of 0.3.
    bridges
        Number K of intermediate densities.
    transition
        A reversible transition on the data, needed if there are bridges.

    Returns
    -------
    Fit
        Unweighted draws of the posterior.  ``lp`` in the sample statistics is log p(theta) +
        log f(y; theta), without Z(theta).

    Raises
    ------
    DataError
        If a setting does not fit the problem, or one of the problem's functions returns what it
        must not.
    """
    return sampled(
        METHOD,
        problem,
        Exchange(Bridge(bridges, transition)),
        starts,
        proposal=proposal,
        draws=draws,
        chains=chains,
        warmup=warmup,
        thin=thin,
        adapt=adapt,
        seed=seed,
        settings={"bridges": bridges},
    )
