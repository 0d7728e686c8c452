"""Entries that are mirrored together, compared with all changes of signs and with factor models."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_modes import Plain

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.modes.group import Group, generated_group
from harness.modes.mirrored import MirroredEntries, Span, mirrored_together
from harness.modes.symmetries import Symmetries, find_symmetries
from harness.modes.target import Target

SIZE = 6


def waves(exponents: FloatArray, rates: FloatArray) -> Plain:
    """A density of products of odd and even functions of six numbers, one product for each row."""

    def density(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        odd, even = np.sin(rates * points), np.cos(rates * points)
        slope_odd, slope_even = rates * even, -rates * odd
        value = -0.5 * np.square(points).sum(axis=1)
        gradient = -points.copy()
        for row in exponents:
            factors = np.where(row == 1, odd, np.where(row == 2, even, 1.0))
            slopes = np.where(row == 1, slope_odd, np.where(row == 2, slope_even, 0.0))
            value += factors.prod(axis=1)
            for i in range(SIZE):
                others = np.delete(factors, i, axis=1).prod(axis=1)
                gradient[:, i] += slopes[:, i] * others
        return value, gradient

    return Plain(density, dict.fromkeys("abcdef", ()))


@pytest.mark.parametrize("seed", range(20))
def test_the_group_is_that_of_all_signs(seed: int) -> None:
    """Of all 64 changes of six signs, it has those under which each product stays as it is.

    A product stays if an even number of its odd factors change sign.
    """
    rng = np.random.default_rng([20, seed])
    exponents = rng.integers(0, 3, size=(rng.integers(1, 6), SIZE))
    # No more than three odd factors, so that each equation shows where two sets are not 0.
    for row in exponents:
        odd = np.flatnonzero(row == 1)
        row[rng.permutation(odd)[3:]] = 2
    target = waves(exponents.astype(np.float64), rng.uniform(0.5, 1.5, SIZE))
    points = rng.normal(size=(10, SIZE))
    made = list(mirrored_together(target, points[:2]))
    span = Span()
    for each in made:
        span.add(sum(1 << "abcdef".index(name) for name in each.parameters))
    for signs in product((0, 1), repeat=SIZE):
        stays = not np.any((exponents == 1) @ np.array(signs) % 2)
        assert (sum(bit << i for i, bit in enumerate(signs)) in span) == stays


def test_a_span_has_the_sums_of_its_rows() -> None:
    """Compared with all sums of three rows that are listed."""
    span = Span()
    for row in (0b1100, 0b0110, 0b1010):
        span.add(row)
    sums = {0, 0b1100, 0b0110, 0b1010}
    assert {row for row in range(16) if row in span} == sums


FACTORS = """
data {{
  int N;
  matrix[N, 6] Y;
}}
parameters {{
  {declared};
  vector[6] loading;
  vector<lower=0>[6] noise;
}}
model {{
  matrix[6, 3] Lambda = rep_matrix(0, 6, 3);
  for (j in 1 : 6) {{
    Lambda[j, (j + 1) %/% 2] = loading[j];
  }}
  {prior};
  loading ~ normal(0, 1);
  noise ~ normal(0, 1);
  for (n in 1 : N) {{
    Y[n] ~ multi_normal(rep_vector(0, 6),
                        quad_form_sym({omega}, Lambda') + diag_matrix(square(noise)));
  }}
}}
"""


def density_of_text(tmp_path: Path, text: str, data: Mapping[str, Any]) -> BatchedDensity:
    (tmp_path / "model.stan").write_text(text)
    return BatchedDensity(StanProgram(tmp_path / "model.stan"), dict(data))


def group_of(target: Target, dimension: int) -> tuple[Symmetries, Group]:
    points = 0.5 * np.random.default_rng(4).normal(size=(12, dimension))
    symmetries = find_symmetries(target, points, most_seconds=np.inf)
    group = generated_group(symmetries)
    assert group is not None
    return symmetries, group


@pytest.mark.parametrize(
    ("declared", "prior", "omega"),
    [
        (
            "cholesky_factor_corr[3] R",
            "R ~ lkj_corr_cholesky(2)",
            "multiply_lower_tri_self_transpose(R)",
        ),
        ("corr_matrix[3] R", "R ~ lkj_corr(2)", "R"),
        ("cov_matrix[3] R", "R ~ wishart(5, identity_matrix(3))", "R"),
        (
            "cholesky_factor_cov[3] R",
            "R ~ wishart_cholesky(5, identity_matrix(3))",
            "multiply_lower_tri_self_transpose(R)",
        ),
    ],
)
def test_correlated_factors_have_no_signs(
    tmp_path: Path, declared: str, prior: str, omega: str
) -> None:
    """Three factors whose loadings are parts of one vector: eight copies.

    With the sign of a factor change the loadings on it and its correlations with the others.
    """
    pytest.importorskip("stanli")
    rng = np.random.default_rng(5)
    text = FACTORS.format(declared=declared, prior=prior, omega=omega)
    target = density_of_text(tmp_path, text, {"N": 8, "Y": rng.normal(size=(8, 6)).tolist()})
    _, group = group_of(target, target.dimension)
    points = 0.5 * rng.normal(size=(3, target.dimension))
    values = target.constrain(points)
    expected = []
    for signs in product((1, -1), repeat=3):
        each = np.array(signs)
        changed = {
            **values,
            "R": values["R"] * np.outer(each, each),
            "loading": values["loading"] * np.repeat(each, 2),
        }
        before, after = (target(target.unconstrain_draws(some))[0] for some in (values, changed))
        assert after == pytest.approx(before, rel=1e-10)
        expected.append(group.rows(changed))
    elements = np.arange(len(group))
    images = [group.applied(np.full(3, each), group.rows(values)) for each in elements]
    assert len(group) == 8
    for row in expected:
        assert sum(np.allclose(row, image, atol=1e-12) for image in images) == 1


def test_scores_and_loadings_that_share_no_index(tmp_path: Path) -> None:
    """The scores on two factors are columns of a matrix, and the loadings are two vectors."""
    pytest.importorskip("stanli")
    text = """
    data { matrix[5, 4] Y; }
    parameters { matrix[5, 2] eta; vector[4] one; vector[4] other; real<lower=0> s; }
    model {
      to_vector(eta) ~ std_normal();
      one ~ normal(0.3, 1);
      other ~ std_normal();
      s ~ exponential(1);
      to_vector(Y) ~ normal(to_vector(eta[ : , 1] * one' + eta[ : , 2] * other'), s);
    }
    """
    rng = np.random.default_rng(6)
    target = density_of_text(tmp_path, text, {"Y": rng.normal(size=(5, 4)).tolist()})
    symmetries, group = group_of(target, target.dimension)
    assert len(group) == 2  # the prior of the first loadings knows their sign
    (change,) = symmetries.changes
    assert isinstance(change, MirroredEntries)
    assert change.mirrored["eta"].tolist() == [[False, True]] * 5
    assert change.mirrored["other"].all()
    assert set(change.parameters) == {"eta", "other"}


def test_bounds_and_sums_to_zero(tmp_path: Path) -> None:
    """A number between two bounds is mirrored at the middle, and a sum to zero as a whole."""
    pytest.importorskip("stanli")
    text = """
    parameters { array[3] real<lower=1, upper=5> x; sum_to_zero_vector[4] z; vector[2] free; }
    model {
      target += 0.3 * (x[2] - 3) * z[1] + 0.2 * square(x[1]) - 0.1 * free[1]^4;
      target += -dot_self([1, 2, 3, 4]' .* z);
      target += -square(x[3] - 3) * exp(free[1] + free[2]) - square(free[2]);
    }
    """
    target = density_of_text(tmp_path, text, {})
    symmetries, group = group_of(target, target.dimension)
    assert len(group) == 4
    made = [each for each in symmetries.changes if isinstance(each, MirroredEntries)]
    both = next(each for each in made if "z" in each.parameters)
    assert both.mirrored["x"].tolist() == [False, True, False]
    assert both.centres["x"][1] == pytest.approx(3)
    assert both.mirrored["z"].all()


def test_numbers_of_the_prior_alone_hide_no_copies(tmp_path: Path) -> None:
    """Sixty numbers that the data do not see could all be mirrored: too many to count."""
    pytest.importorskip("stanli")
    text = """
    parameters { vector[61] a; real b; }
    model {
      a ~ std_normal();
      b ~ std_normal();
      2 ~ normal(a[61] * b, 0.1);
    }
    """
    target = density_of_text(tmp_path, text, {})
    points = 0.5 * np.random.default_rng(4).normal(size=(12, target.dimension))
    symmetries = find_symmetries(target, points, most_seconds=np.inf)
    made = [each for each in symmetries.changes if isinstance(each, MirroredEntries)]
    assert [each.parameters for each in made] == [("a", "b")]
    assert made[0].mirrored["a"].tolist() == [False] * 60 + [True]
