"""Each function of tempering.stanfunctions against quadrature, SciPy and closed forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cmdstanpy
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import beta as beta_distribution
from scipy.stats import kstest, multivariate_normal, norm
from stan_density import stanli

from harness.arrays import FloatArray
from harness.engine.compile import compile_programs
from harness.engine.program import StanProgram
from harness.engine.toolchain import require_cmdstan
from harness.folders import shipped

INCLUDE = "functions {\n#include tempering.stanfunctions\n}\n"
STAN = [str(shipped("stan"))]

Knots = tuple[tuple[float, ...], tuple[float, ...]]
UNIFORM: Knots = ((0.0, 1.0), (0.0, 0.0))
SHAPES: dict[str, Knots] = {
    "uniform": UNIFORM,
    "constant": ((0.0, 0.3, 1.0), (2.5, 2.5, 2.5)),
    "tilted": ((0.0, 1.0), (1.0, -2.0)),
    "three": ((0.0, 0.25, 1.0), (-1.0, 2.0, 0.5)),
    "five": ((0.0, 0.01, 0.3, 0.9, 1.0), (4.0, 0.0, 0.7, -1.0, 3.0)),
}
EDGE = 1e-4  # where log_expm1_ratio changes from a series to the closed form
SIZES = [
    *(1e-300, 1e-12, 1e-6, EDGE / 2, np.nextafter(EDGE, 0), EDGE, np.nextafter(EDGE, 1)),
    *(1.1 * EDGE, 0.01, 0.5, 1.0, 3.0, 36.0, 37.0, 50.0, 700.0, 710.0, 1e5, 1e12),
]
SIGNED = [0.0, *SIZES, *(-size for size in SIZES)]


def function(name: str) -> Any:
    """Return a function of the file that takes and returns plain numbers and arrays."""
    return stanli.Function(name, stan_code=INCLUDE, include_paths=STAN)


def log_weights(delta: float, knots: Knots, ladder: int = 0) -> FloatArray:
    """Return log w1 and log w0, as Stan gives them."""
    weight = function("continuous_tempering_log_weight")
    value = weight(delta=delta, knot=list(knots[0]), log_g=list(knots[1]), ladder=ladder)
    return np.asarray(value, dtype=np.float64)


def program(parameters: str, expression: str, data: str = "", **values: Any) -> Any:
    """Return a program whose log density is an expression in unbounded parameters."""
    code = f"{INCLUDE}data {{ {data} }} parameters {{ {parameters} }} model {{ {expression} }}"
    plain = {name: np.asarray(value).tolist() for name, value in values.items()}
    return stanli.Model(stan_code=code, data=plain, include_paths=STAN)


def long_log_expm1_ratio(r: float) -> float:
    """log((exp(r) - 1) / r) in extended precision."""
    long = np.longdouble(r)
    if abs(r) < 0.02:
        term, total = np.longdouble(1), np.longdouble(0)
        for k in range(2, 20):
            term *= long / k
            total += term
        return float(np.log1p(total))
    if r > 0:
        return float(long + np.log1p(-np.exp(-long)) - np.log(long))
    return float(np.log(-np.expm1(long)) - np.log(-long))


def log_shape(beta: float, delta: float, knots: Knots) -> float:
    """Return log g(beta) - beta Delta."""
    return float(np.interp(beta, *knots)) - beta * delta


def quadrature(delta: float, knots: Knots, power: int = 0) -> tuple[float, float]:
    """Return log scale s and the integral of beta^power g(beta) exp(-beta Delta - s)."""
    shift = max(log_shape(beta, delta, knots) for beta in knots[0])

    def integrand(beta: float) -> float:
        return float(beta**power * np.exp(log_shape(beta, delta, knots) - shift))

    total = 0.0
    for start, end in zip(knots[0][:-1], knots[0][1:], strict=True):
        total += quad(integrand, start, end, epsabs=0, epsrel=1e-12, limit=200)[0]
    return shift, total


@pytest.mark.parametrize("r", SIGNED)
def test_log_expm1_ratio(r: float) -> None:
    value = function("log_expm1_ratio")(r=r)
    assert value == pytest.approx(long_log_expm1_ratio(r), rel=1e-14, abs=1e-14)


@pytest.mark.parametrize("r", SIGNED)
def test_slope_of_log_expm1_ratio(r: float) -> None:
    """The mean of t in [0, 1] with density proportional to exp(r t)."""
    _, slope = program("real r;", "target += log_expm1_ratio(r);").log_prob_grad([r])
    if abs(r) < 0.02:
        expected = 0.5 + r / 12 - r**3 / 720
    elif r > 0:
        expected = -1 / np.expm1(-r) - 1 / r
    else:
        expected = 1 + 1 / np.expm1(r) - 1 / r
    # Just above the edge two numbers of 1e4 are subtracted.
    assert slope[0] == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_log_expm1_ratio_does_not_jump_at_its_edge() -> None:
    ratio = function("log_expm1_ratio")
    for sign in (-1, 1):
        below, above = (ratio(r=sign * np.nextafter(EDGE, to)) for to in (0, 1))
        assert abs(above - below) < 1e-14


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("delta", [-60.0, -3.0, -1e-5, 0.0, 1e-12, 1e-5, 1e-4, 0.7, 8.0, 60.0])
def test_log_masses_sum_to_the_integral(name: str, delta: float) -> None:
    knot, log_g = SHAPES[name]
    masses = function("inv_temp_log_masses")(
        delta=delta, knot=list(knot), log_g=list(log_g), ladder=0
    )
    # Each of them is the integral over its own interval.
    for j, mass in enumerate(masses):
        inside = (np.asarray(knot[j : j + 2]), np.asarray(log_g[j : j + 2]))
        pieces = (tuple(map(float, inside[0])), tuple(map(float, inside[1])))
        shift, integral = quadrature(delta, pieces)
        assert mass == pytest.approx(shift + np.log(integral), rel=1e-11, abs=1e-11)
    density = program(
        "real delta;",
        "target += log_sum_exp(inv_temp_log_masses(delta, knot, log_g, 0));",
        "int G; vector[G] knot; vector[G] log_g;",
        G=len(knot),
        knot=knot,
        log_g=log_g,
    )
    value, slope = density.log_prob_grad([delta])
    shift, integral = quadrature(delta, SHAPES[name])
    assert value == pytest.approx(shift + np.log(integral), rel=1e-11, abs=1e-11)
    # Its slope is minus the conditional mean of beta.
    mean = quadrature(delta, SHAPES[name], power=1)[1] / integral
    assert slope[0] == pytest.approx(-mean, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("delta", [700.0, -700.0, 1e5, -1e5, 1e12, -1e12])
def test_log_masses_of_a_far_point(name: str, delta: float) -> None:
    """All the mass lies at one end: Laplace's method there is exact to exp(-7) or better."""
    knot, log_g = (np.asarray(values) for values in SHAPES[name])
    density = program(
        "real delta;",
        "target += log_sum_exp(inv_temp_log_masses(delta, knot, log_g, 0));",
        "int G; vector[G] knot; vector[G] log_g;",
        G=len(knot),
        knot=knot,
        log_g=log_g,
    )
    value, slope = density.log_prob_grad([delta])
    slopes = np.diff(log_g) / np.diff(knot)
    at_end, rate = (log_g[0], slopes[0] - delta) if delta > 0 else (log_g[-1], slopes[-1] - delta)
    expected = at_end + max(-delta, 0) - np.log(abs(rate))
    # At Delta = 700 the first interval of 'five', of width 0.01, holds all but exp(-11).
    assert value == pytest.approx(expected, rel=1e-9, abs=1e-4)
    assert slope[0] == pytest.approx(-1 / abs(rate) if delta > 0 else 1 / abs(rate) - 1, abs=1e-6)


@pytest.mark.parametrize("delta", SIGNED)
def test_log_weights_of_the_uniform_g(delta: float) -> None:
    """Equation 17 at beta = 1 and at beta = 0, in extended precision."""
    log_w1, log_w0 = log_weights(delta, UNIFORM)
    # A difference of two numbers of the size of Delta.
    rounding = 1e-14 + 2 * np.spacing(abs(delta))
    assert log_w1 == pytest.approx(-long_log_expm1_ratio(delta), rel=1e-14, abs=rounding)
    assert log_w0 == pytest.approx(-long_log_expm1_ratio(-delta), rel=1e-14, abs=rounding)


@pytest.mark.parametrize("delta", [-300.0, -20.0, -1.0, -1e-3, 1e-3, 1.0, 20.0, 300.0])
def test_log_weights_are_those_of_the_paper(delta: float) -> None:
    log_weight = log_weights(delta, UNIFORM)
    w1 = delta * np.exp(-delta) / (1 - np.exp(-delta))
    w0 = delta / (1 - np.exp(-delta))
    np.testing.assert_allclose(np.exp(log_weight), [w1, w0], rtol=1e-12)


def test_both_log_weights_are_zero_where_delta_is() -> None:
    log_weight = log_weights(0.0, UNIFORM)
    assert np.array_equal(log_weight, [0, 0])


@pytest.mark.parametrize("far", [700.0, 1e5, 1e12])
def test_log_weights_of_a_far_point(far: float) -> None:
    above, below = log_weights(far, UNIFORM), log_weights(-far, UNIFORM)
    np.testing.assert_allclose(above, [np.log(far) - far, np.log(far)], rtol=1e-13)
    # w1(Delta) = w0(-Delta); the sum of masses of 1e12 leaves 1e-4 of their difference.
    np.testing.assert_allclose(below, above[::-1], rtol=1e-12, atol=4 * np.spacing(far))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("delta", [-60.0, -3.0, 0.0, 1e-4, 0.7, 8.0, 60.0])
def test_log_weights_are_conditional_densities_at_the_ends(name: str, delta: float) -> None:
    weight = log_weights(delta, SHAPES[name])
    shift, integral = quadrature(delta, SHAPES[name])
    expected = [log_shape(end, delta, SHAPES[name]) - shift - np.log(integral) for end in (1, 0)]
    np.testing.assert_allclose(weight, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", SHAPES)
def test_a_constant_in_log_g_cancels_from_the_log_weights(name: str) -> None:
    knot, log_g = SHAPES[name]
    one = log_weights(1.7, (knot, log_g))
    other = log_weights(1.7, (knot, tuple(value + 40 for value in log_g)))
    np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", SHAPES)
def test_piecewise_linear_is_numpys(name: str) -> None:
    knot, log_g = SHAPES[name]
    linear = function("piecewise_linear")
    beside = [np.nextafter(k, to) for k in knot for to in (0, 1)]
    for beta in [*knot, *beside, *np.random.default_rng(1).random(50)]:
        (value,) = linear(inv_temp=[beta], knot=list(knot), log_g=list(log_g))
        assert value == pytest.approx(np.interp(beta, knot, log_g), rel=1e-12, abs=1e-12)
    density = program(
        "vector[1] b;",
        "target += sum(piecewise_linear(b, knot, log_g));",
        "int G; vector[G] knot; vector[G] log_g;",
        G=len(knot),
        knot=knot,
        log_g=log_g,
    )
    middle = (np.asarray(knot[1:]) + np.asarray(knot[:-1])) / 2
    for beta, slope in zip(middle, np.diff(log_g) / np.diff(knot), strict=True):
        assert density.log_prob_grad([beta])[1][0] == pytest.approx(slope, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("shape", [(1.0, 1.0), (2.5, 1.0), (1.0, 0.7), (3.0, 2.0)])
@pytest.mark.parametrize("name", SHAPES)
def test_log_density_of_inverse_temperatures(name: str, shape: tuple[float, float]) -> None:
    """A Beta density, up to its constant, times a piecewise-linear log density."""
    knot, value = SHAPES[name]
    beta = np.random.default_rng(2).random(6)
    density = program(
        "vector[6] b;",
        "target += log_inv_temp_density(b, knot, value, shape);",
        "int G; vector[G] knot; vector[G] value; vector[2] shape;",
        G=len(knot),
        knot=knot,
        value=value,
        shape=shape,
    )
    total, slope = density.log_prob_grad(beta.tolist())
    a, b = shape
    constant = beta_distribution.logpdf(0.5, a, b) + (a + b - 2) * np.log(2)
    log_shape_of = beta_distribution.logpdf(beta, a, b) - constant
    assert total == pytest.approx(np.sum(log_shape_of + np.interp(beta, knot, value)), rel=1e-11)
    piece = np.searchsorted(knot, beta) - 1
    own = (np.diff(value) / np.diff(knot))[piece]
    np.testing.assert_allclose(slope, own + (a - 1) / beta - (b - 1) / (1 - beta), rtol=1e-10)


def test_log_density_of_fixed_inverse_temperatures_at_the_ends() -> None:
    ends = function("log_inv_temp_density")(
        inv_temp=[0.0, 1.0], knot=[0.0, 1.0], value=[0.5, 2.0], shape=[1.0, 1.0]
    )
    assert np.array_equal(ends, [0.5, 2.0])


@pytest.mark.parametrize("shape", [[1.0, 1.0], [2.5, 1.0], [1.0, 0.7]])
@pytest.mark.parametrize("value", [[0.0, 0.0], [0.4, 0.4], [0.0, 0.3], [-0.3, 0.0]])
def test_uniform_is_a_log_density_of_zero(value: list[float], shape: list[float]) -> None:
    """Uniform, and every way that just fails to be."""
    own = function("log_inv_temp_density")(
        inv_temp=[0.2, 0.5, 0.9], knot=[0.0, 1.0], value=value, shape=shape
    )
    uniform = function("is_uniform")(value=value, shape=shape)
    assert bool(uniform) == (not np.any(own))


@pytest.mark.parametrize("delta", [0.0, 1e-12, -3.0, 40.0, 700.0, -700.0, 1e5, -1e5])
def test_ladder_is_exact_enumeration(delta: float) -> None:
    """The conditional probabilities of a ladder's ends, and the mass of its rungs."""
    knot, log_g = SHAPES["five"]
    terms = np.asarray(log_g) - delta * np.asarray(knot)
    masses = function("inv_temp_log_masses")(
        delta=delta, knot=list(knot), log_g=list(log_g), ladder=1
    )
    np.testing.assert_allclose(masses, terms, rtol=1e-14)
    total = function("log_tempered_mass")(delta=delta, knot=list(knot), log_g=list(log_g), ladder=1)
    assert total == pytest.approx(float(logsumexp(terms)), rel=1e-14)
    expected = [terms[-1] - logsumexp(terms), terms[0] - logsumexp(terms)]
    # Differences of numbers of the size of Delta.
    rounding = 1e-13 + 4 * np.spacing(abs(delta))
    np.testing.assert_allclose(
        log_weights(delta, SHAPES["five"], ladder=1), expected, rtol=1e-13, atol=rounding
    )


GAUSSIAN_BASE = (
    "\n#include path/base.stanblock\n} transformed data {\n#include path/whitened_base.stanblock\n"
)


@pytest.mark.parametrize("dimension", [1, 3])
def test_gaussian_base(dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    root = np.tril(rng.normal(size=(dimension, dimension))) + 2 * np.eye(dimension)
    mean, x = rng.normal(size=dimension), rng.normal(size=(dimension, 4))
    expected = np.asarray(multivariate_normal(mean, root @ root.T).logpdf(x.T))
    density = program(
        "matrix[B, 4] x;",
        "target += gaussian_base_log_density(x, 4, whitened_mean, whiten, base_constant) "
        ".* [1, 2, 3, 4]';",
        GAUSSIAN_BASE,
        B=dimension,
        base_mean=mean,
        base_cholesky=root,
        log_zeta=0,
    )
    total, slope = density.log_prob_grad(x.ravel(order="F").tolist())
    assert total == pytest.approx(float(np.dot(expected, [1, 2, 3, 4])), rel=1e-12)
    by_hand = -np.linalg.solve(root @ root.T, x - mean[:, None]) * [1, 2, 3, 4]
    np.testing.assert_allclose(slope, by_hand.ravel(order="F"), rtol=1e-10)
    one = program(
        "vector[B] x;",
        "target += gaussian_base_lpdf(x | whitened_mean, whiten, base_constant);",
        GAUSSIAN_BASE,
        B=dimension,
        base_mean=mean,
        base_cholesky=root,
        log_zeta=0,
    )
    for column, value in zip(x.T, expected, strict=True):
        assert one.log_prob_grad(column.tolist())[0] == pytest.approx(value, rel=1e-12)


def test_geometric_path() -> None:
    """Equation 14: the base at 0, the target over zeta at 1, linear between."""
    scalar = function("geometric_path(real,real,real,real)")
    vector = function("geometric_path(vector,vector,real,vector)")
    log_gamma, log_base = np.array([-3.0, 1e4, 2.0, -7.0]), np.array([-1.0, -1e4, 0.5, 3.0])
    inv_temp, log_zeta = np.array([0.0, 1.0, 0.25, 0.9]), 1.5
    by_hand = [-1.0, 1e4 - 1.5, 0.25 * 0.5 + 0.75 * 0.5, 0.9 * -8.5 + 0.1 * 3]
    together = vector(log_gamma=log_gamma, log_base=log_base, log_zeta=log_zeta, inv_temp=inv_temp)
    np.testing.assert_allclose(together, by_hand, rtol=1e-13)
    alone = vector(log_gamma=log_gamma, log_base=[], log_zeta=log_zeta, inv_temp=inv_temp)
    np.testing.assert_allclose(alone, inv_temp * (log_gamma - log_zeta), rtol=1e-13)
    for g, b, beta, expected in zip(log_gamma, log_base, inv_temp, by_hand, strict=True):
        one = scalar(log_gamma=g, log_base=b, log_zeta=log_zeta, inv_temp=beta)
        assert one == pytest.approx(expected, rel=1e-13)


def copula_log_density(u: FloatArray, correlation: float) -> float:
    """Gaussian copula with one correlation for all pairs, by SciPy."""
    size = len(u)
    matrix = (1 - correlation) * np.eye(size) + correlation
    z = norm.ppf(u)
    joint = multivariate_normal(np.zeros(size), matrix).logpdf(z)
    return float(joint - norm.logpdf(z).sum())


COPULAS = [
    (size, correlation)
    for size in (2, 3, 5)
    for correlation in (-0.99 / (size - 1), -0.5 / (size - 1), 0.0, 0.3, 0.95)
]


@pytest.mark.parametrize(("size", "correlation"), COPULAS)
def test_stratified_density_is_a_gaussian_copula(size: int, correlation: float) -> None:
    density = program(
        "vector[N] b;",
        "target += stratified_log_density(b, r);",
        "int N; real r;",
        N=size,
        r=correlation,
    )
    for u in np.random.default_rng(size).uniform(0.02, 0.98, (10, size)):
        value, slope = density.log_prob_grad(u)
        expected = copula_log_density(u, correlation)
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)
        if correlation == 0:
            assert value == pytest.approx(0, abs=1e-12)
        for i in range(size):
            step = 1e-6 * np.eye(size)[i]
            above, below = (copula_log_density(u + s * step, correlation) for s in (1, -1))
            # The covariance with eigenvalue 0.01 amplifies rounding to 1e-13 / 1e-6.
            assert slope[i] == pytest.approx((above - below) / 2e-6, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_stratified_density_of_no_correlation_is_independence(size: int) -> None:
    density = function("stratified_log_density")
    for u in np.random.default_rng(size).random((10, size)):
        assert density(inv_temp=u, correlation=0.0) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("correlation", [-0.8, -0.4, 0.0, 0.5])
def test_stratified_density_integrates_to_one(correlation: float) -> None:
    """And leaves each inverse temperature uniform: integrated over one it is one."""
    density = function("stratified_log_density")
    z, share = np.polynomial.hermite_e.hermegauss(80)
    share = share / share.sum()
    keep = np.abs(z) < 7.5  # beyond it the distribution function rounds to 1
    z, share = z[keep], share[keep]
    for fixed in (0.05, 0.5, 0.8):
        values = [density(inv_temp=[fixed, v], correlation=correlation) for v in norm.cdf(z)]
        assert share @ np.exp(values) == pytest.approx(1, rel=1e-6)
    u = norm.cdf(z)
    table = [[density(inv_temp=[s, t], correlation=correlation) for s in u] for t in u]
    assert share @ np.exp(table) @ share == pytest.approx(1, rel=1e-5)


def test_stratified_density_prefers_spread_inverse_temperatures() -> None:
    density = function("stratified_log_density")
    spread, close = ([0.2, 0.5, 0.8], [0.75, 0.8, 0.85])
    values = [density(inv_temp=u, correlation=-0.49) for u in (spread, close)]
    assert values[0] > values[1] + 10


RNG_PROGRAM = (
    INCLUDE
    + """data {
  int<lower=1> S;
  vector[S] delta;
  int<lower=2> G;
  vector[G] knot;
  vector[G] log_g;
}
generated quantities {
  vector[S] inv_temp;
  for (s in 1 : S) inv_temp[s] = inv_temp_rng(delta[s], knot, log_g, 0);
}
"""
)
DELTAS = [0.0, 1e-9, -1e-9, 1e-6, 3.0, -3.0, 50.0, -50.0, 1e4, -1e4]


def conditional_cdf(beta: FloatArray, delta: float, knots: Knots) -> FloatArray:
    """P(inverse temperature <= beta | x): a truncated exponential on each interval."""
    knot, log_g = (np.asarray(values) for values in knots)
    rate = np.diff(log_g) / np.diff(knot) - delta
    start = log_g[:-1] - knot[:-1] * delta
    shift = max(float(start.max()), float(log_g[-1] - delta))

    def mass(top: FloatArray) -> FloatArray:
        inside = np.clip(top[..., None] - knot[:-1], 0, np.diff(knot))
        flat = np.abs(rate) < 1e-7
        safe = np.where(flat, 1.0, rate)
        # exp(start) (exp(rate t) - 1) / rate, without overflow at either end.
        ends = np.exp(start + rate * inside - shift) - np.exp(start - shift)
        small = np.exp(start - shift) * np.expm1(np.minimum(rate * inside, 1))
        steep = np.where(rate * inside < 1, small, ends) / safe
        each = np.where(flat, np.exp(start - shift) * inside, steep)
        return np.asarray(each.sum(axis=-1), dtype=np.float64)

    return np.asarray(mass(beta) / mass(np.ones(1)), dtype=np.float64)


@pytest.mark.parametrize("name", ["uniform", "tilted", "five"])
@pytest.mark.parametrize("delta", [0.0, 3.0, -3.0, 50.0, -50.0])
def test_the_distribution_function_that_draws_are_held_against(name: str, delta: float) -> None:
    knots = SHAPES[name]
    total = quadrature(delta, knots)
    for beta in (0.004, 0.2, 0.6, 0.97):
        kept = [k for k in knots[0] if k < beta]
        cut: Knots = ((*kept, beta), tuple(np.interp([*kept, beta], *knots)))
        part = quadrature(delta, cut)
        expected = np.exp(part[0] - total[0]) * part[1] / total[1]
        value = conditional_cdf(np.array([beta]), delta, knots)[0]
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.fixture(scope="module")
def rng_exe(
    quiet_cmdstanpy: None, cmdstan_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """Compile the program that draws inverse temperatures at given Delta."""
    assert cmdstan_home.is_dir()
    path = tmp_path_factory.mktemp("tempering") / "inv_temp_draws.stan"
    path.write_text(RNG_PROGRAM)
    tiny = StanProgram(path, (shipped("stan"),))
    return str(compile_programs([tiny], require_cmdstan())[tiny].exe)


def drawn(exe: str, knots: Knots, seed: int, folder: Path) -> FloatArray:
    """Return 4000 draws at each Delta, shape (draws, Delta)."""
    data = {"S": len(DELTAS), "delta": DELTAS, "G": len(knots[0])}
    fit = cmdstanpy.CmdStanModel(exe_file=exe).sample(
        data={**data, "knot": list(knots[0]), "log_g": list(knots[1])},
        chains=1,
        fixed_param=True,
        iter_sampling=4000,
        seed=seed,
        sig_figs=17,
        show_progress=False,
        output_dir=str(folder),
    )
    return np.asarray(fit.stan_variable("inv_temp"), dtype=np.float64)


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["uniform", "tilted", "five"])
def test_inverse_temperatures_follow_their_conditional(
    rng_exe: str, name: str, tmp_path: Path
) -> None:
    knots = SHAPES[name]
    draws = drawn(rng_exe, knots, 31, tmp_path)
    assert draws.shape == (4000, len(DELTAS))
    assert np.all((draws >= 0) & (draws <= 1))
    for column, delta in zip(draws.T, DELTAS, strict=True):
        uniform = conditional_cdf(column, delta, knots)
        # All 30 tests together fail for a right program with probability 1e-3.
        assert kstest(uniform, "uniform").pvalue > 1e-3 / 30, delta
        # Draws follow each other independently.
        lag = np.corrcoef(uniform[1:], uniform[:-1])[0, 1]
        assert abs(lag) < 4.5 / np.sqrt(len(uniform)), delta


@pytest.mark.compiled
def test_draws_for_different_delta_are_independent(rng_exe: str, tmp_path: Path) -> None:
    draws = drawn(rng_exe, UNIFORM, 32, tmp_path)
    correlation = np.corrcoef(draws.T) - np.eye(len(DELTAS))
    assert np.all(np.abs(correlation) < 4.5 / np.sqrt(len(draws)))
