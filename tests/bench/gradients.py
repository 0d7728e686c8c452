"""Time per gradient of programs with one density, under CmdStan, as ratios inside one run."""

from __future__ import annotations

import argparse
import logging
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import cmdstanpy
import numpy as np

from harness.arrays import FloatArray
from harness.engine.compile import CompiledProgram, compile_programs
from harness.engine.nuts import NutsSettings, run_nuts
from harness.engine.program import StanProgram
from harness.engine.toolchain import CmdStan, require_cmdstan

from .forms import COMPARISONS, SHIPPED, Comparison

TARGET = 1.15
PRODUCTS = "products in NumPy"
_SECONDS_A_RUN = 1.0
# Small steps make long trajectories: what a draw costs besides its gradients, to generate
# quantities and to write them, then weighs little.
_TARGET_ACCEPT = 0.999
_MAX_TREEDEPTH = 8
_WARMUP = 100


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def microseconds_per_gradient(
    compiled: Mapping[str, CompiledProgram],
    data: Mapping[str, Any],
    rounds: int,
    products: Callable[[], object] | None = None,
) -> dict[str, FloatArray]:
    """Time a gradient of each of several programs, the shipped one first.

    The programs take turns within each round, so that a machine that slows down slows all.
    Each round has its own seed; programs of one density have, up to rounding, the same
    trajectories.  What counts is CmdStan's processor time, so that other processes count less.

    Parameters
    ----------
    compiled
        Programs of one density, by name.
    data
        Data of them all.
    rounds
        Number of rounds.
    products
        What no gradient can do without, in NumPy, to be timed along with them.

    Returns
    -------
    dict
        Microseconds a gradient of each round, shape (rounds,), by program; ``PRODUCTS`` too, if
        they were given.
    """

    def run(name: str, draws: int, seed: int) -> tuple[float, int]:
        nuts = NutsSettings(
            chains=1,
            warmup=_WARMUP,
            draws=draws,
            target_accept=_TARGET_ACCEPT,
            max_treedepth=_MAX_TREEDEPTH,
        )
        started = _processor_seconds()
        result = run_nuts(compiled[name], data, nuts, seed)
        return _processor_seconds() - started, int(result.gradients.sum())

    seconds, _ = run(next(iter(compiled)), _WARMUP, seed=1)
    draws = max(_WARMUP // 2, round(2 * _WARMUP * _SECONDS_A_RUN / seconds) - _WARMUP)
    times: dict[str, list[float]] = {name: [] for name in compiled}
    for seed in range(1, rounds + 1):
        for name in compiled:
            seconds, gradients = run(name, draws, seed)
            times[name].append(1e6 * seconds / gradients)
        if products is not None:
            times.setdefault(PRODUCTS, []).append(1e6 * _seconds_a_call(products))
    return {name: np.array(values) for name, values in times.items()}


def _seconds_a_call(work: Callable[[], object], calls: int = 1000) -> float:
    """Processor time of a call."""
    started = time.process_time()
    for _ in range(calls):
        work()
    return (time.process_time() - started) / calls


def _optimised_by_stanc(program: StanProgram, cmdstan: CmdStan, folder: Path) -> CompiledProgram:
    """Compile a program with stanc's ``--O1``."""
    cmdstanpy.set_cmdstan_path(str(cmdstan.path))
    exe = cmdstanpy.compile_stan_file(
        shutil.copy(program.path, folder),
        stanc_options={"include-paths": list(map(str, program.include_paths)), "O1": True},
    )
    return CompiledProgram(program, Path(exe), digest="")


def _compiled(comparison: Comparison, o1: bool, folder: Path) -> dict[str, CompiledProgram]:
    """Compile all programs of a comparison, or the shipped one in two ways."""
    cmdstan = require_cmdstan()
    shipped = comparison.programs[SHIPPED]
    programs = {SHIPPED: shipped} if o1 else comparison.programs
    cached = compile_programs(programs.values(), cmdstan)
    compiled = {name: cached[program] for name, program in programs.items()}
    return compiled | ({"--O1": _optimised_by_stanc(shipped, cmdstan, folder)} if o1 else {})


def print_gradients(model: str, options: argparse.Namespace) -> None:
    """Print microseconds a gradient and each form's ratio to the shipped program, by round."""
    cmdstanpy.utils.get_logger().setLevel(logging.ERROR)
    for comparison in COMPARISONS[model]():
        if options.variants and comparison.variant not in options.variants:
            continue
        with tempfile.TemporaryDirectory() as folder:
            compiled = _compiled(comparison, options.o1, Path(folder))
            times = microseconds_per_gradient(
                compiled, comparison.data, options.rounds, comparison.products
            )
        print(f"\n{comparison.title}, {options.rounds} rounds, processor time:")
        print(f"  {'form':22} {'µs':>8} {'least':>8} {'ratio':>7} [min, max]")
        for name, values in times.items():
            ratio = values / times[SHIPPED]
            print(
                f"  {name:22} {np.median(values):8.2f} {values.min():8.2f} "
                f"{np.median(ratio):7.2f} [{ratio.min():.2f}, {ratio.max():.2f}]"
            )
        shipped = times[SHIPPED]
        worst = max(float(np.median(shipped / times[name])) for name in compiled)
        least = max(float(shipped.min() / times[name].min()) for name in compiled)
        print(
            f"  shipped takes {worst:.2f} times the best form's time, {least:.2f} by the least "
            f"times (target: {TARGET} or less)"
        )
