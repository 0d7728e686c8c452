"""Log evidence from a fit that somebody already has: read it, map its draws, bridge, and judge."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from harness.arrays import FloatArray
from harness.diagnosis import Finding, Severity, diagnose
from harness.diagnosis.advice import advice_for
from harness.engine.batched import BatchedDensity
from harness.engine.cores import cores
from harness.engine.linear_algebra import one_thread_of_linear_algebra
from harness.engine.unit_vectors import squared_lengths
from harness.errors import FAILURES, DataError, HarnessError, SamplingError, one_line
from harness.evidence import NORMALISED, LogEvidence
from harness.fit import Fit
from harness.forms.common import Engine
from harness.model import Model
from harness.modes.labels import group_of
from harness.modes.symmetries import Symmetries
from harness.temper import Statement
from harness.temper import temper as rewritten
from harness.user.about_program import about_unit_vectors, open_questions
from harness.user.belongs import difference_from_lp, unconstrained
from harness.user.bridged import bridged
from harness.user.bridges import Bridges
from harness.user.clock import Clock, quiet
from harness.user.compare import parameters_of
from harness.user.draw_prior import PRIOR_SHARE, prior_draws
from harness.user.evidence import rough_integral, written_prior
from harness.user.evidence_result import GivenEvidence
from harness.user.given_fit import GivenDraws, read_given
from harness.user.improper import about_unending, has_proper_prior, unending_tails
from harness.user.one_copy import InOneCopy, brought_to_one_copy
from harness.user.other_modes import described, no_other_mode, other_modes
from harness.user.prepare import prepare
from harness.user.prior import PriorDraws
from harness.user.prior_constant import prior_constant
from harness.user.program import UserProgram
from harness.user.sample import sample
from harness.user.scout import BUDGET
from harness.user.stuck import seems_stuck
from harness.user.symmetrise import moves_freely, symmetries_of, symmetrised
from harness.user.undefined import about_undefined, undefined_near

Temper = Literal["no", "auto"]
"""Whether a tempered run follows where the bridge cannot be trusted."""

_CONSTANT_SHARE = 0.25
"""Share of the budget for pilots that estimate the integral of the prior."""
_COPIES_SECONDS, _CLIMBS_SECONDS, _BESIDE_SECONDS, _TAILS_SECONDS = 4.0, 10.0, 1.0, 4.0
"""Seconds for copies of the posterior, for climbs that look for modes without draws, for a look at
places beside the draws, and for one at where the posterior ends."""
_OWN_TERMS = re.compile(r"^\s*target\s*\+=(?!.*_(?:lpdf|lpmf|lupdf|lupmf|lcdf|lccdf)\s*\()")
_DROPPING = re.compile(r"_lup[dm]f\s*\(")
_PRECISE = 0.01
"""Error of a bridge, in nats, with which it is not asked whether one copy is easier to reach."""
_SHOWN = 3


@one_thread_of_linear_algebra()
def evidence_from_fit(
    fit: Any,
    model: Path | str,
    data: Path | str | Mapping[str, Any] | None = None,
    *,
    temper: Temper = "no",
    error: float | None = None,
    seed: int = 1,
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    include_paths: Iterable[Path] = (),
    engine: Engine = "auto",
    budget: float = BUDGET,
    progress: bool = True,
) -> GivenEvidence:
    """Estimate log Z of a Stan program from a fit of it, or refuse to.

    The evidence is the log of the likelihood's average over the normalised prior, as
    :func:`harness.user.sample` has it.  All constants of densities count, also those that ``~``
    drops.

    Parameters
    ----------
    fit
        CSV files of CmdStan's sampler, a NetCDF file of ArviZ or of harness, a ``CmdStanMCMC``,
        anything with ArviZ's group ``posterior``, or a fit of harness; None to sample first.
    model
        The program.
    data
        JSON file, or the data by name.
    temper
        ``auto`` goes on to a tempered run where the bridge cannot be trusted.
    error
        Error of log Z for which the result says how many draws it takes.
    seed
        Seed.  The same seed gives the same result unless a pilot runs out of time.
    chains, warmup, draws, engine
        Of the run that samples first, and of the tempered run.
    include_paths
        Folders in which ``#include`` lines are looked up, besides the program's own.
    budget
        Seconds that the pilots of a tempered run, and those for the prior's constant, may take.
    progress
        Whether to show progress on standard error.

    Raises
    ------
    CompileError
        If the program is not valid Stan.
    DataError
        If the fit cannot be read, lacks parameters, or belongs to another program or other data;
        if data or settings do not fit.
    ToolchainError, SamplingError
        If a tool is missing that is needed, or a run does not finish.
    """
    if temper not in ("no", "auto"):
        raise DataError(f"temper must be 'no' or 'auto'; got '{temper}'")
    if error is not None and not error > 0:
        raise DataError(f"the wanted error of log Z must be positive; got {error:g}")
    if not 0 <= seed < 2**32:
        raise DataError(f"the seed must be between 0 and 2^32 - 1; got {seed}")
    began = time.process_time()
    path, folders = Path(model), tuple(include_paths)
    given = None if fit is None else read_given(fit)
    settings: dict[str, Any] = {
        "seed": seed,
        "chains": chains,
        "warmup": warmup,
        "draws": draws,
        "include_paths": folders,
        "engine": engine,
        "budget": budget,
        "progress": progress,
    }
    sampled = None
    if given is None:
        sampled = sample(path, data, method="nuts", **settings)
        given = read_given(sampled)
    with Clock(6, show=progress) as clock, quiet():
        program, statements, what = _prepared(path, data, folders, engine, clock)
        with program.named_errors():
            found = _Estimation(program, statements, given, clock, seed, budget, what).result()
    tempered = None
    if found.refusals and temper == "auto" and not found.improper:
        tempered = sample(path, data, method="auto", what=what, **settings)
    return replace(
        found,
        tempered=tempered,
        fit=sampled,
        error=error,
        seconds=time.process_time() - began,
    )


def _prepared(
    path: Path,
    data: Path | str | Mapping[str, Any] | None,
    folders: tuple[Path, ...],
    engine: Engine,
    clock: Clock,
) -> tuple[UserProgram, tuple[Statement, ...], Literal["likelihood", "all"]]:
    """Return the program with its data, its statements, and what of it is tempered."""
    program = prepare(path, data, "likelihood", folders, engine, clock, tempered="yes")
    what: Literal["likelihood", "all"] = "all" if program.without_likelihood else "likelihood"
    statements = rewritten(path, method="target", what=what, include_paths=folders).statements
    return program, statements, what


class _Estimation:
    """One estimate from given draws, step by step."""

    def __init__(
        self,
        program: UserProgram,
        statements: tuple[Statement, ...],
        given: GivenDraws,
        clock: Clock,
        seed: int,
        budget: float,
        what: Literal["likelihood", "all"],
    ) -> None:
        self._program, self._statements, self._given = program, statements, given
        self._clock, self._seed, self._budget, self._what = clock, seed, budget, what
        self._model: Model = program.model
        self._findings: list[Finding] = []
        self._refusals: list[str] = []
        self._symmetries: Symmetries | None = None

    def result(self) -> GivenEvidence:
        model, given = self._model, self._given
        density = BatchedDensity(model.program("target"), model.data, threads=cores())
        draws = given.parameters(density.shapes)
        with self._clock.step("mapping the draws", "map"):
            points = unconstrained(density, draws, given.source)
            self._refuse_others(density, points)
            beside = undefined_near(density, points, most_seconds=_BESIDE_SECONDS, seed=self._seed)
            for each in about_undefined(beside):
                self._take(each, each.sentence)
            if not has_proper_prior(model):
                tails = unending_tails(density, points, most_seconds=_TAILS_SECONDS)
                for each in about_unending(tails):
                    self._take(each, each.sentence)
        fit, in_one_copy = self._in_all_copies(given.as_fit(list(draws), model.data))
        self._diagnose(fit)
        if self._refusals and fit.posterior.sizes["chain"] > 1:
            self._findings += seems_stuck(model, parameters_of(fit))
        bridges = None
        with self._clock.step("bridges", "bridge"):
            try:
                if in_one_copy is None:
                    bridges, in_one_copy = self._bridges(density, points, fit)
                else:
                    draws = parameters_of(fit)
                    points = unconstrained(density, draws, given.source)
                    bridges = self._in_one(in_one_copy)
            except (DataError, SamplingError) as error:
                self._refusals.append(one_line(error).rstrip("."))
        if bridges is not None:
            self._refusals += bridges.problems
            with self._clock.step("looking for other modes", "modes"):
                self._look_for_modes(density, draws, points, bridges, in_one_copy)
        with self._clock.step("the prior", "prior"):
            constant = self._constant()
        self._findings += about_unit_vectors(density.unit_vectors, has_prior=self._what != "all")
        self._about_the_text()
        return GivenEvidence(
            name=self._program.path.stem,
            shape=(*given.shape, density.dimension),
            integral=None if bridges is None else bridges.log_evidence,
            constant=constant,
            bridges=bridges,
            refusals=tuple(self._refusals),
            findings=tuple(sorted(self._findings, key=lambda each: -each.severity)),
            improper=model.own_base == "improper" and self._what == "likelihood",
        )

    # The draws

    def _refuse_others(self, density: BatchedDensity, points: FloatArray) -> None:
        """Refuse draws of another program or other data, as far as lp__ tells."""
        lp = self._given.sample_stats.get("lp")
        if lp is None:
            self._findings.append(
                Finding(
                    Severity.WARNING,
                    "The fit has no lp__, so whether its draws belong to this program and these "
                    "data could not be checked.",
                    "Keep the sampler's statistics with the draws.",
                )
            )
            return
        value, gradient = density(points.reshape(-1, points.shape[2]))
        vectors = density.unit_vectors
        differ = difference_from_lp(
            lp,
            value.reshape(lp.shape) + 0.5 * squared_lengths(points, vectors),
            gradient.reshape(points.shape),
            points,
            lengths=sum(each.stop - each.start for each in vectors),
        )
        if differ is not None:
            raise DataError(
                f"{self._given.source}: these are draws of another program or of other data: "
                f"{differ}. Give the program and the data that made the fit"
            )

    def _in_all_copies(self, fit: Fit) -> tuple[Fit, InOneCopy | None]:
        """Spread the draws over all copies of the posterior, if they are not.

        Returns
        -------
        Fit, InOneCopy or None
            The draws in all copies, and in one; the same fit and None if nothing is to be done.
        """
        try:
            with self._clock.step("copies of the posterior", "copies"):
                found = symmetries_of(self._model, fit, most_seconds=_COPIES_SECONDS)
                self._symmetries = found
                made = symmetrised(self._model, fit, found, seed=self._seed)
        except FAILURES:  # what the draws are is said by their diagnosis
            return fit, None
        if made is None:
            return fit, None
        self._findings.append(made.finding)
        return made.fit, made.in_one_copy

    def _bridges(
        self, density: BatchedDensity, points: FloatArray, fit: Fit
    ) -> tuple[Bridges, InOneCopy | None]:
        """Make bridges from draws whose chains move between copies of the posterior, if there are.

        A bridge whose proposal has to reach many copies is poor, or cannot be trusted.  One that
        sees a single copy may be better.

        Returns
        -------
        Bridges, InOneCopy or None
            The better bridges, and the copy that they see, if it is only one.

        Raises
        ------
        DataError, SamplingError
            If there are no bridges.
        """
        group = None if self._symmetries is None else group_of(self._symmetries)
        whole = None
        try:
            whole = bridged(density, points, seed=self._seed)
            if group is None or (whole.sound and whole.log_evidence.mcse <= _PRECISE):
                return whole, None
            one = brought_to_one_copy(self._model, fit, group)
            if one is None:
                return whole, None
            by_one = self._in_one(one)
        except (DataError, SamplingError):
            if whole is None:
                raise
            return whole, None
        if (by_one.sound, -by_one.log_evidence.mcse) <= (whole.sound, -whole.log_evidence.mcse):
            return whole, None
        self._findings.append(moves_freely(one))
        return by_one, one

    def _in_one(self, in_one_copy: InOneCopy) -> Bridges:
        """Make bridges that see one copy of the posterior, and count all."""
        one = bridged(in_one_copy, in_one_copy.points, seed=self._seed)
        return one.times(in_one_copy.copies)

    def _diagnose(self, fit: Fit) -> None:
        """Take over what the diagnosis of the draws says; its problems are refusals."""
        chains, _ = self._given.shape
        if chains == 1:
            self._findings.append(
                Finding(
                    Severity.WARNING,
                    "There is one chain, and only its halves can be compared: one chain may miss "
                    "modes that several chains from different starting points would show.",
                    "Sample four chains.",
                )
            )
        for each in diagnose(fit):
            # A better path is no help to draws that have none.
            no_path = each.what_to_try == advice_for(fit).better_path
            self._take(each, each.sentence if no_path else str(each))

    def _take(self, finding: Finding, said: str) -> None:
        """Take a finding; a problem is a refusal, in the words given."""
        if finding.severity == Severity.PROBLEM:
            self._refusals.append(said.rstrip("."))
        else:
            self._findings.append(finding)

    def _look_for_modes(
        self,
        density: BatchedDensity,
        draws: Mapping[str, FloatArray],
        points: FloatArray,
        bridges: Bridges,
        in_one_copy: InOneCopy | None,
    ) -> None:
        """Refuse draws that lack a mode: in one copy, if they are in several.

        Lengths behind unit vectors are drawn anew, so that points are not brought to another copy.
        """
        if self._refusals:
            return
        total = bridges.log_evidence
        if in_one_copy is not None and not density.unit_vectors:
            draws, points = in_one_copy.draws, in_one_copy.points
            total = in_one_copy.part_of(total)
        else:
            in_one_copy = None
        log_mass = total.value
        found = other_modes(
            self._model,
            density,
            draws,
            points,
            log_mass=log_mass,
            total=total,
            in_one_copy=in_one_copy,
            most_seconds=_CLIMBS_SECONDS,
            seed=self._seed,
        )
        missed = found.that_matter()
        if missed:
            largest = missed[0]
            self._refusals.append(
                f"the draws miss a mode: a climb from {largest.origin} ended at "
                f"{described(largest, density, points)}, where there are no draws, and the mode "
                f"there has {_times(largest.log_mass - log_mass)} the mass that the draws "
                "stand for"
            )
        self._findings += no_other_mode(found)

    # The prior and the text

    def _constant(self) -> LogEvidence | None:
        """Return the log of the integral of the prior as written; refuse if there is none."""
        model = self._model
        if self._what == "all":
            self._findings.append(
                Finding(
                    Severity.WARNING,
                    "No statement of the program is known to be its likelihood, so log Z is the "
                    "integral of its density.",
                    "Mark the statements of the likelihood with // temper: yes.",
                )
            )
            return NORMALISED
        if model.own_base == "improper":
            where = f" (it is flat in {_some(model.flat)})" if model.flat else ""
            self._refusals.append(
                f"the evidence is not defined, because the prior is improper{where}: the integral "
                "of the program's density depends on an arbitrary constant, so that Bayes factors "
                "mean nothing. Give every parameter a proper prior"
            )
            return None
        self._findings += open_questions(model)
        if model.log_prior_integral is None:
            constant = self._estimated_constant()
        else:
            constant = LogEvidence(model.log_prior_integral, 0.0)
        if constant is None:
            self._refusals.append(
                "the evidence needs the integral of the prior, which the program's text does not "
                "show and which could not be estimated: write the prior with Stan's "
                "distributions, truncated with T[,] where a constraint cuts them"
            )
        else:
            self._findings += written_prior(constant)
        return constant

    def _estimated_constant(self) -> LogEvidence | None:
        """Estimate the log integral of the prior, by bridges from draws of it or by pilots."""
        try:
            drawn = prior_draws(self._model, self._seed, most_seconds=PRIOR_SHARE * self._budget)
        except HarnessError:
            return None
        constant = self._from_draws(drawn)
        if constant is not None:
            self._findings += rough_integral(drawn, constant)
        return constant

    def _from_draws(self, drawn: PriorDraws) -> LogEvidence | None:
        if drawn.reliable and drawn.log_integral is None:
            try:
                found = bridged(drawn.density, drawn.points, seed=self._seed)
            except HarnessError:
                found = None
            if found is not None and found.sound:
                return found.log_evidence
        try:
            return prior_constant(
                self._model, drawn, most_seconds=_CONSTANT_SHARE * self._budget, seed=self._seed
            ).log_integral
        except HarnessError:
            return None

    def _about_the_text(self) -> None:
        """Say which constants count where the text does not show a normalised density."""
        own = [each for each in self._statements if each.tempered and _OWN_TERMS.match(each.text)]
        if own:
            told = _some([f"line {each.line}, `{each.text}`" for each in own])
            self._findings.append(
                Finding(
                    Severity.FINE,
                    "Log Z counts what the likelihood adds to target as it stands, with no "
                    f"constant but those that are written ({told}).",
                    "If these are not normalised densities of the data, compare only models that "
                    "leave out the same constants.",
                )
            )
        dropping = [each for each in self._statements if _DROPPING.search(each.text)]
        if dropping:
            told = _some([f"line {each.line}" for each in dropping])
            self._findings.append(
                Finding(
                    Severity.FINE,
                    f"Densities that are written as _lupdf or _lupmf count with all their "
                    f"constants ({told}).",
                )
            )


def _times(log_share: float) -> str:
    return f"about {math.exp(log_share):.2g} times" if log_share < 5 else "more than 100 times"


def _some(texts: Iterable[str]) -> str:
    listed = list(texts)
    shown = ", ".join(listed[:_SHOWN])
    return shown if len(listed) <= _SHOWN else f"{shown} and {len(listed) - _SHOWN} more"
