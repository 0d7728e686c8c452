"""Cells of the experiment: the stamps raw and unconstrained, the Cox process, and tempering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.engine.nuts import NutsSettings
from harness.forms.continuous_tempering import JOINT_TEMPERING
from harness.forms.method import Method
from harness.forms.nuts import PLAIN_NUTS
from harness.model import Model
from harness.models.log_gaussian_cox import LogGaussianCox, generate, load_log_gaussian_cox
from harness.models.stamps import stamps
from harness.plan.spec import Cell, Profile

from .cox import COX_BY_BLOCKS, Blocks
from .tempered import DIMENSION, TEMPERED_WALKERS, base, two_modes
from .walkers import STAMPS_WALKERS

RAW, UNC, COX, TEMPERED = "raw", "unconstrained", "Cox process", "tempered"
_NO_NUTS = NutsSettings()
_NEAR = {"mu": [7.17, 7.9, 9.92], "lambda": [34.0, 23.5, 0.54], "rate": 0.11}
_STARTS: dict[str, dict[str, Any]] = {
    RAW: _NEAR | {"z": [0.23, 0.34]},
    UNC: _NEAR | {"logit_z": [float(np.log(0.23 / 0.43)), float(np.log(0.34 / 0.43))]},
}


@dataclass(frozen=True)
class Size:
    """How much a profile runs.

    Attributes
    ----------
    runs
        Independent runs of each cell.
    walkers
        On the stamps; 64 as published.
    local
        Sweeps of 10 steps of EQN.
    plain
        Trajectories of 100 steps of Langevin dynamics and of HMC in raw coordinates.
    short
        Trajectories in unconstrained coordinates, 20 or 30 steps each.
    nuts
        Draws of each of two chains of NUTS, and of its slow runs with a unit metric in raw ones.
    side
        Cells on a side of the Cox process; 32 as published.
    cox_walkers, cox
        Its walkers and iterations.
    cox_nuts
        Draws of each of two chains of NUTS on it.
    tempered
        Sweeps of 10 steps of walkers on the tempered density.
    tempered_nuts
        Draws of each of two chains of NUTS on it.
    """

    runs: int
    walkers: int
    local: int
    plain: int
    short: int
    nuts: tuple[int, int]
    side: int
    cox_walkers: int
    cox: int
    cox_nuts: int
    tempered: int
    tempered_nuts: int


SIZES: dict[Profile, Size] = {
    "smoke": Size(2, 16, 4, 20, 20, (60, 20), 4, 8, 24, 40, 4, 100),
    "quick": Size(2, 64, 120, 200, 200, (1000, 100), 6, 16, 150, 500, 100, 2000),
    "paper": Size(4, 64, 2000, 6000, 4000, (20_000, 4000), 16, 40, 6000, 2500, 2000, 20_000),
}


def process(side: int) -> LogGaussianCox:
    """Return the stored points of 16 x 16 cells, or smaller squares drawn with the same seed."""
    return load_log_gaussian_cox(side) if side in (16, 32) else generate(side, "unit_square")


def grid(profile: Profile) -> tuple[Cell, ...]:
    """All cells of a profile."""
    size = SIZES[profile]
    return (*_stamps(size), *_cox(size), *_tempered(size))


def _cell(
    part: str,
    key: str,
    label: str,
    model: Model,
    method: Method,
    settings: dict[str, Any],
    size: Size,
    nuts: NutsSettings = _NO_NUTS,
) -> Cell:
    factors = {"part": part, "scheme": label}
    name = part.split(" ", maxsplit=1)[0].lower()
    where = f"{label}, {part}" if part in (RAW, UNC) else label
    return Cell(f"{name}-{key}", where, factors, model, method, settings, nuts, size.runs)


def _stamps(size: Size) -> list[Cell]:
    local = {"dt": 0.015, "gamma": 1.0, "eta": 100.0, "lam": 12.0, "select": (0, 1, 2)}
    eqn = local | {"walkers": size.walkers, "sweeps": size.local, "warmup": size.local // 6}
    alone: dict[str, Any] = {"eta": 0.0, "groups": 1, "walkers": size.walkers}
    plain = alone | {"sweeps": size.plain, "warmup": size.plain // 6}
    short = alone | {"sweeps": size.short, "warmup": size.short // 6}
    hmc = {"gamma": 0.0, "refresh": True, "jitter": 0.2}
    alike: dict[str, Any] = {"lam": 0.0, "select": None}
    wide = eqn | alike | {"dt": 0.002, "sweeps": max(2, size.local // 8)}
    wide["warmup"] = 0
    rows: list[tuple[str, str, str, dict[str, Any]]] = [
        (RAW, "eqn", "EQN", eqn),
        (RAW, "eqn-no-divergence", "EQN without div", eqn | {"divergence": False}),
        (RAW, "eqn-wide", "EQN, λ = 0", wide),
        (RAW, "eqn-one", "EQN in one mode", eqn | {"orders": 1}),
        (RAW, "eqn-wide-one", "EQN in one mode with λ = 0", eqn | alike | {"orders": 1}),
        (RAW, "langevin", "Langevin", plain | _leaps(100) | {"dt": 0.01, "gamma": 0.1}),
        (RAW, "hmc", "HMC", plain | _leaps(100) | {"dt": 0.015} | hmc),
        (UNC, "eqn", "EQN", eqn),
        (UNC, "langevin", "Langevin", short | _leaps(20) | {"dt": 0.02, "gamma": 0.2}),
        (UNC, "hmc", "HMC", short | _leaps(30) | {"dt": 0.025} | hmc),
    ]
    models = {RAW: stamps(raw=True), UNC: stamps()}
    cells = [
        _cell(part, key, label, models[part], STAMPS_WALKERS, settings, size)
        for part, key, label, settings in rows
    ]
    for part, model in models.items():
        for metric in ("unit_e", "diag_e", "dense_e"):
            draws = size.nuts[1 if (part, metric) == (RAW, "unit_e") else 0]
            nuts = NutsSettings(
                chains=2, warmup=max(20, min(draws, 1000)), draws=draws, metric=metric
            )
            inits = {"inits": _STARTS[part]}
            key, label = f"nuts-{metric[:-2]}", f"NUTS, {metric[:-2]} metric"
            cells.append(_cell(part, key, label, model, PLAIN_NUTS, inits, size, nuts))
    return cells


def _leaps(steps: int) -> dict[str, Any]:
    """Return the settings of a turn that is one decision after some steps."""
    return {"steps": steps, "steps_per_decision": steps}


def _cox(size: Size) -> list[Cell]:
    model = process(size.side).model(f"cox-{size.side}", centred=True)
    common = {
        "walkers": size.cox_walkers,
        "groups": 4,
        "iterations": size.cox,
        "warmup": size.cox // 4,
    }
    rows = {
        "hmc": ("HMC", Blocks("hmc", 0.15, 0.1)),
        "rmhmc": ("RMHMC", Blocks("rmhmc", 0.6, 0.3, steps=6)),
        "langevin": ("Langevin", Blocks("langevin", 0.2, 0.1)),
        "langevin-free": (
            "Langevin, no Metropolis",
            Blocks("langevin", 0.2, 0.1, metropolis=False),
        ),
        "eqn": ("EQN", Blocks("eqn", 0.07, 0.08)),
        "eqn-free": ("EQN, no Metropolis", Blocks("eqn", 0.07, 0.08, metropolis=False)),
    }
    cells = [
        _cell(COX, key, label, model, COX_BY_BLOCKS, common | {"blocks": blocks}, size)
        for key, (label, blocks) in rows.items()
    ]
    draws = size.cox_nuts
    nuts = NutsSettings(chains=2, warmup=max(20, min(draws // 2, 500)), draws=draws)
    whitened = process(size.side).model(f"cox-{size.side}-whitened")
    cells.append(_cell(COX, "nuts", "NUTS, whitened", whitened, PLAIN_NUTS, {}, size, nuts))
    return cells


def _tempered(size: Size) -> list[Cell]:
    common: dict[str, Any] = {
        "walkers": 48,
        "sweeps": size.tempered,
        "warmup": size.tempered // 6,
        "steps": 10,
    }
    local = common | {"eta": 50.0}
    rows: dict[str, tuple[str, dict[str, Any]]] = {
        "eqn-u": ("EQN, near in u", local | {"dt": 0.02, "lam": 1.0, "select": (DIMENSION,)}),
        "eqn-xu": ("EQN, near in x and u", local | {"dt": 0.05, "lam": 4.0}),
        "eqn-wide": ("EQN, λ = 0", local | {"dt": 0.02, "lam": 0.0}),
        "langevin": (
            "Langevin",
            common | {"dt": 0.1, "gamma": 0.3, "eta": 0.0, "groups": 1, "steps_per_decision": 10},
        ),
    }
    rows["langevin"][1]["sweeps"] *= 10
    rows["langevin"][1]["warmup"] *= 10
    cells = [
        _cell(TEMPERED, key, label, two_modes(), TEMPERED_WALKERS, settings, size)
        for key, (label, settings) in rows.items()
    ]
    draws = size.tempered_nuts
    nuts = NutsSettings(chains=2, warmup=max(20, min(draws // 2, 1000)), draws=draws)
    cells.append(
        _cell(TEMPERED, "nuts", "NUTS", two_modes(), JOINT_TEMPERING, {"base": base()}, size, nuts)
    )
    return cells
