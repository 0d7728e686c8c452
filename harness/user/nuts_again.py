"""Run plain NUTS once more, as one would by hand: with smaller steps, or for longer.

Divergent transitions show that draws lack a sharp part of the posterior, such as the neck of a
funnel.  Smaller steps often reach it, and then bridge sampling can be trusted, too.  Chains that do
not quite agree, or have few effective draws, need more draws: that costs less than tempering.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.diagnosis import R_HAT_PROBLEM, Finding, Severity, diagnose, remember, remembered
from harness.engine.nuts import NutsSettings
from harness.errors import FAILURES, one_line
from harness.fit import Fit
from harness.user.compare import largest_r_hat, parameters_of
from harness.user.rounds import doubts_about_draws, severities
from harness.user.steps import Steps

TARGET_ACCEPT = 0.99
"""Acceptance rate that NUTS aims at where transitions diverge."""
_TAKES, _MOST_SHARE = 4.0, 0.25
"""Times that a run with such steps may take as long as the first one, and the largest share of the
budget for which another run is made."""
_TIMES = (8, 4, 2)
"""Times as long as the first one that a longer run is: the first of them that there is time for."""
_MOST_NUMBERS = 20_000_000
"""Numbers in the draws of a longer run, in double precision."""


@dataclass(frozen=True)
class _Attempt:
    """Another run of plain NUTS, and what is said of it.

    Attributes
    ----------
    nuts
        Its settings.
    how
        How it runs.
    because
        What the first run lacked.
    outcome
        What a run came to, in words.
    doubts
        How much a run lacks; less is better.
    """

    nuts: NutsSettings
    how: str
    because: str
    outcome: Callable[[Fit], str]
    doubts: Callable[[Fit], tuple[float, ...]]


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
    if not _r_hat(plain) <= R_HAT_PROBLEM:
        return plain  # it lacks more than smaller steps
    return _better(
        steps,
        plain,
        _Attempt(
            replace(steps.nuts, target_accept=TARGET_ACCEPT),
            f"with smaller steps (a target acceptance rate of {TARGET_ACCEPT})",
            f"{count:,} of {_draws(plain):,} transitions diverged",
            lambda fit: f"{_divergent(fit):,} of {_draws(fit):,} diverged",
            lambda fit: (*severities(diagnose(fit)), _divergent(fit)),
        ),
    )


def for_longer(steps: Steps, plain: Fit) -> Fit:
    """Return plain NUTS's fit, or that of a longer run if it is better.

    Nothing is done if there are enough draws, the chains disagree, or there is no time.

    Parameters
    ----------
    steps
        Of this call.
    plain
        The run so far.
    """
    doubts = doubts_about_draws(plain)
    if not doubts or not _r_hat(plain) <= R_HAT_PROBLEM:
        return plain
    took = steps.clock.seconds.get("nuts", 0.0)
    numbers = sum(int(each.size) for each in plain.posterior.data_vars.values())
    possible = (
        times
        for times in _TIMES
        if times * took <= _MOST_SHARE * steps.budget and times * numbers <= _MOST_NUMBERS
    )
    times = next(possible, None)
    if times is None:
        return plain
    nuts = replace(
        steps.nuts,
        warmup=times * steps.nuts.warmup,
        draws=times * steps.nuts.draws,
        target_accept=plain.settings["nuts"]["target_accept"],
    )
    return _better(
        steps,
        plain,
        _Attempt(
            nuts,
            f"for {times} times as long",
            f"this was said of it: {doubts[0].sentence.rstrip('.')}",
            _about_draws,
            lambda fit: severities(diagnose(fit)),
        ),
    )


def _better(steps: Steps, plain: Fit, attempt: _Attempt) -> Fit:
    """Make another run, and return the better of the two, which says so."""
    ran = f"Plain NUTS ran once more {attempt.how}, because {attempt.because}"
    try:
        again = steps.plain_again(attempt.nuts, attempt.how)
    except FAILURES as error:
        remember(plain, [_fine(f"{ran}. That did not help: {one_line(error).rstrip('.')}.")])
        return plain
    outcome = attempt.outcome(again)
    if attempt.doubts(again) >= attempt.doubts(plain):
        plain.count_as_warmup(again)
        remember(plain, [_fine(f"{ran}. That did not help: {outcome}.")])
        return plain
    again.count_as_warmup(plain)
    remember(again, [*remembered(plain), _fine(f"{ran}. That helped: {outcome}.")])
    return again


def _fine(sentence: str) -> Finding:
    return Finding(Severity.FINE, sentence)


def _divergent(fit: Fit) -> int:
    return int(fit.sample_stats["diverging"].sum())


def _draws(fit: Fit) -> int:
    return int(fit.sample_stats["diverging"].size)


def _about_draws(fit: Fit) -> str:
    doubts = doubts_about_draws(fit)
    return doubts[0].sentence.rstrip(".") if doubts else "the chains agree and have enough draws"


def _r_hat(fit: Fit) -> float:
    """R-hat of the parameter where it is largest."""
    return largest_r_hat(parameters_of(fit))[0]
