"""Swendsen-Wang for bonds with any weights of their number (Murray 2007, Algorithm 4.4).

The random-cluster model of one coupling J > 0 is p(d) proportional to L(d) pi(d), where D is the
number of bonds, C the number of clusters,

    L(d) = (e^J - 1)^D,    pi(d) = q^C / Z_pi,    Z_P(J, q) = e^(-J E) sum_d (e^J - 1)^D q^C.

One step leaves w(D) pi(d) as it is, for any weights w of 0 or more: colour clusters uniformly,
count the A edges that agree, draw a number of bonds D' in proportion to w(D') binom(A, D'), and
place D' bonds uniformly among the A edges.  With w(D) = (e^J - 1)^D it is Swendsen and Wang's.

References
----------
Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London: section 4.7.3.

Murray, I., MacKay, D. J. C., Ghahramani, Z. and Skilling, J. (2006). Nested sampling for Potts
models. Advances in Neural Information Processing Systems 18.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from harness.arrays import FloatArray
from harness.lattice.graph import Graph, IntArray
from harness.lattice.potts import BoolArray, States, agreeing
from harness.lattice.swendsen_wang import draw_colours
from harness.samplers.nested_particles import Floor


def number_probabilities(agree: IntArray, log_w: FloatArray) -> FloatArray:
    """Return the probabilities of each number of bonds given the number of agreeing edges.

    Parameters
    ----------
    agree
        Number of agreeing edges A, shape (R,).
    log_w
        Log weights of 0, ..., E bonds, shape (E + 1,) or (R, E + 1).

    Returns
    -------
    FloatArray
        Proportional to w(D) binom(A, D), shape (R, E + 1).
    """
    number = np.arange(log_w.shape[-1])
    log_factorial = gammaln(number + 1.0)
    left = agree[:, None] - number
    log_choices = log_factorial[agree][:, None] - log_factorial - log_factorial[np.abs(left)]
    log_p = np.where(left >= 0, log_w + log_choices, -np.inf)
    weight = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    probability: FloatArray = weight / weight.sum(axis=1, keepdims=True)
    return probability


def floor_log_weights(floor: Floor, edges: int) -> FloatArray:
    """Return log w of nested sampling: 0 above the floor, log(1 - l*) on it, -inf below.

    Parameters
    ----------
    floor
        The floor of each lattice; its log likelihood is a number of bonds.
    edges
        Number of edges E.

    Returns
    -------
    FloatArray
        Shape (R, E + 1).
    """
    each = Floor(floor.log_likelihood[:, None], floor.key[:, None])
    return each.log_share(np.arange(edges + 1.0))


def place_bonds(same: BoolArray, number: IntArray, rng: np.random.Generator) -> BoolArray:
    """Place some bonds uniformly among the edges that agree.

    Parameters
    ----------
    same
        Which edges agree, shape (R, E).
    number
        How many bonds to place, shape (R,), at most as many as edges agree.

    Returns
    -------
    BoolArray
        Shape (R, E).
    """
    order = np.where(same, rng.random(same.shape), np.inf)
    ascending = np.sort(order, axis=1)
    last = ascending[np.arange(len(same)), np.maximum(number - 1, 0)]
    bonds: BoolArray = order <= np.where(number > 0, last, -1.0)[:, None]
    return bonds


def weighted_bond_step(
    graph: Graph,
    bonds: BoolArray,
    colours: int,
    log_w: FloatArray,
    rng: np.random.Generator,
) -> tuple[BoolArray, IntArray, States]:
    """Make one step of Algorithm 4.4.

    Parameters
    ----------
    graph
        The graph.
    bonds
        Shape (R, E).
    colours
        Number of colours q.
    log_w
        Log weights of 0, ..., E bonds, shape (E + 1,) or (R, E + 1).
    rng
        Source of randomness.

    Returns
    -------
    tuple
        New bonds, shape (R, E), their number, shape (R,), and the colours between, shape (R, n).
    """
    states = draw_colours(graph, bonds, colours, rng)
    same = agreeing(graph, states)
    cumulative = np.cumsum(number_probabilities(same.sum(axis=1), log_w), axis=1)
    drawn = rng.random((len(bonds), 1)) * cumulative[:, -1:]
    number = (cumulative <= drawn).sum(axis=1)
    return place_bonds(same, number, rng), number, states
