"""The prior alone and the target, as programs: against closed forms, NumPy and SciPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpus_data import corpus_data
from corpus_oracle import CORPUS
from scipy import special, stats
from tempered_oracle import prior_and_target

from harness.temper import temper


def written(folder: Path, text: str) -> Path:
    path = folder / "program.stan"
    path.write_text(text, encoding="utf-8")
    return path


COUNTED = """
data { int N; array[N] int w; }
parameters { simplex[3] p; }
model {
  p ~ dirichlet([1, 1, 1]');
  for (n in 1 : N) {
    target += log(p[w[n]]);
  }
}
"""
W = np.array([1, 1, 2, 3, 1, 2])


def test_categories_are_the_likelihood(tmp_path: Path) -> None:
    """Against the closed form, at points and integrated over the simplex."""
    prior, target = prior_and_target(written(tmp_path, COUNTED), {"N": 6, "w": W})
    rng = np.random.default_rng(3)
    for _ in range(5):
        p = rng.dirichlet([2, 2, 2])
        u = target.unconstrain({"p": p})
        exact = np.sum(np.log(p[W - 1]))
        assert target.value(u) - prior.value(u) == pytest.approx(exact, rel=1e-12)
        # On Stan's unconstrained space, whose Jacobian is that of a flat density.
    t = np.linspace(-12, 12, 161)
    cell = 2 * np.log(t[1] - t[0])
    grid = [(a, b) for a in t for b in t]
    log_z = special.logsumexp([target.value(point) for point in grid]) + cell
    log_one = special.logsumexp([prior.value(point) for point in grid]) + cell
    counts = np.bincount(W - 1)
    exact = special.gammaln(3) + np.sum(special.gammaln(counts + 1)) - special.gammaln(9)
    assert exact == pytest.approx(math.log(2 * 6 * 2 * 1 / math.factorial(8)), rel=1e-12)
    assert log_one == pytest.approx(0, abs=1e-4)
    assert log_z == pytest.approx(exact, abs=1e-4)


def test_topics_are_the_likelihood(tmp_path: Path) -> None:
    """Latent Dirichlet allocation, summed over topics in NumPy."""
    data = corpus_data("lda_small")
    path = written(tmp_path, (CORPUS / "lda_small.stan").read_text(encoding="utf-8"))
    prior, target = prior_and_target(path, data)
    rng = np.random.default_rng(4)
    for _ in range(3):
        theta = rng.dirichlet(np.ones(data["K"]), data["M"])
        phi = rng.dirichlet(np.ones(data["V"]), data["K"])
        u = target.unconstrain({"theta": theta, "phi": phi})
        shares = theta[data["doc"] - 1][:, :, None] * phi[None]
        exact = np.sum(np.log(shares.sum(1)[np.arange(data["N"]), data["w"] - 1]))
        assert target.value(u) - prior.value(u) == pytest.approx(exact, rel=1e-12)


@dataclass(frozen=True)
class Case:
    """A program with its data, the log density of its prior, and a point."""

    text: str
    data: Mapping[str, Any]
    exact: Callable[..., Any]
    point: Mapping[str, Any]


CASES = {
    "eight schools": Case(
        """data { int J; vector[J] y; vector[J] sigma; }
        parameters { real mu; real<lower=0> tau; vector[J] eta; }
        transformed parameters { vector[J] theta = mu + tau * eta; }
        model {
          mu ~ normal(0, 5); tau ~ cauchy(0, 5) T[0, ]; eta ~ std_normal();
          y ~ normal(theta, sigma);
        }
        generated quantities { real pooled = normal_rng(mu, tau); }""",
        {"J": 3, "y": [1.0, -2.0, 0.5], "sigma": [1.0, 2.0, 3.0]},
        lambda mu, tau, eta: (
            stats.norm(0, 5).logpdf(mu)
            + stats.halfcauchy(0, 5).logpdf(tau)
            + np.sum(stats.norm().logpdf(eta))
            + math.log(tau)
        ),
        {"mu": 0.4, "tau": 2.5, "eta": np.array([0.3, -1.0, 0.2])},
    ),
    "loops, locals and a jump": Case(
        """data { int N; vector[N] y; array[N] int z; }
        parameters { vector[2] m; real<lower=0> s; }
        model {
          real scale = 0;
          for (n in 1 : N) {
            if (z[n] == 0) continue;
            scale += 1;
          }
          real centre = mean(y - m[1]);
          for (k in 1 : 2) {
            vector[2] shift = [0, 1]';
            if (k == 1) { y ~ normal(centre, s); } else { m ~ normal(shift, scale); }
          }
          s ~ gamma(2, 1 / scale);
        }""",
        {"N": 3, "y": [1.0, -2.0, 0.5], "z": [1, 0, 1]},
        lambda m, s: (
            np.sum(stats.norm([0, 1], 2).logpdf(m))
            + stats.gamma(2, scale=2).logpdf(s)
            + math.log(s)
        ),
        {"m": np.array([0.7, -0.4]), "s": 1.3},
    ),
    "a change of variables": Case(
        """data { vector[2] y; }
        parameters { real a; }
        transformed parameters { real b = lower_bound_jacobian(a, 0); }
        model { b ~ exponential(2); y ~ normal(b, 1); }""",
        {"y": [0.3, 0.4]},
        lambda a: stats.expon(scale=0.5).logpdf(math.exp(a)) + a,
        {"a": -0.4},
    ),
    "a function that adds": Case(
        """functions {
          real scaled_lp(real x, vector y) { x ~ normal(0, 2); return x * mean(y); }
          void seen_lp(vector y, real m) { y ~ normal(m, 1); }
        }
        data { vector[2] y; }
        parameters { real a; }
        model { real m = scaled_lp(a, y); seen_lp(y, m); }""",
        {"y": [0.3, 0.4]},
        lambda a: stats.norm(0, 2).logpdf(a),
        {"a": -0.4},
    ),
    "a covariance": Case(
        """data { vector[2] y; }
        parameters { vector[2] m; cov_matrix[2] S; }
        model {
          S ~ inv_wishart(5, identity_matrix(2)); m ~ multi_normal([0, 1]', S);
          y ~ multi_normal(m, S);
        }""",
        {"y": [0.3, 0.4]},
        lambda m, S: (
            stats.invwishart(5, np.eye(2)).logpdf(S)
            + stats.multivariate_normal([0, 1], S).logpdf(m)
            # Of S = L L', whose factor has logarithms on its diagonal.
            + 2 * math.log(2) + 3 * np.log(np.linalg.cholesky(S)[0, 0])
            + 2 * np.log(np.linalg.cholesky(S)[1, 1])
        ),
        {"m": np.array([0.2, 0.1]), "S": np.array([[1.0, 0.3], [0.3, 0.8]])},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_prior_alone(name: str, tmp_path: Path) -> None:
    """The written prior against SciPy's, Jacobian and constants included."""
    case = CASES[name]
    path = written(tmp_path, case.text)
    prior, target = prior_and_target(path, case.data)
    u = target.unconstrain(case.point)
    assert prior.value(u) == pytest.approx(float(case.exact(**case.point)), rel=1e-12)
    assert target.value(u) != pytest.approx(prior.value(u), rel=1e-3)
    program = temper(path, method="prior")
    assert "(y |" not in program.text.partition("\nparameters {")[2]
    assert "generated quantities {" not in program.text
    assert tuple(program.parameters) == tuple(program.parameters.values()) == tuple(case.point)
