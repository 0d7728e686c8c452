"""Mixture of 20 bivariate Gaussians (Nemeth et al. 2019, section 4.1 and supplement C).

Tables 1 and 2 and Figures 2 and 7 of the paper, trials of what makes our numbers differ from the
published ones, and methods beyond the paper in the same tables.  Measured against the exact
moments, over independent runs.
"""

from __future__ import annotations

from harness.plan.spec import Experiment

from .claims import claims
from .figures import figures
from .grid import grid
from .measures import measure
from .tables import tables

EXPERIMENT = Experiment(
    name="mixture",
    title="Mixture of 20 bivariate Gaussians",
    source=(
        "Nemeth et al. (2019), section 4.1 and supplement C, Tables 1 and 2, Figures 2 and 7; "
        "means from Kou et al. (2006)"
    ),
    summary=(
        "Twenty Gaussian modes in the plane, in scenario (a) more than 15 standard deviations "
        "apart, in (b) touching. HMC is Stan's NUTS on the target itself; PE is the same NUTS on "
        "the pseudo-extended target with N pseudo-samples, each at its own sampled inverse "
        "temperature, weighted afterwards; RAM is repelling-attracting Metropolis, EE the "
        "equi-energy sampler, PT parallel tempering. The target lies in the box [-5.5, 15.5]², so "
        "that the tempered densities have finite mass. Truth is the closed form."
    ),
    reductions={
        "smoke": "2 runs of 500 draws of HMC and PE N = 2 only: it shows that everything works, "
        "not more.",
        "quick": "4 runs of 4,000 draws and N = 2, 5 (published: 20 runs of 50,000, N up to 20), "
        "so expect errors about 3.5 times the published ones; of Table 2's 72 rows those with "
        "β = 0.1, 0.2, 0.5 and 0.9 at N = 2. Our own rows are as in the paper profile, but 4 runs "
        "instead of 20.",
        "paper": "",
    },
    grid=grid,
    measure=measure,
    tables=tables,
    figures=figures,
    claims=claims,
    processor_seconds={"smoke": 80, "quick": 330, "paper": 40_000},
)
