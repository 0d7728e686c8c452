"""A method for tests with real processes: normal draws from the seed, and a log of each run.

A module of its own, so that worker processes and Dask workers can import it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from harness.engine.nuts import NutsSettings
from harness.errors import SamplingError
from harness.fit import Fit, build_fit
from harness.forms.method import Method
from harness.model import Model

# What a task starts with ``$TINY_CHILD``; a test tells it from what else runs by these words.
CHILD = "import time; time.sleep(600)"


def sample(
    model: Model, *, nuts: NutsSettings, seed: int, compiled: None, fails: str | None
) -> Fit:
    """Draw from a normal after a short sleep.

    Appends ``SEED PID THREADS`` to ``$TINY_LOG`` when it begins, and to ``$TINY_LOG.sampled`` when
    it has the draws.
    """
    line = f"{seed} {os.getpid()} {os.environ.get('OPENBLAS_NUM_THREADS')}\n"
    log = Path(os.environ["TINY_LOG"])
    append(log, line)
    wait_for_permit(log)
    if "TINY_CHILD" in os.environ:
        quiet = subprocess.DEVNULL
        subprocess.run(
            [sys.executable, "-c", CHILD],
            stdout=quiet,
            stderr=quiet,
            check=False,
        )
    if fails is not None and not Path(os.environ["TINY_MENDED"]).exists():
        fail(fails, seed)
    time.sleep(float(os.environ.get("TINY_SECONDS", "0.01")))
    rng = np.random.default_rng(seed)
    shape = (nuts.chains, nuts.draws)
    costs: dict[str, Any] = {
        f"{cost}_{phase}": np.full(nuts.chains, 1.5 + seed % 7)
        for cost in ("seconds", "gradients")
        for phase in ("warmup", "sampling")
    }
    fit = build_fit(
        posterior={"x": rng.normal(size=(*shape, 2))},
        extended=None,
        sample_stats={
            "diverging": np.zeros(shape, bool),
            "tree_depth": np.ones(shape, int),
            "n_steps": np.ones(shape, int),
            "energy": rng.normal(size=shape),
        },
        constant_data=model.data,
        attrs={"method": "tiny", "model": model.name, "settings": {}, "seed": seed, **costs},
    )
    append(sampled_log(log), line)
    return fit


def sampled_log(log: Path) -> Path:
    """File with a line for each fit that was truly made."""
    return log.with_name(f"{log.name}.sampled")


def append(log: Path, line: str) -> None:
    """Write a line at the end of a file that other processes write to."""
    with log.open("a") as file:
        file.write(line)


def permit_path(gate: Path, pid: int, fits: int) -> Path:
    """File that lets a process go on that has made so many fits."""
    return gate / f"{pid}-{fits}"


def wait_for_permit(log: Path) -> None:
    """Wait until this process may go on, if there is a gate ``$TINY_GATE`` at all.

    It may when the folder has its permit, or ``open``, which is everybody's.
    """
    if "TINY_GATE" not in os.environ:
        return
    gate, sampled = Path(os.environ["TINY_GATE"]), sampled_log(log)
    lines = sampled.read_text().splitlines() if sampled.exists() else []
    mine = sum(int(line.split()[1]) == os.getpid() for line in lines)
    permit = permit_path(gate, os.getpid(), mine)
    while not (permit.exists() or (gate / "open").exists()):
        time.sleep(0.005)


def fail(how: str, seed: int) -> None:
    """Fail as Stan, memory, a bug of ours, or the system's memory killer would."""
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "memory":
        raise MemoryError
    if how == "bug":
        raise ZeroDivisionError("a bug")
    raise SamplingError(f"tiny: CmdStan did not finish (seed {seed}): Initialization failed.")


IN_THREADS = Method("tiny-thread", None, sample, driven_by="cmdstan")
IN_PROCESSES = Method("tiny-process", None, sample, driven_by="python")
