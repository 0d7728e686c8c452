"""One call from a user's program and data to draws, log Z and a diagnosis: its steps, in order."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as File
from typing import Any, Literal, get_args

import numpy as np

from harness.arrays import FloatArray
from harness.diagnosis import (
    R_HAT_WARNING,
    Finding,
    Severity,
    remember,
)
from harness.engine.cores import cores
from harness.engine.nuts import NutsSettings
from harness.engine.processes import children_end_with_us
from harness.errors import DataError, HarnessError, SamplingError, ToolchainError
from harness.fit import Fit
from harness.forms.common import Engine
from harness.samplers.nested_run import NestedSettings
from harness.samplers.nested_sampling import METHOD as NESTED
from harness.samplers.parallel_tempering import METHOD
from harness.samplers.rung_replicas import Explorer
from harness.samplers.tempering_run import Enough, TemperingSettings
from harness.temper import What
from harness.user.arbitrate import arbitrate
from harness.user.clock import Clock, quiet
from harness.user.compare import Comparison, Population, compare
from harness.user.confirm import nuts_stays
from harness.user.evidence import (
    PilotsEvidence,
    improper_prior,
    open_questions,
    pilots_evidence,
    without_likelihood,
    zero_likelihood,
)
from harness.user.generated import ORIGINAL, absent, not_numbers
from harness.user.judge import (
    Judgement,
    cannot_temper,
    edited_density,
    from_both,
    higher_than,
    judge,
    judge_alone,
    missed_by_tempered,
    near_target,
    no_relief,
    no_search,
    search_failed,
    seen_by_replicas,
    shortened,
    took_over,
)
from harness.user.modes import (
    fewest_effective,
    mode_findings,
    mode_table,
    no_modes,
    problems_of_modes,
)
from harness.user.nested import nested_sampling, refuse_without_prior
from harness.user.parallel import References, parallel_tempering
from harness.user.prior import PRIOR
from harness.user.program import Tempered, UserProgram, prepare
from harness.user.result import UserFit
from harness.user.rounds import has_enough_draws, in_rounds, severities
from harness.user.scout import BUDGET, FoundPath, Scouted, scout_program

Method = Literal["auto", "nuts", "parallel_tempering", "nested_sampling"] | Tempered
"""How a program is sampled.

``nuts``: Stan's NUTS on the program itself; a form's name: that form along a pilot's path;
``parallel_tempering``: replicas between the prior, the posterior and Gaussians near it;
``nested_sampling``: particles of the prior that climb the likelihood, for log Z without a path;
``auto``: NUTS, then pilots, and then collapsed tempering if NUTS's chains disagree or NUTS stays in
a region that it had missed, in rounds until its diagnosis is clean; parallel tempering takes over
where that fails or leaves warnings, and where NUTS leaves few effective draws or no log Z.
"""
METHODS: tuple[Method, ...] = (
    *("auto", "nuts", *get_args(Tempered)),
    *("parallel_tempering", "nested_sampling"),
)

_MOST_PSEUDO_SAMPLES = 1000
_STEPS: Mapping[Method, int] = {
    "auto": 14,
    "nuts": 3,
    "parallel_tempering": 6,
    "nested_sampling": 6,
}
"""The largest number of steps, 7 for a form; those that turn out not to be needed are skipped."""
_MODES_SHARE = 0.1
"""Share of the budget after which the table of modes is given up."""
_DRAWS_A_PARTICLE, _FEWEST_PARTICLES = 4, 8
"""Of nested sampling: a particle gives about as many effective draws in ten dimensions."""
_AUTO: Tempered = "collapsed_tempering"
"""The form that ``auto`` goes on to."""
_LEAST_SHARE = 0.4
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
# Pseudo-samples move together and one of them is near the prior.  At Stan's .8 a step that suits
# one diverges for another in the neck of a hierarchical prior, and log Z is too high without it.
_TARGET_ACCEPT: Mapping[Method, float] = {"pseudo_extended": 0.95}


@children_end_with_us()
def sample(
    path: File | str,
    data: File | str | Mapping[str, Any] | None = None,
    *,
    method: Method = "auto",
    seed: int,
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    target_accept: float | None = None,
    max_treedepth: int = 10,
    num_pseudo_samples: int = 2,
    explorer: Explorer = "auto",
    references: References = 2,
    what: What = "likelihood",
    include_paths: Iterable[File] = (),
    tempered: File | str | None = None,
    engine: Engine = "auto",
    budget: float = BUDGET,
    progress: bool = True,
) -> UserFit:
    """Sample a Stan program, tempered if that is needed; draws have the program's own names.

    The tempered path goes from the prior to the posterior.  Log Z is the evidence: the log of the
    likelihood's average over the normalised prior.  If the prior is flat over something unbounded,
    or everything is tempered, the path starts from a wide Gaussian, and log Z is the log integral
    of the program's density, divided by the parameters' volume if all of them are bounded.

    Parameters
    ----------
    path
        The program.  It is not changed.
    data
        JSON file, or the data by name.
    method
        How it is sampled; see :data:`Method`.
    seed
        Seed, 0 to 2^32 - 1.  The same seed gives the same result unless a pilot or parallel
        tempering runs out of time.
    chains, warmup, draws
        Number of chains, and of warm-up iterations and draws in each.  A chain of
        ``parallel_tempering`` is an independent system of replicas, and one of ``nested_sampling``
        an independent population of a quarter as many particles as ``draws``; it has no warm-up.
    target_accept, max_treedepth
        Of NUTS, as Stan has them.  If the first is not given it is Stan's .8, and .95 for
        ``pseudo_extended``.
    num_pseudo_samples
        N of ``pseudo_extended``.
    explorer
        What moves the replicas of ``parallel_tempering``; see
        :data:`harness.samplers.rung_replicas.Explorer`.  The particles of ``nested_sampling`` move
        by ``slice``, which ``auto`` takes, or ``hmc``.
    references
        Ladders of ``parallel_tempering``: 2, from the prior and from Gaussians near the posterior,
        or 1, from the prior alone.
    what
        What is tempered; see :func:`harness.temper.temper`.  A program without a likelihood is
        tempered whole.
    include_paths
        Folders in which ``#include`` lines are looked up, besides the program's own.
    tempered
        A tempered program that ``harness temper`` wrote from this one and that was edited since.
        It is run after the pilots, in place of the program that would be written; ``method`` is
        its form, or ``auto``.
    engine
        ``cmdstan`` compiles the program.  ``stanli`` does not, and does the same.  ``auto`` takes
        CmdStan, or stanli if there is no compiler.
    budget
        Seconds of wall time for what follows plain NUTS: pilots, which look for further modes and
        estimate log Z, rounds in which the tempered run of ``auto`` goes on, parallel tempering if
        that takes over, which has two fifths of it at least, and the table of modes.  A pilot that
        does not finish within its share is left out, and a finding reports that.  For
        ``parallel_tempering``, of the run: it goes on beyond the draws that are asked for until
        they are enough, while time is left.  For ``nested_sampling``, of the run too.
    progress
        Whether to show progress on standard error.

    Raises
    ------
    CompileError
        If the program is not valid Stan; the message is Stan's.
    DataError
        If data or settings do not fit the program, or it cannot be tempered.
    ToolchainError, SamplingError
        If a tool is missing that is needed, or a run does not finish.
    """
    if method not in METHODS:
        raise DataError(f"the method must be one of {', '.join(METHODS)}; got '{method}'")
    if not 0 <= seed < 2**32:
        raise DataError(f"the seed must be between 0 and 2^32 - 1; got {seed}")
    if not 2 <= num_pseudo_samples <= _MOST_PSEUDO_SAMPLES:
        raise DataError(
            f"pseudo_extended takes from 2 to {_MOST_PSEUDO_SAMPLES:,} pseudo-samples; got "
            f"{num_pseudo_samples}"
        )
    if references not in get_args(References):
        raise DataError(f"parallel tempering takes 1 or 2 references; got {references}")
    if method == NESTED and what == "all":
        raise DataError(
            "nested_sampling starts from the program's own prior: leave --temper at likelihood, or "
            "use --method parallel_tempering"
        )
    if not budget > 0:
        raise DataError(f"the budget must be more than 0 seconds; got {budget:g}")
    given = NutsSettings(
        chains=chains,
        warmup=warmup,
        draws=draws,
        target_accept=NutsSettings.target_accept if target_accept is None else target_accept,
        max_treedepth=max_treedepth,
        parallel_chains=min(cores(), chains),
    )
    began = time.perf_counter()
    with Clock(_STEPS.get(method, 7), show=progress) as clock, quiet():
        with clock.step("reading and tempering", "temper"):
            program = prepare(
                File(path),
                data,
                what,
                tuple(include_paths),
                engine,
                tempered="yes" if tempered is not None else _needs_forms(method),
                edited=None if tempered is None else File(tempered),
            )
        if program.edited_method is not None:
            if method not in ("auto", program.edited_method):
                raise DataError(f"{tempered} has the form {program.edited_method}, not {method}")
            method = program.edited_method
        nuts = given
        if target_accept is None and method in _TARGET_ACCEPT:
            nuts = replace(given, target_accept=_TARGET_ACCEPT[method])
        points = num_pseudo_samples if method == "pseudo_extended" else 1
        nuts.refuse_too_large(points * program.numbers)
        with program.named_errors():
            run = _Run(program, clock, nuts, seed, num_pseudo_samples, budget)
            if method == "nuts":
                result = UserFit(run.finished(run.plain(), []), "nuts")
            elif method == "auto":
                result = run.auto(explorer)
            elif method == "parallel_tempering":
                result = run.parallel(explorer, references)
            elif method == "nested_sampling":
                result = run.nested(explorer)
            else:
                result = run.tempered_alone(method)
            result = run.with_modes(result)
    return replace(result, timings={**clock.seconds, "total": time.perf_counter() - began})


def _needs_forms(method: Method) -> Literal["no", "if possible", "yes"]:
    """Whether a method needs the program's tempered forms."""
    if method == "nuts":
        return "no"
    return "if possible" if method == "auto" else "yes"


class _Run:
    """One call of :func:`sample`, step by step."""

    def __init__(
        self,
        program: UserProgram,
        clock: Clock,
        nuts: NutsSettings,
        seed: int,
        num_pseudo_samples: int,
        budget: float,
    ) -> None:
        self._program, self._clock, self._nuts, self._seed = program, clock, nuts, seed
        self._num, self._budget = num_pseudo_samples, budget
        self._search: Population | None = None
        self._have_modes: tuple[Fit | None, Fit | None, Fit | None] = (None, None, None)

    @property
    def _spent(self) -> float:
        """Seconds of the budget that are spent."""
        seconds = self._clock.seconds
        return sum(seconds[name] for name in seconds if name not in _OUTSIDE)

    # The methods

    def plain(self, *, densities: Iterable[str] = ()) -> Fit:
        """Run plain NUTS on the program itself, before what evaluates the densities of others."""
        self._program.compile([ORIGINAL], self._clock, densities=densities)
        with self._clock.step("plain NUTS", "nuts"):
            return self._program.plain(self._nuts, self._seed)

    def tempered_alone(self, method: Tempered) -> UserFit:
        """Run pilots and a tempered form, without plain NUTS first."""
        with self._clock.step("pilots along the path", "pilot"):
            scouted = scout_program(self._program.model, budget=self._budget, seed=self._seed)
        self._search = scouted.search
        if scouted.path is None:
            raise SamplingError(
                f"{self._program.path}: the pilots found no path to temper along: "
                f"{scouted.failures.get('search') or self._program.model.no_gaussian_base}. Use "
                "--method nuts, or auto, which keeps the fit of plain NUTS"
            )
        fit = self._tempered(method, scouted.path, scouted.starts)
        differ = self._program.difference_by_editing(method, scouted.path, self._seed, self._num)
        found, findings = pilots_evidence(
            self._program.model, scouted, search_is_sound=True, nuts_is_sound=False
        )
        findings += higher_than(fit, scouted, found)
        if differ is not None:
            findings.append(edited_density(differ))
        return UserFit(self.finished(fit, findings, scouted), method)

    def parallel(self, explorer: Explorer, references: References) -> UserFit:
        """Run parallel tempering between the prior, the posterior and, if wanted, a Gaussian."""
        program = self._program
        program.compile([ORIGINAL] if program.generates else [], self._clock)
        with self._clock.step("comparing densities", "check"):
            self._refuse(program.disagreement(self._seed))
        fit, findings = self._replicas(explorer, self._budget, references)
        return UserFit(self.finished(fit, findings), METHOD)

    def nested(self, explorer: Explorer) -> UserFit:
        """Run nested sampling from the prior."""
        if explorer == "both":
            raise DataError("nested_sampling moves particles by --explorer slice or hmc; got both")
        program, chosen = self._program, self._nuts
        refuse_without_prior(program.model)
        settings = NestedSettings(
            particles=max(chosen.draws // _DRAWS_A_PARTICLE, _FEWEST_PARTICLES),
            populations=chosen.chains,
            explorer="slice" if explorer == "auto" else explorer,
            most_seconds=self._budget,
        )
        try:
            settings.refuse_too_few(program.model.dimension)
        except DataError as error:
            raise DataError(
                f"{error}: --draws is {_DRAWS_A_PARTICLE} times the number of particles"
            ) from error
        program.compile([ORIGINAL] if program.generates else [], self._clock)
        with self._clock.step("comparing densities", "check"):
            self._refuse(program.disagreement(self._seed))
        with self._clock.step("nested sampling", "nested"):
            fit, findings = nested_sampling(
                program.model, settings, seed=self._seed, begin_round=self._clock.say
            )
        with self._clock.step("generated quantities", "generate"):
            fit = program.generated(fit, self._seed)
        fit.tree.attrs["draws_asked"] = chosen.draws
        return UserFit(self.finished(fit, findings), NESTED)

    def auto(self, explorer: Explorer) -> UserFit:
        """Run plain NUTS, look for further modes, and temper where NUTS misses something."""
        reason = self._program.why_not_tempered
        plain = self.plain(densities=("target", PRIOR) if reason is None else ())
        if reason is not None:
            finding = search_failed(reason)
            return UserFit(self.finished(plain, [finding]), "nuts")
        with self._clock.step("comparing densities", "check"):
            differ = self._program.disagreement(self._seed)
        if differ is not None:
            return UserFit(self.finished(plain, [no_search(differ)]), "nuts")
        draws = _parameters(plain)
        try:
            with self._clock.step("a search for further modes", "pilot"):
                scouted = scout_program(
                    self._program.model,
                    draws=draws,
                    divergent=bool(plain.sample_stats["diverging"].any()),
                    budget=self._budget,
                    seed=self._seed,
                )
        except HarnessError as error:
            return UserFit(self.finished(plain, [search_failed(str(error))]), "nuts")
        self._search = scouted.search
        judged = self._judged(draws, scouted)
        if not judged.temper:
            result = self.with_modes(UserFit(self._with_plain(plain, scouted, judged), "nuts"))
            lacking = problems_of_modes(result.modes)
            settled = result.log_evidence is not None and has_enough_draws(result.fit)
            if not lacking and scouted.search is not None and settled:
                return result
            if not lacking:
                return self._relieved(result, plain, scouted, judged, explorer)
            # A mode too small for the comparison of single coordinates.
            judged = replace(
                judged, temper=True, nuts_misses=True, findings=(*judged.findings, *lacking)
            )
        found, judged = self._after_search(plain, scouted, judged)
        found = self.with_modes(found)  # modes that the draws lack are a trouble
        return self._relieved(found, plain, scouted, judged, explorer)

    def with_modes(self, result: UserFit) -> UserFit:
        """Add the table of modes, and what it says, to a result of a method that tempers."""
        if self._program.why_not_tempered is not None:
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
        began = time.perf_counter()
        attrs = result.fit.tree.attrs
        try:
            with self._clock.step("the table of modes", "modes"):
                table = mode_table(
                    self._program.model,
                    result.fit,
                    others,
                    self._search,
                    most_seconds=_MODES_SHARE * self._budget,
                    seed=self._seed,
                )
        except (HarnessError, ValueError, ArithmeticError) as error:
            # Whatever goes wrong here, the draws are there and worth more than the table.
            remember(result.fit, [no_modes(error)])
            return result
        attrs["modes"] = table.as_json()
        attrs["gradients_modes"] = table.gradients
        attrs["seconds_modes"] = time.perf_counter() - began
        known = {each.sentence for each in result.diagnosis}
        remember(result.fit, [each for each in mode_findings(table) if each.sentence not in known])
        return result

    # Their steps

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
            reason = scouted.failures.get("search") or self._program.model.no_gaussian_base
            return self._without_path(plain, scouted, judged, str(reason)), judged
        try:
            starts = from_both(scouted.starts, _parameters(plain))
            fit = self._tempered(_AUTO, scouted.path, starts, in_rounds_of=scouted)
        except HarnessError as error:
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
        explorer: Explorer,
    ) -> UserFit:
        """Let parallel tempering take over from a fit with troubles; return the better one."""
        # The draws of any method have the program's prior, and are of this program.
        lasting = [*judged.accepted, improper_prior(self._program.model)]
        troubles = found.troubles([*lasting, *self._of_program(found.fit)])
        if not troubles:
            return found
        rest = (1 - _MODES_SHARE) * self._budget - self._spent
        left = max(rest, _LEAST_SHARE * self._budget)
        try:
            near = near_target(scouted, _parameters(plain), judged)
            fit, findings = self._replicas(explorer, left, near=near)
        except HarnessError as error:
            return found.adding(no_relief(str(error)))
        compared = self._compared(plain, fit)
        missed = missed_by_tempered(compared, scouted)
        if judged.dispute is not None and missed is None:
            judged = judged.settled(*arbitrate(judged.dispute, _parameters(fit)))
        told = [*judged.findings, *findings, *([] if missed is None else [missed])]
        other = UserFit(self.finished(fit, told, scouted), METHOD)
        others = other.troubles([*lasting, *self._of_program(fit)])
        sound = all(each.severity < Severity.PROBLEM for each in others)
        seen = seen_by_replicas(compared, sound=sound) if found.method == "nuts" else None
        if seen is not None and sound:
            return replace(other, nuts=plain, tempered=found.tempered).adding(seen)
        if severities(others) >= severities(troubles):
            kept = found if seen is None else found.adding(seen)
            return kept.adding(no_relief(others[0].sentence))
        tempered = found.fit if found.method == _AUTO else found.tempered
        return replace(other, nuts=plain, tempered=tempered).adding(took_over(troubles[0]))

    def _replicas(
        self,
        explorer: Explorer,
        seconds: float,
        references: References = 2,
        near: Mapping[str, FloatArray] | None = None,
    ) -> tuple[Fit, tuple[Finding, ...]]:
        """Run parallel tempering, then the original's quantities; return findings with the fit.

        ``near`` has points near the target by parameter, shape (n, ...), if some are known.
        """
        program = self._program
        settings = TemperingSettings(
            chains=self._nuts.chains,
            draws=self._nuts.draws,
            warmup=self._nuts.warmup,
            explorer=explorer,
            most_seconds=seconds,
            enough=Enough(
                effective=self._nuts.chains * min(_EFFECTIVE_ENOUGH, self._nuts.draws // 2),
                r_hat=R_HAT_WARNING,
                error=_ERROR_ENOUGH,
            ),
        )
        with self._clock.step("parallel tempering", "parallel"):
            made = parallel_tempering(
                program.model,
                settings,
                references=references,
                near=near,
                seed=self._seed,
                begin_round=self._clock.say,
            )
        with self._clock.step("generated quantities", "generate"):
            return program.generated(made.fit, self._seed), made.findings

    def _judged(self, draws: Mapping[str, FloatArray], scouted: Scouted) -> Judgement:
        if scouted.search is None:
            return judge_alone(draws, scouted)
        compared = compare(draws, scouted.search)
        stays = False
        if compared.missed_by_nuts is not None:
            with self._clock.step("NUTS from the pilot's particles", "confirm"):
                stays = nuts_stays(
                    self._program.model, compared.missed_by_nuts, scouted.search, self._seed
                )
        return judge(compared, scouted, nuts_stays=stays)

    def _refuse(self, differ: str | None) -> None:
        """Refuse to go on if stanli and CmdStan differ in a density."""
        if differ is not None:
            raise ToolchainError(
                f"{self._program.path}: stanli, which evaluates densities in Python, and CmdStan "
                f"disagree on the log density: they differ in {differ}. Use --method nuts, and "
                "report the program to the authors of stanli"
            )

    def _tempered(
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
        program = self._program
        form = program.form(method, path, self._num)
        variants = [form.program, *([ORIGINAL] if program.generates else [])]
        program.compile(variants, self._clock)
        with self._clock.step("comparing densities", "check"):
            self._refuse(program.tempered_disagreement(method, path, self._seed, self._num))
        with self._clock.step("the tempered run", "sampling"):
            began = time.perf_counter()
            nuts, left = self._nuts, math.inf
            if in_rounds_of is not None:
                left = max(self._budget - in_rounds_of.seconds, _LEAST_SHARE * self._budget)
                nuts = program.affordable(nuts, left)
            fit = program.tempered(method, path, starts, nuts, self._seed, self._num)
            took = time.perf_counter() - began
            remember(fit, shortened(nuts, self._nuts))
            if in_rounds_of is not None:
                fit = self._in_rounds(method, path, fit, took, _ROUNDS_SHARE * left)
        with self._clock.step("generated quantities", "generate"):
            return program.generated(fit, self._seed)

    def _in_rounds(
        self, method: Tempered, path: FoundPath, first: Fit, took: float, most_seconds: float
    ) -> Fit:
        """Go on with a tempered run in rounds, if more draws may help."""

        def again(fit: Fit, draws: int, number: int) -> Fit:
            self._clock.say(f"the tempered run, round {number}: {draws:,} draws more a chain")
            warmup = self._nuts.warmup
            if self._program.engine == "cmdstan":  # which keeps the metric
                warmup = min(warmup, _ROUND_WARMUP)
            (seed,) = np.random.SeedSequence([self._seed, 12, number]).generate_state(1)
            nuts = replace(self._nuts, warmup=warmup, draws=draws)
            return self._program.continued(method, path, fit, nuts, int(seed))

        made = in_rounds(
            first, again, first_seconds=took, most_seconds=most_seconds, seed=self._seed
        )
        remember(made.fit, made.findings)
        return made.fit

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
        return self.finished(plain, [*about, *findings, *zero_likelihood(scouted)], scouted)

    def _chosen(
        self, plain: Fit, fit: Fit, scouted: Scouted, judged: Judgement
    ) -> tuple[UserFit, Judgement]:
        """Compare NUTS once more, with the tempered draws, and return the better of the two."""
        missed = missed_by_tempered(self._compared(plain, fit), scouted)
        keep = missed is not None and not judged.nuts_misses
        if judged.dispute is not None and missed is None:
            side, settled = arbitrate(judged.dispute, _parameters(fit))
            judged = judged.settled(side, settled)
            keep = side in ("nuts", "open")
        said = judged if missed is None else judged.adding(missed)
        pilots = self._pilots_evidence(scouted, judged)
        if keep:
            kept = self._with_plain(plain, scouted, said, pilots)
            return UserFit(kept, "nuts", tempered=fit), judged
        found, findings = pilots
        if missed is None:
            findings = [*findings, *higher_than(fit, scouted, found)]
        told = [*said.findings, *findings]
        return UserFit(self.finished(fit, told, scouted), _AUTO, nuts=plain), judged

    @staticmethod
    def _compared(plain: Fit, fit: Fit) -> Comparison:
        """Compare NUTS's draws with those of a tempered fit."""
        chains = fit.posterior.sizes["chain"]
        tempered = Population(_parameters(fit), np.zeros(chains), fewest_effective(fit))
        return compare(_parameters(plain), tempered)

    def _pilots_evidence(self, scouted: Scouted, judged: Judgement) -> PilotsEvidence:
        return pilots_evidence(
            self._program.model,
            scouted,
            search_is_sound=judged.search_is_sound,
            nuts_is_sound=not judged.nuts_misses,
        )

    def _of_program(self, fit: Fit) -> list[Finding]:
        """Return the findings about the program itself, which another method would not change."""
        program = self._program
        return [
            *([without_likelihood()] if program.without_likelihood else []),
            *open_questions(program.model),
            *not_numbers(fit, program.names),
            *absent(fit, program.names, program.containers, program.left_out),
        ]

    def finished(
        self, fit: Fit, findings: Sequence[Finding], scouted: Scouted | None = None
    ) -> Fit:
        """Add to a fit what its draws do not show: programs, findings, the pilots' results."""
        program = self._program
        told = [each for each in self._of_program(fit) if each not in findings]
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


def _parameters(fit: Fit) -> dict[str, Any]:
    return {
        name: fit.posterior[name].transpose("chain", "draw", ...).to_numpy()
        for name in fit.parameters
    }
