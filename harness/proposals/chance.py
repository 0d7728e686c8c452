"""Random decisions of kernels, all in one place."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.evidence import draw_index

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]


class Chance:
    """What kernels ask when they decide at random, for many chains at once.

    A kernel decides by these methods alone; only a proposal for real numbers uses the generator
    itself.  A subclass can therefore go through every outcome with its probability, which makes the
    kernel's transition matrix on a few states exact.

    Parameters
    ----------
    rng
        Source of randomness.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def happens(self, probability: FloatArray) -> BoolArray:
        """Return whether each of some events happens, given their probabilities, shape (n,)."""
        return np.asarray(self.rng.random(probability.shape) < probability)

    def choose(self, log_weight: FloatArray) -> IntArray:
        """Return an index 0..m-1 of each row, shape (n,), with probability proportional to weight.

        Parameters
        ----------
        log_weight
            Log weights, shape (n, m).  A row in which all weights are zero is drawn from uniformly.
        """
        none = np.isneginf(log_weight).all(axis=1, keepdims=True)
        return draw_index(np.where(none, 0.0, log_weight), self.rng)

    def shuffled(self, count: int, size: int) -> IntArray:
        """Return ``count`` random permutations of 0..size-1, shape (count, size)."""
        return self.rng.permuted(np.tile(np.arange(size, dtype=np.intp), (count, 1)), axis=1)
