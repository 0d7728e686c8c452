"""Priors by quantiles: against SciPy's distributions, Beta marginals and the program's density."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from quick_cube import quick_cube
from scipy import stats
from stan_density import stanli

from harness.errors import DataError
from harness.user import UnitCube
from harness.user.quantiles import FAMILIES, STANDARD, Cut

assert stanli is not None

# Stan's functions reference, chapter by chapter, in SciPy's parametrisation.
SCIPY: dict[str, tuple[tuple[float, ...], Any]] = {
    "uniform": ((-1.0, 3.0), stats.uniform(-1, 4)),
    "normal": ((2.0, 3.0), stats.norm(2, 3)),
    "std_normal": ((), stats.norm()),
    "student_t": ((3.5, 1.0, 2.0), stats.t(3.5, 1, 2)),
    "cauchy": ((-1.0, 0.5), stats.cauchy(-1, 0.5)),
    "double_exponential": ((1.0, 2.0), stats.laplace(1, 2)),
    "logistic": ((1.0, 2.0), stats.logistic(1, 2)),
    "gumbel": ((1.0, 2.0), stats.gumbel_r(1, 2)),
    "lognormal": ((0.5, 0.7), stats.lognorm(0.7, scale=math.exp(0.5))),
    "exponential": ((2.0,), stats.expon(scale=0.5)),
    "gamma": ((2.5, 3.0), stats.gamma(2.5, scale=1 / 3)),
    "chi_square": ((3.0,), stats.chi2(3)),
    "inv_gamma": ((3.0, 20.0), stats.invgamma(3, scale=20)),
    "inv_chi_square": ((4.0,), stats.invgamma(2, scale=0.5)),
    "scaled_inv_chi_square": ((4.0, 1.5), stats.invgamma(2, scale=4.5)),
    "weibull": ((1.5, 2.0), stats.weibull_min(1.5, scale=2)),
    "rayleigh": ((2.0,), stats.rayleigh(scale=2)),
    "frechet": ((2.5, 2.0), stats.invweibull(2.5, scale=2)),
    "loglogistic": ((2.0, 1.5), stats.fisk(1.5, scale=2)),
    "beta": ((2.0, 0.5), stats.beta(2, 0.5)),
    "beta_proportion": ((0.3, 5.0), stats.beta(1.5, 3.5)),
    "pareto": ((2.0, 1.5), stats.pareto(1.5, scale=2)),
    "pareto_type_2": ((1.0, 2.0, 1.5), stats.lomax(1.5, loc=1, scale=2)),
}
P = np.array([1e-6, 0.01, 0.3, 0.5, 0.77, 0.99, 1 - 1e-6])


def test_there_is_an_oracle_for_each_family() -> None:
    assert set(SCIPY) == set(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
def test_quantiles_and_densities_are_scipys(family: str) -> None:
    args, exact = SCIPY[family]
    given = [np.asarray(each) for each in (*args, 0.0, 0.0, 0.0)[:3]]
    name, (location, scale, *shapes) = FAMILIES[family](*given)
    one = np.ones(1)
    cut = Cut(
        STANDARD[name],
        one * location,
        one * scale,
        tuple(one * each for each in shapes),
        -np.inf * one,
        np.inf * one,
    )
    x = cut.quantile(P[:, None])
    # Rounding of p near 1 is worth 1e-16 / 1e-6 there; the rest are different series.
    np.testing.assert_allclose(x[:, 0], exact.ppf(P), rtol=1e-8)
    np.testing.assert_allclose(cut.log_density(x)[:, 0], exact.logpdf(x[:, 0]), rtol=1e-8)
    below, above = cut.ends()
    assert (below[0], above[0]) == (0, 1)


def cube_of(folder: Path, text: str, data: dict[str, Any] | None = None) -> UnitCube:
    path = folder / "program.stan"
    path.write_text(text, encoding="utf-8")
    return quick_cube(path, data or {}, folder)


EVERYTHING = """
functions { real wide(real a) { return 2 * a; } }
data { int K; vector[K] m; array[K] real<lower=0> s; array[K] real top; real y; }
transformed data { vector[K] shifted = m + 1; int twice = 2 * K; }
parameters {
  vector[K] a;                                // a prior for each element
  real<lower=0> half;                         // cut in half by its bound
  real<lower=1, upper=4> cut;                 // by both bounds, and T[,]
  real<lower=-2, upper=6> flat;
  array[K] real<upper=top> below;             // bounds of their own
  matrix[2, twice] w;
  array[2] simplex[3] q;
  real<offset=3, multiplier=2> o;
  array[K] vector<lower=0>[2] scale;
}
transformed parameters { real total = sum(a); }
model {
  vector[K] centre = shifted;
  for (k in 1 : K) {
    a[k] ~ normal(centre[k], wide(s[k]));
    scale[k] ~ gamma([2, 3]', s[k]);
  }
  half ~ normal(0, 2);
  cut ~ normal(2, 1) T[1, 4];
  below ~ normal(1, 2);
  to_vector(w) ~ student_t(4, 0, 1);
  w[1, 1] ~ FAMILY;
  for (n in 1 : 2) q[n] ~ dirichlet([1, 2, 3.5]');
  target += logistic_lpdf(o | 1, 2);
  y ~ normal(total + o, half);
}
"""
DATA: dict[str, Any] = {"K": 2, "m": [0.5, -1.0], "s": [1.0, 3.0], "top": [0.0, 2.0], "y": 1.5}
SHAPES = {"a": 2, "half": 1, "cut": 1, "flat": 1, "below": 2, "w": 8, "q": 6, "o": 1, "scale": 4}


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> UnitCube:
    text = EVERYTHING.replace("  w[1, 1] ~ FAMILY;\n", "")
    return cube_of(tmp_path_factory.mktemp("everything"), text, DATA)


def columns() -> dict[str, slice]:
    ends = pairwise(np.cumsum([0, *SHAPES.values()]))
    return {name: slice(*pair) for name, pair in zip(SHAPES, ends, strict=True)}


def truncated(distribution: Any, low: float, high: float, u: Any) -> Any:
    """Quantiles between two ends, by the mass between them."""
    below, above = distribution.cdf(low), distribution.cdf(high)
    return distribution.ppf(below + (above - below) * u)


def test_parameters_are_quantiles_of_what_the_program_states(everything: UnitCube) -> None:
    assert everything.dimension == sum(SHAPES.values())
    u = np.random.default_rng(1).random((50, everything.dimension))
    x, at = everything.parameters(u), columns()
    own = {name: u[:, each] for name, each in at.items()}
    exact = {
        "a": stats.norm([1.5, 0.0], [2.0, 6.0]).ppf(own["a"]),
        "half": stats.halfnorm(scale=2).ppf(own["half"])[:, 0],
        "cut": stats.truncnorm(-1, 2, loc=2).ppf(own["cut"])[:, 0],
        "flat": -2 + 8 * own["flat"][:, 0],
        "below": np.stack(
            [truncated(stats.norm(1, 2), -np.inf, top, own["below"][:, k])
             for k, top in enumerate(DATA["top"])], axis=1
        ),
        "w": stats.t(4).ppf(own["w"]).reshape(50, 2, 4),
        "o": stats.logistic(1, 2).ppf(own["o"])[:, 0],
        "scale": stats.gamma([2, 3, 2, 3], scale=1 / np.array([1, 1, 3, 3]))
        .ppf(own["scale"]).reshape(50, 2, 2),
    }  # fmt: skip
    for name, value in exact.items():
        np.testing.assert_allclose(x[name], value, rtol=1e-9, err_msg=name)
    # The program divides neither the normals by their mass nor the flat prior by its width.
    masses = [0.5, *stats.norm(1, 2).cdf(DATA["top"]), 8.0]
    assert everything.log_prior_integral == pytest.approx(np.log(masses).sum(), abs=1e-9)


def test_simplexes_are_dirichlet(everything: UnitCube) -> None:
    """Each element of a Dirichlet vector has a Beta distribution; two have a known correlation."""
    u = np.random.default_rng(2).random((4000, everything.dimension))
    q = everything.parameters(u)["q"]
    np.testing.assert_allclose(q.sum(axis=-1), 1, rtol=1e-12)
    alpha = np.array([1, 2, 3.5])
    for simplex in range(2):
        for element in range(3):
            exact = stats.beta(alpha[element], alpha.sum() - alpha[element])
            # Six tests: a false alarm in one of 1,700 seeds.
            assert stats.kstest(q[:, simplex, element], exact.cdf).pvalue > 1e-4
    known = -math.sqrt(alpha[0] * alpha[1] / ((6.5 - alpha[0]) * (6.5 - alpha[1])))
    # The error of a correlation of n pairs is at most 1 / sqrt(n), here .016; four of these.
    assert abs(np.corrcoef(q[:, 0, 0], q[:, 0, 1])[0, 1] - known) < 4 / math.sqrt(len(q))
    assert abs(np.corrcoef(q[:, 0, 0], q[:, 1, 0])[0, 1]) < 4 / math.sqrt(len(q))


def test_the_likelihood_is_that_of_the_program(everything: UnitCube) -> None:
    u = np.random.default_rng(3).random((50, everything.dimension))
    x = everything.parameters(u)
    exact = stats.norm(x["a"].sum(axis=1) + x["o"], x["half"]).logpdf(DATA["y"])
    before = everything.evaluations
    np.testing.assert_allclose(everything.log_likelihood(u), exact, rtol=1e-9)
    assert everything.evaluations == before + 50
    # At the ends of the cube everything is still a number.
    ends = everything.log_likelihood(np.array([[0.0], [1.0]]) * np.ones(everything.dimension))
    assert not np.any(np.isnan(ends))
    with pytest.raises(DataError, match=r"points of shape \(n, 26\); got \(26,\)"):
        everything.log_likelihood(u[0])


def test_a_point_that_the_program_rejects_has_no_likelihood(tmp_path: Path) -> None:
    cube = cube_of(
        tmp_path,
        "data { real y; } parameters { real x; } transformed parameters { real<lower=0> z = x; } "
        "model { x ~ std_normal(); y ~ normal(z, 1); }",
        {"y": 0.0},
    )
    assert np.array_equal(np.isfinite(cube.log_likelihood(np.array([[0.2], [0.8]]))), [False, True])


ONE = "data { real y; vector[2] v; } parameters { %s } model { y ~ normal(x, 1); %s }"


@pytest.mark.parametrize(
    ("declared", "prior", "message"),
    [
        ("real x; real<lower=0> s;", "x ~ normal(0, s); s ~ gamma(2, 1);", "depend on s"),
        ("real x;", "", "x has no prior and is not bounded"),
        ("real x; real<lower=0> s;", "x ~ normal(0, 1);", "s has no prior and is not bounded"),
        ("real x;", "x ~ normal(0, 1); x ~ normal(1, 1);", "x has more than one density"),
        ("real x;", "x ~ normal(v, 1);", "x has more than one density"),
        ("real x;", "x ~ skew_normal(0, 1, 2);", "quantiles are not known"),
        ("real x;", "target += -0.5 * square(x);", "is not a distribution of Stan's"),
        ("real x;", "target += 2 * normal_lpdf(x | 0, 1);", "is not a distribution of Stan's"),
        ("real<lower=0> x;", "log(x) ~ normal(0, 1);", "not a distribution of a parameter as"),
        ("real x; vector[2] z;", "x ~ normal(0, 1); z ~ multi_normal(v, identity_matrix(2));",
         "is not known|quantiles are not known"),
        ("real x; real z;", "x ~ normal(0, 1); if (x > 0) z ~ normal(0, 1); else z ~ normal(0, 2);",
         "x decides whether it counts"),
        ("real x; simplex[3] q;", "x ~ normal(0, 1);", "q is a simplex with no prior"),
        ("real x; ordered[2] c;", "x ~ normal(0, 1); c ~ normal(0, 1);", "the constraint of c"),
        ("real x; real<lower=x> z;", "x ~ normal(0, 1); z ~ normal(0, 1);", "the constraint of z"),
        ("real<lower=40> x;", "x ~ normal(0, 1);", "next to none of its prior"),
        # Its bounds are wider than the prior, so that the density is zero in a part.
        ("real<lower=0, upper=3> x;", "x ~ uniform(0, 2);", ""),
    ],
)  # fmt: skip
def test_priors_of_another_form_are_refused(
    tmp_path: Path, declared: str, prior: str, message: str
) -> None:
    data = {"y": 0.5, "v": [0.0, 1.0]}
    if not message:
        cube = cube_of(tmp_path, ONE % (declared, prior), data)
        x = cube.parameters(np.array([[0.25], [0.75]]))["x"]
        np.testing.assert_allclose(x, [0.5, 1.5])
        return
    with pytest.raises(DataError, match=message) as raised:
        cube_of(tmp_path, ONE % (declared, prior), data)
    assert str(raised.value).startswith("the prior of program cannot be drawn by quantiles")
    assert "\n" not in str(raised.value)
