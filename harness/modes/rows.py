"""Draws of several methods in rows: what modes are looked for among, and described by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from harness import evidence
from harness.arrays import FloatArray
from harness.modes.regions import Labels
from harness.modes.visits import Visits

NO_WEIGHT = 1e-3
"""Draws with less than this share of the mean weight are in no mode."""
_FEWEST_TO_SCALE = 8
"""Draws in each chain below which they do not tell the size of a coordinate."""


class Rows:
    """Draws that count, those of one method after those of another.

    Parameters
    ----------
    visits
        Draws of each method; those of the first one are the final draws.
    effective
        Number of independent draws that the final draws are worth.
    rng
        Random numbers.
    """

    def __init__(
        self, visits: Sequence[Visits], effective: float, rng: np.random.Generator
    ) -> None:
        self.visits, self._effective, self._rng = tuple(visits), effective, rng
        rows, places = [], []
        for number, each in enumerate(visits):
            counts = each.weight * each.weight.size > NO_WEIGHT
            counts &= np.all(np.isfinite(each.points), axis=-1)
            where = np.flatnonzero(counts)
            rows.append(each.points.reshape(-1, each.points.shape[-1])[where])
            places.append(np.stack([np.full(len(where), number), where], axis=1))
        self.points = np.concatenate(rows)
        """Points, shape (n, D)."""
        self._method, self._place = np.concatenate(places).T
        self.final = self._method == 0
        """Whether each row is a final draw, shape (n,)."""
        self.scale = self._scale()
        """Size of each coordinate within a chain, shape (D,), by the method with the smallest."""

    def _scale(self) -> FloatArray:
        sizes = []
        for each in self.visits:
            if each.points.shape[1] < _FEWEST_TO_SCALE and each is not self.visits[0]:
                continue
            spread = []
            for chain, weight in zip(each.points, each.weight, strict=True):
                flat = chain.reshape(-1, chain.shape[-1])[(weight > 0).ravel()]
                if len(flat):  # a population may have lost all its weight
                    low, high = np.quantile(flat, [0.25, 0.75], axis=0)
                    spread.append((high - low) / 1.349)
            sizes.append(np.sqrt(np.mean(np.square(spread), axis=0)))
        known = np.where(np.array(sizes) > 0, sizes, np.inf).min(axis=0)
        fallback = np.ptp(self.points, axis=0)
        return np.where(np.isfinite(known), known, np.where(fallback > 0, fallback, 1.0))

    def shuffled(self) -> Labels:
        """Return the numbers of all rows in random order, methods in turn."""
        ranks = np.empty(len(self._method))
        for number in range(len(self.visits)):
            own = np.flatnonzero(self._method == number)
            ranks[self._rng.permutation(own)] = np.arange(len(own)) + number / len(self.visits)
        return np.asarray(np.argsort(ranks, kind="stable"), dtype=np.intp)

    def series(self, values: npt.NDArray[np.generic], number: int, missing: float) -> FloatArray:
        """Return numbers (n,) of rows in the shape of a method's weights.

        Draws that do not count have a given number.
        """
        series = np.full(self.visits[number].weight.shape, missing, dtype=np.float64)
        own = self._method == number
        series.ravel()[self._place[own]] = values[own]
        return series

    def share(self, which: npt.NDArray[np.bool_], number: int) -> float:
        """Return the share of a method's draws, by its number, that some rows are."""
        return float((self.visits[number].weight * self.series(which, number, 0.0)).sum())

    def shares(self, which: npt.NDArray[np.bool_]) -> dict[str, float]:
        """Return the share of each method's draws, by its name, that some rows are; if any.

        Of several runs of one method it is the largest.
        """
        seen: dict[str, float] = {}
        for number, each in enumerate(self.visits):
            part = self.share(which, number)
            if part > 0:
                seen[each.method] = max(part, seen.get(each.method, 0.0))
        return seen

    def probability(self, which: npt.NDArray[np.bool_]) -> tuple[float, float]:
        """Estimate, from the final draws, the probability of where some rows are.

        Returns
        -------
        tuple of float
            The probability, and its standard error, which counts how few independent draws there
            are.
        """
        share, mcse = self.visits[0].probability(self.series(which, 0, 0.0))
        return float(share), evidence.probability_error(float(share), float(mcse), self._effective)

    @property
    def final_weights(self) -> FloatArray:
        """Weights of the rows that are final draws."""
        return np.asarray(self.visits[0].weight.ravel()[self._place[self.final]])

    def error_of_sum(self, values: FloatArray) -> float:
        """Return the standard error of the sum of a number that each final draw here has."""
        every = np.zeros(len(self.final))
        every[self.final] = values
        series = self.series(every, 0, 0.0)
        by_draw = series.reshape(*series.shape[:2], -1).sum(axis=2)
        return float(by_draw.size * evidence.standard_error(by_draw))

    def some(self, which: npt.NDArray[np.bool_], most: int) -> Labels:
        """Return some numbers of rows, in random order.

        They are of final draws, by their weights, if there are any.
        """
        for number, each in enumerate(self.visits):
            own = np.flatnonzero((self._method == number) & which)
            if own.size:
                weight = each.weight.ravel()[self._place[own]]
                if np.ptp(weight) == 0 and len(own) <= most:
                    return self._rng.permutation(own)
                return self._rng.choice(own, size=most, p=weight / weight.sum())
        raise AssertionError  # pragma: no cover
