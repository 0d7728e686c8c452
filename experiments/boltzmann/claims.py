"""What the papers say about this experiment, and what we expect beyond them, one line each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from harness.plan.claims import judged
from harness.plan.spec import Claim, Results

from .claims_of_graham import dominates, joint_better
from .claims_of_nemeth import (
    best_number,
    fixed_lower,
    fixed_poorly,
    hmc_worst,
    more_pseudo_samples,
    pe_and_st,
)
from .claims_of_ours import (
    base_alone,
    collapsed_behind,
    evidence,
    fold_ahead,
    fold_behind,
    ten_times,
)
from .claims_shared import Judged
from .curves import of_family, of_half
from .tables import EVIDENCE


def claims(results: Results) -> list[Claim]:
    """Judge every claim whose cells are there."""
    stated = []
    for claim, half, needs, judge in CLAIMS:
        lacking = [name for name in needs if not of_family(results, half, name)]
        stated.append(judged(results, claim, lacking, partial(_of_runs, judge, results, half)))
    return stated


def _of_runs(judge: Callable[[Results], Judged], results: Results, half: str) -> Judged:
    measured, holds = judge(results)
    return f"{measured} {_runs(results, half)}", holds


def _runs(results: Results, half: str) -> str:
    cells = of_half(results, half)
    number = sorted({len(results.replications(cell)) for cell in cells})
    instances = len({cell.factors["instance"] for cell in cells})
    runs = f"{number[0]}" if len(number) == 1 else f"{number[0]} to {number[-1]}"
    return f"({runs} runs a method, {instances} instance{'s' if instances > 1 else ''}.)"


PE_PAPER, CT_PAPER = "Nemeth et al.: ", "Graham and Storkey: "
CLAIMS: tuple[tuple[Claim, str, tuple[str, ...], Callable[[Results], Judged]], ...] = (
    (
        Claim(
            "hmc-worst", "paper",
            f"{PE_PAPER}HMC does not traverse the modes; its moments are worse than those of PE, "
            "ST, CT and AIS.",
        ),
        "PE", ("HMC", "PE", "ST", "CT", "AIS"), hmc_worst,
    ),
    (
        Claim(
            "pe-and-st-best", "paper",
            f"{PE_PAPER}PE and ST estimate both moments better than AIS and CT.",
        ),
        "PE", ("PE", "ST", "AIS", "CT"), pe_and_st,
    ),
    (
        Claim(
            "fixed-beta-lowers", "paper",
            f"{PE_PAPER}fixing β can lower the RMSE.",
        ),
        "PE", ("PE", "PE fixed"), fixed_lower,
    ),
    (
        Claim(
            "fixed-beta-raises", "paper",
            f"{PE_PAPER}fixing β poorly, as β = 0.1, raises the RMSE.",
        ),
        "PE", ("PE", "PE fixed"), fixed_poorly,
    ),
    (
        Claim(
            "more-pseudo-samples", "paper",
            f"{PE_PAPER}more pseudo-samples estimate more accurately.",
        ),
        "PE", ("PE",), more_pseudo_samples,
    ),
    (
        Claim(
            "best-number", "paper",
            f"{PE_PAPER}MSE × time is smallest for 2 ≤ N ≤ 5.",
        ),
        "PE", ("PE",), best_number,
    ),
    (
        Claim(
            "ct-below-ais", "paper",
            f"{CT_PAPER}both forms of continuous tempering are below AIS in all three errors (at "
            "equal gradients; what they plot is H-AIS).",
        ),
        "CT", ("joint HMC", "Gibbs CT", "H-AIS"),
        dominates(("H-AIS",), ("joint HMC", "Gibbs CT"), "CT", "work", besides=("AIS",)),
    ),
    (
        Claim(
            "ct-below-st", "paper",
            f"{CT_PAPER}both are below simulated tempering in all three errors (likewise).",
        ),
        "CT", ("joint HMC", "Gibbs CT", "ST"),
        dominates(("ST",), ("joint HMC", "Gibbs CT"), "CT", "work"),
    ),
    (
        Claim(
            "ct-at-equal-time", "paper",
            f"{CT_PAPER}both are below AIS and simulated tempering at equal computing time.",
        ),
        "CT", ("joint HMC", "Gibbs CT", "H-AIS", "ST"),
        dominates(("H-AIS", "ST"), ("joint HMC", "Gibbs CT"), "CT", "time"),
    ),
    (
        Claim(
            "joint-above-gibbs", "paper",
            f"{CT_PAPER}joint CT is slightly better than Gibbs CT on log Z and E[x] (by less than "
            "a factor 2).",
        ),
        "CT", ("joint HMC", "Gibbs CT"), joint_better,
    ),
    (
        Claim(
            "collapsed-from-pilot", "ours",
            "Ours: collapsed CT from a pilot is below AIS and simulated tempering in all three "
            "errors.",
        ),
        "CT", ("collapsed CT", "H-AIS", "ST"),
        dominates(("H-AIS", "ST"), ("collapsed CT",), "CT", "work"),
    ),
    (
        Claim(
            "ten-times", "ours",
            "Ours: the best row has at least 10 times the neff/s of the paper's PE N=2.",
        ),
        "PE", ("PE", "collapsed CT"), ten_times,
    ),
    (
        Claim(
            "fold-above-pt", "ours",
            "Ours: the folded target is ahead of parallel tempering on E[x].",
        ),
        "PE", ("fold", "PT"), fold_ahead,
    ),
    (
        Claim(
            "fold-below-pt", "against",
            "Against us: parallel tempering is ahead of the folded target on E[xx′] and log Z.",
        ),
        "PE", ("fold", "PT"), fold_behind,
    ),
    (
        Claim(
            "collapsed-below-pt", "against",
            "Against us: without knowledge of the modes collapsed CT loses to parallel tempering.",
        ),
        "PE", ("collapsed CT", "PT"), collapsed_behind,
    ),
    (
        Claim(
            "base-alone", "against",
            "Against tempering: the base alone, without sampling, beats the paper's PE N=2 on "
            "E[x].",
        ),
        "PE", ("PE", "CT"), base_alone,
    ),
    (
        Claim(
            "evidence-of-pe", "ours",
            "Ours: log Z from pseudo-extended runs is better than from continuous tempering.",
        ),
        "PE", EVIDENCE[:5], evidence,
    ),
)  # fmt: skip
