"""Every program of the banana and the flower against NumPy, value and gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import cmdstanpy
import numpy as np
import pytest
from form_data import pseudo_extended_data
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from stan_density import StanDensity, into_box, log_box_jacobian, stanli

from harness.arrays import FloatArray
from harness.engine.stan_data import plain_data
from harness.errors import DataError
from harness.evidence import LogG
from harness.forms.common import compiled_variant
from harness.forms.continuous_tempering import (
    COLLAPSED_TEMPERING,
    JOINT_TEMPERING,
    tempering_data,
)
from harness.forms.pseudo_extended import COLLAPSED_PSEUDO_EXTENDED, PSEUDO_EXTENDED
from harness.model import Model
from harness.models.shapes import Banana, Flower
from harness.path import GaussianBase, gaussian_base
from harness.path.data import UNIFORM, path_data

BANANA, WIDE, FLOWER = Banana(v=3.0, b=0.6), Banana(v=2.0, b=-0.4, dimension=4), Flower(w=5)


def banana_log_gamma(banana: Banana) -> Callable[[FloatArray], float]:
    def log_gamma(x: FloatArray) -> float:
        centre = np.append([0.0, banana.b * (x[0] ** 2 - banana.v)], np.zeros(len(x) - 2))
        variance = np.append(banana.v, np.ones(len(x) - 1))
        return float(-0.5 * np.sum((x - centre) ** 2 / variance + np.log(2 * np.pi * variance)))

    return log_gamma


def flower_log_gamma(flower: Flower) -> Callable[[FloatArray], float]:
    def log_gamma(x: FloatArray) -> float:
        # In the complex plane: cos(w angle) is the real part of (x / |x|)^w.
        point = complex(x[0], x[1])
        wave = (point / abs(point)) ** flower.w if point else 1
        return -((abs(point) - flower.r - flower.A * complex(wave).real) ** 2) / (2 * flower.s**2)

    return log_gamma


SHAPES: dict[str, tuple[Model, Callable[[FloatArray], float]]] = {
    "banana": (BANANA.model(), banana_log_gamma(BANANA)),
    "banana in 4 dimensions": (WIDE.model(), banana_log_gamma(WIDE)),
    "flower": (FLOWER.model(), flower_log_gamma(FLOWER)),
}


def points_of(name: str, count: int, seed: int) -> FloatArray:
    """Points where the density is neither all tail nor all mode."""
    rng = np.random.default_rng(seed)
    scale = 8.0 if name == "flower" else 1.5
    return rng.normal(0, scale, (count, SHAPES[name][0].dimension))


def assert_matches(
    density: StanDensity, expected: Callable[[FloatArray], float], u: FloatArray
) -> None:
    """Value to rounding; gradient to the error of central differences."""
    value, slope = density(u)
    assert value == pytest.approx(expected(u), rel=1e-10, abs=1e-10)
    step = 1e-5
    numerical = [
        (expected(u + each) - expected(u - each)) / (2 * step) for each in step * np.eye(len(u))
    ]
    # Rounding of the values over the step, and curvature times its square.
    rounding = 1e-15 * max(1.0, abs(value)) / step
    np.testing.assert_allclose(slope, numerical, rtol=1e-6, atol=1e-5 + 10 * rounding)


@pytest.mark.parametrize("name", SHAPES)
def test_target(name: str) -> None:
    model, log_gamma = SHAPES[name]
    density = StanDensity(model.program("target"), model.data)
    assert density.dimension == model.dimension
    for u in points_of(name, 20, seed=1):
        assert_matches(density, log_gamma, u)


def test_flower_at_and_near_the_origin() -> None:
    """The value is that of angle 0, as in NumPy; the gradient is finite."""
    model, log_gamma = SHAPES["flower"]
    density = StanDensity(model.program("target"), model.data)
    for point in np.array([[0.0, 0.0], [0.0, -0.0], [-0.0, 0.0]]):
        value, slope = density(point)
        assert value == pytest.approx(-0.5 * 16**2)
        np.testing.assert_allclose(slope, [16, 0])  # along the petal of angle 0
    for point in np.array([[1e-130, 0.0], [0.0, -1e-130], [1e-9, 1e-9], [-1e-3, 0.0]]):
        value, slope = density(point)
        assert value == pytest.approx(log_gamma(point), rel=1e-12)
        assert np.all(np.isfinite(slope))
    # Along the axes the density is smooth.
    assert density([0.0, 3.0])[0] == pytest.approx(-0.5 * (3 - 10) ** 2)
    assert density([-3.0, 0.0])[0] == pytest.approx(-0.5 * (3 - 10 + 6) ** 2)


ABOVE: LogG = ((0.05, -0.3), (0.4, 0.8), (1.0, 0.1))
FULL: LogG = ((0.0, 0.7), (0.3, -0.4), (1.0, 0.5))
ZETA = 0.6  # of the runs without a Gaussian base


def base_of(name: str) -> GaussianBase:
    dimension = SHAPES[name][0].dimension
    scale = 6.0 if name == "flower" else 1.4
    root = np.tril(np.full((dimension, dimension), 0.3)) + np.diag(np.linspace(0.7, 1, dimension))
    return gaussian_base(np.linspace(-0.5, 0.7, dimension), scale**2 * root @ root.T, log_zeta=-0.8)


def path(
    name: str, base: GaussianBase | None
) -> tuple[Callable[[FloatArray], float], Callable[[FloatArray], float], float]:
    """Return log gamma, log b (0 without a base) and log zeta."""
    if base is None:
        return SHAPES[name][1], lambda x: 0.0, ZETA
    gaussian = multivariate_normal(base.mean, base.covariance)
    return SHAPES[name][1], lambda x: float(gaussian.logpdf(x)), base.log_zeta


def log_shape(beta: float, log_g: LogG, shape: Sequence[float] = (1.0, 1.0)) -> float:
    factor = (shape[0] - 1) * np.log(beta) + (shape[1] - 1) * np.log1p(-beta) if 0 < beta < 1 else 0
    return float(np.interp(beta, *np.array(log_g).T) + factor)


def log_mass(delta: float, log_g: LogG, ladder: bool) -> float:
    """Log of the sum or integral of g(beta) exp(-beta Delta), by quadrature on fine panels."""
    knot, value = np.array(log_g).T
    if ladder:
        return float(logsumexp(value - knot * delta))
    nodes, share = np.polynomial.legendre.leggauss(40)
    edges = np.concatenate([np.linspace(a, b, 9)[:-1] for a, b in pairwise(knot)] + [knot[-1:]])
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    beta = (middle[:, None] + half[:, None] * nodes).ravel()
    weight = (half[:, None] * share).ravel()
    return float(logsumexp(np.interp(beta, knot, value) - beta * delta + np.log(weight)))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("ladder", [False, True])
@pytest.mark.parametrize("log_g", [UNIFORM, FULL], ids=["uniform", "knotted"])
def test_collapsed_tempering(name: str, ladder: bool, log_g: LogG) -> None:
    model, base = SHAPES[name][0], base_of(name)
    log_gamma, log_base, zeta = path(name, base)
    data = {**model.data, **tempering_data(model, base, log_g=log_g), "ladder": int(ladder)}
    density = StanDensity(model.program("collapsed_tempering"), data)
    assert density.dimension == model.dimension

    def expected(x: FloatArray) -> float:
        one, zero = log_gamma(x) - zeta, log_base(x)
        return zero + log_mass(zero - one, log_g, ladder)

    for x in points_of(name, 6, seed=2):
        assert_matches(density, expected, x)


PSEUDO: dict[str, tuple[int, dict[str, Any]]] = {
    "sampled": (2, {}),
    "three": (3, {"log_pi": ((0.05, 0.2), (0.6, -1.0), (1.0, 0.4))}),
    "shaped": (2, {"g_shape": (2.5, 0.8), "pi_shape": (1.5, 3.0)}),
    "stratified": (3, {"g_correlation": -0.4}),
    "fixed": (2, {"inv_temp": 0.3}),
    "ladder": (3, {"inv_temp": (0.1, 0.5, 1.0)}),
    "one": (1, {}),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("case", PSEUDO)
def test_pseudo_extended(name: str, gaussian: bool, case: str) -> None:
    model, base = SHAPES[name][0], base_of(name) if gaussian else None
    log_gamma, log_base, zeta = path(name, base)
    num, settings = PSEUDO[case]
    start = ABOVE[0][0]
    data = pseudo_extended_data(model, num, base=base, log_zeta=ZETA, log_g=ABOVE, **settings)
    density = StanDensity(model.program("pseudo_extended"), {**model.data, **data})
    fixed = settings.get("inv_temp")
    assert density.dimension == num * (model.dimension + (fixed is None))
    log_pi: LogG = settings.get("log_pi", ((start, 0.0), (1.0, 0.0)))

    def expected(u: FloatArray) -> float:
        """Equation 8: log of the mean of target_i prod_{j != i} q_j."""
        x = u[: num * model.dimension].reshape(num, model.dimension)
        jacobian, copula = 0.0, 0.0
        if fixed is None:
            logit = u[num * model.dimension :]
            beta = into_box(logit, start, 1)
            jacobian = log_box_jacobian(logit, start, 1)
            z = norm.ppf((beta - start) / (1 - start))
            rho = settings.get("g_correlation", 0.0)
            covariance = (1 - rho) * np.eye(num) + rho
            copula = float(multivariate_normal(cov=covariance).logpdf(z) - norm.logpdf(z).sum())
        else:
            beta = np.broadcast_to(np.asarray(fixed, dtype=np.float64), num)
        log_q, log_target = [], []
        for point, b in zip(x, beta, strict=True):
            tempered = b * (log_gamma(point) - zeta) + (1 - b) * log_base(point)
            log_q.append(tempered + log_shape(b, ABOVE, settings.get("g_shape", (1, 1))))
            pi_shape = settings.get("pi_shape", (1, 1))
            log_target.append(log_gamma(point) + log_shape(b, log_pi, pi_shape))
        terms = [log_target[i] + sum(log_q[:i]) + sum(log_q[i + 1 :]) for i in range(num)]
        return float(logsumexp(terms) - np.log(num)) + jacobian + copula

    logits = np.random.default_rng(5).normal(size=(3, num))
    for k, logit in enumerate(logits):
        x = points_of(name, num, seed=10 + k).ravel()
        assert_matches(density, expected, np.append(x, logit) if fixed is None else x)


@pytest.mark.parametrize("name", ["banana", "flower"])
def test_infinite_mass_is_refused_before_compiling(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Down to beta = 0 a flat base on the plane has infinite mass."""

    def run_now(*_: object, **__: object) -> None:
        pytest.fail("ran before the settings were checked")

    monkeypatch.setattr("harness.forms.form.run_variant", run_now)
    model = SHAPES[name][0]
    runs: list[tuple[Callable[..., object], dict[str, Any]]] = [
        (PSEUDO_EXTENDED.sample, {}),
        (PSEUDO_EXTENDED.sample, {"inv_temp": 0.0}),
        (PSEUDO_EXTENDED.sample, {"inv_temp": (1.0, 0.0), "log_g": ABOVE}),
        (COLLAPSED_PSEUDO_EXTENDED.sample, {}),
        (JOINT_TEMPERING.sample, {}),
        (COLLAPSED_TEMPERING.sample, {}),
    ]
    for run, settings in runs:
        with pytest.raises(DataError, match="infinite mass"):
            run(model, seed=1, **settings)
    # Any of these makes it finite.
    assert pseudo_extended_data(model, 2, log_g=ABOVE)["B"] == 0
    assert pseudo_extended_data(model, 2, 0.3)["fixed_inv_temp"][0] == 0.3
    assert pseudo_extended_data(model, 2, base=base_of(name))["B"] == 2


@pytest.mark.parametrize("shape", [BANANA, WIDE, FLOWER], ids=str)
def test_bases_have_the_moments_of_their_shapes(shape: Banana | Flower) -> None:
    base = shape.base()
    assert np.array_equal(base.mean, shape.truth.expected("x"))
    second = np.diag(base.covariance) + base.mean**2
    np.testing.assert_allclose(second, shape.truth.expected("x_squared"), rtol=1e-12)
    assert base.log_zeta == shape.truth.log_evidence.value


def written(model: Model, variant: str, data: dict[str, Any]) -> Any:
    """Run a variant for a few draws, with no compile; what it writes by name, axes (draw, ...)."""
    program = model.program(variant)
    plain = {name: np.asarray(value).tolist() for name, value in {**model.data, **data}.items()}
    folders = [str(path) for path in program.include_paths]
    run = stanli.Model(str(program.path), data=plain, include_paths=folders)
    return run.sample(chains=1, warmup=60, samples=25, seed=4, refresh=0)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("gaussian", [False, True])
def test_pseudo_extended_programs_write_their_log_weights(name: str, gaussian: bool) -> None:
    model, base = SHAPES[name][0], base_of(name) if gaussian else None
    log_gamma, log_base, zeta = path(name, base)
    pi: LogG = ((0.05, 0.2), (0.6, -1.0), (1.0, 0.4))
    data = pseudo_extended_data(
        model, 3, base=base, log_zeta=ZETA, log_g=ABOVE, log_pi=pi, g_shape=(2.0, 1.5)
    )
    draws = written(model, "pseudo_extended", data)
    x, beta = np.asarray(draws["x"]), np.asarray(draws["inv_temp"])
    assert x.shape == (25, model.dimension, 3)
    assert np.all((beta >= 0.05) & (beta <= 1))
    for t in range(25):
        for n in range(3):
            one, zero = log_gamma(x[t, :, n]), log_base(x[t, :, n])
            assert draws["delta"][t, n] == pytest.approx(zero + zeta - one, rel=1e-10, abs=1e-9)
            b = beta[t, n]
            expected = one + log_shape(b, pi) - log_shape(b, ABOVE, (2.0, 1.5))
            expected -= b * (one - zeta) + (1 - b) * zero
            assert draws["log_weight"][t, n] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("ladder", [False, True])
def test_collapsed_programs_write_their_log_weights(name: str, ladder: bool) -> None:
    model, base = SHAPES[name][0], base_of(name)
    log_gamma, log_base, zeta = path(name, base)
    data = tempering_data(model, base, log_g=FULL)
    draws = written(model, "collapsed_tempering", data | {"ladder": int(ladder)})
    x, beta = np.asarray(draws["x"]), np.asarray(draws["inv_temp"])
    assert np.isin(beta, [knot for knot, _ in FULL]).all() == ladder
    for t in range(25):
        delta = log_base(x[t]) + zeta - log_gamma(x[t])
        assert draws["delta"][t] == pytest.approx(delta, rel=1e-10, abs=1e-9)
        mass = log_mass(delta, FULL, ladder)
        expected = [FULL[-1][1] - delta - mass, FULL[0][1] - mass]
        np.testing.assert_allclose(draws["log_weight"][t], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["banana", "flower"])
def test_programs_refuse_a_flat_base_themselves(name: str) -> None:
    model = SHAPES[name][0]
    data = path_data(model) | {"ladder": 0}
    with pytest.raises(Exception, match="needs a Gaussian base"):
        StanDensity(model.program("collapsed_tempering"), {**model.data, **data})


@pytest.mark.compiled
@pytest.mark.usefixtures("quiet_cmdstanpy")
@pytest.mark.parametrize("name", ["banana", "banana in 4 dimensions"])
def test_the_compiled_banana_in_the_plane_and_beyond(name: str, cmdstan_home: Path) -> None:
    """CmdStan checks ranges that stanli lets pass, such as of coordinates that are not there."""
    assert cmdstan_home.is_dir()
    model, log_gamma = SHAPES[name]
    base = gaussian_base(np.zeros(model.dimension), 4 * np.eye(model.dimension))
    data = {**model.data, **tempering_data(model, base), "ladder": 0}
    compiled = compiled_variant(model, "collapsed_tempering")
    cmdstan = cmdstanpy.CmdStanModel(exe_file=str(compiled.exe))
    for point in points_of(name, 3, seed=8):
        row = cmdstan.log_prob({"x": point.tolist()}, data=plain_data(data), sig_figs=17)
        # With g = 1 the integral of b^(1 - beta) gamma^beta over beta is (b - gamma) / Delta.
        log_base = float(base.log_density(point))
        delta = log_base - log_gamma(point)
        expected = log_base + np.log(-np.expm1(-delta) / delta)
        assert row.to_numpy()[0, 0] == pytest.approx(expected, rel=1e-9)
