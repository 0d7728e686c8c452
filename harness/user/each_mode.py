"""NUTS in each known mode in place of a fit with doubts: when it is tried, and when it is taken.

Where a density is slow, neither a tempered run nor replicas get far in the budget, but NUTS in a
mode needs few gradients.  So it runs before them there, also if the search cannot tell that all
modes are known, and its draws are kept for the case that nothing better follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from harness.diagnosis import Finding, Severity
from harness.diagnosis.replicas import replicas
from harness.engine.batched import BatchedDensity
from harness.engine.short_nuts import seconds_a_gradient
from harness.errors import FAILURES
from harness.fit import Fit
from harness.user.about_program import about_program
from harness.user.compare import parameters_of, unconstrained
from harness.user.evidence import about_the_prior
from harness.user.in_modes_run import in_modes_run
from harness.user.judge import Judgement, may_lack_modes, modes_alone_in_vain, took_over
from harness.user.lasting import what_lasts
from harness.user.result import UserFit
from harness.user.rounds import severities
from harness.user.scouted import Scouted
from harness.user.steps import IN_MODES_SHARE, Steps

_MANY_GRADIENTS = 300_000
"""Gradients that a tempered run or replicas need, roughly, where modes are far apart."""


class EachMode:
    """Runs of NUTS in each known mode of a call.

    Parameters
    ----------
    steps
        Of this call.
    plain
        The draws of plain NUTS.

    Attributes
    ----------
    seen
        What parallel tempering has shown that NUTS missed.
    """

    def __init__(self, steps: Steps, plain: Fit) -> None:
        self._steps, self._plain = steps, plain
        self.seen: Finding | None = None
        self._kept: UserFit | None = None

    def sure(
        self,
        found: UserFit,
        scouted: Scouted,
        judged: Judgement,
        lasting: Sequence[Finding],
        most_seconds: float,
    ) -> UserFit | None:
        """Return NUTS's fit in each known mode if it leaves no doubts; None if it leaves any.

        Replicas would take much longer, and find no modes that a search misses which has got to the
        posterior.  If a tempered run makes few round trips, that is a doubt which stays.
        """
        other, _ = self._tried(found, scouted, judged, lasting, most_seconds)
        if other is None or other.troubles(what_lasts(self._steps, other, scouted, judged)):
            return None
        return other

    def beside(
        self,
        found: UserFit,
        scouted: Scouted,
        judged: Judgement,
        lasting: Sequence[Finding],
        most_seconds: float,
    ) -> None:
        """Run NUTS in each mode of a slow density, to have draws if nothing better follows."""
        if self._is_slow:
            self._tried(found, scouted, judged, lasting, most_seconds)

    @cached_property
    def _is_slow(self) -> bool:
        """Whether the gradients of a tempered run would take longer than the whole budget."""
        model = self._steps.program.model
        try:
            density = BatchedDensity(model.program("target"), model.data)
            points = unconstrained(parameters_of(self._plain), 2, density)
            each = seconds_a_gradient(density, points.reshape(-1, points.shape[2]))
        except FAILURES:
            return False
        return each * _MANY_GRADIENTS > self._steps.budget

    def instead(
        self,
        found: UserFit,
        scouted: Scouted,
        judged: Judgement,
        lasting: Sequence[Finding],
    ) -> UserFit:
        """Let NUTS in each known mode take over from a fit with troubles, if that leaves fewer."""
        budget = self._steps.budget
        found = self._steps.modes.added_to(found)
        left = max(budget - self._steps.spent, IN_MODES_SHARE * budget)
        other, why_not = self._tried(found, scouted, judged, lasting, left)
        if other is not None:
            return other
        kept = self._kept_instead_of(found, lasting)
        if kept is not None:
            return kept
        return found.adding(modes_alone_in_vain(why_not)) if why_not else found

    def _kept_instead_of(self, found: UserFit, lasting: Sequence[Finding]) -> UserFit | None:
        """Return earlier draws in each mode in place of a fit with problems, if they are better.

        That fit may have found a mode that these lack.
        """
        kept, troubles = self._kept, found.troubles(lasting)
        if kept is None or not any(each.severity >= Severity.PROBLEM for each in troubles):
            return None
        if severities(kept.troubles(lasting)) >= severities(troubles):
            return None
        last = kept.tempered if found.method == "nuts" else found.fit
        return replace(kept, tempered=last).adding(may_lack_modes(troubles[0]))

    def _tried(
        self,
        found: UserFit,
        scouted: Scouted,
        judged: Judgement,
        lasting: Sequence[Finding],
        most_seconds: float,
    ) -> tuple[UserFit | None, str]:
        """Run NUTS in each known mode of a fit with troubles and a table of modes.

        Returns
        -------
        UserFit or None, str
            The fit, if that leaves fewer troubles, or else why it does not; nothing if there is
            nothing to do.
        """
        steps = self._steps
        seen = [] if self.seen is None else [replace(self.seen, severity=Severity.WARNING)]
        # It is a trouble of NUTS's own fit only.
        troubles = found.troubles(lasting if found.method == "nuts" else [*lasting, *seen])
        if not troubles and found.method == "nuts":  # masses weigh its draws in separate modes
            troubles = [each for each in judged.findings if each.severity > Severity.FINE]
        modes = steps.modes.found
        if not troubles or modes is None or len(modes.table.modes) < 2:
            return None, ""
        # What replicas say about modes that no method has seen goes for these draws, too.
        doubts = [each for each in replicas(found.fit) if each.severity > Severity.FINE]
        about = about_the_prior(steps.program.model, scouted)
        took = took_over("NUTS in each mode", troubles[0])
        told = [*judged.accepted, *seen, *about, *doubts, took]
        try:
            other = in_modes_run(
                *(steps, found, modes, told, scouted), plain=self._plain, most_seconds=most_seconds
            )
        except FAILURES as error:
            return None, str(error)
        others = other.troubles([*lasting, *seen, *about_program(steps.program, other.fit)])
        if severities(others) < severities(troubles):
            self._kept = other
            return other, ""
        return None, others[0].sentence
