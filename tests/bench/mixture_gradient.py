"""A leapfrog step of the mixture's programs, as ratios inside one run."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

import cmdstanpy
import numpy as np

from harness.compile import compile_programs
from harness.methods.pseudo_extended import pseudo_extended_data
from harness.model import StanProgram
from harness.models.gaussian_mixture import kou_mixture
from harness.nuts import NutsSettings, run_nuts
from harness.paths import shipped
from harness.toolchain import require_cmdstan

FORMS = Path(__file__).parent / "mixture"


def microseconds_per_step(rounds: int, num_pseudo_samples: int) -> dict[str, np.ndarray]:
    """Time a leapfrog step of the shipped mixture program and of its alternatives.

    The programs take turns within each round, so that a machine that slows down slows all.
    Each round has its own seed; the programs have the same density and so, up to rounding,
    the same trajectories.

    Returns
    -------
    dict
        Microseconds a step of each round, shape (rounds,), by program.
    """
    model = kou_mixture("a").model("mixture-a", lower=-10, upper=20)
    include = (shipped("stan"),)
    programs = {
        "shipped (matrix product)": model.program("pseudo_extended"),
        "loop of squared_distance": StanProgram(FORMS / "loop_squared_distance.stan", include),
        "loop of multi_normal_lpdf": StanProgram(FORMS / "loop_multi_normal.stan", include),
    }
    compiled = compile_programs(programs.values(), require_cmdstan())
    data = {**model.data, **pseudo_extended_data(model, num_pseudo_samples)}
    nuts = NutsSettings(chains=1, warmup=300, draws=1000)
    times: dict[str, list[float]] = {name: [] for name in programs}
    for seed in range(1, rounds + 1):
        for name, program in programs.items():
            run = run_nuts(compiled[program], data, nuts, seed)
            times[name].append(1e6 * run.seconds.sum() / run.gradients.sum())
    return {name: np.array(values) for name, values in times.items()}


def print_mixture(options: argparse.Namespace) -> None:
    """Print microseconds a leapfrog step and the ratios to the obvious form."""
    rounds: int = options.rounds
    cmdstanpy.utils.get_logger().setLevel(logging.ERROR)
    for num_pseudo_samples in (2, 5):
        times = microseconds_per_step(rounds, num_pseudo_samples)
        obvious = times["loop of multi_normal_lpdf"]
        print(f"\nmixture, pseudo-extended, N = {num_pseudo_samples}, {rounds} rounds:")
        print(f"{'form':28} {'µs/step':>8} {'ratio':>7} {'[min, max]':>16}")
        for name, values in times.items():
            ratio = values / obvious
            print(
                f"{name:28} {np.median(values):8.2f} {np.median(ratio):7.2f} "
                f"[{ratio.min():.2f}, {ratio.max():.2f}]".rjust(16)
            )
