"""Log Z of a user's program from the pilots of both legs, and whether the legs agree on it."""

from __future__ import annotations

import numpy as np

from harness import evidence
from harness.diagnosis import Finding, Severity
from harness.evidence import LogEvidence
from harness.model import Model
from harness.path.moves import MOST_DENSE
from harness.path.normalisation import written_integral
from harness.user.prior import PriorDraws, over_prior
from harness.user.scouted import BRIDGE, Scouted
from harness.user.two_estimates import agree, explaining

_DISAGREE = 1e-3
"""Probability that sound legs differ by as much, below which they disagree."""
_MATTERS = 0.3
"""Difference in nats that is worth reporting."""
_CHANCE = 2.0
"""Standard errors of paths by which they are above a bridge by chance."""
_NEGLIGIBLE_CONSTANT = 0.01
_PROPER = "Give every parameter a proper prior, or do not compare log Z between models."
_PRECISE = 0.05
"""Error of a bridge, in nats, with which it alone tells what NUTS has seen integrates to, where no
path arrives: in more than :data:`~harness.path.moves.MOST_DENSE` dimensions, or where one
population of the search has all the weight."""

PilotsEvidence = tuple[LogEvidence | None, list[Finding]]
"""Log Z as the pilots have it, None if they have none, and findings about it."""


def pilots_evidence(
    model: Model, scouted: Scouted, *, search_is_sound: bool, nuts_is_sound: bool
) -> PilotsEvidence:
    """Combine the estimates of log Z from both legs.

    Parameters
    ----------
    model
        The tempered model.
    scouted
        What its pilots found.
    search_is_sound
        Whether there is no other evidence against the search; if there is, its log Z is not used.
    nuts_is_sound
        Whether there is no evidence against NUTS.  The near leg starts from NUTS's draws: if NUTS
        misses a mode, so does that leg, and its log Z is too low.

    Returns
    -------
    PilotsEvidence
        None in log Z's place if neither leg has one.
    """
    findings = [*about_the_prior(model, scouted)]
    search = list(scouted.estimates.get(scouted.origin, ()))
    if not search_is_sound or (scouted.prior is not None and not scouted.prior.reliable):
        search = []
    by_bridge = BRIDGE in scouted.estimates and "near" in scouted.failures
    near = _near(scouted, bridge=nuts_is_sound)
    if near and by_bridge:
        findings.append(bridge_of_draws(scouted.failures["near"]))
    if nuts_is_sound and near:
        rough = _too_rough(scouted, search)
        if rough is not None:
            search = []
            findings.append(rough)
        alone = _bridge_alone(scouted, search)
        if alone is not None:
            return _with_constant(scouted, [], [alone]), findings
        findings += _path_against_bridge(scouted)
    if not search and not near:
        # Several pilots may have failed for one reason.
        reasons = "; ".join(dict.fromkeys(scouted.failures.values()))
        reasons = reasons or "the pilots' estimates cannot be relied on"
        findings.append(
            Finding(
                Severity.WARNING,
                f"There is no estimate of log Z: {reasons}.",
                "Give the pilots more time (--budget), or give the parameters less vague priors.",
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
        shown = "the second" if nuts_is_sound else "the first"
        findings.append(
            Finding(
                Severity.WARNING,
                f"The two estimates of log Z disagree: {one.text} along a "
                f"path from {scouted.origin}, {other.text} "
                f"{'by a bridge from' if by_bridge else 'along one from a Gaussian fitted to'} "
                f"draws of NUTS. The result uses {shown}, which is right if "
                + ("NUTS has seen every mode." if nuts_is_sound else "that path is not too rough."),
                "Give the parameters less vague priors, so that the path from there is shorter.",
            )
        )
        kept = ([], near) if nuts_is_sound else (search, [])
        return _with_constant(scouted, *kept), findings
    if not nuts_is_sound:
        return _with_constant(scouted, search, []), findings
    return _with_constant(scouted, search, near), findings


def search_is_rough(scouted: Scouted) -> bool:
    """Whether the search has lost some of the posterior, by its log Z, so that it casts no doubt.

    See :func:`pilots_evidence`, whose findings say so.
    """
    return _too_rough(scouted, list(scouted.estimates.get(scouted.origin, ()))) is not None


def _too_rough(scouted: Scouted, search: list[LogEvidence]) -> Finding | None:
    """Report that the search's log Z is below that of the posterior's part which NUTS has seen.

    The whole is no less than a part of it.  So the search has lost some of the posterior, and casts
    no doubt on NUTS, if there are two estimates for that part, a bridge and paths, that agree.
    Where no path arrives in time, a precise bridge is enough if the search is weak anyway.  Where
    the draws lack a part of the posterior that its proposal reaches, a bridge is below the whole,
    too.
    """
    bridge, near = _bridge(scouted), _near(scouted, bridge=False)
    if bridge is None and scouted.at_least is not None:
        bridge = _divided(scouted, scouted.at_least)
    if not search or bridge is None:
        return None
    if not near and (bridge.mcse > _PRECISE or not _is_weak(scouted)):
        return None
    by_search = evidence.combined_log_evidence(search).estimate
    by_paths = evidence.combined_log_evidence(near).estimate if near else None
    if by_paths is not None and not agree(by_paths, bridge):
        return None
    if by_search.value > bridge.value - _MATTERS:
        return None
    also = "" if by_paths is None else f" and {by_paths.text} by a path from a Gaussian"
    return Finding(
        Severity.FINE,
        f"The path from {scouted.origin} is too rough for log Z: {by_search.text} is less than "
        f"what NUTS has seen of the posterior integrates to, {bridge.text} by a bridge{also}.",
    )


def _is_weak(scouted: Scouted) -> bool:
    """Whether a search is weak anyway: in many dimensions, or with all weight in one population."""
    return _dimension(scouted) > MOST_DENSE or not scouted.search_has_weight


def _dimension(scouted: Scouted) -> int:
    """Return how many numbers the search's particles have."""
    values = {} if scouted.search is None else scouted.search.values
    return sum(int(np.prod(each.shape[2:])) for each in values.values())


def _bridge_alone(scouted: Scouted, search: list[LogEvidence]) -> LogEvidence | None:
    """Return log Z by a bridge from NUTS's draws, unless paths differ from it or are more precise.

    Short paths of few particles have errors of some hundredths, which are too small.  A bridge's
    are thousandths, and halves and reshuffled blocks of the draws confirm them.  Where paths differ
    by more than their errors explain, the bridge's error is such that it explains that.
    """
    bridge = _bridge(scouted)
    if bridge is None:
        return None
    paths = [*search, *_near(scouted, bridge=False)]
    if not paths:
        return bridge
    by_paths = evidence.combined_log_evidence(paths).estimate
    above = by_paths.value - bridge.value
    # In many dimensions paths that were late are below the truth by more than their errors, which
    # is no sign of a mode that the bridge lacks.
    lower = above < 0 and agree(by_paths, bridge)
    # In hundreds, they are as far above it by chance.
    noise = _dimension(scouted) > MOST_DENSE and above <= _CHANCE * by_paths.mcse
    # Where the likelihood is constant, for example, a path is exact.
    if (abs(above) > _MATTERS and not (lower or noise)) or by_paths.mcse < bridge.mcse:
        return None
    return bridge if agree(by_paths, bridge) else explaining(bridge, by_paths)


def _path_against_bridge(scouted: Scouted) -> list[Finding]:
    """Report that both estimates from NUTS's draws, by paths and by a bridge, disagree."""
    bridge, near = _bridge(scouted), _near(scouted, bridge=False)
    if bridge is None or not near:
        return []
    by_paths = evidence.combined_log_evidence(near).estimate
    if agree(by_paths, bridge) or abs(by_paths.value - bridge.value) <= _MATTERS:
        return []
    return [
        Finding(
            Severity.WARNING,
            f"Two estimates of log Z from draws of NUTS disagree: {by_paths.text} along a path "
            f"from a Gaussian fitted to them, {bridge.text} by a bridge. The error of log Z "
            "accounts for that.",
            "Take more draws, and give the pilots more time (--budget).",
        )
    ]


def _near(scouted: Scouted, *, bridge: bool) -> list[LogEvidence]:
    """Return the near leg's estimates, divided by what the prior integrates to.

    A bridge sees no more than the draws, so it counts only if they are sound.
    """
    return [
        divided
        for origin, leg in scouted.estimates.items()
        if origin != scouted.origin and (bridge or origin != BRIDGE)
        for each in leg
        if (divided := _divided(scouted, each)) is not None
    ]


def _bridge(scouted: Scouted) -> LogEvidence | None:
    """Return the bridge's estimate, divided by what the prior integrates to, if both are known."""
    return None if scouted.by_bridge is None else _divided(scouted, scouted.by_bridge)


def _divided(scouted: Scouted, integral: LogEvidence) -> LogEvidence | None:
    """Divide an integral of the program's density by that of its prior, whose error is apart."""
    return None if scouted.constant is None else over_prior(integral, scouted.constant)


def _with_constant(
    scouted: Scouted, search: list[LogEvidence], near: list[LogEvidence]
) -> LogEvidence:
    """Combine estimates; all of the near leg's estimates share the constant's error."""
    found = evidence.combined_log_evidence([*search, *near]).estimate
    if not near or scouted.constant is None:
        return found
    # The constant itself is already taken out of the near leg's estimates.
    return found.minus(LogEvidence(0.0, scouted.constant.mcse))


def about_the_prior(model: Model, scouted: Scouted) -> list[Finding]:
    """Return what the pilots have seen of the prior, and what that means for log Z."""
    if model.own_base == "improper":
        return about_improper_prior(model)
    if scouted.drifts:
        return [*about_drifting_prior(model), *written_prior(written_integral(model))]
    found, prior = [], scouted.prior
    if prior is not None and not prior.reliable:
        found.append(
            Finding(
                Severity.WARNING,
                "Draws of the prior disagree, so the search for further modes, which starts from "
                f"them, is less thorough: R-hat is {prior.r_hat:.2f}. The prior may be improper or "
                "very vague, or have several modes or a funnel.",
                "Give the parameters less vague priors, or parametrise the prior so that it is "
                "easy to draw from.",
            )
        )
    if scouted.constant is None:
        found.append(
            Finding(
                Severity.WARNING,
                "The estimate of log Z from NUTS's draws cannot be used, because it needs the "
                "integral of the prior, which the program's text does not show and which could not "
                f"be estimated: {scouted.failures.get('constant', '')}.",
                "Write the prior with Stan's distributions.",
            )
        )
    elif not model.tempered_whole:
        found += written_prior(scouted.constant)
        found += rough_integral(prior, scouted.constant)
    return found


def rough_integral(prior: PriorDraws | None, constant: LogEvidence) -> list[Finding]:
    """Report that an estimate of the prior's integral rests on draws that hardly agree."""
    if prior is None or not prior.rough or constant.mcse == 0:
        return []
    return [
        Finding(
            Severity.WARNING,
            "What the prior integrates to is rough, and log Z with it: it is estimated from draws "
            f"of the prior by NUTS, whose chains hardly mix (R-hat is {prior.r_hat:.2f}).",
            "Write the prior with Stan's distributions, so that it can be simulated.",
        )
    ]


def bridge_of_draws(reason: str) -> Finding:
    """Report that log Z rests on draws of NUTS alone."""
    return Finding(
        Severity.FINE,
        "Log Z from NUTS's draws is by bridge sampling, which sees the modes of the draws only, "
        f"because the pilots that start from a Gaussian near them did not succeed: {reason}.",
    )


def about_improper_prior(model: Model) -> list[Finding]:
    """Warn that log Z is no evidence, because the prior is improper.

    If the whole program is tempered, its base tells nothing about its prior.
    """
    if model.tempered_whole:
        return []
    where = f" (it is flat in {_listed(model.flat)})" if model.flat else ""
    return [
        Finding(
            Severity.WARNING,
            f"The prior is improper{where}, so log Z is not the evidence: it is the integral "
            "of the program's density, which depends on an arbitrary constant.",
            _PROPER,
        )
    ]


def about_drifting_prior(model: Model) -> list[Finding]:
    """Report that draws of the prior drift to infinity, and what that means for log Z.

    If the text shows the prior's integral, it is proper, and only its numbers overflow.
    """
    if model.log_prior_integral is not None:
        return [
            Finding(
                Severity.FINE,
                "The prior is so vague that numbers drawn from it overflow, so a wide Gaussian "
                "around the draws takes its place as a starting point.",
            )
        ]
    return [
        Finding(
            Severity.WARNING,
            "Draws of the prior drift to infinity: it is improper, or so vague that its numbers "
            "overflow. If it is improper, log Z is not the evidence: it is the integral of the "
            "program's density, which depends on an arbitrary constant.",
            _PROPER,
        )
    ]


def unknown_integral() -> Finding:
    """Report that the prior may not integrate to 1, and that nobody knows to what."""
    return Finding(
        Severity.WARNING,
        "Log Z is for the prior divided by its integral, which the program's text does not show "
        "and which was not estimated.",
        "Write the prior with Stan's distributions, truncated with T[,] where a constraint cuts "
        "them.",
    )


def is_normalised(constant: LogEvidence) -> bool:
    """Return whether a prior integrates to 1, as far as the log of its integral shows."""
    return abs(constant.value) <= max(_NEGLIGIBLE_CONSTANT, 4 * constant.mcse)


def written_prior(constant: LogEvidence) -> list[Finding]:
    """Report the log of the integral of the prior as the program writes it, unless that is 0."""
    if is_normalised(constant):
        return []
    error = f" ± {constant.mcse:.3f}" if constant.mcse else ""
    return [
        Finding(
            Severity.FINE,
            f"The prior as written integrates to exp({constant.value:.3f}{error}), not to 1; log "
            "Z is for the prior divided by that. The "
            "integral of the program's density is log Z plus this logarithm.",
        )
    ]


def zero_likelihood(scouted: Scouted) -> list[Finding]:
    """Report the share of the prior where the likelihood is zero, unless it is negligible.

    The diagnosis of a tempered fit reports this itself.
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


def _listed(names: tuple[str, ...]) -> str:
    most = 5
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
