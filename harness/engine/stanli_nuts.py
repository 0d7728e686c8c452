"""The second engine: Stan's NUTS inside this process, with no C++ compiler, through stanli.

It makes the same kind of :class:`~harness.engine.nuts.NutsRun` as CmdStan does.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib.metadata import version
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.engine.iterations import Follow, Iterations, between_lines
from harness.engine.nuts import SAMPLE_STATS, NutsRun, NutsSettings
from harness.engine.program import StanProgram
from harness.engine.stan_library import RENAMED
from harness.engine.stanli_package import column_major, stan_model
from harness.errors import DataError, SamplingError, SomeChainsError, one_line

STAN_VERSIONS = {"0.24": "2.40.0"}
"""Version of Stan in each release of stanli, which does not report it."""

_NO_START = re.compile(r"no starting value for parameter (\w+)")
_FAILED = re.compile(r"(\d+) of \d+ chains failed")
# A step so short that a single draw stays where the chain began.
_NO_STEP = 1e-12


def run_stanli_nuts(
    program: StanProgram,
    data: Mapping[str, Any],
    settings: NutsSettings,
    seed: int,
    *,
    inits: Any = None,
    inv_metric: FloatArray | None = None,
    follow: Follow | None = None,
) -> NutsRun:
    """Run NUTS on a program without compiling it.

    stanli does not report how long a chain took.  ``seconds`` divides the time of the whole run,
    times the number of chains at once, in proportion to gradient evaluations.

    Parameters
    ----------
    program
        Program to run.
    data
        Data of the program.
    settings
        Settings of the run.  A time limit is refused, because nothing can stop a run within this
        process.
    seed
        Seed, 0 to 2^32 - 1.  Chain c draws from the stream (seed, c), as CmdStan's does; the
        draws agree with CmdStan's in distribution, not digit for digit.
    inits
        Initial values as CmdStanPy takes them: a radius, values by parameter, or a file of values,
        for all chains or for each.  Parameters that are left out start where one of Stan's own
        random starts puts them.  A name that is not a parameter is refused.
    inv_metric
        Inverse metric that NUTS keeps, as :func:`~harness.engine.nuts.run_nuts` takes it.  There
        are fewer than :data:`~harness.engine.nuts.ADAPTS_METRIC` iterations of warm-up then,
        because stanli keeps no metric in a longer one.
    follow
        Is told how far the run is; see :data:`~harness.engine.iterations.Follow`.  Meanwhile
        nothing else can print, because stanli tells it by printing.

    Raises
    ------
    ToolchainError
        If stanli is not installed.
    DataError
        If the program, its data, the seed or the initial values are refused, or a time limit is
        set.
    SomeChainsError
        If some chains do not finish, and others do; the message is Stan's.
    SamplingError
        If none does.
    """
    if settings.time_limit is not None:
        raise DataError(
            "a run of the stanli engine cannot be stopped, so it takes no time limit: leave "
            "time_limit out, or use engine='cmdstan'"
        )
    if not 0 <= seed < 2**32:
        raise DataError(f"the seed lies between 0 and 2^32 - 1; got {seed}")
    model = stan_model(program, data)
    if inv_metric is not None:
        settings = settings.for_kept_metric
    threads = min(settings.parallel_chains, settings.chains)
    try:
        starts = _starts(model, program, inits, settings.chains, seed)
        began = time.perf_counter()
        with _printing_to(follow, settings) as refresh:
            fit = model.sample(
                chains=settings.chains,
                seed=seed,
                warmup=settings.warmup,
                samples=settings.draws,
                delta=settings.target_accept,
                max_depth=settings.max_treedepth,
                **settings.metric_of(inv_metric),
                parallel_chains=threads,
                # Kept to count the gradients of warm-up, which cost time too.
                save_warmup=True,
                refresh=refresh,
                **starts,
            )
        seconds = threads * (time.perf_counter() - began)
    except (RuntimeError, ValueError) as error:
        said = one_line(error)
        told = f"{program.name}: stanli did not finish (seed {seed}): {said}"
        failed = _FAILED.search(said)
        if failed and int(failed[1]) < settings.chains:
            raise SomeChainsError(told, said) from error
        raise SamplingError(told) from error
    return _collect(fit, settings, seconds)


@contextmanager
def _printing_to(follow: Follow | None, settings: NutsSettings) -> Iterator[int]:
    """Yield after how many iterations a chain prints where it is; 0 if nobody follows."""
    if follow is None:
        yield 0
    else:
        with redirect_stdout(Iterations(settings.chains, follow)):
            yield between_lines(settings.warmup + settings.draws)


def _collect(fit: Any, settings: NutsSettings, seconds: float) -> NutsRun:
    stats = dict(zip(SAMPLE_STATS, np.moveaxis(fit.sampler_stats, 2, 0), strict=True))
    steps = stats["n_leapfrog__"]
    warmup = steps.shape[1] - settings.draws
    gradients = np.stack([steps[:, :warmup].sum(axis=1), steps[:, warmup:].sum(axis=1)], axis=1)
    release = ".".join(version("stanli").split(".")[:2])
    return NutsRun(
        variables={
            name.removeprefix(RENAMED): np.ascontiguousarray(
                fit.draws(name)[:, warmup:], dtype=np.float64
            )
            for name in fit.variables
        },
        sample_stats={
            ours: np.ascontiguousarray(stats[theirs][:, warmup:]).astype(kind)
            for theirs, (ours, kind) in SAMPLE_STATS.items()
        },
        step_size=np.asarray(fit.step_size, dtype=np.float64),
        gradients=gradients,
        seconds=seconds * gradients / gradients.sum(),
        stan_version=STAN_VERSIONS.get(release, f"unknown, that of stanli {release}"),
    )


def _starts(model: Any, program: StanProgram, inits: Any, chains: int, seed: int) -> dict[str, Any]:
    """Initial values as stanli's ``sample`` takes them: a radius, or unconstrained points."""
    if inits is None:
        return {}
    if isinstance(inits, Real):
        radius = float(inits)
        if not (radius >= 0 and math.isfinite(radius)):  # stanli would search forever
            raise DataError(f"the radius of initial values is 0 or more; got {inits}")
        return {"init_radius": radius}
    each = list(inits) if isinstance(inits, (list, tuple)) else [inits] * chains
    if len(each) != chains:
        raise DataError(f"{chains} chains need as many initial values; got {len(each)}")
    values = [_values(given) for given in each]
    try:
        return {"inits": _unconstrained(model, values, seed)}
    except ValueError as error:
        said = str(error).removeprefix("stanli init: ")
        raise DataError(f"{program.name}: initial values are refused: {said}") from error


def _values(given: Any) -> dict[str, list[float]]:
    """Return initial values of one chain, from a mapping or a file of JSON."""
    if isinstance(given, Mapping):
        return column_major(given)
    if not isinstance(given, (str, Path)):
        raise DataError(
            f"initial values are a radius, a mapping by name or a file of JSON; got {given!r}"
        )
    try:
        return column_major(json.loads(Path(given).read_text(encoding="utf-8")))
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(f"cannot read initial values from {given}: {error}") from error


def _unconstrained(model: Any, values: Sequence[Mapping[str, Any]], seed: int) -> FloatArray:
    """Return a starting point for each chain, shape (chains, n), filling in what was left out."""
    random: Any = None
    points = []
    for chain, given in enumerate(values):
        complete = dict(given)
        while True:
            try:
                points.append(model.unconstrain(complete))
                break
            except ValueError as error:
                # The error names one parameter at a time, even a parameter of size zero.
                missing = _NO_START.search(str(error))
                if missing is None or missing[1] in complete:
                    raise
            if random is None:
                random = _random_starts(model, len(values), seed)
            name = missing[1]
            drawn = random.draws(name)[chain, 0] if name in random.variables else []
            complete |= column_major({name: drawn})
    return np.stack(points)


def _random_starts(model: Any, chains: int, seed: int) -> Any:
    """Return a fit with one draw per chain, which is where Stan would start."""
    return _fixed(model, chains, seed)


def _fixed(model: Any, chains: int, seed: int, **starts: Any) -> Any:
    """Return a fit with one draw per chain, which is where the chain starts."""
    return model.sample(
        chains=chains,
        seed=seed,
        warmup=0,
        samples=1,
        adapt_engaged=False,
        step_size=_NO_STEP,
        max_depth=1,
        parallel_chains=1,
        refresh=0,
        **starts,
    )
