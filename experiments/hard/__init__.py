"""Benchmark of samplers on hard posteriors whose truth is known.

Every row is a method as a user gets it, on a program that knows nothing of tempering.  What counts
first is whether the diagnosis is right: a wrong answer that looks sound is the worst outcome.
"""

from __future__ import annotations

from harness.plan.spec import Experiment

from .claims import claims
from .figures import figures
from .grid import grid
from .measure import measure
from .own_sampler import CountedDensity, measure_sampler
from .sampled import Sampled
from .tables import tables

__all__ = ["EXPERIMENT", "CountedDensity", "Sampled", "measure_sampler"]

EXPERIMENT = Experiment(
    name="hard",
    title="Hard posteriors with known truth",
    source="Ours; each target names its source in the documentation",
    summary=(
        "Posteriors with several modes or an awkward geometry, of which log Z, the probabilities "
        "of modes and expectations are known, as plain Stan programs. Each row is a method as "
        "harness sample runs it, without a compiler, with the tempered programs that harness "
        "writes; a short trial decides how many draws fit into the budget. What counts first is "
        "whether a run says so when it is wrong."
    ),
    reductions={
        "smoke": "2 targets, 2 methods, 2 runs of 2 seconds; no claim is judged.",
        "quick": "4 targets, 8 of 14 methods, 5 runs of 8 processor seconds; no equal numbers of "
        "evaluations. Methods that spend more before their first draw take as long as they need.",
        "paper": "",
    },
    grid=grid,
    measure=measure,
    tables=tables,
    figures=figures,
    claims=claims,
    processor_seconds={"smoke": 60, "quick": 1600, "paper": 980_000},
    on_request=True,
)
