"""Places beside draws where a program's log density is +inf, is no number, or where it rejects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from stan_density import stanli

from harness.arrays import FloatArray
from harness.diagnosis import Severity
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.user import sample
from harness.user.sample import Method
from harness.user.undefined import Undefined, about_undefined, undefined_near

assert stanli is not None

TRUNCATED = """
data { int<lower=0> N; vector<lower=10>[N] y; }
parameters { real mu; }
model {
  mu ~ normal(0, 5);
  y ~ lognormal(mu, 0.05) T[10, ];
}
"""
Y = 10 + np.array([0.0025, 0.00125, 0.00625, 0.00375, 0.0025])
"""So close to the truncation that the likelihood is largest where its tail underflows."""


def density(folder: Path, body: str) -> BatchedDensity:
    path = folder / "program.stan"
    path.write_text(body, encoding="utf-8")
    return BatchedDensity(StanProgram(path), {"N": len(Y), "y": Y} if "data" in body else {})


def of_one(body: str) -> str:
    return "parameters { real x; } model { target += -0.5 * square(x); " + body + " }"


def near(target: BatchedDensity, draws: FloatArray) -> Undefined:
    return undefined_near(target, draws[:, None], most_seconds=60, seed=1)


def test_the_tail_of_a_truncation_underflows(tmp_path: Path) -> None:
    """Draws from a grid, where the density is finite: most of the posterior lies below them."""
    target = density(tmp_path, TRUNCATED)
    mu = np.linspace(-5, 5, 20_001)
    value = target.values(mu[:, None])
    assert value[0] == np.inf
    finite = np.where(value < np.inf, value, -np.inf)
    share = np.exp(finite - finite.max())
    rng = np.random.default_rng(1)
    draws = rng.choice(mu, 2000, p=share / share.sum())
    found = near(target, draws)
    assert found.infinite > 0.01
    assert found.not_numbers == found.rejected == 0
    (finding,) = about_undefined(found)
    assert finding.severity == Severity.PROBLEM
    assert "+inf" in finding.sentence
    far = rng.normal(draws.mean() + 3, 0.3, size=2000)
    assert near(target, far) == Undefined(0, 0, 0, "")
    assert about_undefined(near(target, far)) == []


def test_the_share_is_that_of_places_beyond_an_edge(tmp_path: Path) -> None:
    """All places beyond the edge count, whether +inf, no number or rejected, and no other.

    Draws are those of a half normal, and places are made by the same seed whatever the density.
    """
    draws = np.abs(np.random.default_rng(2).standard_normal(1000))
    shares = []
    for body in ("if (x < 0) target += 1 / 0.0;", "target += x > 0 ? 0 : log(-1);"):
        found = near(density(tmp_path, of_one(body)), draws)
        shares.append(found.infinite + found.not_numbers)
        assert found.rejected == 0
    rejected = near(density(tmp_path, of_one('if (x < 0) reject("x is below 0");')), draws)
    assert rejected.message.endswith("x is below 0")
    assert shares == [pytest.approx(rejected.rejected), pytest.approx(rejected.rejected)]
    assert rejected.rejected > 0.01
    (finding,) = about_undefined(rejected)
    assert finding.severity == Severity.FINE
    assert "x is below 0" in finding.sentence


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ("target += [1, 2][x < 0 ? 3 : 1];", "out of range"),
        ("target += dot_product([1, 2], rep_row_vector(1, x < 0 ? 3 : 2));", "size"),
        ("target += 4 %/% (x < 0 ? 0 : 2);", "denominator is 0"),
    ],
)
def test_an_error_that_ends_a_run_is_no_edge(mistake: str, said: str, tmp_path: Path) -> None:
    """CmdStan ends a run where an index is wrong, so that its places are no part of a target."""
    draws = np.abs(np.random.default_rng(2).standard_normal(1000))
    found = near(density(tmp_path, of_one(mistake)), draws)
    assert said in found.mistake
    (finding,) = about_undefined(found)
    assert finding.severity == Severity.WARNING
    assert said in finding.sentence


@pytest.mark.parametrize("edge", ['if (x < 0) reject("no");', "1 ~ normal(0, x < 0 ? -1 : 1);"])
def test_what_makes_a_place_impossible_is_no_mistake(edge: str, tmp_path: Path) -> None:
    draws = np.abs(np.random.default_rng(2).standard_normal(1000))
    found = near(density(tmp_path, of_one(edge)), draws)
    assert found.rejected > 0.01
    assert found.mistake == ""


def test_few_draws_have_no_places_beside_them(tmp_path: Path) -> None:
    target = density(tmp_path, of_one(""))
    assert near(target, np.array([1.0])) == Undefined(0, 0, 0, "")
    assert near(target, np.array([1.0, 1.0, np.inf])) == Undefined(0, 0, 0, "")


@pytest.mark.parametrize("method", ["auto", "parallel_tempering", "nested_sampling"])
def test_no_method_leaves_out_most_of_a_posterior_in_silence(
    method: Method, tmp_path: Path
) -> None:
    """The mean of mu is -4.6 by quadrature on the log scale, and 0.7 without what underflows."""
    path = tmp_path / "program.stan"
    path.write_text(TRUNCATED, encoding="utf-8")
    result = sample(
        *(path, {"N": len(Y), "y": Y}),
        method=method,
        engine="stanli",
        budget=8,
        seed=1,
        progress=False,
    )
    said = [each for each in result.diagnosis if "+inf" in each.sentence]
    assert any(each.severity == Severity.PROBLEM for each in said)
