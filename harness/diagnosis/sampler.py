"""What NUTS says of its own run."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from arviz_stats.base import array_stats

from harness.arrays import FloatArray
from harness.diagnosis.finding import Finding, Severity
from harness.fit import Fit

E_BFMI_WARNING = 0.3
"""Below it the energy is explored slowly (Betancourt 2016; the value is Stan's)."""
DIVERGENT_PROBLEM = 0.01
"""Share of divergent transitions that leaves parts of the target out; ours."""


def sampler(fit: Fit) -> Iterable[Finding]:
    """Divergences, energies and trajectories."""
    stats = fit.sample_stats
    if "diverging" in stats:
        yield _divergences(int(stats["diverging"].sum()), stats["diverging"].size)
    if "energy" in stats and stats.sizes["draw"] >= 4:
        yield _energy(stats["energy"].transpose("chain", "draw").to_numpy())
    deepest = fit.settings.get("nuts", {}).get("max_treedepth")
    if "tree_depth" in stats and deepest is not None:
        count = int((stats["tree_depth"] >= deepest).sum())
        sentence = f"{count} transitions reached the largest tree depth, {deepest}."
        what = "Where draws are correlated, raise max_treedepth." if count else ""
        yield Finding(Severity.WARNING if count else Severity.FINE, sentence, what)


def _divergences(count: int, draws: int) -> Finding:
    sentence = f"{count} divergent transitions in {draws:,} draws"
    if count == 0:
        return Finding(Severity.FINE, f"{sentence}.")
    return Finding(
        Severity.PROBLEM if count > DIVERGENT_PROBLEM * draws else Severity.WARNING,
        f"{sentence} ({count / draws:.2%}): parts of the target are too sharp for the step.",
        "Raise target_accept, or parametrise the model anew.",
    )


def _energy(energy: FloatArray) -> Finding:
    with np.errstate(divide="ignore", invalid="ignore"):
        bfmi = np.asarray(array_stats.bfmi(energy))
    # NaN where the energy stands still, as slow as can be.
    lowest = float(np.nan_to_num(bfmi, nan=0.0).min())
    known = f"(below {E_BFMI_WARNING} the energy is explored slowly)"
    if lowest < E_BFMI_WARNING:
        return Finding(
            Severity.WARNING,
            f"E-BFMI is as low as {lowest:.2f} {known}.",
            "Take more draws, or parametrise the model so that its tails are lighter.",
        )
    return Finding(Severity.FINE, f"E-BFMI is {lowest:.2f} or more {known}.")
