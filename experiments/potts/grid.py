"""Cells of the experiment: the rows of Table 4.4, controls beside them, and the transition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.engine.nuts import NutsSettings
from harness.forms.method import Method
from harness.plan.spec import Cell, Profile

from .lattices import COLOURS, COUPLING, ISING, POTTS, TITLES, lattice_model
from .samplers import ANNEALING, BOTH_STARTS, BRIDGES, NESTING, PASSAGE

TABLE, TRANSITION = "table 4.4", "transition"
CONTROL_UPDATES = 5
"""The controls' updates are this many times fewer, as they show the more clearly what fails."""


@dataclass(frozen=True)
class Size:
    """How much a profile runs.

    Attributes
    ----------
    side
        Of the lattices of Table 4.4.
    runs, couplings
        Of annealing.
    particles, batch, updates
        Of nested sampling.
    rungs, chains, burn, draws
        Of the bridges.  Near the transition a lattice of 16 x 16 forgets its start in some 1,000
        steps.
    large
        Side of the lattice at the transition.
    lattices, sweeps, offsets
        Of Swendsen-Wang from both starts; offsets from the critical J.
    passing
        Side, particles and updates of nested sampling through the transition.
    """

    side: int
    runs: int
    couplings: int
    particles: int
    batch: int
    updates: int
    rungs: int
    chains: int
    burn: int
    draws: int
    large: int
    lattices: int
    sweeps: int
    offsets: tuple[float, ...]
    passing: tuple[int, int, int]


_FIVE = (-0.02, -0.01, 0.0, 0.01, 0.02)
_NINE = (-0.03, -0.02, -0.01, -0.005, 0.0, 0.005, 0.01, 0.02, 0.03)
SIZES: dict[Profile, Size] = {
    "smoke": Size(4, 10, 20, 10, 5, 2, 4, 2, 5, 10, 8, 1, 10, _FIVE, (6, 8, 1)),
    "quick": Size(16, 100, 1000, 40, 20, 20, 16, 2, 600, 400, 64, 1, 300, _FIVE, (32, 12, 2)),
    "paper": Size(
        16, 100, 10_000, 100, 50, 100, 24, 2, 1500, 1500, 64, 2, 1000, _NINE, (64, 12, 2)
    ),
}
REPLICATIONS = 2


def grid(profile: Profile) -> tuple[Cell, ...]:
    """All cells of a profile."""
    size = SIZES[profile]
    cells = []
    for name in (ISING, POTTS):
        for key, method, row, settings in _rows(size, name):
            cells.append(
                Cell(
                    f"{name}-{key}",
                    f"{row}, {TITLES[name]}",
                    {"part": TABLE, "model": name, "row": row},
                    lattice_model(size.side, COLOURS[name], COUPLING[name]),
                    method,
                    settings,
                    NutsSettings(),
                    REPLICATIONS,
                )
            )
    side, particles, updates = size.passing
    starts = {"lattices": size.lattices, "sweeps": size.sweeps, "offsets": size.offsets}
    passing = {"particles": particles, "updates": updates}
    large: tuple[tuple[str, str, Method, int, dict[str, Any]], ...] = (
        ("both-starts", "Swendsen-Wang from both starts", BOTH_STARTS, size.large, starts),
        ("passage", "Nested sampling through the transition", PASSAGE, side, passing),
    )
    for key, row, method, edge, settings in large:
        factors = {"part": TRANSITION, "model": POTTS, "row": row}
        # Nested sampling stops on the ordered side, beyond where a disordered phase can live.
        model = lattice_model(edge, COLOURS[POTTS], 1.5)
        cells.append(Cell(key, row, factors, model, method, settings, NutsSettings(), REPLICATIONS))
    return tuple(cells)


def _rows(size: Size, name: str) -> list[tuple[str, Method, str, dict[str, Any]]]:
    annealing = {"runs": size.runs, "couplings": size.couplings, "spacing": "geometric"}
    nesting = {"particles": size.particles, "batch": size.batch, "updates": size.updates}
    control = nesting | {"updates": max(1, size.updates // CONTROL_UPDATES), "start": "deleted"}
    bridges = {
        "rungs": size.rungs,
        "chains": size.chains,
        "burn": size.burn,
        "draws": size.draws,
    }
    rows: list[tuple[str, Method, str, dict[str, Any]]] = [
        ("gibbs-ais", ANNEALING, "Gibbs AIS", annealing | {"kernel": "gibbs"}),
        (
            "sw-ais",
            ANNEALING,
            "Swendsen-Wang AIS",
            annealing | {"kernel": "swendsen_wang"},
        ),
        ("gibbs-ns", NESTING, "Gibbs nested sampling", nesting | {"kind": "states"}),
        ("cluster-ns", NESTING, "Random-cluster nested sampling", nesting | {"kind": "bonds"}),
        ("bridges", BRIDGES, "Acceptance ratio", bridges | {"down": False}),
    ]
    if name == POTTS:
        linear = annealing | {"kernel": "swendsen_wang", "spacing": "linear"}
        return [
            *rows,
            ("bridges-down", BRIDGES, "Acceptance ratio from J = 6", bridges | {"down": True}),
            ("sw-ais-linear", ANNEALING, "Swendsen-Wang AIS, equal steps", linear),
        ]
    return [
        *rows,
        ("gibbs-deleted", NESTING, "Gibbs, deleted particle", control | {"kind": "states"}),
        ("cluster-deleted", NESTING, "Random cluster, deleted particle",
         control | {"kind": "bonds"}),
        ("gibbs-survivor", NESTING, "Gibbs, surviving particle",
         control | {"kind": "states", "start": "survivor"}),
        ("cluster-survivor", NESTING, "Random cluster, surviving particle",
         control | {"kind": "bonds", "start": "survivor"}),
    ]  # fmt: skip
