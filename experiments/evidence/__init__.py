"""Nested sampling against annealing for log Z (Murray 2007, chapter 4): Table 4.2 and Figure 4.5.

The thesis's own algorithms, with its moves, on five targets whose integrals are known, and our
forms, parallel tempering and the library's nested and multicanonical sampling on the same paths.
"""

from __future__ import annotations

from harness.plan.spec import Experiment

from .claims import claims
from .figures import figures
from .grid import grid
from .measures import measure
from .tables import tables

EXPERIMENT = Experiment(
    name="evidence",
    title="Evidence by nested sampling and by annealing",
    source="Murray (2007), sections 4.4 to 4.8, Tables 4.2 and 4.3, Figures 4.4 and 4.5",
    summary=(
        "Nested sampling and annealed importance sampling estimate log Z of five targets from a "
        "Gaussian base, both moved by sweeps of slice sampling. Each answer stands beside the "
        "published one, with its error in units of what it reports. The t distribution of the "
        "thesis is not the one that its text describes: its numbers belong to a product of ten "
        "univariate t distributions and a base with a standard deviation of about 4, which is "
        "what runs here. Nested sampling from scratch, continuous tempering and parallel "
        "tempering follow on the same targets. Look at the two modes and the deceptive target, "
        "where many answers are off by several of their errors."
    ),
    reductions={
        "smoke": "rows of up to 12,500 evaluations on four targets, once; no claim is judged",
        "quick": "rows of up to 650,000 evaluations; 1,000 particles on the deceptive target and "
        "not 16,000; 20 runs and not 100 for each point of Figure 4.5; of multicanonical "
        "sampling 10,000 draws and not 100,000, from exact weights",
        "paper": "nested sampling removes a twentieth of its particles at once, if it has 20 or "
        "more",
    },
    grid=grid,
    measure=measure,
    tables=tables,
    figures=figures,
    claims=claims,
    processor_seconds={"smoke": 25, "quick": 200, "paper": 1500},
    on_request=True,
)
