"""Run a tempered form along a path that pilots have found, and go on in rounds while that helps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.arrays import FloatArray
from harness.diagnosis import remember
from harness.engine.nuts import NutsSettings
from harness.engine.patience import in_time
from harness.fit import Fit
from harness.seeds import derived_seed
from harness.user.generated import ORIGINAL
from harness.user.judge import shortened
from harness.user.rounds import in_rounds
from harness.user.scouted import FoundPath, Scouted
from harness.user.steps import LEAST_SHARE, Steps
from harness.user.tempered_form import Tempered, TemperedForm

_FIRST_SHARE = 0.5
"""Share of what the pilots leave of the budget, for the first of the rounds of a tempered run, if
parallel tempering may take over."""
_ROUNDS_SHARE, _ROUNDS_ALONE = 0.25, 0.75
"""Share of it for the rounds in which the run goes on: if parallel tempering may take over, and if
nothing follows but the table of modes."""


def tempered_run(
    steps: Steps,
    method: Tempered,
    scouted: Scouted,
    path: FoundPath,
    starts: Mapping[str, FloatArray],
    *,
    alone: bool,
) -> Fit:
    """Run a tempered form, then the original's transformed parameters and quantities.

    It goes on in rounds with the time that the pilots have left, unless it has pseudo-samples.

    Parameters
    ----------
    steps
        Of this call.
    method
        The form.
    scouted
        What the pilots found.
    path
        Its base, ladder and log weights.
    starts
        Points at which its chains may start, by parameter.
    alone
        Whether no other method can take over.

    Raises
    ------
    SamplingError, ToolchainError
        If the run does not finish, or if stanli and CmdStan differ in its density.
    """
    program, form = steps.program, TemperedForm(steps.program, method, path, steps.num)
    nuts = steps.nuts_with_short_steps  # which suit the target's end of a path, too
    originals = [ORIGINAL] if program.generates else []
    settings: dict[str, Any] = {
        "method": method,
        "num": steps.num,
        "budget": steps.budget,
        "alone": alone,
    }
    left = max(steps.budget - scouted.seconds, LEAST_SHARE * steps.budget)
    most_seconds = (_ROUNDS_ALONE if alone else _ROUNDS_SHARE) * left

    def run() -> Fit:
        density = {form.variant: form.data_to_compile}
        program.compile([form.variant, *originals], steps.clock, density)
        with steps.clock.step("comparing densities", "check"):
            steps.refuse(form.disagreement(steps.seed))
        with steps.clock.step("the tempered run", "sampling"):
            planned = _FIRST_SHARE * left
            chosen = nuts if alone else form.affordable(nuts, planned)
            limited = chosen if alone else in_time(chosen, program.model.program("target"), planned)
            fit = form.run(starts, limited, steps.seed, steps.clock.share)
        deepest = int(fit.sample_stats["tree_depth"].max())
        remember(fit, shortened(chosen, nuts, deepest))
        return fit

    def run_in_rounds() -> Fit:
        before = steps.clock.seconds.get("sampling", 0.0)
        # What goes on from the states of a run needs the path of that run.
        made_by = program.identity(nuts, steps.seed, form.variant, data=form.data, **settings)
        first = steps.once("tempered", "sampling", made_by, run)
        took = steps.clock.seconds["sampling"] - before
        program.compile([form.variant], steps.clock)
        with steps.clock.timed("sampling"):
            return _in_rounds(steps, form, first, nuts, took=took, most_seconds=most_seconds)

    # The path is left out: draws along another one, which pilots in a hurry may find, are draws
    # of the same program.
    rounds = method != "pseudo_extended"
    made_by = program.identity(nuts, steps.seed, form.variant, **settings)
    fit = steps.once("tempered", "sampling", made_by, run_in_rounds if rounds else run)
    program.compile(originals, steps.clock)
    return steps.completed(fit, copies=rounds and form.has_copies)


def _in_rounds(
    steps: Steps,
    form: TemperedForm,
    first: Fit,
    nuts: NutsSettings,
    *,
    took: float,
    most_seconds: float,
) -> Fit:
    """Go on with a tempered run in rounds, if more draws may help.

    Parameters
    ----------
    steps, form
        Of the run.
    first
        Its first round.
    nuts
        Settings of NUTS along the path.
    took, most_seconds
        Seconds of the first round, and of those that follow at most.
    """

    def again(fit: Fit, draws: int, number: int) -> Fit:
        steps.clock.say(f"the tempered run, round {number}: {draws:,} draws more a chain")
        more = replace(nuts.for_kept_metric, draws=draws)
        more = in_time(more, steps.program.model.program("target"), most_seconds)
        other = derived_seed(steps.seed, 12, number)
        return form.continued(fit, more, other, steps.clock.share)

    def spread(fit: Fit) -> tuple[Fit, float]:
        made = steps.spread_over_copies(fit) if form.has_copies else None
        return (fit, 1.0) if made is None else (made.fit, made.in_one_copy.r_hat)

    limits = {"first_seconds": took, "most_seconds": most_seconds}
    made = in_rounds(first, again, spread, **limits, seed=steps.seed)
    remember(made.fit, made.findings)
    return made.fit
