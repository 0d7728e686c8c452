"""Exact draws of an Ising model with a field on a torus, by coupling from the past.

The model has spins y_i = +1 or -1 on a grid of rows and columns whose edges meet,

    p(y) proportional to exp(J sum_(i,j) y_i y_j + h sum_i y_i),

with each pair of neighbours counted once.  A sweep of Gibbs sampling is driven by one logistic
number a spin.  Coupling from the past (Propp and Wilson 1996) runs it from an unknown state in the
far past until time 0; numbers that belong to a time stay the same when the run begins earlier. What
is known of the state is a summary (Huber 2004; Childs, Patterson and MacKay 2001): each spin is +1,
-1 or unknown.  This also takes a negative J, for which the model is not monotone.

References
----------
Childs, A. M., Patterson, R. B. and MacKay, D. J. C. (2001). Exact sampling from nonattractive
distributions using summary states. Physical Review E 63, 036113.

Huber, M. (2004). Perfect sampling using bounding chains. Annals of Applied Probability 14, 734-753.

Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London: section 2.7.

Propp, J. G. and Wilson, D. B. (1996). Exact sampling with coupled Markov chains and applications to
statistical mechanics. Random Structures and Algorithms 9, 223-252.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError, SamplingError

Spins = npt.NDArray[np.int8]
"""Spins +1 and -1."""


class ExactDraws(NamedTuple):
    """Independent exact draws and what they cost."""

    spins: Spins
    """Shape (n, rows, columns)."""
    sweeps: npt.NDArray[np.int64]
    """Sweeps that each draw took, with those of attempts that began too late; shape (n,)."""


class PastNoise:
    """The random numbers of one block of past sweeps, the same whenever they are asked for.

    Parameters
    ----------
    seed
        Seed of the block.
    shape
        Shape (spins, models) of a sweep's numbers.
    sweeps
        Number of sweeps in the block.
    """

    def __init__(self, seed: int, shape: tuple[int, int], sweeps: int) -> None:
        self._seed, self._shape, self._sweeps = seed, shape, sweeps

    def sweeps(self) -> Iterator[FloatArray]:
        """Yield the numbers of the block's sweeps, oldest first."""
        rng = np.random.default_rng(self._seed)
        for _ in range(self._sweeps):
            yield rng.logistic(size=self._shape)


class IsingTorus:
    """Gibbs sweeps, exact draws and statistics of Ising models on one torus.

    Parameters
    ----------
    rows, columns
        Size of the grid, 3 or more each, so that every spin has four different neighbours.

    Raises
    ------
    DataError
        If there are fewer rows or columns.
    """

    noise: type[PastNoise] = PastNoise
    """Where the random numbers of coupling from the past come from."""
    first_sweeps: int = 8
    """Sweeps of its first attempt; each further attempt begins twice as long ago."""

    def __init__(self, rows: int, columns: int) -> None:
        if min(rows, columns) < 3:
            raise DataError(f"a torus needs 3 rows and columns or more; got {rows} x {columns}")
        self.shape = (rows, columns)
        site = np.arange(rows * columns).reshape(self.shape)
        self._neighbours = np.stack(
            [np.roll(site, shift, axis).ravel() for axis in (0, 1) for shift in (-1, 1)], axis=1
        )

    @property
    def size(self) -> int:
        """Number of spins."""
        return self.shape[0] * self.shape[1]

    @cached_property
    def _classes(self) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Sites of each colour, none next to another of its colour, and their neighbours.

        A sweep updates a colour at a time.
        """
        colour = np.full(self.size, -1)
        for site, near in enumerate(self._neighbours):
            colour[site] = min(set(range(5)) - set(colour[near].tolist()))
        groups = [np.flatnonzero(colour == each) for each in range(colour.max() + 1)]
        return [(group, self._neighbours[group].T.copy()) for group in groups]

    def statistics(self, spins: Spins) -> FloatArray:
        """Return the sum over neighbours y_i y_j and the sum of y_i, shape (..., 2)."""
        right, below = np.roll(spins, -1, axis=-1), np.roll(spins, -1, axis=-2)
        pairs = (spins * (right + below)).sum(axis=(-2, -1), dtype=np.float64)
        return np.stack([pairs, spins.sum(axis=(-2, -1), dtype=np.float64)], axis=-1)

    def neighbour_sums(self, spins: Spins) -> npt.NDArray[np.int8]:
        """Return the sum of the four neighbours of each spin, shape (..., rows, columns)."""
        flat = spins.reshape(*spins.shape[:-2], self.size)
        sums: npt.NDArray[np.int8] = flat[..., self._neighbours].sum(axis=-1, dtype=np.int8)
        return sums.reshape(spins.shape)

    def sweep(
        self,
        spins: Spins,
        coupling: FloatArray,
        field: FloatArray,
        rng: np.random.Generator,
    ) -> Spins:
        """Make one sweep of Gibbs sampling, reversible as a whole: its order of colours is random.

        Parameters
        ----------
        spins
            Shape (n, rows, columns).
        coupling, field
            J and h of each, shape (n,).
        """
        state = spins.reshape(len(spins), self.size).T.copy()
        noise = rng.logistic(size=state.shape)
        for colour in rng.permutation(len(self._classes)):
            group, near = self._classes[colour]
            pull = coupling * _total(state, near)
            state[group] = np.where(pull > 0.5 * noise[group] - field, 1, -1)
        return state.T.reshape(spins.shape)

    def exact(
        self,
        coupling: FloatArray,
        field: FloatArray,
        rng: np.random.Generator,
        *,
        most_sweeps: int = 2**17,
    ) -> ExactDraws:
        """Draw exactly from n models by coupling from the past.

        Parameters
        ----------
        coupling, field
            J and h of each model, shape (n,).
        rng
            Random numbers.
        most_sweeps
            How long ago a run may begin.  Near the critical |J| of 0.44 and beyond, it takes so
            long to forget a start that no draw comes back.

        Raises
        ------
        SamplingError
            If a run that began ``most_sweeps`` ago still depends on its start.
        DataError
            If J and h are not finite and of one shape (n,).
        """
        strength, pull = (np.asarray(each, dtype=np.float64) for each in (coupling, field))
        if strength.shape != pull.shape or strength.ndim != 1:
            raise DataError(
                f"couplings and fields need one shape (n,); got {strength.shape}, {pull.shape}"
            )
        if not (np.isfinite(strength).all() and np.isfinite(pull).all()):
            raise DataError("couplings and fields must be finite")
        count = len(strength)
        drawn = np.empty((self.size, count), dtype=np.int8)
        cost = np.zeros(count, dtype=np.int64)
        left = np.arange(count)
        blocks: list[tuple[PastNoise, npt.NDArray[np.int64]]] = []
        length = self.first_sweeps
        while len(left):
            if length > most_sweeps:
                raise SamplingError(
                    f"{len(left)} of {count} exact draws still depend on their start after "
                    f"{length // 2} sweeps: the largest |J| is {np.abs(strength[left]).max():.3g}, "
                    "and coupling from the past needs it well below 0.44; narrow the prior of J"
                )
            age = length if not blocks else length // 2
            seed = int(rng.integers(2**63))
            blocks.append((self.noise(seed, (self.size, len(left)), age), left))
            low = np.full((self.size, len(left)), -1, dtype=np.int8)
            high = np.ones_like(low)
            for block, owners in reversed(blocks):
                kept = slice(None) if len(owners) == len(left) else np.searchsorted(owners, left)
                for noise in block.sweeps():
                    self._summary_sweep(low, high, strength[left], pull[left], noise[:, kept])
            cost[left] += length
            known = (low == high).all(axis=0)
            drawn[:, left[known]] = low[:, known]
            left = left[~known]
            length *= 2
        return ExactDraws(drawn.T.reshape(count, *self.shape), cost)

    def _summary_sweep(
        self, low: Spins, high: Spins, coupling: FloatArray, field: FloatArray, noise: FloatArray
    ) -> None:
        """Move what is known of the spins by one sweep: between ``low`` and ``high``, (N, n)."""
        for group, near in self._classes:
            threshold = 0.5 * noise[group] - field
            one, two = coupling * _total(low, near), coupling * _total(high, near)
            low[group] = np.where(np.minimum(one, two) > threshold, 1, -1)
            high[group] = np.where(np.maximum(one, two) > threshold, 1, -1)


def _total(state: Spins, near: npt.NDArray[np.int64]) -> Spins:
    """Add the four neighbours' spins of each site of a colour, (sites, n)."""
    north, south, west, east = near
    total: Spins = state[north] + state[south] + state[west] + state[east]
    return total
