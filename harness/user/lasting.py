"""What is said of a fit by whatever method it was made, so that another one need not be tried."""

from __future__ import annotations

from harness.diagnosis import Finding
from harness.user.about_program import about_program
from harness.user.evidence import about_drifting_prior, about_improper_prior
from harness.user.judge import Judgement
from harness.user.result import UserFit
from harness.user.scouted import Scouted
from harness.user.steps import Steps
from harness.user.undefined import about_overflow


def what_lasts(steps: Steps, found: UserFit, scouted: Scouted, judged: Judgement) -> list[Finding]:
    """Return what no other method can mend.

    The draws of any method have the program's prior, and are of this program.
    """
    model = steps.program.model
    lasting = [*judged.accepted, *about_improper_prior(model)]
    lasting += about_overflow(scouted.infinite)
    if scouted.drifts:
        lasting += about_drifting_prior(model)
    return lasting + about_program(steps.program, found.fit)
