"""Every outcome of a kernel on a few states, with its probability: transition matrices, exactly."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from harness.arrays import FloatArray
from harness.proposals import Chance
from harness.proposals.chance import BoolArray, IntArray

T = TypeVar("T")


class Script(Chance):
    """Goes through all outcomes of one chain's decisions, one after the other.

    ``run`` calls what is to be enumerated again and again, each time with other decisions.
    """

    def __init__(self, *, sorted_ties: bool = False) -> None:
        super().__init__(np.random.default_rng(0))
        self._sorted_ties = sorted_ties
        self._way: list[int] = []
        self._options: list[FloatArray] = []
        self._at = 0

    def _take(self, probability: FloatArray) -> int:
        if self._at == len(self._way):
            self._way.append(int(np.flatnonzero(probability > 0)[0]))
            self._options.append(probability)
        self._at += 1
        return self._way[self._at - 1]

    def happens(self, probability: FloatArray) -> BoolArray:
        return np.array([bool(self._take(np.array([1 - p, p]))) for p in probability])

    def choose(self, log_weight: FloatArray) -> IntArray:
        chosen = []
        for row in log_weight:
            weight = np.ones(row.size) if np.isneginf(row).all() else np.exp(row - row.max())
            chosen.append(self._take(weight / weight.sum()))
        return np.array(chosen, dtype=np.intp)

    def shuffled(self, count: int, size: int) -> IntArray:
        every = list(itertools.permutations(range(size)))
        if self._sorted_ties:
            every = every[:1]
        share = np.full(len(every), 1 / len(every))
        return np.array([every[self._take(share)] for _ in range(count)], dtype=np.intp)

    def run(self, call: Callable[[Chance], T]) -> Iterator[tuple[T, float]]:
        """Return what the call returns for each way of deciding, with the way's probability."""
        while True:
            self._at = 0
            found = call(self)
            yield (
                found,
                float(np.prod([o[i] for o, i in zip(self._options, self._way, strict=True)])),
            )
            while self._way:
                rest = np.flatnonzero(self._options[-1][self._way[-1] + 1 :] > 0)
                if rest.size:
                    self._way[-1] += 1 + int(rest[0])
                    break
                self._way.pop()
                self._options.pop()
            if not self._way:
                return


class States:
    """A density on the states 0, 1, ..., which are points (n, 1)."""

    def __init__(self, probability: FloatArray) -> None:
        self.probability = probability

    def __call__(self, points: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            value: FloatArray = np.log(self.probability[points[:, 0].astype(int)])
        return value


class Matrix:
    """A proposal or a transition on the states, given as a matrix, row to column."""

    def __init__(self, matrix: FloatArray) -> None:
        self.matrix = matrix
        self.symmetric = bool(np.all(matrix == matrix.T))

    def draw(self, here: FloatArray, chance: Chance) -> FloatArray:
        with np.errstate(divide="ignore"):
            log_row = np.log(self.matrix[here[:, 0].astype(int)])
        return chance.choose(log_row)[:, None].astype(np.float64)

    def __call__(self, points: FloatArray, chance: Chance) -> FloatArray:
        return self.draw(points, chance)

    def log_density(self, there: FloatArray, here: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            value: FloatArray = np.log(self.matrix[here[:, 0].astype(int), there[:, 0].astype(int)])
        return value


def state(number: float) -> FloatArray:
    """Return one chain at a state."""
    return np.array([[float(number)]])


def transition_matrix(
    states: int, kernel: Callable[[FloatArray, Chance], FloatArray], *, sorted_ties: bool = False
) -> FloatArray:
    """Return a kernel's transition matrix, row to column."""
    matrix = np.zeros((states, states))
    for here in range(states):

        def move(chance: Chance, here: int = here) -> int:
            return int(kernel(state(here), chance)[0, 0])

        for there, probability in Script(sorted_ties=sorted_ties).run(move):
            matrix[here, there] += probability
    return matrix


def mean_of(probability: FloatArray, estimate: Callable[[FloatArray, Chance], FloatArray]) -> float:
    """Return the mean of an estimate over starts with these probabilities and all outcomes."""
    total = 0.0
    for here, weight in enumerate(probability):

        def one(chance: Chance, here: int = here) -> float:
            return float(estimate(state(here), chance)[0])

        if weight > 0:
            total += weight * sum(value * share for value, share in Script().run(one))
    return total
