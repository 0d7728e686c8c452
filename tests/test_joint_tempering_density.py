"""Both continuously tempered mixtures against NumPy, and equations 20 to 22 by quadrature."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from stan_density import StanDensity, into_box, log_box_jacobian, stanli

from harness.arrays import FloatArray
from harness.evidence import LogG
from harness.folders import shipped
from harness.forms.continuous_tempering import tempering_data
from harness.models.gaussian_mixture import GaussianMixture
from harness.path import GaussianBase, gaussian_base
from harness.path.data import UNIFORM

LOWER, UPPER = -9.0, 12.0
WEIGHT = np.array([0.2, 0.5, 0.3])
MEAN = np.array([[0.0, 1.0, -0.5], [2.5, -0.5, 1.0], [1.0, 3.0, 0.3]])
SD = np.array([0.4, 0.7, 0.25])
KNOTTED: LogG = ((0.0, 1.0), (0.2, -0.5), (0.7, 0.4), (1.0, 2.0))
SHAPES = {"uniform": UNIFORM, "knotted": KNOTTED}


def mixture_in(dimension: int) -> GaussianMixture:
    return GaussianMixture(WEIGHT, MEAN[:, :dimension], SD)


def base_in(dimension: int) -> GaussianBase:
    root = np.tril(np.array([[1.6, 0, 0], [0.7, 1.2, 0], [-0.4, 0.3, 0.9]]))[:dimension, :dimension]
    return gaussian_base(np.array([0.8, 1.1, -0.2])[:dimension], root @ root.T, log_zeta=1.3)


def log_gamma(mixture: GaussianMixture, x: FloatArray) -> FloatArray:
    """Log density at points (..., D), by SciPy."""
    coordinate = np.asarray(norm.logpdf(x[..., None, :], mixture.mean, mixture.sd[:, None]))
    component = coordinate.sum(axis=-1) + np.log(mixture.weight)
    return np.asarray(logsumexp(component, axis=-1), dtype=np.float64)


def log_base(base: GaussianBase | None, x: FloatArray, box: tuple[float, float]) -> FloatArray:
    """Log density of the base at points (..., D), by SciPy."""
    if base is None:
        return np.full(x.shape[:-1], -x.shape[-1] * np.log(box[1] - box[0]))
    value = multivariate_normal(base.mean, base.covariance).logpdf(x)
    return np.asarray(value, dtype=np.float64).reshape(x.shape[:-1])


def legendre(count: int, lower: float, upper: float) -> tuple[FloatArray, FloatArray]:
    nodes, share = np.polynomial.legendre.leggauss(count)
    half = (upper - lower) / 2
    return lower + half * (nodes + 1), half * share


def inv_temp_rule(log_g: LogG, count: int = 60) -> tuple[FloatArray, FloatArray]:
    """Nodes and log of weight times g on (0, 1), piece by piece."""
    knot = [beta for beta, _ in log_g]
    pieces = [legendre(count, a, b) for a, b in pairwise(knot)]
    beta, share = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return beta, np.log(share) + np.interp(beta, *np.array(log_g).T)


def reference(
    u: FloatArray,
    mixture: GaussianMixture,
    base: GaussianBase | None,
    log_zeta: float,
    log_g: LogG,
    inv_temp: float | None,
    *,
    collapsed: bool = False,
    box: tuple[float, float] = (LOWER, UPPER),
) -> float:
    """Equation 16 times g, or its integral over beta, with the Jacobians."""
    dimension = mixture.mean.shape[1]
    x = into_box(u[:dimension], *box)
    zeta = log_zeta if base is None else base.log_zeta
    one, zero = float(log_gamma(mixture, x)) - zeta, float(log_base(base, x, box))
    jacobian = log_box_jacobian(u[:dimension], *box)
    if collapsed:
        beta, log_share = inv_temp_rule(log_g)
        return float(logsumexp(beta * one + (1 - beta) * zero + log_share)) + jacobian
    if inv_temp is None:
        inv_temp = float(into_box(u[dimension], 0, 1))
        jacobian += log_box_jacobian(u[dimension:], 0, 1)
    g = float(np.interp(inv_temp, *np.array(log_g).T))
    return inv_temp * one + (1 - inv_temp) * zero + g + jacobian


def stan_density(
    mixture: GaussianMixture,
    base: GaussianBase | None,
    log_zeta: float,
    log_g: LogG,
    inv_temp: float | None,
    *,
    collapsed: bool = False,
    box: tuple[float, float] | None = None,
) -> StanDensity:
    model = mixture.model("mixture", lower=LOWER, upper=UPPER)
    data = {**model.data, **tempering_data(model, base, log_zeta, log_g)}
    if box is not None:
        data |= {"lower_bound": box[0], "upper_bound": box[1]}
    if collapsed:
        data |= {"ladder": 0}
        return StanDensity(model.program("collapsed_tempering"), data)
    fixed = np.empty(0) if inv_temp is None else np.array([inv_temp])
    data |= {"sample_inv_temp": int(inv_temp is None), "fixed_inv_temp": fixed}
    return StanDensity(model.program("joint_tempering"), data)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("setting", ["sampled", 0.0, 0.2, 0.35, 1.0, "collapsed"])
def test_density_and_gradient(
    shape: str, gaussian: bool, dimension: int, setting: str | float
) -> None:
    mixture, log_g = mixture_in(dimension), SHAPES[shape]
    base = base_in(dimension) if gaussian else None
    inv_temp = None if isinstance(setting, str) else setting
    collapsed = setting == "collapsed"
    density = stan_density(mixture, base, -0.7, log_g, inv_temp, collapsed=collapsed)
    assert density.dimension == dimension + (setting == "sampled")

    def expected(u: FloatArray) -> float:
        return reference(u, mixture, base, -0.7, log_g, inv_temp, collapsed=collapsed)

    for u in np.random.default_rng(dimension).normal(-0.2, 0.7, (8, density.dimension)):
        value, slope = density(u)
        assert value == pytest.approx(expected(u), rel=1e-10, abs=1e-10)
        step = 1e-5 * np.eye(len(u))
        numerical = [(expected(u + each) - expected(u - each)) / 2e-5 for each in step]
        # Rounding of the values, about 1e-13, over the step; curvature over the step squared.
        np.testing.assert_allclose(slope, numerical, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_joint_integrates_to_the_collapsed_density(
    shape: str, gaussian: bool, dimension: int
) -> None:
    """Stan's joint density, integrated over its own inverse temperature, point by point."""
    mixture, log_g = mixture_in(dimension), SHAPES[shape]
    base = base_in(dimension) if gaussian else None
    joint = stan_density(mixture, base, 0.9, log_g, None)
    collapsed = stan_density(mixture, base, 0.9, log_g, None, collapsed=True)
    beta, log_share = inv_temp_rule(log_g, 40)
    log_share = log_share - np.interp(beta, *np.array(log_g).T)
    logit = np.log(beta / (1 - beta))
    for u in np.random.default_rng(7).normal(-0.2, 0.7, (6, dimension)):
        values = [joint.value(np.append(u, v)) - log_box_jacobian(v, 0, 1) for v in logit]
        total = float(logsumexp(np.array(values) + log_share))
        assert collapsed.value(u) == pytest.approx(total, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("collapsed", [False, True])
def test_fixed_ends_are_base_and_target(collapsed: bool) -> None:
    """At beta = 1 the target over zeta, at beta = 0 the base; far out nothing overflows."""
    mixture, base = mixture_in(2), base_in(2)
    narrow = GaussianMixture(mixture.weight, mixture.mean, mixture.sd / 100)
    far = np.array([3.0, -3.0])
    density = stan_density(narrow, base, 0, KNOTTED, None, collapsed=collapsed)
    u = far if collapsed else np.append(far, 4.0)
    value, slope = density(u)
    expected = (
        reference(u, narrow, base, 0, KNOTTED, None, collapsed=False)
        if not collapsed
        # The base, and the first piece of g: Delta is about 1e6.
        else (
            float(log_base(base, into_box(u, LOWER, UPPER), (LOWER, UPPER)))
            + log_box_jacobian(u, LOWER, UPPER)
            + 1.0
            - np.log(
                float(log_base(base, into_box(u, LOWER, UPPER), (LOWER, UPPER)))
                + base.log_zeta
                - float(log_gamma(narrow, into_box(u, LOWER, UPPER)))
                + 1.5 / 0.2
            )
        )
    )
    assert value == pytest.approx(expected, rel=1e-10)
    assert np.all(np.isfinite(slope))
    model = mixture.model("mixture", lower=LOWER, upper=UPPER)
    target = StanDensity(model.program("target"), model.data)
    at_one = stan_density(mixture, base, 0, UNIFORM, 1.0)
    for point in np.random.default_rng(3).normal(size=(5, 2)):
        assert at_one.value(point) == pytest.approx(target.value(point) - base.log_zeta, rel=1e-12)


# A box that cuts the tails off, so that neither the target nor the Gaussian base has mass one.
BOX = (-2.0, 3.0)
LINE = GaussianMixture(np.array([0.3, 0.7]), np.array([[-0.8], [1.6]]), np.array([0.45, 0.8]))
FUNCTIONS: list[Callable[[FloatArray], FloatArray]] = [np.ones_like, lambda v: v, np.square, np.exp]


def stan_log_weights(delta: FloatArray, log_g: LogG) -> FloatArray:
    weight = stanli.Function(
        "continuous_tempering_log_weight",
        stan_code="functions {\n#include tempering.stanfunctions\n}\n",
        include_paths=[str(shipped("stan"))],
    )
    knot, value = np.array(log_g).T
    return np.array([weight(delta=each, knot=knot, log_g=value, ladder=0) for each in delta])


@pytest.mark.parametrize("log_zeta", [-2.0, 0.0, 3.0])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("box", [BOX, (LOWER, UPPER)])
def test_evidence_and_expectations_by_quadrature(
    log_zeta: float, shape: str, gaussian: bool, box: tuple[float, float]
) -> None:
    """Equations 20 to 22 under the density that Stan evaluates, with a wrong log zeta."""
    log_g = SHAPES[shape]
    base = gaussian_base([0.7], [[1.8]], log_zeta=log_zeta) if gaussian else None
    density = stan_density(LINE, base, log_zeta, log_g, None, collapsed=True, box=box)
    t, share = legendre(400, 0, 1)
    u = np.log(t / (1 - t))
    x = into_box(u, *box)
    jacobian = np.array([log_box_jacobian(v, *box) for v in u])
    log_mass = np.array([density.value([v]) for v in u]) - jacobian + np.log(share)
    one, zero = log_gamma(LINE, x[:, None]), log_base(base, x[:, None], box)
    log_weight = stan_log_weights(zero + log_zeta - one, log_g)

    target, below = np.exp(one) * share, np.exp(zero) * share
    width = box[1] - box[0]
    log_z = float(logsumexp(log_mass + log_weight[:, 0]) - logsumexp(log_mass + log_weight[:, 1]))
    log_z += log_zeta - (log_g[-1][1] - log_g[0][1])
    # In the box the ratio is that of the masses, target over base.
    assert log_z == pytest.approx(float(np.log(target.sum() / below.sum())), abs=1e-6)
    if box == (LOWER, UPPER):
        assert log_z == pytest.approx(0, abs=1e-6)
    else:
        assert target.sum() * width < 0.99
    for exact, log_w in ((target, log_weight[:, 0]), (below, log_weight[:, 1])):
        weight = np.exp(log_mass + log_w - (log_mass + log_w).max())
        for f in FUNCTIONS:
            expected = exact @ f(x) / exact.sum()
            assert weight @ f(x) / weight.sum() == pytest.approx(expected, rel=1e-6)
