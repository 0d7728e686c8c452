"""Log densities of tempered programs against programs that were split by hand.

The reference is the original program without its likelihood, written by hand, and the original
itself, both evaluated by stanli: with prior(u) and all(u) their log densities on the
unconstrained space, the path is prior + beta (all - prior - log zeta), whatever the program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from stan_density import StanDensity, log_box_jacobian

from harness.methods.continuous_tempering import tempering_data
from harness.methods.pseudo_extended import pseudo_extended_data
from harness.model import Model, StanProgram
from harness.temper import tempered_model
from harness.weights import FloatArray

LOG_ZETA = -1.7
KNOTS = ((0.0, 1.0), (0.2, -0.5), (1.0, 2.0))


@dataclass(frozen=True)
class Case:
    """A program, with marks on what is left out of its prior, and its unconstrained sizes.

    Lines that end in ``//-`` are the likelihood, and those that end in ``//+`` stand in the prior
    alone (where a statement is a prior's and a likelihood's in one).
    """

    text: str
    sizes: tuple[int, ...]
    data: dict[str, Any] = field(default_factory=dict)
    include: dict[str, str] = field(default_factory=dict)

    def original(self) -> str:
        return "\n".join(row for row in self.text.splitlines() if not row.endswith("//+"))

    def prior(self) -> str:
        rows = (row.removesuffix("//+") for row in self.text.splitlines())
        return "\n".join(row for row in rows if not row.endswith("//-"))


Y = [0.3, -1.2, 2.1]

CASES = {
    "eight schools": Case(
        """
        data { int<lower=0> J; vector[J] y; vector<lower=0>[J] sigma; }
        parameters { real mu; real<lower=0> tau; vector[J] raw; }
        transformed parameters { vector[J] theta = mu + tau * raw; real<lower=0> v = tau^2; }
        model {
          mu ~ normal(0, 5);
          tau ~ cauchy(0, 5) T[0, ];
          raw ~ std_normal();
          y ~ normal(theta, sigma); //-
        }
        generated quantities { real pooled = normal_rng(mu, tau); }
        """,
        (1, 1, 3),
        {"J": 3, "y": Y, "sigma": [1.0, 2.0, 0.5]},
    ),
    "names that clash, loops, conditions": Case(
        """
        functions {
          real piecewise_linear(real x) { return x < 0 ? 0 : x; }
        }
        data { int N; array[N] real y; array[N] int k; real beta; }
        transformed data { real log_zeta = 2 * beta; }
        parameters { real log_lik; vector[2] delta; real<lower=-1, upper=log_zeta> inv_temp; }
        model {
          real rest = square(log_lik);
          target += -rest;
          for (n in 1 : N) {
            if (k[n] > 0) {
              y[n] ~ normal(delta[1], 1); //-
            } else {
              target += normal_lupdf(y[n] | inv_temp, 2); //-
              target += log(2 + piecewise_linear(inv_temp)); //-
            }
            k[n] ~ poisson_log(delta[2]); //-
          }
          delta ~ normal(0, 1 + beta);
        }
        """,
        (1, 2, 1),
        {"N": 3, "y": Y, "k": [0, 2, 1], "beta": 0.7},
    ),
    "truncation": Case(
        """
        data { vector[3] y; array[3] int k; }
        parameters { real mu; real<lower=0.5> s; real<lower=0> rate; vector<lower=0>[3] each; }
        model {
          mu ~ normal(0, 3) T[-9, 9];
          s ~ lognormal(0, 1) T[0.5, ];
          rate ~ gamma(2, 1) T[ , 90];
          each ~ lognormal(0, 1);
          y ~ normal(mu, s) T[-4, 4]; //-
          y ~ normal(mu, each) T[-4, ]; //-
          k ~ poisson(rate) T[1, 9]; //-
          k[2] ~ poisson(rate) T[1, ]; //-
          k ~ poisson(rate) T[ , 7]; //-
        }
        """,
        (1, 1, 1, 3),
        {"y": Y, "k": [1, 4, 2]},
    ),
    "functions that add to the target": Case(
        """
        functions {
          real tail_lpdf(vector y, real s) { return student_t_lupdf(y | 4, 0, s); }
          void observe_lp(vector y, real mu);
          void scale_lp(real s) { s ~ normal(0, 2); target += -s; }
          real shift_lp(real x) { scale_lp(x); if (x > 0) return 2 * x; return x; }
          void observe_lp(vector y, real mu) { for (n in 1 : 3) { y[n] ~ normal(mu, 1); } }
          real slice_lpdf(array[] real y, int a, int b, real m) { return normal_lupdf(y | m, 1); }
        }
        data { vector[3] y; }
        parameters { real mu; real<lower=0> s; }
        model {
          real shifted = shift_lp(mu);
          scale_lp(s);
          observe_lp(y, shifted); //-
          y ~ tail(s); //-
          target += reduce_sum(slice_lupdf, to_array_1d(y), 1, mu); //-
          target += shift_lp(s);
        }
        """,
        (1, 1),
        {"y": Y},
    ),
    "sums of densities, mixtures": Case(
        """
        data { int N; vector[N] y; array[2] vector[N] twice; }
        parameters { ordered[2] mu; simplex[2] w; real<lower=0> s; }
        model {
          target += normal_lpdf(y | mu[1], s) + normal_lpdf(mu | 0, 3) - gamma_lccdf(0.1 | 2, s); //-
          target += normal_lpdf(mu | 0, 3); //+
          target += -gamma_lccdf(0.1 | 2, s); //+
          target += dirichlet_lpdf(w | [2, 3]') + 2 * student_t_lpdf(s | 3, 0, 2);
          for (n in 1 : N) {
            vector[2] lp = log(w);
            for (j in 1 : 2) lp[j] += normal_lpdf(y[n] | mu[j], s);
            target += log_sum_exp(lp); //-
            target += log_mix(w[1], normal_lpdf(y[n] | mu[1], 1), normal_lpdf(y[n] | mu[2], 1)); //-
          }
          target += -N * log(s); //-
          target += y - mu[1]; //-
          target += {twice[1] * s, twice[2]}; //-
          target += mu;
          target += log(s);
        }
        """,
        (2, 1, 1),
        {"N": 3, "y": Y, "twice": [Y, Y]},
    ),
    "all constraints": Case(
        """
        data { int K; vector[K] y; vector[K] low; }
        parameters {
          real<lower=0> a; real<upper=1> b; real<lower=-1, upper=2> c; real<offset=1, multiplier=3> d;
          vector<lower=low>[K] e; row_vector<upper=3>[K] f; matrix<lower=0, upper=1>[2, K] g;
          array[2, 2] real h; array[2] vector<lower=0>[K] i; simplex[K] j; ordered[K] k;
          positive_ordered[K] l; unit_vector[K] m; sum_to_zero_vector[K] n; cov_matrix[2] o;
          corr_matrix[K] p; cholesky_factor_cov[K, 2] q; cholesky_factor_cov[2] r;
          cholesky_factor_corr[K] s; array[2] matrix[2, 2] t; array[2] simplex[K] u;
          sum_to_zero_matrix[2, K] v; vector<offset=low, multiplier=2>[K] w;
        }
        transformed parameters { simplex[K] share = softmax(k); matrix[2, 2] root = r + o; }
        model {
          real total = a + b + c + d + sum(e) + sum(f) + sum(g) + sum(h[1]) + sum(h[2]) + sum(i[2])
                       + j[1] + sum(l) + m[1] + n[1] + sum(p) + sum(q) + s[2, 1] + sum(t[1])
                       + u[1][1] + u[2][2] + v[1, 1] + sum(root) + share[1] + w[2];
          target += -square(total) / 50 - 0.5 * dot_self(w) / 9 + log(i[1][1]);
          y ~ normal(0.1 * total + i[1], 1); //-
        }
        """,
        (1, 1, 1, 1, 3, 3, 6, 4, 6, 2, 3, 3, 3, 2, 3, 3, 5, 3, 3, 8, 4, 2, 3),
        {"K": 3, "y": Y, "low": [0.0, -1.0, 0.5]},
    ),
    "bounds that are parameters": Case(
        """
        data { int K; vector[K] y; }
        parameters {
          real a; real<lower=a> b; vector<lower=a, upper=b>[K] c; vector<lower=c>[K] d;
          real<upper=2 * a> e; vector<offset=a, multiplier=b - a>[K] f; real<multiplier=b - a> g;
          array[2] real<offset=a> h;
        }
        transformed parameters { vector[K] m = c + d; }
        model {
          a ~ normal(0, 1); b ~ normal(1, 1); d ~ exponential(1); e ~ normal(0, 3);
          f ~ normal(a, b - a); g ~ normal(0, b - a); h ~ normal(0, 1); c ~ uniform(a, b);
          y ~ normal(m + sum(f) + g + e, 1); //-
        }
        """,
        (1, 1, 3, 3, 1, 3, 1, 2),
        {"K": 3, "y": Y},
    ),
    "overrides and includes": Case(
        """
        functions {
          #include link.stanfunctions
        }
        data { vector[3] y; vector[3] mean_of_theta; real x; }
        parameters { vector[3] theta; real z; }
        model {
          theta - mean_of_theta ~ normal(0, 1); // temper: no
          #include likelihood.stan
          z ~ normal(0, 1);
          profile("both") { // temper: yes
            z ~ normal(1, 3); //-
            { z ~ normal(2, 3); } //-
            z ~ normal(3, 3); // temper: no
          }
          while (0) { }
          print("target ", target());
          x ~ normal(z, 1); //-
        }
        """,
        (3, 1),
        {"y": Y, "mean_of_theta": [0.1, 0.2, 0.3], "x": 1.5},
        {
            "link.stanfunctions": "vector link(vector x) { return exp(x); }",
            "likelihood.stan": "y ~ normal(link(theta), 1); //-",
        },
    ),
}


@dataclass(frozen=True)
class World:
    """A case's model, with the densities of the original and of its prior."""

    model: Model
    original: StanDensity
    prior: StanDensity
    case: Case

    def ends(self, u: FloatArray) -> tuple[float, float]:
        """Log target over zeta, and log base, both with Stan's Jacobian."""
        return self.original.value(u) - LOG_ZETA, self.prior.value(u)


@pytest.fixture(scope="module", params=CASES)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    case = CASES[request.param]
    folder = tmp_path_factory.mktemp("programs")
    for name, text in case.include.items():
        (folder / name).write_text(text + "\n")
    for name, text in (("original", case.original()), ("prior", case.prior())):
        (folder / f"{name}.stan").write_text(text)
    if case.include:
        without = folder / "without"
        without.mkdir()
        for name, text in case.include.items():
            (without / name).write_text("" if text.endswith("//-") else text + "\n")
    model = tempered_model(folder / "original.stan", case.data)
    prior = StanProgram(folder / "prior.stan", (folder / "without",))
    return World(
        model,
        StanDensity(StanProgram(folder / "original.stan", (folder,)), case.data),
        StanDensity(prior, case.data),
        case,
    )


def points(world: World, seed: int, count: int) -> FloatArray:
    draws: FloatArray = np.random.default_rng(seed).normal(0, 0.7, (count, world.model.dimension))
    return draws


def log_g(beta: FloatArray | float) -> FloatArray:
    knot, value = np.array(KNOTS).T
    return np.asarray(np.interp(beta, knot, value))


def agree(found: float, expected: float) -> None:
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-9)


def test_the_sizes_are_those_of_the_program(world: World) -> None:
    assert sum(world.case.sizes) == world.model.dimension == world.prior.dimension


def test_the_likelihood_is_there(world: World) -> None:
    """The reference is no reference if both its programs are one."""
    u = points(world, 0, 1)[0]
    assert abs(world.original.value(u) - world.prior.value(u)) > 0.1


@pytest.mark.parametrize("beta", [0.0, 0.35, 1.0])
def test_continuously_tempered(world: World, beta: float) -> None:
    data = tempering_data(world.model, log_zeta=LOG_ZETA, log_g=KNOTS)
    fixed = {"sample_inv_temp": 0, "fixed_inv_temp": [beta]}
    free = {"sample_inv_temp": 1, "fixed_inv_temp": []}
    for u in points(world, 1, 3):
        one, zero = world.ends(u)
        expected = beta * one + (1 - beta) * zero + float(log_g(beta))
        agree(density(world, "continuously_tempered", data | fixed).value(u), expected)
        if 0 < beta < 1:
            v = np.log(beta / (1 - beta))
            sampled = density(world, "continuously_tempered", data | free).value([*u, v])
            agree(sampled, expected + log_box_jacobian(v, 0, 1))


def density(world: World, variant: str, data: dict[str, Any]) -> StanDensity:
    aliases = world.model.aliases[variant]
    named = {aliases.get(name, name): value for name, value in data.items()}
    return StanDensity(world.model.program(variant), {**world.model.data, **named})


@pytest.mark.parametrize("ladder", [False, True])
def test_collapsed(world: World, ladder: bool) -> None:
    data = tempering_data(world.model, log_zeta=LOG_ZETA, log_g=KNOTS) | {"ladder": int(ladder)}
    u = points(world, 2, 3)
    ends = [world.ends(each) for each in u]
    mass = np.array([log_mass(*each, ladder=ladder) for each in ends])
    for point, expected in zip(u, mass, strict=True):
        agree(density(world, "collapsed_tempered", data).value(point), float(expected))
    log_target = np.array([one for one, _ in ends]) + LOG_ZETA
    expected = logsumexp(log_target - mass) - np.log(3) + mass.sum()
    found = density(world, "collapsed_pseudo_extended", data | {"N": 3}).value(stacked(world, u))
    agree(found, float(expected))


def log_mass(one: float, zero: float, *, ladder: bool) -> float:
    """Log of the integral of g(beta) times the path by Gauss-Legendre, or of the rungs' sum."""
    knot, value = np.array(KNOTS).T
    if ladder:
        return float(logsumexp(knot * one + (1 - knot) * zero + value))
    node, weight = np.polynomial.legendre.leggauss(200)
    pieces = []
    for low, high in zip(knot[:-1], knot[1:], strict=True):
        beta = low + (high - low) * (node + 1) / 2
        share = np.log(weight * (high - low) / 2)
        pieces.append(beta * one + (1 - beta) * zero + share + log_g(beta))
    return float(logsumexp(np.concatenate(pieces)))


def stacked(world: World, u: FloatArray) -> FloatArray:
    """Unconstrained parameters of pseudo-samples (N, D): parameter by parameter, all N of each."""
    ends = np.cumsum(world.case.sizes)[:-1]
    return np.concatenate([part.ravel() for part in np.split(u, ends, axis=1)])


@pytest.mark.parametrize("num", [1, 3])
def test_pseudo_extended(world: World, num: int) -> None:
    data = pseudo_extended_data(
        world.model,
        num,
        log_zeta=LOG_ZETA,
        log_g=KNOTS,
        g_shape=(2.0, 1.3),
        log_pi=((0.0, 0.2), (1.0, -1.0)),
    )
    u = points(world, 3, num)
    v = np.random.default_rng(4).normal(0, 1, num)
    beta = 1 / (1 + np.exp(-v))
    one, zero = np.array([world.ends(each) for each in u]).T
    log_q = beta * one + (1 - beta) * zero + log_g(beta) + np.log(beta) + 0.3 * np.log1p(-beta)
    log_target = one + LOG_ZETA + 0.2 - 1.2 * beta
    expected = logsumexp(log_target - log_q) - np.log(num) + log_q.sum()
    expected += log_box_jacobian(v, 0, 1)
    found = density(world, "pseudo_extended", data).value([*stacked(world, u), *v])
    agree(found, float(expected))
