"""Potts lattices (Murray 2007): Table 4.4, where annealing fails, and the transition of Figure 4.6.

Annealed importance sampling by Gibbs sweeps and Swendsen-Wang, nested sampling by Gibbs sweeps and
of bonds, and the acceptance ratio, on a 16 x 16 lattice of 2 and of 10 colours.
"""

from __future__ import annotations

from harness.plan.spec import Experiment

from .claims import claims
from .figures import figures
from .grid import grid
from .measures import measure
from .tables import tables

EXPERIMENT = Experiment(
    name="potts",
    title="Potts lattices at a transition of first order",
    source="Murray (2007), sections 2.4.1 and 4.8.3, Table 4.4, Figures 2.2 and 4.6",
    summary=(
        "The normalising constant of a 16 x 16 periodic lattice, q = 2 at J = 1 and q = 10 at "
        "J = 1.477, just above its transition. Annealed importance sampling needs the states of "
        "every J on its way; at the transition two phases exchange their places, and it stays in "
        "the wrong one. Nested sampling rises through energies and passes between the phases. "
        "Truth is Kaufman's closed form for q = 2. For q = 10 it is 11.25 ± 0.02, from "
        "thermodynamic integration up from zero temperature; one row, bridges down from J = 6, "
        "checks it. The thesis prints no boundary; its Ising numbers are those of a torus."
    ),
    reductions={
        "smoke": "4 x 4 lattices, and a few updates of a few particles; no claim is judged",
        "quick": "1,000 couplings and not 10,000; nested sampling with 40 particles and 20 updates "
        "and not 100 and 100; nested sampling through the transition on 32 x 32",
        "paper": "half of the particles of nested sampling are removed at once, which makes its "
        "error a fifth larger; the transition on 64 x 64 and not 256 x 256, with 1,000 sweeps and "
        "not 5,000,000; the first coupling of annealing and the length of the acceptance ratio are "
        "ours, as the thesis does not print them",
    },
    grid=grid,
    measure=measure,
    tables=tables,
    figures=figures,
    claims=claims,
    processor_seconds={"smoke": 30, "quick": 250, "paper": 1600},
    on_request=True,
)
