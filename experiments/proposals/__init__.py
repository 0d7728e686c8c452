"""Several proposals at once, overrelaxation and population Monte Carlo (Murray 2007, chapter 3).

Tables 3.1 and 3.2, Figures 3.1, 3.3, 3.6 and 3.8, the pillar of Figure 2.1, and what testing a
prior before the likelihood saves.
"""

from __future__ import annotations

from harness.plan.spec import Experiment

from .claims import claims
from .figures import figures
from .grid import grid
from .measures import measure
from .tables import tables

EXPERIMENT = Experiment(
    name="proposals",
    title="Several proposals at once",
    source="Murray (2007), chapters 2 and 3",
    summary=(
        "Multiple-try Metropolis, waste recycling, population Monte Carlo, overrelaxation and "
        "moves by way of a pivot, on the targets of the thesis. Nearly all of it is a negative "
        "result, and the thesis says so: a proposal that is made alone is worth more than one of "
        "several at once, unless several are cheaper together. Look at the costs: tables count "
        "proposals or draws, not steps."
    ),
    reductions={
        "smoke": "a few short runs of each; no claim is judged",
        "quick": "2 x 200 runs of section 3.2.3 and not 1,000; 10,000 steps of populations on the "
        "funnel and not 100,000; correlations, K and widths of Figures 3.6, 3.8 and 2.1 are ours "
        "where the thesis prints none",
        "paper": "correlations, K and widths of Figures 3.6, 3.8 and 2.1 are ours where the thesis "
        "prints none; it does not say how many runs Tables 3.1 and 3.2 are of",
    },
    grid=grid,
    measure=measure,
    tables=tables,
    figures=figures,
    claims=claims,
    processor_seconds={"smoke": 30, "quick": 200, "paper": 2000},
    on_request=True,
)
