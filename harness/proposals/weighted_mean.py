"""Self-normalised means of a long run whose weights come step by step."""

from __future__ import annotations

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError


class WeightedMean:
    """Weighted means of R runs, whose sums are kept relative to the largest weight so far.

    Parameters
    ----------
    runs
        Number R of runs.
    """

    def __init__(self, runs: int) -> None:
        self._largest = np.full(runs, -np.inf)
        self._weight = np.zeros(runs)
        self._value = np.zeros(runs)

    def add(self, log_weight: FloatArray, values: FloatArray) -> None:
        """Add a step's points, with log weights and values of shape (R, K)."""
        largest = np.maximum(self._largest, log_weight.max(axis=1))
        known = np.where(np.isneginf(largest), 0.0, largest)
        shrink = np.exp(self._largest - known)
        weight = np.exp(log_weight - known[:, None])
        self._weight = self._weight * shrink + weight.sum(axis=1)
        self._value = self._value * shrink + (weight * values).sum(axis=1)
        self._largest = largest

    @property
    def largest_share(self) -> FloatArray:
        """Share of all weight that the largest single weight has, shape (R,)."""
        self._check()
        return 1 / self._weight

    @property
    def value(self) -> FloatArray:
        """Means, shape (R,).

        Raises
        ------
        DataError
            If no point of a run had a weight above zero.
        """
        self._check()
        return self._value / self._weight

    def _check(self) -> None:
        if np.isneginf(self._largest).any():
            raise DataError("a weighted mean needs a point with a weight above zero in every run")
