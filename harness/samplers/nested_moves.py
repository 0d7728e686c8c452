"""Moves of nested sampling, which leave the prior above a floor of the likelihood invariant.

All particles move at once.  What a move is tuned with (directions, widths, step sizes, covariances)
comes from the other particles and from earlier iterations, never from where the particle is.
Slices are in :mod:`harness.samplers.nested_slices`, trajectories in
:mod:`harness.samplers.nested_reflections`.
"""

from __future__ import annotations

import math
from typing import Literal, Protocol

import numpy as np

from harness.arrays import FloatArray
from harness.samplers.nested_particles import Floor, Particles, Rows
from harness.samplers.nested_reflections import ReflectingHmc
from harness.samplers.nested_slices import AxisSlices, SliceMoves

NestedExplorer = Literal["slice", "hmc", "axes"]
"""Slice sampling along differences of particles, Hamiltonian trajectories that are reflected, or
slice sampling along the axes, in a random order."""

_SWEEPS = 5


class OutOfTime(Exception):
    """The time ran out within the moves of one iteration, which are then dropped."""


class Mover(Protocol):
    """A way to draw from the prior above floors, near enough, from clones of other particles.

    Attributes
    ----------
    refused, tried
        Moves that left a particle where it was, and all of them.
    """

    refused: int
    tried: int

    def move(
        self,
        particles: Particles,
        floor: Floor,
        others: list[FloatArray],
        population: Rows,
        parent: Rows,
        rng: np.random.Generator,
    ) -> Particles:
        """Return the particles (n) after their moves, with keys drawn anew.

        Parameters
        ----------
        particles
            Clones, each of which lies above its floor.
        floor
            The floor of each.
        others
            Points of each population's surviving particles, each (M, D), which stay.
        population, parent
            Population of each clone, and which of the others it is a clone of, shape (n,).
        """


MOVES: dict[NestedExplorer, type[SliceMoves] | type[ReflectingHmc]] = {
    "slice": SliceMoves,
    "hmc": ReflectingHmc,
    "axes": AxisSlices,
}


def default_steps(explorer: NestedExplorer, dimension: int, survivors: int) -> int:
    """Return the number of moves of each new particle that calibrated runs need.

    Trajectories are as many as there are dimensions, and 6 or more.  Slices along axes make five
    sweeps.  Other slices are three for each
    dimension and some more.  With few particles a dimension, their differences lie mostly along
    some directions, and slices hardly move along others: the inverse of the covariance of M draws
    in D dimensions is about M / (M - D) times too large on average.  The number of slices grows
    with the square of that, as it had to where it was measured (20 dimensions: about 260 with 30
    survivors, 65 with 60).

    Parameters
    ----------
    explorer
        What moves new particles.
    dimension
        D.
    survivors
        M, particles of a population that survive an iteration, more than D.
    """
    if explorer == "hmc":
        return max(6, dimension)
    if explorer == "axes":
        return _SWEEPS * dimension
    inverse = survivors / (survivors - dimension)
    return 5 + math.ceil(dimension * max(3.0, 1.5 * inverse**2))
