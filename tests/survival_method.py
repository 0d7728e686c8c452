"""A method for tests with real processes: normal draws from the seed, and a log of each run.

A module of its own, so that worker processes and Dask workers can import it.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

from harness.errors import SamplingError
from harness.fit import Fit, build_fit
from harness.methods.method import Method
from harness.model import Model
from harness.nuts import NutsSettings


def sample(
    model: Model, *, nuts: NutsSettings, seed: int, compiled: None, fails: str | None
) -> Fit:
    """Draw from a normal after a short sleep; append ``SEED PID THREADS`` to ``$TINY_LOG``."""
    with Path(os.environ["TINY_LOG"]).open("a") as log:
        log.write(f"{seed} {os.getpid()} {os.environ.get('OPENBLAS_NUM_THREADS')}\n")
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
    return build_fit(
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
