"""Run NUTS in each known mode in place of a fit with troubles, and make a result of it."""

from __future__ import annotations

from collections.abc import Iterable

from harness.diagnosis import Finding
from harness.fit import Fit, evidence_attributes, weigh_modes
from harness.modes import FoundModes
from harness.user.in_modes import METHOD, nuts_in_modes
from harness.user.mode_findings import mode_findings
from harness.user.prior import log_prior_integral, prior_attributes
from harness.user.result import UserFit
from harness.user.scouted import Scouted
from harness.user.steps import Steps
from harness.user.weigh import BY_MASSES, Weighed, changed_shares, log_evidence_by_mass

_OF_TABLES = ("gradients_modes", "seconds_modes")
_WARMUP_TAKES = 1.5
"""Gradients of an iteration, warm-up included, as a multiple of those of one after warm-up."""
_SHORT_STEPS_TAKE = 2.0
"""Gradients of a trajectory with short steps, as a multiple of those with Stan's."""


def in_modes_run(
    steps: Steps,
    before: UserFit,
    found: FoundModes,
    findings: Iterable[Finding],
    scouted: Scouted,
    *,
    plain: Fit,
    most_seconds: float,
) -> UserFit:
    """Run NUTS in each known mode, put together by masses, then the original's quantities.

    Parameters
    ----------
    steps
        Of this call.
    before
        The result so far, with whose log Z that of the masses is compared.
    found
        Its modes.
    findings
        What else is to be said.
    scouted
        What the pilots found.
    plain
        The draws of plain NUTS, as it made them: those of the result so far may be weighted.
    most_seconds
        Seconds of wall time, roughly.

    Raises
    ------
    SamplingError
        If NUTS does not stay in the modes.
    """
    program, clock, seed = steps.program, steps.clock, steps.seed
    diverged = bool(plain.sample_stats["diverging"].any())
    with clock.step("NUTS in each mode", "in_modes"):
        made = nuts_in_modes(
            *(program.model, found, steps.nuts_with_short_steps if diverged else steps.nuts),
            in_one_copy=steps.modes.one_of_many,
            usual=_usual_gradients(plain, diverged),
            most_seconds=most_seconds,
            seed=seed,
        )
    fit = program.generated(made.fit, seed, clock)
    fit = weigh_modes(fit, made.basin, made.probability, made.log_error, seed=seed)
    fit.tree.attrs.update(prior_attributes(log_prior_integral(before.fit)))
    fit.tree.attrs.update(evidence_attributes(before.log_evidence))
    table = made.table(found.table)
    change = changed_shares(found.table, table)
    seen = sum(
        new.probability
        for old, new in zip(found.table.modes, table.modes, strict=True)
        if old.probability > 0
    )
    by_mass = log_evidence_by_mass(Weighed(fit, table, made.log_integral, change), seen)
    fit.tree.attrs.pop(BY_MASSES, None)  # bridges from the draws tell these masses
    told = [*findings, change, *by_mass, *steps.modes.about_climbs()]
    told += mode_findings(table, by_masses=True)
    fit = steps.finished(fit, told, scouted)
    fit.tree.attrs["modes"] = table.as_json()
    tempered = before.tempered if before.method == "nuts" else before.fit
    if before.method == "nuts":  # what its table of modes took counts
        plain.tree.attrs.update(
            {name: each for name, each in before.fit.tree.attrs.items() if name in _OF_TABLES}
        )
    result = UserFit(fit, METHOD, nuts=plain, tempered=tempered)
    steps.modes.made_of(result)
    return result


def _usual_gradients(plain: Fit, short_steps: bool) -> float | None:
    """Return the gradients that an iteration of plain NUTS took, more in its warm-up."""
    if "n_steps" not in plain.sample_stats:
        return None
    times = _WARMUP_TAKES * (_SHORT_STEPS_TAKE if short_steps else 1)
    return times * float(plain.sample_stats["n_steps"].mean())
