"""Boltzmann machine relaxations: both papers' experiment on them, with exact answers.

The pseudo-extended half is one instance with d_b = 28 (Nemeth et al. 2019, section 4.2 and
supplement D), the continuous-tempering half ten with d_b = 30 (Graham and Storkey 2017, section
7.2 and appendix B).
"""

from __future__ import annotations

from pathlib import Path

from harness.errors import DataError
from harness.plan.spec import Cell, Experiment, Profile

from .claims import claims
from .figures import figures
from .instances import (
    AUTHORS_CT,
    AUTHORS_PE,
    AUTHORS_STORED,
    users_instance,
    users_relaxation,
)
from .measure import measure, pooled_as_plotted
from .rows import SIZES, ct_cells, grid, pe_cells
from .tables import tables


def user_grid(profile: Profile, folder: Path) -> tuple[Cell, ...]:
    """Both halves on the authors' own instances, as far as their files are in a folder.

    Raises
    ------
    DataError
        If there is none of the files, or one cannot be used.
    """
    size = SIZES[profile]
    cells: list[Cell] = []
    if (folder / AUTHORS_PE).is_file():
        instance = users_instance("authors-d28", folder / AUTHORS_PE)
        cells += pe_cells(instance, size, "PE authors")
    if (folder / AUTHORS_STORED).is_file():
        instance = users_relaxation("authors-q28", folder / AUTHORS_STORED)
        cells += pe_cells(instance, size, "PE stored")
    found = [(i, name) for i, name in enumerate(AUTHORS_CT) if (folder / name).is_file()]
    instances = [
        users_instance(f"authors-i{i}", folder / name) for i, name in found[: size.instances]
    ]
    cells += ct_cells(instances, profile, "CT authors")
    if not cells:
        raise DataError(
            f"{folder} holds neither {AUTHORS_PE} nor {AUTHORS_STORED} nor any of "
            f"{AUTHORS_CT[0]} to {AUTHORS_CT[-1]}"
        )
    return tuple(cells)


EXPERIMENT = Experiment(
    name="boltzmann",
    title="Boltzmann machine relaxations",
    source=(
        "Nemeth et al. (2019), section 4.2 and supplement D, Figures 3, 4, 8; Graham and Storkey "
        "(2017), section 7.2 and appendix B, Figures 2, 5"
    ),
    summary=(
        "Mixtures of 2²⁸ and 2³⁰ Gaussians whose means are the states of a Boltzmann machine; "
        "log Z, moments and exact draws come from a sum over all states. PE is pure tempering "
        "with inverse temperatures sampled in [0.1, 1]: down to 0 its mass is infinite, and the "
        "paper does not say what bounds it; the authors' public program has [0.1, 0.9], which are "
        "rows of their own. The base of every other method is the Gaussian with "
        "the moments of the mixture of mean-field fixed points, and its guess at log Z. In the PE "
        "half AIS and ST move by HMC whitened by the base with step sizes tuned along the path, "
        "and CT is Stan's NUTS. In the CT half the paper's rows have the settings of its authors' "
        "notebooks: identity mass, leapfrog steps of 0.5, twenty a draw of ST, Gibbs CT and joint "
        "CT by HMC, ten chains a run without warm-up, no log weights in ST. AIS has ten steps a "
        "temperature and 100 chains; H-AIS, which is what the paper plots as AIS, has one step, "
        "500 chains and keeps part of its momenta. All runs on an instance are made side by side, "
        "and each counts a tenth of the time. Errors are judged on runs of ten chains; the "
        "authors' program pools 50 on average, which a figure shows apart. Every 20th or 25th draw "
        "is kept, but log Z makes use of all. Rows marked as ours are in neither paper. Our "
        "instance with d_b = 28 has d = 25: "
        "three eigenvalues of W + D are zero at the optimum, the paper has one."
    ),
    reductions={
        "smoke": "2 short runs of few methods: it shows that everything works, not more.",
        "quick": "PE half: 3 or 6 runs of 2,500 draws, N up to 10, fixed β = 0.1, 0.5, 0.9, "
        "ladders of 200 (published: 10 runs of 10,000, N up to 20, 1,000). CT half: 3 instances "
        "and 3 runs (published: 10 and 10), AIS and H-AIS with 200 and 1,000 temperatures (1,000 "
        "to 10,000), 800 to 1,200 draws a chain (20,000 to 30,000).",
        "paper": "AIS of the PE half has 1,000 chains, not 10,000.",
    },
    grid=grid,
    user_grid=user_grid,
    measure=measure,
    measure_batch=pooled_as_plotted,
    tables=tables,
    figures=figures,
    claims=claims,
    processor_seconds={"smoke": 180, "quick": 470, "paper": 25_600},
)
