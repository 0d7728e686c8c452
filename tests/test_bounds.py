"""Unconstrained values of parameters with fixed bounds are those of the library."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.engine.batched import BatchedDensity
from harness.engine.bounds import Bounds, fixed_bounds
from harness.engine.program import StanProgram
from harness.errors import DataError

BOUNDED = """
data {
  real least;
}
parameters {
  array[2] vector[3] free;
  real<lower=0> scale;
  matrix<upper=-3>[2, 2] deep;
  array[2] real<lower=least, upper=5> share;
  vector<lower=-1e6>[2] far;
  real last;
}
"""
OTHERWISE = {
    "a bound that moves": "real a; real<lower=a> b;",
    "a simplex": "simplex[4] p; real<lower=0> s;",
    "an order": "ordered[3] c;",
    "a scale": "real<lower=0> s; vector<offset=1, multiplier=s>[3] x;",
    "a fixed scale": "vector<offset=1, multiplier=3>[3] x;",
    "a unit vector": "unit_vector[3] u;",
    "a factor": "cholesky_factor_corr[3] l;",
    "factors and numbers": "array[2] cholesky_factor_corr[4] l; vector<lower=0>[5] s; real x;",
    "a factor of covariances": "cholesky_factor_cov[3] l; real x;",
    "a wide factor of covariances": "cholesky_factor_cov[4, 3] l;",
    "simplexes and numbers": "array[3] simplex[4] p; matrix[2, 3] m; real<lower=-1, upper=2> r;",
    "numbers in order": "array[2] positive_ordered[3] c; ordered[4] d; real x;",
    "a sum to zero": "sum_to_zero_vector[5] z; real<upper=1> y;",
    "a correlation matrix": "corr_matrix[3] r; real x;",
    "a covariance matrix": "cov_matrix[2] r; real x;",
    "a unit vector among numbers": "real x; array[2] unit_vector[3] u; vector[2] y;",
}
KNOWN = {*OTHERWISE} - {
    *("a scale", "a fixed scale", "a unit vector", "a correlation matrix", "a covariance matrix"),
    "a unit vector among numbers",
}
"""Those whose transforms are known; the others are left to the library."""


def density(folder: Path, text: str) -> BatchedDensity:
    path = folder / "bounded.stan"
    path.write_text(text)
    return BatchedDensity(StanProgram(path), {"least": 2.5} if "least" in text else {})


def one_by_one(density: BatchedDensity, values: dict[str, np.ndarray]) -> np.ndarray:
    """By the library, which single draws are always left to."""
    count = len(next(iter(values.values())))
    return np.array(
        [density.unconstrain({n: v[k] for n, v in values.items()}) for k in range(count)]
    )


def test_fixed_bounds_are_read_off_the_library(tmp_path: Path) -> None:
    bounded = density(tmp_path, BOUNDED)
    found = fixed_bounds(bounded._constrained, bounded.dimension)
    assert found is not None
    inf = np.inf
    lower = [*[-inf] * 6, 0, *[-inf] * 4, 2.5, 2.5, -1e6, -1e6, -inf]
    upper = [*[inf] * 7, *[-3.0] * 4, 5, 5, inf, inf, inf]
    assert found.lower.tolist() == lower
    assert found.upper.tolist() == upper
    # Columns free[1, 1], free[2, 1], ...; the coordinates are those of free[1], then of free[2].
    assert found.place.tolist() == [0, 3, 1, 4, 2, 5, *range(6, 16)]


@pytest.mark.parametrize("text", [BOUNDED, *OTHERWISE.values()], ids=["bounds", *OTHERWISE])
def test_draws_together_are_those_one_by_one(tmp_path: Path, text: str) -> None:
    """Whatever the constraints are, and far out as well."""
    own = density(tmp_path, text if "{" in text else f"parameters {{ {text} }}")
    rng = np.random.default_rng(5)
    points = rng.normal(size=(60, own.dimension)) * rng.choice([0.1, 1.0, 5.0], size=(60, 1))
    values = own.constrain(points)
    together = own.unconstrain_draws(values, lengths="one")
    # Both lose digits where a value is near its bound; their rounding need not be the same there.
    np.testing.assert_allclose(together, one_by_one(own, values), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", OTHERWISE)
def test_what_is_known_is_not_left_to_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Its own way back takes thirty times as long where there are hundreds of numbers."""
    own = density(tmp_path, f"parameters {{ {OTHERWISE[kind]} }}")
    values = own.constrain(np.random.default_rng(7).normal(size=(40, own.dimension)))
    left: list[int] = []
    library = BatchedDensity._unconstrained

    def counted(self: BatchedDensity, columns: np.ndarray) -> np.ndarray:
        left.append(len(columns))
        return library(self, columns)

    monkeypatch.setattr(BatchedDensity, "_unconstrained", counted)
    own.unconstrain_draws(values, lengths="one")
    assert left == [0 if kind in KNOWN else 40]


@pytest.mark.parametrize(
    ("text", "name", "outside"),
    [
        ("simplex[3] p; real x;", "p", [0.5, 0.6, -0.1]),
        ("ordered[3] p; real x;", "p", [0.5, 0.4, 2.0]),
        ("sum_to_zero_vector[3] p; real x;", "p", [0.5, 0.4, 2.0]),
        ("cholesky_factor_corr[2] p; real x;", "p", [[1.0, 0.0], [0.9, 0.9]]),
    ],
)
def test_vectors_outside_their_support_are_refused(
    tmp_path: Path, text: str, name: str, outside: list[float]
) -> None:
    own = density(tmp_path, f"parameters {{ {text} }}")
    values = own.constrain(np.zeros((40, own.dimension)))
    values = {key: value.copy() for key, value in values.items()}
    values[name][3] = outside
    with pytest.raises(DataError):
        own.unconstrain_draws(values)


def test_the_library_is_asked_only_about_rows_that_it_disagrees_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = density(tmp_path, BOUNDED)
    values = own.constrain(np.random.default_rng(6).normal(size=(40, own.dimension)))
    asked: list[int] = []
    library = BatchedDensity._unconstrained

    def counted(self: BatchedDensity, columns: np.ndarray) -> np.ndarray:
        asked.append(len(columns))
        return library(self, columns)

    monkeypatch.setattr(BatchedDensity, "_unconstrained", counted)
    own.unconstrain_draws(values)
    assert asked == [0]
    # Wrong in some rows, as a bound that a probe did not show would be.
    right = Bounds.unconstrain
    monkeypatch.setattr(
        Bounds, "unconstrain", lambda self, v: right(self, v) + (np.arange(len(v)) < 3)[:, None]
    )
    again = own.unconstrain_draws(values)
    assert asked == [0, 3]
    monkeypatch.undo()
    np.testing.assert_allclose(again, one_by_one(own, values), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "outside"), [("scale", -0.1), ("share", 5.1), ("deep", -2.9), ("far", -1e6 - 1)]
)
def test_values_outside_their_support_are_refused(
    tmp_path: Path, name: str, outside: float
) -> None:
    own = density(tmp_path, BOUNDED)
    values = own.constrain(np.zeros((40, own.dimension)))
    values = {key: value.copy() for key, value in values.items()}
    values[name].flat[0] = outside
    with pytest.raises(DataError) as alone:
        own.unconstrain({key: value[0] for key, value in values.items()})
    with pytest.raises(DataError) as together:
        own.unconstrain_draws(values)
    assert str(together.value) == str(alone.value)


def test_values_on_their_bounds(tmp_path: Path) -> None:
    """Rounding puts draws there; they are infinitely far out, by the library as well."""
    own = density(tmp_path, BOUNDED)
    values = own.constrain(np.zeros((40, own.dimension)))
    values = {key: value.copy() for key, value in values.items()}
    values["scale"][0], values["share"][0] = 0.0, [2.5, 5.0]
    together = own.unconstrain_draws(values)
    np.testing.assert_array_equal(
        together[0], one_by_one(own, {k: v[:1] for k, v in values.items()})[0]
    )
    assert np.isneginf(together[0, 6])
