"""A move between a few weighted points that tends to the other end of their order."""

from __future__ import annotations

import numpy as np

from harness.arrays import FloatArray
from harness.proposals.chance import IntArray


def reflect_probabilities(probability: FloatArray, index: IntArray) -> FloatArray:
    """Return the probabilities with which the reflect move goes from a point to each of m.

    The points' probabilities are segments of the unit interval.  The segment of the current point
    is reflected in the middle, and the move goes to each segment in proportion to its overlap with
    the reflection (Murray 2007, section 3.5, eq. 3.13).  The overlaps are symmetric, so that the
    move leaves the probabilities invariant.

    Parameters
    ----------
    probability
        Probabilities in their order, shape (n, m), each row with the sum 1.
    index
        Current point of each row, shape (n,), with a probability above zero.

    Returns
    -------
    FloatArray
        Shape (n, m).
    """
    right = probability.cumsum(axis=1)
    right /= right[:, -1:]
    left = np.concatenate([np.zeros((len(right), 1)), right[:, :-1]], axis=1)
    rows = np.arange(len(right))
    low, high = 1 - right[rows, index][:, None], 1 - left[rows, index][:, None]
    overlap = np.clip(np.minimum(right, high) - np.maximum(left, low), 0.0, None)
    whole: FloatArray = overlap / overlap.sum(axis=1, keepdims=True)
    return whole
