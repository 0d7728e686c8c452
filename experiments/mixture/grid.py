"""Cells of the mixture experiment: the paper's tables, what explains differences, and ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.engine.nuts import NutsSettings
from harness.forms.folded import FOLD_IMPORTANCE, FOLDED_FROM_PILOT
from harness.forms.from_pilot import (
    COLLAPSED_PSEUDO_EXTENDED_FROM_PILOT,
    COLLAPSED_TEMPERING_FROM_PILOT,
    PSEUDO_EXTENDED_FROM_PILOT,
)
from harness.forms.method import Method
from harness.forms.nuts import PLAIN_NUTS
from harness.forms.pseudo_extended import PSEUDO_EXTENDED
from harness.models.gaussian_mixture import Scenario, kou_mixture
from harness.path import PilotSettings, gaussian_base
from harness.plan.spec import Cell, Profile
from harness.samplers.equi_energy import EQUI_ENERGY, MIXTURE_ENERGIES, MIXTURE_TEMPERATURES
from harness.samplers.kernels import Hmc, RandomWalk
from harness.samplers.parallel_tempering import PARALLEL_TEMPERING
from harness.samplers.repelling_attracting import REPELLING_ATTRACTING
from harness.samplers.sequential_monte_carlo import SEQUENTIAL_MONTE_CARLO

from .public_program import BOX as PROGRAM_BOX
from .public_program import LOWEST_OF_2019
from .untuned import UntunedWalks

SCENARIOS: tuple[Scenario, ...] = ("a", "b")
# Round the modes, and as small as leaves them whole.  The public program's boxes lie round the
# origin: [-100, 100]^2, and [-10, 10]^2 in scenario (a) since 2019.
BOX = (-5.5, 15.5)

TABLE_1, TABLE_2, TRIALS, OURS = "table 1", "table 2", "trials", "ours"


@dataclass(frozen=True)
class Size:
    """How much of the published grid a profile runs.

    Attributes
    ----------
    pseudo_samples
        N of Table 1.
    replications, warmup, draws
        Runs of a cell, and iterations of each.  The paper's warm-up is not stated; with Stan's
        usual 1,000 one of 20 runs of PE N=2 in scenario (b) kept a step size too large for the
        narrow modes and stuck in some of them for thousands of draws.
    inv_temps, fixed_pseudo_samples, fixed_replications
        Fixed inverse temperatures of Table 2, its N and runs.
    ours
        Runs of the rows that are not the paper's.
    """

    pseudo_samples: tuple[int, ...]
    replications: int
    warmup: int
    draws: int
    inv_temps: tuple[float, ...] = ()
    fixed_pseudo_samples: tuple[int, ...] = (2,)
    fixed_replications: int = 4
    ours: int = 0


SIZES: dict[Profile, Size] = {
    "smoke": Size((2,), 2, 500, 500),
    "quick": Size((2, 5), 4, 2000, 4000, (0.1, 0.2, 0.5, 0.9), ours=4),
    "paper": Size(
        (2, 5, 10, 20),
        20,
        10_000,
        50_000,
        tuple(round(0.1 * k, 1) for k in range(1, 10)),
        (2, 5, 10, 20),
        20,
        20,
    ),
}

# The base of all rows that have one: round the means, with about the target's own spread.
BASE = gaussian_base([5.0, 5.0], 8 * np.eye(2))
# So wide that next to nothing but the target is tempered: Kou et al.'s ladder has no base.
_WIDE = gaussian_base([5.0, 5.0], 400 * np.eye(2))
_SD, _WIDE_SD = BASE.cholesky[0, 0], _WIDE.cholesky[0, 0]
_PILOT = PilotSettings(particles=1024, moves=2, leapfrog_steps=4)
_HIGHEST: dict[Scenario, float] = {"a": 0.1, "b": 0.6}

# Of the papers that Table 1's rows come from.
_RAM_SCALE: dict[Scenario, float] = {"a": 4.0, "b": 3.5}
_EE_SCALE, _EE_JUMPS = 0.25, 0.1
_MOVES_PER_SWAP = 10


def grid(profile: Profile) -> tuple[Cell, ...]:
    """Cells of a profile, those that take longest first; one chain a run, as published.

    Runs of a sampler in Python are chains of one fit (``Cell.batch``).
    """
    size = SIZES[profile]
    cells: list[Cell] = []
    for scenario in SCENARIOS:
        make = _Maker(scenario, size)
        cells += [*_table_one(make, size), *_table_two(make, size)]
        if size.ours:
            cells += [*_peers(make), *_ours(make)]
            cells += _trials(make)
    return tuple(sorted(cells, key=_work, reverse=True))


def _work(cell: Cell) -> float:
    """Rough length of a run, for their order."""
    if cell.method in (PLAIN_NUTS, PSEUDO_EXTENDED):
        return float(cell.factors["N"] * (cell.nuts.warmup + cell.nuts.draws))
    iterations = cell.settings.get("draws", 0) + cell.settings.get("warmup", 0)
    kernel = cell.settings.get("kernel")
    moves = kernel.moves if isinstance(kernel, UntunedWalks) else 1
    return 4000.0 if cell.factors["part"] == OURS else 2.0 * moves * iterations


class _Maker:
    """Makes the cells of a scenario."""

    def __init__(self, scenario: Scenario, size: Size, box: tuple[float, float] = BOX) -> None:
        self.scenario, self.size = scenario, size
        name = f"mixture-{scenario}"
        self._model = kou_mixture(scenario).model(name, lower=box[0], upper=box[1])
        self.nuts = NutsSettings(chains=1, warmup=size.warmup, draws=size.draws)

    def boxed(self, box: tuple[float, float]) -> _Maker:
        """Return a maker of the same cells in another box."""
        return _Maker(self.scenario, self.size, box)

    def cell(
        self,
        key: str,
        label: str,
        method: Method,
        settings: Mapping[str, Any],
        *,
        part: str,
        name: str,
        num: int = 1,
        inv_temp: float | None = None,
        nuts: NutsSettings | None = None,
        replications: int | None = None,
        batch: int = 1,
    ) -> Cell:
        return Cell(
            key=f"{self.scenario}-{key}",
            label=f"{label} ({self.scenario})",
            factors={
                "scenario": self.scenario,
                "method": name,
                "N": num,
                "part": part,
                "inv_temp": inv_temp,
            },
            model=self._model,
            method=method,
            settings=settings,
            nuts=nuts or self.nuts,
            replications=replications or self.size.replications,
            batch=batch,
        )

    def together(
        self, key: str, label: str, method: Method, settings: Mapping[str, Any], *, part: str
    ) -> Cell:
        """Return the cell of a sampler in Python whose runs, a chain each, are one fit."""
        runs = self.size.replications
        chains = {**settings, "chains": runs}
        return self.cell(key, label, method, chains, part=part, name=label, batch=runs)


def _table_one(make: _Maker, size: Size) -> Iterator[Cell]:
    yield make.cell("hmc", "HMC", PLAIN_NUTS, {}, part=TABLE_1, name="HMC")
    for n in size.pseudo_samples:
        settings = {"num_pseudo_samples": n}
        label = f"PE N={n}"
        yield make.cell(f"pe-{n}", label, PSEUDO_EXTENDED, settings, part=TABLE_1, name="PE", num=n)


def _peers(make: _Maker) -> Iterator[Cell]:
    """RAM, EE and PT; see ``SETTINGS_OF_PEERS`` for what is known of them."""
    length = {"draws": make.size.draws, "warmup": make.size.warmup}
    scale = _RAM_SCALE[make.scenario] / _SD
    settings = {"base": BASE, "scale": scale, **length}
    yield make.together("ram", "RAM", REPELLING_ATTRACTING, settings, part=TABLE_1)
    settings = {
        "base": BASE,
        "scale": _EE_SCALE / _SD,
        "temperatures": list(MIXTURE_TEMPERATURES),
        "energies": list(MIXTURE_ENERGIES),
        "jump_probability": _EE_JUMPS,
        **length,
    }
    yield make.together("ee", "EE", EQUI_ENERGY, settings, part=TABLE_1)
    settings = {**_ladder(), "kernel": RandomWalk(), **length}
    yield make.together("pt", "PT", PARALLEL_TEMPERING, settings, part=TABLE_1)


def _ladder() -> dict[str, Any]:
    """Rungs of parallel tempering at the temperatures of Table 1, and the wide base."""
    rungs = [0.0, *(1 / np.array(MIXTURE_TEMPERATURES[::-1])).tolist()]
    return {"base": _WIDE, "ladder": rungs, "adapt_ladder": False}


SETTINGS_OF_PEERS = (
    "RAM proposes with standard deviation 4 in (a) and 3.5 in (b); EE and PT have temperatures "
    "1, 2.8, 7.7, 21.6 and 60, EE besides energies 0.2, 2, 6.3, 20 and 63.2, proposals of 0.25 "
    "times the root of the temperature and a jump in ten. These are the settings usually "
    "quoted for this mixture (Kou et al. 2006; Tak et al. 2018); the paper refers to Kou et al. "
    "without stating them, and we could not verify them there. Where we know that we differ: PT "
    "tunes its random walks in warm-up and swaps in every iteration, and has a sixth rung, a "
    "Gaussian of standard deviation 20; EE runs its levels one after the other; chains start from "
    "a Gaussian round (5, 5); the mixture lies in our box; the length of warm-up is ours; all runs "
    "of a row go side by side, so that those of PT share their step sizes."
)


def _table_two(make: _Maker, size: Size) -> Iterator[Cell]:
    for n in size.fixed_pseudo_samples:
        for beta in size.inv_temps:
            yield make.cell(
                f"pe-{n}-fixed-{round(10 * beta)}",
                f"PE N={n}, β={beta:g}",
                PSEUDO_EXTENDED,
                {"num_pseudo_samples": n, "inv_temp": beta},
                part=TABLE_2,
                name="PE",
                num=n,
                inv_temp=beta,
                replications=size.fixed_replications,
            )


def _trials(make: _Maker) -> Iterator[Cell]:
    """Traits of the public program, and parallel tempering without tuning."""
    low = "PE N=2, β in [0.001, 1]"
    settings: dict[str, Any] = {
        "num_pseudo_samples": 2,
        "log_g": ((LOWEST_OF_2019, 0.0), (1.0, 0.0)),
    }
    yield make.cell("pe-2-wide", low, PSEUDO_EXTENDED, settings, part=TRIALS, name=low, num=2)
    box = "PE N=2, box [-100, 100]²"
    settings = {"num_pseudo_samples": 2}
    wide = make.boxed(PROGRAM_BOX)
    yield wide.cell("pe-2-box", box, PSEUDO_EXTENDED, settings, part=TRIALS, name=box, num=2)
    settings = {
        **_ladder(),
        "kernel": UntunedWalks(_EE_SCALE / _WIDE_SD, _MOVES_PER_SWAP),
        "draws": make.size.draws // _MOVES_PER_SWAP,
        "warmup": make.size.warmup // _MOVES_PER_SWAP,
    }
    yield make.together("pt-untuned", "PT, untuned", PARALLEL_TEMPERING, settings, part=TRIALS)


def _ours(make: _Maker) -> Iterator[Cell]:
    """Rows beyond the paper; their settings are the same in every profile."""
    from_base = {"base": BASE, "settings": _PILOT}
    many = NutsSettings(chains=16, warmup=150, draws=2000, max_treedepth=4)
    few = NutsSettings(chains=4, warmup=150, draws=1000, max_treedepth=4, metric="unit_e")
    rows: list[tuple[str, str, Method, dict[str, Any], int, NutsSettings | None]] = [
        (
            "pe-2-gaussian",
            "PE N=2, Gaussian base",
            PSEUDO_EXTENDED,
            {"num_pseudo_samples": 2, "base": BASE},
            2,
            NutsSettings(chains=1, warmup=2000, draws=4000),
        ),
        (
            "pe-2-flat",
            "PE N=2, g flat from a pilot",
            PSEUDO_EXTENDED_FROM_PILOT,
            {**from_base, "num_pseudo_samples": 2},
            2,
            NutsSettings(chains=4, warmup=300, draws=1000, max_treedepth=6),
        ),
        (
            "cpe-2",
            "collapsed PE N=2 from a pilot",
            COLLAPSED_PSEUDO_EXTENDED_FROM_PILOT,
            {**from_base, "num_pseudo_samples": 2, "rungs": 8},
            2,
            NutsSettings(chains=8, warmup=150, draws=500, max_treedepth=5),
        ),
        (
            "ct",
            "collapsed CT from a pilot",
            COLLAPSED_TEMPERING_FROM_PILOT,
            {**from_base, "rungs": 8, "highest": _HIGHEST[make.scenario]},
            1,
            many,
        ),
        ("fold", "folded target", FOLDED_FROM_PILOT, from_base, 1, few),
        (
            "fold-is",
            "importance sampling from the same mixture",
            FOLD_IMPORTANCE,
            {**from_base, "draws": 500},
            1,
            None,
        ),
        (
            "pt-hmc",
            "PT, 32 ladders of 8 adapted rungs, HMC",
            PARALLEL_TEMPERING,
            {
                "base": BASE,
                "ladder": (np.linspace(0, 1, 8) ** 3).tolist(),
                "chains": 32,
                "draws": 800,
                "warmup": 400,
                "kernel": Hmc(leapfrog_steps=3),
            },
            1,
            None,
        ),
        ("smc", "the pilot alone (SMC)", SEQUENTIAL_MONTE_CARLO, from_base, 1, None),
    ]
    for key, label, method, settings, num, nuts in rows:
        yield make.cell(
            key,
            label,
            method,
            settings,
            part=OURS,
            name=label,
            num=num,
            nuts=nuts,
            replications=make.size.ours,
        )
