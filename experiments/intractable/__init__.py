"""Doubly intractable posteriors (Murray 2007, chapter 5): the exchange algorithm and its rivals.

A Gaussian precision whose constant is pretended unknown (Figure 5.10), the heart disease data as a
Boltzmann machine (Figure 5.2), an Ising model with exact draws from the past (Figure 5.11), and
latent histories on it and on Bernoulli variables (section 5.7.2).
"""

from __future__ import annotations

from harness.plan.spec import Experiment

from .claims import claims
from .figures import figures
from .grid import grid
from .measures import measure
from .tables import tables

EXPERIMENT = Experiment(
    name="intractable",
    title="Likelihoods with an unknown constant",
    source="Murray (2007), sections 5.2.4, 5.6 and 5.7.2, Figures 5.2, 5.10 and 5.11",
    summary=(
        "Posteriors of p(y | θ) = f(y; θ) / Z(θ) with Z unknown. The exchange algorithm and the "
        "auxiliary variable methods (SAVM, and MAVM with bridges) use exact draws of y; loopy and "
        "mean-field Metropolis and brief Langevin approximate. Latent histories make the random "
        "numbers of coupling from the past part of the chain. The thesis prints figures and no "
        "numbers: the acceptance rates beside ours were computed for the figures' settings, and on "
        "the heart disease data the truth is NUTS with Z added up over 64 states. Look at which "
        "methods agree with the truth, and at what SAVM costs where steps are small."
    ),
    reductions={
        "smoke": "a few iterations; no claim is judged",
        "quick": "Gaussian precision: 40,000 iterations of each row; heart disease: 8 chains of "
        "10,000 iterations and not of 100,000; Ising model: 20 chains of 400 iterations, latent "
        "histories 50 of 400 or 1,500, which is short for their autocorrelation times",
        "paper": "the thesis does not say how long its Ising chains were; ours are 20 of 4,000. "
        "Its prior for the heart disease data, its number of brief sweeps, its Ising data and the "
        "widths of its steps there are not printed and are ours; 0.04 is printed for latent "
        "histories. Mean-field Metropolis runs for "
        "20,000 iterations and not for 100,000",
    },
    grid=grid,
    measure=measure,
    tables=tables,
    figures=figures,
    claims=claims,
    processor_seconds={"smoke": 65, "quick": 430, "paper": 5500},
    on_request=True,
)
