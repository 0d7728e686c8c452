r"""The Potts model without a field, in the convention of Murray (2007), eq. 1.4.

    p(s) = exp(sum_(i,j) J_ij (delta(s_i, s_j) - 1)) / Z_P(J, q),   s_i in 0, ..., q - 1.

An edge costs J if its ends differ, so that Z_P(0, q) = q^n, and Z_P(J, q) falls towards q as J
grows on a connected graph.  The Ising model exp(theta sum y_i y_j) with y = +1 or -1 is the one
with q = 2 and J = 2 theta, up to a factor of exp(theta) for each edge.

References
----------
Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London: section 1.1.3, eq. 5.45.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.lattice.graph import Graph

# Colours of nodes, shape (R, n): R lattices at once.
States = npt.NDArray[np.int16]
# Whether each edge of each lattice has a bond, or has ends of one colour: shape (R, E).
BoolArray = npt.NDArray[np.bool_]


def checked_colours(colours: int) -> int:
    """Return a number of colours, if it is one.

    Raises
    ------
    DataError
        If it is not 2 to 32,000.
    """
    if not 2 <= colours <= 32_000:
        raise DataError(f"a Potts model has 2 to 32,000 colours; got {colours}")
    return colours


def uniform_states(graph: Graph, colours: int, count: int, rng: np.random.Generator) -> States:
    """Draw states uniformly, which is the model at J = 0; shape (count, n)."""
    return rng.integers(0, checked_colours(colours), (count, graph.nodes), dtype=np.int16)


def agreeing(graph: Graph, states: States) -> BoolArray:
    """Return whether the ends of each edge have the same colour, shape (R, E)."""
    same: BoolArray = states[:, graph.edges[:, 0]] == states[:, graph.edges[:, 1]]
    return same


def log_weight(graph: Graph, states: States, coupling: npt.ArrayLike) -> FloatArray:
    """Return the exponent of eq. 1.4, shape (R,); its sum over all states is Z_P.

    Parameters
    ----------
    coupling
        J, one number or one for each edge, shape (E,).
    """
    each = np.broadcast_to(np.asarray(coupling, dtype=np.float64), (graph.size,))
    value: FloatArray = (agreeing(graph, states) - 1.0) @ each
    return value


def coupling_of_ising(theta: float) -> float:
    """Return J of the Ising model exp(theta sum y_i y_j)."""
    return 2 * theta


def log_z_of_ising(log_z: float, theta: float, graph: Graph) -> float:
    """Return log sum_y exp(theta sum y_i y_j), given log Z_P(2 theta, 2)."""
    return log_z + theta * graph.size


def log_bond_factor(coupling: npt.ArrayLike) -> FloatArray:
    """Return log(e^J - 1), the log weight of a bond relative to none (eq. 4.57); J above 0."""
    value: FloatArray = np.log(np.expm1(np.asarray(coupling, dtype=np.float64)))
    return value


def ordering_coupling(colours: int) -> float:
    """Return the J at which the model orders on the infinite square lattice, log(1 + sqrt(q)).

    The change is of first order for more than 4 colours.
    """
    return math.log1p(math.sqrt(checked_colours(colours)))


def all_states(nodes: int, colours: int) -> States:
    """Return every state, shape (q^n, n), the last node changing first.

    Raises
    ------
    DataError
        If there are more than two million.
    """
    if colours**nodes > 2_000_000:
        raise DataError(f"{colours} colours on {nodes} nodes have too many states to be listed")
    rows = np.indices((colours,) * nodes).reshape(nodes, -1).T
    return rows.astype(np.int16)
