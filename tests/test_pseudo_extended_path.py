"""Pseudo-extended programs with every base, g and pi: equation 8 by SciPy, Theorem 2.1 again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from form_data import pseudo_extended_data
from scipy.special import logsumexp
from scipy.stats import beta as beta_distribution
from scipy.stats import multivariate_normal, norm
from stan_density import StanDensity, into_box, log_box_jacobian

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import normalised_weights
from harness.forms.pseudo_extended import COLLAPSED_PSEUDO_EXTENDED, PSEUDO_EXTENDED
from harness.models.gaussian_mixture import GaussianMixture
from harness.path import gaussian_base
from harness.path.data import UNIFORM, path_data

LOWER, UPPER = -9.0, 12.0
MIXTURE = GaussianMixture(
    np.array([0.2, 0.5, 0.3]),
    np.array([[0.0, 1.0], [2.5, -0.5], [1.0, 3.0]]),
    np.array([0.4, 0.7, 0.25]),
)
MODEL = MIXTURE.model("mixture", lower=LOWER, upper=UPPER)
BASE = gaussian_base([0.8, 1.1], [[2.6, 1.1], [1.1, 1.9]], log_zeta=1.3)
KNOTTED = ((0.0, 1.0), (0.2, -0.5), (0.7, 0.4), (1.0, 2.0))
LATE = ((0.1, 0.3), (0.6, -1.0), (1.0, 0.5))

SETTINGS: dict[str, dict[str, Any]] = {
    "gaussian base": {"base": BASE},
    "wrong log zeta": {"log_zeta": -2.3},
    "log-linear g": {"log_g": ((0.0, 0.0), (1.0, 3.0))},
    "knotted g, Beta pi": {"log_g": KNOTTED, "pi_shape": (3.0, 1.5)},
    "Beta g, knotted pi": {"base": BASE, "g_shape": (1.4, 0.8), "log_pi": KNOTTED},
    "bounded below": {"log_g": LATE, "log_pi": ((0.1, 0.0), (1.0, 1.0))},
    "stratified": {"base": BASE, "g_correlation": -0.3},
    "everything": {
        "base": BASE,
        "log_g": LATE,
        "g_shape": (2.0, 1.3),
        "g_correlation": 0.4,
        "log_pi": LATE,
        "pi_shape": (0.9, 1.1),
    },
}


def log_gamma(x: FloatArray) -> FloatArray:
    """Log density at points (..., 2), by SciPy."""
    coordinate = np.asarray(norm.logpdf(x[..., None, :], MIXTURE.mean, MIXTURE.sd[:, None]))
    return np.asarray(logsumexp(coordinate.sum(axis=-1) + np.log(MIXTURE.weight), axis=-1))


def log_density_of(beta: FloatArray, knots: Any, shape: tuple[float, float]) -> FloatArray:
    """Piecewise-linear log density times a Beta(a, b) without its constant."""
    a, b = shape
    constant = beta_distribution.logpdf(0.5, a, b) + (a + b - 2) * np.log(2)
    knot, value = np.array(knots).T
    return np.asarray(
        np.interp(beta, knot, value) + beta_distribution.logpdf(beta, a, b) - constant
    )


def terms(x: FloatArray, beta: FloatArray, given: dict[str, Any]) -> tuple[FloatArray, FloatArray]:
    """Log of target and instrumental density of each pseudo-sample, (N, 2) and (N,) given."""
    base = given.get("base")
    log_g = given.get("log_g", UNIFORM)
    log_base = np.zeros(len(x))
    zeta = given.get("log_zeta", 0.0)
    if base is not None:
        log_base = np.asarray(multivariate_normal(base.mean, base.covariance).logpdf(x))
        zeta = base.log_zeta
    log_pi = given.get("log_pi", ((log_g[0][0], 0.0), (1.0, 0.0)))
    target = log_gamma(x) + log_density_of(beta, log_pi, given.get("pi_shape", (1, 1)))
    path = beta * (log_gamma(x) - zeta) + (1 - beta) * log_base
    return target, path + log_density_of(beta, log_g, given.get("g_shape", (1, 1)))


def reference(u: FloatArray, num: int, inv_temp: Any, given: dict[str, Any]) -> float:
    """Equation 8 as a sum of products, times the copula of the inverse temperatures."""
    x = into_box(u[: 2 * num], LOWER, UPPER).reshape(num, 2)
    total = log_box_jacobian(u[: 2 * num], LOWER, UPPER)
    start = given.get("log_g", UNIFORM)[0][0]
    if inv_temp is None:
        beta = into_box(u[2 * num :], start, 1)
        total += log_box_jacobian(u[2 * num :], start, 1)
        correlation = given.get("g_correlation", 0.0)
        if correlation:
            z = norm.ppf((beta - start) / (1 - start))
            covariance = np.full((num, num), correlation) + (1 - correlation) * np.eye(num)
            total += float(multivariate_normal(np.zeros(num), covariance).logpdf(z))
            total -= float(norm.logpdf(z).sum())
    else:
        beta = np.broadcast_to(np.asarray(inv_temp, dtype=np.float64), num)
    target, instrumental = terms(x, beta, given)
    products = [target[i] + instrumental.sum() - instrumental[i] for i in range(num)]
    return total + float(logsumexp(products)) - float(np.log(num))


def numerical_gradient(f: Any, u: FloatArray) -> FloatArray:
    step = 1e-5 * np.eye(len(u))
    return np.array([(f(u + each) - f(u - each)) / 2e-5 for each in step])


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(("num", "inv_temp"), [(1, None), (2, None), (3, None), (2, 0.4)])
def test_density_and_gradient(name: str, num: int, inv_temp: float | None) -> None:
    given = SETTINGS[name]
    if inv_temp is not None:
        given = {key: value for key, value in given.items() if key != "g_correlation"}
    data = {**MODEL.data, **pseudo_extended_data(MODEL, num, inv_temp, **given)}
    density = StanDensity(MODEL.program("pseudo_extended"), data)
    assert density.dimension == 2 * num + (num if inv_temp is None else 0)
    for u in np.random.default_rng(num).normal(-0.2, 0.8, (6, density.dimension)):
        value, slope = density(u)
        expected = reference(u, num, inv_temp, given)
        assert value == pytest.approx(expected, rel=1e-10, abs=1e-10)
        numerical = numerical_gradient(lambda v: reference(v, num, inv_temp, given), u)
        # Rounding of the values, about 1e-13, over the step; curvature over the step squared.
        np.testing.assert_allclose(slope, numerical, rtol=1e-6, atol=1e-5)


def test_untempered_instrumental_distribution() -> None:
    """Inverse temperatures fixed to 0: the instrumental density is the base alone."""
    data = {**MODEL.data, **pseudo_extended_data(MODEL, 2, 0.0, base=BASE)}
    density = StanDensity(MODEL.program("pseudo_extended"), data)
    for u in np.random.default_rng(1).normal(0, 0.7, (5, 4)):
        x = into_box(u, LOWER, UPPER).reshape(2, 2)
        q = multivariate_normal(BASE.mean, BASE.covariance).logpdf(x)
        gamma = log_gamma(x)
        expected = np.log((np.exp(gamma[0] + q[1]) + np.exp(gamma[1] + q[0])) / 2)
        jacobian = log_box_jacobian(u, LOWER, UPPER)
        assert density.value(u) == pytest.approx(expected + jacobian, rel=1e-11)


def collapsed_log_q(x: FloatArray, given: dict[str, Any]) -> FloatArray:
    """Integrate g(beta) gamma_beta(x) over beta by quadrature, or sum it over a ladder."""
    knot, value = np.array(given.get("log_g", UNIFORM)).T
    if given.get("ladder"):
        beta, log_share = knot, value
    else:
        nodes, share = np.polynomial.legendre.leggauss(60)
        width = np.diff(knot)[:, None]
        beta = (knot[:-1, None] + width * (nodes + 1) / 2).ravel()
        log_share = np.log(width / 2 * share).ravel() + np.interp(beta, knot, value)
    path_of = ("base", "log_zeta")
    plain: dict[str, Any] = {name: given[name] for name in path_of if name in given}
    ends = [terms(x, np.full(len(x), end), plain)[1] for end in (0.0, 1.0)]
    rows = np.multiply.outer(1 - beta, ends[0]) + np.multiply.outer(beta, ends[1])
    return np.asarray(logsumexp(rows + log_share[:, None], axis=0))


@pytest.mark.parametrize("ladder", [False, True])
@pytest.mark.parametrize(
    "name", ["gaussian base", "wrong log zeta", "log-linear g", "knots", "late"]
)
@pytest.mark.parametrize("num", [1, 3])
def test_collapsed_density_and_gradient(num: int, name: str, ladder: bool) -> None:
    knotted: dict[str, Any] = {"base": BASE, "log_g": KNOTTED}
    path: dict[str, Any] = {"knots": knotted, "late": {"log_g": LATE}, **SETTINGS}[name]
    given = {**path, "ladder": ladder}
    data = {**MODEL.data, **path_data(MODEL, **path), "N": num, "ladder": int(ladder)}
    density = StanDensity(MODEL.program("collapsed_pseudo_extended"), data)
    assert density.dimension == 2 * num

    def expected(u: FloatArray) -> float:
        x = into_box(u, LOWER, UPPER).reshape(num, 2)
        target, q = log_gamma(x), collapsed_log_q(x, given)
        products = [target[i] + q.sum() - q[i] for i in range(num)]
        jacobian = log_box_jacobian(u, LOWER, UPPER)
        return float(logsumexp(products)) - float(np.log(num)) + jacobian

    for u in np.random.default_rng(num).normal(-0.2, 0.5, (5, density.dimension)):
        value, slope = density(u)
        assert value == pytest.approx(expected(u), rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(slope, numerical_gradient(expected, u), rtol=1e-5, atol=1e-4)


# One dimension, wide modes, so that few nodes are exact.
LINE = GaussianMixture(np.array([0.35, 0.65]), np.array([[-0.5], [1.5]]), np.array([0.7, 1.0]))
BOX = (-2.0, 3.0)


def logit_rule(count: int) -> tuple[FloatArray, FloatArray]:
    """Nodes u on the real line and shares such that sum(share f(u)) is the integral of f."""
    t, share = np.polynomial.legendre.leggauss(count)
    t, share = (t + 1) / 2, share / 2
    return np.log(t / (1 - t)), share / (t * (1 - t))


@pytest.mark.parametrize(
    "name", ["knotted g, Beta pi", "stratified", "bounded below", "everything"]
)
def test_weighting_theorem_with_sampled_inverse_temperatures(name: str) -> None:
    """E_pi[f] is the plain mean of sum_i w_i f(x_i), whatever base, g, pi and correlation."""
    given = dict(SETTINGS[name])
    if "base" in given:
        given["base"] = gaussian_base([0.3], [[1.7]], log_zeta=-0.4)
    model = LINE.model("line", lower=-20, upper=20)
    data = {**model.data, **pseudo_extended_data(model, 2, None, **given)}
    data |= {"lower_bound": BOX[0], "upper_bound": BOX[1]}
    density = StanDensity(model.program("pseudo_extended"), data)
    start = given.get("log_g", UNIFORM)[0][0]
    (u, share), (v, v_share) = logit_rule(20), logit_rule(12)
    x, beta = into_box(u, *BOX), into_box(v, start, 1)
    log_extended = np.array(
        [[[[density.value([a, b, s, t]) for t in v] for s in v] for b in u] for a in u]
    )
    mass = np.exp(log_extended) * np.einsum("a,b,s,t->abst", share, share, v_share, v_share)

    def gamma_at(points: FloatArray) -> FloatArray:
        coordinate = norm.logpdf(points[:, None], LINE.mean[:, 0], LINE.sd)
        return np.asarray(logsumexp(coordinate + np.log(LINE.weight), axis=1))

    zeta, log_base = 0.0, np.zeros_like(x)
    if "base" in given:
        zeta, log_base = -0.4, norm.logpdf(x, 0.3, np.sqrt(1.7))
    log_g = given.get("log_g", UNIFORM)
    log_pi = given.get("log_pi", ((start, 0.0), (1.0, 0.0)))
    ratio = log_density_of(beta, log_pi, given.get("pi_shape", (1, 1)))
    ratio = ratio - log_density_of(beta, log_g, given.get("g_shape", (1, 1)))
    log_gamma_x = gamma_at(x)
    path = np.multiply.outer(log_gamma_x - zeta, beta) + np.multiply.outer(log_base, 1 - beta)
    one = log_gamma_x[:, None] - path + ratio  # log weight (x, beta)
    first = one[:, None, :, None] + np.zeros_like(mass)
    second = one[None, :, None, :] + np.zeros_like(mass)
    weight = normalised_weights(np.stack([first, second], axis=-1))
    nodes, fine_share = np.polynomial.legendre.leggauss(200)
    fine = BOX[0] + (BOX[1] - BOX[0]) * (nodes + 1) / 2
    target = np.exp(gamma_at(fine)) * fine_share
    for f in (lambda w: w, np.square, np.exp):
        h = weight[..., 0] * f(x)[:, None, None, None] + weight[..., 1] * f(x)[:, None, None]
        expected = target @ f(fine) / target.sum()
        # The weights of one x come out exactly; the integral over beta cancels, node by node.
        assert (mass * h).sum() / mass.sum() == pytest.approx(expected, rel=1e-5)


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make any attempt to compile fail the test."""

    def compile_now(*_: object) -> None:
        pytest.fail("compiled before the settings were checked")

    monkeypatch.setattr("harness.forms.common.compiled_variant", compile_now)


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"base": gaussian_base([0.0], [[1.0]])}, "dimension"),
        ({"log_zeta": np.nan}, "log zeta"),
        ({"log_g": ((0.0, 0.0),)}, "two knots"),
        ({"log_g": ((0.5, 0.0), (0.9, 0.0))}, "ascend"),
        ({"log_g": ((-0.1, 0.0), (1.0, 0.0))}, "ascend"),
        ({"log_pi": ((0.1, 0.0), (1.0, 0.0))}, "start at the same inverse temperature"),
        ({"log_pi": ((0.0, np.inf), (1.0, 0.0))}, "finite"),
        ({"g_shape": (0.0, 1.0)}, "two positive numbers"),
        ({"pi_shape": (1.0, np.nan)}, "two positive numbers"),
        ({"g_shape": (2.0, 1.0), "inv_temp": 0.0}, "fixed to 0 or 1"),
        ({"pi_shape": (1.0, 2.0), "inv_temp": 1.0}, "fixed to 0 or 1"),
        ({"g_correlation": -1.0}, "must lie between"),
        ({"g_correlation": 1.0}, "must lie between"),
        ({"g_correlation": np.nan}, "must lie between"),
        ({"g_correlation": 0.5, "inv_temp": 0.5}, "no correlation"),
    ],
)
def test_bad_settings_are_refused_before_compiling(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        PSEUDO_EXTENDED.sample(MODEL, num_pseudo_samples=2, seed=1, **setting)


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize(
    ("setting", "message"),
    [({"num_pseudo_samples": 0}, "N >= 1"), ({"log_g": ()}, "two knots")],
)
def test_bad_collapsed_settings_are_refused(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        COLLAPSED_PSEUDO_EXTENDED.sample(MODEL, seed=1, **setting)
