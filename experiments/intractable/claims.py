"""What the thesis says of its methods, and what we add, each against the measurements."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from harness.plan.claims import judged
from harness.plan.effects import Decision
from harness.plan.spec import Claim, ClaimKind, Results

from .grid import EXACT, EXCHANGE, LANGEVIN, LOOPY, MAVM, MEAN_FIELD, NUTS, WIDTHS
from .tables import acceptance, lattice, marginals, off

Judge = Callable[[], tuple[str, Decision | None]]
Found = dict[str, pd.DataFrame]

_CONSIDERABLE = 0.05
_FAR = 5
"""Standard deviations."""
_MATCHES = 0.25
"""Shift of a mean in standard deviations up to which histograms look the same (our choice)."""


def _rates(table: pd.DataFrame, figure: str, scheme: str) -> pd.DataFrame:
    """Return the rows of one line of Figure 5.10."""
    return table[(table["figure"] == figure) & (table["scheme"] == scheme)]


def _rate(table: pd.DataFrame, figure: str, scheme: str, levels: int) -> float:
    rows = _rates(table, figure, scheme)
    return float(rows.loc[rows["levels"] == levels, "ours"].iloc[0])


def _bridging(table: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        ends, rising = {}, True
        for scheme in (EXCHANGE, MAVM):
            rates = _rates(table, "a", scheme).sort_values("levels")["ours"]
            ends[scheme] = (float(rates.iloc[0]), float(rates.iloc[-1]))
            rising &= bool(rates.is_monotonic_increasing)
        savm = ends[MAVM][0]
        listed = "; ".join(f"{name} {a:.3f} to {b:.3f}" for name, (a, b) in ends.items())
        return (
            f"Acceptance without and with most bridges: {listed}; SAVM {savm:.3f}.",
            rising and min(end for _, end in ends.values()) > max(0.95, savm),
        )

    return judge


def _only_without_bridges(table: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        savm = _rates(table, "b", MAVM)
        best = float(savm.loc[savm["levels"] == 0, "ours"].max())
        ours = _rate(table, "a", EXCHANGE, 0)
        return (
            f"Acceptance at K = 0: exchange {ours:.3f}, SAVM with the best of its estimates "
            f"{best:.3f}; worse by {_CONSIDERABLE} counts as considerable.",
            ours < best - _CONSIDERABLE,
        )

    return judge


def _estimate(table: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        rows = _rates(table, "b", MAVM)
        at = {k: rows[rows["levels"] == k].set_index("estimate")["ours"] for k in (0, 10)}
        poor = {k: max(each[0.1], each[5.0]) for k, each in at.items()}
        return (
            "Acceptance with the best and with the better of the two worst estimates: "
            + "; ".join(f"K = {k}: {each.max():.3f}, {poor[k]:.3f}" for k, each in at.items())
            + ".",
            all(poor[k] < each.max() - _CONSIDERABLE for k, each in at.items()),
        )

    return judge


def _local(table: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        exact = _rate(table, "c", EXACT, 0)
        ours, theirs = (_rate(table, "c", scheme, 10) for scheme in (EXCHANGE, MAVM))
        savm = _rate(table, "c", MAVM, 0)
        return (
            f"With a walk of width 0.1: exact {exact:.3f}; with 10 bridges exchange {ours:.3f}, "
            f"MAVM {theirs:.3f}; SAVM {savm:.3f}.",
            ours > exact - 0.01 and savm < theirs < exact - _CONSIDERABLE,
        )

    return judge


def _agrees(found: Found) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        apart = off(found, EXCHANGE)
        score = (apart["shift"] / apart["error"]).abs()
        return (
            f"Largest difference of 21 means from those of NUTS: {apart['shift'].abs().max():.2f} "
            f"standard deviations, {score.max():.1f} Monte Carlo errors; up to 4 is agreement.",
            bool(score.max() < 4),
        )

    return judge


def _most(found: Found) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        close = {
            scheme: int((off(found, scheme)["shift"].abs() < _MATCHES).sum())
            for scheme in (LOOPY, LANGEVIN)
        }
        listed = ", ".join(f"{scheme} {number}" for scheme, number in close.items())
        return (
            f"Of 21 means these are within {_MATCHES} standard deviations: {listed}.",
            all(number > 21 / 2 for number in close.values()),
        )

    return judge


def _one_wrong(found: Found) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        shift = off(found, LANGEVIN)["shift"].abs().sort_values(ascending=False)
        return (
            f"Brief Langevin's largest shifts: {shift.index[0]} {shift.iloc[0]:.2f} and "
            f"{shift.index[1]} {shift.iloc[1]:.2f} standard deviations; 1 counts as very wrong.",
            bool(shift.iloc[0] > 1 > shift.iloc[1]),
        )

    return judge


def _mean_field(found: Found) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        ours, truth = found[MEAN_FIELD], found[NUTS]
        shift = ((ours["mean"] - truth["mean"]) / truth["sd"]).abs()
        worst, name = float(shift.max()), str(shift.idxmax())
        late = ((ours["late"] - truth["mean"]) / truth["sd"]).abs()
        far = shift > _FAR
        leaving = int((late[far] > shift[far]).sum())
        widest = float((ours["sd"] / truth["sd"]).max())
        return (
            f"Mean of {name}: {worst:.0f} standard deviations away. {int(far.sum())} parameters "
            f"are more than {_FAR} away, of which {leaving} are farther in the second half than "
            f"over all; the widest marginal is {widest:.0f} times as wide as the truth.",
            worst > _FAR and leaving == int(far.sum()) and widest > 2,
        )

    return judge


def _sweeps(costs: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        needed = [1 / float(costs["efficiency"].xs(width).xs(MAVM).loc[0]) for width in WIDTHS]
        listed = " and ".join(f"{each:,.0f}" for each in needed)
        return (
            f"Sweeps for an effective draw of J by SAVM with the two widths: {listed}; the better "
            "within a factor of 3 of 10,000 counts.",
            1e4 / 3 < min(needed) < 3e4,
        )

    return judge


def _better(costs: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        each = costs["efficiency"]
        ratio = each.xs(EXCHANGE, level="scheme") / each.xs(MAVM, level="scheme")
        return (
            f"Effective draws of J for each sweep, exchange over MAVM at equal K and width: "
            f"{ratio.min():.1f} to {ratio.max():.1f}.",
            bool(ratio.min() > 1),
        )

    return judge


def _larger_steps(costs: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        gain = []
        for width in WIDTHS:
            rows = costs["efficiency"].xs(width).xs(EXCHANGE)
            gain.append(float(rows.loc[rows.index > 0].max()) / float(rows.loc[0]))
        listed = ", ".join(f"width {w:g}: {each:.2f}" for w, each in zip(WIDTHS, gain, strict=True))
        return (
            f"Efficiency of exchange with its best number of bridges over none: {listed}; 1.2 "
            "counts as appreciable.",
            gain[1] > 1.2 > gain[0],
        )

    return judge


def claims(results: Results) -> list[Claim]:
    """The thesis's claims about its figures, and ours."""
    rates, found, costs = acceptance(results), marginals(results), lattice(results)
    have = {f"{f}: {s}, K = {k}" for f, s, k in zip(
        rates["figure"], rates["scheme"], rates["levels"], strict=True)}  # fmt: skip
    grid = {
        f"{scheme}, K = {k}, width {width:g}" for width, scheme, k in costs.index
    } if not costs.empty else set()  # fmt: skip
    smallest = {
        f"{s}, K = {k}, width {w:g}" for s in (EXCHANGE, MAVM) for k in (0, 1) for w in WIDTHS
    }

    def claim(key: str, kind: ClaimKind, statement: str, lacking: set[str], judge: Judge) -> Claim:
        return judged(results, Claim(key, kind, statement), lacking, judge)

    a = {f"a: {scheme}, K = {k}" for scheme in (EXCHANGE, MAVM) for k in (0, 10)}
    b = {"b: MAVM, K = 0", "b: MAVM, K = 10"}
    c = {"c: exact, K = 0", "c: exchange, K = 10", "c: MAVM, K = 10", "c: MAVM, K = 0"}
    return [
        claim("bridging", "paper", "With proposals from the posterior, bridging brings exchange "
              "and MAVM above SAVM and towards an acceptance of 1.", a - have, _bridging(rates)),
        claim("estimate", "paper", "MAVM becomes worse if its estimate is poor.", b - have,
              _estimate(rates)),
        claim("only-without-bridges", "paper", "Without bridges exchange is considerably worse "
              "than SAVM.", (a | b) - have, _only_without_bridges(rates)),
        claim("local-steps", "paper", "With local steps exchange quickly reaches the acceptance of "
              "a known Z, and MAVM does not.", c - have, _local(rates)),
        claim("approximate", "paper", "Loopy Metropolis and brief Langevin match most of the 21 "
              "exact marginals.", {LOOPY, LANGEVIN, NUTS} - set(found), _most(found)),
        claim("one-wrong", "paper", "One of the marginals of brief Langevin is very different.",
              {LANGEVIN, NUTS} - set(found), _one_wrong(found)),
        claim("mean-field", "paper", "Mean-field Metropolis does not converge: its histograms are "
              "wide, and their range ever increases.", {MEAN_FIELD, NUTS} - set(found),
              _mean_field(found)),
        claim("agrees", "ours", "Ours: the exchange algorithm agrees with NUTS on all 21 means.",
              {EXCHANGE, NUTS} - set(found), _agrees(found)),
        claim("savm-sweeps", "paper", "On the Ising model SAVM takes 10,000 Gibbs sweeps for an "
              "effective draw.", smallest - grid, _sweeps(costs)),
        claim("exchange-better", "paper", "On the Ising model exchange is more efficient than SAVM "
              "and MAVM at every number of bridges.", smallest - grid, _better(costs)),
        claim("larger-steps", "paper", "Bridging gives exchange an appreciable benefit for larger "
              "steps only.", smallest - grid, _larger_steps(costs)),
    ]  # fmt: skip
