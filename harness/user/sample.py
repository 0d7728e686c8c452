"""From somebody's program and data to draws, log Z and a diagnosis, in one call."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

from harness.diagnosis import Finding, Severity
from harness.errors import DataError, ToolchainError
from harness.fit import Fit
from harness.methods.common import Engine
from harness.nuts import NutsSettings
from harness.temper import What
from harness.user.clock import Clock, quiet
from harness.user.compare import compare
from harness.user.generated import ORIGINAL
from harness.user.job import TEMPERED_VARIANTS, Job, Tempered, prepare
from harness.user.result import UserFit
from harness.user.scout import Scouted, scout_program

Method = Literal["auto", "nuts", "pe", "ct"]
"""How a program is sampled.

``nuts``: Stan's NUTS on the program itself; ``ct``: continuous tempering, the inverse temperature
integrated out, along a pilot's path; ``pe``: pseudo-extended; ``auto``: NUTS, and ``ct`` in its
place if a pilot shows that NUTS misses part of the posterior.
"""

_STEPS: Mapping[Method, int] = {"auto": 9, "nuts": 3, "pe": 6, "ct": 6}
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
            job = prepare(Path(path), data, what, tuple(include_paths), engine)
        with job.named_errors():
            if method == "auto" or method == "nuts":
                result = _plain_first(job, clock, nuts, seed, auto=method == "auto")
            else:
                scouted = _pilot(job, clock, seed)
                fit = _tempered(job, clock, method, scouted, nuts, seed, num_pseudo_samples)
                _remember(fit, job, scouted, _doubts(scouted))
                result = UserFit(fit, method)
    return replace(result, timings={**clock.seconds, "total": time.perf_counter() - began})


def _plain_first(job: Job, clock: Clock, nuts: NutsSettings, seed: int, *, auto: bool) -> UserFit:
    """Run plain NUTS; if asked, compare it with a pilot, and temper where it misses something."""
    job.compile([ORIGINAL], clock)
    with clock.step("plain NUTS", "nuts"):
        plain = job.plain(nuts, seed)
    if not auto:
        _remember(plain, job, None, [])
        return UserFit(plain, "nuts")
    with clock.step("comparing densities", "check"):
        differ = job.disagreement(seed)
    if differ is not None:
        _remember(plain, job, None, [_no_pilot(differ)])
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


def _pilot(job: Job, clock: Clock, seed: int) -> Scouted:
    with clock.step("a pilot along the path", "pilot"):
        return scout_program(job.model, seed=seed)


def _tempered(
    job: Job,
    clock: Clock,
    method: Tempered,
    scouted: Scouted,
    nuts: NutsSettings,
    seed: int,
    num_pseudo_samples: int = 2,
) -> Fit:
    """Run a tempered form, then the original's transformed parameters and generated quantities."""
    job.compile([TEMPERED_VARIANTS[method], *([ORIGINAL] if job.generates else [])], clock)
    with clock.step("comparing densities", "check"):
        differ = job.tempered_disagreement(method, scouted, seed, num_pseudo_samples)
    if differ is not None:
        raise ToolchainError(
            f"{job.path}: stanli, which ran the pilot, and CmdStan have not one density: they "
            f"differ in {differ}. The pilot is no guide then: use --method nuts, and tell the "
            "authors of stanli of the program"
        )
    with clock.step("the tempered run", "sampling"):
        fit = job.tempered(method, scouted, nuts, seed, num_pseudo_samples)
    with clock.step("generated quantities", "generate"):
        return job.generated(fit, seed)


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


def _no_pilot(differ: str) -> Finding:
    return Finding(
        Severity.WARNING,
        f"There was no pilot: stanli, which runs it, and CmdStan differ in {differ}. Modes that "
        "NUTS misses would not show, and there is no log Z.",
        "Tell the authors of stanli of the program; meanwhile compare runs from far starts.",
    )


def _remember(fit: Fit, job: Job, scouted: Scouted | None, findings: Iterable[Finding]) -> None:
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
