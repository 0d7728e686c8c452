"""Transformed parameters and generated quantities at draws that a run has made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.model import Model
from harness.temper import tempered_model
from harness.user.generated import generate

PROGRAM = """
data {
  int N;
  vector[N] y;
}
parameters {
  real mu;
  real<lower=0> tau;
}
transformed parameters {
  real twice = 2 * mu;
}
model {
  mu ~ normal(0, 1);
  tau ~ exponential(1);
  y ~ normal(mu, tau);
}
generated quantities {
  vector[N] log_lik;
  real noise = normal_rng(mu, tau);
  for (n in 1 : N) {
    log_lik[n] = normal_lpdf(y[n] | mu, tau);
  }
  if (mu > 2) {
    reject("mu is too large");
  }
}
"""
CHAINS, DRAWS = 3, 40


@pytest.fixture
def model(tmp_path: Path) -> Model:
    path = tmp_path / "program.stan"
    path.write_text(PROGRAM, encoding="utf-8")
    return tempered_model(path, {"N": 2, "y": [0.3, -1.0]})


@pytest.fixture
def draws() -> dict[str, FloatArray]:
    rng = np.random.default_rng(1)
    shape = (CHAINS, DRAWS)
    return {"mu": rng.uniform(-2, 2, shape), "tau": rng.exponential(size=shape)}


def test_quantities_are_those_of_each_draw(model: Model, draws: dict[str, FloatArray]) -> None:
    draws["mu"][1, 7] = 2.5
    made = generate(model, draws, compiled=None, seed=3)
    z = (np.array([0.3, -1.0]) - draws["mu"][..., None]) / draws["tau"][..., None]
    log_lik = -0.5 * np.square(z) - np.log(draws["tau"][..., None]) - 0.5 * np.log(2 * np.pi)
    log_lik[1, 7] = np.nan  # where the program rejects
    np.testing.assert_allclose(made["log_lik"], log_lik, rtol=1e-12)
    np.testing.assert_allclose(made["twice"], 2 * draws["mu"], rtol=1e-12)
    assert np.flatnonzero(np.isnan(made["noise"])).tolist() == [DRAWS + 7]
    again = generate(model, draws, compiled=None, seed=3)
    np.testing.assert_array_equal(again["noise"], made["noise"])
    standard = (made["noise"] - draws["mu"]) / draws["tau"]
    assert len(np.unique(standard[:, 0].round(9))) == CHAINS  # each chain has its own stream


def test_generated_quantities_are_evaluated_once_a_draw(
    model: Model, draws: dict[str, FloatArray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others of the library's functions evaluate them too, however long they take."""
    points: dict[str, int] = {}
    constrain, unconstrain = BatchedDensity.constrain, BatchedDensity.unconstrain_draws

    def constrained(self: BatchedDensity, at: npt.ArrayLike, **how: Any) -> dict[str, FloatArray]:
        points[self.name] = points.get(self.name, 0) + len(np.asarray(at))
        return constrain(self, at, **how)

    def unconstrained(
        self: BatchedDensity, values: Mapping[str, npt.ArrayLike], **how: Any
    ) -> FloatArray:
        assert "without" in self.name
        return unconstrain(self, values, **how)

    monkeypatch.setattr(BatchedDensity, "constrain", constrained)
    monkeypatch.setattr(BatchedDensity, "unconstrain_draws", unconstrained)
    generate(model, draws, compiled=None, seed=3)
    (evaluated,) = (number for name, number in points.items() if "without" not in name)
    assert evaluated == CHAINS * DRAWS


def test_a_call_is_told_how_far_it_is_and_may_end_it(
    model: Model, draws: dict[str, FloatArray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.engine.threads._SECONDS_A_LOOK", 0.0)
    many = {name: np.tile(each, (1, 200)) for name, each in draws.items()}
    shares: list[float] = []
    generate(model, many, compiled=None, seed=3, follow=shares.append)
    assert shares == sorted(shares)
    assert 0 <= shares[0] < shares[-1] <= 1

    def stop(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate(model, many, compiled=None, seed=3, follow=stop)
