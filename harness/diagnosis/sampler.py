"""What NUTS reports about its own run: divergences, energies and tree depths."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from arviz_stats.base import array_stats

from harness.arrays import FloatArray
from harness.diagnosis.advice import advice_for
from harness.diagnosis.finding import Finding, Severity
from harness.engine.nuts import ADAPTS_METRIC
from harness.fit import Fit

E_BFMI_WARNING = 0.3
"""Below this value the energy is explored slowly (Betancourt 2016; the value is Stan's)."""
DIVERGENT_PROBLEM = 0.01
"""If a larger share of transitions diverges, parts of the target are left out (our choice)."""


def sampler(fit: Fit) -> Iterable[Finding]:
    """Check divergences, energies and depths of trajectories."""
    stats, advice = fit.sample_stats, advice_for(fit)
    if "diverging" in stats:
        yield _divergences(int(stats["diverging"].sum()), stats["diverging"].size, advice.sharp)
    if "energy" in stats and stats.sizes["draw"] >= 4:
        yield _energy(stats["energy"].transpose("chain", "draw").to_numpy())
    nuts = fit.settings.get("nuts", {})
    deepest = nuts.get("max_treedepth")
    if "tree_depth" in stats and deepest is not None:
        count = int((stats["tree_depth"] >= deepest).sum())
        sentence = f"{count} transitions reached the largest tree depth, {deepest}."
        if count:
            cut = f"Trajectories were cut short: {sentence}"
            adapted = nuts.get("metric") == "unit_e" or nuts.get("warmup", np.inf) >= ADAPTS_METRIC
            yield Finding(Severity.WARNING, cut, advice.deep if adapted else advice.longer_warmup)
        else:
            yield Finding(Severity.FINE, sentence)


def _divergences(count: int, draws: int, what: str) -> Finding:
    sentence = f"{count} divergent transitions in {draws:,} draws"
    if count == 0:
        return Finding(Severity.FINE, f"{sentence}.")
    return Finding(
        Severity.PROBLEM if count > DIVERGENT_PROBLEM * draws else Severity.WARNING,
        f"Parts of the target are too sharp for the step size: {sentence} ({count / draws:.2%}).",
        what,
    )


def _energy(energy: FloatArray) -> Finding:
    with np.errstate(divide="ignore", invalid="ignore"):
        bfmi = np.asarray(array_stats.bfmi(energy))
    # NaN if the energy never changes, which is the slowest possible exploration.
    lowest = float(np.nan_to_num(bfmi, nan=0.0).min())
    if lowest < E_BFMI_WARNING:
        return Finding(
            Severity.WARNING,
            f"The energy is explored slowly: E-BFMI is as low as {lowest:.2f}, "
            f"below {E_BFMI_WARNING}.",
            "Take more draws, or reparametrise the model so that its tails are lighter.",
        )
    return Finding(Severity.FINE, f"E-BFMI is {lowest:.2f} or more, above {E_BFMI_WARNING}.")
