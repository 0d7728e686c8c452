"""Wall time of `harness sample` with `auto` to that with plain NUTS, where plain NUTS suffices."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cmdstanpy
import numpy as np

from harness.engine.stan_data import plain_data

from .temper import SCHOOLS, SCHOOLS_DATA

_MOST_RATIO, _MOST_SECONDS = 2.5, 10.0
_ROUNDS = 3
"""Commands of each kind: the shortest counts, because whatever else the machine does adds to it."""

_LOGISTIC = """
data {
  int<lower=0> n;
  int<lower=0> J;
  int<lower=0> K;
  array[n] int<lower=1, upper=J> group;
  matrix[n, K] x;
  array[n] int<lower=0, upper=1> y;
}
parameters {
  real alpha;
  vector[K] beta;
  real<lower=0> tau;
  vector[J] z;
}
model {
  alpha ~ normal(0, 2);
  beta ~ std_normal();
  tau ~ std_normal();
  z ~ std_normal();
  y ~ bernoulli_logit(alpha + tau * z[group] + x * beta);
}
"""


def _programs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Titles, programs and data."""
    yield "eight schools", SCHOOLS, SCHOOLS_DATA
    rng = np.random.default_rng(3)
    n, J, K = 600, 20, 4
    group, x = rng.integers(1, J + 1, n), rng.normal(size=(n, K))
    logit = 0.3 + rng.normal(scale=0.7, size=J)[group - 1] + x @ [0.8, -0.5, 0.3, 0.0]
    y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    data = {"n": n, "J": J, "K": K, "group": group, "x": x, "y": y}
    yield "hierarchical logistic regression, n = 600, 20 groups", _LOGISTIC, data


def _own_threads() -> dict[str, str]:
    """Return the environment without what keeps benches to one thread: few users set that."""
    return {name: value for name, value in os.environ.items() if not name.endswith("NUM_THREADS")}


def print_automatic(_options: argparse.Namespace) -> None:
    """Print seconds of whole commands, and how many times NUTS's the other takes."""
    for title, text, data in _programs():
        with tempfile.TemporaryDirectory() as folder:
            program, given = Path(folder) / "program.stan", Path(folder) / "data.json"
            program.write_text(text, encoding="utf-8")
            cmdstanpy.write_stan_json(str(given), plain_data(data))
            seconds = dict.fromkeys(("nuts", "auto"), np.inf)
            for _ in range(_ROUNDS):
                for method in seconds:
                    command = [sys.executable, "-m", "harness", "sample", str(program)]
                    command += ["--data", str(given), "--engine", "stanli", "--method", method]
                    began = time.perf_counter()
                    subprocess.run(command, check=True, capture_output=True, env=_own_threads())
                    seconds[method] = min(seconds[method], time.perf_counter() - began)
        print(
            f"\n{title}: plain NUTS {seconds['nuts']:.1f} s, auto {seconds['auto']:.1f} s (target: "
            f"{_MOST_SECONDS:.0f} or less), {seconds['auto'] / seconds['nuts']:.2f} times as long "
            f"(target: {_MOST_RATIO} or less)"
        )
