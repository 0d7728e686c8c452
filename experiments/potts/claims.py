"""What the thesis says of Table 4.4 and Figure 4.6, and what we add, each against measurements."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from harness.plan.claims import judged
from harness.plan.effects import Decision
from harness.plan.spec import Claim, Results

from .lattices import DISORDERED, ISING, ORDERED, POTTS
from .tables import RIGHT, estimates, transition

Judge = Callable[[], tuple[str, Decision | None]]
ANNEALED = ("Gibbs AIS", "Swendsen-Wang AIS")
NESTED = ("Gibbs nested sampling", "Random-cluster nested sampling")
EQUAL_STEPS = "Swendsen-Wang AIS, equal steps"
DOWN = "Acceptance ratio from J = 6"
STARTS, PASSAGE = "Swendsen-Wang from both starts", "Nested sampling through the transition"
CONTROLS = {
    "Gibbs, deleted particle": "Gibbs, surviving particle",
    "Random cluster, deleted particle": "Random cluster, surviving particle",
}
USELESS = 3.0
"""Nats off the truth from which log Z counts as useless."""
FEW = 3.0
"""Effective runs of 100 below which annealing counts as useless, wherever its log Z lies."""


def _listed(table: pd.DataFrame, rows: tuple[str, ...], column: str = "errors off") -> str:
    return ", ".join(f"{row} {float(table[column][row]):+.1f}" for row in rows)


def _right(table: pd.DataFrame, rows: tuple[str, ...]) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        off = table.loc[list(rows), "errors off"]
        holds = None if off.isna().any() else bool((off.abs() < RIGHT).all())
        return f"Errors off the truth: {_listed(table, rows)}.", holds

    return judge


def _useless(table: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        off = table.loc[list(ANNEALED), "off"]
        effective = table.loc[list(ANNEALED), "effective"]
        useless = (off < -USELESS) | (effective < FEW)
        runs = ", ".join(f"{each:.1f}" for each in effective)
        return (
            f"Nats off the truth: {_listed(table, ANNEALED, 'off')}; effective runs {runs}. "
            f"{USELESS:.0f} nats below it, or fewer than {FEW:.0f} effective runs, count as "
            "useless.",
            None if off.isna().any() else bool(useless.all()),
        )

    return judge


def _equal_steps(table: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        slow, fast = (float(table["off"][row]) for row in (EQUAL_STEPS, ANNEALED[1]))
        return (
            f"Swendsen-Wang, nats off the truth: {fast:+.1f} with geometric steps, {slow:+.1f} "
            "with equal ones.",
            abs(slow) < 0.5 * abs(fast),
        )

    return judge


def _controls(table: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        pairs = [
            (float(table["errors off"][bad]), float(table["errors off"][good]))
            for bad, good in CONTROLS.items()
        ]
        return (
            "Errors off the truth on Ising, from the deleted particle and from a survivor: "
            + "; ".join(f"{bad:+.1f} and {good:+.1f}" for bad, good in pairs)
            + ".",
            all(abs(bad) > RIGHT > abs(good) for bad, good in pairs),
        )

    return judge


def _hysteresis(table: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        ordered, disordered, crossed = (
            float(table[name][STARTS]) for name in ("ordered", "disordered", "crossed")
        )
        return (
            f"At the critical J {ordered:.3f} of edges have a bond after an ordered start and "
            f"{disordered:.3f} after a disordered one; {crossed:.0%} of lattices came between. "
            "A gap of two thirds of the infinite lattice's, and no lattice between, counts.",
            ordered - disordered > 2 / 3 * (ORDERED - DISORDERED) and crossed == 0,
        )

    return judge


def _passes(table: pd.DataFrame) -> Judge:
    def judge() -> tuple[str, Decision | None]:
        count = float(table["mixed"][PASSAGE])
        return (
            f"Nested sampling was between the phases in {count:.0f} of the 200 or so states that a "
            "run keeps; 5 count.",
            count >= 5,
        )

    return judge


def claims(results: Results) -> list[Claim]:
    """All claims."""
    ising, potts = estimates(results, ISING), estimates(results, POTTS)
    seen = transition(results)

    def claim(made: Claim, table: pd.DataFrame, rows: tuple[str, ...], judge: Judge) -> Claim:
        return judged(results, made, set(rows) - set(table.index), judge)

    all_rows = (*ANNEALED, *NESTED, "Acceptance ratio")
    controls = (*CONTROLS, *CONTROLS.values())
    return [
        claim(Claim("ising", "paper", "On the Ising system every method is right."), ising,
              all_rows, _right(ising, all_rows)),
        claim(Claim("annealing-fails", "paper", "With 10 colours near the critical coupling, "
                    "annealing gives no useful answer, by Gibbs sampling or by Swendsen-Wang."),
              potts, ANNEALED, _useless(potts)),
        claim(Claim("nested-right", "paper", "There nested sampling is right within its errors, by "
                    "Gibbs sampling and with bonds."), potts, NESTED, _right(potts, NESTED)),
        claim(Claim("acceptance-ratio", "paper", "The acceptance ratio between couplings is nearly "
                    "right there too."), potts, ("Acceptance ratio",),
              _right(potts, ("Acceptance ratio",))),
        claim(Claim("deleted", "paper", "New particles that start at the deleted one make nested "
                    "sampling wrong."), ising, controls, _controls(ising)),
        claim(Claim("hysteresis", "paper", "At the transition Swendsen-Wang stays in the phase in "
                    "which it starts."), seen, (STARTS,), _hysteresis(seen)),
        claim(Claim("passes", "paper", "Nested sampling passes through states in which both phases "
                    "are."), seen, (PASSAGE,), _passes(seen)),
        claim(Claim("equal-steps", "why", "Why: geometric steps of J hurry past the transition; "
                    "with equal steps annealing is at most half as far off."), potts,
              (ANNEALED[1], EQUAL_STEPS), _equal_steps(potts)),
        claim(Claim("down", "ours", "Ours: the acceptance ratio down from J = 6, which needs no "
                    "annealing, agrees."), potts, (DOWN,), _right(potts, (DOWN,))),
    ]  # fmt: skip
