"""Log Z of somebody's program from the pilots of both legs, and whether they agree on it."""

from __future__ import annotations

import numpy as np

from harness import evidence
from harness.diagnosis import Finding, Severity
from harness.evidence import LogEvidence
from harness.model import Model
from harness.user.scout import Scouted

_DISAGREE = 1e-3
"""Probability that sound legs differ as much, below which they disagree."""
_MATTERS = 0.3
"""Difference in nats that is worth a word."""
_NEGLIGIBLE_CONSTANT = 0.05


def pilots_evidence(
    model: Model, scouted: Scouted, *, search_is_sound: bool, nuts_is_sound: bool
) -> tuple[LogEvidence | None, list[Finding]]:
    """Combine what both legs say of log Z.

    Parameters
    ----------
    model
        The tempered model.
    scouted
        What its pilots found.
    search_is_sound
        Whether nothing else speaks against the search; otherwise its log Z is not used.
    nuts_is_sound
        Whether nothing speaks against NUTS, from whose draws the near leg starts: if NUTS misses a
        mode, so does that leg, and its log Z is too low.

    Returns
    -------
    tuple
        Log Z, None where neither leg has one, and what there is to say about it.
    """
    findings = [*_about_the_prior(model, scouted)]
    search = list(scouted.estimates.get(scouted.origin, ()))
    if not search_is_sound or (scouted.prior is not None and not scouted.prior.reliable):
        search = []
    near = _near(scouted)
    if not search and not near:
        reasons = "; ".join(scouted.failures.values()) or "the pilots' estimates are not sound"
        findings.append(
            Finding(
                Severity.WARNING,
                f"There is no estimate of log Z: {reasons}.",
                "Give the pilots more time (--budget), or the parameters less vague priors.",
            )
        )
        return None, findings
    if not search or not near:
        return _with_constant(scouted, search, near), findings
    combined = evidence.combined_log_evidence([*search, *near])
    one, other = (evidence.combined_log_evidence(each).estimate for each in (search, near))
    if combined.p_value < _DISAGREE and abs(one.value - other.value) > _MATTERS:
        if not nuts_is_sound and other.value < one.value:
            return _with_constant(scouted, search, []), findings
        shown = "the latter" if nuts_is_sound else "the former"
        findings.append(
            Finding(
                Severity.WARNING,
                f"Two ways to log Z disagree: {one.value:.2f} ± {one.mcse:.2f} along a path from "
                f"{scouted.origin}, {other.value:.2f} ± {other.mcse:.2f} from a Gaussian fitted to "
                f"draws of NUTS. What follows relies on {shown}, which is right if "
                + ("NUTS has seen every mode." if nuts_is_sound else "that path is not too rough."),
                "Give parameters less vague priors, so that the path from there is shorter.",
            )
        )
        kept = ([], near) if nuts_is_sound else (search, [])
        return _with_constant(scouted, *kept), findings
    if not nuts_is_sound:
        return _with_constant(scouted, search, []), findings
    return _with_constant(scouted, search, near), findings


def _near(scouted: Scouted) -> list[LogEvidence]:
    """Return the near leg's estimates, divided by what the prior integrates to."""
    if scouted.constant is None:
        return []
    return [
        LogEvidence(each.value - scouted.constant.value, each.mcse)
        for origin, leg in scouted.estimates.items()
        if origin != scouted.origin
        for each in leg
    ]


def _with_constant(
    scouted: Scouted, search: list[LogEvidence], near: list[LogEvidence]
) -> LogEvidence:
    """Combine estimates; the constant's error is common to all of the near leg's."""
    found = evidence.combined_log_evidence([*search, *near]).estimate
    if not near or scouted.constant is None:
        return found
    return LogEvidence(found.value, float(np.hypot(found.mcse, scouted.constant.mcse)))


def _about_the_prior(model: Model, scouted: Scouted) -> list[Finding]:
    if model.own_base == "improper":
        where = f" (it is flat in {_listed(model.flat)})" if model.flat else ""
        return [
            Finding(
                Severity.WARNING,
                f"The prior is improper{where}, so that log Z is the integral of the program's "
                "density and no evidence: it depends on an arbitrary constant.",
                "Do not compare it with that of another model; give every parameter a prior.",
            )
        ]
    found, prior = [], scouted.prior
    if prior is not None and not prior.reliable:
        found.append(
            Finding(
                Severity.WARNING,
                f"Draws of the prior disagree (R-hat {prior.r_hat:.2f}): the prior is improper, "
                "very vague, has several modes or a funnel. The search for further modes starts "
                "from these draws, and is less thorough for it.",
                "Give parameters less vague priors, or parametrise the prior so that it is easy "
                "to draw from.",
            )
        )
    if scouted.constant is None:
        found.append(
            Finding(
                Severity.WARNING,
                "The prior's statements do not say what they integrate to, and no estimate of it "
                f"could be made: {scouted.failures.get('constant', '')}.",
                "Write the prior with Stan's distributions.",
            )
        )
    elif abs(scouted.constant.value) > max(_NEGLIGIBLE_CONSTANT, 4 * scouted.constant.mcse):
        constant = scouted.constant
        found.append(
            Finding(
                Severity.FINE,
                f"The prior as written integrates to exp({constant.value:.3f} ± "
                f"{constant.mcse:.3f}), not to 1; log Z is for the prior divided by that. The "
                "integral of the program's density is log Z plus this logarithm.",
            )
        )
    return found


def zero_likelihood(scouted: Scouted) -> list[Finding]:
    """Say which share of the prior has a likelihood of zero, where that is more than next to none.

    A tempered fit says so itself.
    """
    if scouted.path is None or not scouted.path.zero_likelihood:
        return []
    share = 100 * (1 - scouted.path.positive.share)
    return [
        Finding(
            Severity.FINE,
            f"The likelihood is zero on {share:.3g}% of the prior; log Z accounts for it.",
        )
    ]


def open_questions(model: Model) -> list[Finding]:
    """Say which statements may belong to the prior or to the likelihood."""
    return [
        Finding(Severity.WARNING, f"The program's text leaves it open: {each}.")
        for each in model.questions
    ]


def _listed(names: tuple[str, ...]) -> str:
    most = 5
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
