"""Whether the chains agree, and how many independent draws they are worth."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
import xarray as xr

from harness import evidence
from harness.diagnosis.advice import advice_for
from harness.diagnosis.finding import Finding, Severity
from harness.fit import Fit
from harness.fit.weighting import WEIGHTS

R_HAT_WARNING = 1.01
"""Above this R-hat more draws are needed (Vehtari et al. 2021, section 4)."""
R_HAT_PROBLEM = 1.1
"""Above this R-hat chains do not draw from one distribution (Gelman et al. 2013, section 11.5)."""
_FEWEST_DRAWS = 8
"""Draws of each chain that R-hat needs."""
EFFECTIVE_WARNING = 100
"""With fewer effective draws per chain, errors cannot be relied on (Vehtari et al. 2021)."""
EFFECTIVE_PROBLEM = 10
"""With fewer effective draws per chain, nothing can be estimated (Gelman et al. 2013)."""


def agreement(fit: Fit) -> Iterable[Finding]:
    """Check R-hat of the target's parameters, and of the raw draws of the extended target.

    Walkers that depend on each other are not compared; instead the halves of their mean are.
    """
    if fit.chains_interact:
        yield _drift(fit.posterior.mean("chain").expand_dims("chain"))
        return
    advice = advice_for(fit)
    apart = advice.no_path if fit.tree.attrs["method"] == "nuts" else advice.better_path
    if fit.weighting == "across draws" and _constant(fit.posterior):
        yield Finding(
            Severity.PROBLEM,
            "One draw has all the weight, so every draw of the target is that one.",
            advice.heavy_weights,
        )
    else:
        consequence = "so these are not draws of the whole target"
        inside = "" if fit.weighed_modes is None else " within modes"
        known = fit.posterior.sizes["draw"] >= _FEWEST_DRAWS and fit.weighed_modes is None
        yield r_hat_finding(
            *(fit.compared, inside, consequence, apart, fit.quantities),
            known=fit.largest_r_hats if known else None,
        )
    extended = fit.extended
    # Where masses weigh the modes, raw draws of the target itself need not have the right shares.
    if extended is not None and (fit.weighed_modes is None or fit.follows_path):
        raw = extended.drop_vars(WEIGHTS, errors="ignore")
        yield r_hat_finding(
            *(raw, " of the extended draws", "so they have not explored the whole path"),
            *(advice.better_path, fit.quantities),
        )


def r_hat_finding(
    draws: xr.Dataset,
    of_what: str,
    consequence: str,
    advice: str,
    quantities: Collection[str] = (),
    *,
    known: Mapping[str, float] | None = None,
) -> Finding:
    """Say whether the chains agree.

    Parameters
    ----------
    draws
        Axes (chain, draw, ...).
    of_what, consequence
        Parts of the sentence: whose R-hat it is, and what it means if the chains disagree.
    advice
        What to try if they disagree.
    quantities
        Variables that are no parameters.  There may be thousands of their entries, so that the
        largest R-hat of them counts only if it is more than chance.
    known
        Largest R-hat of each variable, if it has been computed.
    """
    worst = _largest_r_hat(draws, of_what, quantities, known)
    if isinstance(worst, Finding):
        return worst
    name, r_hat, by_chance = worst
    if r_hat > R_HAT_PROBLEM:
        return Finding(
            Severity.PROBLEM,
            f"The chains disagree, {consequence}: R-hat{of_what} reaches {r_hat:.2f} ({name}).",
            advice,
        )
    if r_hat > R_HAT_WARNING:
        return Finding(
            Severity.WARNING,
            f"The chains do not quite agree yet: R-hat{of_what} reaches {r_hat:.3f} ({name}).",
            "Take more draws.",
        )
    most = f"{r_hat:.3f}"
    if by_chance > max(r_hat, R_HAT_WARNING):
        most += f", and {by_chance:.3f} among generated quantities, which are so many that chance"
        most += " explains it"
    return Finding(Severity.FINE, f"The chains agree: R-hat{of_what} is at most {most}.")


def _constant(draws: xr.Dataset) -> bool:
    """Whether all draws are the same."""
    return all(bool((each == each.isel(chain=0, draw=0)).all()) for each in draws.values())


def _drift(mean: xr.Dataset) -> Finding:
    """Say whether the mean over walkers, a single chain, is the same in both halves."""
    worst = _largest_r_hat(mean, " of the walkers' mean")
    if isinstance(worst, Finding):
        return worst
    name, r_hat, _ = worst
    if r_hat > R_HAT_PROBLEM:
        return Finding(
            Severity.PROBLEM,
            "The walkers' mean drifts, so these are not draws of the whole target: R-hat of its "
            f"halves reaches {r_hat:.2f} ({name}).",
            "Take a longer warm-up and many more draws.",
        )
    if r_hat > R_HAT_WARNING:
        return Finding(
            Severity.WARNING,
            f"The walkers' mean still drifts: R-hat of its halves reaches {r_hat:.3f} ({name}).",
            "Take more draws.",
        )
    return Finding(
        Severity.FINE, f"The walkers' mean does not drift: R-hat of its halves is {r_hat:.3f}."
    )


def _largest_r_hat(
    draws: xr.Dataset,
    of_what: str,
    quantities: Collection[str] = (),
    known: Mapping[str, float] | None = None,
) -> tuple[str, float, float] | Finding:
    """Return the variable with the largest R-hat, or a finding if there is none.

    Returns
    -------
    str, float, float
        The variable and its R-hat; and the largest R-hat of those quantities that are left out
        because chance explains it, 0 if there are none.
    """
    if draws.sizes["draw"] < _FEWEST_DRAWS:
        return Finding(
            Severity.WARNING,
            f"There are too few draws to compute R-hat{of_what}.",
            "Take 8 or more in each chain.",
        )
    if known is None:
        known = {
            str(name): evidence.largest_r_hat(variable.transpose("chain", "draw", ...).to_numpy())
            for name, variable in draws.items()
        }
    largest = {name: value for name, value in known.items() if not np.isnan(value)}
    if not largest:
        return Finding(
            Severity.PROBLEM,
            "No chain has moved: every parameter is constant.",
            "Check the starting points and step sizes.",
        )
    left_out = _by_chance(draws, largest, quantities)
    counted = {name: value for name, value in largest.items() if name not in left_out} or largest
    name = max(counted, key=lambda each: counted[each])
    return name, counted[name], max((largest[each] for each in left_out), default=0.0)


def _by_chance(
    draws: xr.Dataset, largest: Mapping[str, float], quantities: Collection[str]
) -> list[str]:
    """Return the quantities whose largest R-hat, by name, is no more than chance in so many."""
    names = [name for name in largest if name in quantities]
    entries = sum(
        draws[name].size // (draws.sizes["chain"] * draws.sizes["draw"]) for name in names
    )
    if entries <= evidence.LOOKED_AT:
        return []
    limit = evidence.r_hat_by_chance(draws.sizes["chain"], draws.sizes["draw"], entries)
    return [name for name in names if largest[name] <= limit]


def effective_draws(fit: Fit) -> Iterable[Finding]:
    """Count the effective draws behind the target's means, given weights and autocorrelation."""
    if fit.posterior.sizes["draw"] < 4:
        return
    fewest = {}
    for name in map(str, fit.posterior):
        count = fit.fewest_effective_draws(name)
        if not np.isnan(count):
            fewest[name] = count
    if not fewest:
        return
    name = min(fewest, key=lambda each: fewest[each])
    chains = fit.posterior.sizes["chain"]
    if fit.weighting == "across draws":
        # Where hardly a draw has weight, the linearised error that they are counted by is nonsense.
        heavy = float(evidence.effective_number(fit.log_weight.ravel()))
        if heavy < EFFECTIVE_PROBLEM * chains:
            fewest[name] = min(fewest[name], heavy)
    told = f"{fewest[name]:,.0f} effective draws"
    if fewest[name] < EFFECTIVE_PROBLEM * chains:
        what = advice_for(fit).many_more_draws
        sentence = f"The mean of {name} cannot be estimated: it rests on only {told}."
        yield Finding(Severity.PROBLEM, sentence, what)
    elif fewest[name] < EFFECTIVE_WARNING * chains:
        what = f"Take more draws: {EFFECTIVE_WARNING * chains} effective ones are enough."
        sentence = f"The error of the mean of {name} is rough: the mean rests on {told}."
        yield Finding(Severity.WARNING, sentence, what)
    else:
        yield Finding(Severity.FINE, f"Every mean rests on {told} or more; {name} has the fewest.")
