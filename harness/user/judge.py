"""What to do and to say after plain NUTS is compared with pilots and with a tempered run.

Neither side is assumed to be right.  NUTS misses a region if a pilot has particles there and NUTS
stays there when it starts from them.  A pilot or a tempered run misses a region if NUTS has draws
there and a pilot that starts from NUTS's own draws finds probability there too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from harness.arrays import FloatArray
from harness.diagnosis import R_HAT_PROBLEM, Finding, Severity
from harness.engine.nuts import NutsSettings
from harness.errors import DataError
from harness.evidence import LogEvidence
from harness.fit import Fit
from harness.user.arbitrate import Dispute, Side
from harness.user.compare import LEAST_SHARE, Comparison, Region, largest_r_hat
from harness.user.evidence import search_is_rough
from harness.user.scouted import Scouted

ROUGH = 1.0
"""Error of the search's log Z, in nats, above which agreement with its particles means little."""
_HIGHER = 4.0
"""Standard errors by which the pilots' log Z is higher if a tempered run misses something."""


@dataclass(frozen=True)
class Judgement:
    """What to do after plain NUTS, and what to say.

    Attributes
    ----------
    temper
        Whether a tempered run is needed.
    nuts_misses
        Whether NUTS is known to miss something or not to mix.
    search_is_sound
        Whether there is no evidence against the search's log Z.
    findings
        What to say.
    dispute
        Region to which NUTS and the search give different probabilities, although both visit it
        and NUTS's chains agree, as long as that is not settled; its finding is one of
        ``findings``.
    about_nuts
        What is to be said besides if NUTS's fit is the result.
    doubted
        Whether the search gives some place another probability than NUTS does, if not so different
        a one that it is disputed.
    """

    temper: bool
    nuts_misses: bool
    search_is_sound: bool
    findings: tuple[Finding, ...]
    dispute: Dispute | None = None
    about_nuts: tuple[Finding, ...] = ()
    doubted: bool = False

    def adding(self, *findings: Finding) -> Judgement:
        """Return the same with more findings."""
        return replace(self, findings=(*self.findings, *findings))

    def lacking(self, modes: Iterable[Finding], *, search_is_sound: bool) -> Judgement:
        """Return that NUTS misses modes, whatever the comparison of single coordinates says.

        Parameters
        ----------
        modes
            What to say of each.
        search_is_sound
            Whether the search has seen them.
        """
        doubts = [each for each in self.findings if each.severity > Severity.FINE]
        return replace(
            self,
            temper=True,
            nuts_misses=True,
            search_is_sound=self.search_is_sound and search_is_sound,
            findings=(*doubts, *modes),
        )

    def settled(self, side: Side, finding: Finding) -> Judgement:
        """Return the same with what an arbitration says in place of the dispute's own finding."""
        if self.dispute is None:
            return self
        others = tuple(each for each in self.findings if each is not self.dispute.finding)
        over = side in ("nuts", "search")
        return replace(
            self,
            nuts_misses=self.nuts_misses or side == "search",
            search_is_sound=self.search_is_sound and side in ("search", "open"),
            findings=(*others, finding),
            dispute=None if over else replace(self.dispute, finding=finding),
        )

    @property
    def accepted(self) -> tuple[Finding, ...]:
        """What is said that no further run would change: all findings but a dispute's."""
        if self.dispute is None:
            return self.findings
        return tuple(each for each in self.findings if each is not self.dispute.finding)


def judge(compared: Comparison, scouted: Scouted, *, nuts_stays: bool) -> Judgement:
    """Judge plain NUTS by a comparison with the search's particles.

    Parameters
    ----------
    compared
        NUTS's draws against the search's particles.
    scouted
        What the pilots found.
    nuts_stays
        Whether NUTS stays in the region that it missed when it starts there.
    """
    findings = []
    if compared.chains_disagree:
        findings.append(_disagreement(compared.r_hat, compared.worst))
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
                f"{misses.nuts:.2f} by its draws but {misses.other:.2f} ± "
                f"{misses.other_error:.2f} by pilots that start from {scouted.origin}, and NUTS "
                "stays there when it starts there.",
                "Use tempered draws and not those of plain NUTS.",
            )
        )
    elif misses is not None:
        findings.append(
            Finding(
                Severity.WARNING,
                "The search for further modes failed, so it would not show modes that plain NUTS "
                f"misses: its particles from {scouted.origin} ended at {misses}, and NUTS leaves "
                "that place when it starts there.",
                "Compare runs from starting points that are far apart.",
            )
        )
    if lost is not None:
        findings.append(
            Finding(
                Severity.WARNING,
                "The search for further modes missed a region that plain NUTS found, so it may "
                f"have missed others too: {lost} has probability {lost.nuts:.2f} by NUTS but "
                f"{lost.other:.2f} by pilots that start from {scouted.origin}.",
                "Compare runs from starting points that are far apart.",
            )
        )
    sound = lost is None and (misses is None or genuine)
    dispute, doubted = None, False
    if sound and misses is None and not compared.chains_disagree:
        findings.append(_agreement(compared, scouted))
        doubted = compared.notable is not None and findings[-1].severity > Severity.FINE
        if compared.differs is not None:
            dispute = Dispute(compared.differs, findings[-1])
    wrong = compared.chains_disagree or genuine
    return Judgement(
        wrong or dispute is not None, wrong, sound, tuple(findings), dispute, doubted=doubted
    )


def judge_alone(draws: Mapping[str, FloatArray], scouted: Scouted) -> Judgement:
    """Judge plain NUTS by its chains alone, because the search failed."""
    r_hat, worst = largest_r_hat(draws)
    apart = r_hat > R_HAT_PROBLEM
    findings = (_disagreement(r_hat, worst),) if apart else ()
    failed = search_failed(scouted.failures.get("search", ""))
    return Judgement(apart, apart, False, findings, about_nuts=(failed,))


def missed_by_tempered(compared: Comparison, scouted: Scouted) -> Finding | None:
    """Report the region that NUTS has visited and a tempered run has missed, if there is one.

    Parameters
    ----------
    compared
        NUTS's draws against those of the tempered run.
    scouted
        What the pilots found.  A place where a chain of NUTS was stuck, but which has hardly any
        posterior probability, does not count.
    """
    lost = compared.missed_by_other
    if lost is None or not _near_has(lost, scouted):
        return None
    return Finding(
        Severity.PROBLEM,
        "The tempered run misses a region that plain NUTS found, so both sets of draws may be "
        f"incomplete: {lost} has probability {lost.nuts:.2f} by NUTS and {lost.other:.2f} by the "
        "tempered draws.",
        "Run longer (--draws, --warmup), try --method pseudo_extended, and compare.",
    )


def seen_by_replicas(compared: Comparison, *, sound: bool, genuine: bool) -> Finding | None:
    """Report the region that NUTS has missed and parallel tempering visits, if there is one.

    Parameters
    ----------
    compared
        NUTS's draws against those of parallel tempering.
    sound
        Whether parallel tempering has no problem of its own.
    genuine
        Whether the region belongs to the posterior: that is so if parallel tempering is sound, or
        if NUTS stays there when it starts there.  Replicas that have not mixed may still be on
        their way from the reference.
    """
    region = compared.missed_by_nuts
    if region is None:
        return None
    if not genuine:
        return Finding(
            Severity.WARNING,
            f"Parallel tempering, which has problems of its own, ended at {region}, where plain "
            "NUTS has no draws, and NUTS leaves that place when it starts there.",
            "Compare runs from starting points that are far apart.",
        )
    return Finding(
        Severity.WARNING if sound else Severity.PROBLEM,
        f"Plain NUTS misses part of the posterior: {region} has probability {region.nuts:.2f} by "
        f"its draws but {region.other:.2f} ± {region.other_error:.2f} by parallel tempering.",
        "Use tempered draws and not those of plain NUTS."
        if sound
        else "Give it more time (--budget), and compare.",
    )


def higher_than(fit: Fit, scouted: Scouted, found: LogEvidence | None) -> list[Finding]:
    """Report a tempered run whose log Z is clearly below the pilots': it misses something."""
    if found is None:
        return []
    try:
        own = fit.log_evidence
    except DataError:  # a fit without one
        return []
    apart = found.minus(own)
    if not apart.value > max(_HIGHER * apart.mcse, ROUGH):
        return []
    return [
        Finding(
            Severity.PROBLEM,
            "The tempered run misses part of the posterior, or the pilots' errors are too small: "
            f"log Z is {found.text} by the pilots but only {own.text} by the run.",
            "Run longer (--draws, --warmup), and compare with --method pseudo_extended.",
        )
    ]


def edited_density(differ: str) -> Finding:
    """Report that an edited tempered program has another density than the one we would write."""
    return Finding(
        Severity.WARNING,
        "The edited tempered program has another density than the one that harness temper writes: "
        f"they differ in {differ}. The draws and log Z are the edited program's; the pilots "
        "followed the original.",
        "If you did not mean to change the density, compare the two programs.",
    )


def took_over(method: str, trouble: Finding) -> Finding:
    """Report that a method took over, and from what."""
    return Finding(
        Severity.FINE, f"{method} took over from a fit with this finding: {trouble.sentence}"
    )


def may_lack_modes(trouble: Finding) -> Finding:
    """Report that draws in known modes took over from a later fit, which was to find any others."""
    return Finding(
        Severity.WARNING,
        "Modes may be missing that nothing had found before NUTS ran in each: what followed cannot "
        f"tell, because of this finding: {trouble.sentence}",
        "Give it more time (--budget).",
    )


def modes_alone_in_vain(reason: str) -> Finding:
    """Report that NUTS in each mode has not helped either."""
    return Finding(
        Severity.FINE,
        f"NUTS in each known mode was tried as well, and did not help: {reason.rstrip('.')}.",
    )


def shortened(taken: NutsSettings, wanted: NutsSettings, deepest: int) -> list[Finding]:
    """Report a tempered run that was made shorter so that it ends in time.

    ``deepest`` is the largest tree depth of its transitions: a limit that none has reached has cost
    nothing.
    """
    few = taken.draws < wanted.draws
    if not few and (taken == wanted or deepest < taken.max_treedepth):
        return []
    fewer = f" and {taken.draws:,} draws a chain" if few else ""
    return [
        Finding(
            Severity.WARNING if few else Severity.FINE,
            "A gradient takes so long that the tempered run was limited to a tree depth of "
            f"{taken.max_treedepth}{fewer}, to end within the budget.",
            "Give it more time (--budget), or take CmdStan (--engine cmdstan).",
        )
    ]


def rough_log_evidence(found: LogEvidence) -> Finding:
    """Report that log Z could be more precise, which is no trouble."""
    return Finding(Severity.FINE, f"The standard error of log Z is {found.mcse:.2f}.")


def no_relief(reason: str, severity: Severity) -> Finding:
    """Report that parallel tempering has not helped either.

    The severity is that of what it was to mend; there is no worse news in it than a warning.
    """
    return Finding(
        min(severity, Severity.WARNING),
        f"Parallel tempering was tried as well, and did not help: {reason.rstrip('.')}.",
        "Give it more time (--budget), or more scans (--draws, --warmup).",
    )


def no_time_for_replicas(*, searched: bool) -> Finding:
    """Report that parallel tempering was not tried.

    Parameters
    ----------
    searched
        Whether the search for further modes has got to the posterior.
    """
    if searched:
        told = (
            "Parallel tempering was not tried, because NUTS and the search for further modes have "
            "taken the whole budget."
        )
    else:
        told = (
            "Parallel tempering, which may find modes as well, was not tried: the search has taken "
            "the time for it, the chains agree, and a bridge from their draws tells log Z."
        )
    return Finding(Severity.FINE, told, "Raise --budget.")


def anew_in_vain(reason: str) -> Finding:
    """Report that a second run of parallel tempering is not the result."""
    return Finding(
        Severity.WARNING,
        "Parallel tempering ran once more, starting also in a mode that climbs found and the first "
        f"run missed, but that did not help: {reason}",
        "Give it more time (--budget), or use --method auto.",
    )


def from_both(
    particles: Mapping[str, FloatArray], draws: Mapping[str, FloatArray]
) -> dict[str, FloatArray]:
    """Return starting points that alternate between particles and draws of NUTS.

    Parameters
    ----------
    particles
        By parameter, shape (n, ...).
    draws
        By parameter, shape (chains, draws, ...).  The last draw of every chain comes first, then
        the one before it, and so on.
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


def began_anew() -> Finding:
    """Report that parallel tempering ran twice, because of a mode that the first run missed."""
    return Finding(
        Severity.FINE,
        "Parallel tempering ran twice: climbs from other starting points found a mode that the "
        "first run missed, and the second one starts there, too.",
    )


def no_search(differ: str) -> Finding:
    """Report that stanli and CmdStan disagree on the density, so that there was no search."""
    return Finding(
        Severity.WARNING,
        "There was no search for further modes and there is no log Z, because stanli, which runs "
        f"the pilots, and CmdStan disagree on the density: they differ in {differ}.",
        "Report the program to the authors of stanli. Meanwhile compare runs from starting points "
        "that are far apart.",
    )


def search_failed(reason: str) -> Finding:
    """Report that the search failed, so that NUTS could only be judged by its own chains."""
    return Finding(
        Severity.WARNING,
        "These are the draws of plain NUTS, and nothing would show modes that it misses: the "
        f"search for further modes did not succeed ({reason}).",
        "Compare runs from starting points that are far apart.",
    )


def cannot_temper(reason: str) -> Finding:
    """Report that NUTS misses something and no tempered run can replace it."""
    return Finding(
        Severity.PROBLEM,
        "These are the draws of plain NUTS, which misses part of the posterior: no tempered run "
        f"could replace it ({' '.join(reason.split())}).",
        "Give every parameter a proper prior, so that a tempered path can start from it.",
    )


def _disagreement(r_hat: float, worst: str) -> Finding:
    return Finding(
        Severity.WARNING,
        "Plain NUTS misses modes or does not move between them: its chains disagree (R-hat of "
        f"{worst} is {r_hat:.2f}).",
        "Use tempered draws and not those of plain NUTS.",
    )


def _near_has(region: Region, scouted: Scouted) -> bool:
    """Whether a pilot that starts from NUTS's draws finds probability in a region."""
    if scouted.near is None:
        return True
    inside = region.holds(scouted.near.values).mean(axis=1)
    return bool(scouted.near.share @ inside >= LEAST_SHARE / 2)


def _agreement(compared: Comparison, scouted: Scouted) -> Finding:
    estimates = scouted.estimates[scouted.origin]
    rough = max(each.mcse for each in estimates)
    apart = compared.differs or compared.notable
    if apart is not None and compared.differs is None and search_is_rough(scouted):
        return Finding(
            Severity.FINE,
            "NUTS and the search for further modes found the same places, and the search, whose "
            f"log Z shows that it is rough, gives them somewhat different probabilities: {apart} "
            f"has {apart.nuts:.2f} ± {apart.nuts_error:.2f} by NUTS, whose chains agree, and "
            f"{apart.other:.2f} ± {apart.other_error:.2f} by pilots that start from "
            f"{scouted.origin}.",
        )
    if apart is not None:
        return Finding(
            Severity.WARNING,
            "NUTS and the search for further modes found the same places but give them different "
            f"probabilities: {apart} has {apart.nuts:.2f} ± {apart.nuts_error:.2f} by NUTS, whose "
            f"chains agree, and {apart.other:.2f} ± {apart.other_error:.2f} by pilots that start "
            f"from {scouted.origin}.",
            "Run longer (--draws), and compare with --method collapsed_tempering.",
        )
    reason = f"the standard error of its log Z is {rough:.1f}" if rough >= ROUGH else ""
    if not scouted.search_has_weight:
        reason = "one of its populations of particles has nearly all their weight"
    if reason:
        return Finding(
            Severity.WARNING,
            "The search for further modes was too rough to tell whether plain NUTS misses any: "
            f"{reason}.",
            "Run --method collapsed_tempering or pseudo_extended, and compare.",
        )
    within = "" if compared.unsure is None else ", which is within their errors"
    return Finding(
        Severity.FINE,
        "No mode was found that plain NUTS misses: its chains agree (R-hat at most "
        f"{compared.r_hat:.3f}), and its draws agree with pilots that start from {scouted.origin} "
        f"(probabilities in {compared.coordinates} coordinates differ by at most "
        f"{compared.largest:.2f}{within}).",
    )
