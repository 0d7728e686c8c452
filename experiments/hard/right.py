"""When an answer is right, and what becomes of it together with what the diagnosis said.

An estimate is right if its error is within four of its standard errors, or below a tolerance that
no user would mind.  The first alone would punish long runs: a bias far below what matters is many
standard errors.  The second alone would punish honest short runs.

Four standard errors, because a run is judged by some ten numbers, and a benchmark has thousands of
runs: two would call one sound run in three wrong.

A standard error beyond the cap of its kind tells the user that there is no estimate.  Four of them
would make every answer right, so the tolerance alone decides then; and if the answer is wrong, the
error itself has said so.  If there is such an answer and a PROBLEM, too, the run counts as wrong,
even if it is right by luck.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.plan.spec import Mark

Kind = Literal["log_z", "probability", "mean"]

ERRORS = 4.0
"""Standard errors that an estimate may be off by."""
LOG_Z_TOLERANCE, LOG_Z_CAP = 0.1, 0.5
"""In nats: a Bayes factor that is off by a tenth changes no conclusion; an error of a half and more
leaves a factor of 50 between the ends of a 95% interval of a Bayes factor of two such models."""
PROBABILITY_TOLERANCE = 0.05
MEAN_TOLERANCE = 0.1
"""In posterior standard deviations."""
_NEVER = 0.01
"""Share of its probability below which an event all but never happens in a run."""
_CAPS = 2.5
"""Cap of probabilities and means, over their tolerance: with four errors of .125 every estimate of
a probability of a half is right."""

FINE, FALSE_ALARM, SAID, SILENT, NO_ANSWER = (
    "right and fine",
    "false alarm",
    "wrong and said so",
    "wrong and fine",
    "no answer",
)
OUTCOMES = (FINE, FALSE_ALARM, SAID, SILENT, NO_ANSWER)
"""In this order measurements number them, from 0.

``no answer`` is a run that ended with a clear error.
"""

LEGEND: tuple[Mark, ...] = (
    Mark("✓", FINE, "good", "", 0),
    Mark("?", FALSE_ALARM, "doubt", "", 0),
    Mark("!", SAID, "told", "", 0),
    Mark("✗", SILENT, "bad", "", 0),
    Mark("–", NO_ANSWER, "none", "", 0),
)


@dataclass(frozen=True)
class Answer:
    """One number that a run reports, and how far it is from the truth.

    Attributes
    ----------
    kind
        What it is; means are in posterior standard deviations.
    error
        Estimate minus truth.
    mcse
        Its standard error, with that of the truth.
    tolerance
        Size of an error that does not matter.
    """

    kind: Kind
    error: float
    mcse: float
    tolerance: float

    @property
    def z(self) -> float:
        """Error in standard errors; infinite for a wrong answer that claims to be exact."""
        if self.mcse > 0:
            return self.error / self.mcse
        return 0.0 if self.error == 0 else math.copysign(math.inf, self.error)

    @property
    def vague(self) -> bool:
        """Whether its standard error says that it is no answer."""
        cap = LOG_Z_CAP if self.kind == "log_z" else _CAPS * self.tolerance
        return self.mcse >= cap

    @property
    def right(self) -> bool:
        """Whether it is right, as the module says."""
        allowed = self.tolerance if self.vague else max(self.tolerance, ERRORS * self.mcse)
        return abs(self.error) <= allowed


def log_z_answer(error: float, mcse: float, of_truth: float = 0.0) -> Answer:
    """Return an estimate of log Z as an answer; all in nats."""
    return Answer("log_z", error, math.hypot(_known(mcse), of_truth), LOG_Z_TOLERANCE)


def probability_answer(
    estimate: float, mcse: float, truth: float, of_truth: float, effective: float
) -> Answer:
    """Return an estimate of an event's probability as an answer.

    An event may be rare, and a mode small: the tolerance is at most half of the probability, or a
    lost mode of 1/40 would not count.  If the event always happens in a run, or never, or all but
    so, the run's own standard error is next to 0; then at least that of so many independent draws
    counts.

    Parameters
    ----------
    estimate, mcse
        What the run reports.
    truth, of_truth
        The probability and what it may be off by.
    effective
        Effective draws of the parameter that has the fewest.
    """
    smaller = min(truth, 1 - truth)
    if min(estimate, 1 - estimate) < _NEVER * smaller:
        mcse = max(_known(mcse), math.sqrt(truth * (1 - truth) / max(effective, 1.0)))
    tolerance = min(PROBABILITY_TOLERANCE, smaller / 2)
    return Answer("probability", estimate - truth, math.hypot(_known(mcse), of_truth), tolerance)


def mean_answer(error: float, mcse: float, of_truth: float = 0.0) -> Answer:
    """Return an estimate of an expectation as an answer; all in posterior standard deviations."""
    return Answer("mean", error, math.hypot(_known(mcse), of_truth), MEAN_TOLERANCE)


def outcome(answers: Sequence[Answer], *, problem: bool) -> str:
    """Return what becomes of a run's answers together.

    Parameters
    ----------
    answers
        Everything that it reports and that is known.
    problem
        Whether its diagnosis has a finding of the severity PROBLEM.
    """
    wrong = [each for each in answers if not each.right]
    if not wrong and not problem:
        return FINE
    if not wrong:
        # Chains that are stuck in several modes may be right by luck; the alarm is no false one.
        return SAID if any(each.vague for each in answers) else FALSE_ALARM
    # One wrong answer that looks sound is enough to mislead.
    return SAID if problem or all(each.vague for each in wrong) else SILENT


def _known(mcse: float) -> float:
    """Return a standard error, 0 where there is none because nothing varies."""
    return mcse if math.isfinite(mcse) else 0.0
