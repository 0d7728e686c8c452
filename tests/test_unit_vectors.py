"""Unit vectors, whose draws do not record the length of the vector behind each."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import logsumexp
from stan_density import stanli

from harness.arrays import FloatArray, LogDensity
from harness.diagnosis import Severity
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.engine.unit_vectors import squared_lengths, with_lengths
from harness.errors import DataError
from harness.modes.permutations import Permutation
from harness.modes.symmetries import leaves_density
from harness.temper import tempered_model
from harness.user import evidence_from_fit, sample
from harness.user.belongs import difference_from_lp
from harness.user.draw_prior import prior_draws
from harness.user.peaked_lengths import PeakedLengths

assert stanli is not None

SEVERAL = """
parameters {
  matrix[2, 2] a;
  array[2] unit_vector[3] u;
  simplex[4] p;
  cholesky_factor_corr[3] l;
  real<lower=0> s;
  unit_vector[2] v;
  vector[2] w;
}
"""
DIRECTION = """
data {
  int K;
  vector[K] m;
  real y;
}
parameters {
  unit_vector[K] u;
  real a;
}
model {
  a ~ normal(0, 1);
  target += 4 * dot_product(u, m);
  y ~ normal(a + u[1], 0.5);
}
"""
AXIS = """
data {
  vector[3] m;
  real k;
}
parameters {
  unit_vector[3] u;
  real<lower=0> s;
}
model {
  s ~ exponential(1);
  target += log_sum_exp(k * dot_product(u, m), -k * dot_product(u, m) - 1);
}
"""
DATA: dict[str, Any] = {"K": 3, "m": [1.0, 0.0, 0.0], "y": 0.7}


def log_integral() -> float:
    """Stan's density has the factor (2 pi)^(3/2) of three normal numbers."""
    return log_z(4) + 1.5 * math.log(2 * math.pi)


def log_z(strength: float) -> float:
    """By quadrature over the first element of u, which is uniform on a sphere in three dimensions.

    Likelihood: exp(strength u_1) N(y | u_1, 1 + .5^2).
    """

    def density(first: float) -> float:
        return float(0.5 * np.exp(strength * first) * stats.norm.pdf(0.7, first, np.sqrt(1.25)))

    return float(np.log(quad(density, -1, 1)[0]))


def written(folder: Path, text: str, data: dict[str, Any] | None = None) -> BatchedDensity:
    path = folder / "program.stan"
    path.write_text(text)
    return BatchedDensity(StanProgram(path), data or {})


def check_integral(density: LogDensity, scale: list[float], seed: int, count: int) -> FloatArray:
    """By importance sampling from a Gaussian; returns its points."""
    proposed = np.random.default_rng(seed).normal(size=(count, 4)) * scale
    log_weight = density(proposed)[0] - np.sum(stats.norm.logpdf(proposed, 0, scale), axis=1)
    # Stan leaves the constants of ~ out.
    log_weight -= np.log(2 * np.pi * 0.5)
    error = np.exp(log_weight - logsumexp(log_weight)).std() * np.sqrt(len(log_weight))
    found = logsumexp(log_weight) - np.log(len(log_weight))
    assert abs(found - log_integral()) < 4 * error < 0.05
    return np.asarray(proposed)


def test_their_coordinates_are_read_off_the_library(tmp_path: Path) -> None:
    found = written(tmp_path, SEVERAL).unit_vectors
    assert found == (slice(4, 7), slice(7, 10), slice(17, 19))


def test_others_are_not_taken_for_them(tmp_path: Path) -> None:
    assert not written(tmp_path, "parameters { vector[3] a; simplex[1] p; real b; }").unit_vectors
    assert not written(tmp_path, "parameters { real a; }").unit_vectors


def test_draws_have_the_lengths_that_their_density_asks_for(tmp_path: Path) -> None:
    density = written(tmp_path, SEVERAL)
    points = np.random.default_rng(3).normal(size=(4000, density.dimension))
    values = density.constrain(points)
    again = density.unconstrain_draws(values)
    for each, size in zip(density.unit_vectors, (3, 3, 2), strict=True):
        squares = squared_lengths(again, [each])
        assert stats.kstest(squares, stats.chi2(size).cdf).pvalue > 1e-4
    for name, value in density.constrain(again).items():
        np.testing.assert_allclose(value, values[name], atol=1e-8)
    np.testing.assert_array_equal(again, density.unconstrain_draws(values))
    ones = density.unconstrain_draws(values, lengths="one")
    np.testing.assert_allclose(squared_lengths(ones, density.unit_vectors), 3)
    np.testing.assert_allclose(with_lengths(ones, density.unit_vectors), again)


def test_the_density_on_the_unconstrained_space_is_that_of_the_points(tmp_path: Path) -> None:
    """Importance sampling from a Gaussian around them gives its integral."""
    density = written(tmp_path, DIRECTION, DATA)
    check_integral(density, [1, 1, 1, 1.5], seed=4, count=200_000)


def test_the_prior_of_a_direction_has_a_known_integral(tmp_path: Path) -> None:
    path = tmp_path / "direction.stan"
    path.write_text(DIRECTION.replace("target += 4 * dot_product(u, m);", ""))
    drawn = prior_draws(tempered_model(path, DATA), seed=1)
    assert drawn.independent
    assert drawn.log_integral is not None
    assert drawn.log_integral.value == pytest.approx(1.5 * np.log(2 * np.pi), abs=1e-9)
    squares = np.sum(drawn.points[..., :3] ** 2, axis=-1).ravel()
    assert stats.kstest(squares, stats.chi2(3).cdf).pvalue > 1e-4


def test_peaked_lengths_change_no_integral(tmp_path: Path) -> None:
    density = written(tmp_path, DIRECTION, DATA)
    peaked = PeakedLengths(density)
    proposed = check_integral(peaked, [1.6, 1.6, 1.6, 1.5], seed=5, count=400_000)
    points, step = proposed[:5], 1e-6
    for k, gradient in enumerate(peaked(points)[1].T):
        there, back = (peaked(points + sign * step * np.eye(4)[k])[0] for sign in (1, -1))
        np.testing.assert_allclose((there - back) / (2 * step), gradient, rtol=1e-5, atol=1e-5)
    squares = squared_lengths(peaked.of_draws(proposed[:4000]), density.unit_vectors)
    assert stats.kstest(squares, stats.chi2(6).cdf).pvalue > 1e-4


def test_evidence_is_refused_where_draws_lack_the_opposite_direction(tmp_path: Path) -> None:
    """In Stan's density climbs end where all directions meet, and see no mode."""
    path, out = tmp_path / "axis.stan", tmp_path / "fit.nc"
    path.write_text(AXIS)
    data = {"m": [1.0, 0.0, 0.0], "k": 20.0}
    fit = sample(path, data, method="nuts", seed=1, engine="stanli", progress=False, out=out)
    assert (fit.posterior["u"].to_numpy()[..., 0] > 0).all()
    refused = evidence_from_fit(out, path, data, progress=False)
    assert refused.log_evidence is None
    assert any("the draws miss a mode" in each for each in refused.refusals)


@pytest.mark.parametrize("strength", [0, 4])
def test_log_z_of_a_program_with_a_direction(tmp_path: Path, strength: int) -> None:
    path, out = tmp_path / "direction.stan", tmp_path / "fit.nc"
    path.write_text(DIRECTION.replace("4 *", f"{strength} *"))
    truth = log_z(strength)
    result = sample(path, DATA, seed=2, engine="stanli", progress=False)
    found = result.log_evidence
    assert found is not None
    assert abs(found.value - truth) < 4 * found.mcse < 0.2
    told = [each.sentence for each in result.diagnosis if each.severity > Severity.FINE]
    assert not any("log Z" in each or "prior" in each for each in told)
    sample(path, DATA, method="nuts", seed=2, engine="stanli", progress=False, out=out)
    given = evidence_from_fit(out, path, DATA, progress=False)
    assert not given.refusals
    assert given.log_evidence is not None
    assert abs(given.log_evidence.value - truth) < 4 * given.log_evidence.mcse < 0.05
    with pytest.raises(DataError, match="draws of another program or of other data"):
        evidence_from_fit(out, path, DATA | {"y": 4.0}, progress=False)


def test_recorded_densities_have_the_lengths_that_draws_lack() -> None:
    rng = np.random.default_rng(6)
    points = rng.normal(size=(4, 500, 5))
    without = -0.5 * np.sum(points[..., 3:] ** 2, axis=-1)
    lp = without - 0.5 * rng.chisquare(3, size=without.shape)
    arrays = without, -points, points
    assert difference_from_lp(lp + 11, *arrays, lengths=3) is None
    assert difference_from_lp(lp, *arrays) is not None
    other = lp + 3 * points[..., 4]
    assert "lp__" in str(difference_from_lp(other, *arrays, lengths=3))


def test_directions_that_change_places_are_copies(tmp_path: Path) -> None:
    text = """
    parameters { array[2] unit_vector[2] u; vector[2] a; }
    model { for (k in 1 : 2) { target += 2 * u[k][1] - square(a[k] - u[k][2]); } }
    """
    density = written(tmp_path, text)
    points = np.random.default_rng(7).normal(size=(20, density.dimension))
    swapped = Permutation((("u", (0,)), ("a", (0,))), (1, 0))
    assert leaves_density(swapped, points, density)
    assert not leaves_density(Permutation((("u", (0,)),), (1, 0)), points, density)
