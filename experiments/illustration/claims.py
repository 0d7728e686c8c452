"""What both papers say of the illustrations, judged over runs, and their table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from harness.plan.claims import judged
from harness.plan.spec import Claim, Results, Table

from .targets import MIXTURES, exact_right

Judge = Callable[[pd.DataFrame, float], tuple[str, bool]]


def tables(results: Results) -> list[Table]:
    """What every run found of the right mode's mass."""
    rows = []
    for cell in results.cells:
        runs = results.metrics[results.metrics["cell"] == cell.key]
        rows.append(
            {
                "run": cell.label,
                "runs": len(runs),
                "mass on the right": f"{runs['right'].min():.3f} to {runs['right'].max():.3f}",
                "truth": round(exact_right(cell.factors["half"]), 4),
                "Monte Carlo error": round(float(runs["right_mcse"].mean()), 4),
                "largest distance": round(float(runs["distance"].max()), 3),
                "log Z": ""
                if cell.factors["method"] != "CT"
                else f"{runs['log_z'].mean():+.3f} ± {runs['log_z_mcse'].mean():.3f}",
                "gradients a draw": round(float(runs["gradients"].mean() / cell.nuts.draws), 1),
            }
        )
    if not rows:
        return []
    return [
        Table(
            "modes",
            "Mass right of zero, its truth, and the largest distance of any run's weighted "
            "distribution function from the exact one (0.5 and more where a mode is missed). "
            "The true log Z is 0.",
            pd.DataFrame(rows).set_index("run"),
        )
    ]


def claims(results: Results) -> list[Claim]:
    """The papers' statements, each against every run."""
    have = {cell.key for cell in results.cells}
    return [
        judged(results, claim, {key} - have, partial(_of_runs, judge, results, key))
        for claim, key, judge in CLAIMS
    ]


def _of_runs(judge: Judge, results: Results, key: str) -> tuple[str, bool]:
    runs = results.metrics[results.metrics["cell"] == key]
    measured, holds = judge(runs, exact_right(key[:2]))
    return f"{measured} ({len(runs)} runs).", holds


def _one_mode(runs: pd.DataFrame, truth: float) -> tuple[str, bool]:
    """Judge whether every run left a mode with less than a hundredth of the draws."""
    least = np.minimum(runs["right"], 1 - runs["right"])
    missed = int((least < 0.01).sum())
    return (
        f"{missed} of {len(runs)} runs left a mode with less than a hundredth of their draws; mass "
        f"of the right one {runs['right'].min():.3f} to {runs['right'].max():.3f} where it is "
        f"{truth:.3f}",
        missed == len(runs),
    )


def _both_modes(runs: pd.DataFrame, truth: float) -> tuple[str, bool]:
    """Judge whether every run is near the exact distribution, and as near as its error says."""
    off = (runs["right"] - truth).abs()
    return (
        f"Mass of the right mode off by at most {off.max():.3f} (Monte Carlo error "
        f"{runs['right_mcse'].mean():.3f}); largest distance of the distribution functions "
        f"{runs['distance'].max():.3f}",
        bool((runs["distance"] < 0.1).all() and (off <= 4 * runs["right_mcse"]).all()),
    )


def _cold_draws(runs: pd.DataFrame, truth: float) -> tuple[str, bool]:
    share = runs["weight_below_half"]
    return (
        f"Draws with β < 1/2 carry {share.min():.2f} to {share.max():.2f} of the weight",
        bool((share > 0.1).all()),
    )


def _evidence(runs: pd.DataFrame, truth: float) -> tuple[str, bool]:
    z = ((runs["log_z"] - MIXTURES["ct"].truth.log_evidence.value) / runs["log_z_mcse"]).abs()
    return (
        f"log Z {runs['log_z'].min():+.3f} to {runs['log_z'].max():+.3f}, at most {z.max():.1f} of "
        "its standard errors off the true 0",
        bool((z < 4).all()),
    )


CLAIMS: tuple[tuple[Claim, str, Judge], ...] = (
    (
        Claim(
            "pe-hmc-one-mode", "paper", "HMC on N(-1, 0.1) + N(1, 0.02) discovers only one mode."
        ),
        "pe-hmc",
        _one_mode,
    ),
    (
        Claim(
            "pe-both-modes",
            "paper",
            "Weighted pseudo-extended draws discover both modes and approximate the target well.",
        ),
        "pe-pe",
        _both_modes,
    ),
    (
        Claim("ct-hmc-one-mode", "paper", "HMC on two separated Gaussians gets stuck in one."),
        "ct-hmc",
        _one_mode,
    ),
    (
        Claim(
            "ct-both-modes",
            "paper",
            "The tempered chain identifies both modes and estimates their masses accurately.",
        ),
        "ct-ct",
        _both_modes,
    ),
    (
        Claim("cold-draws-count", "paper", "Draws with β close to zero contribute too."),
        "ct-ct",
        _cold_draws,
    ),
    (
        Claim(
            "evidence-of-ct", "ours", "Ours: the tempered chain's log Z agrees with the true one."
        ),
        "ct-ct",
        _evidence,
    ),
)
