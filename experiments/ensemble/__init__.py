"""Ensemble preconditioning (Leimkuhler, Matthews and Weare 2018): stamps and a Cox process.

EQN, Langevin dynamics and HMC on the stamps' mixture in two parametrisations (Table 1), by blocks
on a log-Gaussian Cox process (Table 2, smaller), NUTS beside them, and the preconditioner inside
continuous tempering.
"""

from __future__ import annotations

from harness.plan.spec import Experiment

from .claims import claims
from .figures import figures
from .grid import grid
from .measures import measure
from .tables import tables

EXPERIMENT = Experiment(
    name="ensemble",
    title="Walkers that precondition each other",
    source="Leimkuhler, Matthews and Weare (2018), sections 4.1 and 4.2, Tables 1 and 2",
    summary=(
        "The ensemble quasi-Newton sampler (EQN) scales each walker's moves by the covariance of "
        "the others near it. On the Hidalgo stamps its gradients for an independent sample stand "
        "beside those of Langevin dynamics, HMC and NUTS, once with the precisions and weights "
        "themselves, which is what the published numbers must be of, and once with logarithms and "
        "logits, as any Stan program has them. Look at how much of the gain remains. The Cox "
        "process is smaller than published. The last part asks whether the preconditioner helps "
        "inside continuous tempering."
    ),
    reductions={
        "smoke": "a few steps of 16 walkers; no claim is judged",
        "quick": "2 runs each; EQN for 1,200 steps and not 20,000, Langevin dynamics and HMC for "
        "20,000 and not 600,000, which is short for their autocorrelation times; the Cox process "
        "in 6 x 6 cells and not 32 x 32, with 16 walkers and not 160 and 150 iterations; 1,000 "
        "draws of NUTS and not 20,000",
        "paper": "the Cox process in 16 x 16 cells and not 32 x 32, with 40 walkers and not 160, "
        "because the published size takes days; step sizes, friction and the lengths of HMC's "
        "paths are ours, as the paper does not print them",
    },
    grid=grid,
    measure=measure,
    tables=tables,
    figures=figures,
    claims=claims,
    processor_seconds={"smoke": 120, "quick": 450, "paper": 60_000},
    on_request=True,
)
