"""A walk on a few states, along every path at once, so that algorithms can be summed exactly."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from harness.arrays import FloatArray
from harness.samplers.annealing import BoolArray
from harness.samplers.kernels import MovedWithMomentum, PartialHmc

IntArray = npt.NDArray[np.intp]


class Paths(NamedTuple):
    """Walkers that follow prescribed paths, and how probable each path is."""

    way: IntArray
    """States to come to, one after the other, shape (n, 1 + moves)."""
    moves: int
    """Moves made."""
    probability: FloatArray
    """Of the moves made, given the start, shape (n,)."""

    @property
    def here(self) -> IntArray:
        return self.way[:, self.moves]


class DiscreteWalk:
    """Transitions of each rung as matrices, row to column; none of them reversible in general.

    Parameters
    ----------
    base
        Probabilities under the base, shape (states,).
    rise
        log gamma - log zeta - log b, shape (states,).
    ladder
        Inverse temperatures.
    transition
        T of each rung, shape (rungs, states, states).
    """

    def __init__(
        self, base: FloatArray, rise: FloatArray, ladder: FloatArray, transition: FloatArray
    ) -> None:
        self.base, self.rise, self.ladder, self.transition = base, rise, ladder, transition
        self.density = base * np.exp(ladder[:, None] * rise)
        self.density /= self.density.sum(axis=1, keepdims=True)
        self.reversal = (
            transition.transpose(0, 2, 1) * self.density[:, None, :] / self.density[:, :, None]
        )

    def all_paths(self, moves: int) -> Paths:
        states = range(self.base.size)
        way = np.array(list(itertools.product(states, repeat=moves + 1)), dtype=np.intp)
        return Paths(way, 0, np.ones(len(way)))

    def ascent(self, chains: Paths) -> FloatArray:
        return self.rise[chains.here]

    def move(self, chains: Paths, rung: int, backward: BoolArray) -> Paths:
        there = chains.way[:, chains.moves + 1]
        probability = np.where(
            backward,
            self.reversal[rung][chains.here, there],
            self.transition[rung][chains.here, there],
        )
        return Paths(chains.way, chains.moves + 1, chains.probability * probability)


def record_directions(monkeypatch: pytest.MonkeyPatch) -> list[BoolArray]:
    """Return a list to which every transition of partially refreshed HMC adds who goes backward."""
    seen: list[BoolArray] = []
    move = PartialHmc.move

    def recording(*args: Any, backward: BoolArray, **settings: Any) -> MovedWithMomentum:
        seen.append(backward)
        return move(*args, backward=backward, **settings)

    monkeypatch.setattr(PartialHmc, "move", recording)
    return seen


def scans(density: FloatArray) -> FloatArray:
    """Metropolis swaps of neighbouring states, one after the other: invariant, not reversible."""
    size = density.size
    whole = np.eye(size)
    for low in range(size - 1):
        swap = np.eye(size)
        for here, there in ((low, low + 1), (low + 1, low)):
            accept = 0.9 * min(1.0, density[there] / density[here])
            swap[here, here], swap[here, there] = 1 - accept, accept
        whole = whole @ swap
    return whole


def scanning_walk(ladder: FloatArray) -> DiscreteWalk:
    """A walk on three states whose transitions are :func:`scans`."""
    base, rise = np.array([0.5, 0.2, 0.3]), np.array([-0.4, 1.3, 0.2])
    density = base * np.exp(ladder[:, None] * rise)
    return DiscreteWalk(base, rise, ladder, np.array([scans(p / p.sum()) for p in density]))
