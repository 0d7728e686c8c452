"""Gibbs sweeps of a Potts model, of many lattices at once, and those above a floor.

Nodes without edges between them are updated together: on a checkerboard, half of all at once.

With one coupling J of 0 or more a colour c has the weight exp(J n_c), where n_c neighbours have it.
This is a mixture, whose size does not grow with the number of colours: any of the q colours with
weight q in total, and the colour of the k-th neighbour with weight exp(J r) (exp(J) - 1), where r
of the neighbours before it have that colour.  The sum over a colour's neighbours telescopes.

Above a floor, as nested sampling needs it, colours and a key l are uniform but for the floor: the
number of agreeing edges A must exceed A*, or be equal with l > l* (Murray 2007, eq. 4.31).  The key
is drawn first, given A: then A must reach a lowest number, A* or A* + 1, and a node may take every
colour with which it does.  Nodes of a group know of each other only through A.  So the choice is
prepared for each possible distance from the floor, for all nodes at once, and the nodes then take
theirs one after the other.

References
----------
Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London: sections 2.1.2, 4.4.6 and 4.8.3.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.lattice.graph import Graph, IntArray
from harness.lattice.potts import BoolArray, States, checked_colours
from harness.samplers.nested_particles import Floor


def gibbs_sweep(
    graph: Graph,
    states: States,
    colours: int,
    coupling: npt.ArrayLike,
    rng: np.random.Generator,
) -> None:
    """Draw the colour of every node given the others, in place.

    Parameters
    ----------
    graph
        The graph.
    states
        Shape (R, n); changed.
    colours
        Number of colours q.
    coupling
        J, one number or one for each edge, shape (E,), of any sign.
    rng
        Source of randomness.

    Raises
    ------
    DataError
        If there are too few or too many colours, or couplings for another number of edges.
    """
    checked_colours(colours)
    given = np.asarray(coupling, dtype=np.float64)
    if given.ndim == 0 and given >= 0:
        _equal_sweep(graph, states, colours, float(given), rng)
        return
    if given.shape not in {(), (graph.size,)}:
        raise DataError(f"{graph.size} edges need as many couplings; got shape {given.shape}")
    each = np.append(np.broadcast_to(given, (graph.size,)), 0.0)
    for members, neighbours, edges in graph.groups:
        log_p = conditional_log_weights(
            neighbour_colours(graph, states, neighbours), colours, each[edges]
        )
        cumulative = np.cumsum(np.exp(log_p - log_p.max(axis=-1, keepdims=True)), axis=-1)
        drawn = rng.random((len(states), len(members), 1)) * cumulative[..., -1:]
        states[:, members] = (drawn >= cumulative[..., :-1]).sum(axis=-1)


def neighbour_colours(graph: Graph, states: States, neighbours: IntArray) -> States:
    """Return the colours of neighbours (d, m), shape (d, R, m); -1 where there is none."""
    if neighbours.size and neighbours.max() < graph.nodes:
        return states.T[neighbours].transpose(0, 2, 1)
    missing = np.full((len(states), 1), -1, dtype=states.dtype)
    return np.concatenate([states, missing], axis=1).T[neighbours].transpose(0, 2, 1)


def conditional_log_weights(near: States, colours: int, coupling: FloatArray) -> FloatArray:
    """Return sum_k J_k delta(c, s_k) for each colour c, shape (R, m, q).

    Parameters
    ----------
    near
        Colours of the neighbours, shape (d, R, m).
    colours
        Number of colours q.
    coupling
        Coupling with each, shape (d, m).
    """
    total = np.zeros((*near.shape[1:], colours))
    for colour, j in zip(near, coupling, strict=True):
        total += np.where(colour[..., None] == np.arange(colours), j[:, None], 0.0)
    return total


def earlier_equal(near: States) -> States:
    """Return how many earlier neighbours have the colour of each, shape (d, R, m)."""
    found = np.zeros_like(near)
    for k in range(1, len(near)):
        for j in range(k):
            found[k] += near[j] == near[k]
    return found


def mixture_weights(near: States, coupling: float) -> FloatArray:
    """Return the weight of each neighbour's colour beside any colour's q; shape (d, R, m).

    Parameters
    ----------
    near
        Colours of the neighbours, shape (d, R, m), -1 for none.
    coupling
        J, 0 or more.
    """
    table = np.exp(coupling * np.arange(len(near) + 1)) * np.expm1(coupling)
    weight: FloatArray = table[earlier_equal(near)]
    if near.size and near.min() < 0:
        weight[near < 0] = 0
    return weight


def _equal_sweep(
    graph: Graph, states: States, colours: int, coupling: float, rng: np.random.Generator
) -> None:
    for members, neighbours, _ in graph.groups:
        near = neighbour_colours(graph, states, neighbours)
        weight = mixture_weights(near, coupling)
        drawn = rng.random((len(states), len(members))) * (colours + weight.sum(axis=0))
        # A drawn number below q is a colour itself.
        chosen = np.minimum(drawn, colours - 1).astype(states.dtype)
        lower = np.full(drawn.shape, float(colours))
        for colour, part in zip(near, weight, strict=True):
            chosen = np.where((drawn >= lower) & (part > 0), colour, chosen)
            lower += part
        states[:, members] = chosen


def lowest_number(
    agree: npt.NDArray[np.intp], floor: Floor, rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Draw a key given the number of agreeing edges; return the number that it then must reach.

    Parameters
    ----------
    agree
        Number of agreeing edges A of each lattice, shape (R,).
    floor
        The floor of each; its log likelihood is a number of agreeing edges, A*.
    rng
        Source of randomness.

    Returns
    -------
    numpy.ndarray
        A* or A* + 1, shape (R,).
    """
    key = floor.draw_key(agree.astype(np.float64), rng)
    lowest = floor.log_likelihood.astype(np.intp)
    return lowest + ((key <= floor.key) & (agree > lowest))


def eligible(near: States) -> BoolArray:
    """Return which neighbours stand for a colour that a node may take, by what it must keep.

    Parameters
    ----------
    near
        Colours of the neighbours, shape (d, R, m), -1 for none.

    Returns
    -------
    BoolArray
        Shape (d, d, R, m): in row b - 1, the neighbours that are the first of a colour that b
        neighbours or more have.  Where a node need not agree with any, all q colours are allowed.
    """
    first = (earlier_equal(near) == 0) & (near >= 0)
    count = np.where(first, same_colour(near), 0)
    level = np.arange(1, len(near) + 1, dtype=near.dtype)
    allowed: BoolArray = count >= level[:, None, None, None]
    return allowed


def same_colour(near: States) -> States:
    """Return how many neighbours have the colour of each, itself included, shape (d, R, m)."""
    count = np.zeros_like(near)
    for colour in near:
        count += near == colour
    return count


def floor_sweep(
    graph: Graph,
    states: States,
    agree: IntArray,
    colours: int,
    floor: Floor,
    rng: np.random.Generator,
) -> None:
    """Draw a key, and the colour of every node given the others, uniformly above a floor, in place.

    Parameters
    ----------
    graph
        The graph.
    states
        Shape (R, n), above the floor; changed.
    agree
        Number of agreeing edges A of each, shape (R,); changed.
    colours
        Number of colours q.
    floor
        The floor of each; its log likelihood is a number of agreeing edges, A*.
    rng
        Source of randomness.
    """
    count = len(states)
    rows = np.arange(count)
    above = agree - lowest_number(agree, floor, rng)
    agree -= above
    for members, neighbours, _ in graph.groups:
        near = neighbour_colours(graph, states, neighbours)
        degree, nodes = len(near), len(members)
        fresh = rng.integers(0, colours, (count, nodes), dtype=states.dtype)
        # In row b, what a node takes that must agree with b neighbours: the first in random order.
        taken = np.empty((degree + 1, count, nodes), dtype=states.dtype)
        taken[0], taken[1:] = fresh, _first_in_random_order(near, rng)
        agreed = np.zeros_like(taken)
        for colour in near:
            agreed += taken == colour
        now = np.zeros((count, nodes), dtype=np.intp)
        for colour in near:
            now += colour == states[:, members]
        # Node by node: a table of changes, by lattice and by distance from the floor.
        change = np.ascontiguousarray((agreed - now).transpose(2, 1, 0)).reshape(nodes, -1)
        lowest = rows * (degree + 1)
        place = np.ascontiguousarray((lowest[:, None] + now).T)
        for row, at in zip(change, place, strict=True):
            at -= above
            np.maximum(at, lowest, out=at)
            above += row.take(at)
        states[:, members] = taken[(place - lowest).T, rows[:, None], np.arange(nodes)]
    agree += above


def _first_in_random_order(near: States, rng: np.random.Generator) -> States:
    """Return a colour drawn uniformly from those eligible, shape (d, R, m); 0 where none is."""
    allowed = eligible(near)
    best = np.zeros(near.shape, dtype=np.uint32)
    chosen = np.zeros_like(near)
    # The lowest bits tell neighbours apart; the others are equal with a probability of 2^-29.
    shift = int(max(len(near), 1)).bit_length()
    order = rng.integers(1 << shift, 1 << 32, near.shape, dtype=np.uint32) >> shift << shift
    for k, colour in enumerate(near):
        mine = allowed[:, k] * (order[k] + np.uint32(k))
        chosen = np.where(mine > best, colour, chosen)
        np.maximum(best, mine, out=best)
    return chosen
