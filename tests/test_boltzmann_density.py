"""Every Stan program of the Boltzmann machine relaxation against NumPy and against integrals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from form_data import pseudo_extended_data
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import beta as beta_distribution
from scipy.stats import multivariate_normal, norm
from stan_density import StanDensity, into_box, log_box_jacobian, stanli

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogG
from harness.folders import shipped
from harness.forms.continuous_tempering import tempering_data
from harness.forms.pseudo_extended import PseudoExtended
from harness.model import Model
from harness.models.boltzmann import BoltzmannMachine, generate, relax
from harness.models.boltzmann_mean_field import mean_field_base
from harness.path import GaussianBase, gaussian_base
from harness.path.data import UNIFORM, path_data

MACHINE = generate(7, np.random.default_rng(2))
RELAXATION = relax(
    BoltzmannMachine(MACHINE.weights, np.array([0.9, -0.4, 0.1, 0.0, -1.2, 0.5, 0.3]))
)
MODEL = RELAXATION.model("boltzmann-7")
D = MODEL.dimension
Q, BIASES = RELAXATION.q, RELAXATION.machine.biases
BASE = mean_field_base(RELAXATION, np.random.default_rng(0), starts=20)

KNOTTED: LogG = ((0.0, 1.0), (0.2, -0.5), (0.7, 0.4), (1.0, 2.0))
LATE: LogG = ((0.1, 0.3), (0.6, -1.0), (1.0, 0.5))
LADDER: LogG = ((0.0, 0.2), (0.3, -0.4), (0.6, 1.1), (1.0, 0.7))
LATE_LADDER: LogG = ((0.15, 0.2), (0.6, -1.1), (1.0, 0.7))


def log_gamma(x: FloatArray) -> FloatArray:
    """-phi(x) of Graham and Storkey (2017), eq. 51, at points (..., D)."""
    y = x @ Q.T + BIASES
    log_cosh = np.logaddexp(y, -y) - np.log(2)
    return np.asarray(log_cosh.sum(axis=-1) - np.square(x).sum(axis=-1) / 2)


def log_base(x: FloatArray, base: GaussianBase | None) -> FloatArray:
    if base is None:
        return np.zeros(x.shape[:-1])
    return np.asarray(multivariate_normal(base.mean, base.covariance).logpdf(x)).reshape(
        x.shape[:-1]
    )


def log_density_of(beta: FloatArray, knots: LogG, shape: tuple[float, float]) -> FloatArray:
    """Piecewise-linear log density times beta^(a - 1) (1 - beta)^(b - 1)."""
    a, b = shape
    constant = beta_distribution.logpdf(0.5, a, b) + (a + b - 2) * np.log(2)
    part = beta_distribution.logpdf(beta, a, b) - constant if shape != (1, 1) else 0.0
    return np.asarray(np.interp(beta, *np.array(knots).T) + part)


def product_form(target: FloatArray, instrumental: FloatArray) -> float:
    """Equation 8 of Nemeth et al. (2019), a mean of products."""
    products = target + instrumental.sum() - instrumental
    return float(logsumexp(products)) - float(np.log(len(target)))


def assert_density(
    density: StanDensity, expected: Callable[[FloatArray], float], seed: int, points: int = 8
) -> None:
    """Values and gradients at random points, by central differences of the reference."""
    for u in np.random.default_rng(seed).normal(0.2, 1.2, (points, density.dimension)):
        value, slope = density(u)
        assert value == pytest.approx(expected(u), rel=1e-10, abs=1e-10)
        step = 1e-5 * np.eye(len(u))
        numerical = [(expected(u + each) - expected(u - each)) / 2e-5 for each in step]
        # Rounding of the values, about 1e-13, over the step; curvature over the step squared.
        np.testing.assert_allclose(slope, numerical, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("num_units", [2, 7, 28])
def test_target(num_units: int) -> None:
    machine = generate(num_units, np.random.default_rng(num_units))
    relaxation = relax(machine)
    model = relaxation.model("boltzmann")
    density = StanDensity(model.program("target"), model.data)
    assert density.dimension == model.dimension == relaxation.q.shape[1]
    rng = np.random.default_rng(0)
    # Beyond 1e4 cosh overflows, and so does exp(-2 y) where y is negative.
    for scale in (0.1, 1.0, 10.0, 1e4):
        for x in rng.normal(0, scale, (6, model.dimension)):
            value, slope = density(x)
            y = relaxation.q @ x + machine.biases
            expected = float(np.sum(np.logaddexp(y, -y) - np.log(2))) - float(x @ x) / 2
            assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)
            exact = relaxation.q.T @ np.tanh(y) - x
            np.testing.assert_allclose(slope, exact, rtol=1e-11, atol=1e-11 * scale)


@pytest.mark.parametrize("y", [0.0, 1e-9, 0.3, 20.0, 400.0, 1e4])
def test_log_cosh_for_either_sign(y: float) -> None:
    """One unit, x = 0: the density is log cosh of its bias; two columns give the same."""
    code = "functions {\n#include boltzmann/density.stanfunctions\n}\n"
    coefficients, single, several = (
        stanli.Function(f"boltzmann_{name}", stan_code=code, include_paths=[str(shipped("stan"))])
        for name in ("coefficients", "lpdf", "log_density")
    )
    expected = float(np.logaddexp(y, -y) - np.log(2))
    for sign in (-1, 1):
        biased = coefficients(Q=[[1.0]], b=[sign * y])
        assert single(x=[0.0], coefficients=biased) == pytest.approx(expected, rel=1e-14, abs=3e-16)
        both = several(x=[[0.0, sign * y]], coefficients=coefficients(Q=[[1.0]], b=[0.0]))
        assert both[0] == 0
        assert both[1] == pytest.approx(expected - y**2 / 2, rel=1e-14, abs=3e-16)


PSEUDO_EXTENDED: dict[str, dict[str, Any]] = {
    "pure, bounded below": {"log_g": LATE, "log_pi": ((0.1, 0.0), (1.0, 1.0))},
    "pure, g vanishes": {"g_shape": (D / 2 + 0.1, 1.3), "log_zeta": 1.7},
    "base": {"base": BASE},
    "base, knotted g, Beta pi": {"base": BASE, "log_g": KNOTTED, "pi_shape": (3.0, 1.5)},
    "everything": {
        "base": BASE,
        "log_g": LATE,
        "g_shape": (2.0, 1.3),
        "g_correlation": 0.3,
        "log_pi": LATE,
        "pi_shape": (1.2, 1.1),
    },
}


def pseudo_extended_reference(
    u: FloatArray, num: int, inv_temp: Any, given: dict[str, Any]
) -> float:
    """Log density on the unconstrained space: x by pseudo-sample, then inverse temperatures."""
    base, log_g = given.get("base"), given.get("log_g", UNIFORM)
    zeta = given.get("log_zeta", 0.0) if base is None else base.log_zeta
    x, start, total = u[: D * num].reshape(num, D), log_g[0][0], 0.0
    if inv_temp is None:
        end = given.get("highest_inv_temp", 1)
        beta = into_box(u[D * num :], start, end)
        total += log_box_jacobian(u[D * num :], start, end)
        correlation = given.get("g_correlation", 0.0)
        if correlation:
            z = norm.ppf((beta - start) / (1 - start))
            covariance = np.full((num, num), correlation) + (1 - correlation) * np.eye(num)
            total += float(multivariate_normal(np.zeros(num), covariance).logpdf(z))
            total -= float(np.sum(norm.logpdf(z)))
    else:
        beta = np.broadcast_to(np.asarray(inv_temp, dtype=np.float64), num)
    log_pi = given.get("log_pi", ((start, 0.0), (1.0, 0.0)))
    target = log_gamma(x) + log_density_of(beta, log_pi, given.get("pi_shape", (1, 1)))
    path = beta * (log_gamma(x) - zeta) + (1 - beta) * log_base(x, base)
    q = path + log_density_of(beta, log_g, given.get("g_shape", (1, 1)))
    return total + product_form(target, q)


@pytest.mark.parametrize("name", PSEUDO_EXTENDED)
@pytest.mark.parametrize(
    ("num", "inv_temp"), [(1, None), (2, None), (3, None), (2, 0.4), (3, (0.2, 0.6, 0.9))]
)
def test_pseudo_extended(name: str, num: int, inv_temp: Any) -> None:
    given = dict(PSEUDO_EXTENDED[name])
    if inv_temp is not None:
        given.pop("g_correlation", None)
    data = {**MODEL.data, **pseudo_extended_data(MODEL, num, inv_temp, **given)}
    density = StanDensity(MODEL.program("pseudo_extended"), data)
    assert density.dimension == D * num + (num if inv_temp is None else 0)
    assert_density(
        density, lambda u: pseudo_extended_reference(u, num, inv_temp, given), seed=num, points=4
    )


BELOW_ONE: dict[str, dict[str, Any]] = {
    "pure": {"log_g": LATE, "highest_inv_temp": 0.9},
    "base, knotted g, Beta pi": {
        "base": BASE, "log_g": KNOTTED, "pi_shape": (3.0, 1.5), "highest_inv_temp": 0.65,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", BELOW_ONE)
@pytest.mark.parametrize("num", [1, 3])
def test_pseudo_extended_below_one(name: str, num: int) -> None:
    given = BELOW_ONE[name]
    given = given | {"log_pi": LATE} if name == "pure" else given
    data = {**MODEL.data, **pseudo_extended_data(MODEL, num, **given)}
    density = StanDensity(MODEL.program("pseudo_extended_below_one"), data)
    assert_density(
        density, lambda u: pseudo_extended_reference(u, num, None, given), seed=num, points=4
    )


def test_which_inverse_temperatures_may_end_below_one() -> None:
    assert PseudoExtended().program == "pseudo_extended"
    assert PseudoExtended(highest_inv_temp=0.9).program == "pseudo_extended_below_one"
    assert "highest_inv_temp" not in pseudo_extended_data(MODEL, 2, base=BASE)
    for wrong, message in (
        ({"log_g": LATE, "highest_inv_temp": 0.1}, "start at 0.1"),
        ({"log_g": LATE, "highest_inv_temp": 1.1}, "up to 1"),
        ({"inv_temp": 0.5, "highest_inv_temp": 0.9}, "without a correlation"),
        ({"log_g": LATE, "g_correlation": 0.2, "highest_inv_temp": 0.9}, "without a correlation"),
    ):
        with pytest.raises(DataError, match=message):
            pseudo_extended_data(MODEL, 2, **wrong)
    refused(
        MODEL,
        "pseudo_extended_below_one",
        pseudo_extended_data(unaware(MODEL), 2, highest_inv_temp=0.9),
    )


@pytest.mark.parametrize("base", [None, BASE], ids=["pure", "base"])
def test_one_pseudo_sample_is_the_target(base: GaussianBase | None) -> None:
    target = StanDensity(MODEL.program("target"), MODEL.data)
    data = {**MODEL.data, **pseudo_extended_data(MODEL, 1, base=base)}
    extended = StanDensity(MODEL.program("pseudo_extended"), data)
    collapsed_data = {**MODEL.data, **path_data(MODEL, base), "N": 1, "ladder": 0}
    collapsed = StanDensity(MODEL.program("collapsed_pseudo_extended"), collapsed_data)
    for u in np.random.default_rng(4).normal(size=(10, D + 1)):
        value, slope = target(u[:D])
        both = extended(u)
        assert both[0] == pytest.approx(value + log_box_jacobian(u[D:], 0, 1), rel=1e-11)
        np.testing.assert_allclose(both[1][:D], slope, rtol=1e-9, atol=1e-9)
        alone = collapsed(u[:D])
        assert alone[0] == pytest.approx(value, rel=1e-11, abs=1e-11)
        np.testing.assert_allclose(alone[1], slope, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("log_g", [UNIFORM, KNOTTED], ids=["uniform", "knotted"])
@pytest.mark.parametrize("inv_temp", [None, 0.0, 0.35, 1.0])
def test_joint_tempering(log_g: LogG, inv_temp: float | None) -> None:
    fixed = np.empty(0) if inv_temp is None else np.array([inv_temp])
    data = {**MODEL.data, **tempering_data(MODEL, BASE, log_g=log_g)}
    data |= {"sample_inv_temp": int(inv_temp is None), "fixed_inv_temp": fixed}
    density = StanDensity(MODEL.program("joint_tempering"), data)
    assert density.dimension == D + (inv_temp is None)

    def expected(u: FloatArray) -> float:
        beta = into_box(u[D:], 0, 1) if inv_temp is None else fixed
        jacobian = log_box_jacobian(u[D:], 0, 1)
        path = beta[0] * (float(log_gamma(u[:D])) - BASE.log_zeta)
        path += (1 - beta[0]) * float(log_base(u[:D], BASE))
        return float(path + log_density_of(beta, log_g, (1, 1))[0]) + jacobian

    assert_density(density, expected, seed=3)


def log_integral(delta: float, log_g: LogG, ladder: bool) -> float:
    """Log of the integral of g(beta) exp(-beta Delta) over the knots, by adaptive quadrature."""
    knot, value = np.array(log_g).T
    if ladder:
        return float(logsumexp(value - knot * delta))
    shift = float(np.max(value - knot * delta))

    def integrand(beta: float) -> float:
        return float(np.exp(np.interp(beta, knot, value) - beta * delta - shift))

    total = sum(
        quad(integrand, start, end, epsabs=0, epsrel=1e-12, limit=200)[0]
        for start, end in pairwise(knot)
    )
    return shift + float(np.log(total))


def log_collapsed(x: FloatArray, base: GaussianBase | None, log_g: LogG, ladder: bool) -> float:
    """Log density of x, its inverse temperature integrated out numerically."""
    below = float(log_base(x, base))
    zeta = 0.0 if base is None else base.log_zeta
    return below + log_integral(below + zeta - float(log_gamma(x)), log_g, ladder)


@pytest.mark.parametrize(("log_g", "ladder"), [(UNIFORM, False), (KNOTTED, False), (LADDER, True)])
def test_collapsed_tempering(log_g: LogG, ladder: bool) -> None:
    data = {**MODEL.data, **tempering_data(MODEL, BASE, log_g=log_g), "ladder": int(ladder)}
    density = StanDensity(MODEL.program("collapsed_tempering"), data)
    assert density.dimension == D
    assert_density(density, lambda u: log_collapsed(u, BASE, log_g, ladder), seed=5, points=5)


@pytest.mark.parametrize("num", [1, 2, 3])
@pytest.mark.parametrize(
    ("base", "log_g", "ladder"),
    [
        (None, LATE, False),
        (None, LATE_LADDER, True),
        (BASE, UNIFORM, False),
        (BASE, KNOTTED, False),
        (BASE, LADDER, True),
    ],
)
def test_collapsed_pseudo_extended(
    num: int, base: GaussianBase | None, log_g: LogG, ladder: bool
) -> None:
    data = {**MODEL.data, **path_data(MODEL, base, log_g=log_g), "N": num, "ladder": int(ladder)}
    density = StanDensity(MODEL.program("collapsed_pseudo_extended"), data)
    assert density.dimension == D * num

    def expected(u: FloatArray) -> float:
        x = u.reshape(num, D)
        q = np.array([log_collapsed(each, base, log_g, ladder) for each in x])
        return product_form(log_gamma(x), q)

    assert_density(density, expected, seed=num, points=2)


def test_evidence_by_quadrature() -> None:
    """In one dimension: log Z of the exact sum from equation 20 under Stan's collapsed density."""
    machine = BoltzmannMachine(np.array([[0.0, 1.3], [1.3, 0.0]]), np.array([0.7, -0.2]))
    relaxation = relax(machine)
    assert relaxation.q.shape == (2, 1)
    model = relaxation.model("one dimension")
    base = gaussian_base([0.4], [[5.0]], log_zeta=-0.8)
    data = {**model.data, **tempering_data(model, base, log_g=KNOTTED), "ladder": 0}
    density = StanDensity(model.program("collapsed_tempering"), data)
    target = StanDensity(model.program("target"), model.data)
    weight = stanli.Function(
        "continuous_tempering_log_weight",
        stan_code="functions {\n#include tempering.stanfunctions\n}\n",
        include_paths=[str(shipped("stan"))],
    )
    knot, log_g = np.array(KNOTTED).T
    grid = np.linspace(-20, 20, 1201)
    log_mass = np.array([density.value([x]) for x in grid])
    below = np.asarray(norm.logpdf(grid, 0.4, np.sqrt(5)))
    delta = below + base.log_zeta - np.array([target.value([x]) for x in grid])
    log_weight = np.array([weight(delta=each, knot=knot, log_g=log_g, ladder=0) for each in delta])
    log_z = float(logsumexp(log_mass + log_weight[:, 0]) - logsumexp(log_mass + log_weight[:, 1]))
    log_z += base.log_zeta - (log_g[-1] - log_g[0])
    truth = relaxation.exact()
    assert log_z == pytest.approx(truth.log_z, abs=1e-8)
    w1 = np.exp(log_mass + log_weight[:, 0] - log_mass.max())
    assert w1 @ grid / w1.sum() == pytest.approx(truth.expected_x[0], abs=1e-8)
    assert w1 @ grid**2 / w1.sum() == pytest.approx(truth.expected_xx[0, 0], abs=1e-8)


def refused(model: Model, variant: str, data: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="infinite"):
        StanDensity(model.program(variant), {**model.data, **data})


def unaware(model: Model) -> Model:
    """Return the model as one of which Python does not know that x is not bounded."""
    return replace(model, own_base="flat")


def test_pure_tempering_with_infinite_mass_is_refused() -> None:
    """In Python before anything compiles, and by the programs themselves."""
    settings: tuple[tuple[Any, dict[str, Any]], ...] = (
        (None, {}),
        (None, {"g_shape": (D / 2, 1.0)}),
        (0.0, {}),
        ((0.0, 0.5), {}),
    )
    for inv_temp, given in settings:
        with pytest.raises(DataError, match="infinite mass"):
            pseudo_extended_data(MODEL, 2, inv_temp, **given)
        data = pseudo_extended_data(unaware(MODEL), 2, inv_temp, **given)
        refused(MODEL, "pseudo_extended", data)
    with pytest.raises(DataError, match="infinite mass"):
        tempering_data(MODEL)
    for log_g, ladder in ((UNIFORM, 0), (LADDER, 1)):
        data = {**path_data(MODEL, log_g=log_g), "N": 2, "ladder": ladder}
        refused(MODEL, "collapsed_pseudo_extended", data)
    refused(
        MODEL,
        "joint_tempering",
        {**tempering_data(unaware(MODEL)), "sample_inv_temp": 1, "fixed_inv_temp": np.empty(0)},
    )
    refused(MODEL, "collapsed_tempering", {**tempering_data(unaware(MODEL)), "ladder": 0})


def test_pure_tempering_in_one_dimension_has_finite_mass() -> None:
    """The mass near 0 grows like beta^(-1/2), which a uniform g can integrate; a point cannot."""
    model = relax(generate(2, np.random.default_rng(1))).model("one dimension")
    data = pseudo_extended_data(model, 2)
    assert StanDensity(model.program("pseudo_extended"), {**model.data, **data}).dimension == 4
    data = {**path_data(model), "N": 2, "ladder": 0}
    program = model.program("collapsed_pseudo_extended")
    assert StanDensity(program, {**model.data, **data}).dimension == 2
    refused(model, "collapsed_pseudo_extended", data | {"ladder": 1})
    refused(model, "pseudo_extended", pseudo_extended_data(unaware(model), 2, 0.0))


VARIANTS: dict[str, dict[str, Any]] = {
    "pseudo_extended": pseudo_extended_data(MODEL, 3, **PSEUDO_EXTENDED["everything"]),
    "pseudo_extended_below_one": pseudo_extended_data(
        MODEL, 3, **BELOW_ONE["base, knotted g, Beta pi"]
    ),
    "collapsed_pseudo_extended": {
        **path_data(MODEL, BASE, log_g=KNOTTED),
        **{"N": 3, "ladder": 0},
    },
    "joint_tempering": {
        **tempering_data(MODEL, BASE, log_g=KNOTTED),
        **{"sample_inv_temp": 1, "fixed_inv_temp": np.empty(0)},
    },
    "collapsed_tempering": {**tempering_data(MODEL, BASE, log_g=KNOTTED), "ladder": 0},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_generated_quantities(variant: str) -> None:
    """Delta and log weights of a few draws of NUTS, from the x and beta that came with them."""
    program = MODEL.program(variant)
    plain = {k: np.asarray(v).tolist() for k, v in {**MODEL.data, **VARIANTS[variant]}.items()}
    model = stanli.Model(
        str(program.path), data=plain, include_paths=[str(path) for path in program.include_paths]
    )
    fit = model.sample(chains=1, warmup=30, samples=25, seed=3, refresh=0)
    draw = {
        name: np.asarray(fit[name], dtype=np.float64)
        for name in ("x", "inv_temp", "delta", "log_weight")
    }
    many = "pseudo" in variant
    x = draw["x"].swapaxes(1, 2) if many else draw["x"]
    one, zero = log_gamma(x), log_base(x, BASE)
    delta = zero + BASE.log_zeta - one
    np.testing.assert_allclose(draw["delta"], delta, rtol=1e-9, atol=1e-9)
    beta = draw["inv_temp"]
    assert np.all((beta > 0) & (beta < 1))
    assert np.ptp(beta) > 0.1
    if variant.startswith("pseudo_extended"):
        ends = variant != "pseudo_extended"
        assert not ends or beta.max() < 0.65
        settings = BELOW_ONE["base, knotted g, Beta pi"] if ends else PSEUDO_EXTENDED["everything"]
        log_g, g_shape = settings["log_g"], settings.get("g_shape", (1, 1))
        log_q = beta * (one - BASE.log_zeta) + (1 - beta) * zero
        log_q = log_q + log_density_of(beta, log_g, g_shape)
        log_pi = settings.get("log_pi", UNIFORM)
        expected = one + log_density_of(beta, log_pi, settings["pi_shape"]) - log_q
    else:
        mass = np.vectorize(lambda each: log_integral(each, KNOTTED, ladder=False))(delta)
        expected = one - zero - mass
        if not many:
            log_g = np.array(KNOTTED)[:, 1]
            expected = np.stack([log_g[-1] - delta - mass, log_g[0] - mass], axis=-1)
    np.testing.assert_allclose(draw["log_weight"], expected, rtol=1e-8, atol=1e-8)
