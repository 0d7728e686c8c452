"""Log densities of tempered programs against programs that were split by hand.

The references are the program with and without its likelihood, with constants, evaluated by
stanli: with whole(u) and prior(u) their log densities on the unconstrained space, the path is
prior + beta (whole - prior - log zeta), whatever the program.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from form_data import pseudo_extended_data
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from stan_density import StanDensity, log_box_jacobian

from harness.arrays import FloatArray
from harness.engine.program import StanProgram
from harness.errors import DataError
from harness.forms.continuous_tempering import tempering_data
from harness.model import Model
from harness.path import gaussian_base
from harness.path.data import path_data
from harness.temper import tempered_model

LOG_ZETA = -1.7
KNOTS = ((0.0, 1.0), (0.2, -0.5), (1.0, 2.0))


@dataclass(frozen=True)
class Case:
    """A program, marked for its split, and its unconstrained sizes.

    A line of the likelihood ends in ``//L``.  Other lines that not all three programs have: ``//X``
    the program itself alone, ``//R`` both references, ``//A`` the whole one, ``//P`` the prior.
    """

    text: str
    sizes: tuple[int, ...]
    data: dict[str, Any] = field(default_factory=dict)
    include: dict[str, str] = field(default_factory=dict)

    def marked(self, marks: str) -> str:
        """Text of the lines without a mark, or with one of these."""
        rows = [row.partition("//") for row in self.text.splitlines()]
        return "\n".join(
            code + (sign + rest if rest[:1] == " " else "")
            for code, sign, rest in rows
            if not rest or rest[0] in marks + " "
        )


def with_constants(text: str) -> str:
    """A text whose densities, each in a line, keep their constants."""

    def density(found: re.Match[str]) -> str:
        value, name, args = found.groups()
        kind = "lpmf" if name.startswith("poisson") else "lpdf"
        return f"target += {name}_{kind}({value} | {args});"

    text = text.replace("_lupdf", "_lpdf")
    return re.sub(r"(?<![^\s{])([^;{}~\n]*[^;{}~\s]) ~ (\w+)\((.*?)\);", density, text)


Y = [0.3, -1.2, 2.1]

CASES = {
    "eight schools": Case(
        """
        data { int<lower=0> J; vector[J] y; vector<lower=0>[J] sigma; }
        parameters { real mu; real<lower=0> tau; vector[J] raw; }
        transformed parameters { vector[J] theta = mu + tau * raw; real<lower=0> v = tau^2; }
        model {
          mu ~ normal(0, 5);
          tau ~ cauchy(0, 5) T[0, ]; //X
          target += cauchy_lpdf(tau | 0, 5) + log(2); //R
          raw ~ std_normal();
          y ~ normal(theta, sigma); //L
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
              y[n] ~ normal(delta[1], 1); //L
            } else {
              target += normal_lupdf(y[n] | inv_temp, 2); //L
              target += log(2 + piecewise_linear(inv_temp)); //L
            }
            k[n] ~ poisson_log(delta[2]); //L
          }
          delta ~ normal(0, 1 + beta);
        }
        """,
        (1, 2, 1),
        {"N": 3, "y": Y, "k": [0, 2, 1], "beta": 0.7},
    ),
    "names of a Gaussian base's data": Case(
        """
        data { array[3] real y; real base_mean; real base_cholesky; }
        transformed data { real whitened_mean = 2 * base_mean + base_cholesky; }
        parameters { real B; real<lower=0> whiten; real base_constant; }
        model {
          B ~ normal(whitened_mean, 3);
          whiten ~ lognormal(0, 1);
          base_constant ~ normal(B, 1);
          y ~ normal(B + base_constant, whiten); //L
        }
        """,
        (1, 1, 1),
        {"y": Y, "base_mean": 0.3, "base_cholesky": 1.2},
    ),
    "truncation": Case(
        """
        data { vector[3] y; array[3] int k; }
        parameters { real mu; real<lower=0.5> s; real<lower=0> rate; vector<lower=0>[3] each; }
        model {
          mu ~ normal(0, 3) T[-9, 9]; //X
          s ~ lognormal(0, 1) T[0.5, ]; //X
          rate ~ gamma(2, 1) T[ , 90]; //X
          target += normal_lpdf(mu | 0, 3) - log(Phi(3) - Phi(-3)); //R
          target += lognormal_lpdf(s | 0, 1) - log(Phi(-log(0.5))); //R
          target += gamma_lpdf(rate | 2, 1) - log1m_exp(log(91) - 90); //R
          each ~ lognormal(0, 1);
          y ~ normal(mu, s) T[-4, 4]; //X
          y ~ normal(mu, each) T[-4, ]; //X
          k ~ poisson(rate) T[1, 4]; //X
          k[2] ~ poisson(rate) T[1, ]; //X
          k ~ poisson(rate) T[ , 4]; //X
          for (n in 1 : 3) { //A
            real at_most = 0; //A
            for (j in 0 : 4) at_most += exp(poisson_lpmf(j | rate)); //A
            target += normal_lpdf(y[n] | mu, s) - log(Phi((4 - mu) / s) - Phi((-4 - mu) / s)); //A
            target += normal_lpdf(y[n] | mu, each[n]) - log(Phi((mu + 4) / each[n])); //A
            target += 2 * poisson_lpmf(k[n] | rate) - log(at_most - exp(-rate)) - log(at_most); //A
          } //A
          target += poisson_lpmf(k[2] | rate) - log1m_exp(-rate); //A
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
        }
        data { vector[3] y; }
        parameters { real mu; real<lower=0> s; }
        model {
          real shifted = shift_lp(mu);
          scale_lp(s);
          observe_lp(y, shifted); //L
          y ~ tail(s); //L
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
          target += normal_lpdf(y | mu[1], s) + normal_lpdf(mu | 0, 3) - gamma_lccdf(1 | 2, s); //L
          target += normal_lpdf(mu | 0, 3); //P
          target += -gamma_lccdf(1 | 2, s); //P
          target += dirichlet_lpdf(w | [2, 3]') + 2 * student_t_lpdf(s | 3, 0, 2);
          for (n in 1 : N) {
            vector[2] lp = log(w);
            for (j in 1 : 2) lp[j] += normal_lpdf(y[n] | mu[j], s);
            target += log_sum_exp(lp); //L
            target += log_mix(w[1], normal_lpdf(y[n] | mu[1], 1), normal_lpdf(y[n] | mu[2], 1)); //L
          }
          target += -N * log(s); //L
          target += y - mu[1]; //L
          target += {twice[1] * s, twice[2]}; //L
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
          real<lower=0> a; real<upper=1> b; real<lower=-1, upper=2> c;
          real<offset=1, multiplier=3> d;
          vector<lower=low>[K] e; row_vector<upper=3>[K] f; matrix<lower=0, upper=1>[2, K] g;
          array[2, 2] real h; array[2] vector<lower=0>[K] i; simplex[K] j; ordered[K] k;
          positive_ordered[K] l; unit_vector[K] m; sum_to_zero_vector[K] n; cov_matrix[2] o;
          corr_matrix[K] p; cholesky_factor_cov[K, 2] q; cholesky_factor_cov[2] r;
          cholesky_factor_corr[K] s; array[2] matrix[2, 2] t; array[2] simplex[K] u;
          sum_to_zero_matrix[2, K] v; vector<offset=low, multiplier=2>[K] w;
        }
        transformed parameters { simplex[K] share = softmax(k); matrix[2, 2] root = r + o; }
        model {
          real total = a + b + c + d + sum(e) + sum(f) + sum(g) + sum(h[1]) + sum(h[2]) + sum(i[1])
                       + sum(i[2]) + j[1] + sum(l) + m[1] + n[1] + sum(p) + sum(q) + s[2, 1]
                       + sum(t[1]) + sum(t[2]) + u[1][1] + u[2][2] + v[1, 1] + sum(root)
                       + share[1] + w[2];
          target += -square(total) / 50 - 0.5 * dot_self(w) / 9 + log(i[1][1]);
          y ~ normal(0.1 * total + i[1], 1); //L
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
          a ~ normal(0, 1); b ~ normal(1, 1); d ~ normal(1, 1); e ~ normal(0, 3);
          f ~ normal(a, b - a); g ~ normal(0, b - a); h ~ normal(0, 1); c ~ uniform(a, b);
          y ~ normal(m + sum(f) + g + e, 1); //L
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
            z ~ normal(1, 3); //L
            { z ~ normal(2, 3); } //L
            z ~ normal(3, 3); // temper: no
          }
          while (0) { }
          print("target ", target()); //X
          x ~ normal(z, 1); //L
        }
        """,
        (3, 1),
        {"y": Y, "mean_of_theta": [0.1, 0.2, 0.3], "x": 1.5},
        {
            "link.stanfunctions": "vector link(vector x) { return exp(x); }",
            "likelihood.stan": "y ~ normal(link(theta), 1); //L",
        },
    ),
}


@dataclass(frozen=True)
class World:
    """A case's model, and densities: of the program itself, and of the references."""

    model: Model
    program: StanDensity
    whole: StanDensity
    prior: StanDensity
    case: Case

    def ends(self, u: FloatArray) -> tuple[float, float]:
        """Log target over zeta, and log base, both with Stan's Jacobian."""
        return self.whole.value(u) - LOG_ZETA, self.prior.value(u)


@pytest.fixture(scope="module", params=CASES)
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> World:
    case = CASES[request.param]
    folder = tmp_path_factory.mktemp("programs")
    programs = {
        "program": case.marked("LX"),
        "whole": with_constants(case.marked("LRA")),
        "prior": with_constants(case.marked("RP")),
    }
    for name, text in programs.items():
        (folder / name).mkdir()
        (folder / f"{name}.stan").write_text(text)
        for file, content in case.include.items():
            kept = "" if name == "prior" and content.endswith("//L") else content + "\n"
            (folder / name / file).write_text(kept if name == "program" else with_constants(kept))
    whole, prior, program = (
        StanProgram(folder / f"{name}.stan", (folder / name,))
        for name in ("whole", "prior", "program")
    )
    return World(
        tempered_model(program.path, case.data, include_paths=program.include_paths),
        StanDensity(program, case.data),
        StanDensity(whole, case.data),
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
    assert abs(world.whole.value(u) - world.prior.value(u)) > 0.1


def test_the_reference_is_the_program_but_for_constants(world: World) -> None:
    """Stan drops constants of the program's own densities, and of nothing else."""
    differences = [world.whole.value(u) - world.program.value(u) for u in points(world, 5, 3)]
    np.testing.assert_allclose(differences, differences[0], rtol=1e-10, atol=1e-9)


def test_target_keeps_constants(world: World) -> None:
    target = StanDensity(world.model.program("target"), world.model.data)
    for u in points(world, 6, 3):
        agree(target.value(u), world.whole.value(u))


@pytest.mark.parametrize("beta", [0.0, 0.35, 1.0])
def test_joint_tempering(world: World, beta: float) -> None:
    data = tempering_data(world.model, log_zeta=LOG_ZETA, log_g=KNOTS)
    fixed = {"sample_inv_temp": 0, "fixed_inv_temp": [beta]}
    free = {"sample_inv_temp": 1, "fixed_inv_temp": []}
    at_beta = density(world, "joint_tempering", data | fixed)
    sampled = density(world, "joint_tempering", data | free) if 0 < beta < 1 else None
    for u in points(world, 1, 3):
        one, zero = world.ends(u)
        expected = beta * one + (1 - beta) * zero + float(log_g(beta))
        agree(at_beta.value(u), expected)
        if sampled is not None:
            v = np.log(beta / (1 - beta))
            agree(sampled.value([*u, v]), expected + log_box_jacobian(v, 0, 1))


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
    collapsed = density(world, "collapsed_tempering", data)
    for point, expected in zip(u, mass, strict=True):
        agree(collapsed.value(point), float(expected))
    log_target = np.array([one for one, _ in ends]) + LOG_ZETA
    expected = logsumexp(log_target - mass) - np.log(3) + mass.sum()
    found = density(world, "collapsed_pseudo_extended", data | {"N": 3}).value(stacked(world, u))
    agree(found, float(expected))


def test_gaussian_base(world: World) -> None:
    """A Gaussian base takes the place of the prior, with the Jacobian of what is positive."""
    size = world.model.dimension
    draws = np.random.default_rng(7).normal(0, 0.4, (size, size))
    base = gaussian_base(draws[0], draws @ draws.T + np.eye(size), log_zeta=LOG_ZETA)
    if world.model.no_gaussian_base is not None:
        with pytest.raises(DataError, match="takes no Gaussian base"):
            tempering_data(world.model, base)
        return
    logpdf = multivariate_normal(base.mean, base.covariance).logpdf
    data = tempering_data(world.model, base)
    fixed = data | {"sample_inv_temp": 0, "fixed_inv_temp": [0.35]}
    u = points(world, 8, 2)
    log_q = np.array([0.35 * world.ends(each)[0] + 0.65 * logpdf(each) for each in u])
    found = density(world, "joint_tempering", fixed).value(u[0])
    agree(found, float(log_q[0]))
    fixed = pseudo_extended_data(world.model, 2, 0.35, base=base)
    log_target = np.array([world.ends(each)[0] + LOG_ZETA for each in u])
    expected = logsumexp(log_target - log_q) - np.log(2) + log_q.sum()
    agree(density(world, "pseudo_extended", fixed).value(stacked(world, u)), float(expected))


def test_all_of_it_tempered(world: World, tmp_path: Path) -> None:
    """The base is flat but for what a comment keeps, so that the path is Jacobian + beta whole."""
    if "// temper: no" in world.case.text:
        pytest.skip("a comment keeps a part of it from being tempered")
    model = tempered_model(world.model.folder / "original.stan", world.case.data, what="all")
    tempered = World(model, world.program, world.whole, world.prior, world.case)
    data = path_data(model, log_zeta=LOG_ZETA) | {"sample_inv_temp": 0}
    half, one, none = (
        density(tempered, "joint_tempering", data | {"fixed_inv_temp": [beta]})
        for beta in (0.5, 1.0, 0.0)
    )
    for u in points(world, 9, 2):
        agree(one.value(u) + LOG_ZETA, world.whole.value(u))
        agree(half.value(u), 0.5 * (one.value(u) + none.value(u)))
    jacobian = [none.value(u) for u in points(world, 9, 2)]
    without_model = flat(world, tmp_path)
    expected = [without_model.value(u) for u in points(world, 9, 2)]
    np.testing.assert_allclose(jacobian, expected, rtol=1e-10, atol=1e-9)


def flat(world: World, folder: Path) -> StanDensity:
    """Return the density of the program without its model block: Stan's Jacobian alone."""
    head = re.split(r"transformed parameters|model \{", world.case.marked("LX"))[0]
    head = head.replace("#include link.stanfunctions", world.case.include.get("x", ""))
    (folder / "flat.stan").write_text(head + "model { }")
    return StanDensity(StanProgram(folder / "flat.stan"), world.case.data)


def log_mass(one: float, zero: float, *, ladder: bool) -> float:
    """Log of the integral of g(beta) times the path by Gauss-Legendre, or of the rungs' sum."""
    knot, value = np.array(KNOTS).T
    if ladder:
        return float(logsumexp(knot * one + (1 - knot) * zero + value))
    node, weight = np.polynomial.legendre.leggauss(200)
    pieces = []
    for low, high in pairwise(knot):
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
