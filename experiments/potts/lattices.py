"""The lattices of the experiment, as models, and what is known of them."""

from __future__ import annotations

import math

import numpy as np

from harness.evidence import LogEvidence
from harness.folders import shipped
from harness.lattice.graph import Graph, torus
from harness.lattice.potts import ordering_coupling
from harness.lattice.transfer import kaufman_log_z
from harness.model import Model

ISING, POTTS = "ising", "potts"
COUPLING = {ISING: 1.0, POTTS: 1.477}
"""J of Table 4.4."""
COLOURS = {ISING: 2, POTTS: 10}
TITLES = {ISING: "q = 2, J = 1", POTTS: "q = 10, J = 1.477"}

CRITICAL = ordering_coupling(10)
"""J at which 10 colours order on the infinite lattice."""
_PER_SITE = 0.968203, 1.664253
"""Agreeing edges of a site in the two phases of 10 colours at the transition (Baxter 1973)."""
DISORDERED, ORDERED = (-math.expm1(-CRITICAL) * each / 2 for each in _PER_SITE)
"""Share of edges with a bond in the two phases of the infinite lattice at the transition."""
MIXED = DISORDERED + (ORDERED - DISORDERED) / 3, ORDERED - (ORDERED - DISORDERED) / 3
"""The middle third between them: both phases at once."""


def lattice_model(side: int, colours: int, coupling: float) -> Model:
    """Return a periodic lattice as the model of a cell: data without a Stan program."""
    return Model(
        name=f"potts-{side}-{colours}",
        folder=shipped("stan") / "potts",
        data={"side": side, "colours": colours, "coupling": coupling},
        parameters=("agreeing",),
        dimension=1,
    )


def parts_of(model: Model) -> tuple[Graph, int, float]:
    """Return the graph, the number of colours and the coupling of a model."""
    side = int(np.asarray(model.data["side"]))
    return torus(side, side), int(model.data["colours"]), float(model.data["coupling"])


def truth(name: str, side: int) -> LogEvidence | None:
    """Return log Z_P of Table 4.4: Kaufman's closed form for 2 colours.

    That for 10 colours on 16 x 16 is from bridges down from J = 6, where nearly all of Z is that of
    one colour everywhere; other sizes of it have none.
    """
    if name == ISING:
        return LogEvidence(kaufman_log_z(side, side, COUPLING[ISING]), 0.0)
    return LogEvidence(*TRUTH_16) if side == 16 else None


TRUTH_16 = 11.25, 0.02
"""Log Z_P of 10 colours on 16 x 16 at J = 1.477, and its error."""


def log_z_at_low_temperature(graph: Graph, colours: int, coupling: float) -> float:
    """Return log Z_P where nearly all nodes have one colour, with single nodes that differ.

    The next terms, pairs of neighbours that differ together, have a weight of E e^(-6 J).
    """
    single = graph.nodes * (colours - 1) * math.exp(-4 * coupling)
    return math.log(colours) + single
