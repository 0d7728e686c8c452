"""What the paper says of sparse regression, and what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from harness.plan.claims import judged
from harness.plan.effects import Decision, Effect, Undecided, all_hold, any_holds, mean_effect
from harness.plan.spec import Claim, Results

from .cells import FIXED_ROWS, HMC, PE_2, PE_5, SHARED_2, SHARED_5
from .tables import data_names, difference, exact_table, runs_of

Judgement = tuple[str, Decision | None]

_EQUAL = 0.8
"""Part of the budget that every run must have spent for costs to count as equal."""


def claims(results: Results) -> list[Claim]:
    """Judge each statement; 'not run' without its cells, and in the smoke profile."""
    return [judged(results, claim, (), partial(judge, results)) for claim, judge in CLAIMS]


def _with(results: Results, *rows: str) -> list[str]:
    """Data sets on which all these rows have two splits or more."""
    return [
        data
        for data in data_names(results)
        if all(len(runs_of(results, data, row)) >= 2 for row in rows)
    ]


def _unequal(results: Results, data: str, rows: tuple[str, ...]) -> bool:
    return any((runs_of(results, data, row)["share_of_budget"] < _EQUAL).any() for row in rows)


_EQUAL_COST = Undecided("runs that spend their whole budget, so that costs are equal")


def _improvement(rows: tuple[str, str]) -> Callable[[Results], Judgement]:
    """Judge whether one of two rows predicts better than HMC, and none worse, on each data set."""

    def judge(results: Results) -> Judgement:
        said: list[str] = []
        verdicts: list[Decision] = []
        for data in _with(results, HMC.key, *rows):
            gains = [_gain(results, data, row, HMC.key) for row in rows]
            parts = ", ".join(
                f"N={n} {gain.told(3, '+')}" for n, gain in zip((2, 5), gains, strict=True)
            )
            note = ""
            if _unequal(results, data, (HMC.key, *rows)):
                note = "; costs were not equal"
                verdicts.append(_EQUAL_COST)
            else:
                better = any_holds(gain.lies(above=0, of=2) for gain in gains)
                worse = any(gain.lies(below=0, of=2) is True for gain in gains)
                verdicts.append(False if worse else better)
            said.append(f"{data}: {parts} ({gains[0].runs} splits{note})")
        return _joined("Nats per held-out observation above HMC", said, verdicts)

    return judge


def _gain(results: Results, data: str, row: str, other: str) -> Effect:
    """Mean over splits of a row's held-out density minus another's."""
    mean, error, splits = difference(results, data, row, other)
    return Effect(mean, error, splits)


def _strong_hmc(results: Results) -> Judgement:
    said: list[str] = []
    verdicts: list[Decision] = []
    for data in _with(results, HMC.key, PE_2.key):
        rows = [cell.factors["row"] for cell in results.cells if cell.factors["data"] == data]
        hmc = runs_of(results, data, HMC.key)
        chance = float(hmc["base_rate"].mean())
        gains = {row: float(runs_of(results, data, row)["lpd"].mean()) - chance for row in rows}
        best = max(gains.values())
        said.append(f"{data}: HMC {gains[HMC.key]:.3f}, the best row {best:.3f}")
        verdicts.append(best > 0 and gains[HMC.key] >= 0.8 * best)
    return _joined("Nats per held-out observation above the class shares", said, verdicts)


def _fixed(results: Results) -> Judgement:
    """Judge whether some data set shows a better fixed β, and some data set a worse one."""
    said: list[str] = []
    better: list[Decision] = []
    worse: list[Decision] = []
    rows = tuple(row.key for row in FIXED_ROWS)
    for data in _with(results, PE_2.key, *rows):
        each = {row: _gain(results, data, row.key, PE_2.key) for row in FIXED_ROWS}
        parts = ", ".join(f"β={row.inv_temp:g} {gain.told(3, '+')}" for row, gain in each.items())
        unequal = _unequal(results, data, (PE_2.key, *rows))
        said.append(f"{data}: {parts}{'; costs were not equal' if unequal else ''}")
        better += [_EQUAL_COST] if unequal else [g.lies(above=0) for g in each.values()]
        worse += [_EQUAL_COST] if unequal else [g.lies(below=0) for g in each.values()]
    head = "Nats per held-out observation above sampled β, N=2"
    return _joined(head, said, [any_holds(better), any_holds(worse)])


def _unimodal(results: Results) -> Judgement:
    said: list[str] = []
    verdicts: list[Decision] = []
    for data in _with(results, HMC.key):
        runs = runs_of(results, data, HMC.key)
        found = mean_effect(runs["unimodal_at_zero"])
        said.append(
            f"{data}: {found.value:.0%} ({found.runs} splits, three coefficients at random each)"
        )
        verdicts.append(found.lies(above=0.5))
    return _joined("Densities under HMC with one mode, at zero; most must", said, verdicts)


def _inexact(results: Results) -> Judgement:
    table = exact_table(results)
    needed = {PE_2.key, SHARED_2.key, "pe-2-full-50", "pe-2-shared-50", "pe-2-shared-100"}
    if not needed <= set(table.index):
        return "The small problem is not in these results.", None
    shared = table[table.index.str.contains("shared")]
    exact = table.drop(shared.index)
    parts = ", ".join(
        f"{row['method']} {row['bias']:+.3f} ± {row['mcse']:.3f} "
        f"(derived {row['this form'] - row['posterior']:+.3f})"
        for _, row in shared.iterrows()
    )
    truth = float(table["posterior"].iloc[0])
    return (
        f"Bias of E[τ / (τ₀ + τ)] = {truth:.3f}, exact by quadrature: {parts}; own scales and HMC "
        f"at most {exact['bias'].abs().max():.3f} ({int(table['runs'].min())} runs each).",
        bool(
            np.all(shared["z truth"] > 4)
            and np.all(shared["z form"].abs() < 4)
            and np.all(exact["z truth"].abs() < 4)
        ),
    )


def _joined(head: str, said: list[str], verdicts: Sequence[Decision]) -> Judgement:
    """Put data sets together: every one that can be judged must agree."""
    if not said:
        return "The cells it needs are not in these results.", None
    judged_ones = [each for each in verdicts if each is not _EQUAL_COST]
    return f"{head}: {'; '.join(said)}.", all_hold(judged_ones) if judged_ones else _EQUAL_COST


CLAIMS: tuple[tuple[Claim, Callable[[Results], Judgement]], ...] = (
    (
        Claim(
            "pe-above-hmc",
            "paper",
            "Pseudo-extended MCMC (N=2, N=5) predicts better than HMC at equal cost; as published, "
            "with shared scales.",
        ),
        _improvement((SHARED_2.key, SHARED_5.key)),
    ),
    (
        Claim(
            "exact-pe-above-hmc",
            "ours",
            "Ours: PE predicts better in the exact form, too: every pseudo-sample has its own "
            "scales.",
        ),
        _improvement((PE_2.key, PE_5.key)),
    ),
    (
        Claim(
            "hmc-strong",
            "paper",
            "HMC performs strongly: it has at least 80 % of what the best row gains over the class "
            "shares.",
        ),
        _strong_hmc,
    ),
    (
        Claim(
            "fixed-beta",
            "paper",
            "A fixed β can predict better than a sampled one, and one fixed wrongly worse (both by "
            "two standard errors; exact form).",
        ),
        _fixed,
    ),
    (
        Claim(
            "unimodal", "paper", "Marginal posteriors are mostly unimodal, with their mass at zero."
        ),
        _unimodal,
    ),
    (
        Claim(
            "shared-scales-biased",
            "ours",
            "Ours: pseudo-samples that share λ, τ and c, as in the published program, give biased "
            "scales, because the data count more than once; pseudo-samples with scales of their "
            "own are right.",
        ),
        _inexact,
    ),
)
