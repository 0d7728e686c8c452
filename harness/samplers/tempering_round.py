"""What a round of scans of parallel tempering collects: draws, rates, scales, log Z."""

from __future__ import annotations

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import RungEvidence, rung_evidence
from harness.samplers.rung_path import Places, Reference, slope
from harness.samplers.rung_replicas import Replicas, Scan

FEWEST_FOR_SCALE = 32
"""Draws at a rung, or scans, below which they do not tell how to move there."""
_FEWEST_DIVERGENT = 3


class Round:
    """What a round of scans collects.

    Parameters
    ----------
    replicas
        What makes the scans, which must not change but for its states.

    Attributes
    ----------
    rungs
        The rungs.
    scans, points, log_density
        What each scan shows, and after it the target's states, shape (C, D), with their log
        densities, shape (C,).
    """

    def __init__(self, replicas: Replicas) -> None:
        rungs, chains = replicas.tuned.rungs, replicas.chains
        self._shape = (len(rungs), chains, -1)
        self._at_target = slice(rungs.target * chains, (rungs.target + 1) * chains)
        # Deviations from one state of each rung, so that nothing large cancels in variances.
        self._centre = replicas.places.points.reshape(self._shape)[:, :1]
        self._sum: FloatArray = np.zeros(self._centre[:, 0].shape)
        self._squares: FloatArray = np.zeros(self._centre[:, 0].shape)
        self._slopes: FloatArray = np.zeros(self._centre[:, 0].shape)
        self._low = self._high = self._centre[:, 0]
        self._powers = np.repeat(rungs.powers, chains, axis=0)
        self.scans: list[Scan] = []
        self.points: list[FloatArray] = []
        self.log_density: list[FloatArray] = []
        self._chains, self.rungs = chains, rungs

    def add(self, scan: Scan) -> None:
        """Take in a scan."""
        at = scan.places.points.reshape(self._shape)
        deviation = at - self._centre
        self._low = np.minimum(self._low, at.min(axis=1))
        self._high = np.maximum(self._high, at.max(axis=1))
        self._sum += deviation.sum(axis=1)
        self._squares += np.square(deviation).sum(axis=1)
        gradient = slope(scan.places.gradients, self._powers).reshape(self._shape)
        with np.errstate(over="ignore"):
            self._slopes += np.square(gradient).sum(axis=1)
        # Copies, so that the states of all other rungs need not be kept.
        self.points.append(scan.places.points[self._at_target].copy())
        self.log_density.append(scan.places.values[self._at_target, 0].copy())
        self.scans.append(scan._replace(places=_NOWHERE))

    def rejection(self) -> FloatArray:
        """Mean rejection rate of each pair, shape (K - 1,)."""
        return np.asarray(1 - np.mean([each.probability for each in self.scans], axis=(0, 2)))

    def avoidable_rejection(self) -> FloatArray:
        """The same where both neighbours have density: the rest no ladder can avoid."""
        swap = np.array([each.probability for each in self.scans])
        possible = np.array([np.isfinite(each.up) & np.isfinite(each.down) for each in self.scans])
        count = np.maximum(possible.sum(axis=(0, 2)), 1)
        return np.asarray(1 - np.where(possible, swap, 0.0).sum(axis=(0, 2)) / count)

    def acceptance(self) -> FloatArray:
        """Mean acceptance rate of the later moves at each rung, shape (K,)."""
        late = self.scans[len(self.scans) // 2 :]
        return np.asarray(np.mean([each.acceptance for each in late], axis=(0, 2)))

    def divergent(self, *, later: bool = False) -> FloatArray:
        """Share of the trajectories at each rung that diverged, shape (K,).

        0 where fewer than three did.

        Parameters
        ----------
        later
            Only those of the second half, when step sizes that are being tuned have settled.
        """
        first = len(self.scans) // 2 if later else 0
        made = np.array([each.divergent for each in self.scans[first:]])
        count = made.sum(axis=(0, 2))
        return np.where(count < _FEWEST_DIVERGENT, 0.0, count / (len(made) * self._chains))

    def spread(self, otherwise: FloatArray) -> FloatArray:
        """Standard deviations at each rung, shape (K, D); those given where there are none."""
        count = len(self.scans) * self._chains
        if count < FEWEST_FOR_SCALE:
            return otherwise
        variance = self._squares / count - np.square(self._sum / count)
        return root_or(variance, otherwise)

    def scale(self, otherwise: FloatArray) -> FloatArray:
        """Inverses of root mean squares of gradients, (K, D); those given where there are none."""
        count = len(self.scans) * self._chains
        if count < FEWEST_FOR_SCALE:
            return otherwise
        return 1 / root_or(self._slopes / count, 1 / otherwise)

    def reach(self, otherwise: FloatArray) -> FloatArray:
        """Ranges of the draws at each rung, shape (K, D); those given where they are of no use."""
        with np.errstate(over="ignore"):
            reach = self._high - self._low
            usable = np.isfinite(2 * reach) & (reach > 0)
        return np.where(usable, reach, otherwise)

    def evidence(self, ladder: int, reference: Reference) -> RungEvidence | None:
        """Log of the target's normalising constant over that of a ladder's reference."""
        up = np.stack([each.up for each in self.scans], axis=-1)
        down = np.stack([each.down for each in self.scans], axis=-1)
        if ladder == 1:  # which leads to the target from above
            up, down = -down, -up
        try:
            return rung_evidence(
                self.rungs.of_ladder(ladder, up),
                self.rungs.of_ladder(ladder, down),
                distinct=reference.distinct,
            )
        except DataError:
            return None


_NOWHERE = Places(np.empty((0, 0)), np.empty((0, 0)), np.empty((0, 0, 0)))


def root_or(squares: FloatArray, otherwise: FloatArray) -> FloatArray:
    """Return square roots of mean squares, and what is given where those are of no use."""
    known = np.isfinite(squares) & (squares > 0)
    return np.where(known, np.sqrt(np.where(known, squares, 1.0)), otherwise)
