"""Time a gradient and a pseudo-sample of generated programs, under CmdStan, to the original's."""

from __future__ import annotations

import argparse
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cmdstanpy
import numpy as np

from harness.engine.compile import compile_programs
from harness.engine.toolchain import require_cmdstan
from harness.forms.common import variant_data
from harness.forms.pseudo_extended import PseudoExtended
from harness.temper import tempered_model

from .gradients import microseconds_per_gradient

TARGET = 1.2
_ORIGINAL, _TEMPERED = "original", "pseudo-extended"

SCHOOLS = """
data {
  int<lower=0> J;
  vector[J] y;
  vector<lower=0>[J] sigma;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[J] eta;
}
transformed parameters {
  vector[J] theta = mu + tau * eta;
}
model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
  eta ~ std_normal();
  y ~ normal(theta, sigma);
}
"""

SCHOOLS_DATA: dict[str, Any] = {
    "J": 8,
    "y": [28, 8, -3, 7, -1, 1, 18, 12],
    "sigma": [15, 10, 16, 11, 9, 11, 10, 18],
}

_REGRESSION = """
data {
  int<lower=0> n;
  int<lower=0> K;
  matrix[n, K] x;
  vector[n] y;
}
parameters {
  real alpha;
  vector[K] beta;
  real<lower=0> sigma;
}
model {
  alpha ~ normal(0, 5);
  beta ~ normal(0, 2);
  sigma ~ exponential(1);
  y ~ normal(alpha + x * beta, sigma);
}
"""

_LOOP = """
data {
  int<lower=0> n;
  vector[n] y;
}
parameters {
  ordered[2] mu;
  vector<lower=0>[2] sigma;
  real<lower=0, upper=1> share;
}
model {
  mu ~ normal(0, 5);
  sigma ~ lognormal(0, 1);
  share ~ beta(2, 2);
  for (i in 1 : n) {
    target += log_mix(share, normal_lpdf(y[i] | mu[1], sigma[1]),
                      normal_lpdf(y[i] | mu[2], sigma[2]));
  }
}
"""


def _programs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Titles, programs and data."""
    rng = np.random.default_rng(1)
    yield "eight schools", SCHOOLS, SCHOOLS_DATA
    x = rng.normal(size=(500, 5))
    regression = {"n": 500, "K": 5, "x": x, "y": x.sum(axis=1) + rng.normal(size=500)}
    yield "regression, vectorised, n = 500", _REGRESSION, regression
    mixture = {"n": 200, "y": rng.normal(2 * rng.integers(0, 2, 200) - 1, 0.7)}
    yield "mixture, a loop over scalars, n = 200", _LOOP, mixture


def print_temper(options: argparse.Namespace) -> None:
    """Print microseconds a gradient, and each pseudo-sample's share to the original's, by round."""
    cmdstanpy.utils.get_logger().setLevel(logging.ERROR)
    worst = 0.0
    for title, text, data in _programs():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program.stan"
            path.write_text(text, encoding="utf-8")
            model = tempered_model(path, data)
        programs = {
            _ORIGINAL: model.program("original"),
            _TEMPERED: model.program(PseudoExtended.name),
        }
        made = compile_programs(programs.values(), require_cmdstan())
        compiled = {name: made[program] for name, program in programs.items()}
        print(f"\n{title}, {options.rounds} rounds, processor time:")
        for num in (2, 5):
            form = PseudoExtended(num)
            everything = variant_data(model, form.program, form.data(model, None))
            times = microseconds_per_gradient(compiled, everything, options.rounds)
            ratio = times[_TEMPERED] / times[_ORIGINAL] / num
            worst = max(worst, float(np.median(ratio)))
            print(
                f"  N = {num}: {np.median(times[_ORIGINAL]):.2f} µs and "
                f"{np.median(times[_TEMPERED]):.2f} µs; a pseudo-sample takes "
                f"{np.median(ratio):.2f} times the original [{ratio.min():.2f}, {ratio.max():.2f}]"
            )
    print(
        f"\na pseudo-sample takes at most {worst:.2f} times the original (target: {TARGET} or less)"
    )
