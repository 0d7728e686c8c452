"""Judges on the continuous-tempering half: what Graham and Storkey say, and one claim of ours."""

from __future__ import annotations

from collections.abc import Callable

from harness.plan.effects import Decision, Effect, Undecided, all_hold
from harness.plan.spec import Results

from .claims_shared import Judged
from .curves import PAPER_CT, of_family, of_half, ratio_at_equal_cost
from .measure import ERRORS


def dominates(
    rivals: tuple[str, ...],
    forms: tuple[str, ...],
    half: str,
    cost: str,
    *,
    besides: tuple[str, ...] = (),
) -> Callable[[Results], Judged]:
    """Judge whether all forms are below all rivals in all three errors, at equal cost.

    Errors are relative to the base's and averaged over instances, as in the paper's figure, and
    compared at the largest cost that lies inside both curves.  The largest ratio at the smallest
    such cost and those to families in ``besides`` are told, and decide nothing.
    """

    def judge(results: Results) -> Judged:
        names = list(dict.fromkeys(cell.factors["instance"] for cell in of_half(results, half)))
        unit = {"work": "gradients", "time": "seconds"}[cost]
        pairs = [(form, rival) for form in forms for rival in rivals]
        number = len(pairs) * len(PAPER_CT)
        said: list[str] = []
        decisions: list[Decision] = []
        for key in PAPER_CT:
            found = {pair: _relative(results, half, pair, key, cost, None) for pair in pairs}
            ratios = {p: each for p, each in found.items() if isinstance(each, Effect)}
            decisions += [each for each in found.values() if isinstance(each, Undecided)]
            decisions += [each.lies(below=1, of=number) for each in ratios.values()]
            if ratios:
                (form, rival), worst = max(ratios.items(), key=lambda item: item[1].value)
                said.append(f"{ERRORS[key]} {worst.told()} ({form} over {rival})")
        wins = sum(
            all(
                isinstance(each := _relative(results, half, pair, key, cost, name), Effect)
                and each.value < 1
                for pair in pairs
                for key in PAPER_CT
            )
            for name in names
        )
        decision = all_hold(decisions)
        told = "; ".join(said) or "no cost lies inside both curves"
        return (
            f"Largest ratio at equal {unit}: {told}. All are below 1 on {wins} of {len(names)} "
            "instances."
            + _largest(results, half, pairs, cost, "at the smallest cost in common", cheapest=True)
            + "".join(
                _largest(results, half, [(form, rival) for form in forms], cost, f"over {rival}")
                for rival in besides
            ),
            decision,
        )

    return judge


def _largest(
    results: Results,
    half: str,
    pairs: list[tuple[str, str]],
    cost: str,
    where: str,
    *,
    cheapest: bool = False,
) -> str:
    """Tell the largest ratio of some pairs of families, over all errors."""
    found = []
    for pair in pairs:
        for key in PAPER_CT:
            each = _relative(results, half, pair, key, cost, None, cheapest=cheapest)
            if isinstance(each, Effect):
                said = f"{each.told()} ({ERRORS[key]}, {pair[0]} over {pair[1]})"
                found.append((each.value, said))
    return f" Largest {where}: {max(found)[1]}." if found else ""


def _relative(
    results: Results,
    half: str,
    pair: tuple[str, str],
    key: str,
    cost: str,
    instance: str | None,
    *,
    cheapest: bool = False,
) -> Effect | Undecided:
    """Relative error of one family over another's at equal cost, on one instance or on all."""
    one, two = (
        [
            cell
            for cell in of_family(results, half, family)
            if instance is None or cell.factors["instance"] == instance
        ]
        for family in pair
    )
    return ratio_at_equal_cost(results, (one, two), key, cost, relative=True, cheapest=cheapest)


def joint_better(results: Results) -> Judged:
    """Judge whether joint CT is below Gibbs CT, by less than a factor 2."""
    said: list[str] = []
    decisions: list[Decision] = []
    for key in ("log_z", "mean"):
        found = _relative(results, "CT", ("joint HMC", "Gibbs CT"), key, "work", None)
        if isinstance(found, Undecided):
            decisions.append(found)
            continue
        said.append(f"{ERRORS[key]} {found.told()}")
        decisions.append(found.lies(above=0.5, below=1, of=2))
    return f"Joint CT over Gibbs CT at equal gradients: {'; '.join(said)}.", all_hold(decisions)
