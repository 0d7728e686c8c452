"""Posteriors that do not end, next to others whose tails are heavy but do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from stan_density import stanli

from harness.arrays import FloatArray
from harness.diagnosis import Severity
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.errors import SamplingError
from harness.user import evidence_from_fit, sample, steps
from harness.user.improper import _begin, _Path, about_unending, unending_tails

assert stanli is not None

Y = np.array([-1.2, 0.3, 0.5, -0.4, 1.1, 0.2, -0.7, 0.9, -0.1, 0.4])
SCHOOLS = {
    "J": 8,
    "y": [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0],
    "s": [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0],
}


class Case(NamedTuple):
    """Body of a program, its data, and the number with which it does not end; none if it does."""

    data: str
    body: str
    values: dict[str, Any]
    label: str | None


TEN = "int N; vector[N] y;"
CASES = {
    # The likelihood of degrees of freedom tends to that of a normal.
    "degrees of freedom": Case(
        TEN,
        """parameters { real mu; real<lower=0> sigma; real<lower=1> nu; }
        model { mu ~ normal(0, 5); sigma ~ normal(0, 5); y ~ student_t(nu, mu, sigma); }""",
        {"N": 10, "y": Y},
        "nu",
    ),
    # A slope that separates all observations may be as steep as it likes.
    "separated groups": Case(
        "int N; vector[N] x; array[N] int y;",
        """parameters { real a; real b; }
        model { a ~ normal(0, 5); y ~ bernoulli_logit(a + b * x); }""",
        {"N": 8, "x": [-2.0, -1.5, -1, -0.3, 0.4, 0.8, 1.1, 2], "y": [0, 0, 0, 0, 1, 1, 1, 1]},
        "b",
    ),
    # The integral of 1 / tau near 0, where effects are equal (Gelman 2006, section 2.2).
    "one over tau": Case(
        "int J; vector[J] y; vector<lower=0>[J] s;",
        """parameters { real mu; real<lower=0> tau; vector[J] theta; }
        model {
          mu ~ normal(0, 10); tau ~ normal(0, 20); target += -log(tau);
          theta ~ normal(mu, tau); y ~ normal(theta, s);
        }""",
        SCHOOLS,
        "tau",
    ),
    # The same: four numbers whose sum is 0 have three dimensions, and four factors 1 / tau.
    "effects that sum to zero": Case(
        "int J; vector[J] y; vector<lower=0>[J] s;",
        """parameters { real mu; real<lower=0> tau; sum_to_zero_vector[J] theta; }
        model { mu ~ normal(0, 10); tau ~ normal(0, 20); theta ~ normal(0, tau);
          y ~ normal(mu + theta, s); }""",
        SCHOOLS,
        "tau",
    ),
    "a flat log scale": Case(
        "int J; vector[J] y; vector<lower=0>[J] s;",
        """parameters { real mu; real log_tau; vector[J] z; }
        model { mu ~ normal(0, 10); z ~ std_normal(); y ~ normal(mu + exp(log_tau) * z, s); }""",
        SCHOOLS,
        "log_tau",
    ),
    # Two groups tell nothing of an upper end of how far groups are apart: the tail is 1 / tau.
    "two groups": Case(
        "int N; array[N] int g; vector[N] y;",
        """parameters { real mu; real<lower=0> tau; vector[2] a; real<lower=0> sigma; }
        model { sigma ~ normal(0, 1); a ~ normal(mu, tau); y ~ normal(a[g], sigma); }""",
        {"N": 6, "g": [1, 1, 1, 2, 2, 2], "y": [0.3, 0.5, 0.1, 1.3, 1.1, 1.6]},
        "tau",
    ),
    # Below all doses the response is the same.
    "a dose below all": Case(
        "int N; vector[N] x; vector[N] y;",
        """parameters { real<lower=0> top; real log_ec50; real<lower=0> sigma; }
        model { top ~ normal(0, 5); sigma ~ normal(0, 1);
          y ~ normal(top * x ./ (x + exp(log_ec50)), sigma); }""",
        {"N": 5, "x": [1.0, 2, 4, 8, 16], "y": [1.9, 2.1, 2.0, 1.95, 2.05]},
        "log_ec50",
    ),
    # An empty component may be anywhere.
    "an empty component": Case(
        TEN,
        """parameters { real<lower=0, upper=1> w; vector[2] mu; real<lower=0> sigma; }
        model { sigma ~ normal(0, 2); for (n in 1 : N) target += log_mix(w,
          normal_lpdf(y[n] | mu[1], sigma), normal_lpdf(y[n] | mu[2], sigma)); }""",
        {"N": 10, "y": Y},
        "mu[1]",
    ),
    # Counts that vary less than those of a Poisson distribution need no overdispersion.
    "no overdispersion": Case(
        "int N; array[N] int y;",
        """parameters { real eta; real<lower=0> phi; }
        model { y ~ neg_binomial_2_log(eta, phi); }""",
        {"N": 10, "y": [3, 4, 3, 2, 5, 4, 3, 3, 4, 2]},
        "phi",
    ),
    # Counts that vary more do: with them phi ends.
    "overdispersion": Case(
        "int N; array[N] int y;",
        """parameters { real eta; real<lower=0> phi; }
        model { y ~ neg_binomial_2_log(eta, phi); }""",
        {"N": 10, "y": [0, 41, 3, 12, 0, 7, 29, 1, 16, 2]},
        None,
    ),
    # These end: the tail of three groups is 1 / tau^2, that of a Cauchy 1 / mu^2.
    "three groups": Case(
        "int N; array[N] int g; vector[N] y;",
        """parameters { real mu; real<lower=0> tau; vector[3] a; real<lower=0> sigma; }
        model { sigma ~ normal(0, 1); a ~ normal(mu, tau); y ~ normal(a[g], sigma); }""",
        {"N": 6, "g": [1, 1, 2, 2, 3, 3], "y": [0.3, 0.5, 0.1, 1.3, 1.1, 1.6]},
        None,
    ),
    "one observation, Cauchy": Case(
        "real y;", "parameters { real mu; } model { y ~ cauchy(mu, 1); }", {"y": 3.0}, None
    ),
    # Half a degree of freedom, the heaviest tail that anybody uses: 1 / x^1.5.
    "half a degree": Case(
        "real y;",
        """parameters { real x; real mu; }
        model { target += student_t_lpdf(x | 0.5, 0, 1); y ~ normal(mu, 1); }""",
        {"y": 3.0},
        None,
    ),
    "a flat mean": Case(
        TEN,
        """parameters { real mu; real<lower=0> sigma; }
        model { sigma ~ normal(0, 5); y ~ normal(mu, sigma); }""",
        {"N": 10, "y": 1e5 + Y},
        None,
    ),
    # In kilograms, far from where Stan's starting points are.
    "large units": Case(
        TEN,
        """parameters { real mu; real<lower=0> sigma; }
        model { y ~ normal(mu, sigma); }""",
        {"N": 10, "y": 1e24 * (5 + Y)},
        None,
    ),
    # A horseshoe, and a funnel: narrow, but their masses end.
    "a horseshoe": Case(
        TEN,
        """parameters { real<lower=0> tau; vector<lower=0>[N] lambda; vector[N] b; real flat; }
        model { tau ~ cauchy(0, 0.1); lambda ~ cauchy(0, 1); b ~ normal(0, tau * lambda);
          y ~ normal(b + flat, 1); }""",
        {"N": 10, "y": Y},
        None,
    ),
    "a plateau": Case(
        "real y;",
        """parameters { real x; real mu; }
        model { if (abs(x) > 1e3) reject("outside"); y ~ normal(mu, 1); }""",
        {"y": 3.0},
        None,
    ),
    # Vague, as people wrote them in BUGS.
    "inverse gamma": Case(
        "int J; vector[J] y; vector<lower=0>[J] s;",
        """parameters { real mu; real<lower=0> v; vector[J] theta; }
        model { v ~ inv_gamma(0.001, 0.001); theta ~ normal(mu, sqrt(v));
          y ~ normal(theta, s); }""",
        SCHOOLS,
        None,
    ),
}


def written(folder: Path, case: Case) -> tuple[Path, Path]:
    program, data = folder / "program.stan", folder / "data.json"
    program.write_text(f"data {{ {case.data} }}\n{case.body}\n")
    data.write_text(json.dumps({k: np.asarray(v).tolist() for k, v in case.values.items()}))
    return program, data


def drawn(density: BatchedDensity, seed: int = 1) -> FloatArray:
    """Short chains of Metropolis's method from Stan's starting points."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-2, 2, (4, density.dimension))
    height, kept = density.values(points), []
    for _ in range(2000):
        new = points + 0.2 * rng.standard_normal(points.shape)
        value = density.values(new)
        moved = np.log(rng.random(4)) < value - height
        points, height = np.where(moved[:, None], new, points), np.where(moved, value, height)
        kept.append(points)
    return np.stack(kept, axis=1)[:, 1000:]


@pytest.mark.parametrize("name", CASES)
def test_where_a_posterior_does_not_end(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    program, _ = written(tmp_path, case)
    density = BatchedDensity(StanProgram(program), case.values)
    draws = drawn(density)
    if name == "large units":
        spread = np.array([2e23, 0.25])
        draws = [5e24, np.log(7e23)] + spread * np.random.default_rng(1).normal(size=draws.shape)
    tails = unending_tails(density, draws, most_seconds=60)
    if case.label is None:
        assert tails == []
        assert about_unending(tails) == []
        return
    assert case.label in [each.label for each in tails]
    (finding,) = about_unending(tails)
    assert finding.severity == Severity.PROBLEM
    assert case.label in finding.sentence


@pytest.mark.parametrize("rho", [0.0, 0.999])
def test_masses_along_a_path_are_those_of_the_marginal(rho: float, tmp_path: Path) -> None:
    """Of a normal, where Laplace's approximation is exact.

    They leave out the constant (2 pi)^((D - 1) / 2) of the other coordinates.
    """
    covariance = np.array([[1.0, 2 * rho, 0], [2 * rho, 4.0, 0], [0, 0, 9.0]])
    body = """parameters { vector[3] x; }
    model { x ~ multi_normal(rep_vector(0, 3), S); }"""
    program, _ = written(tmp_path, Case("matrix[3, 3] S;", body, {"S": covariance}, None))
    density = BatchedDensity(StanProgram(program), {"S": covariance})
    begin = _begin(density, np.zeros(3), np.ones(3))
    assert begin is not None
    path = _Path(density, begin, 1, 1.0)
    while path.go_on():
        pass
    assert not path.unending
    steps = np.arange(len(path.log_masses))
    at = np.array([each[1] for each in path.points[1:]])
    exact = norm.logpdf(at, 0, 2) + steps * np.log(np.sqrt(2))
    whole = density.values(np.zeros((1, 3)))[0] - multivariate_normal(
        np.zeros(3), covariance
    ).logpdf(np.zeros(3))
    constant = whole - np.log(2 * np.pi)
    np.testing.assert_allclose(path.log_masses, exact + constant, atol=1e-4)


def test_auto_says_so_and_looks_for_nothing(tmp_path: Path) -> None:
    program, data = written(tmp_path, CASES["one over tau"])
    result = sample(program, data, seed=1, engine="stanli", progress=False)
    said = [str(each) for each in result.diagnosis if "The posterior is improper" in str(each)]
    assert len(said) == 1
    assert "as tau goes from" in said[0]
    assert result.modes is None
    assert result.method == "nuts"
    assert result.log_evidence is None
    assert "pilot" not in result.timings


def test_the_error_of_a_run_that_does_not_finish_says_so(tmp_path: Path) -> None:
    """Of a rate of which all counts are 0: NUTS's metric overflows."""
    case = Case(
        "int N; array[N] int y;",
        "parameters { real a; } model { y ~ poisson_log(a); }",
        {"N": 5, "y": [0, 0, 0, 0, 0]},
        "a",
    )
    with pytest.raises(SamplingError, match="overflow") as raised:
        sample(*written(tmp_path, case), seed=1, engine="stanli", progress=False)
    assert "The posterior is improper" in str(raised.value)
    assert "as a goes from 0 to -" in str(raised.value)


def test_other_methods_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "_TAILS_SHARE", 2.0)
    program, data = written(tmp_path, CASES["degrees of freedom"])
    result = sample(
        program,
        data,
        method="parallel_tempering",
        seed=1,
        engine="stanli",
        progress=False,
        budget=5,
    )
    assert any("The posterior is improper" in str(each) for each in result.diagnosis)


def test_no_evidence_of_a_fit_of_an_improper_posterior(tmp_path: Path) -> None:
    program, data = written(tmp_path, CASES["one over tau"])
    fit = sample(program, data, method="nuts", seed=1, engine="stanli", progress=False)
    found = evidence_from_fit(fit.tree, program, data, engine="stanli")
    assert any("The posterior is improper" in each for each in found.refusals)
    assert found.log_evidence is None


def test_what_is_not_looked_at_in_time_is_not_told(tmp_path: Path) -> None:
    case = CASES["degrees of freedom"]
    density = BatchedDensity(StanProgram(written(tmp_path, case)[0]), case.values)
    assert unending_tails(density, drawn(density), most_seconds=0.0) == []
    none = np.empty((0, density.dimension))
    assert [each.label for each in unending_tails(density, none, most_seconds=60)] == ["nu"]
