"""What the paper says of this experiment, and what we say, each against the exact evidence."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from harness.plan.claims import judged
from harness.plan.spec import Claim, Results

from .summary import errors, exact


def claims(results: Results) -> list[Claim]:
    """The paper's statement and ours, each against the exact evidence."""
    have = {cell.key for cell in results.cells}
    table = errors(results) if have else pd.DataFrame()
    return [
        judged(results, claim, needs - have, partial(judge, results, table))
        for claim, needs, judge in CLAIMS
    ]


Judge = Callable[[Results, pd.DataFrame], tuple[str, bool]]


def _beats_the_bound(results: Results, table: pd.DataFrame) -> tuple[str, bool]:
    runs = results.metrics[results.metrics["cell"] == "joint"]
    error = np.abs(runs["log_evidence"] - exact())
    gap = exact() - runs["bound"]
    return (
        f"ADVI's bound lies {gap.mean():.1f} nats below the exact value ({gap.min():.1f} to "
        f"{gap.max():.1f}); joint CT is off by {error.mean():.2f} on average, {error.max():.2f} "
        f"at most, in {len(runs)} runs.",
        bool(np.all(error < 0.5 * gap)),
    )


def _agrees_with_ais(results: Results, table: pd.DataFrame) -> tuple[str, bool]:
    joint, ais = table.loc["joint"], table.loc["ais"]
    difference = joint["mean_error"] - ais["mean_error"]
    error = float(np.hypot(joint["se"], ais["se"]))
    return (
        f"Joint CT minus AIS: {difference:+.2f} ± {error:.2f} nats; against the exact value joint "
        f"CT {joint['mean_error']:+.2f} ± {joint['se']:.2f}, AIS {ais['mean_error']:+.2f} ± "
        f"{ais['se']:.2f} ({joint['runs']} and {ais['runs']} runs).",
        bool(abs(difference) < 3 * error and abs(joint["mean_error"]) < 3 * joint["se"] + 0.1),
    )


def _bootstrap(results: Results, table: pd.DataFrame) -> tuple[str, bool]:
    before, after = table.loc["joint"], table.loc["joint-bootstrap"]
    return (
        f"Mean |error| {before['absolute_error']:.2f} before, {after['absolute_error']:.2f} after "
        f"({after['runs']} runs), which must be below 0.25.",
        bool(after["absolute_error"] < min(0.25, before["absolute_error"])),
    )


def _best_of_ours(results: Results, table: pd.DataFrame) -> tuple[str, bool]:
    row = table.loc["collapsed-bootstrap"]
    return (
        f"Mean |error| {row['absolute_error']:.3f} in {row['runs']} runs of {row['seconds']:.0f} s "
        "(bootstrap to rest), which must be below 0.05.",
        bool(row["absolute_error"] < 0.05),
    )


def _honest(results: Results, table: pd.DataFrame) -> tuple[str, bool]:
    named = ["joint", "joint-bootstrap", "collapsed-bootstrap", "collapsed-pilot", "pe-pilot"]
    judged = table.loc[[name for name in named if name in table.index]]
    worst = judged.sort_values("largest_z").iloc[-1]
    bad = table.loc[table.index.intersection(["joint-full-rank", "joint-pathfinder"])]
    others = "; ".join(f"{row['label']} {row['largest_z']:,.1f}" for _, row in bad.iterrows())
    return (
        f"Largest |error| over reported error: {worst['largest_z']:.1f} "
        f"({worst['label']}), of {int(judged['runs'].sum())} runs in all."
        + (f" Not counted, from bases that fit badly: {others}." if others else ""),
        bool(worst["largest_z"] <= 3),
    )


def _pseudo_extended(results: Results, table: pd.DataFrame) -> tuple[str, bool]:
    ct, pe = table.loc["collapsed-pilot"], table.loc["pe-pilot"]
    return (
        f"Mean |error| of PE N=2 {pe['absolute_error']:.3f} in {pe['seconds']:.0f} s a run, of "
        f"collapsed CT from the same kind of pilot {ct['absolute_error']:.3f} in "
        f"{ct['seconds']:.0f} s ({pe['runs']} runs each); PE's mean error must lie within three "
        "standard errors of 0.",
        bool(abs(pe["mean_error"]) <= 3 * pe["se"]),
    )


CLAIMS: tuple[tuple[Claim, set[str], Judge], ...] = (
    (
        Claim(
            "above-the-bound",
            "paper",
            "NUTS in the extended space improves significantly on the variational bound.",
        ),
        {"joint"},
        _beats_the_bound,
    ),
    (
        Claim("agrees-with-ais", "paper", "It converges to the value of long annealed runs."),
        {"joint", "ais"},
        _agrees_with_ais,
    ),
    (
        Claim("bootstrap-step", "paper", "One bootstrap step makes joint CT better."),
        {"joint", "joint-bootstrap"},
        _bootstrap,
    ),
    (
        Claim(
            "collapsed-exact",
            "ours",
            "Ours: collapsed CT at 20,000 draws, coefficients centred, is right to 0.05 nats.",
        ),
        {"collapsed-bootstrap"},
        _best_of_ours,
    ),
    (
        Claim(
            "honest-errors",
            "ours",
            "Ours: errors that tempered runs report are honest, |z| of 3 at most, with bases from "
            "mean-field ADVI, the bootstrap and pilots.",
        ),
        {"joint", "joint-bootstrap"},
        _honest,
    ),
    (
        Claim("evidence-of-pe", "ours", "Ours: pseudo-extended runs give log Z too."),
        {"collapsed-pilot", "pe-pilot"},
        _pseudo_extended,
    ),
)
