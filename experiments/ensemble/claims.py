"""What the paper says of its sampler, and what we add, each against the measurements."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from harness.plan.claims import judged
from harness.plan.effects import Decision, Undecided
from harness.plan.spec import Claim, ClaimKind, Results

from .grid import COX, RAW, TEMPERED, UNC
from .measures import NAMES
from .tables import times

Judge = Callable[[], tuple[str, Decision]]


def slowest(table: pd.DataFrame, scheme: str, part: str) -> float:
    """Largest autocorrelation time of a scheme's quantities."""
    return float(table.loc[[scheme], list(NAMES[part])].to_numpy().max())


def _ordering(raw: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision]:
        eqn, langevin, hmc = (slowest(raw, each, RAW) for each in ("EQN", "Langevin", "HMC"))
        return (
            f"Gradients for an independent sample of the slowest quantity: EQN {eqn:,.0f}, "
            f"Langevin {langevin:,.0f}, HMC {hmc:,.0f}{_open(raw, 'Langevin', 'HMC')}.",
            eqn < langevin < hmc,
        )

    return judge


def _ratio(raw: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision]:
        ratio = slowest(raw, "Langevin", RAW) / slowest(raw, "EQN", RAW)
        return (
            f"Langevin over EQN, slowest quantity of each: {ratio:.0f} (published: 115; 30 to 500 "
            f"counts as reproduced){_open(raw, 'EQN', 'Langevin')}.",
            30 <= ratio <= 500,
        )

    return judge


def _open(table: pd.DataFrame, *schemes: str) -> str:
    """Say which schemes' runs are too short for their autocorrelation times."""
    short = [each for each in schemes if float(table["closed"][each]) < 1]
    return (
        f"; runs of {' and '.join(short)} are short for this, so theirs are bounds" if short else ""
    )


def _divergence(raw: pd.DataFrame, results: Results) -> Judge:
    def judge() -> tuple[str, Decision]:
        names = list(NAMES[RAW])
        ratio = raw.loc["EQN without div", names] / raw.loc["EQN", names]
        runs = (
            results.metrics[results.metrics["part"] == RAW].groupby("scheme")["acceptance"].mean()
        )
        return (
            f"Autocorrelation times without it are {ratio.min():.2f} to {ratio.max():.2f} times "
            f"those with it; acceptance {runs['EQN without div']:.2f} and {runs['EQN']:.2f}. "
            "No difference means within a factor of 1.5.",
            bool(ratio.min() > 1 / 1.5 and ratio.max() < 1.5),
        )

    return judge


def _locality(results: Results) -> Judge:
    def judge() -> tuple[str, Decision]:
        rows = results.metrics[results.metrics["part"] == RAW].groupby("scheme")
        acceptance, orders = rows["acceptance"].mean(), rows["orders"].min()
        several = orders[["EQN", "EQN, λ = 0"]].min()
        local, wide, alone = (
            acceptance[each] for each in ("EQN", "EQN, λ = 0", "EQN in one mode with λ = 0")
        )
        return (
            f"Walkers in {several:.0f} of the 6 orders or more: with λ = 12 at dt = 0.015 "
            f"{local:.0%} of steps are accepted, with λ = 0 at dt = 0.002 {wide:.1%}. With all "
            f"walkers in one order λ = 0 does, at dt = 0.015: {alone:.0%}.",
            bool(several > 1 and wide < 0.1 and local > 0.7 and alone > 0.7),
        )

    return judge


def _spread(raw: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision]:
        spread, alone = (slowest(raw, each, RAW) for each in ("EQN", "EQN in one mode"))
        return (
            f"Gradients for an independent sample of the slowest quantity: {spread:.0f} with "
            f"walkers in six orders, {alone:.0f} with all in one, a ratio of {spread / alone:.2f}"
            f"{_open(raw, 'EQN', 'EQN in one mode')}.",
            spread < 2 * alone,
        )

    return judge


def _unconstrained(raw: pd.DataFrame, unc: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision]:
        before, after = (
            slowest(table, "Langevin", part) / slowest(table, "EQN", part)
            for table, part in ((raw, RAW), (unc, UNC))
        )
        return (
            f"Langevin over EQN, slowest quantity: {before:.0f} with the precisions and weights "
            f"themselves, {after:.1f} with logarithms and logits; at most 5 counts as small.",
            bool(after < 5 < before),
        )

    return judge


def _nuts(unc: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision]:
        eqn = slowest(unc, "EQN", UNC)
        nuts = {m: slowest(unc, f"NUTS, {m} metric", UNC) for m in ("unit", "diag", "dense")}
        listed = ", ".join(f"{name} {value:.0f}" for name, value in nuts.items())
        return (
            f"Gradients for an independent sample of the slowest quantity, in logarithms: EQN "
            f"{eqn:.0f}; NUTS with a metric that is {listed}.",
            nuts["dense"] < eqn,
        )

    return judge


def _raw_nuts(raw: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision]:
        eqn = slowest(raw, "EQN", RAW)
        diag, unit = (slowest(raw, f"NUTS, {m} metric", RAW) for m in ("diag", "unit"))
        return (
            f"Gradients for an independent sample of the slowest quantity: EQN {eqn:.0f}, NUTS "
            f"{diag:.0f} with a diagonal metric and {unit:,.0f} with a unit one; within a factor "
            "of 3 of EQN, and far below the unit metric, counts.",
            bool(diag < 3 * eqn and diag < 0.2 * unit),
        )

    return judge


def _cox(table: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision]:
        eqn, langevin, hmc = (slowest(table, each, COX) for each in ("EQN", "Langevin", "HMC"))
        return (
            f"Iterations for an independent sample of the slowest quantity: EQN {eqn:.0f}, "
            f"Langevin {langevin:.0f}, HMC {hmc:.0f}; EQN must gain a factor of "
            f"1.5{_open(table, 'EQN', 'Langevin', 'HMC')}.",
            1.5 * eqn < langevin < hmc,
        )

    return judge


def _tempering(table: pd.DataFrame, results: Results) -> Judge:
    def judge() -> tuple[str, Decision]:
        near, wide, langevin, nuts = (
            slowest(table, each, TEMPERED)
            for each in ("EQN, near in u", "EQN, λ = 0", "Langevin", "NUTS")
        )
        both = slowest(table, "EQN, near in x and u", TEMPERED)
        return (
            f"Gradients for an independent sample of the slower of inverse temperature and mode: "
            f"{near:,.0f} with weights by the distance in u, {wide:,.0f} with λ = 0, {both:,.0f} "
            f"with weights by x and u, Langevin {langevin:,.0f}, NUTS {nuts:,.0f}"
            f"{_open(table, 'EQN, near in u', 'EQN, λ = 0', 'EQN, near in x and u', 'Langevin')}.",
            # Bounds decide nothing.
            Undecided("longer runs, whose windows close")
            if _open(table, "EQN, near in u", "EQN, λ = 0", "NUTS")
            else near < min(wide, nuts),
        )

    return judge


def claims(results: Results) -> list[Claim]:
    """The paper's claims about Table 1 and locality, and ours."""
    raw, unc, cox, tempered = (times(results, part) for part in (RAW, UNC, COX, TEMPERED))

    def claim(
        key: str,
        kind: ClaimKind,
        statement: str,
        table: pd.DataFrame,
        needs: set[str],
        judge: Judge,
    ) -> Claim:
        made = Claim(key, kind, statement)
        return judged(results, made, needs - set(table.index), judge)

    both = raw.loc[raw.index.intersection(unc.index)]
    metrics = {f"NUTS, {m} metric" for m in ("unit", "diag", "dense")}
    return [
        claim("ordering", "paper", "On the stamps EQN needs far fewer gradients than Langevin "
              "dynamics, and this fewer than HMC.", raw, {"EQN", "Langevin", "HMC"},
              _ordering(raw)),
        claim("ratio", "paper", "EQN is two orders of magnitude more efficient than Langevin "
              "dynamics on the stamps.", raw, {"EQN", "Langevin"}, _ratio(raw)),
        claim("no-divergence", "paper", "Once moves are accepted or rejected, leaving the "
              "divergence of the preconditioner out makes no difference.", raw,
              {"EQN", "EQN without div"}, _divergence(raw, results)),
        claim("locality", "paper", "Where walkers are in several modes, the covariance must be "
              "local.", raw, {"EQN", "EQN, λ = 0", "EQN in one mode with λ = 0"},
              _locality(results)),
        claim("cox-ordering", "paper", "On the Cox process EQN mixes in fewer iterations than "
              "Langevin dynamics, and this in fewer than HMC.", cox, {"EQN", "Langevin", "HMC"},
              _cox(cox)),
        claim("parametrisation", "why", "Why: the large ratio belongs to the raw precisions and "
              "weights; in logarithms it is small.", both, {"EQN", "Langevin"},
              _unconstrained(raw, unc)),
        claim("diagonal-metric", "why", "Why: a diagonal metric that NUTS adapts removes what "
              "Table 1 is about.", raw, {"EQN"} | metrics, _raw_nuts(raw)),
        claim("nuts-today", "against", "Against: NUTS with a dense metric needs fewer gradients "
              "than EQN in logarithms.", unc, {"EQN"} | metrics, _nuts(unc)),
        claim("spread", "ours", "Ours: walkers that share six modes need less than twice the "
              "gradients of as many walkers in one mode.", raw, {"EQN", "EQN in one mode"},
              _spread(raw)),
        claim("tempering", "ours", "Ours: inside continuous tempering, weights by the inverse "
              "temperature alone make EQN better than a global covariance and than NUTS.",
              tempered, {"EQN, near in u", "EQN, λ = 0", "EQN, near in x and u", "Langevin",
                         "NUTS"}, _tempering(tempered, results)),
    ]  # fmt: skip
