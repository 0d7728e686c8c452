"""The second engine: Stan's NUTS inside this process, with no C++ compiler, through stanli.

It makes the same kind of :class:`~harness.nuts.NutsRun` as CmdStan does.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from harness.density import require_stanli, stan_model
from harness.errors import DataError, SamplingError
from harness.model import StanProgram
from harness.nuts import SAMPLE_STATS, NutsRun, NutsSettings
from harness.weights import FloatArray

# Stan's own starting values: uniform on (-2, 2) on the unconstrained space.
_INIT_RADIUS = 2.0

_INV_TEMP = "free_inv_temp"


def run_stanli_nuts(
    program: StanProgram,
    data: Mapping[str, Any],
    settings: NutsSettings,
    seed: int,
    *,
    inits: Any = None,
) -> NutsRun:
    """Run NUTS on a program without compiling it.

    stanli times all chains together: a chain's seconds are its share of them by gradient
    evaluations.

    Parameters
    ----------
    program
        Program to run.
    data
        Data of the program.
    settings
        Settings of the run; a time limit is refused, since nothing can stop a run within this
        process.
    seed
        Seed, 0 to 2^32 - 1.  Chain c draws from the stream (seed, c), as CmdStan's does; the
        draws agree with CmdStan's in distribution, not digit for digit.
    inits
        Initial values as CmdStanPy takes them: a radius, or values by parameter for all chains or
        one mapping a chain.  Parameters that a mapping leaves out start at random.

    Raises
    ------
    ToolchainError
        If stanli is not installed.
    DataError
        If the program, its data, the seed or the initial values are refused, or a time limit is
        set.
    SamplingError
        If the run does not end; the message is Stan's.
    """
    if settings.time_limit is not None:
        raise DataError(
            "a run of the stanli engine cannot be stopped, so it takes no time limit: leave "
            "time_limit out, or use engine='cmdstan'"
        )
    if not 0 <= seed < 2**32:
        raise DataError(f"the seed lies between 0 and 2^32 - 1; got {seed}")
    model = stan_model(program, data)
    starts: dict[str, Any] = {"init_radius": _INIT_RADIUS}
    if isinstance(inits, (int, float)):
        starts["init_radius"] = float(inits)
    elif inits is not None:
        lowest = float(np.asarray(data.get("g_knot", [0.0]))[0])
        rows = [
            _unconstrained(model, program, values, rng, lowest)
            for values, rng in _each(inits, settings.chains, seed)
        ]
        starts["inits"] = np.array(rows, dtype=np.float64)
    started = time.perf_counter()
    try:
        fit = model.sample(
            chains=settings.chains,
            seed=seed,
            warmup=settings.warmup,
            samples=settings.draws,
            delta=settings.target_accept,
            max_depth=settings.max_treedepth,
            metric=settings.metric,
            parallel_chains=min(settings.parallel_chains, settings.chains),
            # Kept to count the gradients of warm-up, which have a cost too.
            save_warmup=True,
            refresh=0,
            **starts,
        )
    except (RuntimeError, ValueError) as error:
        raise SamplingError(
            f"{program.name}: stanli did not finish (seed {seed}): {error}"
        ) from error
    return _collect(fit, settings, time.perf_counter() - started)


def _collect(fit: Any, settings: NutsSettings, seconds: float) -> NutsRun:
    stats = dict(zip(SAMPLE_STATS, np.moveaxis(fit.sampler_stats, 2, 0), strict=True))
    steps = stats["n_leapfrog__"]
    warmup = steps.shape[1] - settings.draws
    gradients = np.stack([steps[:, :warmup].sum(axis=1), steps[:, warmup:].sum(axis=1)], axis=1)
    return NutsRun(
        variables={
            name: np.ascontiguousarray(fit.draws(name)[:, warmup:], dtype=np.float64)
            for name in fit.variables
        },
        sample_stats={
            ours: np.ascontiguousarray(stats[theirs][:, warmup:]).astype(kind)
            for theirs, (ours, kind) in SAMPLE_STATS.items()
        },
        step_size=np.asarray(fit.step_size, dtype=np.float64),
        gradients=gradients,
        seconds=seconds * gradients / gradients.sum(),
        stan_version=f"stanli {require_stanli().__version__}",
    )


def _each(
    inits: Mapping[str, Any] | Sequence[Mapping[str, Any]], chains: int, seed: int
) -> Iterator[tuple[Mapping[str, Any], np.random.Generator]]:
    """Yield each chain's initial values, and a source of what they leave out."""
    each = [inits] * chains if isinstance(inits, Mapping) else list(inits)
    if len(each) != chains:
        raise DataError(f"{chains} chains need as many initial values; got {len(each)}")
    return zip(each, np.random.default_rng(seed).spawn(chains), strict=True)


def _unconstrained(
    model: Any,
    program: StanProgram,
    values: Mapping[str, Any],
    rng: np.random.Generator,
    lowest_inv_temp: float,
) -> FloatArray:
    """Return a starting point on the unconstrained space, shape (n,).

    A user's values do not know the inverse temperatures: where they are left out they start
    somewhere in the middle of their range.
    """
    flat = {name: np.ravel(value, order="F").tolist() for name, value in values.items()}
    free = sum(name.split("[")[0] == _INV_TEMP for name in model.constrained_names)
    if free and _INV_TEMP not in flat:
        middle = rng.uniform(0.2, 0.8, free)
        flat[_INV_TEMP] = (lowest_inv_temp + (1 - lowest_inv_temp) * middle).tolist()
    try:
        return np.asarray(model.unconstrain(flat), dtype=np.float64)
    except ValueError as error:
        raise DataError(f"{program.name}: initial values are refused: {error}") from error
