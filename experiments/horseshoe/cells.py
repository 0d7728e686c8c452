"""Cells of the horseshoe experiment: methods on random splits of each data set, at equal cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from harness.engine.nuts import NutsSettings
from harness.forms.method import Method
from harness.forms.nuts import PLAIN_NUTS
from harness.forms.pseudo_extended import PSEUDO_EXTENDED
from harness.model import Model
from harness.models.horseshoe import Classification, Form, global_scale
from harness.plan.spec import Cell, Profile, task_seed

from .cancer import golub_leukemia, load_classification
from .small import small_model

NAME = "horseshoe"

RELEVANT = {"golub": 55, "colon": 3, "leukemia": 55, "prostate": 200}
"""Guess p0 at the number of relevant genes of each data set, which sets tau_0."""

STEPS = 63
"""Leapfrog steps that a trajectory is planned with: on the shipped data most runs took as many.

At a largest depth of 10 HMC took as many too, in 40 draws after 250 of warm-up.
"""

SHARED_RESERVE = 1.7
"""Times as many draws are planned for rows of shared scales, whose trajectories may be shorter."""

NUM_SHOWN = 3
"""Coefficients shown: as many drawn at random, and as many most correlated with the class."""


@dataclass(frozen=True)
class Sizes:
    """How much a profile runs.

    Attributes
    ----------
    splits
        Random splits of each data set.
    warmup, draws
        Iterations of HMC; with N pseudo-samples there are N times fewer, but for
        :data:`SHARED_RESERVE`.
    max_treedepth
        Largest depth of a trajectory; at 6 it has at most 63 steps, so that no run costs more
        than was planned; 10 is Stan's own.
    """

    splits: int
    warmup: int
    draws: int
    max_treedepth: int


PROFILES: dict[Profile, Sizes] = {
    "smoke": Sizes(2, 40, 40, 4),
    "quick": Sizes(4, 120, 240, 6),
    # 10,000 iterations of HMC, half of them warm-up as in RStan; the authors' program has 1,000.
    "paper": Sizes(20, 5000, 5000, 10),
}


@dataclass(frozen=True)
class Row:
    """A method with its settings: a row of the tables, a box of the figures."""

    key: str
    label: str
    pseudo_samples: int = 1
    form: Form = "full"
    inv_temp: float | None = None

    def draws(self, hmc: int) -> int:
        """Return how many draws are planned where HMC has ``hmc``.

        More than the budget of gradients pays for are not used, and fewer mean that all rows are
        compared at less (:func:`experiments.horseshoe.tables.common_share`).
        """
        reserve = SHARED_RESERVE if self.form == "shared_scales" else 1.0
        return max(4, int(reserve * hmc / self.pseudo_samples))

    @property
    def method(self) -> Method:
        """What is run."""
        return PLAIN_NUTS if self.pseudo_samples == 1 else PSEUDO_EXTENDED

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the method."""
        if self.pseudo_samples == 1:
            return {}
        return {"num_pseudo_samples": self.pseudo_samples, "inv_temp": self.inv_temp}


def _pe(num: int, form: Form, inv_temp: float | None = None) -> Row:
    short = {"full": "full", "shared_scales": "shared"}[form]
    key, label = f"pe-{num}-{short}", f"PE N={num}"
    if inv_temp is not None:
        key, label = f"{key}-{round(100 * inv_temp)}", f"{label}, β={inv_temp:g}"
    return Row(key, label if form == "full" else f"{label}, shared", num, form, inv_temp)


FIXED = (0.25, 0.5, 0.75)
HMC = Row("hmc", "HMC")
PE_2, PE_5 = _pe(2, "full"), _pe(5, "full")
SHARED_2, SHARED_5 = _pe(2, "shared_scales"), _pe(5, "shared_scales")
FIXED_ROWS = tuple(_pe(2, "full", b) for b in FIXED)
ROWS: dict[Profile, tuple[Row, ...]] = {
    "smoke": (HMC, PE_2, SHARED_2),
    "quick": (HMC, PE_2, PE_5, *FIXED_ROWS, SHARED_2, SHARED_5),
    "paper": (
        *(HMC, PE_2, PE_5, *FIXED_ROWS, SHARED_2, SHARED_5),
        *(_pe(2, "shared_scales", b) for b in FIXED),
    ),
}


def grid(profile: Profile) -> tuple[Cell, ...]:
    """Cells on the data that ship, and the small problem with an exact answer."""
    return (*data_cells("golub", golub_leukemia(), profile), *exact_cells(profile))


def user_grid(profile: Profile, folder: Path) -> tuple[Cell, ...]:
    """Cells on the paper's three data sets, from a folder of the user's own."""
    return tuple(
        cell
        for name in ("colon", "leukemia", "prostate")
        for cell in data_cells(name, load_classification(folder, name), profile)
    )


def split_of(name: str, data: Classification, split: int) -> tuple[Classification, Classification]:
    """Training and held-out data of a split, the same for every method and profile."""
    return data.split(np.random.default_rng(task_seed(NAME, f"split-{name}", split)))


def shown_coefficients(name: str, data: Classification) -> tuple[int, ...]:
    """Indices of the coefficients shown: some at random, then those most correlated with y."""
    rng = np.random.default_rng(task_seed(NAME, f"shown-{name}", 0))
    centred = data.x - data.x.mean(axis=0)
    scale = np.sqrt(np.square(centred).sum(axis=0))
    correlation = np.abs((data.y - data.y.mean()) @ centred) / np.where(scale > 0, scale, np.inf)
    top = np.argsort(-correlation)[:NUM_SHOWN]
    others = np.setdiff1d(np.arange(data.x.shape[1]), top)
    return (*rng.choice(others, NUM_SHOWN, replace=False).tolist(), *top.tolist())


def data_cells(name: str, data: Classification, profile: Profile) -> tuple[Cell, ...]:
    """Every method on random splits of one data set; a replication is a split."""
    sizes = PROFILES[profile]
    parts = [split_of(name, data, split) for split in range(sizes.splits)]
    models: dict[Form, tuple[Model, ...]] = {
        "full": _models(name, parts, "full"),
        "shared_scales": _models(name, parts, "shared_scales"),
    }
    extras = {
        "held_out": {f"{name}-{split}": held_out for split, (_, held_out) in enumerate(parts)},
        "share_of_ones": {
            f"{name}-{i}": float(train.y.mean()) for i, (train, _) in enumerate(parts)
        },
        "shown": shown_coefficients(name, data),
        "budget": STEPS * sizes.draws,
    }
    return tuple(
        Cell(
            key=f"{name}-{row.key}",
            label=f"{row.label} ({name})",
            factors=_factors(name, row),
            model=models[row.form][0],
            method=row.method,
            settings=row.settings,
            nuts=NutsSettings(
                chains=1,
                warmup=max(20, sizes.warmup // row.pseudo_samples),
                draws=row.draws(sizes.draws),
                max_treedepth=sizes.max_treedepth,
            ),
            replications=sizes.splits,
            models=models[row.form],
            extras=extras,
        )
        for row in ROWS[profile]
    )


def _models(
    name: str, parts: list[tuple[Classification, Classification]], form: Form
) -> tuple[Model, ...]:
    return tuple(
        train.model(
            f"{name}-{split}",
            scale_global=global_scale(RELEVANT[name], train.x.shape[1], len(train.y)),
            form=form,
        )
        for split, (train, _) in enumerate(parts)
    )


def _factors(name: str, row: Row) -> dict[str, Any]:
    return {
        "data": name,
        "row": row.key,
        "method": "HMC" if row.pseudo_samples == 1 else "PE",
        "N": row.pseudo_samples,
        "form": row.form,
        "inv_temp": "sampled" if row.inv_temp is None else row.inv_temp,
    }


EXACT_ROWS = (
    HMC,
    PE_2,
    _pe(2, "full", 0.5),
    SHARED_2,
    _pe(2, "shared_scales", 0.5),
    _pe(2, "shared_scales", 1.0),
)
EXACT_DRAWS: dict[Profile, int] = {"smoke": 200, "quick": 8000, "paper": 20_000}


def exact_cells(profile: Profile) -> tuple[Cell, ...]:
    """Both forms on six observations of one predictor, where the truth is known."""
    draws = EXACT_DRAWS[profile]
    nuts = NutsSettings(chains=1, warmup=draws // 4, draws=draws, target_accept=0.95)
    return tuple(
        Cell(
            key=f"exact-{row.key}",
            label=f"{row.label} (six observations)",
            factors=_factors("exact", row),
            model=small_model(row.form),
            method=row.method,
            settings=row.settings,
            nuts=nuts,
            replications=2 if profile != "paper" else 4,
        )
        for row in EXACT_ROWS
    )
