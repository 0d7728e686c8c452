"""Whether the base that is left is normalised: verdicts against its integral by quadrature.

The integral is that of the program of the prior alone, evaluated by stanli, over Stan's
unconstrained space: no table of ours is asked.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats
from stan_density import StanDensity
from temper_fuzz import fuzz_program

from harness.engine.program import StanProgram
from harness.temper import temper
from harness.temper.base import BaseVerdict
from harness.temper.classify import What
from harness.temper.program import temper_each

DATA = {"L": -0.3, "U": 1.7, "K": 2, "M": 1, "scale": [0.7, 1.9], "flag": 0, "y": [0.1]}


@dataclass(frozen=True)
class Case:
    """Parameters, what of the model is not tempered, and what becomes of it."""

    parameters: str
    model: str
    integral: float = 1.0
    verdict: BaseVerdict = "normalised"
    functions: str = ""
    transformed: str = ""

    def text(self) -> str:
        return f"""functions {{ {self.functions} }}
data {{
  real L; real U; int<lower=0> K; int<lower=1> M; int<lower=0, upper=1> flag;
  vector<lower=0>[2] scale; vector[1] y;
}}
parameters {{ {self.parameters} }}
transformed parameters {{ {self.transformed} }}
model {{
  {self.model}
  y ~ std_normal();
}}
"""


_POSITIVE = "real<lower=0> x;"
NORMALISED = {
    **{
        name: Case("real x;", f"x ~ {name}({args});")
        for name, args in {
            "normal": "0.4, 1.3",
            "std_normal": "",
            "student_t": "3, 0.2, 1.5",
            "cauchy": "0.1, 2",
            "double_exponential": "0, 1.4",
            "logistic": "0.3, 0.8",
            "gumbel": "0.2, 1.1",
            "exp_mod_normal": "0.1, 0.8, 1.2",
            "skew_normal": "0.2, 1.1, 2",
            "skew_double_exponential": "0, 1.2, 0.3",
        }.items()
    },
    **{
        name: Case(_POSITIVE, f"x ~ {name}({args});")
        for name, args in {
            "lognormal": "0.3, 0.9",
            "exponential": "1.7",
            "gamma": "2.5, 1.2",
            "inv_gamma": "3, 2",
            "weibull": "1.7, 1.4",
            "frechet": "2.2, 1.1",
            "rayleigh": "1.3",
            "loglogistic": "1.4, 2.5",
            "chi_square": "3",
            "inv_chi_square": "4",
            "scaled_inv_chi_square": "5, 1.2",
        }.items()
    },
    "beta": Case("real<lower=0, upper=1> x;", "x ~ beta(2.2, 1.3);"),
    "beta by proportion": Case("real<lower=0, upper=1> x;", "x ~ beta_proportion(0.3, 4);"),
    "pareto": Case("real<lower=0.5> x;", "x ~ pareto(0.5, 2.5);"),
    "pareto of the second type": Case("real<lower=L> x;", "x ~ pareto_type_2(L, 1.2, 2.5);"),
    "uniform": Case("real<lower=L, upper=U> x;", "x ~ uniform(L, U);"),
    "uniform between numbers": Case("real<lower=-1, upper=1.5> x;", "x ~ uniform(-1.0, 1.5);"),
    "on a circle": Case("real<lower=-pi(), upper=pi()> x;", "x ~ von_mises(0.4, 1.5);"),
    "by its bounds alone": Case("real<lower=-0.5, upper=0.5> x;", ""),
    "cut below": Case(_POSITIVE, "x ~ normal(0.3, 1.2) T[0, ];"),
    "cut above": Case("real<upper=U> x;", "x ~ cauchy(0.3, 1.2) T[ , U];"),
    "cut on both sides": Case("real<lower=L, upper=U> x;", "x ~ student_t(4, 0, 1) T[L, U];"),
    "cut where it is already": Case(_POSITIVE, "x ~ gamma(2, 1) T[0, ];"),
    "cut further": Case("real<lower=0.5> x;", "x ~ lognormal(0, 1) T[0.5, ];"),
    "divided by its mass": Case(
        _POSITIVE, "target += normal_lpdf(x | 0.2, 1.1) - normal_lccdf(0 | 0.2, 1.1);"
    ),
    "a hierarchy": Case(
        "real<lower=0> s; real x;", "x ~ normal(0, s); s ~ lognormal(0, 0.6);"
    ),
    "a bound that is a parameter": Case(
        "real<lower=0, upper=1> s; real<lower=s> x;", "s ~ beta(2, 2); x ~ normal(0, 1) T[s, ];"
    ),
    "offset and multiplier": Case(
        "real s; real<offset=s, multiplier=2> x;", "s ~ normal(0, 1); x ~ normal(s, 2);"
    ),
    "a vector": Case("vector[2] x;", "x ~ normal([0, 1]', scale);"),
    "element by element": Case("vector[2] x;", "x[1] ~ normal(0, 1); x[2] ~ cauchy(0, 1);"),
    "a loop over a size": Case("vector[K] x;", "for (k in 1 : K) x[k] ~ normal(0, k);"),
    "each element": Case("vector[K] x;", "for (e in x) e ~ logistic(0, 1);"),
    "slices": Case("vector[K] x;", "x[1] ~ normal(0, 1); x[2 : ] ~ normal(0, 2);"),
    "head and tail": Case("vector[2] x;", "head(x, 1) ~ normal(0, 1); tail(x, 1) ~ normal(1, 1);"),
    "an array of arrays": Case(
        "array[2, 1] real x;", "for (i in 1 : 2) for (j in 1 : 1) x[i, j] ~ normal(0, i);"
    ),
    "columns": Case("matrix[1, 2] x;", "col(x, 1) ~ normal(0, 1); x[ , 2] ~ normal(0, 2);"),
    "all of a matrix": Case("matrix[1, 2] x;", "to_vector(x) ~ normal(0, 1);"),
    "in a row": Case(
        "real a; real b;", "[a, b]' ~ multi_normal([0, 1]', [[2, 0.5], [0.5, 1]]);"
    ),
    "one after the other": Case(
        "vector[2] x;", "x[1] ~ normal(0, 1); for (t in 2 : 2) x[t] ~ normal(0.5 * x[t - 1], 1);"
    ),
    "one after the other at once": Case(
        "vector[K] x;", "x[1] ~ normal(0, 1); x[2 : K] ~ normal(tanh(x[1 : (K - 1)]), 1);"
    ),
    "one of two branches": Case(
        "real x;", "if (flag) { x ~ normal(0, 1); } else { x ~ cauchy(1, 2); }"
    ),
    "branches over elements": Case(
        "vector[2] x;",
        "for (k in 1 : 2) { if (k == 1) x[k] ~ normal(0, 1); else x[k] ~ logistic(0, 1); }",
    ),
    "on all before": Case(
        "vector[2] x;",
        "x[1] ~ normal(0, 1); for (t in 2 : 2) x[t] ~ normal(sum(x[(t - 1) : (t - 1)]), 1);",
    ),
    "a branch that a parameter decides": Case(
        "real a; real b;", "a ~ normal(0, 1); if (a > 0) b ~ normal(0, 1); else b ~ cauchy(a, 1);"
    ),
    "in a function": Case(
        "vector[2] x;", "spread_lp(x, scale);",
        functions="void spread_lp(vector v, vector s) { v ~ normal(0, s); }",
    ),
    "a sum of densities": Case(
        "real a; real b;", "target += normal_lpdf(a | 0, 1) + normal_lpdf(b | a, 2);"
    ),
    "a simplex": Case("simplex[3] x;", "x ~ dirichlet([2, 1.5, 3]');"),
    "simplices": Case(
        "array[2] simplex[2] x;", "for (k in 1 : 2) x[k] ~ dirichlet([k, 1.5]');"
    ),
    "a correlation": Case("corr_matrix[2] x;", "x ~ lkj_corr(2.5);"),
    "its Cholesky factor": Case("cholesky_factor_corr[2] x;", "x ~ lkj_corr_cholesky(1.5);"),
    "a covariance": Case("cov_matrix[2] x;", "x ~ wishart(5, identity_matrix(2));"),
    "an inverse": Case("cov_matrix[2] x;", "x ~ inv_wishart(6, identity_matrix(2));"),
    "a factor of a covariance": Case(
        "cholesky_factor_cov[2] x;", "x ~ wishart_cholesky(5, identity_matrix(2));"
    ),
    "a factor of an inverse": Case(
        "cholesky_factor_cov[2] x;", "x ~ inv_wishart_cholesky(6, identity_matrix(2));"
    ),
    "a multivariate t": Case(
        "vector[2] x;", "x ~ multi_student_t(4, [0, 1]', [[2, 0.5], [0.5, 1]]);"
    ),
    "by a factor": Case(
        "vector[2] x;", "x ~ multi_normal_cholesky([0, 1]', [[2, 0], [0.5, 1]]);"
    ),
    "a Gaussian process": Case("matrix[1, 1] x;", "x ~ multi_gp([[2]], [1.5]');"),
    "one by a factor": Case("matrix[1, 1] x;", "x ~ multi_gp_cholesky([[1.4]], [0.7]');"),
    "a t by a factor": Case(
        "vector[2] x;", "x ~ multi_student_t_cholesky(4, [0, 1]', [[2, 0], [0.5, 1]]);"
    ),
    "by a precision": Case(
        "row_vector[2] x;", "x ~ multi_normal_prec([0, 1]', [[2, 0.5], [0.5, 1]]);"
    ),
    "what a constraint is sure of": Case(
        "real x;", "x ~ normal(0, 1);", transformed="real<lower=0> v = exp(x) + square(x);"
    ),
}  # fmt: skip

UNKNOWN = {
    "more than half": Case(_POSITIVE, "x ~ normal(1, 1);", float(stats.norm.cdf(1))),
    "cut elsewhere": Case(
        _POSITIVE, "x ~ normal(0, 1) T[-1, ];", 0.5 / float(stats.norm.cdf(1))
    ),
    "a part of its support": Case("real<lower=1> x;", "x ~ exponential(1);", math.exp(-1)),
    "between bounds": Case("real<lower=0, upper=1> x;", "x ~ gamma(2, 1);", 1 - 2 / math.e),
    "ordered": Case("ordered[2] x;", "x ~ normal(0, 1);", 0.5),
    "a volume": Case("real<lower=-1, upper=2> x;", "", 3.0),
    "a volume of several": Case("vector<lower=0, upper=2>[2] x;", "", 4.0),
    "a simplex without a density": Case("simplex[3] x;", "", 0.5),
    "a factor": Case("real x;", "target += normal_lpdf(x | 0, 1) + log(3);", 3.0),
    "an expression": Case("real x;", "target += -0.5 * square(x);", math.sqrt(2 * math.pi)),
    "two densities": Case(
        "real x;", "x ~ normal(0, 1); x ~ normal(1, 2);", float(stats.norm.pdf(1, 0, 5**0.5))
    ),
    "the same again": Case(
        "real x;", "for (i in 1 : 2) x ~ normal(0, 1);", 1 / math.sqrt(4 * math.pi)
    ),
    "twice": Case(
        "real x;", "target += 2 * normal_lpdf(x | 0, 1);", 1 / math.sqrt(4 * math.pi)
    ),
    "several at one": Case(
        "real x;", "x ~ normal([0, 1]', 1);", float(stats.norm.pdf(1, 0, 2**0.5))
    ),
    "a density of a function": Case("real x;", "exp(x) ~ exponential(1);", math.inf),
    "a circle": Case("real a; real b;", "a ~ normal(0.5 * b, 1); b ~ normal(0.5 * a, 1);", 4 / 3),
    "a circle among elements": Case(
        "vector[2] x;",
        "for (t in 1 : 2) x[t] ~ normal(0.5 * x[3 - t], 1);", 4 / 3,
    ),
    "against the order": Case(
        "vector[2] x;", "x ~ normal(0.5 * reverse(x), 1);", 4 / 3
    ),
    "its own function": Case(
        "real x;", "x ~ twice(1);", 2.0,
        functions="real twice_lpdf(real x, real s) { return normal_lpdf(x | 0, s) + log(2); }",
    ),
    "a condition alone": Case(
        "real<lower=0, upper=1> x;", "if (flag) x ~ beta(2, 2);", 1.0
    ),
    "rejected": Case("real x;", "x ~ normal(0, 1); if (x > 0) reject(x);", 0.5),
    "rejected in a function": Case(
        "real x;", "x ~ normal(0, 1); if (check(x)) { }", 0.5,
        functions='int check(real x) { if (x > 0) reject("no"); return 1; }',
    ),
    "rejected by a density": Case(
        "real s; real x;", "s ~ normal(0, 1); x ~ normal(0, s);", 0.5
    ),
    "cut by a constraint": Case(
        "real x;", "x ~ normal(0, 1);", 0.5, transformed="real<lower=0> v = x;"
    ),
    "cut by a constraint of a function with a name of Stan's": Case(
        "real x;", "x ~ normal(0, 1);", 0.5, transformed="real<lower=0> v = exp(x, 2);",
        functions="real exp(real x, real s) { return s * x; }",
    ),
    "which elements": Case(
        "vector[2] x;", "x[{2, 1}] ~ normal(0, 1);", 1.0
    ),
    "a soft sum": Case(
        "vector[2] x;",
        "target += -0.5 * square(x[1] - x[2]); sum(x) ~ normal(0, 1);",
        math.sqrt(2 * math.pi) / 2,
    ),
    "the mass of another": Case(
        _POSITIVE, "target += normal_lpdf(x | 0, 1) - normal_lccdf(0 | 1, 1);",
        0.5 / float(stats.norm.cdf(1)),
    ),
}  # fmt: skip


def integral(program: StanDensity) -> float:
    """Integral of a density by the double-exponential rule, on a grid of each axis."""
    size = {1: 281, 2: 141, 3: 61}[program.dimension]
    t = np.linspace(-3.3, 3.3, size)
    step = t[1] - t[0]
    u = np.sinh(np.pi / 2 * np.sinh(t))
    weight = step * np.pi / 2 * np.cosh(t) * np.cosh(np.pi / 2 * np.sinh(t))
    if program.dimension == 3:  # matrices, whose logarithms have light enough tails for less
        t = np.linspace(-5, 5, size)
        u, weight = np.sinh(t), (t[1] - t[0]) * np.cosh(t)
    terms = []
    for index in itertools.product(range(size), repeat=program.dimension):
        point = list(index)
        try:
            value = program.value(u[point])
        except RuntimeError:  # a point that Stan rejects
            continue
        if np.isfinite(value):
            terms.append(value + np.sum(np.log(weight[point])))
    return float(np.exp(special.logsumexp(terms)))


def judged(case: Case, folder: Path) -> tuple[BaseVerdict, str, StanDensity]:
    path = folder / "program.stan"
    path.write_text(case.text(), encoding="utf-8")
    program = temper(path, method="prior")
    assert len([each for each in program.statements if each.tempered]) == 1
    written = folder / "prior.stan"
    written.write_text(program.text, encoding="utf-8")
    return program.base_verdict, program.why, StanDensity(StanProgram(written), DATA)


@pytest.mark.parametrize("name", NORMALISED)
def test_normalised(name: str, tmp_path: Path) -> None:
    case = NORMALISED[name]
    verdict, why, density = judged(case, tmp_path)
    assert verdict == "normalised", why
    # A kink, as of the double exponential, costs the rule a step squared.
    assert integral(density) == pytest.approx(case.integral, rel=2e-3)


@pytest.mark.parametrize(
    ("parameters", "model", "normalised"),
    [
        ("row_stochastic_matrix[2, 3] x;", "for (k in 1 : 2) x[k] ~ dirichlet([1, 2, 3]);", True),
        ("row_stochastic_matrix[2, 3] x;", "x[1] ~ dirichlet([1, 2, 3]);", False),
        ("row_stochastic_matrix[2, 2] x;", "x[ : , 1] ~ dirichlet([1, 2]);", False),
        ("row_stochastic_matrix[1, 3] x;", "x[1, 1 : 2] ~ dirichlet([1, 2]);", False),
        (
            "column_stochastic_matrix[2, 2] x;",
            "x[ : , 1] ~ dirichlet([1, 2]'); col(x, 2) ~ dirichlet([3, 1]');",
            True,
        ),
        ("column_stochastic_matrix[2, 1] x;", "x[1] ~ dirichlet([1]');", False),
        (
            "array[2] column_stochastic_matrix[3, 2] x;",
            "for (i in 1 : 2) for (k in 1 : 2) x[i][ : , k] ~ dirichlet([1, 2, 3]');",
            True,
        ),
    ],
)
def test_rows_or_columns_that_sum_to_one(
    parameters: str, model: str, normalised: bool, tmp_path: Path
) -> None:
    """Stan's constraint is on rows, or on columns; stanli has neither, so there is no integral."""
    path = tmp_path / "program.stan"
    path.write_text(Case(parameters, model).text(), encoding="utf-8")
    program = temper(path, method="prior")
    assert (program.base_verdict == "normalised") == normalised, program.why


HALVED = {
    "half normal": Case(_POSITIVE, "x ~ normal(0, 3);", 0.5),
    "half Cauchy": Case(_POSITIVE, "x ~ cauchy(0, 1);", 0.5),
    "half t of a vector": Case("vector<lower=0>[2] x;", "x ~ student_t(3, 0, scale);", 0.25),
    "below its bound": Case("real<upper=L> x;", "x ~ double_exponential(L, 1);", 0.5),
    "a scale that is halved as well": Case(
        "real<lower=0> s; real<lower=0> x;", "s ~ std_normal(); x ~ logistic(0, s);", 0.25
    ),
    "a bound that is a parameter": Case(
        "real m; real<lower=m> x;", "m ~ normal(0, 1); x ~ normal(m, 2);", 0.5
    ),
    "element by element": Case(
        "array[2] real<lower=0> x;", "for (i in 1 : 2) x[i] ~ normal(0, scale[i]);", 0.25
    ),
    "in both branches": Case(_POSITIVE, "if (flag) x ~ normal(0, 1); else x ~ cauchy(0, 1);", 0.5),
}
"""Constraints that cut densities in half."""


@pytest.mark.parametrize("name", HALVED)
def test_halved(name: str, tmp_path: Path) -> None:
    verdict, why, density = judged(HALVED[name], tmp_path)
    assert verdict == "halved", why
    # The tail of a Cauchy beyond what the rule sees has less than 1e-3 of its mass.
    assert integral(density) == pytest.approx(HALVED[name].integral, rel=2e-3)


@pytest.mark.parametrize(
    ("parameters", "model"),
    [
        (_POSITIVE, "x ~ normal(1, 1);"),
        (_POSITIVE, "x ~ normal(L, 1);"),
        (_POSITIVE, "x ~ gumbel(0, 1);"),
        (_POSITIVE, "x ~ skew_normal(0, 1, 2);"),
        (_POSITIVE, "if (flag) x ~ normal(0, 1); else x ~ exponential(1);"),
        (_POSITIVE, "if (flag) x ~ normal(0, 1);"),
        ("real<lower=0, upper=2> x;", "x ~ normal(0, 1);"),
        (_POSITIVE, "x ~ normal(0, 1); x ~ normal(0, 1);"),
        ("vector<lower=0>[2] x;", "x[1] ~ normal(0, 1); x[2] ~ exponential(1);"),
    ],
)
def test_not_known_to_be_halved(parameters: str, model: str, tmp_path: Path) -> None:
    verdict, why, _ = judged(Case(parameters, model), tmp_path)
    assert verdict == "unknown_constant", why


@pytest.mark.parametrize("name", UNKNOWN)
def test_not_known_to_be_normalised(name: str, tmp_path: Path) -> None:
    """Most of these integrate to something else, and the others only to somebody who thinks."""
    case = UNKNOWN[name]
    verdict, why, density = judged(case, tmp_path)
    assert verdict == "unknown_constant"
    assert why
    if math.isinf(case.integral) or "constraint" in name or "rejected" in name:
        return  # the prior's program has no constraint, and a jump costs the rule its accuracy
    assert integral(density) == pytest.approx(case.integral, rel=2e-3)


IMPROPER = {
    "an element": ("vector[2] x;", "x[1] ~ normal(0, 1);", ["x[2]"]),
    "the first": ("vector[K] x;", "x[2 : K] ~ normal(x[1 : (K - 1)], 1);", ["x[1]"]),
    "the last": ("vector[K] x;", "for (k in 1 : (K - 1)) x[k] ~ normal(0, 1);", ["x[K]"]),
    "in between": ("vector[9] x;", "x[1 : 2] ~ normal(0, 1); tail(x, 1) ~ normal(0, 1);",
                   ["x[3 : 8]"]),
    "several": ("vector[5] x;", "x[2] ~ normal(0, 1); x[4] ~ normal(0, 1);",
                ["x[1]", "x[3]", "x[5]"]),
    "behind a name": ("vector[M + 2] x;", "x[1 : 2] ~ normal(0, 1);", ["x[3 : M + 2]"]),
    "a row": ("matrix[3, K] x;", "x[1] ~ normal(0, 1); for (k in 1 : K) x[3, k] ~ normal(0, 1);",
              ["x[2]"]),
    "a column": ("array[2] vector[3] x;", "for (i in 1 : 2) x[i, 1 : 2] ~ normal(0, 1);",
                 ["x[:, 3]"]),
    "all": ("vector[2] x; real z;", "x ~ normal(z, 1);", ["z"]),
    "positive": ("real<lower=0> s; real x;", "x ~ normal(0, s);", ["s"]),
    "of an ordered vector": ("ordered[2] x;", "x[1] ~ normal(0, 1);", ["x[2]"]),
    "in an expression": ("vector[2] x;", "target += -square(x[2]);", ["x[1]"]),
    "in a local": ("vector[3] x;", "real l = 0; for (i in 1 : 2) l += -square(x[i]); target += l;",
                   ["x[3]"]),
    "a covariance": ("cov_matrix[2] x;", "", ["x"]),
    "sums to zero": ("sum_to_zero_vector[3] x;", "", ["x"]),
    "neighbours": ("vector[3] x;", "target += -0.5 * dot_self(x[{1, 2}] - x[{2, 3}]);", []),
    "neighbours in a loop": (
        "vector[3] x;", "for (i in 2 : 3) x[i] - x[i - 1] ~ normal(0, 1);", []
    ),
    "neighbours in a local": (
        "vector[3] x;", "{ vector[2] d = tail(x, 2) - head(x, 2); d ~ normal(0, 1); }", []
    ),
    "neighbours and their spread": (
        "vector[3] x; real<lower=0> t;",
        "t ~ exponential(1); target += -t * dot_self(x - mean(x)) + log(t);", [],
    ),
}  # fmt: skip

PROPER = {
    "a sum": ("vector[3] x;", "x[2 : 3] - x[1 : 2] ~ normal(0, 1); sum(x) ~ normal(0, 1);"),
    "a fixed one": ("vector[3] x;", "x[2 : 3] - x[1 : 2] ~ normal(0, 1); x[1] ~ normal(0, 1);"),
    "no room to move": ("sum_to_zero_vector[3] x;", "x[2 : 3] - x[1 : 2] ~ normal(0, 1);"),
    "bounds": ("vector<lower=0, upper=1>[2] x;", "x[1] ~ beta(2, 2);"),
    "a flag's": ("array[flag] real x;", "if (flag) { x[1] ~ normal(0, 1); }"),
    "a size that is not known": ("vector[K] x;", "x[1] ~ normal(0, 1); x[2] ~ normal(0, 1);"),
    "a size that may be nothing more": ("vector[K + 2] x;", "x[1 : 2] ~ normal(0, 1);"),
    "none or one": ("vector[flag == 1 ? 1 : 0] x;", "if (flag == 1) x[1] ~ normal(0, 1);"),
    "said by a comment": ("real x;", "y ~ normal(x, 1); // temper: no"),
    "two densities of what it is the mean of": (
        "real x; vector[2] z;",
        "z ~ normal(0, 1); z ~ normal(x, 1);",
    ),
}


@pytest.mark.parametrize("name", IMPROPER)
def test_improper(name: str, tmp_path: Path) -> None:
    parameters, model, flat = IMPROPER[name]
    path = tmp_path / "program.stan"
    path.write_text(Case(parameters, model).text(), encoding="utf-8")
    program = temper(path, method="prior")
    assert program.base_verdict == "improper", program.why
    assert list(program.flat) == flat
    assert all(each in program.why for each in flat)
    assert ("move together" in program.why) == (not flat)
    assert set(program.uncovered) == {each.partition("[")[0] for each in flat}
    assert not set(program.uncovered) & set(program.bounded)


@pytest.mark.parametrize("name", PROPER)
def test_not_said_to_be_improper(name: str, tmp_path: Path) -> None:
    path = tmp_path / "program.stan"
    path.write_text(Case(*PROPER[name]).text(), encoding="utf-8")
    program = temper(path, method="prior")
    assert program.base_verdict != "improper", program.why
    assert program.flat == ()


@pytest.mark.parametrize(
    ("parameters", "data", "verdict"),
    [
        ("real x; array[0] real z;", {}, "normalised"),
        ("real x; vector[K] z;", {"K": 0}, "normalised"),
        ("real x; vector[K - 1] z;", {"K": 1}, "normalised"),
        ("real x; matrix[K, 3] z;", {"K": 0}, "normalised"),
        ("real x; vector[K] z;", {"K": 1}, "improper"),
        ("real x; vector[K] z;", {}, "improper"),
    ],
)
def test_what_has_no_elements_needs_no_density(
    parameters: str, data: dict[str, int], verdict: BaseVerdict, tmp_path: Path
) -> None:
    path = tmp_path / "program.stan"
    path.write_text(Case(parameters, "x ~ normal(0, 1);").text(), encoding="utf-8")
    (program,) = temper_each(path, ["prior"], data=data)
    assert program.base_verdict == verdict, program.why
    assert bool(program.flat) == (verdict == "improper")


@pytest.mark.parametrize(("size", "verdict"), [(2, "normalised"), (3, "improper")])
def test_sizes_that_are_known(size: int, verdict: BaseVerdict, tmp_path: Path) -> None:
    """With its data a program has as many elements as they say."""
    path = tmp_path / "program.stan"
    case = Case("vector[K] x;", "x[1] ~ normal(0, 1); x[2] ~ normal(0, 1);")
    path.write_text(case.text(), encoding="utf-8")
    for data in ({"K": size}, {"K": np.int64(size)}, {"K": np.array(size)}):
        (program,) = temper_each(path, ["prior"], data=data)
        assert program.base_verdict == verdict
        assert program.flat == (() if verdict == "normalised" else ("x[3]",))
    unknown = temper(path, method="prior")
    assert unknown.base_verdict == "unknown_constant"
    assert unknown.why == "x[3 : K]: no density, if there are such elements"
    assert unknown.text == program.text


@pytest.mark.parametrize("what", ["likelihood", "all"])
def test_bounds_of_all(what: What, tmp_path: Path) -> None:
    """With everything tempered the base is flat, and integrates to the volume of the box."""
    path = tmp_path / "program.stan"
    model = "x ~ beta(2, 2); z ~ uniform(0, 2);"
    declared = "real<lower=0, upper=1> x; real<lower=0, upper=2> z;"
    path.write_text(Case(declared, model).text(), encoding="utf-8")
    program = temper(path, method="prior", what=what)
    assert program.base_verdict == ("normalised" if what == "likelihood" else "unknown_constant")
    path.write_text(Case("real x;", "x ~ normal(0, 1);").text(), encoding="utf-8")
    program = temper(path, method="prior", what=what)
    assert program.base_verdict == ("normalised" if what == "likelihood" else "improper")


CONSTRAINTS = {
    "real<lower=0> v = exp(x) / (1 + square(x));": True,
    "real<lower=0> v = sqrt(p * s + 0.5);": True,
    "real<lower=0> v = s ^ x;": True,
    "real<lower=0> v = x ^ 2;": True,
    "real<lower=0> v = fmax(x, 0);": True,
    "real<lower=0> v = flag == 1 ? s : p;": True,
    "vector<lower=0>[2] v; for (i in 1 : 2) v[i] = i * s;": True,
    "real<lower=0> v = 1 - p;": True,
    "real<lower=0, upper=1> v = inv_logit(x) * p;": True,
    "real<lower=0, upper=1> v = 1 - square(p) * q[1];": True,
    "vector<lower=0, upper=1>[2] v = rep_vector(p, 2);": True,
    "real<lower=0> w = s; real<lower=0> v = 2 * w;": True,
    "simplex[2] v = softmax([x, s]');": True,
    "simplex[2] v = q;": True,
    "cov_matrix[2] v = quad_form_diag(r, rep_vector(s, 2));": True,
    "real v = x;": True,
    "real<lower=0> v = x;": False,
    "real<lower=0> v = s - p;": False,
    "real<lower=1> v = s;": False,
    "real<lower=s> v = s + p;": False,
    "real<lower=0> v = x ^ 3;": False,
    "real<lower=0> v = fmin(x, s);": False,
    "real<lower=0> v = s * x;": False,
    "real<upper=0> v = -s;": False,
    "real<lower=0, upper=1> v = 2 * p;": False,
    "real<lower=0, upper=1> v = p + p;": False,
    "real<lower=0, upper=1> v = s;": False,
    "real<lower=0> v = s; v -= p;": False,
    "vector<lower=0>[2] v = [s, x]';": False,
    "simplex[2] v = [p, 1 - p]';": False,
    "ordered[2] v = [x, s]';": False,
}
"""Transformed parameters, and whether their constraints are certain to hold."""


@pytest.mark.parametrize("text", CONSTRAINTS)
def test_constraints_of_transformed_parameters(text: str, tmp_path: Path) -> None:
    case = Case(
        "real x; real<lower=0> s; real<lower=0, upper=1> p; simplex[2] q; corr_matrix[2] r;",
        "x ~ normal(0, 1); s ~ exponential(1); q ~ dirichlet([1, 1]'); r ~ lkj_corr(1);",
        transformed=text,
    )
    path = tmp_path / "program.stan"
    path.write_text(case.text(), encoding="utf-8")
    program = temper(path, method="prior")
    assert (program.base_verdict == "normalised") == CONSTRAINTS[text], program.why
    assert ("v: its constraint" in program.why) != CONSTRAINTS[text]


SMALL = [seed for seed in range(400) if sum(fuzz_program(seed).parameters.values()) == 1][:40]


@pytest.mark.parametrize("chunk", range(4))
def test_random_programs(chunk: int, tmp_path: Path) -> None:
    """What is said to be normalised integrates to 1, whatever the program."""
    verdicts = Counter[str]()
    for seed in SMALL[chunk::4]:
        program = fuzz_program(seed)
        path = tmp_path / "program.stan"
        path.write_text(program.text, encoding="utf-8")
        said = temper(path, method="prior")
        verdicts[said.base_verdict] += 1
        written = tmp_path / f"prior_{seed}.stan"
        written.write_text(said.text, encoding="utf-8")
        if said.base_verdict in ("normalised", "halved"):
            found = integral(StanDensity(StanProgram(written), program.data))
            assert found == pytest.approx(0.5 ** len(said.halved), rel=2e-3), program.text
        assert said.base_verdict != "improper", program.text
    assert verdicts["normalised"] >= 2
