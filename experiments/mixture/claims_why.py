"""Judges of what explains, or does not explain, that we differ from the published numbers."""

from __future__ import annotations

import numpy as np

from harness.plan.effects import Effect, Undecided, all_hold, each_lies
from harness.plan.spec import Results

from .claims_shared import SAME, Judged, runs_and_draws, span, with_published
from .compare import FIRST, SECOND, over_published, ratio
from .differences import (
    box_effects,
    errors_of_the_printed_truth,
    foreign_weights,
    narrow_truth,
    share_explained,
)
from .frames import printed_truth, published
from .grid import SCENARIOS
from .measures import MOMENTS


def untuned(results: Results) -> Judged:
    """Judge whether PT with random walks of fixed size and fewer swaps has the published errors."""
    table = published()
    table = table[table["method"] == "PT"]
    found = [
        over_published(
            results,
            f"{scenario}-pt-untuned",
            dict(own[["moment", "published"]].itertuples(index=False)),
        )
        for scenario, own in table.groupby("scenario")
    ]
    modes = results.metrics.groupby("cell")["modes_visited"].mean()
    told = "; ".join(
        f"({scenario}) {each.told()}, {modes[f'{scenario}-pt-untuned']:.1f} modes"
        for scenario, each in zip(SCENARIOS, found, strict=True)
    )
    measured = f"Errors of all moments over the published ones: {told} ({runs_and_draws(results)})."
    if results.profile != "paper":
        return measured, Undecided("--profile paper: runs as long as the published ones")
    return measured, with_published(all_hold(each_lies(found, **SAME)))


def truth_as_printed(_: Results) -> Judged:
    """Judge whether sd r/20 gives the printed truth, and it the published errors."""
    printed, narrow = printed_truth("b"), narrow_truth()
    gap = max(abs(printed[name] - narrow[name]) for name in MOMENTS)
    frame = errors_of_the_printed_truth()
    # Both tables are printed to two or three decimals.
    off = {
        name: float(np.max(np.abs(frame[f"against_{name}"] - frame["published"])))
        for name in ("printed", "exact")
    }
    return (
        f"With sd r/20 the four moments are within {gap:.4f} of the printed ones. The preprint's "
        f"means give the published RMSE of E[X²] to {off['printed']:.3f} against the printed truth "
        f"and to {off['exact']:.2f} against the exact one.",
        gap < 6e-4 and off["printed"] < 0.015 < off["exact"],
    )


def constant_of_weights(_: Results) -> Judged:
    """Judge whether weights without the density's constant explain the preprint's means."""
    first, second = share_explained(FIRST), share_explained(SECOND)
    return (
        "The preprint's mean estimates in (b) are off by this many times what these weights add, "
        f"over N = 2 to 20: {first.told()} for E[X], {second.told()} for E[X²]; 1 is all of it, "
        "and more than a half of it must be there.",
        all_hold(each_lies([first, second], above=0.5)),
    )


def weights_of_table_two(_: Results) -> Judged:
    """Judge whether weights with (a)'s density would make larger errors than Table 2 prints."""
    frame = foreign_weights()
    effects = [
        Effect(abs(bias) / published, se / published, 20)
        for bias, se, published in frame[["bias", "se", "published"]].itertuples(index=False)
    ]
    return (
        f"The bias of E[X₁] that this makes at β = 0.1 and 0.2, N=20, is {span(effects)} times "
        "the errors that Table 2 prints, none of which can be below it.",
        all_hold(each_lies(effects, above=1)),
    )


def low_inv_temps(results: Results) -> Judged:
    """Judge whether PE N=2 has the same errors with β in [0.001, 1] as in [0, 1]."""
    found = [ratio(results, f"{each}-pe-2-wide", f"{each}-pe-2") for each in SCENARIOS]
    told = ", ".join(f"({s}) {each.told()}" for s, each in zip(SCENARIOS, found, strict=True))
    return (
        f"RMSE of all moments with β in [0.001, 1] over that with β in [0, 1]: {told}.",
        all_hold(each_lies(found, **SAME)),
    )


def box(results: Results) -> Judged:
    """Judge whether the boxes leave the targets whole, and the errors of PE N=2 the same."""
    cut = box_effects()
    found = [ratio(results, f"{each}-pe-2-box", f"{each}-pe-2") for each in SCENARIOS]
    told = ", ".join(f"({s}) {each.told()}" for s, each in zip(SCENARIOS, found, strict=True))
    return (
        f"The smallest box changes the moments by {cut['a']:.4f} in (a) and {cut['b']:.4f} in (b) "
        f"at most. RMSE of PE N=2 in [-100, 100]² over that in our box: {told}.",
        all_hold([max(cut.values()) < 0.005, *each_lies(found, **SAME)]),
    )
