"""What a result took, stage by stage, and what twice as many draws would buy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.fit import Fit
from harness.user.in_modes import METHOD as IN_MODES
from harness.user.modes import fewest_effective
from harness.user.weigh import BY_MASSES

_STAGES: Mapping[str, str] = {
    "compile": "compiling",
    "nuts": "NUTS",
    "pilot": "the search and other pilots",
    "confirm": "NUTS from the pilots' particles",
    "sampling": "the tempered run",
    "parallel": "parallel tempering",
    "modes": "the table of modes",
    "in_modes": "NUTS in each mode",
}
"""Steps that are named, by their names in a result's timings."""
_GROWS = 1.5
"""Growth of the smallest number of effective draws, from half of the draws to all of them, below
which more draws cannot be relied on to buy anything."""
_FEWEST = 16
_PRECISE = 0.05
"""Error of log Z in nats below which a bridge may have made it, and no tempered run lowers it."""


@dataclass(frozen=True)
class Stage:
    """One stage of a run.

    Attributes
    ----------
    name
        What it is, in words.
    seconds
        Wall time.
    gradients
        Gradient evaluations; None if they are not counted.
    """

    name: str
    seconds: float
    gradients: int | None


@dataclass(frozen=True)
class Prospect:
    """What twice as many draws would buy.

    Attributes
    ----------
    effective, effective_half
        Smallest number of effective draws of a parameter by all draws, and by the first half of
        each chain; None if it is not known.
    error
        Monte Carlo standard error of log Z; None if there is no estimate.
    by_draws
        Whether log Z comes from the draws, and not from the pilots or from points around peaks.
    draws
        Draws in each chain.
    seconds
        Wall time that twice as many would take in addition.
    """

    effective: float | None
    effective_half: float | None
    error: float | None
    by_draws: bool
    draws: int
    seconds: float
    by_masses: bool = False

    @property
    def grows(self) -> bool:
        """Whether effective draws have grown along with draws so far."""
        if self.effective is None or self.effective_half is None:
            return False
        return self.effective >= _GROWS * self.effective_half

    @property
    def effective_twice(self) -> float | None:
        """Effective draws with twice as many draws; None if they did not grow along so far."""
        return 2 * self.effective if self.grows and self.effective is not None else None

    @property
    def error_twice(self) -> float | None:
        """Error of log Z with twice as many draws; None if it does not come from draws."""
        if self.error is None or not (self.by_draws and self.grows):
            return None
        return self.error / math.sqrt(2)


def stages(timings: Mapping[str, float], fits: Mapping[str, Fit]) -> list[Stage]:
    """Return the stages of a run, in order, with everything else as the last one.

    Parameters
    ----------
    timings
        Seconds by step, ``total`` among them.
    fits
        Every fit that was made, by stage; they may have the cost of pilots and tables of modes.
    """
    counted: dict[str, int] = {name: _own_gradients(fit) for name, fit in fits.items()}
    for phase in ("pilot", "modes"):
        known = [
            int(np.sum(fit.tree.attrs[f"gradients_{phase}"]))
            for fit in fits.values()
            if f"gradients_{phase}" in fit.tree.attrs
        ]
        if known:
            # All fits were made with the same pilots; each may have a table of its own.
            counted[phase] = known[0] if phase == "pilot" else sum(known)
    found = [
        Stage(words, timings[name], counted.get(name))
        for name, words in _STAGES.items()
        if name in timings
    ]
    rest = timings.get("total", 0.0) - sum(each.seconds for each in found)
    return [*found, Stage("everything else", max(rest, 0.0), None)]


def prospect(fit: Fit, timings: Mapping[str, float], stage: str, error: float | None) -> Prospect:
    """Return what twice as many draws would buy.

    Parameters
    ----------
    fit
        The final draws.
    timings
        Seconds by step.
    stage
        The step that made them.
    error
        Standard error of log Z, if there is an estimate.
    """
    draws = fit.posterior.sizes["draw"]
    effective = _known(fewest_effective(fit))
    half = None
    # Draws of one mode after those of another have no first half that is like the whole.
    if draws >= _FEWEST and fit.tree.attrs.get("method") != IN_MODES:
        half = _known(fewest_effective(fit.first_draws(draws // 2)))
    phases = [float(np.sum(fit.tree.attrs.get(f"gradients_{each}", 0)))
              for each in ("warmup", "sampling")]  # fmt: skip
    share = phases[1] / sum(phases) if sum(phases) else 1.0
    # Nested sampling makes as many as the likelihood takes, in proportion to those asked for.
    asked = int(fit.tree.attrs.get("draws_asked", draws))
    by_masses = bool(fit.tree.attrs.get(BY_MASSES, 0))
    return Prospect(
        *(effective, half, error, stage != "nuts" and not by_masses, asked),
        seconds=share * timings.get(stage, 0.0),
        by_masses=by_masses,
    )


def spent_sentence(found: list[Stage]) -> str:
    """Say what was spent."""
    parts = [
        f"{each.seconds:.1f} s on {each.name}"
        + (f" ({each.gradients:,} gradients)" if each.gradients is not None else "")
        for each in found
    ]
    return f"Spent: {', '.join(parts)}; {sum(each.seconds for each in found):.1f} s in all."


def prospect_sentence(found: Prospect) -> str:
    """Say what more draws would buy."""
    if found.effective is None:
        return ""
    twice = f"Twice the draws (--draws {2 * found.draws})"
    cost = f"take about {found.seconds:.1f} s more"
    if found.effective_half is None or not found.grows:
        grew = (
            "" if found.effective_half is None else
            f" It was {found.effective_half:,.0f} after half of them, so it has hardly grown with "
            "the draws, and what more would buy cannot be told."
        )  # fmt: skip
        return f"The smallest number of effective draws is {found.effective:,.0f}.{grew}"
    told = (
        f"{twice} would {cost} and raise the smallest number of effective draws from "
        f"{found.effective:,.0f} to about {found.effective_twice:,.0f} (half of them gave "
        f"{found.effective_half:,.0f}), which divides errors of means by 1.4"
    )
    if found.error is None:
        return f"{told}."
    if found.by_masses:
        return (
            f"{told}; the error of log Z, {found.error:.3f}, is that of the masses of the modes, "
            "and stays."
        )
    if found.error_twice is None and found.error <= _PRECISE:
        return f"{told}; log Z has an error of {found.error:.3f}, by a bridge or by pilots."
    if found.error_twice is None:
        return (
            f"{told}; the error of log Z, {found.error:.3f}, is the pilots' and stays: a tempered "
            "run (--method collapsed_tempering) lowers it."
        )
    return f"{told}, and that of log Z from {found.error:.3f} to about {found.error_twice:.3f}."


def as_json(found: list[Stage], more: Prospect) -> dict[str, Any]:
    """Return both as plain data."""
    return {
        "stages": [
            {"stage": each.name, "seconds": round(each.seconds, 3), "gradients": each.gradients}
            for each in found
        ],
        "twice_the_draws": {
            "seconds": round(more.seconds, 3),
            "effective_draws": {
                "half": more.effective_half,
                "now": more.effective,
                "twice": more.effective_twice,
            },
            "log_evidence_mcse": {"now": more.error, "twice": more.error_twice},
        },
    }


def _own_gradients(fit: Fit) -> int:
    attrs = fit.tree.attrs
    return int(sum(np.sum(attrs.get(f"gradients_{each}", 0)) for each in ("warmup", "sampling")))


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
