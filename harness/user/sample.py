"""From somebody's program and data to draws, log Z and a diagnosis, in one call."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from harness.compile import CompiledProgram, Declared, compile_programs, declarations
from harness.diagnosis import Finding, Severity
from harness.errors import DataError, HarnessError
from harness.fit import Fit, build_fit
from harness.methods.common import Engine, Sampling, chosen_engine, run_attributes, run_variant
from harness.methods.continuous_tempering import COLLAPSED_VARIANT, sample_collapsed_tempered
from harness.methods.from_pilot import scouted_ladder
from harness.methods.pseudo_extended import VARIANT as PSEUDO_EXTENDED_VARIANT
from harness.methods.pseudo_extended import sample_pseudo_extended
from harness.model import Model, StanProgram
from harness.nuts import NutsSettings
from harness.temper import What, tempered_model
from harness.toolchain import require_cmdstan
from harness.user.clock import Clock, quiet
from harness.user.compare import compare
from harness.user.data import checked_data, read_data
from harness.user.generated import ORIGINAL, kept_names, with_generated
from harness.user.result import UserFit
from harness.user.scout import Scouted, scout_program

Method = Literal["auto", "nuts", "pe", "ct"]
"""How a program is sampled.

``nuts``: Stan's NUTS on the program itself; ``ct``: continuous tempering, the inverse temperature
integrated out, along a pilot's path; ``pe``: pseudo-extended; ``auto``: NUTS, and ``ct`` in its
place if a pilot shows that NUTS misses part of the posterior.
"""

Tempered = Literal["pe", "ct"]
"""Those of them that temper."""

_VARIANTS: Mapping[Tempered, str] = {"pe": PSEUDO_EXTENDED_VARIANT, "ct": COLLAPSED_VARIANT}
_STEPS: Mapping[Method, int] = {"auto": 7, "nuts": 3, "pe": 5, "ct": 5}
"""Steps at most; what turns out not to be needed is left out."""
_START_WARNING = 1.1


def sample(
    path: Path | str,
    data: Path | str | Mapping[str, Any] | None = None,
    *,
    method: Method = "auto",
    seed: int,
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    num_pseudo_samples: int = 2,
    what: What = "likelihood",
    include_paths: Iterable[Path] = (),
    engine: Engine = "auto",
    progress: bool = True,
) -> UserFit:
    """Sample a Stan program, tempered where that is needed, in its own names.

    The tempered path goes from the prior to the posterior, and log Z is that of the likelihood
    averaged over the prior, normalised: the evidence.  Where the prior is flat over something
    unbounded, or all is tempered, it starts from a wide Gaussian, and log Z is the integral of
    the program's density; of a program whose parameters are all bounded, divided by their volume.

    Parameters
    ----------
    path
        The program, which stays as it is.
    data
        File of JSON, or the data by name.
    method
        How; see :data:`Method`.
    seed
        Seed, 0 to 2^32 - 1; same seed, same result.
    chains, warmup, draws
        Number of chains, and of warm-up iterations and draws in each.
    num_pseudo_samples
        N of ``pe``.
    what
        What is tempered; see :func:`harness.temper.temper`.
    include_paths
        Folders in which ``#include`` lines are looked up, besides the program's own.
    engine
        ``cmdstan`` compiles; ``stanli`` does not, and does the same but for the digits of
        transformed parameters, which are right to about ten; ``auto`` takes CmdStan, or stanli
        where there is no compiler.
    progress
        Whether to show on standard error what is done.

    Raises
    ------
    CompileError
        If the program is not valid Stan; the message is Stan's.
    DataError
        If data or settings do not fit the program, or it cannot be tempered.
    ToolchainError, SamplingError
        If something is missing that it takes, or a run does not end.
    """
    if method not in get_args(Method):
        raise DataError(f"the method is one of {', '.join(get_args(Method))}; got '{method}'")
    if not 0 <= seed < 2**32:
        raise DataError(f"the seed lies between 0 and 2^32 - 1; got {seed}")
    if num_pseudo_samples < 2:
        raise DataError(f"pe needs 2 pseudo-samples or more; got {num_pseudo_samples}")
    parallel = min(os.cpu_count() or 1, chains)
    nuts = NutsSettings(chains=chains, warmup=warmup, draws=draws, parallel_chains=parallel)
    began = time.perf_counter()
    with Clock(_STEPS[method], show=progress) as clock, quiet():
        with clock.step("reading and tempering", "temper"):
            job = _prepare(Path(path), data, what, tuple(include_paths), engine)
        with job.named_errors():
            if method == "auto" or method == "nuts":
                result = _plain_first(job, clock, nuts, seed, auto=method == "auto")
            else:
                scouted = _pilot(job, clock, seed)
                fit = _tempered(job, clock, method, scouted, nuts, seed, num_pseudo_samples)
                _remember(fit, job, scouted, _doubts(scouted))
                result = UserFit(fit, method)
    return replace(result, timings={**clock.seconds, "total": time.perf_counter() - began})


def _plain_first(job: _Job, clock: Clock, nuts: NutsSettings, seed: int, *, auto: bool) -> UserFit:
    """Run plain NUTS; if asked, compare it with a pilot, and temper where it misses something."""
    job.compile([ORIGINAL], clock)
    with clock.step("plain NUTS", "nuts"):
        plain = job.plain(nuts, seed)
    if not auto:
        _remember(plain, job, None, [])
        return UserFit(plain, "nuts")
    scouted = _pilot(job, clock, seed)
    compared = compare(
        _parameters(plain),
        scouted.particles,
        scouted.log_weight,
        origin=scouted.origin,
        log_evidence_error=float(scouted.log_evidence.mcse),
    )
    findings = [*_doubts(scouted), *compared.findings]
    if compared.missed:
        fit = _tempered(job, clock, "ct", scouted, nuts, seed)
        _remember(fit, job, scouted, findings)
        return UserFit(fit, "ct", nuts=plain)
    _remember(plain, job, scouted, findings)
    found = scouted.log_evidence
    plain.tree.attrs |= {
        "log_evidence": float(found.value),
        "log_evidence_mcse": float(found.mcse),
    }
    return UserFit(plain, "nuts")


def _pilot(job: _Job, clock: Clock, seed: int) -> Scouted:
    with clock.step("a pilot along the path", "pilot"):
        return scout_program(job.model, seed=seed)


def _tempered(
    job: _Job,
    clock: Clock,
    method: Tempered,
    scouted: Scouted,
    nuts: NutsSettings,
    seed: int,
    num_pseudo_samples: int = 2,
) -> Fit:
    """Run a tempered form, then the original's transformed parameters and generated quantities."""
    job.compile([_VARIANTS[method], *([ORIGINAL] if job.generates else [])], clock)
    with clock.step("the tempered run", "sampling"):
        fit = job.tempered(method, scouted, nuts, seed, num_pseudo_samples)
    with clock.step("generated quantities", "generate"):
        return job.generated(fit, seed)


@dataclass
class _Job:
    """A program with its data and all that is made of it."""

    path: Path
    model: Model
    engine: Engine
    names: list[str]
    left_out: list[str]
    generates: bool
    compiled: dict[str, CompiledProgram]

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Call the program by its own name in errors, and not by that of a folder in the cache."""
        try:
            yield
        except HarnessError as error:
            named = str(error).replace(f"{self.model.folder.name}-", f"{self.path.name}, form ")
            raise type(error)(named) from error

    def compile(self, variants: Iterable[str], clock: Clock) -> None:
        """Compile variants where the engine is CmdStan, several at once, unless they are."""
        programs = {
            self.model.program(each): each for each in variants if each not in self.compiled
        }
        if self.engine != "cmdstan" or not programs:
            return
        with clock.step("compiling", "compile"):
            made = compile_programs(programs, require_cmdstan())
        self.compiled |= {programs[program]: each for program, each in made.items()}

    def plain(self, nuts: NutsSettings, seed: int) -> Fit:
        """Run NUTS on the original program."""
        sampling = Sampling(nuts, seed, None, self.compiled.get(ORIGINAL), self.engine)
        ran = run_variant(self.model, ORIGINAL, {}, sampling)
        later = [name for name in self.names if name in ran.run.variables]
        names = [*self.model.parameters, *later]
        return build_fit(
            posterior={name: ran.run.variables[name] for name in names},
            extended=None,
            sample_stats=ran.run.sample_stats,
            constant_data=self.model.data,
            attrs=run_attributes("target", self.model, ran, {}, seed)
            | {"parameters": json.dumps(list(self.model.parameters))},
        )

    def tempered(
        self, method: Tempered, scouted: Scouted, nuts: NutsSettings, seed: int, num: int
    ) -> Fit:
        """Run a tempered form along the pilot's path."""
        found = scouted.found
        path: dict[str, Any] = {
            "base": scouted.base,
            "log_zeta": found.base.log_zeta,
            "nuts": nuts,
            "seed": seed,
            "engine": self.engine,
        }
        if method == "pe":
            return sample_pseudo_extended(
                self.model,
                num_pseudo_samples=num,
                log_g=found.log_g,
                inits=scouted.inits(nuts.chains, num),
                compiled=self.compiled.get(PSEUDO_EXTENDED_VARIANT),
                **path,
            )
        return sample_collapsed_tempered(
            self.model,
            log_g=scouted_ladder(found),
            ladder=True,
            inits=scouted.inits(nuts.chains),
            compiled=self.compiled.get(COLLAPSED_VARIANT),
            **path,
        )

    def programs(self, fit: Fit) -> list[tuple[str, str]]:
        """Names and texts of the original and of the tempered form that a fit is of."""
        variant = fit.tree.attrs["program"].rpartition("-")[2]
        kept = {ORIGINAL: self.path.name}
        if variant != ORIGINAL:
            kept[variant] = f"{self.path.stem}-{variant}.stan"
        return [
            (name, self.model.program(each).path.read_text(encoding="utf-8"))
            for each, name in kept.items()
        ]

    def generated(self, fit: Fit, seed: int) -> Fit:
        """Add the original's transformed parameters and generated quantities."""
        compiled = self.compiled.get(ORIGINAL)
        return with_generated(fit, self.model, self.names, compiled=compiled, seed=seed)


def _prepare(
    path: Path,
    data: Path | str | Mapping[str, Any] | None,
    what: What,
    include_paths: tuple[Path, ...],
    engine: Engine,
) -> _Job:
    """Read, check and temper; nothing is compiled yet."""
    given, where = read_data(data)
    program = StanProgram(path, (*include_paths, path.parent))
    blocks = declarations(program, require_cmdstan())
    _refuse(path, blocks["parameters"])
    kept, left_out = kept_names(blocks)
    checked = checked_data(program, blocks["inputs"], given, where)
    model = tempered_model(path, checked, what=what, include_paths=include_paths)
    return _Job(
        path, model, chosen_engine(engine), kept, left_out, bool(blocks["generated quantities"]), {}
    )


def _refuse(path: Path, parameters: Mapping[str, Declared]) -> None:
    strange = [name for name, each in parameters.items() if each.type != "real"]
    if strange:
        raise DataError(
            f"{path}: results have no place for the parameter {strange[0]}, a complex number or "
            "a tuple; declare its parts as parameters of their own"
        )


def _parameters(fit: Fit) -> dict[str, Any]:
    return {
        name: fit.posterior[name].transpose("chain", "draw", ...).to_numpy()
        for name in fit.parameters
    }


def _doubts(scouted: Scouted) -> Iterator[Finding]:
    if scouted.base is None and scouted.start_r_hat > _START_WARNING:
        yield Finding(
            Severity.WARNING,
            f"Draws of the prior, from which the pilot starts, do not agree (R-hat "
            f"{scouted.start_r_hat:.2f}): it has modes of its own, or a funnel.",
            "Parametrise the model so that its prior is easy to draw from.",
        )


def _remember(fit: Fit, job: _Job, scouted: Scouted | None, findings: Iterable[Finding]) -> None:
    """Write into a fit what its draws do not have: the pilot's results, programs, findings."""
    missing = [name for name in job.names if name not in fit.posterior]
    told = [(int(each.severity), each.sentence, each.what_to_try) for each in findings]
    if job.left_out:
        names = ", ".join(job.left_out)
        told.append((0, f"Complex numbers and tuples are left out of the results: {names}.", ""))
    if missing:
        names = ", ".join(missing)
        told.append((1, f"stanli cannot evaluate {names}: the results have them not.", ""))
    fit.tree.attrs |= {
        "model": job.path.stem,
        "findings": json.dumps(told),
        "programs": json.dumps(job.programs(fit)),
    }
    if scouted is not None:
        found = scouted.log_evidence
        fit.tree.attrs |= {
            "gradients_pilot": scouted.gradients,
            "seconds_pilot": scouted.seconds,
            "pilot_log_evidence": float(found.value),
            "pilot_log_evidence_mcse": float(found.mcse),
            "pilot_rungs": len(scouted.found.inv_temp),
        }
