"""Bennett's acceptance ratio along couplings of the random-cluster model.

At each coupling of a ladder Swendsen-Wang draws numbers of bonds D.  Between neighbours
Z_N(J') / Z_N(J) follows from the draws of both by the optimal bridge, whose log ratio is
D (log(e^J' - 1) - log(e^J - 1)); and Z_P(J) is Z_N e^(-J E) up to a constant (Murray 2007,
eq. 4.57).

References
----------
Bennett, C. H. (1976). Efficient estimation of free energy differences from Monte Carlo data.
Journal of Computational Physics 22, 245-268.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London: sections 4.7.3 and 4.8.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogEvidence, bridge_sampling
from harness.lattice.graph import Graph
from harness.lattice.potts import log_bond_factor, uniform_states
from harness.lattice.swendsen_wang import swendsen_wang_step


@dataclass(frozen=True)
class BondBridges:
    """Settings of the bridges.

    Attributes
    ----------
    groups
        Independent groups of chains; their spread gives the error.
    chains
        Chains in each group.
    burn, draws
        Steps at each coupling that are dropped, and that are kept.

    Raises
    ------
    DataError
        If there are fewer than 2 groups, no chain, or fewer than 4 draws.
    """

    groups: int = 5
    chains: int = 4
    burn: int = 100
    draws: int = 500

    def __post_init__(self) -> None:
        if self.groups < 2 or self.chains < 1 or self.burn < 0 or self.draws < 4:
            raise DataError(
                "bridges between couplings need 2 groups, 1 chain and 4 draws or more; got "
                f"{self.groups}, {self.chains} and {self.draws}"
            )


def bridged_log_z(
    graph: Graph,
    colours: int,
    couplings: npt.ArrayLike,
    start: LogEvidence,
    settings: BondBridges,
    rng: np.random.Generator,
) -> LogEvidence:
    """Return log Z_P at the last coupling of a ladder, given that at the first.

    Chains go on from one coupling to the next.  The error is that of the mean over the groups, and
    the start's; it knows nothing of a phase that no chain has reached.

    Parameters
    ----------
    graph
        The graph.
    colours
        Number of colours q.
    couplings
        J of each rung, above 0, ascending or descending, shape (K,).
    start
        Log Z_P at the first.
    settings
        Settings.
    rng
        Source of randomness.

    Raises
    ------
    DataError
        If couplings neither ascend nor descend, or are not positive.
    """
    ladder = np.asarray(couplings, dtype=np.float64)
    steps = np.diff(ladder)
    one_way = np.all(steps > 0) or np.all(steps < 0)
    if ladder.ndim != 1 or ladder.size < 2 or ladder.min() <= 0 or not one_way:
        raise DataError("the couplings of bridges ascend or descend, above 0; 2 or more are needed")
    rows = settings.groups * settings.chains
    states = uniform_states(graph, colours, rows, rng)
    counts: list[FloatArray] = []
    for coupling in ladder:
        kept = np.empty((rows, settings.draws))
        for step in range(-settings.burn, settings.draws):
            states, bonds = swendsen_wang_step(graph, states, colours, coupling, rng)
            if step >= 0:
                kept[:, step] = bonds.sum(axis=1)
        counts.append(kept.reshape(settings.groups, settings.chains, -1))
    total = np.zeros(settings.groups)
    for (lower, upper), (below, above) in zip(
        pairwise(log_bond_factor(ladder)), pairwise(counts), strict=True
    ):
        for group in range(settings.groups):
            bridge = bridge_sampling(
                (upper - lower) * above[group], (upper - lower) * below[group].ravel()
            )
            total[group] += bridge.log_evidence.value
    error = float(total.std(ddof=1) / np.sqrt(settings.groups))
    ratio = LogEvidence(float(total.mean()) - float(ladder[-1] - ladder[0]) * graph.size, error)
    return start.plus(ratio)
