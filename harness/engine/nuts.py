"""Run Stan's NUTS through CmdStanPy, with an explicit seed and in a folder of its own."""

from __future__ import annotations

import logging
import math
import operator
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import cmdstanpy
import numpy as np
import psutil

from harness.arrays import FloatArray
from harness.engine.compile import CompiledProgram
from harness.engine.iterations import Follow, between_lines, followed
from harness.engine.processes import children_end_with_us, end_descendants
from harness.engine.staging import temporary_folder
from harness.engine.stan_csv import read_chain
from harness.engine.stan_data import plain_data
from harness.engine.why_ended import some_finished, stan_message
from harness.errors import DataError, SamplingError, SomeChainsError

# Enough digits for every double to survive the CSV file unchanged.
_EXACT_DIGITS = 17

_BOUNDS = {
    "chains": (1, 1000),
    "warmup": (20, 10_000_000),
    "draws": (1, 10_000_000),
    "max_treedepth": (1, 30),
    "parallel_chains": (1, 1000),
}
"""Smallest and largest value of each setting that is a whole number.

More would not fit in memory, and Stan counts iterations and leapfrog steps in 32 bits.
"""


ADAPTS_METRIC = 150
"""Iterations of warm-up from which on Stan adapts the metric.

Its phases do not fit into fewer, and then the one window in which it would learn the metric never
ends: the metric stays as it was at the start, and only the step size adapts.
"""
_LEAST_DEPTH, _LEAST_ITERATIONS = 5, 0.25
_UNUSUAL = 8
"""Times the usual gradients of an iteration that a trajectory may take where they are known."""


@dataclass(frozen=True)
class NutsSettings:
    """Settings of a run of NUTS; the defaults are Stan's.

    Attributes
    ----------
    chains, warmup, draws
        Number of chains, and of warm-up iterations and draws in each.
    target_accept
        Target of the mean acceptance statistic, Stan's ``delta``.
    max_treedepth
        Largest number of doublings of a trajectory.
    metric
        Form of the mass matrix.
    parallel_chains
        Number of chains that run at once, each in a CmdStan process.
    time_limit
        Seconds after which the run is stopped; None for no limit.  stanli then runs in a process of
        its own.
    """

    chains: int = 4
    warmup: int = 1000
    draws: int = 1000
    target_accept: float = 0.8
    max_treedepth: int = 10
    metric: Literal["diag_e", "dense_e", "unit_e"] = "diag_e"
    parallel_chains: int = 1
    time_limit: float | None = None

    def __post_init__(self) -> None:
        for name, (least, most) in _BOUNDS.items():
            value = getattr(self, name)
            try:
                whole = operator.index(value)
            except TypeError:
                raise DataError(f"NUTS takes a whole number of {name}; got {value!r}") from None
            if not least <= whole <= most:
                word = "warm-up iterations" if name == "warmup" else name
                raise DataError(f"NUTS takes from {least} to {most:,} {word}; got {whole}")
        if self.time_limit is not None and not self.time_limit > 0:
            raise DataError(f"a time limit is more than 0 seconds; got {self.time_limit}")
        if not 0 < self.target_accept < 1:
            raise DataError(f"target_accept lies between 0 and 1; got {self.target_accept}")

    def within(self, gradients: float, *, usual: float | None = None) -> NutsSettings:
        """Return settings of a run that evaluates no more gradients than these, if that can be.

        Trajectories become shorter first, down to a tree depth of 5, and then there are fewer
        iterations, down to a quarter.  Warm-up stays long enough to adapt the metric, if it was.

        Parameters
        ----------
        gradients
            Largest number of gradients of all chains together.
        usual
            Gradients that an iteration takes on average, if a run has shown that.  Then it is these
            that count, and only trajectories of more than eight times as many become shorter.
        """
        iterations = self.chains * (self.warmup + self.draws)
        depth = self.max_treedepth
        if usual is None:
            while depth > _LEAST_DEPTH and iterations * 2**depth > gradients:
                depth -= 1
            usual = 2**depth
        else:
            depth = min(depth, max(_LEAST_DEPTH, math.ceil(math.log2(_UNUSUAL * usual))))
        share = min(1.0, max(gradients / (iterations * usual), _LEAST_ITERATIONS))
        warmup = max(math.ceil(share * self.warmup), min(self.warmup, ADAPTS_METRIC))
        return replace(
            self, max_treedepth=depth, warmup=warmup, draws=math.ceil(share * self.draws)
        )

    @property
    def for_kept_metric(self) -> NutsSettings:
        """Settings of a run that keeps a metric, with no more warm-up than its step size needs."""
        return replace(self, warmup=min(self.warmup, ADAPTS_METRIC - 1))

    def metric_of(self, inv_metric: FloatArray | None) -> dict[str, Any]:
        """Return the form of the metric as engines take it, with a given inverse one if any."""
        if inv_metric is None:
            return {"metric": self.metric}
        form = "diag_e" if inv_metric.ndim == 1 else "dense_e"
        return {"metric": form, "inv_metric": inv_metric}

    def refuse_too_large(self, numbers: int) -> None:
        """Refuse a run whose draws would not fit in memory.

        Parameters
        ----------
        numbers
            How many numbers the program writes for each iteration, or fewer if that is not known.

        Raises
        ------
        DataError
            If they would not fit.
        """
        iterations = self.chains * (self.warmup + self.draws)
        # Engines return warm-up and draws, of which parts are copied.
        needed = 2 * 8 * iterations * (numbers + len(SAMPLE_STATS))
        free = psutil.virtual_memory().available
        if needed > free:
            raise DataError(
                f"{self.chains} chains of {self.warmup:,} + {self.draws:,} iterations with "
                f"{numbers:,} numbers each need about {needed / 1e9:,.1f} GB of memory, and "
                f"{free / 1e9:,.1f} GB are free: take fewer"
            )

    def identity(self) -> dict[str, Any]:
        """Return the settings that the draws depend on; how many chains run at once is left out."""
        settings = asdict(self)
        del settings["parallel_chains"], settings["time_limit"]
        return settings


@dataclass(frozen=True)
class NutsRun:
    """Draws and statistics of a run; arrays start with axes (chain, draw).

    Attributes
    ----------
    variables
        Every variable that the program writes, by name.
    sample_stats
        Sampler statistics under ArviZ's names.
    step_size
        Step size after adaptation, shape (chains,).
    gradients
        Gradient evaluations per chain, in warm-up and in sampling, shape (chains, 2): the leapfrog
        steps that Stan reports.  Stan does not report the few of its search for a step size.
    seconds
        Seconds per chain that Stan spent in warm-up and in sampling, shape (chains, 2).
    stan_version
        Version of Stan that made the draws.
    """

    variables: dict[str, FloatArray]
    sample_stats: dict[str, FloatArray]
    step_size: FloatArray
    gradients: FloatArray
    seconds: FloatArray
    stan_version: str


SAMPLE_STATS: dict[str, tuple[str, type]] = {
    "lp__": ("lp", float),
    "accept_stat__": ("acceptance_rate", float),
    "stepsize__": ("step_size", float),
    "treedepth__": ("tree_depth", int),
    "n_leapfrog__": ("n_steps", int),
    "divergent__": ("diverging", bool),
    "energy__": ("energy", float),
}
"""Stan's column names, in its order, to ArviZ's names and types."""


def run_nuts(
    compiled: CompiledProgram,
    data: Mapping[str, Any],
    settings: NutsSettings,
    seed: int,
    *,
    inits: Any = None,
    inv_metric: FloatArray | None = None,
    follow: Follow | None = None,
) -> NutsRun:
    """Run NUTS on a compiled program.

    Parameters
    ----------
    compiled
        Executable to run.
    data
        Data of the program.
    settings
        Settings of the run.
    seed
        Seed, 0 to 2^32 - 1.  Chain c draws from the stream (seed, c).
    inits
        Initial values as CmdStanPy takes them; by default Stan's own random ones.
    inv_metric
        Inverse metric on the unconstrained space, variances (D,) or a covariance (D, D), that
        NUTS keeps: warm-up adapts only the step size.  It replaces ``settings.metric``.
    follow
        Is told how far the run is; see :data:`~harness.engine.iterations.Follow`.

    Raises
    ------
    SomeChainsError
        If some chains end without their draws, and others do not; the message ends with what Stan
        said.
    SamplingError
        If all do, or the system ends one.
    """
    form = settings.metric_of(inv_metric)
    if inv_metric is not None:
        form |= {
            # Only the last phase of warm-up is used, which adapts nothing but the step size.  The
            # first phase would not do: at its end Stan begins with a metric from no draws.
            "adapt_init_phase": 0,
            "adapt_metric_window": 0,
            "adapt_step_size": settings.warmup,
        }
    iterations = settings.warmup + settings.draws
    # Each run has a folder, because CmdStanPy names files by the second and would overwrite.
    with children_end_with_us(), temporary_folder() as folder:
        given = folder / "data.json"
        cmdstanpy.write_stan_json(str(given), plain_data(data))
        try:
            # Without the source CmdStanPy neither asks stanc nor compiles.
            model = cmdstanpy.CmdStanModel(exe_file=str(compiled.exe))
            with followed(folder, settings.chains, follow):
                fit = model.sample(
                    data=str(given),
                    chains=settings.chains,
                    parallel_chains=min(settings.parallel_chains, settings.chains),
                    seed=seed,
                    inits=inits,
                    iter_warmup=settings.warmup,
                    iter_sampling=settings.draws,
                    # Saved to count the gradients of warm-up, which cost time too.
                    save_warmup=True,
                    max_treedepth=settings.max_treedepth,
                    **form,
                    adapt_delta=settings.target_accept,
                    output_dir=folder,
                    sig_figs=_EXACT_DIGITS,
                    show_progress=False,
                    refresh=max(1, iterations) if follow is None else between_lines(iterations),
                    timeout=settings.time_limit,
                )
            return _collect(fit)
        except KeyboardInterrupt:
            # CmdStanPy's threads would continue and write to a folder that is being removed.
            end_descendants()
            raise
        except TimeoutError:
            raise SamplingError(
                f"{compiled.program.name}: stopped at the time limit of {settings.time_limit:g} s "
                f"(seed {seed})"
            ) from None
        except (RuntimeError, ValueError) as error:
            said = stan_message(folder, error)
            told = f"{compiled.program.name}: CmdStan did not finish (seed {seed}): {said}"
            if some_finished(error):
                raise SomeChainsError(told, said) from error
            raise SamplingError(told) from error


@dataclass
class _Hush:
    """How many runs want CmdStanPy's logger to be quiet; a process has only one such logger."""

    runs: int = 0
    level: int = logging.NOTSET
    lock: threading.Lock = field(default_factory=threading.Lock)


_HUSH = _Hush()


@contextmanager
def quiet_cmdstanpy() -> Iterator[None]:
    """Keep CmdStanPy from logging what our own progress and errors say.

    Runs of several threads overlap: the first silences the logger, and the last restores it.
    """
    logger = cmdstanpy.utils.get_logger()
    with _HUSH.lock:
        if _HUSH.runs == 0:
            _HUSH.level = logger.level
            logger.setLevel(logging.CRITICAL)
        _HUSH.runs += 1
    try:
        yield
    finally:
        with _HUSH.lock:
            _HUSH.runs -= 1
            if _HUSH.runs == 0:
                logger.setLevel(_HUSH.level)


def _collect(fit: cmdstanpy.CmdStanMCMC) -> NutsRun:
    chains = [read_chain(Path(file), "n_leapfrog__") for file in fit.runset.csv_files]
    draws = np.stack([chain for chain, _ in chains])  # (chain, draw, column)
    variables = {
        name: np.ascontiguousarray(variable.extract_reshape(draws))
        for name, variable in fit.metadata.stan_vars.items()
    }
    stats: dict[str, Any] = {
        ours: draws[..., fit.column_names.index(theirs)].astype(kind)
        for theirs, (ours, kind) in SAMPLE_STATS.items()
    }
    warmup_steps = np.array([steps.sum() for _, steps in chains])
    gradients = np.stack([warmup_steps, stats["n_steps"].sum(axis=1)], axis=1)
    seconds = np.array([[time["warmup"], time["sampling"]] for time in fit.time])
    config = fit.metadata.cmdstan_config
    version = ".".join(str(config[f"stan_version_{part}"]) for part in ("major", "minor", "patch"))
    return NutsRun(variables, stats, stats["step_size"][:, 0], gradients, seconds, version)
