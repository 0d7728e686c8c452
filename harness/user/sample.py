"""One call from a user's program and data to draws, log Z and a diagnosis: its steps, in order."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from operator import itemgetter
from pathlib import Path as File
from typing import Any, Literal, get_args

import numpy as np

from harness.arrays import FloatArray
from harness.diagnosis import Finding
from harness.engine.nuts import NutsSettings
from harness.errors import DataError, HarnessError, SamplingError, ToolchainError
from harness.fit import Fit
from harness.forms.common import Engine
from harness.temper import What
from harness.user.clock import Clock, quiet
from harness.user.compare import Population, compare
from harness.user.confirm import nuts_stays
from harness.user.evidence import open_questions, pilots_evidence, zero_likelihood
from harness.user.generated import ORIGINAL
from harness.user.job import Job, Tempered, prepare, tempered_form
from harness.user.judge import (
    Judgement,
    cannot_temper,
    from_both,
    higher_than,
    judge,
    judge_alone,
    missed_by_tempered,
    no_search,
    search_failed,
)
from harness.user.result import UserFit
from harness.user.scout import BUDGET, Path, Scouted, scout_program

Method = Literal["auto", "nuts", "pe", "ct"]
"""How a program is sampled.

``nuts``: Stan's NUTS on the program itself; ``ct``: continuous tempering along a pilot's path, with
the inverse temperature integrated out; ``pe``: pseudo-extended MCMC; ``auto``: NUTS, then pilots,
and then ``ct`` if NUTS's chains disagree or NUTS stays in a region that it had missed.
"""

_STEPS: Mapping[Method, int] = {"auto": 10, "nuts": 3, "pe": 6, "ct": 6}
"""The largest number of steps; those that turn out not to be needed are skipped."""
# Pseudo-samples move together and one of them is near the prior.  At Stan's .8 a step that suits
# one diverges for another in the neck of a hierarchical prior, and log Z is too high without it.
_TARGET_ACCEPT: Mapping[Method, float] = {"pe": 0.95}
_TEMPERED: Mapping[Method, Literal["no", "if possible", "yes"]] = {
    "nuts": "no",
    "auto": "if possible",
    "pe": "yes",
    "ct": "yes",
}
"""Whether a method needs the program's tempered forms."""


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
    what: What = "likelihood",
    include_paths: Iterable[File] = (),
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
        Seed, 0 to 2^32 - 1.  The same seed gives the same result unless a pilot runs out of time.
    chains, warmup, draws
        Number of chains, and of warm-up iterations and draws in each.
    target_accept, max_treedepth
        Of NUTS, as Stan has them.  If the first is not given it is Stan's .8, and .95 for ``pe``.
    num_pseudo_samples
        N of ``pe``.
    what
        What is tempered; see :func:`harness.temper.temper`.
    include_paths
        Folders in which ``#include`` lines are looked up, besides the program's own.
    engine
        ``cmdstan`` compiles the program.  ``stanli`` does not, and does the same, except that
        transformed parameters have only about ten correct digits.  ``auto`` takes CmdStan, or
        stanli if there is no compiler.
    budget
        Seconds of wall time for pilots, which look for further modes and estimate log Z.  A pilot
        that does not finish within its share is left out, and a finding reports that.
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
    if method not in get_args(Method):
        raise DataError(f"the method must be one of {', '.join(get_args(Method))}; got '{method}'")
    if not 0 <= seed < 2**32:
        raise DataError(f"the seed must be between 0 and 2^32 - 1; got {seed}")
    if num_pseudo_samples < 2:
        raise DataError(f"pe needs at least 2 pseudo-samples; got {num_pseudo_samples}")
    if not budget > 0:
        raise DataError(f"the budget must be more than 0 seconds; got {budget:g}")
    parallel = min(os.cpu_count() or 1, chains)
    if target_accept is None:
        target_accept = _TARGET_ACCEPT.get(method, NutsSettings.target_accept)
    nuts = NutsSettings(
        chains=chains,
        warmup=warmup,
        draws=draws,
        target_accept=target_accept,
        max_treedepth=max_treedepth,
        parallel_chains=parallel,
    )
    began = time.perf_counter()
    with Clock(_STEPS[method], show=progress) as clock, quiet():
        with clock.step("reading and tempering", "temper"):
            job = prepare(
                File(path), data, what, tuple(include_paths), engine, tempered=_TEMPERED[method]
            )
        with job.named_errors():
            run = _Run(job, clock, nuts, seed, num_pseudo_samples, budget)
            if method == "nuts":
                result = UserFit(run.finished(run.plain(), []), "nuts")
            elif method == "auto":
                result = run.auto()
            else:
                result = run.tempered_alone(method)
    return replace(result, timings={**clock.seconds, "total": time.perf_counter() - began})


class _Run:
    """One call of :func:`sample`, step by step."""

    def __init__(
        self,
        job: Job,
        clock: Clock,
        nuts: NutsSettings,
        seed: int,
        num_pseudo_samples: int,
        budget: float,
    ) -> None:
        self._job, self._clock, self._nuts, self._seed = job, clock, nuts, seed
        self._num, self._budget = num_pseudo_samples, budget

    # The methods

    def plain(self) -> Fit:
        """Run plain NUTS on the program itself."""
        self._job.compile([ORIGINAL], self._clock)
        with self._clock.step("plain NUTS", "nuts"):
            return self._job.plain(self._nuts, self._seed)

    def tempered_alone(self, method: Tempered) -> UserFit:
        """Run pilots and a tempered form, without plain NUTS first."""
        with self._clock.step("pilots along the path", "pilot"):
            scouted = scout_program(self._job.model, budget=self._budget, seed=self._seed)
        if scouted.path is None:
            raise SamplingError(
                f"{self._job.path}: the pilots found no path to temper along: "
                f"{scouted.failures.get('search') or self._job.model.no_gaussian_base}. Use "
                "--method nuts, or auto, which keeps the fit of plain NUTS"
            )
        fit = self._tempered(method, scouted.path, scouted.starts)
        found, findings = pilots_evidence(
            self._job.model, scouted, search_is_sound=True, nuts_is_sound=False
        )
        findings += higher_than(fit, scouted, found)
        return UserFit(self.finished(fit, findings, scouted), method)

    def auto(self) -> UserFit:
        """Run plain NUTS, look for further modes, and temper where NUTS misses something."""
        plain = self.plain()
        if self._job.why_not_tempered is not None:
            finding = search_failed(self._job.why_not_tempered)
            return UserFit(self.finished(plain, [finding]), "nuts")
        with self._clock.step("comparing densities", "check"):
            differ = self._job.disagreement(self._seed)
        if differ is not None:
            return UserFit(self.finished(plain, [no_search(differ)]), "nuts")
        draws = _parameters(plain)
        try:
            with self._clock.step("a search for further modes", "pilot"):
                scouted = scout_program(
                    self._job.model, draws=draws, budget=self._budget, seed=self._seed
                )
        except HarnessError as error:
            return UserFit(self.finished(plain, [search_failed(str(error))]), "nuts")
        judged = self._judged(draws, scouted)
        if not judged.temper:
            return UserFit(self._with_plain(plain, scouted, judged), "nuts")
        if scouted.path is None:
            reason = scouted.failures.get("search") or self._job.model.no_gaussian_base
            judged = judged.adding(cannot_temper(str(reason)))
            return UserFit(self._with_plain(plain, scouted, judged), "nuts")
        try:
            starts = from_both(scouted.starts, draws)
            fit = self._tempered("ct", scouted.path, starts)
        except HarnessError as error:
            judged = judged.adding(cannot_temper(str(error)))
            return UserFit(self._with_plain(plain, scouted, judged), "nuts")
        return self._chosen(plain, fit, scouted, judged)

    # Their steps

    def _judged(self, draws: Mapping[str, FloatArray], scouted: Scouted) -> Judgement:
        if scouted.search is None:
            return judge_alone(draws, scouted)
        compared = compare(draws, scouted.search)
        stays = False
        if compared.missed_by_nuts is not None:
            with self._clock.step("NUTS from the pilot's particles", "confirm"):
                stays = nuts_stays(
                    self._job.model, compared.missed_by_nuts, scouted.search, self._seed
                )
        return judge(compared, scouted, nuts_stays=stays)

    def _tempered(self, method: Tempered, path: Path, starts: Mapping[str, FloatArray]) -> Fit:
        """Run a tempered form, then the original's transformed parameters and quantities."""
        job = self._job
        form = tempered_form(method, path, self._num)
        variants = [form.program, *([ORIGINAL] if job.generates else [])]
        job.compile(variants, self._clock)
        with self._clock.step("comparing densities", "check"):
            differ = job.tempered_disagreement(method, path, self._seed, self._num)
        if differ is not None:
            raise ToolchainError(
                f"{job.path}: stanli, which runs the pilots, and CmdStan disagree on the log "
                f"density: they differ in {differ}. Use --method nuts, and report the program to "
                "the authors of stanli"
            )
        with self._clock.step("the tempered run", "sampling"):
            fit = job.tempered(method, path, starts, self._nuts, self._seed, self._num)
        with self._clock.step("generated quantities", "generate"):
            return job.generated(fit, self._seed)

    def _with_plain(self, plain: Fit, scouted: Scouted, judged: Judgement) -> Fit:
        """Return NUTS's fit with the pilots' log Z and all findings."""
        found, findings = pilots_evidence(
            self._job.model,
            scouted,
            search_is_sound=judged.search_is_sound,
            nuts_is_sound=not judged.nuts_misses,
        )
        if found is not None:
            plain.tree.attrs |= {"log_evidence": found.value, "log_evidence_mcse": found.mcse}
        told = [*judged.findings, *findings, *zero_likelihood(scouted)]
        return self.finished(plain, told, scouted)

    def _chosen(self, plain: Fit, fit: Fit, scouted: Scouted, judged: Judgement) -> UserFit:
        """Compare NUTS once more, with the tempered draws, and return the better of the two."""
        found, findings = pilots_evidence(
            self._job.model,
            scouted,
            search_is_sound=judged.search_is_sound,
            nuts_is_sound=not judged.nuts_misses,
        )
        chains = fit.posterior.sizes["chain"]
        tempered = Population(_parameters(fit), np.zeros(chains), _fewest_effective(fit))
        missed = missed_by_tempered(compare(_parameters(plain), tempered), scouted)
        if missed is None:
            findings += higher_than(fit, scouted, found)
            told = [*judged.findings, *findings]
            return UserFit(self.finished(fit, told, scouted), "ct", nuts=plain)
        judged = judged.adding(missed)
        if judged.nuts_misses:
            told = [*judged.findings, *findings]
            return UserFit(self.finished(fit, told, scouted), "ct", nuts=plain)
        return UserFit(self._with_plain(plain, scouted, judged), "nuts", tempered=fit)

    def finished(
        self, fit: Fit, findings: Iterable[Finding], scouted: Scouted | None = None
    ) -> Fit:
        """Add to a fit what its draws do not show: programs, findings, the pilots' results."""
        job = self._job
        missing = [name for name in job.names if name not in fit.posterior]
        everything = [*findings, *open_questions(job.model)]
        told = [(int(each.severity), each.sentence, each.what_to_try) for each in everything]
        if job.left_out:
            names = ", ".join(job.left_out)
            told.append(
                (0, f"Complex numbers and tuples are left out of the results: {names}.", "")
            )
        if missing:
            names = ", ".join(missing)
            sentence = f"Missing from the results, because stanli cannot evaluate them: {names}."
            told.append((1, sentence, "Use --engine cmdstan."))
        fit.tree.attrs |= {
            "model": job.path.stem,
            "findings": json.dumps(told),
            "programs": json.dumps(job.programs(fit)),
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


def _fewest_effective(fit: Fit) -> float:
    """Return the number of effective draws of the parameter that has the fewest."""
    numbers = [np.ravel(fit.effective_draws(itemgetter(name))) for name in fit.parameters]
    known = np.concatenate(numbers)
    known = known[np.isfinite(known)]
    return float(known.min()) if known.size else np.inf
