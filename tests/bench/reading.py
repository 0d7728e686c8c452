"""What a fit costs outside CmdStan, and how fast its draws can be read."""

from __future__ import annotations

import argparse
import logging
import resource
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import cmdstanpy
import numpy as np
import pandas as pd
from cmdstanpy.utils import stancsv

from harness.arrays import FloatArray
from harness.engine.compile import CompiledProgram
from harness.engine.nuts import NutsSettings
from harness.engine.stan_csv import EXACT, read_chain
from harness.forms.common import Run, compiled_variant
from harness.forms.form import sample
from harness.forms.pseudo_extended import PseudoExtended
from harness.model import Model
from harness.models.gaussian_mixture import kou_mixture

from .forms import regression

TARGET = 0.05
# About ten seconds in CmdStan each.
_CASES: dict[str, tuple[Model, int, int]] = {
    "mixture, N = 5": (kou_mixture("a").model("mixture-a", lower=-10, upper=20), 5, 12_000),
    "horseshoe, d = 500, N = 2": (regression(30, 500), 2, 1000),
}


def _processor_seconds(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def overhead(
    model: Model, num_pseudo_samples: int, draws: int, compiled: CompiledProgram
) -> tuple[float, float]:
    """Processor seconds of a fit, of CmdStan and of everything else."""
    own, cmdstan = (
        _processor_seconds(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    run = Run(seed=1, nuts=NutsSettings(chains=1, draws=draws), compiled=compiled)
    sample(model, PseudoExtended(num_pseudo_samples), None, run)
    return (
        _processor_seconds(resource.RUSAGE_CHILDREN) - cmdstan,
        _processor_seconds(resource.RUSAGE_SELF) - own,
    )


def _with_pandas(path: Path) -> FloatArray:
    draws: FloatArray = pd.read_csv(path, comment="#", dtype=np.float64, **EXACT).to_numpy()
    return draws


def _with_cmdstanpy(path: Path) -> FloatArray:
    *_, lines = stancsv.parse_comments_header_and_draws(str(path))
    draws: FloatArray = stancsv.csv_bytes_list_to_numpy(lines)
    return draws


def _with_float(path: Path) -> FloatArray:
    *_, lines = stancsv.parse_comments_header_and_draws(str(path))
    return np.array([list(map(float, line.split(b","))) for line in lines])


def _shipped(path: Path) -> FloatArray:
    return read_chain(path, "n_leapfrog__")[0]


READERS: Mapping[str, Callable[[Path], FloatArray]] = {
    "shipped: pandas, no warm-up": _shipped,
    "pandas": _with_pandas,
    "CmdStanPy (numpy.loadtxt)": _with_cmdstanpy,
    "float": _with_float,
}


def time_readers(
    model: Model, num_pseudo_samples: int, draws: int, compiled: CompiledProgram, rounds: int
) -> dict[str, float]:
    """Least processor seconds of reading one run's file, by reader; they must agree exactly."""
    data: dict[str, Any] = {**model.data, **PseudoExtended(num_pseudo_samples).data(model, None)}
    with tempfile.TemporaryDirectory() as folder:
        fit = cmdstanpy.CmdStanModel(exe_file=str(compiled.exe)).sample(
            data=data,
            chains=1,
            seed=1,
            iter_sampling=draws,
            save_warmup=True,
            sig_figs=17,
            output_dir=folder,
            show_progress=False,
        )
        path = Path(fit.runset.csv_files[0])
        expected = _with_float(path)[-draws:]
        best = dict.fromkeys(READERS, np.inf)
        for _ in range(rounds):
            for name, read in READERS.items():
                started = time.process_time()
                found = read(path)
                best[name] = min(best[name], time.process_time() - started)
                np.testing.assert_array_equal(found[-draws:], expected)
    return best


def print_reading(options: argparse.Namespace) -> None:
    """Print the share of a fit that is spent outside CmdStan, and seconds of each reader."""
    cmdstanpy.utils.get_logger().setLevel(logging.ERROR)
    for title, (model, num, draws) in _CASES.items():
        compiled = compiled_variant(model, "pseudo_extended")
        cmdstan, own = overhead(model, num, draws, compiled)
        print(f"\n{title}, 1000 and {draws} draws, processor time:")
        print(
            f"  CmdStan {cmdstan:.1f} s, all else {own:.2f} s: {own / cmdstan:.1%} "
            f"(target: {TARGET:.0%})"
        )
        for name, seconds in time_readers(model, num, draws, compiled, options.rounds).items():
            print(f"  {name:30} {seconds:7.2f} s, {seconds / cmdstan:6.1%} of CmdStan's time")
