"""Swaps between neighbours on a ladder, even pairs and odd pairs in turn.

Whether or not the last swap succeeded, so that replicas travel along the ladder rather than
diffuse.

References
----------
Okabe, T., Kawata, M., Okamoto, Y. and Mikami, M. (2001). Replica-exchange Monte Carlo method for
the isobaric-isothermal ensemble. Chemical Physics Letters 335, 435-439.

Syed, S., Bouchard-Cote, A., Deligiannidis, G. and Doucet, A. (2021). Non-reversible parallel
tempering: a scalable highly parallel MCMC scheme. Journal of the Royal Statistical Society B 84,
321-350.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray


class Swaps(NamedTuple):
    """One round of swaps between neighbours."""

    probability: FloatArray
    """Probability that each pair (k, k + 1) would swap, shape (K - 1, C)."""
    source: npt.NDArray[np.intp]
    """Rung from which each rung's next state comes, shape (K, C)."""


def even_odd_swaps(log_ratio: FloatArray, parity: int, rng: np.random.Generator) -> Swaps:
    """Swap the even pairs of neighbours, or the odd ones, each with probability min(1, ratio).

    Parameters
    ----------
    log_ratio
        Log of gamma_k(x_(k+1)) gamma_(k+1)(x_k) / (gamma_k(x_k) gamma_(k+1)(x_(k+1))) of each pair
        (k, k + 1) in each of C ladders, shape (K - 1, C); -inf where a state has no density at the
        other rung.
    parity
        0 for pairs (0, 1), (2, 3), ...; 1 for (1, 2), (3, 4), ....
    rng
        Source of randomness.
    """
    pairs, chains = log_ratio.shape
    probability: FloatArray = np.exp(np.minimum(0.0, log_ratio))
    swap = rng.random((pairs, chains)) < probability
    swap[1 - parity :: 2] = False
    source = np.repeat(np.arange(pairs + 1)[:, None], chains, axis=1)
    source[:-1] += swap
    source[1:] -= swap
    return Swaps(probability, source)


class Travels:
    """Counts round trips of replicas between the references at a ladder's ends and the target.

    Parameters
    ----------
    rungs, chains
        Rungs K of the ladder, and how many ladders C there are.
    target
        Index of the target's rung; every end of the ladder that is not the target is a reference.

    Attributes
    ----------
    round_trips
        Trips from each reference to the target and on to a reference, shape (R, C).
    """

    def __init__(self, rungs: int, chains: int, target: int) -> None:
        self._target = target
        self._references = [end for end in (0, rungs - 1) if end != target]
        self.round_trips = np.zeros((len(self._references), chains), dtype=np.int64)
        # The reference that the replica at a rung was at last, and whether it has seen the target
        # since then.
        self._last = np.full((rungs, chains), -1)
        self._returning = np.zeros((rungs, chains), dtype=np.bool_)
        self._arrive()

    def forget(self) -> None:
        """Count round trips from here, those that are under way included."""
        self.round_trips[:] = 0

    def follow(self, source: npt.NDArray[np.intp]) -> None:
        """Take in where each rung's state has come from, shape (K, C)."""
        self._last = np.take_along_axis(self._last, source, axis=0)
        self._returning = np.take_along_axis(self._returning, source, axis=0)
        self._arrive()

    def _arrive(self) -> None:
        for which, end in enumerate(self._references):
            for start, trips in enumerate(self.round_trips):
                trips += self._returning[end] & (self._last[end] == start)
            self._last[end], self._returning[end] = which, False
        self._returning[self._target] = self._last[self._target] >= 0
