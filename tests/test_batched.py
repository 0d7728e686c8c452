"""Log densities of Stan programs at many points in one call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from stan_density import stanli

from harness.batched import BatchedDensity
from harness.errors import DataError
from harness.model import StanProgram


def program(folder: Path, text: str) -> StanProgram:
    path = folder / "small.stan"
    path.write_text(text)
    return StanProgram(path)


CONSTRAINED = """
data { int K; vector[K] y; }
parameters {
  real<lower=0> scale;
  simplex[K] share;
  ordered[3] cut;
  matrix<lower=-1, upper=2>[2, 3] box;
  cov_matrix[2] S;
  cholesky_factor_corr[3] L;
  array[2, 3] vector[2] deep;
  array[0] real nothing;
}
transformed parameters { real largest = max(share); }
model {
  y ~ normal(share, scale);
  scale ~ lognormal(0, 1);
  cut ~ normal(0, 2);
  S ~ inv_wishart(4, identity_matrix(2));
  L ~ lkj_corr_cholesky(2);
  for (i in 1:2) for (j in 1:3) deep[i, j] ~ normal(i, j);
}
generated quantities { real noise = normal_rng(largest, 1); }
"""
DATA = {"K": 4, "y": [0.3, -0.2, 1.0, 0.5]}


def test_values_and_gradients_are_those_of_stanlis_own_model(tmp_path: Path) -> None:
    small = program(tmp_path, CONSTRAINED)
    density = BatchedDensity(small, DATA)
    points = np.random.default_rng(1).normal(size=(20, density.dimension))
    value, gradient = density(points)
    model = stanli.Model(str(small.path), data=DATA)
    expected = [model.log_prob_grad(point) for point in points]
    assert value.tolist() == [each for each, _ in expected]
    assert np.array_equal(gradient, [each for _, each in expected])


def test_parameters_and_points_are_carried_to_and_fro(tmp_path: Path) -> None:
    small = program(tmp_path, CONSTRAINED)
    density = BatchedDensity(small, DATA)
    points = np.random.default_rng(2).normal(size=(6, density.dimension))
    values = density.constrain(points)
    assert {name: value.shape for name, value in values.items()} == {
        name: (6, *shape) for name, shape in density.shapes.items()
    }
    np.testing.assert_allclose(density.unconstrain_draws(values), points, rtol=1e-12, atol=1e-12)
    one = {name: value[3] for name, value in values.items()}
    np.testing.assert_allclose(density.unconstrain(one), points[3], rtol=1e-12, atol=1e-12)
    more = density.constrain(points, transformed=True, seed=1)
    assert more.keys() - values.keys() == {"largest", "noise"}
    assert np.array_equal(more["largest"], values["share"].max(axis=1))


def test_where_a_point_has_no_density_the_value_says_so(tmp_path: Path) -> None:
    density = BatchedDensity(
        program(
            tmp_path,
            "parameters { vector[2] x; } model {"
            "if (x[1] > 5) reject(x); target += sqrt(x[2]) - square(x[1]); }",
        ),
        {},
    )
    points = np.array([[1, 4], [6, 4], [1, -1], [np.nan, 4], [1, np.inf], [2, 1]])
    value, gradient = density(points)
    assert value.tolist() == [1, -np.inf, -np.inf, -np.inf, -np.inf, -3]
    expected = np.array([[-2, 0.25], [0, 0], [0, 0], [0, 0], [0, 0], [-4, 0.5]])
    np.testing.assert_allclose(gradient, expected)


def test_points_of_another_shape_and_values_outside_their_support_are_refused(
    tmp_path: Path,
) -> None:
    density = BatchedDensity(program(tmp_path, CONSTRAINED), DATA)
    with pytest.raises(DataError, match=r"small takes points of shape \(n, "):
        density(np.zeros(density.dimension))
    values = density.constrain(np.zeros((1, density.dimension)))
    with pytest.raises(DataError, match="no values of the parameter share"):
        density.unconstrain_draws({n: v for n, v in values.items() if n != "share"})
    with pytest.raises(DataError, match="scale"):
        density.unconstrain_draws(values | {"scale": [-1.0]})
