"""A program compiled to a shared library: the same density as by hand, and as in stanli."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from harness.arrays import FloatArray
from harness.engine import stan_source
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.engine.program_library import library_source
from harness.engine.toolchain import require_cmdstan
from harness.errors import DataError, ToolchainError

pytestmark = pytest.mark.compiled

# stanli does not read it: it has a tuple.
PROGRAM = """data {
  int<lower=1> K;
  vector[K] y;
}
parameters {
  vector[K] mu;
  real<lower=0> s;
}
transformed parameters {
  tuple(real, real) both = (mu[1], s);
  matrix[2, K] twice = [mu', mu'];
}
model {
  if (both.1 > 50) {
    reject("too far");
  }
  target += normal_lpdf(mu | 0, 2);
  target += exponential_lpdf(s | 1);
  target += normal_lpdf(y | mu, s);
}
generated quantities {
  real u = normal_rng(0, 1);
}
"""
Y = np.array([0.3, -1.2])
DATA = {"K": 2, "y": Y}


@pytest.fixture
def program(tmp_path: Path) -> StanProgram:
    path = tmp_path / "with_a_tuple.stan"
    path.write_text(PROGRAM)
    return StanProgram(path)


def by_hand(point: FloatArray) -> float:
    mu, s = point[:2], np.exp(point[2])
    prior = np.sum(norm.logpdf(mu, 0, 2)) - s
    return float(prior + np.sum(norm.logpdf(Y, mu, s)) + point[2])  # log s: the Jacobian


def test_density_and_gradient(program: StanProgram) -> None:
    points = np.random.default_rng(1).normal(size=(64, 3))
    density = BatchedDensity(program, DATA, threads=2)
    value, gradient = density(points)
    np.testing.assert_allclose(value, [by_hand(point) for point in points], rtol=1e-12)
    step = 1e-6
    for k, direction in enumerate(np.eye(3)):
        slope = [
            (by_hand(point + step * direction) - by_hand(point - step * direction)) / (2 * step)
            for point in points
        ]
        # Central differences: their error is of the order of step^2 and of 1e-16 / step.
        np.testing.assert_allclose(gradient[:, k], slope, rtol=1e-6, atol=1e-7)
    alone = BatchedDensity(program, DATA, native=False)(points)
    assert np.array_equal(value, alone[0])
    assert np.array_equal(gradient, alone[1])


def test_a_rejected_point_has_no_density(program: StanProgram) -> None:
    density = BatchedDensity(program, DATA)
    value, gradient = density([[60.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert value[0] == -np.inf
    assert np.isfinite(value[1])
    assert not gradient[0].any()
    with pytest.raises(RuntimeError, match="too far"):
        density.at([60.0, 0.0, 0.0])


def test_values_and_random_numbers(program: StanProgram) -> None:
    density = BatchedDensity(program, DATA)
    assert density.shapes == {"mu": (2,), "s": ()}
    points = np.random.default_rng(2).normal(size=(400, 3))
    drawn = density.constrain(points, transformed=True, seed=3)
    np.testing.assert_allclose(drawn["s"], np.exp(points[:, 2]))
    assert np.array_equal(drawn["twice"], np.stack([points[:, :2]] * 2, axis=1))
    # 400 standard normal numbers: the mean and the standard deviation within four errors.
    assert abs(drawn["u"].mean()) < 4 / 20
    assert abs(drawn["u"].std() - 1) < 4 / np.sqrt(800)
    again = density.constrain(points, transformed=True, seed=3)
    assert np.array_equal(drawn["u"], again["u"])
    back = density.unconstrain_draws({name: drawn[name] for name in ("mu", "s")})
    np.testing.assert_allclose(back, points, rtol=1e-12, atol=1e-12)


def test_refused_data(program: StanProgram) -> None:
    source = library_source(program, {"K": 2, "y": np.zeros(3)}, require_cmdstan())
    with pytest.raises(DataError, match=r"dims declared=\(2\); dims found=\(3\)"):
        source.instance()


def test_it_takes_the_place_of_stanli(
    program: StanProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    point = np.array([0.1, 0.2, 0.3])
    value, _ = BatchedDensity(program, DATA).at(point)
    assert value == pytest.approx(by_hand(point), rel=1e-12)
    monkeypatch.setattr(stan_source, "why_no_compiler", lambda: "There is no compiler.")
    with pytest.raises(ToolchainError, match=r"no compiler(.|\n)*stanli"):
        BatchedDensity(program, DATA)
