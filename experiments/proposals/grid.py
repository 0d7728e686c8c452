"""The cells: each part of the thesis's measurements, and how much of it a profile runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.engine.nuts import NutsSettings
from harness.forms.method import Method
from harness.forms.nuts import PLAIN_NUTS
from harness.model import Model
from harness.plan.spec import Cell, Profile
from harness.proposals import Sizes

from . import targets
from .factors import FACTORS
from .neck import FUNNEL_METROPOLIS, FUNNEL_POPULATION
from .opposite import OVERRELAXATION, PERSISTENCE, PILLARS
from .student import STUDENT_T

BURN_IN, EFFICIENCY, ERROR, SMALL = "burn-in", "efficiency", "error", "small steps"
FUNNEL, OPPOSITE, PERSISTENT, PILLAR, CALLS = (
    "funnel",
    "overrelaxation",
    "persistence",
    "pillar",
    "calls",
)
TRIES = 5
"""K of multiple-try Metropolis."""
DRAWS = 32
"""K of overrelaxation, as printed for Figure 3.6; for Figure 3.8 no K is printed."""
STEP_SIZES = (0.2, 0.1, 0.05, 0.025)
FACTOR_SDS = {"narrow prior": (0.3, 3.0), "narrow likelihood": (3.0, 0.3)}

_NO_NUTS = NutsSettings()


@dataclass(frozen=True)
class Size:
    """How much a profile runs; each cell is run twice.

    Attributes
    ----------
    burn_in
        Runs, and steps of multiple-try Metropolis.
    efficiency
        Runs, and steps of each.
    error
        Runs of 1000 proposals each.
    small
        Runs, and steps of multiple-try Metropolis with short proposals.
    funnel
        Runs or particles, steps of Metropolis, and steps of populations.
    funnel_nuts
        Draws of each of four chains of NUTS.
    opposite
        Chains, and updates of both coordinates; a fifth of the updates where each makes 32 draws.
    persistent
        Chains, and steps of Metropolis; a fifth of the steps with pivots.
    pillar, calls
        Chains and steps.
    """

    burn_in: tuple[int, int]
    efficiency: tuple[int, int]
    error: int
    small: tuple[int, int]
    funnel: tuple[int, int, int]
    funnel_nuts: int
    opposite: tuple[int, int]
    persistent: tuple[int, int]
    pillar: tuple[int, int]
    calls: tuple[int, int]


SIZES: dict[Profile, Size] = {
    "smoke": Size((200, 40), (4, 500), 50, (10, 200), (100, 200, 200), 100, (8, 300), (8, 500),
                  (100, 50), (20, 200)),
    "quick": Size((5000, 100), (50, 10_000), 2000, (200, 10_000), (1000, 100_000, 10_000), 2000,
                  (32, 10_000), (32, 20_000), (1000, 300), (100, 2000)),
    "paper": Size((5000, 100), (100, 20_000), 5000, (1000, 10_000), (1000, 100_000, 100_000),
                  10_000, (64, 20_000), (64, 50_000), (2000, 1000), (200, 10_000)),
}  # fmt: skip


def grid(profile: Profile) -> tuple[Cell, ...]:
    """All cells of a profile."""
    size = SIZES[profile]
    return (*_student_t(size), *_funnel(size), *_opposite(size), *_calls(size))


def _cell(
    part: str,
    key: str,
    label: str,
    model: Model,
    method: Method,
    settings: dict[str, Any],
    nuts: NutsSettings = _NO_NUTS,
) -> Cell:
    factors = {"part": part, "scheme": label}
    name = f"{part.replace(' ', '-')}-{key}"
    return Cell(name, f"{label}, {part}", factors, model, method, settings, nuts, replications=2)


def _student_t(size: Size) -> list[Cell]:
    model, cells = targets.student_t(), []
    one: dict[str, Any] = {"scheme": "metropolis", "sd": 1.0}
    ten: dict[str, Any] = {"scheme": "metropolis", "sd": 10.0}
    many: dict[str, Any] = {"scheme": "multiple try", "sd": 10.0, "tries": TRIES}
    rows: list[tuple[str, str, dict[str, Any], int]] = [
        ("mh-1", "M-H, σ = 1", one, 2 * TRIES),
        ("mh-10", "M-H, σ = 10", ten, 2 * TRIES),
        ("mtm", "MTM, σ = 10", many, 1),
    ]
    for key, label, scheme, each in rows:
        runs, steps = size.burn_in
        settings = scheme | {"runs": runs, "steps": steps * each, "start": 9.0}
        cells.append(_cell(BURN_IN, key, label, model, STUDENT_T, settings))
    independent: dict[str, Any] = {"scheme": "independent", "sd": 1.0}
    for key, label, scheme, _ in [("iid", "independent draws", independent, 1), *rows]:
        runs, steps = size.efficiency
        settings = scheme | {"runs": runs, "steps": steps, "trace": True}
        cells.append(_cell(EFFICIENCY, key, label, model, STUDENT_T, settings))
    for key, label, scheme, each in rows:
        settings = scheme | {"runs": size.error, "steps": 100 * each}
        cells.append(_cell(ERROR, key, label, model, STUDENT_T, settings))
    runs, steps = size.small
    settings = many | {"sd": 0.1, "runs": runs, "steps": steps}
    cells.append(_cell(SMALL, "mtm", "MTM, σ = 0.1", model, STUDENT_T, settings))
    return cells


def _funnel(size: Size) -> list[Cell]:
    model, (number, walk, steps) = targets.funnel(), size.funnel
    settings: dict[str, Any] = {"runs": number, "steps": walk}
    cells = [_cell(FUNNEL, "metropolis", "Metropolis", model, FUNNEL_METROPOLIS, settings)]
    for adapted in (True, False):
        for combined in (False, True):
            words = "adapted" if adapted else "fixed", "combined" if combined else "separate"
            settings = {"particles": number, "steps": steps}
            settings |= {"adapted": adapted, "combined": combined}
            label = f"PMC, {words[0]}, q {words[1]}"
            key = f"pmc-{words[0]}-{words[1]}"
            cells.append(_cell(FUNNEL, key, label, model, FUNNEL_POPULATION, settings))
    draws = size.funnel_nuts
    nuts = NutsSettings(chains=4, warmup=max(50, min(1000, draws)), draws=draws)
    cells.append(_cell(FUNNEL, "nuts", "NUTS", model, PLAIN_NUTS, {}, nuts))
    return cells


def _opposite(size: Size) -> list[Cell]:
    chains, steps = size.opposite
    rows: list[tuple[str, str, dict[str, Any]]] = [
        ("gibbs", "Gibbs", {"base": "gibbs", "size": None}),
        ("gibbs-over", "Gibbs, overrelaxed", {"base": "gibbs", "size": DRAWS}),
        ("gibbs-sized", "Gibbs, K from 4 to 32", {"base": "gibbs", "size": Sizes(4, DRAWS)}),
        ("slice", "slice", {"base": "slice", "size": None}),
        ("slice-over", "slice, pivot", {"base": "slice", "size": DRAWS}),
        ("metropolis", "Metropolis", {"base": "metropolis", "size": None}),
        ("metropolis-over", "Metropolis, pivot", {"base": "metropolis", "size": DRAWS}),
        ("reflect", "pivot Metropolis, reflect",
         {"base": "metropolis", "size": DRAWS, "reflect": True}),
    ]  # fmt: skip
    cells = []
    for key, label, scheme in rows:
        each = steps if scheme["size"] is None else steps // 5
        settings = scheme | {"chains": chains, "steps": each}
        model = targets.gaussian()
        cells.append(_cell(OPPOSITE, key, label, model, OVERRELAXATION, settings))
    chains, steps = size.persistent
    for sd in STEP_SIZES:
        for key, words, draws in (("metropolis", "Metropolis", None), ("pivot", "pivots", DRAWS)):
            each = steps if draws is None else steps // 5
            settings = {"sd": sd, "size": draws, "chains": chains, "steps": each}
            label = f"{words}, σ = {sd:g}"
            name = f"{key}-{sd:g}".replace(".", "-")
            cells.append(_cell(PERSISTENT, name, label, targets.uniform(), PERSISTENCE, settings))
    chains, steps = size.pillar
    settings = {"sd": 0.2, "chains": chains, "steps": steps}
    cells.append(_cell(PILLAR, "metropolis", "Metropolis", targets.pillar(), PILLARS, settings))
    return cells


def _calls(size: Size) -> list[Cell]:
    chains, steps = size.calls
    cells = []
    for where, sds in FACTOR_SDS.items():
        for scheme in ("M-H", "two stages", "slice", "two-factor slice"):
            settings = {"scheme": scheme, "chains": chains, "steps": steps}
            key = f"{where} {scheme}".lower().replace(" ", "-")
            label = f"{scheme}, {where}"
            cells.append(_cell(CALLS, key, label, targets.product(*sds), FACTORS, settings))
    return cells
