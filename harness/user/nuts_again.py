"""Run plain NUTS once more, as one would by hand: elsewhere, with smaller steps, or for longer.

Divergent transitions show that draws lack a sharp part of the posterior, such as the neck of a
funnel.  Smaller steps often reach it, and then bridge sampling can be trusted, too.  Chains that do
not quite agree, or have few effective draws, need more draws: that costs less than tempering.

Chains in different copies of a posterior agree once their draws are spread over all copies.  So
draws are spread first, and then it is asked what they lack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.diagnosis import (
    DIVERGENT_PROBLEM,
    R_HAT_PROBLEM,
    R_HAT_WARNING,
    diagnose,
    remember,
)
from harness.engine.nuts import NutsSettings
from harness.errors import FAILURES, one_line
from harness.fit import Fit
from harness.user.best_chain import from_best_chain
from harness.user.nuts_draws import NutsDraws, saying, seconds_of_nuts
from harness.user.rounds import doubts_about_draws, severities
from harness.user.steps import LEAST_SHARE, Steps

TARGET_ACCEPT = 0.99
"""Acceptance rate that NUTS aims at where transitions diverge."""
_TAKES = 4.0
"""Times that a run with such steps may take as long as the first one."""
_MOST_IF_USELESS = 0.5
"""The largest share of the budget for another run where so many transitions diverge that the draws
are of no use as they are.  Otherwise it is what parallel tempering would have."""
_TIMES = (8, 4, 2)
"""Times as long as the first one that a longer run is: the first of them for which there is the
time that parallel tempering would have, which takes over if there are too few draws."""
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
    outcome: Callable[[NutsDraws], str]
    doubts: Callable[[Fit], tuple[float, ...]]


def improved(steps: Steps, plain: Fit) -> NutsDraws:
    """Spread the draws of plain NUTS over all copies, and run it again where that can help.

    Parameters
    ----------
    steps
        Of this call.
    plain
        The first run.
    """
    draws = NutsDraws(*steps.in_all_copies(plain), seconds=seconds_of_nuts(steps))
    draws = from_best_chain(steps, draws)
    smaller = with_smaller_steps(steps, draws)
    tried = smaller.said != draws.said
    draws = for_longer(steps, smaller)
    if not tried:  # what diverges once in thousands of transitions shows in a longer run only
        draws = with_smaller_steps(steps, draws)
    remember(draws.fit, draws.said)
    return draws


def with_smaller_steps(steps: Steps, plain: NutsDraws) -> NutsDraws:
    """Return plain NUTS's draws, or those of another run with smaller steps if they are better.

    Nothing is done if no transition diverges, steps are small already, the chains disagree,
    somebody has chosen the acceptance rate, or there is no time.

    Parameters
    ----------
    steps
        Of this call.
    plain
        The first run.
    """
    count, every = _divergent(plain.fit), _draws(plain.fit)
    share = _MOST_IF_USELESS if count > DIVERGENT_PROBLEM * every else LEAST_SHARE
    if not count or steps.chosen_steps or _TAKES * plain.seconds > share * steps.budget:
        return plain
    nuts = _settings(steps, plain)
    if nuts.target_accept >= TARGET_ACCEPT or not plain.r_hat <= R_HAT_PROBLEM:
        return plain  # they lack more than smaller steps
    return _better(
        steps,
        plain,
        _Attempt(
            replace(nuts, target_accept=TARGET_ACCEPT),
            f"with smaller steps (a target acceptance rate of {TARGET_ACCEPT})",
            f"{count:,} of {every:,} transitions diverged",
            lambda made: f"{_divergent(made.fit):,} of {_draws(made.fit):,} diverged",
            lambda fit: (*severities(diagnose(fit)), _divergent(fit)),
        ),
    )


def for_longer(steps: Steps, plain: NutsDraws) -> NutsDraws:
    """Return plain NUTS's draws, or those of a longer run if they are better.

    Nothing is done if there are enough draws, the chains disagree, or there is no time.

    Parameters
    ----------
    steps
        Of this call.
    plain
        The run so far.
    """
    doubts = _doubts(plain)
    if not doubts or not plain.r_hat <= R_HAT_PROBLEM:
        return plain
    numbers = sum(int(each.size) for each in plain.fit.posterior.data_vars.values())
    possible = (
        times
        for times in _TIMES
        if times * plain.seconds <= LEAST_SHARE * steps.budget and times * numbers <= _MOST_NUMBERS
    )
    times = next(possible, None)
    if times is None:
        return plain
    nuts = _settings(steps, plain)
    nuts = replace(nuts, warmup=times * nuts.warmup, draws=times * nuts.draws)
    return _better(
        steps,
        plain,
        _Attempt(
            nuts,
            f"for {times} times as long",
            f"this was said of it: {doubts[0]}",
            _about_draws,
            _lacking_draws,
        ),
    )


def _better(steps: Steps, plain: NutsDraws, attempt: _Attempt) -> NutsDraws:
    """Make another run, and return the better of the two, which says so.

    Where the other one was still counts: it may have been in a mode that this one missed.
    """
    ran = f"Plain NUTS ran once more {attempt.how}, because {attempt.because}"
    before = seconds_of_nuts(steps)
    try:
        made = steps.plain_again(attempt.nuts, attempt.how)
    except FAILURES as error:
        return saying(plain, plain, f"{ran}. That did not help: {one_line(error).rstrip('.')}.")
    again = NutsDraws(*steps.in_all_copies(made), seconds=seconds_of_nuts(steps) - before)
    outcome = attempt.outcome(again)
    if attempt.doubts(again.fit) >= attempt.doubts(plain.fit):
        plain.fit.count_as_warmup(made)
        steps.modes.other_nuts.append(made)
        return saying(plain, plain, f"{ran}. That did not help: {outcome}.")
    again.fit.count_as_warmup(plain.fit)
    steps.modes.other_nuts.append(plain.fit)
    return saying(again, plain, f"{ran}. That helped: {outcome}.")


def _settings(steps: Steps, plain: NutsDraws) -> NutsSettings:
    """Return the settings of the run that made some draws."""
    own = plain.fit.settings["nuts"]
    return replace(
        steps.nuts,
        warmup=own["warmup"],
        draws=own["draws"],
        target_accept=own["target_accept"],
    )


def _lacking_draws(fit: Fit) -> tuple[int, ...]:
    """Return problems of draws, then doubts that more of them mend, then other warnings.

    A longer run shows more of what happens once in thousands of transitions, at the same rate.
    """
    problems, *warnings = severities(diagnose(fit))
    return problems, len(doubts_about_draws(fit)), *warnings


def _divergent(fit: Fit) -> int:
    return int(fit.sample_stats["diverging"].sum())


def _draws(fit: Fit) -> int:
    return int(fit.sample_stats["diverging"].size)


def _doubts(draws: NutsDraws) -> list[str]:
    """Say what more draws may mend; chains may agree in all copies and not quite in one."""
    said = [each.sentence.rstrip(".") for each in doubts_about_draws(draws.fit)]
    if draws.in_one_copy is not None and draws.r_hat > R_HAT_WARNING:
        said.append(f"R-hat in one copy of the posterior is {draws.r_hat:.3f}")
    return said


def _about_draws(draws: NutsDraws) -> str:
    return next(iter(_doubts(draws)), "the chains agree and have enough draws")
