"""Run plain NUTS once more with smaller steps where its transitions diverge, as one would by hand.

Divergent transitions show that draws lack a sharp part of the posterior, such as the neck of a
funnel.  Smaller steps often reach it, and then bridge sampling can be trusted, too.
"""

from __future__ import annotations

from dataclasses import replace

from harness.diagnosis import R_HAT_PROBLEM, Finding, Severity, diagnose, remember
from harness.errors import FAILURES, one_line
from harness.fit import Fit
from harness.user.compare import largest_r_hat, parameters_of
from harness.user.rounds import severities
from harness.user.steps import Steps

TARGET_ACCEPT = 0.99
"""Acceptance rate that NUTS aims at then."""
_TAKES, _MOST_SHARE = 4.0, 0.25
"""Times that a run with such steps may take as long as the first one, and the largest share of the
budget for which it is made."""


def with_smaller_steps(steps: Steps, plain: Fit) -> Fit:
    """Return plain NUTS's fit, or that of another run with smaller steps if it is better.

    Nothing is done if no transition diverges, the chains disagree, somebody has chosen the
    acceptance rate, or there is no time.

    Parameters
    ----------
    steps
        Of this call.
    plain
        The first run.
    """
    count = _divergent(plain)
    took = steps.clock.seconds.get("nuts", 0.0)
    if not count or steps.chosen_steps or _TAKES * took > _MOST_SHARE * steps.budget:
        return plain
    r_hat, _ = largest_r_hat(parameters_of(plain))
    if not r_hat <= R_HAT_PROBLEM:
        return plain  # it lacks more than smaller steps
    first = f"{count:,} of {_draws(plain):,} transitions diverged"
    try:
        again = steps.plain_again(replace(steps.nuts, target_accept=TARGET_ACCEPT))
    except FAILURES as error:
        remember(plain, [_in_vain(first, one_line(error).rstrip("."))])
        return plain
    then = _divergent(again)
    told = f"{then:,} of {_draws(again):,} did"
    if (severities(diagnose(again)), then) >= (severities(diagnose(plain)), count):
        remember(plain, [_in_vain(first, told)])
        return plain
    again.count_as_warmup(plain)
    remember(
        again,
        [
            Finding(
                Severity.FINE,
                f"Plain NUTS ran once more with smaller steps, because {first}: with a target "
                f"acceptance rate of {TARGET_ACCEPT} {told}.",
            )
        ],
    )
    return again


def _divergent(fit: Fit) -> int:
    return int(fit.sample_stats["diverging"].sum())


def _draws(fit: Fit) -> int:
    return int(fit.sample_stats["diverging"].size)


def _in_vain(first: str, reason: str) -> Finding:
    return Finding(
        Severity.FINE,
        f"Plain NUTS ran once more with smaller steps, because {first}, which did not help: "
        f"{reason}.",
    )
