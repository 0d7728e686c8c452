"""Whether stanli and CmdStan have one log density is asked before a pilot is relied on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stan_density import stanli

from harness.engine.stanli_package import FAULTY_PASSES
from harness.errors import ToolchainError
from harness.user import sample
from harness.user.agreement import Evaluated, difference

assert stanli is not None

# Densities of all the data in a loop, which stanli 0.24 gets wrong with all of its passes.
GROUPS = """data {
  int<lower=1> N;
  vector[4] y;
}
parameters {
  vector[N] mu;
}
model {
  vector[N] log_lik;
  for (n in 1 : N) {
    log_lik[n] = normal_lpdf(y | mu[n], 1);
  }
  mu ~ normal(0, 2);
  target += sum(log_lik);
}
"""
DATA = {"N": 6, "y": [1.0, 3.0, -2.0, 0.5]}


def evaluated() -> Evaluated:
    rng = np.random.default_rng(1)
    return rng.normal(size=3) * 50, rng.normal(size=(3, 2)) * 20


def test_a_constant_is_no_difference() -> None:
    value, gradient = evaluated()
    assert difference((value + 1e6, gradient), (value, gradient)) is None
    assert difference((value, gradient * (1 + 1e-7)), (value, gradient)) is None


def test_what_differs_is_said() -> None:
    value, gradient = evaluated()
    other = value + np.array([0, 0, 1])
    assert str(difference((other, gradient), (value, gradient))).startswith("log densities, by 1 ")
    steeper = gradient + 0.5 * np.eye(3, 2, -1)
    assert difference((value, steeper), (value, gradient)) == "gradients, by 0.5"


@pytest.mark.parametrize("which", [0, 1])
def test_what_is_no_number_differs(which: int) -> None:
    value, gradient = evaluated()
    parts = [value.copy(), gradient.copy()]
    parts[which][-1] = np.nan
    assert difference((value, gradient), (parts[0], parts[1])) is not None


@pytest.mark.compiled
def test_no_pilot_with_another_density(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same program with and without stanli's faulty passes."""
    path = tmp_path / "groups.stan"
    path.write_text(GROUPS, encoding="utf-8")
    common: dict[str, Any] = {"seed": 1, "engine": "cmdstan", "progress": False, "draws": 500}
    result = sample(path, DATA, **common)
    assert result.log_evidence is not None
    assert result.fit.tree.attrs["gradients_pilot"] > 0
    assert sample(path, DATA, method="collapsed_tempering", **common).log_evidence is not None

    monkeypatch.setattr("harness.engine.stanli_package.FAULTY_PASSES", ())
    for name in FAULTY_PASSES:
        monkeypatch.delenv(name)
    result = sample(path, DATA, **common)
    assert result.method == "nuts"
    assert result.log_evidence is None
    [finding] = [each for each in result.diagnosis if "pilot" in each.sentence]
    assert "stanli, which runs the pilots, and CmdStan disagree" in finding.sentence
    assert "they differ in log densities" in finding.sentence
    with pytest.raises(ToolchainError, match=r"groups.stan: stanli.* differ in .*--method nuts"):
        sample(path, DATA, method="collapsed_tempering", **common)
