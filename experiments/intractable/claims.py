"""What the thesis says of its methods, and what we add, each against the measurements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from harness.plan.claims import judged
from harness.plan.effects import Decision, Effect, Undecided, all_hold, mean_effect
from harness.plan.spec import Claim, ClaimKind, Results

from .grid import (
    EXACT,
    EXCHANGE,
    HISTORY_A,
    HISTORY_B,
    ISING,
    LANGEVIN,
    LOOPY,
    MAVM,
    MEAN_FIELD,
    NUTS,
    WIDTHS,
)
from .tables import acceptance, bits, lattice, marginals, off, part_of

Judge = Callable[[], tuple[str, Decision | None]]
Found = dict[str, pd.DataFrame]

_CONSIDERABLE = 0.05
_FAR = 5
"""Standard deviations."""
_MATCHES = 0.25
"""Shift of a mean in standard deviations up to which histograms look the same (our choice)."""
_ROUGHLY = 2
"""Factor within which a number that the thesis calls rough counts as reproduced (our choice)."""


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


def _steps(times: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        rows = times.xs(HISTORY_A)
        x, y = np.log(rows.index.to_numpy(dtype=float)), np.log(rows["tau"].to_numpy())
        # Least squares; errors of the times are independent, those of their logarithms relative.
        weights = (x - x.mean()) / np.square(x - x.mean()).sum()
        error = np.sqrt(np.square(weights * rows["tau_error"] / rows["tau"]).sum())
        slope = Effect(float(weights @ y), float(error), int(rows["runs"].min()))
        listed = ", ".join(f"D = {d}: {tau:,.0f}" for d, tau in rows["tau"].items())
        decision = slope.lies(above=0.8)
        if rows["closed"].min() < 1:
            decision = Undecided("longer runs with rule a")
        return (
            f"Autocorrelation times of θ with rule a: {listed}; they grow with the power "
            f"{slope.told()} of D, and above 0.8 counts.",
            decision,
        )

    return judge


def _ideal(times: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        ours, ideal = times.xs(HISTORY_B), times.xs(EXACT)
        shared = ours.index.intersection(ideal.index)
        ours, ideal = ours.loc[shared], ideal.loc[shared]
        gaps = ours["acceptance"] - ideal["acceptance"]
        errors = np.hypot(ours["acceptance_error"], ideal["acceptance_error"])
        apart = {
            int(str(d)): Effect(float(gap), float(error), int(ours["runs"].min()))
            for d, gap, error in zip(shared, gaps, errors, strict=True)
        }
        listed = ", ".join(f"D = {d}: {each.told(3)}" for d, each in apart.items())
        return (
            f"Acceptance with rule b less that of Metropolis-Hastings: {listed}; up to 0.02 is "
            "agreement.",
            all_hold(e.lies(above=-0.02, below=0.02, of=len(apart)) for e in apart.values()),
        )

    return judge


def _without_bridges(costs: pd.DataFrame, scheme: str) -> dict[str, float]:
    """Return the row of a scheme with the small width."""
    row = costs.reset_index()
    row = row[(row["width"] == WIDTHS[0]) & (row["scheme"] == scheme) & (row["levels"] == 0)]
    return {str(name): float(row[name].iloc[0]) for name in costs.columns}


def _over(costs: pd.DataFrame, name: str, one: str, two: str, runs: int) -> Effect:
    """Return the ratio of a column between two schemes."""
    a, b = (_without_bridges(costs, scheme) for scheme in (one, two))
    error = np.hypot(a[f"{name}_error"] / a[name], b[f"{name}_error"] / b[name])
    return Effect(a[name] / b[name], float(error), runs, ratio=True)


def _if_closed(decision: Decision, *rows: dict[str, float]) -> Decision:
    """Decide nothing from chains that are short for their autocorrelation times."""
    if min(row["closed"] for row in rows) < 1:
        return Undecided("chains of 25 autocorrelation times or more")
    return decision


def _efficiency(costs: pd.DataFrame, runs: int) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        row = _without_bridges(costs, HISTORY_B)
        relative = row["efficiency_error"] / row["efficiency"]
        found = Effect(1e5 * row["efficiency"], relative, runs, ratio=True)
        return (
            f"Effective draws of J for 100,000 sweeps, rule b: {found.told(1)}. A factor of "
            f"{_ROUGHLY} either way counts.",
            _if_closed(found.lies(above=4 / _ROUGHLY, below=4 * _ROUGHLY), row),
        )

    return judge


def _half(costs: pd.DataFrame, runs: int) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        ratio = _over(costs, "efficiency", HISTORY_B, MAVM, runs)
        rows = [_without_bridges(costs, scheme) for scheme in (HISTORY_B, MAVM)]
        return (
            f"Effective draws of J for each sweep, rule b over SAVM: {ratio.told()}. A factor of "
            f"{_ROUGHLY} either way counts.",
            _if_closed(ratio.lies(above=0.5 / _ROUGHLY, below=0.5 * _ROUGHLY), *rows),
        )

    return judge


def _ten_times(costs: pd.DataFrame, runs: int) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        ratio = _over(costs, "bound", HISTORY_B, HISTORY_A, runs)
        return (
            "Effective draws of J for each sweep, rule b over rule a, both by their bounds from "
            f"neighbouring draws: {ratio.told(1)}. A factor of {_ROUGHLY} either way counts.",
            ratio.lies(above=10 / _ROUGHLY, below=10 * _ROUGHLY),
        )

    return judge


def _cheaper(runs: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        a, b = (
            runs[runs["scheme"] == scheme].set_index("replication")["sweeps"]
            for scheme in (HISTORY_A, HISTORY_B)
        )
        both = a.index.intersection(b.index)
        mean = mean_effect(np.log(b[both].to_numpy() / a[both].to_numpy()))
        ratio = Effect(float(np.exp(mean.value)), mean.se, mean.runs, ratio=True)
        return (
            f"Sweeps of an iteration, rule b over rule a: {ratio.told(1)}. A factor of {_ROUGHLY} "
            "either way counts.",
            ratio.lies(above=5 / _ROUGHLY, below=5 * _ROUGHLY),
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
    at = f"{{}}, K = 0, width {WIDTHS[0]:g}".format
    smallest = {
        f"{s}, K = {k}, width {w:g}" for s in (EXCHANGE, MAVM) for k in (0, 1) for w in WIDTHS
    }

    times = bits(results)
    runs = part_of(results, ISING, "efficiency")
    repeated = int(runs.groupby("cell").size().min()) if not runs.empty else 0
    sizes = {scheme for scheme, _ in times.index} if not times.empty else set()

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
        claim("history-steps", "paper", "On D independent Bernoulli variables latent histories "
              "with rule a take of the order of D steps or more.", {HISTORY_A} - sizes,
              _steps(times)),
        claim("history-ideal", "paper", "On independent Bernoulli variables latent histories "
              "with rule b are Metropolis-Hastings with the likelihood.",
              {HISTORY_B, EXACT} - sizes, _ideal(times)),
        claim("history-efficiency", "paper", "On the Ising model latent histories with rule b make "
              "4e-5 effective draws for each sweep.", {at(HISTORY_B)} - grid,
              _efficiency(costs, repeated)),
        claim("history-half", "paper", "On the Ising model latent histories with rule b make about "
              "half as many effective draws for each sweep as SAVM.",
              {at(HISTORY_B), at(MAVM)} - grid, _half(costs, repeated)),
        claim("history-ten", "paper", "On the Ising model rule a of latent histories is around ten "
              "times worse than rule b for each sweep.",
              {at(HISTORY_A), at(HISTORY_B)} - grid, _ten_times(costs, repeated)),
        claim("history-cheaper", "paper", "On the Ising model an iteration with rule a of latent "
              "histories takes a fifth of the sweeps of one with rule b.",
              {at(HISTORY_A), at(HISTORY_B)} - grid, _cheaper(runs)),
    ]  # fmt: skip
