"""Sparse logistic regression with a horseshoe prior (Nemeth et al. 2019, section 4.3, E).

HMC and pseudo-extended MCMC at equal cost in gradients, judged by how well they predict a fifth of
the data that is held out, on gene expression data.  The published program lets pseudo-samples
share their scales; that form, the full one, and an exact answer to tell them by, side by side.
"""

from __future__ import annotations

from harness.plan.spec import Experiment

from .cells import NAME, grid, user_grid
from .claims import claims
from .figures import figures
from .measures import condense, measure
from .tables import tables

EXPERIMENT = Experiment(
    name=NAME,
    title="Sparse logistic regression with a horseshoe prior",
    source="Nemeth et al. (2019), section 4.3 and supplement E, Figures 5, 9 and 10",
    summary=(
        "Cancer classification from thousands of genes and tens of patients (leukaemia data of "
        "Golub et al. 1999, 38 x 3,051; with --data-dir also the paper's colon, leukemia and "
        "prostate), regularised horseshoe prior. Four fifths of the patients are fitted, standard"
        "ised by themselves; the rest are predicted. HMC is Stan's NUTS; PE is the same on N "
        "pseudo-samples of which the likelihood is tempered and the prior is not, weighted "
        "afterwards. Equal cost means equal numbers of likelihood gradients, of which a leapfrog "
        "step of N pseudo-samples takes N: PE has N times fewer iterations, draws beyond the "
        "budget are not used, and all runs of a data set are compared at the largest share of the "
        "budget that all have spent. The published program shares the scales λ, τ and c between "
        "pseudo-samples ('shared'), which does not leave the posterior invariant; here every "
        "pseudo-sample also gets scales of its own. The paper's results are pictures without "
        "numbers, so that its statements alone are compared."
    ),
    reductions={
        "smoke": "2 splits, a few short trajectories: it shows that everything works, not more.",
        "quick": "4 splits; 240 draws of HMC after 120 of warm-up, trajectories of at most 63 "
        "steps (published: 10,000 iterations), so that differences between methods at this "
        "length are those of short runs.",
        "paper": "Without --data-dir the data are those of Golub et al. alone: no package has the "
        "paper's colon, leukemia and prostate.",
    },
    grid=grid,
    user_grid=user_grid,
    measure=measure,
    condense=condense,
    tables=tables,
    figures=figures,
    claims=claims,
    processor_seconds={"smoke": 100, "quick": 450, "paper": 47_000},
)
