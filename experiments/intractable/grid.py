"""Cells of the experiment: Gaussian precision, heart disease data, Ising model and Bernoulli bits.

Latent histories run on the last two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.engine.nuts import NutsSettings
from harness.forms.method import Method
from harness.forms.nuts import PLAIN_NUTS
from harness.model import Model
from harness.models.heart_disease import heart_disease
from harness.plan.spec import Cell, Profile

from . import bernoulli, gaussian, ising
from .bernoulli import BITS
from .gaussian import PRECISION
from .heart import MACHINE
from .ising import LATTICE

PRECISION_PART, HEART, ISING = "Gaussian precision", "heart disease", "Ising model"
BERNOULLI = "Bernoulli variables"
EXACT, EXCHANGE, MAVM, NUTS = "exact", "exchange", "MAVM", "NUTS"
HISTORY_A, HISTORY_B = "history a", "history b"
LOOPY, MEAN_FIELD, LANGEVIN = "loopy", "mean field", "brief Langevin"
MACHINE_SCHEMES = (EXACT, EXCHANGE, LOOPY, LANGEVIN, MEAN_FIELD)
ESTIMATES = (0.1, 0.5, 1.0, 2.0, 5.0)
WIDTHS = (0.04, 0.1)
_NO_NUTS = NutsSettings()


@dataclass(frozen=True)
class Size:
    """How much a profile runs; every cell runs twice.

    Attributes
    ----------
    levels
        Bridges K on the Gaussian precision; the estimate is varied at the first and at 10.
    walkers, precision
        Chains and iterations there.
    machine
        Iterations of each of 8 chains on the heart disease data; 100,000 in the thesis.
    mean_field
        Those of mean-field Metropolis, whose bound takes longest.
    nuts
        Draws of each of 4 chains of NUTS there.
    lattice_levels, lattice
        Bridges K on the Ising model, and iterations of each of 20 chains.
    history_chains, history_a, history_b
        Chains of latent histories there, and iterations of each with rules a and b.
    variables, bits
        Numbers D of Bernoulli variables; 40 chains run for ``bits`` D iterations with rule a, for
        10 ``bits`` otherwise.
    """

    levels: tuple[int, ...]
    walkers: int
    precision: int
    machine: int
    mean_field: int
    nuts: int
    lattice_levels: tuple[int, ...]
    lattice: int
    history_chains: int
    history_a: int
    history_b: int
    variables: tuple[int, ...]
    bits: int


_LEVELS = (0, 1, 2, 5, 10, 50, 100, 300)
SIZES: dict[Profile, Size] = {
    "smoke": Size((0, 1, 10), 50, 20, 200, 100, 100, (0, 1), 20, 10, 20, 20, (4, 16), 8),
    "quick": Size(_LEVELS, 500, 40, 10_000, 2000, 1000, (0, 1, 10, 30), 400,
                  50, 1500, 400, (16, 64, 256), 160),
    "paper": Size(_LEVELS, 500, 200, 100_000, 20_000, 2500, (0, 1, 10, 30, 100), 4000,
                  100, 20_000, 7500, (16, 64, 256, 1024), 160),
}  # fmt: skip


def grid(profile: Profile) -> tuple[Cell, ...]:
    """All cells of a profile."""
    size = SIZES[profile]
    return (*_precision(size), *_heart(size), *_ising(size), *_bernoulli(size))


def _cell(
    part: str,
    key: str,
    label: str,
    factors: dict[str, Any],
    model: Model,
    method: Method,
    settings: dict[str, Any],
    nuts: NutsSettings = _NO_NUTS,
) -> Cell:
    shared = {"levels": 0, "estimate": 1.0, "local": False, "width": 0.0}
    return Cell(key, label, {"part": part, **shared, **factors}, model, method, settings, nuts, 2)


def _precision(size: Size) -> list[Cell]:
    model = gaussian.model()
    rows: list[tuple[str, int, float, bool]] = [
        (scheme, levels, 1.0, local)
        for local in (False, True)
        for scheme in (EXCHANGE, MAVM)
        for levels in size.levels
    ]
    rows += [(MAVM, levels, at, False) for levels in (0, 10) for at in ESTIMATES if at != 1]
    rows.append((EXACT, 0, 1.0, True))
    cells = []
    for scheme, levels, estimate, local in rows:
        factors = {"scheme": scheme, "levels": levels, "estimate": estimate, "local": local}
        at = "" if estimate == 1 else f"-at-{estimate:g}".replace(".", "p")
        key = f"precision-{scheme.lower()}-{levels}{at}{'-local' if local else ''}"
        label = f"{scheme}, K = {levels}" + (f", from {estimate:g}" if at else "")
        label += ", walk" if local else ""
        settings = factors | {"walkers": size.walkers, "iterations": size.precision}
        cells.append(_cell(PRECISION_PART, key, label, factors, model, PRECISION, settings))
    return cells


def _heart(size: Size) -> list[Cell]:
    model = heart_disease()
    cells = []
    for scheme in MACHINE_SCHEMES:
        length = size.mean_field if scheme == MEAN_FIELD else size.machine
        settings = {"scheme": scheme, "chains": 8, "iterations": length, "thin": 20}
        key = f"heart-{scheme.lower().replace(' ', '-')}"
        cells.append(_cell(HEART, key, scheme, {"scheme": scheme}, model, MACHINE, settings))
    nuts = NutsSettings(chains=4, warmup=max(100, size.nuts // 2), draws=size.nuts)
    cells.append(_cell(HEART, "heart-nuts", NUTS, {"scheme": NUTS}, model, PLAIN_NUTS, {}, nuts))
    return cells


def _ising(size: Size) -> list[Cell]:
    model = ising.model()
    cells = []
    for width in WIDTHS:
        for scheme in (EXCHANGE, MAVM):
            for levels in size.lattice_levels:
                factors = {"scheme": scheme, "levels": levels, "width": width}
                key = f"ising-{scheme.lower()}-{levels}-{width:g}".replace(".", "p")
                label = f"{scheme}, K = {levels}, width {width:g}"
                settings = factors | {"chains": 20, "iterations": size.lattice}
                cells.append(_cell(ISING, key, label, factors, model, LATTICE, settings))
    for scheme, length in ((HISTORY_A, size.history_a), (HISTORY_B, size.history_b)):
        factors = {"scheme": scheme, "levels": 0, "width": WIDTHS[0]}
        settings = factors | {"chains": size.history_chains, "iterations": length}
        key = f"ising-{scheme.replace(' ', '-')}"
        cells.append(_cell(ISING, key, scheme, factors, model, LATTICE, settings))
    return cells


def _bernoulli(size: Size) -> list[Cell]:
    cells = []
    for variables in size.variables:
        model = bernoulli.model(variables)
        for scheme, rule in ((HISTORY_A, "a"), (HISTORY_B, "b"), (EXACT, bernoulli.EXACT_RULE)):
            factors = {"scheme": scheme, "variables": variables}
            length = size.bits * (variables if rule == "a" else 10)
            settings = {"rule": rule, "variables": variables, "chains": 40, "iterations": length}
            key = f"bernoulli-{scheme.replace(' ', '-')}-{variables}"
            label = f"{scheme}, D = {variables}"
            cells.append(_cell(BERNOULLI, key, label, factors, model, BITS, settings))
    return cells
