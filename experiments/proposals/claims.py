"""What the thesis says of these methods, and what we add, each against the measurements."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from harness.plan.claims import judged
from harness.plan.effects import Decision
from harness.plan.spec import Claim, ClaimKind, Results

from .grid import CALLS, EFFICIENCY, ERROR, FACTOR_SDS, OPPOSITE, SMALL
from .tables import burn_in, costs, errors_of, funnel, pillar, pooled, slopes

Judge = Callable[[], tuple[str, Decision | None]]

ONE, TEN, MANY = "M-H, σ = 1", "M-H, σ = 10", "MTM, σ = 10"
POPULATIONS = tuple(
    f"PMC, {adapted}, q {combined}"
    for adapted in ("adapted", "fixed")
    for combined in ("separate", "combined")
)
PLAIN = {"Gibbs": "Gibbs, overrelaxed", "slice": "slice, pivot", "Metropolis": "Metropolis, pivot"}
GOOD, TERRIBLE = 0.02, 0.05
"""Distances of distribution functions up to which one is good, and from which on terrible."""


def at(table: pd.DataFrame, row: str, column: str) -> float:
    """Return an entry of a table."""
    return float(table[column].loc[row])


def _listed(table: pd.DataFrame, names: tuple[str, ...]) -> str:
    return ", ".join(
        f"{name} {at(table, name, 'ours'):.4f} ± {at(table, name, 'error'):.4f}" for name in names
    )


def _burn_in(index: pd.Series) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        one, ten, many = (float(index[name]) for name in (ONE, TEN, MANY))
        return (
            f"The variance is right from index {ten:.0f} on with {TEN}, {many:.0f} with {MANY}, "
            f"{one:.0f} with {ONE}.",
            ten < many < one,
        )

    return judge


def _efficiency(share: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        one, ten, many = (at(share, name, "ours") for name in (ONE, TEN, MANY))
        return f"Effective samples a proposal: {_listed(share, (ONE, TEN, MANY))}.", many < min(
            one, ten
        )

    return judge


def _recycling(errors: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        plain, recycled = (at(errors, name, "ours") for name in (MANY, f"WR-{MANY}"))
        best = float(errors.loc[[ONE, TEN], "ours"].min())
        return (
            f"Mean square errors: {_listed(errors, (MANY, f'WR-{MANY}', ONE, TEN))}.",
            best < recycled < 0.8 * plain,
        )

    return judge


def _importance(errors: pd.DataFrame, small: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        best = at(errors, "MIT, σ = 10", "ours") <= float(errors["ours"].min())
        names = ("MTM, σ = 0.1", "WR-MTM, σ = 0.1", "MIT, σ = 0.1")
        plain, recycled, pool = (at(small, name, "ours") for name in names)
        return (
            f"Long proposals: {_listed(errors, ('MIT, σ = 10',))}, of all rows the "
            f"{'smallest' if best else 'not smallest'}. Short ones: {_listed(small, names)}.",
            best and pool > 1.5 * plain and recycled < 1.1 * plain,
        )

    return judge


def _population(neck: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        chain = at(neck, "Metropolis", "distance")
        each = neck.loc[list(POPULATIONS), "distance"]
        return (
            f"Largest distance of the distribution function of v: Metropolis {chain:.3f}, "
            f"population Monte Carlo {each.min():.3f} to {each.max():.3f}; up to {GOOD} is good, "
            f"from {TERRIBLE} on terrible. The largest weight's share is up to "
            f"{neck.loc[list(POPULATIONS), 'largest'].max():.2g}.",
            bool(chain < GOOD and each.min() > TERRIBLE),
        )

    return judge


def _overrelaxation(times: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        gain = {
            name: at(times, name, "time") / at(times, over, "time") for name, over in PLAIN.items()
        }
        words = ", ".join(f"{name} {value:.1f}" for name, value in gain.items())
        return (
            f"Autocorrelation times become shorter by these factors: {words}; 5 counts as "
            "persistent, less than half of Gibbs's and slice sampling's as little.",
            min(gain["Gibbs"], gain["slice"]) > 5
            and gain["Metropolis"] < 0.5 * min(gain["Gibbs"], gain["slice"]),
        )

    return judge


def _draws(times: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        words = "; ".join(
            f"{name} {at(times, name, 'cost'):.0f}, {over} {at(times, over, 'cost'):.0f}"
            for name, over in PLAIN.items()
        )
        return (
            f"Draws for an independent one: {words}; 0.8 times as many would count as a gain.",
            all(
                at(times, over, "cost") > 0.8 * at(times, name, "cost")
                for name, over in PLAIN.items()
            ),
        )

    return judge


def _slopes(found: dict[str, tuple[float, float]]) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        walk, motion = found["Metropolis"], found["pivots"]
        return (
            f"The steps of a crossing go as σ to the power {walk[0]:.2f} ± {walk[1]:.2f} with "
            f"Metropolis and {motion[0]:.2f} ± {motion[1]:.2f} with pivots; within 0.3 of -2 and "
            "of -1 counts.",
            abs(walk[0] + 2) < 0.3 and abs(motion[0] + 1) < 0.3,
        )

    return judge


def _pillar(share: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        row = share.iloc[0]
        return (
            f"{row['accepted']:.4f} ± {row['±']:.4f} of the moves are accepted; a / (A - a) is "
            f"{row['a / (A - a)']:.4f}.",
            abs(float(row["errors apart"])) < 4,
        )

    return judge


def _calls(times: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        saved: dict[str, list[float]] = {}
        words = []
        for where in FACTOR_SDS:
            for plain, factored in (("M-H", "two stages"), ("slice", "two-factor slice")):
                before, after = (at(times, f"{x}, {where}", "cost") for x in (plain, factored))
                saved.setdefault(where, []).append(before / after)
                words.append(f"{where}: {plain} {before:.1f}, {factored} {after:.1f}")
        return (
            f"Calls of the likelihood for an independent draw, {'; '.join(words)}. A factor of 2 "
            "counts as much, one of 0.8 to 1.25 as little.",
            min(saved["narrow prior"]) > 2
            and all(0.8 < ratio < 1.25 for ratio in saved["narrow likelihood"]),
        )

    return judge


def claims(results: Results) -> list[Claim]:
    """The thesis's claims, which are mostly that its methods do not pay, and ours."""
    index, share = burn_in(results), pooled(results, EFFICIENCY, "effective")
    errors, small = errors_of(results, ERROR), errors_of(results, SMALL)
    neck, times = funnel(results), costs(results, OPPOSITE, "draws")
    found, counts = slopes(results), costs(results, CALLS, "calls")

    def claim(
        key: str, kind: ClaimKind, statement: str, have: object, needs: set[str], judge: Judge
    ) -> Claim:
        known = set(have.index) if isinstance(have, pd.DataFrame | pd.Series) else set(have)  # type: ignore[call-overload]
        return judged(results, Claim(key, kind, statement), needs - known, judge)

    both = set(errors.index) | set(small.index)
    factor_rows = {
        f"{scheme}, {where}"
        for where in FACTOR_SDS
        for scheme in ("M-H", "two stages", "slice", "two-factor slice")
    }
    pairs = {*PLAIN, *PLAIN.values()}
    return [
        claim("burn-in", "paper", "From x = 9, Metropolis with long proposals burns in faster than "
              "multiple-try Metropolis, and this faster than Metropolis with short ones.",
              index.dropna(), {ONE, TEN, MANY}, _burn_in(index)),
        claim("efficiency", "paper", "Multiple-try Metropolis has fewer effective samples a "
              "proposal than Metropolis of either width.", share, {ONE, TEN, MANY},
              _efficiency(share)),
        claim("recycling", "paper", "Waste recycling reduces the error of multiple-try Metropolis "
              "considerably, but not to that of Metropolis.", errors,
              {ONE, TEN, MANY, f"WR-{MANY}"}, _recycling(errors)),
        claim("importance", "paper", "The importance estimate of multiple tries is the best with "
              "long proposals and significantly worse with short ones; recycling does no harm.",
              both, {"MIT, σ = 10", "MTM, σ = 0.1", "WR-MTM, σ = 0.1", "MIT, σ = 0.1"},
              _importance(errors, small)),
        claim("population", "paper", "On the funnel all four variants of population Monte Carlo "
              "are terrible, while Metropolis is good.", neck, {"Metropolis", *POPULATIONS},
              _population(neck)),
        claim("overrelaxation", "paper", "Overrelaxed Gibbs and slice sampling move persistently "
              "along a correlated Gaussian; with Metropolis pivots gain little.", times, pairs,
              _overrelaxation(times)),
        claim("persistence", "paper", "Persistent motion needs of the order of L / σ steps where "
              "Metropolis needs (L / σ)².", found, {"Metropolis", "pivots"}, _slopes(found)),
        claim("pillar", "paper", "Moves from a pillar to a plateau of equal mass are accepted with "
              "probability a / (A - a).", pillar(results), {"Metropolis"},
              _pillar(pillar(results))),
        claim("draws", "paper", "The improved dynamics alone do not justify the cost of many "
              "draws.", times, pairs, _draws(times)),
        claim("calls", "ours", "Ours: testing the prior first saves much where it is narrow, and "
              "little where the likelihood is.", counts, factor_rows,
              _calls(counts)),
    ]  # fmt: skip
