"""Moves by way of a pivot state, from which all candidates are drawn.

Any pair of transitions that are each other's reversal makes an overrelaxed transition, or one that
goes on in a direction for many steps.  The improved dynamics by themselves do not pay for K draws a
step (Murray 2007, section 3.4.2): draws from one state must be cheaper together than one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import normalised_weights
from harness.proposals.chains import Chains, Density, evaluated
from harness.proposals.chance import Chance, IntArray
from harness.proposals.overrelaxation import Key, Overrelaxed, Sizes, ordered_overrelaxation
from harness.proposals.proposal import Proposal
from harness.proposals.reflect import reflect_probabilities

Transition = Callable[[FloatArray, Chance], FloatArray]
"""A step of a Markov chain from each of some points; both have shape (n, D)."""

Move = Literal["weights", "reflect"]
"""A choice in proportion to the weights, or the reflect move in the order of the keys."""


class Pair(NamedTuple):
    """Two states of each chain, of which each has the target's distribution."""

    first: FloatArray
    """Shape (n, D)."""
    second: FloatArray
    """Shape (n, D); given the first it is a step of the reversed transition from there."""


def pivot_transition(
    forward: Transition,
    backward: Transition,
    key: Key,
    points: FloatArray,
    chance: Chance,
    *,
    size: int | Sizes,
) -> Overrelaxed:
    """Step back to a pivot, draw K steps forward from it, move to the opposite place.

    Murray (2007), Algorithm 3.4.  ``draws`` counts the K forward steps.

    Parameters
    ----------
    forward, backward
        T and its reversal, T(x' <- x) p(x) = T~(x <- x') p(x'); the same one if it is reversible.
    key
        What points are sorted by; equal keys are sorted at random.
    points
        Current points, shape (n, D).
    chance
        Source of randomness.
    size
        Number K of steps forward, or bounds between which it adapts itself.

    Raises
    ------
    DataError
        If K is less than 1.
    """
    return _from_pivot(forward, key, points, backward(points, chance), chance, size)


def pivot_persistence(
    forward: Transition,
    backward: Transition,
    key: Key,
    pair: Pair,
    chance: Chance,
    *,
    size: int | Sizes,
) -> Pair:
    """Update each of two states with the other as its pivot, so that they leap over each other.

    They go on in a direction until by chance they keep their order (Murray 2007, section 3.4.2).
    It costs 2 K steps.  Each of the two has the target's distribution if the pair starts from a
    draw x of the target and a step of ``backward`` from x.

    Parameters
    ----------
    pair
        The two states.
    forward, backward, key, chance, size
        As for :func:`pivot_transition`.

    Raises
    ------
    DataError
        If K is less than 1.
    """
    first = _from_pivot(forward, key, pair.first, pair.second, chance, size).points
    second = _from_pivot(backward, key, pair.second, first, chance, size).points
    return Pair(first, second)


def _from_pivot(
    transition: Transition,
    key: Key,
    points: FloatArray,
    pivot: FloatArray,
    chance: Chance,
    size: int | Sizes,
) -> Overrelaxed:
    """Move each point to the opposite place among steps from its pivot."""

    def draw(rows: IntArray, chance: Chance) -> FloatArray:
        return transition(pivot[rows], chance)

    return ordered_overrelaxation(draw, key, points, chance, size)


def pivot_metropolis(
    density: Density,
    to_pivot: Proposal,
    from_pivot: Proposal,
    key: Key,
    chains: Chains,
    chance: Chance,
    *,
    size: int,
    move: Move = "reflect",
) -> Chains:
    """Propose a pivot, K points from the pivot, and move between those and the current point.

    Candidates have the weights q~(z <- s_k) p(s_k) / q(s_k <- z) (Murray 2007, Algorithm 3.5).
    All K evaluations can be made together.

    Parameters
    ----------
    density
        Log density of the target, up to a constant.
    to_pivot, from_pivot
        Proposals q~ and q.
    key
        What points are sorted by for the reflect move; equal keys are sorted at random.
    chains
        Where the chains are, with a density above zero.
    chance
        Source of randomness.
    size
        Number K of proposals.
    move
        How to move between the candidates.

    Raises
    ------
    DataError
        If K is less than 1.
    """
    if size < 1:
        raise DataError(f"a move by way of a pivot needs a proposal or more; got {size}")
    count, dimension = chains.points.shape
    pivot = to_pivot.draw(chains.points, chance)
    drawn = evaluated(density, from_pivot.draw(np.repeat(pivot, size, axis=0), chance))
    every = np.concatenate(
        [chains.points[:, None], drawn.points.reshape(count, size, dimension)], axis=1
    )
    log_density = np.concatenate(
        [chains.log_density[:, None], drawn.log_density.reshape(count, size)], axis=1
    )
    flat, center = every.reshape(-1, dimension), np.repeat(pivot, size + 1, axis=0)
    change = to_pivot.log_density(center, flat) - from_pivot.log_density(flat, center)
    log_weight = log_density + change.reshape(count, size + 1)
    rows = np.arange(count)
    if move == "weights":
        index = chance.choose(log_weight)
    else:
        index = _reflected(log_weight, key(flat).reshape(count, size + 1), chance)
    return Chains(every[rows, index], log_density[rows, index])


def _reflected(log_weight: FloatArray, keys: FloatArray, chance: Chance) -> IntArray:
    """Return where the reflect move goes from the first candidate, shape (n,)."""
    rows = np.arange(len(keys))
    order = np.lexsort((chance.shuffled(*keys.shape), keys), axis=-1)
    probability = normalised_weights(np.take_along_axis(log_weight, order, axis=1))
    onward = reflect_probabilities(probability, np.argmax(order == 0, axis=1))
    with np.errstate(divide="ignore"):
        place = chance.choose(np.log(onward))
    index: IntArray = order[rows, place]
    return index
