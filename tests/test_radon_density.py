"""Every radon program, value and gradient, against SciPy from the definition of the model."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from form_data import pseudo_extended_data
from scipy.special import logsumexp
from scipy.stats import halfcauchy, multivariate_normal, norm
from stan_density import StanDensity, into_box, log_box_jacobian, stanli

from harness.arrays import FloatArray
from harness.forms.continuous_tempering import tempering_data
from harness.model import Model
from harness.model.density import TargetDensity
from harness.model.numpy_density import target_density
from harness.models.radon import RadonData, load_radon, radon
from harness.path import GaussianBase, gaussian_base
from harness.path.data import UNIFORM

RNG = np.random.default_rng(17)
DATA = RadonData(
    RNG.normal(1.3, 0.8, 9),
    np.array([1.0, 0, 0, 1, 0, 1, 0, 0, 1]),
    RNG.normal(0.2, 0.6, 9),
    np.array([1, 0, 2, 2, 1, 0, 2, 2, 2]),
    ("A", "B", "C"),
)
MODEL = DATA.model("small")
CENTRED = DATA.model("small, centred", centred=True)
DIMENSION = 10
ROOT = np.tril(RNG.normal(0, 0.3, (DIMENSION, DIMENSION)), -1) + np.diag(
    RNG.uniform(0.5, 1.5, DIMENSION)
)
BASE = gaussian_base(RNG.normal(0, 0.5, DIMENSION), ROOT @ ROOT.T, log_zeta=-11.7)
BASE_DENSITY = multivariate_normal(BASE.mean, BASE.covariance)
KNOTTED = ((0.0, 1.0), (0.2, -0.5), (0.7, 0.4), (1.0, 2.0))

LEGENDRE = np.polynomial.legendre.leggauss(60)

PATHS: dict[str, dict[str, Any]] = {
    "prior": {"log_zeta": -9.3},
    "prior, knotted g": {"log_zeta": 0.6, "log_g": KNOTTED},
    "Gaussian": {"base": BASE},
    "Gaussian, knotted g": {"base": BASE, "log_g": KNOTTED},
}


def log_normal(x: FloatArray, mean: FloatArray | float = 0.0, sd: float = 1.0) -> FloatArray:
    """SciPy's norm.logpdf without its checks, as it is called thousands of times."""
    return np.asarray(-0.5 * ((x - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi))


def log_half_cauchy(x: FloatArray) -> FloatArray:
    return np.asarray(np.log(2 / (np.pi * 2.5)) - np.log1p((x / 2.5) ** 2))


def test_quick_densities_are_those_of_scipy() -> None:
    x = np.array([0.01, 0.7, 40.0])
    np.testing.assert_allclose(log_half_cauchy(x), halfcauchy.logpdf(x, scale=2.5), rtol=1e-13)
    np.testing.assert_allclose(log_normal(x, 0.3, 2.0), norm.logpdf(x, 0.3, 2.0), rtol=1e-13)
    np.testing.assert_allclose(log_normal(x), norm.logpdf(x), rtol=1e-13)


def terms(u: FloatArray, data: RadonData = DATA) -> tuple[float, float]:
    """Log likelihood, home by home, and log prior of the unconstrained point, Jacobian included."""
    mu_a, mu_b = u[:2]
    sigma_a, sigma_b, eps = np.exp(u[2:5])
    n, m = u[5:-2], u[-2:]
    alpha, beta = mu_a + sigma_a * n, mu_b + sigma_b * m
    mean = alpha[data.county] + data.first_floor * beta[0] + data.log_uranium * beta[1]
    log_likelihood = np.sum(log_normal(data.log_radon, mean, eps))
    gaussian = np.sum(log_normal(np.concatenate([[mu_a, mu_b], n, m])))
    scales = np.sum(log_half_cauchy(np.exp(u[2:5]))) + u[2:5].sum()
    return float(log_likelihood), float(gaussian + scales)


def log_path(u: FloatArray, path: dict[str, Any]) -> tuple[float, float]:
    """Log target over zeta and log base on the unconstrained space."""
    base: GaussianBase | None = path.get("base")
    log_likelihood, log_prior = terms(u)
    if base is None:
        return log_likelihood + log_prior - path["log_zeta"], log_prior
    log_base = BASE_DENSITY.logpdf(u)
    return log_likelihood + log_prior - base.log_zeta, float(log_base)


def log_g(inv_temp: FloatArray | float, path: dict[str, Any]) -> FloatArray:
    knot, value = np.array(path.get("log_g", UNIFORM)).T
    return np.asarray(np.interp(inv_temp, knot, value), dtype=np.float64)


def log_mass(one: float, zero: float, path: dict[str, Any], *, ladder: bool) -> float:
    """Log of the integral over beta of g times the path, or of the sum over the rungs."""
    knot, value = np.array(path.get("log_g", UNIFORM)).T
    if ladder:
        return float(logsumexp(knot * one + (1 - knot) * zero + value))
    node, weight = LEGENDRE
    pieces: list[FloatArray] = []
    for low, high in pairwise(knot):
        beta = low + (high - low) * (node + 1) / 2
        share = np.log(weight * (high - low) / 2)
        pieces.append(beta * one + (1 - beta) * zero + share + log_g(beta, path))
    return float(np.logaddexp.reduce(np.concatenate(pieces)))


def check(
    density: StanDensity, expected: Callable[[FloatArray], float], seed: int, count: int = 5
) -> None:
    """Value and gradient at random points, the gradient by central differences."""
    for u in np.random.default_rng(seed).normal(0, 0.6, (count, density.dimension)):
        value, slope = density(u)
        assert value == pytest.approx(expected(u), rel=1e-11, abs=1e-10)
        step = 1e-5 * np.eye(len(u))
        numerical = [(expected(u + each) - expected(u - each)) / 2e-5 for each in step]
        # Rounding of the values, about 1e-13, over the step; curvature over the step squared.
        np.testing.assert_allclose(slope, numerical, rtol=1e-6, atol=3e-5)


def test_target() -> None:
    density = StanDensity(MODEL.program("target"), MODEL.data)
    assert density.dimension == MODEL.dimension == DIMENSION
    check(density, lambda u: sum(terms(u)), 1, 10)


def test_target_of_all_homes() -> None:
    """Sufficient statistics lose nothing, near the posterior and far from it."""
    model, data = radon(), load_radon()
    density = StanDensity(model.program("target"), model.data)
    assert density.dimension == model.dimension == 92
    for spread in (0.1, 1.0, 3.0):
        for u in np.random.default_rng(2).normal(0, spread, (5, 92)):
            value, slope = density(u)
            assert value == pytest.approx(sum(terms(u, data)), rel=1e-11)
            for i in (0, 1, 2, 3, 4, 5, 60, 90, 91):
                step = 1e-5 * np.eye(92)[i]
                numerical = (sum(terms(u + step, data)) - sum(terms(u - step, data))) / 2e-5
                assert slope[i] == pytest.approx(numerical, rel=1e-5, abs=1e-11 * abs(value) / 1e-5)


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("inv_temp", [None, 0.0, 0.35, 1.0])
def test_joint_tempering(name: str, inv_temp: float | None) -> None:
    path = PATHS[name]
    fixed = np.empty(0) if inv_temp is None else np.array([inv_temp])
    data = {**MODEL.data, **tempering_data(MODEL, **path)}
    data |= {"sample_inv_temp": int(inv_temp is None), "fixed_inv_temp": fixed}
    density = StanDensity(MODEL.program("joint_tempering"), data)
    assert density.dimension == DIMENSION + (inv_temp is None)

    def expected(u: FloatArray) -> float:
        one, zero = log_path(u[:DIMENSION], path)
        beta, jacobian = inv_temp, 0.0
        if beta is None:
            beta = float(into_box(u[DIMENSION], 0, 1))
            jacobian = log_box_jacobian(u[DIMENSION:], 0, 1)
        return beta * one + (1 - beta) * zero + float(log_g(beta, path)) + jacobian

    check(density, expected, 3)


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("ladder", [False, True])
def test_collapsed_tempering(name: str, ladder: bool) -> None:
    path = PATHS[name]
    data = {**MODEL.data, **tempering_data(MODEL, **path), "ladder": int(ladder)}
    density = StanDensity(MODEL.program("collapsed_tempering"), data)
    assert density.dimension == DIMENSION
    check(density, lambda u: log_mass(*log_path(u, path), path, ladder=ladder), 4)


def standardised(u: FloatArray) -> tuple[FloatArray, float]:
    """The point with m in place of beta = mu_b + sigma_b m, and log |dm / dbeta|."""
    point = u.copy()
    point[-2:] = (u[-2:] - u[1]) / np.exp(u[3])
    return point, -2 * float(u[3])


def test_centred_target() -> None:
    density = StanDensity(CENTRED.program("target"), CENTRED.data)
    assert density.dimension == CENTRED.dimension == DIMENSION

    def expected(u: FloatArray) -> float:
        point, jacobian = standardised(u)
        return sum(terms(point)) + jacobian

    check(density, expected, 1, 10)


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("ladder", [False, True])
def test_centred_collapsed_tempering(name: str, ladder: bool) -> None:
    """A Gaussian base is one of beta; the prior, its own base, is one of beta as well."""
    path = PATHS[name]
    data = {**CENTRED.data, **tempering_data(CENTRED, **path), "ladder": int(ladder)}
    density = StanDensity(CENTRED.program("collapsed_tempering"), data)

    def expected(u: FloatArray) -> float:
        point, jacobian = standardised(u)
        one, zero = log_path(point, path)
        zero = float(BASE_DENSITY.logpdf(u)) if "base" in path else zero + jacobian
        return log_mass(one + jacobian, zero, path, ladder=ladder)

    check(density, expected, 4)


@pytest.mark.parametrize("model", [MODEL, CENTRED], ids=["standardised", "centred"])
def test_the_numpy_density_is_the_program(model: Model) -> None:
    assert model.log_density is not None
    density = StanDensity(model.program("target"), model.data)
    points = np.random.default_rng(9).normal(0, 1.5, (30, DIMENSION))
    value, gradient = model.log_density(points)
    stan = [density(u) for u in points]
    np.testing.assert_allclose(value, [each[0] for each in stan], rtol=1e-11)
    slope = np.array([each[1] for each in stan])
    scale = 1e-11 * (1 + np.abs(slope).max(axis=1, keepdims=True))
    assert np.all(np.abs(gradient - slope) <= scale)
    assert target_density(model).shapes == TargetDensity(model).shapes


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("height", [-800.0, 800.0])
def test_the_centred_numpy_density_far_out_is_no_number_and_no_warning(height: float) -> None:
    assert CENTRED.log_density is not None
    point = np.ones((1, DIMENSION))
    point[0, 2:5] = height
    value, gradient = CENTRED.log_density(point)
    assert not (np.isfinite(value[0]) and np.all(np.isfinite(gradient)))


def pseudo_samples(u: FloatArray, num: int) -> FloatArray:
    """Unconstrained points (N, D) from Stan's order: by parameter, by pseudo-sample."""
    scalars = u[: 5 * num].reshape(5, num)
    vectors = u[5 * num : DIMENSION * num]
    n, m = vectors[: 3 * num].reshape(num, 3), vectors[3 * num :].reshape(num, 2)
    return np.concatenate([scalars.T, n, m], axis=1)


PSEUDO: dict[str, dict[str, Any]] = {
    **PATHS,
    "everything": {
        "base": BASE,
        "log_g": KNOTTED,
        "g_shape": (2.0, 1.3),
        "g_correlation": 0.4,
        "log_pi": ((0.0, 0.2), (1.0, -1.0)),
        "pi_shape": (1.5, 1.1),
    },
}


@pytest.mark.parametrize("name", PSEUDO)
@pytest.mark.parametrize(("num", "ladder"), [(1, None), (2, None), (3, None), (2, (0.1, 0.8))])
def test_pseudo_extended(name: str, num: int, ladder: tuple[float, ...] | None) -> None:
    path = dict(PSEUDO[name])
    if num == 1 or ladder is not None:
        path.pop("g_correlation", None)
    data = {**MODEL.data, **pseudo_extended_data(MODEL, num, ladder, **path)}
    density = StanDensity(MODEL.program("pseudo_extended"), data)
    assert density.dimension == num * (DIMENSION + (ladder is None))

    def shaped(beta: FloatArray, shape: tuple[float, float]) -> FloatArray:
        a, b = shape
        return np.asarray((a - 1) * np.log(beta) + (b - 1) * np.log1p(-beta))

    def expected(u: FloatArray) -> float:
        points = pseudo_samples(u, num)
        ends = np.array([log_path(point, path) for point in points])
        free = u[DIMENSION * num :]
        beta = into_box(free, 0, 1) if ladder is None else np.array(ladder)
        log_q = beta * ends[:, 0] + (1 - beta) * ends[:, 1] + log_g(beta, path)
        log_q += shaped(beta, path.get("g_shape", (1, 1)))
        zeta = BASE.log_zeta if "base" in path else path["log_zeta"]
        log_pi = log_g(beta, {"log_g": path.get("log_pi", UNIFORM)})
        log_pi = log_pi + shaped(beta, path.get("pi_shape", (1, 1)))
        # Jacobians of the target and of the instrumental density cancel in their ratio.
        log_target = ends[:, 0] + zeta + log_pi
        total = float(logsumexp(log_target - log_q)) - np.log(num) + log_q.sum()
        if "g_correlation" in path:
            z = norm.ppf(beta)
            matrix = np.full((num, num), path["g_correlation"]) + np.eye(num) * (
                1 - path["g_correlation"]
            )
            total += multivariate_normal(cov=matrix).logpdf(z) - np.sum(norm.logpdf(z))
        return float(total) + log_box_jacobian(free, 0, 1)

    check(density, expected, 5, 3)


def test_a_gaussian_base_of_all_homes_is_finite_far_out() -> None:
    model = radon()
    base = gaussian_base(np.zeros(92), np.eye(92), log_zeta=-1044.0)
    data = {**model.data, **tempering_data(model, base), "ladder": 0}
    density = StanDensity(model.program("collapsed_tempering"), data)
    for u in (np.full(92, 8.0), np.full(92, -8.0)):
        value, slope = density(u)
        # So far from the target that beta is 0: the base, times the integral 1 / Delta.
        assert value < -2000
        assert np.all(np.isfinite(slope))
        np.testing.assert_allclose(slope[5:], -u[5:], rtol=0.01, atol=0.01)


def sampled(
    variant: str, data: dict[str, Any], num: int, target: Model = MODEL
) -> list[tuple[FloatArray, Any]]:
    """Short run: the unconstrained pseudo-samples (N, D) of each draw, and what it generated."""
    program = target.program(variant)
    model = stanli.Model(
        str(program.path),
        data={name: np.asarray(value).tolist() for name, value in data.items()},
        include_paths=[str(path) for path in program.include_paths],
    )
    fit = model.sample(seed=4, chains=1, warmup=50, samples=4, refresh=0)
    found = []
    for draw in np.asarray(fit.draws())[0]:
        values: dict[str, list[float]] = {}
        for name, value in zip(fit.names, draw, strict=True):
            values.setdefault(name.split("[")[0], []).append(float(value))
        for name in ("sigma_a", "sigma_b", "eps"):
            values[name] = np.log(values[name]).tolist()
        u = np.concatenate([values[name] for name in target.parameters])
        found.append(
            (pseudo_samples(u, num), {name: np.array(each) for name, each in values.items()})
        )
    return found


@pytest.mark.parametrize("name", PATHS)
def test_log_weights(name: str) -> None:
    """Delta, w1 and w0 of continuous tempering and the weights of pseudo-samples, in draws."""
    path = PATHS[name]
    zeta = BASE.log_zeta if "base" in path else path["log_zeta"]
    tempered = {**MODEL.data, **tempering_data(MODEL, **path)}
    collapsed = {**tempered, "ladder": 0}
    joint = {**tempered, "sample_inv_temp": 0, "fixed_inv_temp": [0.3]}
    ends = log_g(np.array([1.0, 0.0]), path)
    for variant, data in (("collapsed_tempering", collapsed), ("joint_tempering", joint)):
        for points, found in sampled(variant, data, 1):
            one, zero = log_path(points[0], path)
            mass = log_mass(one, zero, path, ladder=False)
            np.testing.assert_allclose(found["delta"], zero - one, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(
                found["log_weight"], np.array([one, zero]) + ends - mass, rtol=1e-9, atol=1e-9
            )
            assert 0 <= found["inv_temp"][0] <= 1

    beta = np.array([0.2, 0.9])
    fixed = {**MODEL.data, **pseudo_extended_data(MODEL, 2, (0.2, 0.9), **path)}
    for points, found in sampled("pseudo_extended", fixed, 2):
        one, zero = np.array([log_path(point, path) for point in points]).T
        log_q = beta * one + (1 - beta) * zero + log_g(beta, path)
        np.testing.assert_allclose(found["delta"], zero - one, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found["log_weight"], one + zeta - log_q, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["prior", "Gaussian, knotted g"])
def test_centred_log_weights(name: str) -> None:
    path = PATHS[name]
    data = {**CENTRED.data, **tempering_data(CENTRED, **path), "ladder": 0}
    ends = log_g(np.array([1.0, 0.0]), path)
    for points, found in sampled("collapsed_tempering", data, 1, CENTRED):
        point, jacobian = standardised(points[0])
        one, zero = log_path(point, path)
        zero = float(BASE_DENSITY.logpdf(points[0])) if "base" in path else zero + jacobian
        mass = log_mass(one + jacobian, zero, path, ladder=False)
        np.testing.assert_allclose(found["delta"], zero - one - jacobian, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(
            found["log_weight"],
            np.array([one + jacobian, zero]) + ends - mass,
            rtol=1e-9,
            atol=1e-9,
        )
