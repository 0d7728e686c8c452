"""The real thing: CmdStan assembled from the package index compiles and runs a model."""

from __future__ import annotations

import os
from pathlib import Path

import cmdstanpy
import pytest

from harness.engine.toolchain import require_cmdstan

BERNOULLI = """
data {
  int<lower=0> N;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  real<lower=0, upper=1> theta;
}
model {
  theta ~ beta(1, 1);
  y ~ bernoulli(theta);
}
"""


@pytest.mark.compiled
@pytest.mark.slow
def test_assembled_from_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.delenv("CMDSTAN", raising=False)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    # A home of its own, or a CmdStan in ~/.cmdstan would be taken instead.
    monkeypatch.setenv("HOME", str(tmp_path))
    found = require_cmdstan()
    assert found.source == "assembled"
    assert cmdstanpy.cmdstan_version() == (2, 39)
    program = tmp_path / "bernoulli.stan"
    program.write_text(BERNOULLI)
    model = cmdstanpy.CmdStanModel(stan_file=program)
    data = {"N": 10, "y": [0, 1, 0, 0, 0, 0, 0, 0, 0, 1]}
    fit = model.sample(data, chains=2, seed=1, show_progress=False, output_dir=tmp_path / "out")
    assert fit.stan_variable("theta").mean() == pytest.approx(0.25, abs=0.03)
    assert fit.summary().loc["theta", "R_hat"] == pytest.approx(1, abs=0.02)
    assert "no problems detected" in fit.diagnose()
