"""Nested sampling of Potts models: one run gives log Z for every coupling above its prior's.

A particle is a state with its number of agreeing edges A, or a configuration of bonds with their
number D, and a key that breaks ties (Murray 2007, section 4.4.6).  Particles rise by this number,
which no coupling enters.  Given the run, the likelihood of any J > 0 is

    of states: exp(-J (E - A)), whose prior is uniform, so that Z_P = q^n Z,
    of bonds:  (e^J - 1)^D, whose prior is pi(d) = q^C / Z_pi, so that Z_P = e^(-J E) Z_pi Z.

Bonds rise from the random-cluster model at J = log 2, where e^J - 1 = 1, and say little about
smaller couplings.  Their Z_pi must be known from elsewhere, for example from annealing up to log 2.
No step is rejected: states move by Gibbs sweeps above the floor, bonds by Algorithm 4.4.

References
----------
Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London: sections 4.4.4, 4.4.6, 4.7.3 and 4.8.3.

Murray, I., MacKay, D. J. C., Ghahramani, Z. and Skilling, J. (2006). Nested sampling for Potts
models. Advances in Neural Information Processing Systems 18.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogEvidence
from harness.lattice.gibbs import floor_sweep
from harness.lattice.graph import Graph, IntArray
from harness.lattice.potts import (
    BoolArray,
    States,
    agreeing,
    checked_colours,
    log_bond_factor,
    uniform_states,
)
from harness.lattice.random_cluster import floor_log_weights, weighted_bond_step
from harness.lattice.swendsen_wang import draw_bonds, swendsen_wang_step
from harness.samplers.nested_particles import Floor, Particles
from harness.samplers.nested_volumes import PATHS, Removed, integrate, mean_log_volume

Kind = Literal["states", "bonds"]
"""What the particles are."""

REMAINING = 1e-6
"""A run stops once what is left could add no more than this share to Z, if its highest likelihood
held everywhere there (the thesis's own rule)."""


@dataclass(frozen=True)
class LatticeNesting:
    """Settings of a run.

    Attributes
    ----------
    particles
        N, in each population.
    batch
        How many are removed at once; the prior volumes take this into account exactly.
    updates
        Sweeps, or steps of Algorithm 4.4, of each new particle.
    populations
        Independent populations, which move together.
    start
        Where a new particle starts: ``"survivor"``, a clone of a particle that is left, or
        ``"deleted"``, the last one that was removed, which is known to fail (section 4.8.3) and is
        here as a control.
    burn
        Steps of Swendsen-Wang at J = log 2 before the first draw of bonds from their prior.

    Raises
    ------
    DataError
        If a setting is out of its range.
    """

    particles: int = 100
    batch: int = 25
    updates: int = 100
    populations: int = 1
    start: Literal["survivor", "deleted"] = "survivor"
    burn: int = 200

    def __post_init__(self) -> None:
        if not 1 <= self.batch < self.particles or min(self.updates, self.populations) < 1:
            raise DataError(
                "nested sampling of a lattice removes 1 particle or more at once and keeps one, "
                f"and needs 1 update and 1 population or more; got {self}"
            )


@dataclass(frozen=True)
class LatticeNested:
    """The particles of one population, and what follows from them for any coupling.

    Attributes
    ----------
    kind
        What the particles are.
    graph, colours
        The model.
    count
        Number of agreeing edges or of bonds of each removed particle, ascending, shape (S,).
    key
        Keys of the ties, shape (S,).
    alive
        Number of particles just before each removal, shape (S,).
    seen
        Some states on the way up, shape (K, n), with their numbers ``seen_count``, shape (K,).
    """

    kind: Kind
    graph: Graph
    colours: int
    count: IntArray
    key: FloatArray
    alive: IntArray
    seen: States
    seen_count: IntArray

    def log_likelihood(self, coupling: float) -> FloatArray:
        """Return the log likelihood of each particle at a coupling above 0, shape (S,)."""
        return likelihood_of(self.kind, self.graph, self.count, coupling)

    def log_z(
        self,
        coupling: float,
        rng: np.random.Generator,
        *,
        log_prior: LogEvidence | None = None,
        paths: int = PATHS,
    ) -> LogEvidence:
        """Return log Z_P at a coupling, with the error from sampled prior volumes.

        Parameters
        ----------
        coupling
            J, above 0 and at most the one that the run was made for.
        rng
            Source of randomness; the same gives the same volumes for every coupling.
        log_prior
            Log Z_pi of bonds, from elsewhere; states need none.
        paths
            Number of sequences of volumes.

        Raises
        ------
        DataError
            If bonds come without log Z_pi, or the coupling is not positive.
        """
        base = LogEvidence(self.graph.nodes * float(np.log(self.colours)), 0.0)
        if self.kind == "bonds":
            if log_prior is None:
                raise DataError("log Z of bonds needs log Z_pi from elsewhere: see log_z_of_prior")
            base = LogEvidence(log_prior.value - coupling * self.graph.size, log_prior.mcse)
        found = integrate(self._removed(coupling), rng, paths=paths)
        return base.plus(found.log_evidence)

    def information(self, coupling: float, rng: np.random.Generator) -> float:
        """Return the divergence H in nats of the model from its prior; N Var(log Z) is about it."""
        return integrate(self._removed(coupling), rng).information

    def log_weight(
        self, coupling: float, rng: np.random.Generator, *, paths: int = PATHS
    ) -> FloatArray:
        """Return log posterior weights of the particles at a coupling, which sum to 1, (S,)."""
        return integrate(self._removed(coupling), rng, paths=paths).log_weight

    def mean_share(self, coupling: float, rng: np.random.Generator, *, paths: int = PATHS) -> float:
        """Return the mean share of edges that agree, or that have a bond, at a coupling.

        With the same random numbers it rises with the coupling.
        """
        weight = np.exp(self.log_weight(coupling, rng, paths=paths))
        return float(weight @ self.count / self.graph.size)

    @property
    def log_volume(self) -> FloatArray:
        """Mean log prior volume above each particle, shape (S,)."""
        return mean_log_volume(self.alive)

    def _removed(self, coupling: float) -> Removed:
        nothing = np.empty((len(self.count), 0))
        flat = np.zeros(len(self.count))
        return Removed(
            Particles(nothing, flat, self.log_likelihood(coupling), self.key), self.alive
        )


def likelihood_of(
    kind: Kind, graph: Graph, count: npt.NDArray[np.intp], coupling: float
) -> FloatArray:
    """Return log likelihoods of numbers of agreeing edges or bonds at a coupling, any shape.

    Raises
    ------
    DataError
        If the coupling is not positive.
    """
    if not coupling > 0:
        raise DataError(f"nested sampling of a lattice needs a coupling above 0; got {coupling}")
    if kind == "states":
        return -coupling * (graph.size - count.astype(np.float64))
    return float(log_bond_factor(coupling)) * count.astype(np.float64)


def log_z_of_prior(log_z: LogEvidence, graph: Graph) -> LogEvidence:
    """Return log Z_pi of bonds, given log Z_P at J = log 2, where the two differ by 2^E."""
    return LogEvidence(log_z.value + float(np.log(2)) * graph.size, log_z.mcse)


def nested_lattice(
    kind: Kind,
    graph: Graph,
    colours: int,
    coupling: float,
    settings: LatticeNesting,
    rng: np.random.Generator,
) -> tuple[LatticeNested, ...]:
    """Run nested sampling of states or of bonds.

    Parameters
    ----------
    kind
        What the particles are: ``"states"`` (Gibbs) or ``"bonds"`` (random cluster).
    graph
        The graph.
    colours
        Number of colours q.
    coupling
        The largest J for which log Z is wanted: it tells when to stop, and nothing else.  Near a
        transition of first order it should lie on the ordered side.
    settings
        Settings of the run.
    rng
        Source of randomness.

    Returns
    -------
    tuple of LatticeNested
        One for each population.

    Raises
    ------
    DataError
        If the coupling is not positive, of bonds not above log 2, or colours are too few or many.
    """
    if kind == "bonds" and not coupling > np.log(2):
        raise DataError(f"bonds rise from J = log 2, so that J must exceed it; got {coupling:g}")
    checked_colours(colours)
    rows = settings.particles * settings.populations
    states, bonds = uniform_states(graph, colours, rows, rng), None
    if kind == "bonds":
        for _ in range(settings.burn):
            states, _ = swendsen_wang_step(graph, states, colours, np.log(2), rng)
        bonds = draw_bonds(graph, states, np.log(2), rng)
    move = _moves_states(graph, colours) if bonds is None else _moves_bonds(graph, colours)
    whole = agreeing(graph, states) if bonds is None else bonds
    points = states if bonds is None else bonds
    run = _Rising(kind, graph, colours, coupling, settings, points, whole.sum(axis=1), rng)
    while not run.done():
        run.step(move)
    return run.result()


_Points = npt.NDArray[np.generic]
_Mover = Callable[
    [_Points, IntArray, Floor, int, np.random.Generator], tuple[_Points, IntArray, States]
]


def _moves_states(graph: Graph, colours: int) -> _Mover:
    def move(
        points: _Points, count: IntArray, floor: Floor, updates: int, rng: np.random.Generator
    ) -> tuple[_Points, IntArray, States]:
        states, number = points.astype(np.int16), count.copy()
        for _ in range(updates):
            floor_sweep(graph, states, number, colours, floor, rng)
        return states, number, states

    return move


def _moves_bonds(graph: Graph, colours: int) -> _Mover:
    def move(
        points: _Points, count: IntArray, floor: Floor, updates: int, rng: np.random.Generator
    ) -> tuple[_Points, IntArray, States]:
        bonds: BoolArray = points.astype(np.bool_)
        log_w = floor_log_weights(floor, graph.size)
        for _ in range(updates):
            bonds, count, states = weighted_bond_step(graph, bonds, colours, log_w, rng)
        return bonds, count, states

    return move


class _Rising:
    """All populations while they rise."""

    def __init__(
        self,
        kind: Kind,
        graph: Graph,
        colours: int,
        coupling: float,
        settings: LatticeNesting,
        points: _Points,
        count: IntArray,
        rng: np.random.Generator,
    ) -> None:
        shape = settings.populations, settings.particles
        self._points = points.reshape(*shape, -1)
        self._count, self._key = count.reshape(shape), rng.random(shape)
        self._settings, self._rng = settings, rng
        self._model: tuple[Kind, Graph, int] = kind, graph, colours
        self._removed: list[tuple[IntArray, FloatArray]] = []
        self._seen: list[tuple[States, IntArray]] = []
        n, b = settings.particles, settings.batch
        # Log volume of one batch, and log widths within it.
        self._shrinking = -np.cumsum(1 / np.arange(n, n - b, -1))
        shells = np.diff(np.exp(self._shrinking), prepend=1.0)
        self._log_widths = np.log(-shells)
        self._coupling, self._log_volume = coupling, 0.0
        self._log_z = np.full(settings.populations, -np.inf)

    def done(self) -> bool:
        """Whether next to nothing is left in every population."""
        highest = self._likelihood(self._count.max(axis=1))
        return bool(np.all(highest + self._log_volume < np.log(REMAINING) + self._log_z))

    def _likelihood(self, count: IntArray) -> FloatArray:
        kind, graph, _ = self._model
        return likelihood_of(kind, graph, count, self._coupling)

    def step(self, move: _Mover) -> None:
        """Remove the lowest of every population, and let clones of others rise above them."""
        batch, particles = self._settings.batch, self._settings.particles
        order = np.lexsort((self._key, self._count), axis=-1)
        low, rest = order[:, :batch], order[:, batch:]
        every = np.arange(len(order))[:, None]
        self._removed.append((self._count[every, low], self._key[every, low]))
        log_part = self._likelihood(self._count[every, low]) + self._log_widths
        found = np.logaddexp.reduce(log_part, axis=1) + self._log_volume
        self._log_z = np.logaddexp(self._log_z, found)
        self._log_volume += float(self._shrinking[-1])
        floor = Floor(
            np.repeat(self._count[every, low[:, -1:]], batch).astype(np.float64),
            np.repeat(self._key[every, low[:, -1:]], batch),
        )
        if self._settings.start == "survivor":
            chosen = self._rng.integers(0, particles - batch, low.shape)
            source = np.take_along_axis(rest, chosen, axis=1)
        else:
            source = np.repeat(low[:, -1:], batch, axis=1)
        points = self._points[every, source].reshape(low.size, -1)
        count = self._count[every, source].ravel()
        points, count, states = move(points, count, floor, self._settings.updates, self._rng)
        key = floor.draw_key(count.astype(np.float64), self._rng)
        self._points[every, low] = points.reshape(*low.shape, -1)
        self._count[every, low] = count.reshape(low.shape)
        self._key[every, low] = key.reshape(low.shape)
        self._seen.append((states[::batch].copy(), count[::batch, None].copy()))
        if len(self._seen) > 2 * _SEEN:
            self._seen = self._seen[1::2]

    def result(self) -> tuple[LatticeNested, ...]:
        """Return the populations with the particles that are left as the last ones."""
        kind, graph, colours = self._model
        n, b = self._settings.particles, self._settings.batch
        order = np.lexsort((self._key, self._count), axis=-1)
        every = np.arange(len(order))[:, None]
        self._removed.append((self._count[every, order], self._key[every, order]))
        count = np.concatenate([each[0] for each in self._removed], axis=1)
        key = np.concatenate([each[1] for each in self._removed], axis=1)
        alive = np.append(
            np.tile(np.arange(n, n - b, -1), len(self._removed) - 1), np.arange(n, 0, -1)
        )
        return tuple(
            LatticeNested(
                kind,
                graph,
                colours,
                count[row],
                key[row],
                alive,
                np.stack([states[row] for states, _ in self._seen]),
                np.array([number[row, 0] for _, number in self._seen]),
            )
            for row in range(len(order))
        )


_SEEN = 200  # states that are kept, at least half as many
