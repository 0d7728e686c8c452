"""Time per gradient of programs with one density, under CmdStan, as ratios inside one run."""

from __future__ import annotations

import argparse
import logging
import resource

import cmdstanpy
import numpy as np

from harness.compile import compile_programs
from harness.nuts import NutsSettings, run_nuts
from harness.toolchain import require_cmdstan
from harness.weights import FloatArray

from .forms import COMPARISONS, SHIPPED, Comparison

TARGET = 1.15
_SECONDS_A_RUN = 1.0
# Small steps make long trajectories: what a draw costs besides its gradients, to generate
# quantities and to write them, then weighs little.
_TARGET_ACCEPT = 0.999
_MAX_TREEDEPTH = 8
_WARMUP = 100


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def microseconds_per_gradient(comparison: Comparison, rounds: int) -> dict[str, FloatArray]:
    """Time a gradient of each program of a comparison.

    The programs take turns within each round, so that a machine that slows down slows all.
    Each round has its own seed; programs of one density have, up to rounding, the same
    trajectories.  What counts is CmdStan's processor time, so that other processes count less.

    Returns
    -------
    dict
        Microseconds a gradient of each round, shape (rounds,), by program.
    """
    compiled = compile_programs(comparison.programs.values(), require_cmdstan())

    def run(name: str, draws: int, seed: int) -> tuple[float, int]:
        nuts = NutsSettings(
            chains=1,
            warmup=_WARMUP,
            draws=draws,
            target_accept=_TARGET_ACCEPT,
            max_treedepth=_MAX_TREEDEPTH,
        )
        started = _processor_seconds()
        result = run_nuts(compiled[comparison.programs[name]], comparison.data, nuts, seed)
        return _processor_seconds() - started, int(result.gradients.sum())

    seconds, _ = run(SHIPPED, _WARMUP, seed=1)
    draws = max(_WARMUP // 2, round(2 * _WARMUP * _SECONDS_A_RUN / seconds) - _WARMUP)
    times: dict[str, list[float]] = {name: [] for name in comparison.programs}
    for seed in range(1, rounds + 1):
        for name in comparison.programs:
            seconds, gradients = run(name, draws, seed)
            times[name].append(1e6 * seconds / gradients)
    return {name: np.array(values) for name, values in times.items()}


def print_gradients(model: str, options: argparse.Namespace) -> None:
    """Print microseconds a gradient and each form's ratio to the shipped program, by round."""
    cmdstanpy.utils.get_logger().setLevel(logging.ERROR)
    for comparison in COMPARISONS[model]():
        times = microseconds_per_gradient(comparison, options.rounds)
        print(f"\n{comparison.title}, {options.rounds} rounds, processor time:")
        print(f"  {'form':22} {'µs':>8} {'ratio':>7} [min, max]")
        for name, values in times.items():
            ratio = values / times[SHIPPED]
            print(
                f"  {name:22} {np.median(values):8.2f} {np.median(ratio):7.2f} "
                f"[{ratio.min():.2f}, {ratio.max():.2f}]"
            )
        worst = max(float(np.median(times[SHIPPED] / values)) for values in times.values())
        print(f"  shipped takes {worst:.2f} times the best form's time (target: {TARGET} or less)")
