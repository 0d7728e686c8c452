"""Gibbs sweeps of an Ising model as a coupling for latent histories (Murray 2007, section 5.7.2).

A sweep updates the even sites of the torus and then the odd ones.  Site i becomes +1 if its
logistic number is below the log odds of +1 given its neighbours.  For couplings J of 0 or more this
is monotone, so that a lower and an upper bound of the spins are the summary of what is known.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit, logit

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.intractable.latent_history import Mask, States


class EvenThenOdd:
    """Sweeps on a torus with even numbers of rows and columns; points are J and h.

    Spins are (n, rows, columns) and summaries (n, 2, sites), the lower bound first.

    Raises
    ------
    DataError
        If a number is odd or below 4.
    """

    def __init__(self, rows: int, columns: int) -> None:
        if rows % 2 or columns % 2 or min(rows, columns) < 4:
            raise DataError(f"a torus in two colours needs even sides; got {rows} x {columns}")
        self._shape, self._sites = (rows, columns), rows * columns
        site = np.arange(self._sites).reshape(self._shape)
        near = [np.roll(site, shift, axis).ravel() for axis in (0, 1) for shift in (-1, 1)]
        odd = np.add.outer(np.arange(rows), np.arange(columns)).ravel() % 2
        groups = [np.flatnonzero(odd == colour) for colour in (0, 1)]
        self._colours = [(group, [each[group] for each in near]) for group in groups]

    def _odds(self, spins: States, near: list[States], points: FloatArray) -> FloatArray:
        """Return log odds (..., n, sites of a colour) of +1 given the other colour."""
        north, south, west, east = (np.take(spins, each, axis=-1) for each in near)
        odds: FloatArray = 2 * (points[:, :1] * (north + south + west + east) + points[:, 1:])
        return odds

    def _flat(self, states: States) -> States:
        return states.reshape(len(states), self._sites).astype(np.int8)

    def back(
        self, states: States, points: FloatArray, rng: np.random.Generator
    ) -> tuple[States, States]:
        """See :class:`harness.intractable.latent_history.Coupling`.

        The reverse of a sweep updates the colours the other way round, and each update leaves its
        neighbours as they were for the forward one.
        """
        spins, numbers = self._flat(states), np.empty((len(states), self._sites))
        for group, near in reversed(self._colours):
            up = expit(self._odds(spins, near, points))
            v = rng.random(up.shape)
            numbers[:, group] = logit(np.where(spins[:, group] > 0, up * v, up + (1 - up) * v))
            spins[:, group] = np.where(rng.random(up.shape) < up, 1, -1)
        return spins.reshape(states.shape), numbers

    def unknown(self, count: int) -> States:
        """See :class:`harness.intractable.latent_history.Coupling`."""
        bounds = np.array([[-1], [1]], dtype=np.int8)
        return np.broadcast_to(bounds, (count, 2, self._sites)).copy()

    def forward(self, summary: States, numbers: States, points: FloatArray) -> States:
        """See :class:`harness.intractable.latent_history.Coupling`."""
        bounds = summary.swapaxes(0, 1).copy()
        for group, near in self._colours:
            bounds[..., group] = 2 * (numbers[:, group] < self._odds(bounds, near, points)) - 1
        return bounds.swapaxes(0, 1)

    def state(self, summary: States) -> tuple[States, Mask]:
        """See :class:`harness.intractable.latent_history.Coupling`."""
        low, high = summary[:, 0], summary[:, 1]
        return low.reshape(-1, *self._shape), (low == high).all(axis=1)

    def possible(self, summary: States, states: States) -> Mask:
        """See :class:`harness.intractable.latent_history.Coupling`."""
        spins = self._flat(states)
        found: Mask = np.all((summary[:, 0] <= spins) & (spins <= summary[:, 1]), axis=1)
        return found

    def log_transition(self, before: States, after: States, points: FloatArray) -> FloatArray:
        """See :class:`harness.intractable.latent_history.Coupling`."""
        spins, ends = self._flat(before), self._flat(after)
        total = np.zeros(len(spins))
        for group, near in self._colours:
            total += log_expit(ends[:, group] * self._odds(spins, near, points)).sum(axis=1)
            spins[:, group] = ends[:, group]
        return total
