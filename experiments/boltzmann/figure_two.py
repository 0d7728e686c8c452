"""The rows of Figure 2 of Graham and Storkey (2017), with the settings of the authors' notebooks.

All have an identity mass matrix, leapfrog steps of 0.5 without jitter, no warm-up and no tuning.
Replications of an instance run side by side, as the authors ran them: chains of 10 replications
share the overhead of a step, and a replication's time is a tenth of the whole run's.

Where the notebooks and the paper differ, these rows follow the notebooks.  The line that Figure 2
calls AIS is Hamiltonian AIS, 500 chains that keep part of their momenta from one leapfrog step to
the next; annealing with ten steps a temperature and fresh momenta is another row.  The notebook
that draws the figure reads 20,000, 30,000 and 25,000 draws of ST, Gibbs CT and joint CT; the one
that makes them has since been set to twice as many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.plan.spec import Profile
from harness.samplers.annealed_importance import ANNEALED_IMPORTANCE
from harness.samplers.gibbs_tempering import GIBBS_TEMPERING
from harness.samplers.joint_hmc import JOINT_HMC
from harness.samplers.kernels import Hmc, PartialHmc
from harness.samplers.ladders import sigmoidal_ladder
from harness.samplers.simulated_tempering import SIMULATED_TEMPERING

from .cells import Row

STEP = 0.5
STEPS = 20
"""Leapfrog steps of a draw of ST, Gibbs CT and joint CT."""
CHAINS = 10
"""Chains of a replication of these."""
AIS_CHAINS, HAIS_CHAINS = 100, 500
AIS_STEPS = 10

_HMC = Hmc(STEPS, jitter=0.0)
# The authors refresh momenta once a transition, p sqrt(1 - c^2) + c n with c^2 = 1 - 0.5^step.
# PartialHmc refreshes before and after it, so that either keeps the root of that.
_PARTIAL = PartialHmc(
    Hmc(1, jitter=0.0, target_acceptance=0.9), persistence=(0.5**STEP) ** 0.25
)  # fmt: skip


@dataclass(frozen=True)
class Lengths:
    """How long the rows run in a profile.

    Attributes
    ----------
    ladders
        Numbers of temperatures of both forms of annealing, a row each.
    rungs
        Of simulated tempering.
    st, gibbs, joint
        Draws of each chain, and every how many of them one is kept.
    """

    ladders: tuple[int, ...]
    rungs: int
    st: tuple[int, int]
    gibbs: tuple[int, int]
    joint: tuple[int, int]


LENGTHS: dict[Profile, Lengths] = {
    "smoke": Lengths((20,), 20, (32, 1), (32, 1), (32, 1)),
    "quick": Lengths((200, 1000), 1000, (800, 2), (1200, 2), (1000, 2)),
    "paper": Lengths((1000, 5000, 10_000), 1000, (20_000, 20), (30_000, 25), (25_000, 20)),
}


def figure_two(profile: Profile, replications: int) -> Iterator[Row]:
    """Return the rows of a profile, the longest first, for replications that share a fit."""
    lengths = LENGTHS[profile]
    fixed = {"step_size": STEP, "metric": "unit"}
    for rungs in sorted(lengths.ladders, reverse=True):
        ladder = {"ladder": sigmoidal_ladder(rungs), "populations": replications, **fixed}
        yield Row(
            f"ais-{rungs}", f"AIS, {rungs:,} temperatures", "AIS", ANNEALED_IMPORTANCE,
            {**ladder, "chains": AIS_CHAINS, "kernel": Hmc(AIS_STEPS, jitter=0.0)}, number=rungs,
            together=True,
        )  # fmt: skip
        yield Row(
            f"hais-{rungs}", f"H-AIS, {rungs:,} temperatures", "H-AIS", ANNEALED_IMPORTANCE,
            {**ladder, "chains": HAIS_CHAINS, "kernel": _PARTIAL}, number=rungs, together=True,
        )  # fmt: skip
    chains = {"chains": CHAINS * replications, "warmup": 0, "kernel": _HMC, "step_size": STEP}
    draws, thin = lengths.joint
    yield Row(
        "joint-hmc", "Joint CT, HMC", "joint HMC", JOINT_HMC,
        {**chains, "draws": draws, "thin": thin}, together=True,
    )  # fmt: skip
    draws, thin = lengths.gibbs
    yield Row(
        "gibbs", "Gibbs CT", "Gibbs CT", GIBBS_TEMPERING,
        {**chains, "draws": draws, "thin": thin, "metric": "unit"}, together=True,
    )  # fmt: skip
    draws, thin = lengths.st
    ladder_of_st = sigmoidal_ladder(lengths.rungs)
    yield Row(
        "st", "ST", "ST", SIMULATED_TEMPERING,
        {**chains, "draws": draws, "thin": thin, "metric": "unit", "ladder": ladder_of_st,
         "log_weights": 0 * ladder_of_st}, number=lengths.rungs, together=True,
    )  # fmt: skip
