"""One call from a user's program and data to draws, log Z and a diagnosis."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path as File
from typing import Any, Literal, get_args

from harness.engine.cores import cores
from harness.engine.linear_algebra import one_thread_of_linear_algebra
from harness.engine.nuts import NutsSettings
from harness.engine.processes import children_end_with_us
from harness.errors import DataError
from harness.forms.common import Engine
from harness.samplers.nested_sampling import METHOD as NESTED
from harness.samplers.rung_replicas import Explorer
from harness.temper import What
from harness.user.alone import nested_alone, parallel_alone, tempered_alone
from harness.user.auto import auto
from harness.user.clock import Clock, quiet
from harness.user.parallel import References
from harness.user.prepare import prepare
from harness.user.result import UserFit
from harness.user.scout import BUDGET
from harness.user.steps import Steps
from harness.user.tempered_form import Tempered, edited_method
from harness.user.unfinished import Unfinished, not_run_again

Method = Literal["auto", "nuts", "parallel_tempering", "nested_sampling"] | Tempered
"""How a program is sampled.

``nuts``: Stan's NUTS on the program itself; a form's name: that form along a pilot's path;
``parallel_tempering``: replicas between the prior, the posterior and Gaussians near it;
``nested_sampling``: particles of the prior that climb the likelihood, for log Z without a path;
``auto``: NUTS, then pilots, and then collapsed tempering if NUTS's chains disagree or NUTS stays in
a region that it had missed, in rounds until its diagnosis is clean; parallel tempering takes over
where that fails or leaves warnings, and where NUTS leaves few effective draws or no log Z, and NUTS
in each mode that is known by then if doubts are left even so.
"""
METHODS: tuple[Method, ...] = (
    *("auto", "nuts", *get_args(Tempered)),
    *("parallel_tempering", "nested_sampling"),
)

_MOST_PSEUDO_SAMPLES = 1000
_STEPS: Mapping[Method, int | None] = {
    "auto": None,
    "nuts": 3,
    "parallel_tempering": 8,
    "nested_sampling": 7,
}
"""The largest number of steps, 8 for a form; those that turn out not to be needed are skipped.  For
``auto`` it is not known, since what one step finds decides on the next."""


@children_end_with_us()
@one_thread_of_linear_algebra()
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
    out: File | str | None = None,
    progress: bool = True,
) -> UserFit:
    """Sample a Stan program, tempered if that is needed; draws have the program's own names.

    The tempered path goes from the prior to the posterior.  Log Z is the evidence: the log of the
    likelihood's average over the normalised prior.  If the prior is flat over something unbounded,
    or everything is tempered, the path starts from a wide Gaussian or from the flat density between
    the bounds, and log Z is the log of the integral of the program's density.

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
        tempering runs out of time, or a density takes so much longer or less that pilots have
        another number of particles, or parallel tempering another number of systems of replicas.
    chains, warmup, draws
        Number of chains, and of warm-up iterations and draws in each.  A chain of
        ``parallel_tempering`` is of one or more independent systems of replicas (several where a
        density takes next to no time, one after the other), and one of ``nested_sampling``
        an independent population of a quarter as many particles as ``draws``; it has no warm-up.
    target_accept, max_treedepth
        Of NUTS, as Stan has them.  If the first is not given it is Stan's .8, and .95 for the
        tempered forms.
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
        estimate log Z, rounds in which a tempered run goes on, parallel tempering if that takes
        over, which has two fifths of it at least, NUTS in each mode, and the table of modes.  A
        pilot that does not finish within its share is left out, and a finding reports that.  For
        ``parallel_tempering``, of the run: it goes on beyond the draws that are asked for until
        they are enough, while time is left.  For ``nested_sampling``, of the run too.
    out
        NetCDF file in which to save the result.  While the call runs, each run that has finished is
        kept beside it: plain NUTS in ``NAME.unfinished.nc``, others in files such as
        ``NAME.unfinished-tempered.nc``.  If the call does not finish, the same call goes on from
        there.
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
    StoreError
        If the result cannot be written.
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
    nuts = NutsSettings(
        chains=chains,
        warmup=warmup,
        draws=draws,
        target_accept=NutsSettings.target_accept if target_accept is None else target_accept,
        max_treedepth=max_treedepth,
        parallel_chains=min(cores(), chains),
    )
    file = None if out is None else File(out)
    began = time.perf_counter()
    with Unfinished(file) as unfinished:
        with Clock(_STEPS.get(method, 8), show=progress) as clock, quiet():
            program = prepare(
                *(File(path), data, what, tuple(include_paths), engine, clock),
                tempered="yes" if tempered is not None else _needs_forms(method),
                edited=None if tempered is None else File(tempered),
                nuts_first=method == "auto",
            )
            edited = edited_method(program.model)
            if edited is not None:
                if method not in ("auto", edited):
                    raise DataError(f"{tempered} has the form {edited}, not {method}")
                method = edited
            points = num_pseudo_samples if method == "pseudo_extended" else 1
            nuts.refuse_too_large(points * program.numbers)
            with program.named_errors():
                steps = Steps(
                    *(program, clock, nuts, seed, num_pseudo_samples, budget, unfinished),
                    chosen_steps=target_accept is not None,
                )
                result = _by_method(steps, method, explorer, references)
                if not steps.is_improper:  # where it is, there are no modes
                    result = steps.modes.added_to(result)
                steps.look_beside(result.fit)
        took = time.perf_counter() - began
        result = replace(result, timings={**clock.seconds, "total": took})
        if unfinished.taken_up:
            result = result.adding(not_run_again(unfinished.taken_up))
        if file is not None:
            result.save(file)
        unfinished.remove()
    return result


def _by_method(steps: Steps, method: Method, explorer: Explorer, references: References) -> UserFit:
    """Return what a method makes of a program."""
    if method not in ("nuts", "auto"):  # auto runs NUTS first, and NUTS alone needs none
        steps.program.compile_densities(steps.clock)
    match method:
        case "nuts":
            return UserFit(steps.finished(steps.plain(), []), "nuts")
        case "auto":
            return auto(steps, explorer)
        case "parallel_tempering":
            return parallel_alone(steps, explorer, references)
        case "nested_sampling":
            return nested_alone(steps, explorer)
        case _:
            return tempered_alone(steps, method)


def _needs_forms(method: Method) -> Literal["no", "if possible", "yes"]:
    """Whether a method needs the program's tempered forms."""
    if method == "nuts":
        return "no"
    return "if possible" if method == "auto" else "yes"
