"""Replicas at the rungs of independent systems: one scan moves all of them and swaps neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.samplers.explorers import Moved, hmc, slice_sweep
from harness.samplers.hops import Hops
from harness.samplers.rung_path import Densities, Places, Reference, Rungs, log_height
from harness.samplers.swaps import Travels, even_odd_swaps

Explorer = Literal["auto", "hmc", "slice", "both"]
"""What moves replicas: Hamiltonian Monte Carlo, slice sampling of each coordinate, or both in turn.

``auto`` is Hamiltonian Monte Carlo, but slice sampling at rungs where warm-up finds no step size at
which enough trajectories are accepted.  Where some diverge, as at the neck of a funnel, slice
sampling follows them in every second scan: its intervals shrink to the width of the neck.
"""

_TRAJECTORY = 1.5  # in the widest standard deviations, about a quarter of a Gaussian's period
_SLICE_WIDTH = 2.0  # in the rung's standard deviations
SLICES_EVERY = 2
"""Scans for one sweep of slice sampling where that follows Hamiltonian Monte Carlo by ``auto``."""


@dataclass
class Tuned:
    """What warm-up tunes; the first axis runs over the K rungs.

    Attributes
    ----------
    rungs
        The rungs themselves.
    spread
        Standard deviations of the draws there, shape (K, D): widths of slices.
    scale
        Inverses of the root mean squares of the gradient there, shape (K, D): scales of Hamiltonian
        Monte Carlo.  For independent Gaussian coordinates they are the standard deviations.  Where
        modes are far apart they are still those within a mode, since the gradient does not know how
        far.
    step_size
        In units of ``scale``, shape (K,).
    sliced
        Whether slice sampling replaces Hamiltonian Monte Carlo, shape (K,).
    also_sliced
        Whether it follows Hamiltonian Monte Carlo, shape (K,).
    hops
        Coordinates along which wide slices lead from mode to mode.
    """

    rungs: Rungs
    spread: FloatArray
    scale: FloatArray
    step_size: FloatArray
    sliced: npt.NDArray[np.bool_]
    also_sliced: npt.NDArray[np.bool_]
    hops: Hops


class Scan(NamedTuple):
    """One scan of K rungs in each of C systems; states are those after moves and before swaps."""

    places: Places
    """States, row k C + c that at rung k of system c."""
    up: FloatArray
    """log gamma_(k+1) - log gamma_k at the states of rung k, shape (K - 1, C)."""
    down: FloatArray
    """The same at the states of rung k + 1."""
    probability: FloatArray
    """Probability that each pair would swap, shape (K - 1, C)."""
    acceptance: FloatArray
    """Of the moves, shape (K, C); 1 of those by slice sampling."""
    divergent: npt.NDArray[np.bool_]
    """Whether trajectories diverged, shape (K, C)."""


class Replicas:
    """States of all systems.

    Parameters
    ----------
    densities, references
        Target and references, and what draws from the latter.
    tuned
        Rungs and settings of the moves.
    places
        States, row k C + c that at rung k of system c, each with a density above zero there.
    slices_every
        Scans for one sweep of slice sampling where that follows Hamiltonian Monte Carlo.
    most_leapfrog_steps
        Most leapfrog steps of a trajectory.
    rng
        Source of randomness.

    Attributes
    ----------
    evaluations
        Points at which densities were evaluated so far, but for hops.
    """

    def __init__(
        self,
        densities: Densities,
        references: Sequence[Reference],
        tuned: Tuned,
        places: Places,
        *,
        slices_every: int,
        most_leapfrog_steps: int,
        rng: np.random.Generator,
    ) -> None:
        self.tuned = tuned
        self.places = places
        self.chains = len(places.points) // len(tuned.rungs)
        self.travels = Travels(len(tuned.rungs), self.chains, tuned.rungs.target)
        self._densities, self._references = densities, references
        self._every, self._most, self._rng = slices_every, most_leapfrog_steps, rng
        self._scans = 0
        self.evaluations = 0

    def scan(self) -> Scan:
        """Draw from references, move every replica at its rung, hop, then swap neighbours."""
        chains, rungs, hops = self.chains, self.tuned.rungs, self.tuned.hops
        before = self._densities.evaluations
        self._refresh()
        acceptance, divergent = self._explore()
        self.evaluations += self._densities.evaluations - before
        if hops.due(self._scans):
            hops.sweep(self._densities, self.places, rungs, self._rng)
        moved = self.places
        up, down = neighbours(moved, rungs)
        swaps = even_odd_swaps(up - down, self._scans % 2, self._rng)
        self._scans += 1
        self.travels.follow(swaps.source)
        self.places = moved.take((swaps.source * chains + np.arange(chains)).ravel())
        return Scan(
            moved,
            up,
            down,
            swaps.probability,
            acceptance.reshape(-1, chains),
            divergent.reshape(-1, chains),
        )

    def _refresh(self) -> None:
        """Replace the replicas at references by new draws, where those are to be had."""
        ends = zip(self.tuned.rungs.references(), self._references, strict=True)
        drawn = {rung: each.sample(self._rng, self.chains) for rung, each in ends if each.sample}
        if drawn:
            first = self.chains * np.array(list(drawn))[:, None]
            rows = (first + np.arange(self.chains)).ravel()
            self.places.put(rows, self._densities(np.concatenate(list(drawn.values()))))

    def _explore(self) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """Move every replica; return acceptance probabilities and what diverged, shape (K C,)."""
        tuned, chains = self.tuned, self.chains
        acceptance = np.ones(len(self.places.points))
        divergent = np.zeros(len(self.places.points), dtype=np.bool_)
        sliced, also = (np.repeat(each, chains) for each in (tuned.sliced, tuned.also_sliced))
        rows = np.flatnonzero(~sliced)
        if rows.size:
            made = self._by_hmc(rows)
            self.places.put(rows, made.places)
            acceptance[rows], divergent[rows] = made.acceptance, made.divergent
        rows = np.flatnonzero(sliced | (also & (self._scans % self._every == 0)))
        if rows.size:
            rung = rows // chains
            moved = slice_sweep(
                self._densities,
                self.places.take(rows),
                tuned.rungs.powers[rung],
                width=_SLICE_WIDTH * tuned.spread[rung],
                rng=self._rng,
            )
            self.places.put(rows, moved)
        return acceptance, divergent

    def _by_hmc(self, rows: npt.NDArray[np.intp]) -> Moved:
        tuned, rung = self.tuned, rows // self.chains
        # Of dependent coordinates the scales are less than the spread.
        widest = (tuned.spread / tuned.scale).max(axis=1)[rung]
        steps = np.ceil(_TRAJECTORY * widest / tuned.step_size[rung])
        return hmc(
            self._densities,
            self.places.take(rows),
            tuned.rungs.powers[rung],
            step_size=tuned.step_size[rung],
            scale=tuned.scale[rung],
            spread=tuned.spread[rung],
            leapfrog_steps=np.clip(steps, 1, self._most).astype(np.intp),
            rng=self._rng,
        )


def neighbours(places: Places, rungs: Rungs) -> tuple[FloatArray, FloatArray]:
    """Return what states lose and gain by a step to the rung above or below.

    Parameters
    ----------
    places
        States, row k C + c that at rung k of system c, each with a density above zero there.
    rungs
        The K rungs.

    Returns
    -------
    tuple of FloatArray
        log gamma_(k+1) - log gamma_k at the states of rung k, -inf where those have no density at
        rung k + 1; and the same at the states of rung k + 1, +inf where those have none at rung k.
        Shape (K - 1, C).
    """
    values = places.values.reshape(len(rungs), -1, places.values.shape[1])
    powers = rungs.powers[:, None]
    own = log_height(values, powers)
    up: FloatArray = log_height(values[:-1], powers[1:]) - own[:-1]
    down: FloatArray = own[1:] - log_height(values[1:], powers[:-1])
    return up, down
