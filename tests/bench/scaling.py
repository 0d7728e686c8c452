"""Wall time of the mixture's quick grid with two workers against one."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.engine.compile import compile_programs
from harness.engine.toolchain import require_cmdstan
from harness.plan.catalogue import load_experiment


def seconds_of_run(folder: Path, workers: int) -> float:
    """Run the quick grid into a store in ``folder`` and return its wall time."""
    command = [sys.executable, "-m", "harness", "run", "mixture", "--profile", "quick"]
    started = time.perf_counter()
    subprocess.run(
        [*command, "--workers", str(workers), "--store", str(folder / f"workers-{workers}")],
        check=True,
        capture_output=True,
        env=dict(os.environ),
    )
    return time.perf_counter() - started


def print_scaling(_: argparse.Namespace) -> None:
    """Print both times and their ratio; the target is 0.58 or less on two cores."""
    cells = load_experiment("mixture").grid("quick")
    # Both runs then find what they need: neither pays for compiling.
    compile_programs({cell.program for cell in cells if cell.program}, require_cmdstan())
    with tempfile.TemporaryDirectory() as name:
        one, two = (seconds_of_run(Path(name), workers) for workers in (1, 2))
    print(f"\nmixture, quick: 1 worker {one:.1f} s, 2 workers {two:.1f} s, ratio {two / one:.2f}")
