"""``--method auto``: NUTS, a search for what it misses, tempering, NUTS in each mode, as needed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from harness.arrays import FloatArray
from harness.diagnosis import R_HAT_PROBLEM, Finding, Severity
from harness.diagnosis.sampler import sampler
from harness.engine.signals import is_from_signal
from harness.errors import FAILURES, SamplingError, one_line
from harness.fit import Fit
from harness.samplers.parallel_tempering import METHOD
from harness.samplers.rung_replicas import Explorer
from harness.user.about_program import about_program
from harness.user.against_nuts import AgainstNuts, as_population
from harness.user.arbitrate import arbitrate
from harness.user.compare import parameters_of, r_hat_of_parameters
from harness.user.each_mode import EachMode
from harness.user.evidence import (
    PilotsEvidence,
    pilots_evidence,
    zero_likelihood,
)
from harness.user.judge import (
    Judgement,
    cannot_temper,
    from_both,
    higher_than,
    judge,
    judge_alone,
    no_relief,
    no_search,
    no_time_for_replicas,
    rough_log_evidence,
    search_failed,
    seen_by_replicas,
    took_over,
)
from harness.user.lasting import what_lasts
from harness.user.mode_findings import (
    lacks_small_modes,
    missed_by_nuts,
    problems_of_modes,
    search_saw,
    unweighed_modes,
)
from harness.user.mode_tables import MODES_SHARE
from harness.user.near import near_target
from harness.user.nuts_again import improved
from harness.user.one_copy import InOneCopy
from harness.user.result import UserFit
from harness.user.rounds import doubt, has_enough_draws
from harness.user.scout import scout_program
from harness.user.scouted import Scouted
from harness.user.steps import ERROR_ENOUGH, IN_MODES_SHARE, LEAST_SHARE, Steps
from harness.user.tempered_form import Tempered
from harness.user.tempered_run import tempered_run

_FORM: Tempered = "collapsed_tempering"
"""The form that it goes on to."""
_FOR_REPLICAS = 0.5
"""Share of the budget without which parallel tempering is not worth trying after a search that has
not got anywhere along the same path."""
_AT_ONCE_SHARE, _AT_ONCE_MOST = 0.2, 0.5
"""Share of the budget for NUTS in each mode before a tempered run, which would take longer; and up
to which it may take what is left: where that is not enough, nor is it for a tempered run."""
_NEAR_SHARE = 0.02
"""Share of the budget for short runs of NUTS in modes that it missed."""
_ROUGH = 0.1
"""Standard error of log Z, in nats, above which parallel tempering follows a tempered run without
doubts whatever time is left."""
_log = logging.getLogger(__name__)


def auto(steps: Steps, explorer: Explorer) -> UserFit:
    """Run plain NUTS, look for further modes, and temper where NUTS misses something.

    Parameters
    ----------
    steps
        Of this call.
    explorer
        What moves replicas if parallel tempering takes over.

    Raises
    ------
    SamplingError, ToolchainError
        If plain NUTS does not finish.  Whatever fails after it is a finding.
    """
    try:
        plain = steps.plain()
    except SamplingError as error:
        why = _improper_even_so(steps)
        if why is None:
            raise
        raise SamplingError(f"{error}\n{why}") from error
    try:
        return _Auto(steps, explorer).result(plain)
    except Exception as error:  # a fault of ours must not cost the draws
        if is_from_signal(error):
            raise
        _log.exception("The search for further modes failed. Please report this:")
        finding = search_failed(f"{type(error).__name__}: {one_line(error).rstrip('.')}")
        return UserFit(steps.finished(plain, [finding]), "nuts")


def _improper_even_so(steps: Steps) -> Finding | None:
    """Return that the posterior is improper, if it is, where plain NUTS has not finished."""
    if steps.program.why_not_tempered is not None:
        return None
    try:
        steps.program.compile_densities(steps.clock)
    except FAILURES:
        return None
    return next(iter(steps.improper()), None)


class _Auto:
    def __init__(self, steps: Steps, explorer: Explorer) -> None:
        self._steps, self._explorer = steps, explorer
        self._against = AgainstNuts(steps)

    def result(self, plain: Fit) -> UserFit:
        reason = self._steps.program.why_not_tempered
        if reason is not None:
            finding = search_failed(reason)
            return UserFit(self._steps.finished(plain, [finding]), "nuts")
        self._steps.program.compile_densities(self._steps.clock)
        with self._steps.clock.step("comparing densities", "check"):
            differ = self._steps.program.disagreement(self._steps.seed)
        if differ is not None:
            return UserFit(self._steps.finished(plain, [no_search(differ)]), "nuts")
        improper = self._steps.improper(plain)
        if improper:  # there is nothing to look for
            return UserFit(self._steps.finished(plain, improper), "nuts")
        better = improved(self._steps, plain)
        plain, draws = better.fit, parameters_of(better.fit)
        self._each_mode = EachMode(self._steps, plain)
        try:
            with self._steps.clock.step("a search for further modes", "pilot"):
                scouted = scout_program(
                    self._steps.program.model,
                    draws=draws,
                    in_one_copy=better.in_one_copy,
                    divergent=bool(plain.sample_stats["diverging"].any()),
                    budget=self._steps.budget,
                    seed=self._steps.seed,
                )
        except FAILURES as error:
            return UserFit(self._steps.finished(plain, [search_failed(str(error))]), "nuts")
        self._steps.modes.search = scouted.search
        self._steps.modes.by_bridge = scouted.by_bridge
        judged = self._judged(draws, scouted, better.in_one_copy)
        if not judged.temper:
            result = self._steps.modes.added_to(
                UserFit(self._with_plain(plain, scouted, judged), "nuts")
            )
            lacking = problems_of_modes(result.modes)
            settled = result.log_evidence is not None and has_enough_draws(result.fit)
            settled = settled and not unweighed_modes(result.modes)
            # A sampler in trouble whose draws have other probabilities than the search gives them;
            # or in so much trouble that they may lack something, whatever the search says.
            least = Severity.WARNING if judged.doubted else Severity.PROBLEM
            settled = settled and not _in_trouble(plain, least)
            if not lacking and scouted.search is not None and settled:
                if not lacks_small_modes(result.modes):
                    return result
                lasting = what_lasts(self._steps, result, scouted, judged)
                return self._each_mode.instead(result, scouted, judged, lasting)
            if not lacking:
                return self._relieved(result, plain, scouted, judged)
            # A mode too small for the comparison of single coordinates, or that only climbs found.
            seen = search_saw(result.modes)
            judged = judged.lacking(missed_by_nuts(result.modes), search_is_sound=seen)
            if not seen:  # nor would a tempered form, whose path is the search's
                return self._relieved(result, plain, scouted, judged)
        found, sure = self._at_once(plain, scouted, judged)
        if sure:
            return found
        if self._steps.modes.others_are_negligible:  # so is what a path from the search leads to
            return self._relieved(found, plain, scouted, judged)
        found, judged = self._after_search(plain, scouted, judged)
        found = self._steps.modes.added_to(found)  # modes that the draws lack are a trouble
        return self._relieved(found, plain, scouted, judged)

    def _at_once(self, plain: Fit, scouted: Scouted, judged: Judgement) -> tuple[UserFit, bool]:
        """Return NUTS's fit in each mode that plain NUTS, the search and climbs know.

        Returns
        -------
        UserFit, bool
            That fit if it leaves no doubts, otherwise plain NUTS's; and which.  If the search has
            not got to the posterior, and climbs did not find where that is, it does leave doubts.
        """
        found = UserFit(self._with_plain(plain, scouted, judged), "nuts")
        if judged.dispute is not None:
            return found, False
        found = self._steps.modes.added_to(found)
        lasting = what_lasts(self._steps, found, scouted, judged)
        budget = self._steps.budget
        if not (_searched(scouted, judged) or self._steps.modes.others_are_negligible):
            self._each_mode.beside(found, scouted, judged, lasting, _AT_ONCE_SHARE * budget)
            return found, False
        left = min(budget - self._steps.spent, _AT_ONCE_MOST * budget)
        most_seconds = max(left, _AT_ONCE_SHARE * budget)
        sure = self._each_mode.sure(found, scouted, judged, lasting, most_seconds)
        return (found, False) if sure is None else (sure, True)

    def _after_search(
        self, plain: Fit, scouted: Scouted, judged: Judgement
    ) -> tuple[UserFit, Judgement]:
        """Run the tempered form along the search's path.

        Returns
        -------
        UserFit, Judgement
            The better fit, and the judgement with what an arbitration adds to it.
        """
        if scouted.path is None:
            reason = scouted.failures.get("search") or self._steps.program.model.no_gaussian_base
            return self._without_path(plain, scouted, judged, str(reason)), judged
        try:
            starts = from_both(scouted.starts, parameters_of(plain))
            fit = tempered_run(self._steps, _FORM, scouted, scouted.path, starts, alone=False)
        except FAILURES as error:
            return self._without_path(plain, scouted, judged, str(error)), judged
        return self._chosen(plain, fit, scouted, judged)

    def _without_path(
        self, plain: Fit, scouted: Scouted, judged: Judgement, reason: str
    ) -> UserFit:
        """Return NUTS's fit, which may be all that there is."""
        if judged.nuts_misses:
            judged = judged.adding(cannot_temper(reason))
        return UserFit(self._with_plain(plain, scouted, judged), "nuts")

    def _relieved(
        self,
        found: UserFit,
        plain: Fit,
        scouted: Scouted,
        judged: Judgement,
    ) -> UserFit:
        """Let parallel tempering take over from a fit with troubles; return the better one."""
        lasting = what_lasts(self._steps, found, scouted, judged)
        troubles = found.troubles(lasting)
        reasons = troubles or self._rough(found)
        if not reasons:
            return found
        if troubles and _searched(scouted, judged):
            most_seconds = IN_MODES_SHARE * self._steps.budget
            sure = self._each_mode.sure(found, scouted, judged, lasting, most_seconds)
            if sure is not None:
                return sure
        if self._is_late(found, reasons, scouted, judged):
            late = no_time_for_replicas(searched=_searched(scouted, judged))
            found = found.adding(late)
            return self._each_mode.instead(found, scouted, judged, lasting).adding(late)
        result = self._with_replicas(found, plain, scouted, judged, lasting, reasons)
        return self._each_mode.instead(result, scouted, judged, lasting) if troubles else result

    def _rough(self, found: UserFit) -> list[Finding]:
        """Return what is to be mended of a tempered fit without troubles: log Z, if it is rough.

        There must be time for it, or the error is so large that it is worth more than there is.
        Where plain NUTS suffices, pilots and a bridge tell log Z.
        """
        known, left = found.log_evidence, self._steps.budget - self._steps.spent
        if found.method != _FORM or known is None:
            return []
        largest = ERROR_ENOUGH if left >= LEAST_SHARE * self._steps.budget else _ROUGH
        return [rough_log_evidence(known)] if known.mcse > largest else []

    def _is_late(
        self, found: UserFit, troubles: Sequence[Finding], scouted: Scouted, judged: Judgement
    ) -> bool:
        """Whether replicas would only exceed the budget, too.

        They exceed it where the draws have problems, where there is no log Z, and where the search
        speaks against NUTS.  After a search that has not got anywhere, they need more time, because
        they take its path.
        """
        warned = all(each.severity < Severity.PROBLEM for each in troubles)
        if found.method != "nuts" or not warned or judged.doubted:
            return False
        left = self._steps.budget - self._steps.spent
        if _searched(scouted, judged):
            return left <= 0 and found.log_evidence is not None
        return scouted.by_bridge is not None and left < _FOR_REPLICAS * self._steps.budget

    def _with_replicas(
        self,
        found: UserFit,
        plain: Fit,
        scouted: Scouted,
        judged: Judgement,
        lasting: Sequence[Finding],
        reasons: Sequence[Finding],
    ) -> UserFit:
        """Run parallel tempering; return its fit or the other one, whichever is better.

        ``reasons`` are what is to be mended of the other fit, the worst first.
        """
        try:
            draws = parameters_of(plain)
            near = self._near(scouted, draws, judged)
            rest = (1 - MODES_SHARE - IN_MODES_SHARE) * self._steps.budget - self._steps.spent
            left = max(rest, LEAST_SHARE * self._steps.budget)
            prior = scouted.prior_and_integral
            otherwise = {name: each.reshape(-1, *each.shape[2:]) for name, each in draws.items()}
            fit = self._steps.replicas(
                self._explorer, left, near=near, otherwise=otherwise, prior=prior
            )
        except FAILURES as error:
            return found.adding(no_relief(str(error), reasons[0].severity))
        compared, stuck = self._against.fit(plain, fit, scouted)
        tempered = found.fit if found.method == _FORM else found.tempered
        missed = self._against.missed(
            compared, scouted, UserFit(fit, METHOD, nuts=plain, tempered=tempered)
        )
        if judged.dispute is not None and missed is None:
            judged = judged.settled(*arbitrate(judged.dispute, parameters_of(fit)))
        told = [*judged.findings, *stuck, *([] if missed is None else [missed])]
        other = UserFit(self._steps.finished(fit, told, scouted), METHOD)
        others = other.troubles([*lasting, *about_program(self._steps.program, fit)])
        sound = all(each.severity < Severity.PROBLEM for each in others)
        seen = None
        if found.method == "nuts":
            genuine = sound or self._against.stays(compared.missed_by_nuts, as_population(fit))
            seen = self._each_mode.seen = seen_by_replicas(compared, sound=sound, genuine=genuine)
        if seen is not None and sound:
            return replace(other, nuts=plain, tempered=tempered).adding(seen)
        worse = doubt(others, other.log_evidence) >= doubt(reasons, found.log_evidence)
        if worse or _disagree_more(fit, found.fit):
            kept = found if seen is None else found.adding(seen)
            why = others[0].sentence if others else "its log Z is no more precise"
            return kept.adding(no_relief(why, reasons[0].severity))
        return replace(other, nuts=plain, tempered=tempered).adding(
            took_over("Parallel tempering", reasons[0])
        )

    def _near(
        self, scouted: Scouted, draws: Mapping[str, FloatArray], judged: Judgement
    ) -> dict[str, FloatArray] | None:
        """Return points near the target for parallel tempering."""
        steps = self._steps
        with steps.clock.step("points in all modes", "near"):
            return near_target(
                steps.program.model,
                scouted,
                draws,
                judged,
                steps.modes.only_climbs_found(),
                most_seconds=_NEAR_SHARE * steps.budget,
                seed=steps.seed,
            )

    def _judged(
        self, draws: Mapping[str, FloatArray], scouted: Scouted, in_one_copy: InOneCopy | None
    ) -> Judgement:
        if scouted.search is None:
            return judge_alone(draws, scouted)
        log_z = scouted.by_search
        compared, stuck = self._against.population(draws, scouted.search, log_z, scouted)
        compared, low = self._against.without_low(compared, scouted, in_one_copy)
        stays = self._against.stays(compared.missed_by_nuts, scouted.search)
        judged = judge(compared, scouted, nuts_stays=stays)
        return judged.adding(*stuck, *low)

    def _with_plain(
        self,
        plain: Fit,
        scouted: Scouted,
        judged: Judgement,
        pilots: PilotsEvidence | None = None,
    ) -> Fit:
        """Return NUTS's fit with the pilots' log Z and all findings."""
        found, findings = pilots or self._pilots_evidence(scouted, judged)
        if found is not None:
            plain.tree.attrs |= {"log_evidence": found.value, "log_evidence_mcse": found.mcse}
        about = [*judged.findings, *judged.about_nuts]
        return self._steps.finished(plain, [*about, *findings, *zero_likelihood(scouted)], scouted)

    def _chosen(
        self, plain: Fit, fit: Fit, scouted: Scouted, judged: Judgement
    ) -> tuple[UserFit, Judgement]:
        """Compare NUTS once more, with the tempered draws, and return the better of the two."""
        result = UserFit(fit, _FORM, nuts=plain)
        compared, stuck = self._against.fit(plain, fit, scouted)
        missed = self._against.missed(compared, scouted, result)
        keep = missed is not None and not judged.nuts_misses
        if judged.dispute is not None and missed is None:
            side, settled = arbitrate(judged.dispute, parameters_of(fit))
            judged = judged.settled(side, settled)
            keep = side in ("nuts", "open")
        judged = judged.adding(*stuck)
        said = judged if missed is None else judged.adding(missed)
        pilots = self._pilots_evidence(scouted, judged)
        if keep:
            kept = self._with_plain(plain, scouted, said, pilots)
            return UserFit(kept, "nuts", tempered=fit), judged
        found, findings = pilots
        if missed is None:
            findings = [*findings, *higher_than(fit, scouted, found)]
        told = [*said.findings, *findings]
        return UserFit(self._steps.finished(fit, told, scouted), _FORM, nuts=plain), judged

    def _pilots_evidence(self, scouted: Scouted, judged: Judgement) -> PilotsEvidence:
        return pilots_evidence(
            self._steps.program.model,
            scouted,
            search_is_sound=judged.search_is_sound,
            nuts_is_sound=not judged.nuts_misses,
        )


def _searched(scouted: Scouted, judged: Judgement) -> bool:
    """Whether the search has got to the posterior, and may have found modes."""
    return scouted.search_has_weight and judged.search_is_sound


def _disagree_more(fit: Fit, other: Fit) -> bool:
    """Whether chains of both fits disagree, and those of the first one more.

    However many doubts there are about the other: replicas that have not left their starting points
    know less than chains of NUTS do.
    """
    one, beside = map(r_hat_of_parameters, (fit, other))
    return one > beside > R_HAT_PROBLEM


def _in_trouble(plain: Fit, least: Severity) -> bool:
    """Whether divergent transitions, energies or depths of trees speak against a run of NUTS."""
    return any(each.severity >= least for each in sampler(plain))
