"""What the paper says of this experiment, and what we say, each against the bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pandas as pd

from harness.model import Model
from harness.plan.claims import judged
from harness.plan.spec import Claim, Results

from .summary import decoders, errors

Judge = Callable[[Results, str, pd.DataFrame], tuple[str, bool]]


def _sandwich(results: Results, decoder: str, table: pd.DataFrame) -> tuple[str, bool]:
    runs = results.metrics[results.metrics["cell"] == f"{decoder}-bdmc"]
    gap = runs["upper"] - runs["log_evidence"]
    images = _images_of(next(c for c in results.cells if c.key == f"{decoder}-bdmc").model)
    per_image = float(gap.mean()) / images
    return (
        f"Upper minus lower bound: {gap.mean():.2f} nats over {images} images, {per_image:.3f} an "
        f"image ({len(runs)} runs; {gap.min():.2f} to {gap.max():.2f}).",
        bool(-0.05 < per_image < 0.25),
    )


def _efficiency(table: pd.DataFrame, method: str) -> float:
    """Best of a method's cells."""
    return float(table.loc[table["method"] == method, "efficiency"].max())


def _similar(results: Results, decoder: str, table: pd.DataFrame) -> tuple[str, bool]:
    ratio = _efficiency(table, "gibbs") / _efficiency(table, "ais")
    return (
        f"1 / (error² s) of Gibbs CT is {ratio:.2f} times that of AIS at its best length; similar "
        "means within a factor of 4.",
        bool(0.25 <= ratio <= 4),
    )


def _below_gibbs(method: str) -> Judge:
    def judge(results: Results, decoder: str, table: pd.DataFrame) -> tuple[str, bool]:
        ratio = _efficiency(table, method) / _efficiency(table, "gibbs")
        ours, gibbs = (table[table["method"] == name].iloc[0] for name in (method, "gibbs"))
        return (
            f"RMSE {ours['rmse']:.2f} in {ours['seconds']:.1f} s, Gibbs CT "
            f"{gibbs['rmse']:.2f} in {gibbs['seconds']:.1f} s: "
            f"1 / (error² s) is {ratio:.2f} times that of Gibbs CT.",
            ratio < 1,
        )

    return judge


def _collapsed(results: Results, decoder: str, table: pd.DataFrame) -> tuple[str, bool]:
    ratio = _efficiency(table, "collapsed") / _efficiency(table, "joint")
    return f"1 / (error² s) is {ratio:.2f} times that of joint CT.", ratio > 1


CLAIMS: tuple[tuple[Claim, tuple[str, ...], Judge], ...] = (
    (
        Claim("sandwich", "paper", "Long annealed runs from both ends sandwich the evidence."),
        (),
        _sandwich,
    ),
    (
        Claim("gibbs-like-ais", "paper", "Gibbs CT and AIS perform similarly."),
        ("gibbs", "ais"),
        _similar,
    ),
    (
        Claim("joint-below-gibbs", "paper", "Joint CT converges less quickly than Gibbs CT."),
        ("joint", "gibbs"),
        _below_gibbs("joint"),
    ),
    (
        Claim("st-below-gibbs", "paper", "Simulated tempering is less efficient than Gibbs CT."),
        ("st", "gibbs"),
        _below_gibbs("st"),
    ),
    (
        Claim(
            "collapsed-above-joint",
            "ours",
            "Ours: collapsing the temperature makes NUTS on the path more efficient.",
        ),
        ("collapsed", "joint"),
        _collapsed,
    ),
)


def claims(results: Results) -> list[Claim]:
    """The paper's statements on each decoder, against the bounds."""
    stated = []
    for decoder in decoders(results) or ["digits"]:
        table = errors(results, decoder)
        have = set(table["method"]) if len(table) else set()
        for claim, needs, judge in CLAIMS:
            lacking = set(needs) - have if have else {"the bounds"}
            own = replace(
                claim, key=f"{claim.key}-{decoder}", statement=f"{claim.statement} ({decoder})"
            )
            found = partial(_of_runs, judge, results, decoder, table)
            stated.append(judged(results, own, lacking, found))
    return stated


def _of_runs(judge: Judge, results: Results, decoder: str, table: pd.DataFrame) -> tuple[str, bool]:
    measured, holds = judge(results, decoder, table)
    return f"{measured} {int(table['runs'].min())} runs or more.", holds


def _images_of(model: Model) -> int:
    return len(model.data["y"])
