"""What both papers say of the illustrations, judged over runs, and their table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from harness.plan.claims import judged, mostly
from harness.plan.effects import Decision, all_hold, mean_effect
from harness.plan.spec import Claim, Results, Table

from .targets import MIXTURES, exact_right

Judge = Callable[[pd.DataFrame, float], tuple[str, Decision]]

_LOST = 0.01
"""A mode with less than this share of the draws has been left out."""


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


def _of_runs(judge: Judge, results: Results, key: str) -> tuple[str, Decision]:
    runs = results.metrics[results.metrics["cell"] == key]
    measured, holds = judge(runs, exact_right(key[:2]))
    return f"{measured} ({len(runs)} runs).", holds


def _one_mode(runs: pd.DataFrame, truth: float) -> tuple[str, Decision]:
    """Judge whether a run leaves a mode out more often than not; the papers show one run."""
    least = np.minimum(runs["right"], 1 - runs["right"])
    missed = int((least < _LOST).sum())
    found, decision = mostly(missed, len(runs))
    return (
        f"A mode was left with less than a hundredth of the draws in {found}, and more than half "
        f"must; mass of the right one {runs['right'].min():.3f} to {runs['right'].max():.3f} where "
        f"it is {truth:.3f}",
        decision,
    )


def _both_modes(runs: pd.DataFrame, truth: float) -> tuple[str, Decision]:
    """Judge whether the runs are near the exact distribution, and as near as their errors say."""
    off = mean_effect(runs["right"] - truth)
    far = mean_effect(runs["distance"])
    z = (runs["right"] - truth) / runs["right_mcse"]
    return (
        f"Mass of the right mode minus the true one, mean of the runs {off.told(3, '+')}, which "
        f"must lie within 0.05 (at most {z.abs().max():.1f} Monte Carlo errors in a run); distance "
        f"of the distribution functions {far.told(3)}, which must be below 0.1",
        all_hold([off.lies(above=-0.05, below=0.05), far.lies(below=0.1)]),
    )


def _cold_draws(runs: pd.DataFrame, truth: float) -> tuple[str, Decision]:
    cold = mean_effect(runs["weight_below_half"])
    return (
        f"Draws with β < 1/2 carry {cold.told()} of the weight; a tenth or more counts",
        cold.lies(above=0.1),
    )


def _evidence(runs: pd.DataFrame, truth: float) -> tuple[str, Decision]:
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
        "pe-static",
        _one_mode,
    ),
    (
        Claim("pe-nuts-one-mode", "ours", "Ours: so does Stan's NUTS."),
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
        "ct-static",
        _one_mode,
    ),
    (
        Claim("ct-nuts-one-mode", "ours", "Ours: so does Stan's NUTS."),
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
