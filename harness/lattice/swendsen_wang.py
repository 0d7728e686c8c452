"""Swendsen-Wang: bonds given colours, and a new colour for each cluster of bonds.

With p = 1 - exp(-J) the joint law of colours and bonds is

    p(s, d) = (1/Z_P) prod_(i,j) [(1 - p) (d = 0) + p (d = 1) (s_i = s_j)],

whose marginal law of colours is the Potts model.  A negative J bonds nodes of *different* colours
with probability 1 - exp(-|J|), which must then stay different; with two colours, a cluster is then
flipped or not.

References
----------
Swendsen, R. H. and Wang, J.-S. (1987). Nonuniversal critical dynamics in Monte Carlo simulations.
Physical Review Letters 58, 86-88.

Edwards, R. G. and Sokal, A. D. (1988). Generalization of the Fortuin-Kasteleyn-Swendsen-Wang
representation and Monte Carlo algorithm. Physical Review D 38, 2009-2012.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London: section 2.4.1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.lattice.graph import Graph, IntArray
from harness.lattice.potts import BoolArray, States, agreeing, checked_colours


def clusters(graph: Graph, bonds: BoolArray) -> tuple[int, IntArray]:
    """Return the connected components of many lattices, found as those of one graph.

    Parameters
    ----------
    bonds
        Which edges have a bond, shape (R, E).

    Returns
    -------
    tuple
        Number of components of all lattices together, and the component of each node, shape
        (R, n); those of different lattices differ.
    """
    count, nodes = len(bonds), graph.nodes
    lattice, edge = np.nonzero(bonds)
    first = graph.edges[edge, 0] + lattice * nodes
    second = graph.edges[edge, 1] + lattice * nodes
    joined = csr_array(
        (np.ones(len(edge), dtype=np.int8), (first, second)), shape=(count * nodes, count * nodes)
    )
    number, label = connected_components(joined, directed=False)
    return int(number), label.reshape(count, nodes).astype(np.intp)


def bond_probabilities(graph: Graph, states: States, coupling: npt.ArrayLike) -> FloatArray:
    """Return the probability of a bond on each edge given colours, shape (R, E)."""
    each = np.broadcast_to(np.asarray(coupling, dtype=np.float64), (graph.size,))
    satisfied = agreeing(graph, states) == (each > 0)
    probability: FloatArray = np.where(satisfied, -np.expm1(-np.abs(each)), 0.0)
    return probability


def draw_bonds(
    graph: Graph, states: States, coupling: npt.ArrayLike, rng: np.random.Generator
) -> BoolArray:
    """Draw bonds given colours, shape (R, E).

    Parameters
    ----------
    coupling
        J, one number or one for each edge, shape (E,).
    """
    bonds: BoolArray = rng.random((len(states), graph.size)) < bond_probabilities(
        graph, states, coupling
    )
    return bonds


def draw_colours(graph: Graph, bonds: BoolArray, colours: int, rng: np.random.Generator) -> States:
    """Draw a colour for each cluster of bonds, uniformly; shape (R, n)."""
    number, label = clusters(graph, bonds)
    states: States = rng.integers(0, checked_colours(colours), number, dtype=np.int16)[label]
    return states


def draw_flips(graph: Graph, bonds: BoolArray, states: States, rng: np.random.Generator) -> States:
    """Exchange the two colours of each cluster with probability one half; shape (R, n)."""
    number, label = clusters(graph, bonds)
    flipped: States = states ^ rng.integers(0, 2, number, dtype=np.int16)[label]
    return flipped


def swendsen_wang_step(
    graph: Graph,
    states: States,
    colours: int,
    coupling: npt.ArrayLike,
    rng: np.random.Generator,
) -> tuple[States, BoolArray]:
    """Draw bonds given colours, and colours given bonds.

    Parameters
    ----------
    graph
        The graph.
    states
        Shape (R, n).
    colours
        Number of colours q.
    coupling
        J, one number or one for each edge, shape (E,).
    rng
        Source of randomness.

    Returns
    -------
    tuple
        New states, shape (R, n), and the bonds that they were drawn with, shape (R, E).

    Raises
    ------
    DataError
        If a coupling is negative and there are more than two colours.
    """
    negative = bool(np.any(np.asarray(coupling) < 0))
    if negative and colours > 2:
        raise DataError(
            f"Swendsen-Wang takes negative couplings with 2 colours only; got {colours}"
        )
    bonds = draw_bonds(graph, states, coupling, rng)
    if negative:
        return draw_flips(graph, bonds, states, rng), bonds
    return draw_colours(graph, bonds, colours, rng), bonds
