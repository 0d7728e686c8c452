"""The steps that methods of :func:`harness.user.sample` share, each timed and announced."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from harness.arrays import FloatArray
from harness.diagnosis import R_HAT_WARNING, Finding, remember
from harness.engine.nuts import NutsSettings
from harness.engine.signals import is_from_signal
from harness.errors import FAILURES, ToolchainError
from harness.fit import Fit
from harness.samplers.rung_replicas import Explorer
from harness.samplers.tempering_run import Enough, TemperingSettings
from harness.user.clock import Clock
from harness.user.compare import Population
from harness.user.evidence import open_questions, tempered_whole
from harness.user.generated import ORIGINAL, absent, not_numbers
from harness.user.judge import shortened
from harness.user.modes import found_by_climbs, mode_findings, mode_table, no_modes
from harness.user.other_modes import OtherModes, no_other_mode
from harness.user.parallel import References, parallel_tempering
from harness.user.program import Tempered, UserProgram
from harness.user.result import UserFit
from harness.user.rounds import in_rounds
from harness.user.scout import FoundPath, Scouted
from harness.user.unfinished import Unfinished

MODES_SHARE = 0.1
"""Share of the budget after which the table of modes is given up."""
LEAST_SHARE = 0.4
"""Share of the budget that is left after the pilots, and for parallel tempering if it takes over.
"""
_OUTSIDE = ("temper", "nuts", "compile")
"""Steps that the budget does not count: they take what they take."""
_EFFECTIVE_ENOUGH, _ERROR_ENOUGH = 200, 0.05
"""Effective draws a chain and standard error of log Z, in nats, with which parallel tempering ends.

With four chains the probability of a mode then has a standard error of 0.018 or less.
"""
_ROUNDS_SHARE = 0.25
"""Share of what the pilots leave of the budget, for rounds in which a tempered run goes on."""
_ROUND_WARMUP = 150
"""Most warm-up iterations of such a round, if they adapt the step size only."""
_log = logging.getLogger(__name__)


class Steps:
    """One call of :func:`harness.user.sample`: its settings, and the steps that it may take.

    Attributes
    ----------
    program, clock, nuts, seed, num, budget
        The program with its data, where time goes, settings of NUTS, and the call's own seed,
        number of pseudo-samples and budget.
    search
        What a search for further modes has found, as far as one has been made; for the table of
        modes.
    elsewhere
        Modes where climbs from other starting points ended and no method had draws, once the first
        table of modes has been made.
    unfinished
        Where draws of plain NUTS are kept until the call has finished.
    """

    def __init__(
        self,
        program: UserProgram,
        clock: Clock,
        nuts: NutsSettings,
        seed: int,
        num_pseudo_samples: int,
        budget: float,
        unfinished: Unfinished,
    ) -> None:
        self.program, self.clock, self.nuts, self.seed = program, clock, nuts, seed
        self.unfinished = unfinished
        self.num, self.budget = num_pseudo_samples, budget
        self.search: Population | None = None
        self.elsewhere: OtherModes | None = None
        self._have_modes: tuple[Fit | None, Fit | None, Fit | None] = (None, None, None)

    @property
    def spent(self) -> float:
        """Seconds of the budget that are spent."""
        seconds = self.clock.seconds
        return sum(seconds[name] for name in seconds if name not in _OUTSIDE)

    def plain(self, *, densities: Iterable[str] = ()) -> Fit:
        """Run plain NUTS on the program itself, before what evaluates the densities of others.

        A run that an earlier call has finished is not made again.
        """
        program, seconds = self.program, self.clock.seconds
        program.compile([ORIGINAL], self.clock, densities=densities)
        made_by = program.identity(self.nuts, self.seed)
        kept = self.unfinished.kept(made_by)
        if kept is not None:
            fit, seconds["nuts"] = kept
            return fit
        with self.clock.step("plain NUTS", "nuts"):
            fit = program.plain(self.nuts, self.seed)
        self.unfinished.keep(fit, made_by, seconds["nuts"])
        return fit

    def tempered(
        self,
        method: Tempered,
        path: FoundPath,
        starts: Mapping[str, FloatArray],
        *,
        in_rounds_of: Scouted | None = None,
    ) -> Fit:
        """Run a tempered form, then the original's transformed parameters and quantities.

        With ``in_rounds_of`` it goes on in rounds with the time that the pilots have left.
        """
        program = self.program
        form = program.form(method, path, self.num)
        variants = [form.program, *([ORIGINAL] if program.generates else [])]
        program.compile(variants, self.clock)
        with self.clock.step("comparing densities", "check"):
            self.refuse(program.tempered_disagreement(method, path, self.seed, self.num))
        with self.clock.step("the tempered run", "sampling"):
            began = time.perf_counter()
            nuts, left = self.nuts, math.inf
            if in_rounds_of is not None:
                left = max(self.budget - in_rounds_of.seconds, LEAST_SHARE * self.budget)
                nuts = program.affordable(nuts, left)
            fit = program.tempered(method, path, starts, nuts, self.seed, self.num)
            took = time.perf_counter() - began
            remember(fit, shortened(nuts, self.nuts))
            if in_rounds_of is not None:
                fit = self._in_rounds(method, path, fit, took, _ROUNDS_SHARE * left)
        with self.clock.step("generated quantities", "generate"):
            return program.generated(fit, self.seed)

    def _in_rounds(
        self, method: Tempered, path: FoundPath, first: Fit, took: float, most_seconds: float
    ) -> Fit:
        """Go on with a tempered run in rounds, if more draws may help."""

        def again(fit: Fit, draws: int, number: int) -> Fit:
            self.clock.say(f"the tempered run, round {number}: {draws:,} draws more a chain")
            warmup = self.nuts.warmup
            if self.program.engine == "cmdstan":  # which keeps the metric
                warmup = min(warmup, _ROUND_WARMUP)
            (seed,) = np.random.SeedSequence([self.seed, 12, number]).generate_state(1)
            nuts = replace(self.nuts, warmup=warmup, draws=draws)
            return self.program.continued(method, path, fit, nuts, int(seed))

        made = in_rounds(
            first, again, first_seconds=took, most_seconds=most_seconds, seed=self.seed
        )
        remember(made.fit, made.findings)
        return made.fit

    def replicas(
        self,
        explorer: Explorer,
        seconds: float,
        references: References = 2,
        near: Mapping[str, FloatArray] | None = None,
    ) -> tuple[Fit, tuple[Finding, ...]]:
        """Run parallel tempering, then the original's quantities; return findings with the fit.

        ``near`` has points near the target by parameter, shape (n, ...), if some are known.
        """
        program = self.program
        settings = TemperingSettings(
            chains=self.nuts.chains,
            draws=self.nuts.draws,
            warmup=self.nuts.warmup,
            explorer=explorer,
            most_seconds=seconds,
            enough=Enough(
                effective=self.nuts.chains * min(_EFFECTIVE_ENOUGH, self.nuts.draws // 2),
                r_hat=R_HAT_WARNING,
                error=_ERROR_ENOUGH,
            ),
        )
        with self.clock.step("parallel tempering", "parallel"):
            made = parallel_tempering(
                program.model,
                settings,
                references=references,
                near=near,
                seed=self.seed,
                begin_round=self.clock.say,
            )
        with self.clock.step("generated quantities", "generate"):
            return program.generated(made.fit, self.seed), made.findings

    def refuse(self, differ: str | None) -> None:
        """Refuse to go on if stanli and CmdStan differ in a density."""
        if differ is not None:
            raise ToolchainError(
                f"{self.program.path}: stanli, which evaluates densities in Python, and CmdStan "
                f"disagree on the log density: they differ in {differ}. Use --method nuts, and "
                "report the program to the authors of stanli"
            )

    def with_modes(self, result: UserFit) -> UserFit:
        """Add the table of modes, and what it says, to a result of a method that tempers."""
        if self.program.why_not_tempered is not None:
            return result
        fits = (result.fit, result.nuts, result.tempered)
        if all(one is other for one, other in zip(fits, self._have_modes, strict=True)):
            return result
        self._have_modes = fits
        others = {
            str(each.tree.attrs["method"]): each
            for each in (result.nuts, result.tempered)
            if each is not None
        }
        before, began = self.elsewhere, self.clock.seconds.get("modes", 0.0)
        try:
            with self.clock.step("the table of modes", "modes"):
                table, self.elsewhere = mode_table(
                    self.program.model,
                    result.fit,
                    others,
                    self.search,
                    self.elsewhere,
                    most_seconds=MODES_SHARE * self.budget,
                    seed=self.seed,
                )
        except Exception as error:  # a fault of ours must not cost the draws either
            if is_from_signal(error):
                raise
            if not isinstance(error, FAILURES):
                _log.exception("The table of modes failed. Please report this:")
            remember(result.fit, [no_modes(error)])
            return result
        if isinstance(table, Exception):
            remember(result.fit, [no_modes(table), *found_by_climbs(self.elsewhere)])
            return result
        climbs = 0 if before is self.elsewhere else self.elsewhere.gradients
        attrs = result.fit.tree.attrs
        attrs |= {  # each fit has what its own tables took
            "modes": table.as_json(),
            "gradients_modes": attrs.get("gradients_modes", 0) + table.gradients + climbs,
            "seconds_modes": attrs.get("seconds_modes", 0.0) + self.clock.seconds["modes"] - began,
        }
        known = {each.sentence for each in result.diagnosis}
        found = [*mode_findings(table), *no_other_mode(self.elsewhere)]
        remember(result.fit, [each for each in found if each.sentence not in known])
        return result

    def of_program(self, fit: Fit) -> list[Finding]:
        """Return the findings about the program itself, which another method would not change."""
        program = self.program
        return [
            *(
                [tempered_whole(without_likelihood=program.without_likelihood)]
                if program.model.tempered_whole
                else []
            ),
            *open_questions(program.model),
            *not_numbers(fit, program.names),
            *absent(fit, program.names, program.containers, program.left_out),
        ]

    def finished(
        self, fit: Fit, findings: Sequence[Finding], scouted: Scouted | None = None
    ) -> Fit:
        """Add to a fit what its draws do not show: programs, findings, the pilots' results."""
        program = self.program
        told = [each for each in self.of_program(fit) if each not in findings]
        remember(fit, [*findings, *told])
        fit.tree.attrs |= {
            "model": program.path.stem,
            "programs": json.dumps(program.programs(fit)),
        }
        if scouted is not None:
            fit.tree.attrs |= {
                "gradients_pilot": scouted.gradients,
                "seconds_pilot": scouted.seconds,
                "pilot_log_evidence": json.dumps(scouted.estimates),
            }
            if scouted.path is not None:
                fit.tree.attrs["pilot_rungs"] = len(scouted.path.found.inv_temp)
        return fit
