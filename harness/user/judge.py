"""What follows from the comparison of plain NUTS with pilots and with a tempered run.

Neither side is taken for the truth.  NUTS misses a region if a pilot has particles there and NUTS,
started from them, stays.  A pilot or a tempered run misses one if NUTS has draws there and a pilot
that starts from NUTS's own draws gives it a share of the posterior.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from harness.arrays import FloatArray
from harness.diagnosis import Finding, Severity
from harness.errors import DataError
from harness.evidence import LogEvidence
from harness.fit import Fit
from harness.user.compare import LEAST_SHARE, Comparison, Region, compare
from harness.user.scout import Scouted

ROUGH = 1.0
"""Error of the search's log Z, in nats, from which on agreement with its particles says little."""
_HIGHER = 4.0
"""Standard errors by which a pilot's log Z exceeds that of a tempered run that misses something."""


@dataclass(frozen=True)
class Judgement:
    """What to do after plain NUTS, and what to say.

    Attributes
    ----------
    temper
        Whether a tempered run is needed.
    nuts_misses
        Whether NUTS is known to miss something, or not to mix.
    search_is_sound
        Whether nothing speaks against the search's log Z.
    findings
        What to say.
    """

    temper: bool
    nuts_misses: bool
    search_is_sound: bool
    findings: tuple[Finding, ...]

    def adding(self, finding: Finding) -> Judgement:
        """Return the same with one more finding."""
        return replace(self, findings=(*self.findings, finding))


def judge(compared: Comparison, scouted: Scouted, *, nuts_stays: bool) -> Judgement:
    """Judge plain NUTS by a comparison with the search's particles.

    Parameters
    ----------
    compared
        NUTS's draws against the search's particles.
    scouted
        What the pilots found.
    nuts_stays
        Whether NUTS, started in the region that it missed, stays there.
    """
    findings = list(_disagreement(compared))
    misses = compared.missed_by_nuts
    genuine = misses is not None and nuts_stays
    lost = compared.missed_by_other
    if lost is not None and not _near_has(lost, scouted):
        lost = None
    if misses is not None and genuine:
        findings.append(
            Finding(
                Severity.WARNING,
                f"Plain NUTS misses part of the posterior: {misses} has probability "
                f"{misses.nuts:.2f} by its draws, but {misses.other:.2f} ± "
                f"{misses.other_error:.2f} by particles from {scouted.origin}, and NUTS that "
                "starts there stays.",
                "Use the tempered fit.",
            )
        )
    elif misses is not None:
        findings.append(
            Finding(
                Severity.WARNING,
                f"The search for further modes failed: its particles from {scouted.origin} are at "
                f"{misses}, and NUTS leaves that place at once if it starts there. Modes that "
                "plain NUTS misses would not show.",
                "Compare runs from starting points that are far apart.",
            )
        )
    if lost is not None:
        findings.append(
            Finding(
                Severity.WARNING,
                f"The search for further modes missed a region that plain NUTS found: {lost} has "
                f"probability {lost.nuts:.2f} by NUTS, but {lost.other:.2f} by particles from "
                f"{scouted.origin}. It may have missed other regions too.",
                "Compare runs from starting points that are far apart.",
            )
        )
    sound = lost is None and (misses is None or genuine)
    if sound and misses is None and not compared.chains_disagree:
        findings.append(_agreement(compared, scouted))
    temper = compared.chains_disagree or genuine
    return Judgement(temper, temper, sound, tuple(findings))


def judge_alone(draws: Mapping[str, FloatArray], scouted: Scouted) -> Judgement:
    """Judge plain NUTS by its chains alone, since the search failed."""
    findings = [search_failed(scouted.failures.get("search", ""))]
    if scouted.near is None:
        return Judgement(False, False, False, tuple(findings))
    compared = compare(draws, scouted.near)
    findings += _disagreement(compared)
    return Judgement(compared.chains_disagree, compared.chains_disagree, False, tuple(findings))


def missed_by_tempered(compared: Comparison, scouted: Scouted) -> Finding | None:
    """Say which region NUTS has visited and a tempered run has not, if there is one.

    Parameters
    ----------
    compared
        NUTS's draws against those of the tempered run.
    scouted
        What the pilots found: a place where a chain of NUTS was stuck, and where next to none of
        the posterior is, does not count.
    """
    lost = compared.missed_by_other
    if lost is None or not _near_has(lost, scouted):
        return None
    return Finding(
        Severity.PROBLEM,
        f"The tempered run misses a region that plain NUTS found: {lost} has probability "
        f"{lost.nuts:.2f} by NUTS and {lost.other:.2f} by the tempered draws. Neither set of draws "
        "may be complete.",
        "Run longer (--draws, --warmup), try --method pe, and compare.",
    )


def higher_than(fit: Fit, scouted: Scouted, found: LogEvidence | None) -> list[Finding]:
    """Say if pilots find clearly more evidence than a tempered run does: it misses something."""
    if found is None:
        return []
    try:
        own = fit.log_evidence
    except DataError:  # a fit without one
        return []
    apart = found.value - own.value
    error = float(np.hypot(found.mcse, own.mcse))
    if not apart > max(_HIGHER * error, ROUGH):
        return []
    return [
        Finding(
            Severity.PROBLEM,
            f"Pilots find more evidence than the tempered run: log Z {found.value:.2f} ± "
            f"{found.mcse:.2f} against {own.value:.2f} ± {own.mcse:.2f}. The run misses part of "
            "the posterior, or the pilots' errors are too small.",
            "Run longer (--draws, --warmup), and compare with --method pe.",
        )
    ]


def from_both(
    particles: Mapping[str, FloatArray], draws: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Return starting points that are particles and draws of NUTS by turns.

    Parameters
    ----------
    particles
        By parameter, shape (n, ...).
    draws
        By parameter, shape (chains, draws, ...); the last of each chain and those before it are
        taken, chain by chain.
    """
    count = len(next(iter(particles.values())))
    mixed = {}
    for name, value in particles.items():
        late_first = np.flip(draws[name], axis=1).swapaxes(0, 1)
        own = late_first.reshape(-1, *draws[name].shape[2:])[:count]
        both = np.empty((2 * len(own), *value.shape[1:]))
        both[::2], both[1::2] = value[: len(own)], own
        mixed[name] = both
    return mixed


def no_search(differ: str) -> Finding:
    """Say that stanli's density is not CmdStan's, so that there was no search."""
    return Finding(
        Severity.WARNING,
        f"There was no search for further modes, and there is no log Z: stanli, which would run "
        f"it, and CmdStan differ in {differ}.",
        "Report the program to the authors of stanli; meanwhile compare runs from far starts.",
    )


def search_failed(reason: str) -> Finding:
    """Say that the search failed, so that only NUTS's own chains speak for its draws."""
    return Finding(
        Severity.WARNING,
        f"The search for further modes did not succeed ({reason}). These are the draws of plain "
        "NUTS; modes that it misses would not show.",
        "Compare runs from starting points that are far apart.",
    )


def cannot_temper(reason: str) -> Finding:
    """Say that NUTS misses something and no tempered run can replace it."""
    return Finding(
        Severity.PROBLEM,
        f"Plain NUTS misses part of the posterior, and no tempered run could take its place "
        f"({' '.join(reason.split())}). These are the draws of plain NUTS.",
        "Give every parameter a proper prior, so that a tempered path can start from it.",
    )


def _disagreement(compared: Comparison) -> list[Finding]:
    if not compared.chains_disagree:
        return []
    return [
        Finding(
            Severity.WARNING,
            f"Plain NUTS misses modes or does not move between them: its chains disagree (R-hat "
            f"of {compared.worst} is {compared.r_hat:.2f}).",
            "Use the tempered fit.",
        )
    ]


def _near_has(region: Region, scouted: Scouted) -> bool:
    """Whether a pilot that starts from NUTS's draws gives a region a share of the posterior."""
    if scouted.near is None:
        return True
    inside = region.holds(scouted.near.values).mean(axis=1)
    return bool(scouted.near.share @ inside >= LEAST_SHARE / 2)


def _agreement(compared: Comparison, scouted: Scouted) -> Finding:
    estimates = scouted.estimates[scouted.origin]
    rough = max(each.mcse for each in estimates) >= ROUGH
    apart = compared.differs or compared.unsure
    if apart is not None:
        return Finding(
            Severity.WARNING,
            f"NUTS and the search for further modes were in the same places, but give them "
            f"different probabilities: {apart} has {apart.nuts:.2f} ± {apart.nuts_error:.2f} by "
            f"NUTS, whose chains agree, and {apart.other:.2f} ± {apart.other_error:.2f} by "
            f"particles from {scouted.origin}.",
            "Run longer (--draws), and compare with --method ct.",
        )
    if rough:
        return Finding(
            Severity.WARNING,
            "The search for further modes was too rough to tell whether plain NUTS misses some "
            f"(the standard error of its log Z is {max(each.mcse for each in estimates):.1f}).",
            "Run --method ct or pe, and compare.",
        )
    return Finding(
        Severity.FINE,
        f"No mode was found that plain NUTS misses: its chains agree (R-hat at most "
        f"{compared.r_hat:.3f}), and with them the particles that pilots brought from "
        f"{scouted.origin} (probabilities in {compared.coordinates} coordinates differ by at most "
        f"{compared.largest:.2f}).",
    )
