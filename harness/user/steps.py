"""The steps that methods of :func:`harness.user.sample` share, each timed and announced."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np

from harness.arrays import FloatArray
from harness.diagnosis import R_HAT_WARNING, Finding, give_options, remember
from harness.engine.compile import source_digest
from harness.engine.nuts import NutsSettings
from harness.errors import ToolchainError
from harness.fit import Fit
from harness.modes.labels import AnyGroup
from harness.modes.symmetries import Symmetries
from harness.path import starting_values
from harness.samplers.nested_run import NestedSettings
from harness.samplers.rung_replicas import Explorer
from harness.samplers.tempering_run import Enough, TemperingSettings
from harness.seeds import derived_seed
from harness.user.about_program import about_program
from harness.user.clock import Clock
from harness.user.compare import parameters_of, unconstrained
from harness.user.faults import tolerate
from harness.user.generated import ORIGINAL
from harness.user.improper import about_unending, has_proper_prior, unending_tails
from harness.user.mode_tables import ModeTables
from harness.user.nested import nested_sampling
from harness.user.one_copy import InOneCopy, density_of
from harness.user.parallel import References, parallel_tempering
from harness.user.prior import PRIOR, PriorDraws, prior_attributes
from harness.user.program import UserProgram
from harness.user.scouted import Scouted
from harness.user.symmetrise import Symmetrised, symmetries_of, symmetrised
from harness.user.undefined import about_overflow, about_undefined, undefined_near
from harness.user.unfinished import Stage, Unfinished

IN_MODES_SHARE = 0.1
"""Share of the budget for NUTS in each mode."""
LEAST_SHARE = 0.4
"""Share of the budget that is left after the pilots, and for parallel tempering if it takes over.
"""
_COPIES_SHARE, _BESIDE_SHARE, _TAILS_SHARE = 0.03, 0.01, 0.05
"""Shares of the budget in which it is looked for what leaves the density as it is, and for a look
at places beside the draws."""
_OUTSIDE = ("temper", "nuts", "compile")
"""Steps that the budget does not count: they take what they take."""
_EFFECTIVE_ENOUGH, ERROR_ENOUGH = 200, 0.05
"""Effective draws a chain and standard error of log Z, in nats, with which parallel tempering ends.

With four chains the probability of a mode then has a standard error of 0.018 or less.
"""
_SHORT_STEPS = 0.95
"""Acceptance rate that NUTS aims at where its steps must suit narrow places, too.

It is an average.  With Stan's 0.8 nearly all is accepted near the base of a path, and on many wells
(docs/hard/many_wells.md) 0.3 near the target.  Pseudo-samples move together, so that a step which
suits one diverges for another in the neck of a hierarchical prior, and log Z is too high.
"""
_NO_COPIES = "Copies could not be looked for."
_MOST_LISTED = 6
"""Copies of the posterior up to which the table of modes lists the modes in each of them."""


class Steps:
    """One call of :func:`harness.user.sample`: its settings, and the steps that it may take.

    Attributes
    ----------
    program, clock, nuts, seed, num, budget
        The program with its data, where time goes, settings of NUTS, and the call's own seed,
        number of pseudo-samples and budget.
    modes
        The tables of modes, and what they have found.
    unfinished
        Where runs that have finished are kept until the call has.
    chosen_steps
        Whether somebody has chosen the acceptance rate that NUTS aims at, and so its steps.
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
        *,
        chosen_steps: bool = False,
    ) -> None:
        self.program, self.clock, self.nuts, self.seed = program, clock, nuts, seed
        self.unfinished, self.chosen_steps = unfinished, chosen_steps
        self.num, self.budget = num_pseudo_samples, budget
        self.modes = ModeTables(program, clock, nuts, budget, seed)
        self._symmetries: Symmetries | None = None
        self._copies: AnyGroup | None = None
        self._tails: list[Finding] | None = None

    @property
    def spent(self) -> float:
        """Seconds of the budget that are spent."""
        seconds = self.clock.seconds
        return sum(seconds[name] for name in seconds if name not in _OUTSIDE)

    @property
    def symmetries(self) -> Symmetries | None:
        """What leaves the density as it is; None if that has not been looked for."""
        return self._symmetries

    def plain(self) -> Fit:
        """Run plain NUTS on the program itself; a run that an earlier call has finished counts."""
        program = self.program
        program.compile([ORIGINAL], self.clock)

        def run() -> Fit:
            with self.clock.step("plain NUTS", "nuts"):
                return program.plain(self.nuts, self.seed, self.clock)

        return self.once("nuts", "nuts", program.identity(self.nuts, self.seed), run)

    def plain_restarted(self, fit: Fit, chain: int, how: str) -> Fit:
        """Run plain NUTS once more, from draws of one chain, by its number from 0, of a fit."""
        program = self.program
        chains = self.nuts.chains
        own = {name: draws[chain] for name, draws in parameters_of(fit).items()}
        every = max(1, fit.posterior.sizes["draw"] // chains)
        apart = {name: draws[every - 1 :: every] for name, draws in own.items()}
        inits = starting_values(apart, chains=chains)
        seed = derived_seed(self.seed, 31)

        def run() -> Fit:
            self.clock.say(f"plain NUTS {how}")
            with self.clock.timed("nuts"):
                return program.plain(self.nuts, seed, self.clock, inits)

        made_by = program.identity(self.nuts, self.seed, from_chain=chain)
        return self.once("nuts-restarted", "nuts", made_by, run)

    def plain_again(self, nuts: NutsSettings, how: str) -> Fit:
        """Run plain NUTS once more, with other settings; ``how`` says which in words."""
        program = self.program

        def run() -> Fit:
            self.clock.say(f"plain NUTS {how}")
            with self.clock.timed("nuts"):
                return program.plain(nuts, self.seed, self.clock)

        smaller = nuts.target_accept > self.nuts.target_accept
        stage: Stage = "nuts-again"
        if nuts.draws > self.nuts.draws:
            stage = "nuts-longer-again" if smaller else "nuts-longer"
        return self.once(stage, "nuts", program.identity(nuts, self.seed), run)

    def once(self, stage: Stage, step: str, made_by: str, run: Callable[[], Fit]) -> Fit:
        """Return a run that an earlier call has kept; otherwise make it, and keep it.

        Parameters
        ----------
        stage, step
            Which run, and the step of the clock that times it.
        made_by
            Everything that decides which draws it makes.
        run
            Makes it.
        """
        seconds = self.clock.seconds
        before = seconds.get(step, 0.0)
        kept = self.unfinished.kept(stage, made_by)
        if kept is not None:
            fit, took = kept
            seconds[step] = before + took
            return fit
        fit = run()
        self.unfinished.keep(stage, fit, made_by, seconds[step] - before)
        return fit

    def in_all_copies(self, fit: Fit) -> tuple[Fit, InOneCopy | None]:
        """Spread draws over all copies of the posterior, if the chains do not move between them.

        Returns
        -------
        Fit, InOneCopy or None
            The fit with the original's quantities, the same one if nothing is to be done; and its
            draws in one copy.
        """
        with self.clock.step("copies of the posterior", "copies"):
            made = self.spread_over_copies(fit)
        if made is None:
            return fit, None
        try:
            spread = self.program.generated(made.fit, self.seed, self.clock)
        except Exception as error:  # the draws are there even so
            tolerate(error, _NO_COPIES)
            return fit, None
        self._copies = made.in_one_copy.copy.group
        # Lengths behind unit vectors are drawn anew, and so are not brought to another copy.
        if len(self._copies) > _MOST_LISTED and not made.in_one_copy.density.unit_vectors:
            self.modes.one_of_many = made.in_one_copy
        return spread, made.in_one_copy

    def completed(self, fit: Fit, *, copies: bool) -> Fit:
        """Add the original's quantities to draws, which may be spread over copies first."""
        if copies:
            spread, in_one_copy = self.in_all_copies(fit)
            if in_one_copy is not None:
                return spread
        return self.program.generated(fit, self.seed, self.clock)

    def spread_over_copies(self, fit: Fit) -> Symmetrised | None:
        """Spread draws over all copies, without what the program computes from its parameters."""
        model = self.program.model
        try:
            if self._symmetries is None:
                most_seconds = _COPIES_SHARE * self.budget
                self._symmetries = symmetries_of(model, fit, most_seconds=most_seconds)
            made = symmetrised(model, fit, self._symmetries, known=self._copies, seed=self.seed)
        except Exception as error:  # the draws are there even so
            tolerate(error, _NO_COPIES)
            return None
        if made is not None:
            remember(made.fit, [made.finding])
        return made

    @property
    def nuts_with_short_steps(self) -> NutsSettings:
        """Settings of NUTS on a path or in narrow modes, unless somebody has chosen its steps."""
        if self.chosen_steps:
            return self.nuts
        return replace(self.nuts, target_accept=max(self.nuts.target_accept, _SHORT_STEPS))

    def replicas(
        self,
        explorer: Explorer,
        seconds: float,
        references: References = 2,
        near: Mapping[str, FloatArray] | None = None,
        otherwise: Mapping[str, FloatArray] | None = None,
        prior: PriorDraws | None = None,
    ) -> Fit:
        """Run parallel tempering, then the original's quantities.

        ``near``, ``otherwise`` and ``prior`` are as in
        :func:`harness.user.parallel.parallel_tempering`.
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
                error=ERROR_ENOUGH,
            ),
        )
        made_by = program.identity(
            self.nuts,
            self.seed,
            "target",
            prior=source_digest(program.model.program(PRIOR)),
            explorer=explorer,
            references=references,
            budget=self.budget,
        )

        def run() -> Fit:
            with self.clock.step("parallel tempering", "parallel"):
                return parallel_tempering(
                    program.model,
                    settings,
                    references=references,
                    near=near,
                    otherwise=otherwise,
                    prior=prior,
                    seed=self.seed,
                    begin_round=self.clock.say,
                )

        stage: Stage = "parallel" if near is None else "parallel-near"
        return self.completed(self.once(stage, "parallel", made_by, run), copies=True)

    def nested(self, settings: NestedSettings) -> Fit:
        """Run nested sampling, then the original's quantities."""
        program = self.program
        made_by = program.identity(
            self.nuts,
            self.seed,
            "target",
            prior=source_digest(program.model.program(PRIOR)),
            nested=asdict(settings),
        )

        def run() -> Fit:
            with self.clock.step("nested sampling", "nested"):
                return nested_sampling(
                    program.model, settings, seed=self.seed, begin_round=self.clock.say
                )

        return self.completed(self.once("nested", "nested", made_by, run), copies=False)

    def refuse(self, differ: str | None) -> None:
        """Refuse to go on if stanli and CmdStan differ in a density."""
        if differ is not None:
            raise ToolchainError(
                f"{self.program.path}: stanli, which evaluates densities in Python, and CmdStan "
                f"disagree on the log density: they differ in {differ}. Use --method nuts, and "
                "report the program to the authors of stanli"
            )

    @property
    def is_improper(self) -> bool:
        """Whether the posterior is known to be improper."""
        return bool(self._tails)

    def improper(self, fit: Fit | None = None) -> list[Finding]:
        """Say whether the posterior is improper; with a proper prior nobody looks.

        Parameters
        ----------
        fit
            Draws to begin with, the first time, if there are any.
        """
        if self._tails is None and self.program.why_not_tempered is None:
            self._tails = []
            model = self.program.model
            if not has_proper_prior(model):
                try:
                    with self.clock.timed("tails"):
                        density = density_of(model)
                        points = np.empty((0, density.dimension))
                        if fit is not None:
                            points = unconstrained(parameters_of(fit), 2, density)
                        most_seconds = _TAILS_SHARE * self.budget
                        tails = unending_tails(density, points, most_seconds=most_seconds)
                        self._tails = about_unending(tails)
                except Exception as error:  # the draws are there even so
                    tolerate(error, "Whether the posterior is proper could not be looked at.")
        return self._tails or []

    def look_beside(self, fit: Fit) -> None:
        """Add to a fit what the program has beside and beyond its draws.

        That is places without a density, and directions in which it does not end.
        """
        if self.program.why_not_tempered is not None:
            return
        remember(fit, self.improper(fit))
        try:
            with self.clock.timed("beside"):
                density = density_of(self.program.model)
                found = undefined_near(
                    density,
                    unconstrained(parameters_of(fit), 2, density),
                    most_seconds=_BESIDE_SHARE * self.budget,
                    seed=self.seed,
                )
        except Exception as error:  # the draws are there even so
            tolerate(error, "Places beside the draws could not be looked at.")
            return
        remember(fit, about_undefined(found))

    def finished(
        self, fit: Fit, findings: Sequence[Finding], scouted: Scouted | None = None
    ) -> Fit:
        """Add to a fit what its draws do not show: programs, findings, the pilots' results."""
        program = self.program
        overflow = [] if scouted is None else about_overflow(scouted.infinite)
        remember(fit, [*findings, *overflow, *about_program(program, fit)])
        give_options(fit)
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
            fit.tree.attrs.update(prior_attributes(scouted.constant))
            if scouted.path is not None:
                fit.tree.attrs["pilot_rungs"] = len(scouted.path.found.inv_temp)
        return fit
