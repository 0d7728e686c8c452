"""Simulated priors: against SciPy's closed forms, and what is refused or found out to be wrong.

Bounds on how far an empirical distribution function is from the exact one follow from Kolmogorov's
law: with n independent draws sqrt(n) times the largest distance is above 2.4 with probability
2 exp(-2 2.4^2) = 2e-5.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from corpus_data import corpus_data
from scipy import stats

from harness.arrays import FloatArray
from harness.engine.batched import BatchedDensity
from harness.engine.program import StanProgram
from harness.engine.stanc import Stanc
from harness.engine.toolchain import require_stanc
from harness.errors import HarnessError, SamplingError
from harness.model import Model
from harness.models.hard.vaccines import vaccines
from harness.temper import temper, tempered_model
from harness.temper.classify import classify
from harness.temper.drawn import NotSimulatedError
from harness.temper.model import CHANGE_OF_VARIABLES, PRIOR_SIMULATION
from harness.temper.sequence import Uses, in_sequence
from harness.temper.simulate import LOG_SIMULATED, write_simulation
from harness.temper.syntax import read_syntax
from harness.user.draw_prior import prior_draws
from harness.user.prior import PRIOR
from harness.user.simulated import can_be_simulated, simulated_prior

DRAWS = 2000
FAR = 2.4
CORPUS = Path(__file__).parent / "corpus"

Distribution = Callable[[FloatArray], FloatArray]


def written(folder: Path, parameters: str, prior: str, before: str = "", given: str = "") -> Path:
    """Write a program with a prior, and a likelihood that depends on nothing of it."""
    path = folder / "program.stan"
    path.write_text(
        f"{before}\ndata {{ real y; int K; matrix[3, 3] S; {given} }}\n"
        f"parameters {{ real other; {parameters} }}\n"
        f"model {{ {prior} other ~ normal(0, 1); y ~ normal(other, 1); }}",
        encoding="utf-8",
    )
    return path


S = np.array([[2.0, 0.6, 0.3], [0.6, 1.0, -0.2], [0.3, -0.2, 0.5]])
DATA: dict[str, Any] = {"y": 0.3, "K": 4, "S": S}


def simulated(path: Path, **more: Any) -> dict[str, FloatArray]:
    """Return checked draws of a prior, by parameter."""
    found = temper(path, method="prior")
    assert found.simulation is not None
    folder = path.parent / "programs"
    folder.mkdir()
    (folder / f"{PRIOR}.stan").write_text(found.text)
    (folder / f"{PRIOR_SIMULATION}.stan").write_text(found.simulation.text)
    (folder / f"{CHANGE_OF_VARIABLES}.stan").write_text(found.simulation.jacobian)
    names = {PRIOR_SIMULATION: {LOG_SIMULATED: found.simulation.log_density}}
    model = Model("program", folder, DATA | more, tuple(found.parameters), 0, aliases=names)
    density = BatchedDensity(model.program(PRIOR), model.data)
    return density.constrain(simulated_prior(model, density, DRAWS, seed=4).points)


def check(values: FloatArray, exact: Distribution) -> None:
    """Whether independent draws have a distribution function."""
    ordered = np.sort(values.ravel())
    n = len(ordered)
    probability = exact(ordered)
    above = np.arange(1, n + 1) / n - probability
    distance = max(np.max(above), np.max(1 / n - above))
    assert np.sqrt(n) * distance < FAR


def _skewed(x: FloatArray) -> FloatArray:
    """Return the distribution function of skew_double_exponential(0.5, 1.5, 0.3)."""
    mu, sigma, tau = 0.5, 1.5, 0.3
    below = tau * np.exp(-2 * (1 - tau) / sigma * np.maximum(mu - x, 0))
    above = 1 - (1 - tau) * np.exp(-2 * tau / sigma * np.maximum(x - mu, 0))
    return np.asarray(np.where(x < mu, below, above))


NUMBERS: dict[str, tuple[str, str, Distribution]] = {
    "normal": ("", "0.5, 2", stats.norm(0.5, 2).cdf),
    "std_normal": ("", "", stats.norm.cdf),
    "student_t": ("", "4, 0.5, 2", stats.t(4, 0.5, 2).cdf),
    "cauchy": ("", "0.5, 2", stats.cauchy(0.5, 2).cdf),
    "double_exponential": ("", "0.5, 2", stats.laplace(0.5, 2).cdf),
    "logistic": ("", "0.5, 2", stats.logistic(0.5, 2).cdf),
    "gumbel": ("", "0.5, 2", stats.gumbel_r(0.5, 2).cdf),
    "exp_mod_normal": ("", "0.5, 2, 0.7", stats.exponnorm(1 / 1.4, 0.5, 2).cdf),
    "skew_normal": ("", "0.5, 2, -3", stats.skewnorm(-3, 0.5, 2).cdf),
    "skew_double_exponential": ("", "0.5, 1.5, 0.3", _skewed),
    "lognormal": ("<lower=0>", "0.5, 2", stats.lognorm(2, scale=np.exp(0.5)).cdf),
    "chi_square": ("<lower=0>", "3", stats.chi2(3).cdf),
    "inv_chi_square": ("<lower=0>", "3", stats.invgamma(1.5, scale=0.5).cdf),
    "scaled_inv_chi_square": ("<lower=0>", "3, 2", stats.invgamma(1.5, scale=6).cdf),
    "exponential": ("<lower=0>", "2", stats.expon(scale=0.5).cdf),
    "gamma": ("<lower=0>", "3, 2", stats.gamma(3, scale=0.5).cdf),
    "inv_gamma": ("<lower=0>", "3, 2", stats.invgamma(3, scale=2).cdf),
    "weibull": ("<lower=0>", "3, 2", stats.weibull_min(3, scale=2).cdf),
    "frechet": ("<lower=0>", "3, 2", stats.invweibull(3, scale=2).cdf),
    "rayleigh": ("<lower=0>", "2", stats.rayleigh(scale=2).cdf),
    "loglogistic": ("<lower=0>", "2, 3", stats.fisk(3, scale=2).cdf),
    "pareto": ("<lower=2>", "2, 3", stats.pareto(3, scale=2).cdf),
    "pareto_type_2": ("<lower=1>", "1, 2, 3", stats.lomax(3, loc=1, scale=2).cdf),
    "beta": ("<lower=0, upper=1>", "3, 2", stats.beta(3, 2).cdf),
    "beta_proportion": ("<lower=0, upper=1>", "0.3, 5", stats.beta(1.5, 3.5).cdf),
    "uniform": ("<lower=-1, upper=3>", "-1, 3", stats.uniform(-1, 4).cdf),
}


def test_distributions_of_numbers(tmp_path: Path) -> None:
    parameters = " ".join(f"real{bounds} a_{name};" for name, (bounds, _, _) in NUMBERS.items())
    prior = " ".join(f"a_{name} ~ {name}({given});" for name, (_, given, _) in NUMBERS.items())
    draws = simulated(written(tmp_path, parameters, prior))
    for name, (_, _, exact) in NUMBERS.items():
        check(draws[f"a_{name}"], exact)


def _quadratic(direction: FloatArray, matrices: npt.ArrayLike) -> FloatArray:
    return np.asarray(np.einsum("i,...ij,j", direction, np.asarray(matrices), direction))


def test_distributions_of_vectors_and_matrices(tmp_path: Path) -> None:
    """Quadratic forms of Wishart matrices are chi-square; correlations of an LKJ law are beta."""
    draws = simulated(
        written(
            tmp_path,
            "vector[3] a; row_vector[3] b; array[2] vector[3] c; vector[3] d; vector[3] e;"
            "simplex[3] p; array[2] simplex[3] q; corr_matrix[4] R; cholesky_factor_corr[4] L;"
            "cov_matrix[3] V; cov_matrix[3] W; cholesky_factor_cov[3] A; cholesky_factor_cov[3] B;"
            "simplex[3] flat_p; corr_matrix[3] flat_R; unit_vector[3] u;"
            "array[2] vector<lower=-1, upper=2>[2] flat;",
            """
            a ~ multi_normal([1, 2, 3]', S);
            b ~ multi_normal_cholesky([1, 2, 3], cholesky_decompose(S));
            c ~ multi_normal_prec({[1, 2, 3]', [0, 0, 0]'}, inverse_spd(S));
            d ~ multi_student_t(5, [1, 2, 3]', S);
            e ~ multi_student_t_cholesky(5, [1, 2, 3]', cholesky_decompose(S));
            p ~ dirichlet([2, 3, 4]');
            for (k in 1 : 2) { q[k] ~ dirichlet(rep_vector(k, 3)); }
            R ~ lkj_corr(2);
            L ~ lkj_corr_cholesky(0.7);
            V ~ wishart(5, S);
            W ~ inv_wishart(6, S);
            A ~ wishart_cholesky(5, cholesky_decompose(S));
            B ~ inv_wishart_cholesky(6, cholesky_decompose(S));
            """,
        )
    )
    along, inverse = np.array([1.0, -1.0, 0.5]), np.asarray(np.linalg.inv(S))
    middle = np.array([1.0, 2.0, 3.0])
    spread = np.sqrt(along @ S @ along)
    for name in ("a", "b"):
        check((draws[name] - middle) @ along / spread, stats.norm.cdf)
    check((draws["c"] - np.array([middle, 0 * middle])) @ along / spread, stats.norm.cdf)
    for name in ("d", "e"):
        check((draws[name] - middle) @ along / spread, stats.t(5).cdf)
        apart = draws[name] - middle
        check(np.einsum("ni,ij,nj->n", apart, inverse, apart) / 3, stats.f(3, 5).cdf)
    check(draws["p"][:, 0], stats.beta(2, 7).cdf)
    check(draws["p"][:, 2], stats.beta(4, 5).cdf)
    for k in (1, 2):
        check(draws["q"][:, k - 1, 1], stats.beta(k, 2 * k).cdf)
    lower = draws["L"] @ np.swapaxes(draws["L"], 1, 2)
    for matrix, eta in ((draws["R"], 2), (lower, 0.7)):
        for row, column in zip(*np.tril_indices(4, -1), strict=True):
            check((matrix[:, row, column] + 1) / 2, stats.beta(eta + 1, eta + 1).cdf)
    whole = {name: draws[name] @ np.swapaxes(draws[name], 1, 2) for name in "AB"}
    for matrix in (draws["V"], whole["A"]):
        check(_quadratic(along, matrix) / spread**2, stats.chi2(5).cdf)
    for matrix in (draws["W"], whole["B"]):
        form = _quadratic(along, np.linalg.inv(matrix)) / (along @ inverse @ along)
        check(form, stats.chi2(6).cdf)
    check(draws["flat_p"][:, 1], stats.beta(1, 2).cdf)
    check((draws["flat_R"][:, 2, 0] + 1) / 2, stats.beta(1.5, 1.5).cdf)
    check(draws["u"][:, 1], stats.uniform(-1, 2).cdf)
    check(draws["flat"], stats.uniform(-1, 3).cdf)


STOCHASTIC = """data { real y; int K; }
parameters {
  real other;
  row_stochastic_matrix[2, 3] G;
  array[2] column_stochastic_matrix[3, 2] H;
  row_stochastic_matrix[2, 3] flat_G;
  array[2] column_stochastic_matrix[3, 2] flat_H;
}
model {
  G[1] ~ dirichlet([2, 3, 4]);
  G[2] ~ dirichlet([1, 2, 3]');
  for (k in 1 : K) {
    H[k][ : , 1] ~ dirichlet(rep_vector(k, 3));
    H[k][ : , 2] ~ dirichlet([1, 1.5, k + 1]');
  }
  other ~ normal(0, 1);
  y ~ normal(other, 1);
}
"""


def test_draws_of_rows_and_columns_that_sum_to_one(tmp_path: Path) -> None:
    """Each row, or each column, is a draw of its own."""
    path = tmp_path / "stochastic.stan"
    path.write_text(STOCHASTIC, encoding="utf-8")
    found = temper(path, method="prior").simulation
    assert found is not None
    path.with_name("draws.stan").write_text(found.text, encoding="utf-8")
    program = BatchedDensity(StanProgram(path.with_name("draws.stan")), {"y": 0.3, "K": 2})
    _check_rows_and_columns(program.constrain(np.empty((DRAWS, 0)), seed=3))


def _check_rows_and_columns(draws: Mapping[str, FloatArray]) -> None:
    check(draws["G"][:, 0, 1], stats.beta(3, 6).cdf)
    check(draws["G"][:, 1, 2], stats.beta(3, 3).cdf)
    check(draws["H"][:, 1, 0, 0], stats.beta(2, 4).cdf)
    check(draws["H"][:, 1, 1, 1], stats.beta(1.5, 4).cdf)
    check(draws["flat_G"][:, 1, 1], stats.beta(1, 2).cdf)
    check(draws["flat_H"][:, 0, 2, 1], stats.beta(1, 2).cdf)


@pytest.mark.compiled
@pytest.mark.slow
def test_rows_and_columns_that_sum_to_one(tmp_path: Path) -> None:
    """Elements of Dirichlet draws are beta, and a flat simplex of three has a volume of 1/2."""
    path = tmp_path / "stochastic.stan"
    path.write_text(STOCHASTIC, encoding="utf-8")
    found = prior_draws(tempered_model(path, {"y": 0.3, "K": 2}), seed=3)
    assert found.independent
    assert found.log_integral is not None
    assert found.log_integral.value == pytest.approx(-6 * np.log(2), abs=1e-9)
    _check_rows_and_columns(
        found.density.constrain(found.points.reshape(-1, found.points.shape[-1]))
    )


def test_what_depends_on_other_parameters(tmp_path: Path) -> None:
    """Each draw is standardised by what it was drawn from, whatever the order of statements."""
    draws = simulated(
        written(
            tmp_path,
            "vector[K] theta; real mu; real<lower=0> tau; array[K] real x; matrix[2, K] z;"
            "vector<lower=0>[K] s; real<lower=mu> above; real cut; vector<lower=0, upper=1>[2] u;"
            "vector<offset=mu, multiplier=tau>[2] shifted; array[2] real m;",
            """
            vector[K] scale = tau * [1, 2, 3, 4]';
            theta ~ normal(mu, scale);
            tau ~ cauchy(0, 5);
            target += normal_lpdf(mu | 1, 3) + student_t_lpdf(s | 4, 0, exp(mu / 10))
                      - K * log(2);
            x[1] ~ normal(mu, 1);
            for (k in 2 : K) x[k] ~ normal(0.5 * x[k - 1], 2);
            to_vector(z) ~ normal(to_vector(rep_matrix(theta[1 : 2], K)), 1);
            above ~ cauchy(mu, 2);
            cut ~ normal(mu, 9) T[0, 3];
            shifted ~ normal(mu, tau);
            if (K > 3) { m[1 : 2] ~ logistic(0, 1); } else { m ~ normal(0, 1); }
            """,
        )
    )
    mu, tau = draws["mu"], draws["tau"]
    columns = mu[:, None], tau[:, None]
    check(mu, stats.norm(1, 3).cdf)
    check(tau, stats.halfcauchy(scale=5).cdf)
    check((draws["theta"] - columns[0]) / columns[1] / [1, 2, 3, 4], stats.norm.cdf)
    check(draws["s"] / np.exp(columns[0] / 10), lambda x: 2 * stats.t(4).cdf(x) - 1)
    x = draws["x"]
    check(x[:, 0] - mu, stats.norm.cdf)
    check(x[:, 1:] - 0.5 * x[:, :-1], stats.norm(0, 2).cdf)
    check(draws["z"] - draws["theta"][:, :2, None], stats.norm.cdf)
    check((draws["above"] - mu) / 2, stats.halfcauchy.cdf)
    low, high = (stats.norm(mu, 9).cdf(end) for end in (0, 3))
    check((stats.norm(mu, 9).cdf(draws["cut"]) - low) / (high - low), stats.uniform.cdf)
    check((draws["shifted"] - columns[0]) / columns[1], stats.norm.cdf)
    check(draws["u"], stats.uniform.cdf)
    check(draws["m"], stats.logistic.cdf)


def _mixed(x: FloatArray) -> FloatArray:
    """Return the distribution function of a spike with weight 0.3 and a slab."""
    return np.asarray(0.3 * stats.norm(0, 0.05).cdf(x) + 0.7 * stats.t(4, 1, 3).cdf(x))


SPIKE, SLAB = "normal_lpdf(b[k] | 0, 0.05)", "student_t_lpdf(b[k] | 4, 1, 3)"
MIXTURES = {
    "log_mix": f"log_mix(0.3, {SPIKE}, {SLAB})",
    "log_sum_exp": f"log_sum_exp(log(0.3) + {SPIKE}, {SLAB} + log1m(0.3))",
    "weights that do not sum to 1": f"log_sum_exp(({SPIKE} + log(3)), {SLAB} - log(1 / 7.0))",
    "a mixture of mixtures": f"log_mix(0.2, {SPIKE}, log_mix(0.125, {SPIKE}, {SLAB}))",
}


@pytest.mark.parametrize("how", MIXTURES)
def test_mixtures(how: str, tmp_path: Path) -> None:
    prior = f"for (k in 1 : K) {{ target += {MIXTURES[how]}; }}"
    check(simulated(written(tmp_path, "vector[K] b;", prior))["b"], _mixed)


def test_a_mixture_whose_weight_and_scale_are_parameters(tmp_path: Path) -> None:
    """The weight and the scale are drawn first, the vector from one component as a whole."""
    prior = (
        "target += log_mix(w, normal_lpdf(b | 0, s), normal_lpdf(b | 5, s)); "
        "w ~ beta(2, 1); s ~ gamma(3, 2);"
    )
    parameters = "vector[3] b; real<lower=0, upper=1> w; real<lower=0> s;"
    drawn = simulated(written(tmp_path, parameters, prior))
    check(drawn["w"], stats.beta(2, 1).cdf)
    check(drawn["s"], stats.gamma(3, scale=0.5).cdf)
    share = np.mean(np.mean(drawn["b"], axis=1) < 2.5)
    # Draws of the first component, which has probability E[w] = 2/3; s is rarely so large that
    # means of three are on the other side.
    s = drawn["s"] / np.sqrt(3)
    exact = np.mean(
        drawn["w"] * stats.norm.cdf(2.5 / s) + (1 - drawn["w"]) * stats.norm.sf(2.5 / s)
    )
    assert abs(share - exact) < 4 * np.sqrt(0.25 / DRAWS)


def test_cuts_that_depend_on_data_alone_and_orders(tmp_path: Path) -> None:
    draws = simulated(
        written(
            tmp_path,
            "real<lower=1, upper=4> a; vector<lower=low>[2] b; ordered[3] c; "
            "array[2] positive_ordered[3] d; real<upper=2> e;",
            "a ~ normal(K, 2); b ~ gamma(2, rate); c ~ normal(other, 2);"
            "for (k in 1 : 2) { d[k] ~ cauchy(0, k); } e ~ normal(1, 2) T[-1, 3];",
            given="vector[2] low; vector[2] rate;",
        ),
        low=[0.3, 0.9],
        rate=[1.0, 2.0],
    )

    def inside(exact: Any, low: float, high: float = np.inf) -> Distribution:
        mass = exact.cdf(high) - exact.cdf(low)
        return lambda x: np.asarray((exact.cdf(x) - exact.cdf(low)) / mass)

    check(draws["a"], inside(stats.norm(4, 2), 1, 4))
    for k, (low, rate) in enumerate(((0.3, 1), (0.9, 2))):
        check(draws["b"][:, k], inside(stats.gamma(2, scale=1 / rate), low))
    # The order statistics of three uniform numbers are beta.
    uniform = stats.norm(draws["other"][:, None], 2).cdf(draws["c"])
    for k in range(3):
        check(uniform[:, k], stats.beta(k + 1, 3 - k).cdf)
        for j in range(2):
            half = stats.halfcauchy(scale=j + 1).cdf(draws["d"][:, j, k])
            check(half, stats.beta(k + 1, 3 - k).cdf)
    check(draws["e"], inside(stats.norm(1, 2), -1, 2))


REFUSED = {
    "one constraint cuts in half what another cuts elsewhere": (
        "real<lower=0> tau; real<lower=0> x;",
        "tau ~ normal(0, 1); x ~ normal(0, tau) T[-1, ];",
        "how much of it is left",
    ),
    "it depends on the branch": (
        "real mu; real<lower=0> x;",
        "mu ~ normal(0, 1); if (mu > 0) { x ~ normal(1, 1); } else { x ~ normal(2, 1); }",
        "whether a prior's statement counts",
    ),
    "bounds depend on a parameter": (
        "real<lower=0, upper=1> a; real<lower=0, upper=a> b;",
        "a ~ beta(2, 2);",
        "b has no density",
    ),
    "a density of the program's own": ("real<lower=0> s;", "s ~ half(2);", "half_lpdf"),
    "a transformed parameter": (
        "real<lower=0> s;",
        "log(s) ~ normal(0, 1); target += -log(s);",
        "as declared|not a known",
    ),
    "a circle": ("real a; real b;", "a ~ normal(b, 1); b ~ normal(a, 1);", "circle"),
    "no density": ("real a; real<lower=0> b;", "a ~ normal(0, 1);", "b has no density"),
    "a loop of another kind": (
        "vector[2] a;",
        "{ int k = 0; while (k < 2) { k += 1; a[k] ~ normal(0, 1); } }",
        "loop of another kind",
    ),
    "a multiple of a density": (
        "real<lower=0> a;",
        "target += 2 * normal_lpdf(a | 0, 1);",
        "not a known density",
    ),
    "something is drawn that depends on what is not": (
        "vector[2] phi; real<lower=0> s;",
        "target += -dot_self(phi); s ~ gamma(2, exp(phi[1]));",
        "depends on phi",
    ),
    "it depends on it through another variable": (
        "vector[2] phi; real<lower=0> s;",
        "target += -dot_self(phi); { real rate = exp(phi[1]); s ~ gamma(2, rate); }",
        "depends on phi",
    ),
    "elements that are drawn are in a term that is unknown": (
        "vector[2] phi;",
        "phi[1] ~ normal(0, 1); target += -dot_self(phi);",
        "not a known density",
    ),
    "elements in order with their own": (
        "ordered[2] a;",
        "a[1] ~ normal(0, 1);",
        "elements in order",
    ),
    "a mixture that is cut": (
        "real<lower=0> a;",
        "target += log_mix(0.5, normal_lpdf(a | 0, 1), normal_lpdf(a | 0, 2));",
        "cuts a mixture",
    ),
    "a weight that depends on what is drawn": (
        "real<lower=0> a;",
        "target += log_sum_exp(square(a) + normal_lpdf(a | 0, 1), normal_lpdf(a | 0, 2));",
        "depends on a itself",
    ),
    "a mixture of different numbers": (
        "vector<lower=0>[2] a;",
        "target += log_mix(0.5, normal_lpdf(a[1] | 0, 1), normal_lpdf(a[2] | 0, 2));",
        "not a known density",
    ),
    "rows with one sum": (
        "simplex[3] a;",
        "a ~ normal(0, 1);",
        "joint constraint",
    ),
}
HALF = """functions { real half_lpdf(real s, real scale) {
  return normal_lpdf(s | 0, scale) + log(2);
} }"""


@pytest.mark.parametrize("why", REFUSED)
def test_priors_that_the_text_does_not_show_how_to_simulate(why: str, tmp_path: Path) -> None:
    parameters, prior, said = REFUSED[why]
    path = written(tmp_path, parameters, prior, before=HALF)
    syntax = read_syntax(path, Stanc(require_stanc()))
    with pytest.raises(NotSimulatedError, match=said):
        write_simulation(syntax, classify(syntax, "likelihood"))


@pytest.mark.parametrize(
    ("parameters", "prior", "said"),
    [
        ("real a;", "a ~ normal(0, 1); a ~ normal(0, 2);", "not that of the prior"),
        ("vector[2] a;", "a[1] ~ normal(0, 1); a[1] ~ normal(0, 2);", "has no value, or overflows"),
        ("vector[2] a;", "for (k in 1 : 1) a[k] ~ normal(0, 1); a[2] ~ normal(a[1], 1);", ""),
        ("real<lower=9> a;", "a ~ normal(0, 1);", "no draw of normal is inside"),
    ],
)
def test_what_shows_when_it_runs(parameters: str, prior: str, said: str, tmp_path: Path) -> None:
    path = written(tmp_path, parameters, prior)
    if not said:
        assert simulated(path)["a"].shape == (DRAWS, 2)
        return
    with pytest.raises(HarnessError, match=said):
        simulated(path)


@pytest.fixture(scope="module")
def schools() -> Model:
    name = "eight_schools_centred"
    return tempered_model(CORPUS / f"{name}.stan", corpus_data(name))


def test_centred_priors_are_reliable(schools: Model) -> None:
    shots = vaccines()
    for model in (schools, tempered_model(shots.folder / "target.stan", shots.data)):
        drawn = prior_draws(model, seed=3)
        assert drawn.independent
        assert drawn.reliable
        assert drawn.effective == np.prod(drawn.points.shape[:2])
        assert drawn.r_hat < 1.02
        again = prior_draws(model, seed=3)
        assert np.array_equal(drawn.points, again.points)
        assert not np.array_equal(drawn.points, prior_draws(model, seed=4).points)


def spoiled(model: Model, folder: Path, right: str, wrong: str) -> Model:
    """Return a model whose simulation has something else in a place."""
    shutil.copytree(model.folder, folder)
    path = folder / f"{PRIOR_SIMULATION}.stan"
    text = path.read_text()
    assert right in text
    path.write_text(text.replace(right, wrong))
    return replace(model, folder=folder)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("mu | 0, 5", "mu | 0, 4", "not that of the prior"),
        ("mu, tau", "mu, 1", "not that of the prior"),
        ("tau = cauchy_rng(0, 5);", "", "must be not nan"),
    ],
)
def test_a_wrong_simulation_is_found_out(
    right: str, wrong: str, said: str, schools: Model, tmp_path: Path
) -> None:
    """One factor has another variance, or tau is never drawn."""
    model = spoiled(schools, tmp_path / "programs", right, wrong)
    density = BatchedDensity(model.program(PRIOR), model.data)
    with pytest.raises(HarnessError, match=said):
        simulated_prior(model, density, 100, seed=3)


def test_nuts_takes_the_place_of_a_wrong_simulation(
    schools: Model, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = spoiled(schools, tmp_path / "programs", "mu, tau", "mu, 1")
    with caplog.at_level(logging.INFO):
        assert not prior_draws(model, seed=3).independent
    assert "NUTS samples its prior" in caplog.text


NORMAL_HALF = "mu ~ normal(0, 5); tau ~ normal(0, 3);"
INTEGRALS: dict[str, tuple[str, str, float]] = {
    "as the text shows": ("real mu; real<lower=0> tau;", NORMAL_HALF, np.log(0.5)),
    "volume of a box": (
        "real<lower=-2, upper=1> a; real x;",
        "x ~ normal(0, 2 + a);",
        np.log(3),
    ),
    "volume and halves": (
        "vector<lower=0>[2] tau; real<lower=0, upper=4> a;",
        "tau ~ cauchy(0, 2);",
        np.log(4 * 0.25),
    ),
    "truncated": ("real<lower=1> tau;", "tau ~ normal(0, 2) T[1, ];", 0.0),
    "cut anywhere": ("real<lower=1> tau;", "tau ~ normal(0, 2);", stats.norm.logsf(0.5)),
    "cut at both ends": (
        "vector<lower=0.1, upper=0.6>[2] p;",
        "p ~ beta(2, 3);",
        2 * np.log(stats.beta(2, 3).cdf(0.6) - stats.beta(2, 3).cdf(0.1)),
    ),
    "each element cut elsewhere": (
        "vector<lower=abs(diagonal(S) - 1), upper=K>[3] a;",
        "a ~ gamma(2, diagonal(S));",
        np.log(np.diff(stats.gamma.cdf([[2, 8], [0, 4], [0.25, 2]], 2))).sum(),
    ),
    "in order": (
        "ordered[4] c; positive_ordered[3] d;",
        "c ~ normal(1, 2); d ~ student_t(3, 0, 2);",
        -np.log(24 * 6 * 2**3),
    ),
}


@pytest.mark.parametrize("case", INTEGRALS)
def test_the_integral_of_a_prior_as_it_is_written(case: str, tmp_path: Path) -> None:
    parameters, prior, exact = INTEGRALS[case]
    model = tempered_model(written(tmp_path, parameters, prior), DATA)
    found = prior_draws(model, seed=3)
    assert found.independent
    assert found.log_integral is not None
    assert found.log_integral.value == pytest.approx(exact, abs=1e-9)
    assert found.log_integral.mcse == 0.0


LEFT_OVER: dict[str, tuple[str, str, float]] = {
    # The sign of the sum of two standard normal numbers.
    "a mean": ("real mu; real<lower=0> x;", "mu ~ normal(0, 1); x ~ normal(mu, 1);", 0.5),
    "through a whole number": (
        "real mu; real<lower=0> x;",
        "mu ~ normal(0, 1); { int k = mu > 0; x ~ normal(k, 1); }",
        0.5 * (0.5 + float(stats.norm.cdf(1))),
    ),
    "an upper bound": (
        "real mu; vector<upper=1>[2] x;",
        "mu ~ normal(0, 1); x ~ normal(mu, 0.5);",
        float(stats.multivariate_normal([0, 0], [[1.25, 1], [1, 1.25]]).cdf([1, 1])),
    ),
    # Two uniform numbers are in order in half of all cases.
    "a bound": ("real<lower=0, upper=1> a; real<lower=a> b;",
                "a ~ beta(1, 1); b ~ uniform(0, 1);", 0.5),
    "bounds of each element": (
        "real<lower=0, upper=1> a; array[2] real<lower=-0.5, upper={0.5, a}> b;",
        "b ~ normal(a - 2, 1e-3);", 0.0),
    "in order": ("real mu; positive_ordered[2] x;", "mu ~ normal(0, 1); x ~ normal(mu, 1);",
                 # Both above 0, with a correlation of 1/2: a quarter and asin(1/2) / (2 pi).
                 (0.25 + np.arcsin(0.5) / (2 * np.pi)) / 2),
}  # fmt: skip


@pytest.mark.parametrize("case", LEFT_OVER)
def test_a_mass_that_depends_on_parameters(case: str, tmp_path: Path) -> None:
    """A draw with a number outside of its constraint is left out as a whole."""
    parameters, prior, exact = LEFT_OVER[case]
    model = tempered_model(written(tmp_path, parameters, prior), DATA)
    density = BatchedDensity(model.program(PRIOR), model.data)
    if exact == 0:
        with pytest.raises(SamplingError, match="the prior rejects"):
            simulated_prior(model, density, DRAWS, seed=5)
        return
    found = simulated_prior(model, density, DRAWS, seed=5)
    assert found.log_integral is not None
    value, error = found.log_integral
    assert abs(value - np.log(exact)) < 4 * error
    # Of a share p of n independent draws: the error of log p is sqrt((1 - p) / (n p)).
    orders = 2 if "ordered" in parameters else 1
    share = exact * orders
    assert error == pytest.approx(np.sqrt((1 - share) / (found.evaluations * share)), rel=0.1)


def test_what_is_left_is_the_prior(tmp_path: Path) -> None:
    """The number that cuts is drawn with the mass that it leaves, and what depends on it, too."""
    model = tempered_model(
        written(
            tmp_path,
            "real mu; vector<lower=0>[2] x; real z;",
            "mu ~ normal(0, 1); x ~ normal(mu, 1); z ~ normal(0, x[1]);",
        ),
        DATA,
    )
    found = prior_draws(model, seed=3)
    assert found.independent
    draws = found.density.constrain(found.points.reshape(-1, found.points.shape[2]))
    grid = np.linspace(-6, 6, 4001)
    marginal = stats.norm.pdf(grid) * stats.norm.cdf(grid) ** 2
    cumulated = np.cumsum(marginal) / marginal.sum()
    check(draws["mu"], lambda x: np.interp(x, grid, cumulated))
    check(draws["z"] / draws["x"][:, 0], stats.norm.cdf)
    given = stats.norm(draws["mu"][:, None], 1)
    uniform = 1 - given.sf(draws["x"]) / given.sf(0)
    for k in range(2):
        check(uniform[:, k], stats.uniform.cdf)


def test_a_prior_that_rejects_draws(tmp_path: Path) -> None:
    """Half a normal law and its outer part: what is left out counts for the integral."""
    prior = """
    tau ~ normal(0, 2);
    x ~ normal(0, 1);
    if (abs(x) < 0.5) {
      reject("x is too small: ", x);
    }
    """
    model = tempered_model(written(tmp_path, "real<lower=0> tau; real x;", prior), DATA)
    found = prior_draws(model, seed=3)
    assert found.independent
    assert found.log_integral is not None
    value, error = found.log_integral
    outside = 2 * stats.norm.sf(0.5)
    assert abs(value - np.log(outside / 2)) < 4 * error
    # Of a share p of n independent draws: the error of log p is sqrt((1 - p) / (n p)).
    assert error == pytest.approx(np.sqrt((1 - outside) / found.gradients / outside), rel=0.05)
    x = found.density.constrain(found.points.reshape(-1, 3))["x"]
    check(np.abs(x), lambda each: 1 - stats.norm.sf(each) / stats.norm.sf(0.5))


@pytest.mark.parametrize(("rate", "few"), [(0.3, True), (3.0, False)])
def test_a_few_draws_that_overflow_are_left_out(tmp_path: Path, rate: float, few: bool) -> None:
    """``b`` is zero or infinite, as far as numbers reach, where ``a`` is below some 1/200.

    Of a million pairs that NumPy draws with these rates, 0.05% and 0.4% are.
    """
    prior = f"a ~ exponential({rate}); b ~ weibull(a, 1);"
    model = tempered_model(written(tmp_path, "real<lower=0> a; real<lower=0> b;", prior), DATA)
    density = BatchedDensity(model.program(PRIOR), model.data)
    if not few:
        with pytest.raises(SamplingError):
            simulated_prior(model, density, 20_000, seed=2)
        return
    found = simulated_prior(model, density, 20_000, seed=2)
    assert np.all(np.isfinite(found.points))
    assert len(found.points) == 20_000
    assert found.log_integral is not None
    assert -2e-3 < found.log_integral.value < 0


def test_a_prior_that_rejects_nearly_all_draws_is_not_simulated(tmp_path: Path) -> None:
    prior = 'x ~ normal(0, 1); if (x < 3) { reject("x is too small: ", x); }'
    model = tempered_model(written(tmp_path, "real x;", prior), DATA)
    density = BatchedDensity(model.program(PRIOR), model.data)
    with pytest.raises(SamplingError, match=r"the prior rejects 99\.\d%"):
        simulated_prior(model, density, 100, seed=3)


def test_a_model_without_a_simulation(tmp_path: Path) -> None:
    parameters, prior, _ = REFUSED["a density of the program's own"]
    model = tempered_model(written(tmp_path, parameters, prior, before=HALF), DATA)
    assert not can_be_simulated(model)
    drawn = prior_draws(model, seed=3)
    assert not drawn.independent
    assert drawn.reliable


def test_names_that_the_program_has(tmp_path: Path) -> None:
    """Local variables and the density do not take names of the program's."""
    draws = simulated(
        written(
            tmp_path,
            "vector<lower=0>[2] drawn; real log_simulated; vector[2] number; real<lower=0> tries;",
            "drawn ~ normal(0, tries); log_simulated ~ normal(0, 1); number ~ normal(drawn, 1);"
            "tries ~ normal(0, 1);",
        )
    )
    check(draws["drawn"] / draws["tries"][:, None], stats.halfnorm.cdf)
    check(draws["number"] - draws["drawn"], stats.norm.cdf)


def test_transformed_data_are_computed_only_if_needed(tmp_path: Path) -> None:
    path = written(tmp_path, "vector[N] a;", "a ~ normal(0, scale);")
    text = path.read_text()
    more = "transformed data { int N = K; real twice = 2; real scale = twice; matrix[3, 3] Q = S; }"
    path.write_text(text.replace("parameters", f"{more}\nparameters", 1))
    found = temper(path, method="prior").simulation
    assert found is not None
    assert "scale = twice" in found.text
    assert "matrix[3, 3] Q" not in found.text
    assert "twice" not in found.jacobian
    check(simulated(path)["a"], stats.norm(0, 2).cdf)


def test_statements_in_sequence() -> None:
    def uses(reads: str = "", writes: str = "", draws: str = "") -> Uses:
        return Uses(frozenset(reads), frozenset(writes), frozenset(draws))

    assert in_sequence([uses("m", draws="x"), uses("z", "m"), uses(draws="z")]) == [0, 2, 1]
    assert in_sequence([uses("z", "m"), uses("m", draws="x"), uses(draws="z")]) == [2, 0, 1]
    assert in_sequence([uses("x", draws="y"), uses("y", draws="x")]) is None
    assert in_sequence([uses(draws="a"), uses(draws="b")]) == [0, 1]
