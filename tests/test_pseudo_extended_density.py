"""The pseudo-extended Stan program against equation 8 in its product form, and Theorem 2.1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from form_data import pseudo_extended_data
from scipy.special import logsumexp
from scipy.stats import norm
from stan_density import StanDensity, into_box, log_box_jacobian

from harness.arrays import FloatArray
from harness.evidence import normalised_weights
from harness.models.gaussian_mixture import GaussianMixture

LOWER, UPPER = -9.0, 12.0
MIXTURE = GaussianMixture(
    np.array([0.2, 0.5, 0.3]),
    np.array([[0.0, 1.0], [2.5, -0.5], [1.0, 3.0]]),
    np.array([0.4, 0.7, 0.25]),
)

LADDERS: dict[int, list[float | tuple[float, ...] | None]] = {
    1: [None, 0.0, 0.3, 1.0],
    2: [None, 0.0, 0.3, 1.0, (0.0, 1.0), (1.0, 0.25)],
    3: [None, 0.6, (0.0, 0.5, 1.0)],
    5: [None, 0.1, (0.0, 0.25, 0.5, 0.75, 1.0)],
}
CASES = [(n, inv_temp) for n, settings in LADDERS.items() for inv_temp in settings]


def log_gamma(mixture: GaussianMixture, x: FloatArray) -> FloatArray:
    """Log density at points (..., D), by SciPy."""
    coordinate = norm.logpdf(x[..., None, :], mixture.mean, mixture.sd[:, None])
    component = np.sum(np.asarray(coordinate), axis=-1) + np.log(mixture.weight)
    return np.asarray(logsumexp(component, axis=-1), dtype=np.float64)


def product_form(log_g: FloatArray, inv_temp: FloatArray) -> float:
    """Equation 8, first line, without constants: (1/N) sum_i gamma_i prod_{j != i} gamma_j^b_j."""
    terms = []
    for i in range(len(log_g)):
        others = [inv_temp[j] * log_g[j] for j in range(len(log_g)) if j != i]
        terms.append(log_g[i] + sum(others))
    return float(logsumexp(terms)) - float(np.log(len(log_g)))


def reference(
    mixture: GaussianMixture,
    u: FloatArray,
    num: int,
    inv_temp: float | Sequence[float] | None,
    box: tuple[float, float] = (LOWER, UPPER),
) -> float:
    """Log density on the unconstrained space: x by pseudo-sample, then inverse temperatures."""
    dimension = mixture.mean.shape[1]
    u_x = u[: dimension * num]
    x = into_box(u_x, *box).reshape(num, dimension)
    if inv_temp is None:
        beta = into_box(u[dimension * num :], 0, 1)
        jacobian = log_box_jacobian(u[dimension * num :], 0, 1)
    else:
        beta = np.broadcast_to(np.asarray(inv_temp, dtype=np.float64), num)
        jacobian = 0.0
    total = product_form(log_gamma(mixture, x), beta)
    return total + log_box_jacobian(u_x, *box) + jacobian


def stan_density(
    mixture: GaussianMixture,
    num: int,
    inv_temp: float | Sequence[float] | None,
    box: tuple[float, float] | None = None,
) -> StanDensity:
    model = mixture.model("mixture", lower=LOWER, upper=UPPER)
    data = {**model.data, **pseudo_extended_data(model, num, inv_temp)}
    if box is not None:
        data |= {"lower_bound": box[0], "upper_bound": box[1]}
    return StanDensity(model.program("pseudo_extended"), data)


@pytest.mark.parametrize(("num", "inv_temp"), CASES)
def test_density_and_gradient_match_the_product_form(
    num: int, inv_temp: float | Sequence[float] | None
) -> None:
    density = stan_density(MIXTURE, num, inv_temp)
    assert density.dimension == 2 * num + (num if inv_temp is None else 0)
    rng = np.random.default_rng(num)
    for u in rng.normal(-0.2, 0.8, (15, density.dimension)):
        value, slope = density(u)
        assert value == pytest.approx(reference(MIXTURE, u, num, inv_temp), rel=1e-10, abs=1e-10)
        step = 1e-5
        numerical = np.empty_like(u)
        for i in range(len(u)):
            shift = step * np.eye(len(u))[i]
            above = reference(MIXTURE, u + shift, num, inv_temp)
            below = reference(MIXTURE, u - shift, num, inv_temp)
            numerical[i] = (above - below) / (2 * step)
        # Rounding of the values, about 1e-13, over the step; curvature over the step squared.
        np.testing.assert_allclose(slope, numerical, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("num", [2, 5])
def test_density_is_finite_where_every_tempered_density_underflows(num: int) -> None:
    narrow = GaussianMixture(MIXTURE.weight, MIXTURE.mean, MIXTURE.sd / 100)
    density = stan_density(narrow, num, None)
    u = np.concatenate([np.full(2 * num, 3.0), np.linspace(-4, 4, num)])
    value, slope = density(u)
    assert value == pytest.approx(reference(narrow, u, num, None), rel=1e-10)
    assert value < -1e6
    assert np.all(np.isfinite(slope))


@pytest.mark.parametrize("inv_temp", [0.0, 0.37, 1.0, None])
def test_one_pseudo_sample_is_the_target(inv_temp: float | None) -> None:
    model = MIXTURE.model("mixture", lower=LOWER, upper=UPPER)
    target = StanDensity(model.program("target"), model.data)
    extended = stan_density(MIXTURE, 1, inv_temp)
    for u in np.random.default_rng(4).normal(size=(20, extended.dimension)):
        value, slope = extended(u)
        expected, expected_slope = target(u[:2])
        # The inverse temperature is uniform on (0, 1), whatever x.
        expected += log_box_jacobian(u[2:], 0, 1)
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-12)
        np.testing.assert_allclose(slope[:2], expected_slope, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(slope[2:], 1 - 2 * into_box(u[2:], 0, 1), atol=1e-10)


@pytest.mark.parametrize("num", [2, 3])
def test_at_inverse_temperature_one_targets_are_independent(num: int) -> None:
    model = MIXTURE.model("mixture", lower=LOWER, upper=UPPER)
    target = StanDensity(model.program("target"), model.data)
    extended = stan_density(MIXTURE, num, 1.0)
    for u in np.random.default_rng(5).normal(size=(20, 2 * num)):
        expected = sum(target.value(each) for each in u.reshape(num, 2))
        assert extended.value(u) == pytest.approx(expected, rel=1e-12, abs=1e-11)


# Quadrature in a box that cuts the tails off, so that Z is not one.
BOX = (-2.0, 3.0)
LINE = GaussianMixture(np.array([0.3, 0.7]), np.array([[-0.8], [1.6]]), np.array([0.45, 0.8]))


def legendre(count: int, lower: float, upper: float) -> tuple[FloatArray, FloatArray]:
    nodes, share = np.polynomial.legendre.leggauss(count)
    half = (upper - lower) / 2
    return lower + half * (nodes + 1), half * share


def logit_rule(count: int) -> tuple[FloatArray, FloatArray]:
    """Rule for integrals over the whole real line of u: Gauss-Legendre in t = 1/(1 + exp(-u))."""
    t, share = legendre(count, 0, 1)
    return np.log(t / (1 - t)), share / (t * (1 - t))


@pytest.mark.parametrize("inv_temp", [0.0, 0.2, 0.6, 1.0, (0.1, 0.7), (1.0, 0.0)])
def test_fixed_inverse_temperatures_by_quadrature(inv_temp: float | tuple[float, float]) -> None:
    """Total mass Z C, marginals (pi + q) / 2 and Theorem 2.1 for N = 2 in one dimension."""
    u, share = logit_rule(80)
    x = into_box(u, *BOX)
    density = stan_density(LINE, 2, inv_temp, BOX)
    log_extended = np.array([[density.value([a, b]) for b in u] for a in u])
    # Mass of each pair of nodes.
    extended: FloatArray = np.exp(log_extended) * np.outer(share, share)

    fine, fine_share = legendre(400, *BOX)
    log_fine = log_gamma(LINE, fine[:, None])
    beta = np.broadcast_to(np.asarray(inv_temp, dtype=np.float64), 2)
    z = fine_share @ np.exp(log_fine)
    c = np.array([fine_share @ np.exp(b * log_fine) for b in beta])
    assert z < 0.99
    # With two different inverse temperatures each pseudo-sample has a constant of its own.
    mass = z * (c[0] + c[1]) / 2
    assert extended.sum() == pytest.approx(mass, rel=1e-9)

    log_g = log_gamma(LINE, x[:, None])
    dx = share * (BOX[1] - BOX[0]) * np.exp(-np.abs(u)) / (1 + np.exp(-np.abs(u))) ** 2
    for i, j in ((0, 1), (1, 0)):
        expected = np.exp(log_g) * c[j] + np.exp(beta[i] * log_g) * z
        np.testing.assert_allclose(extended.sum(axis=j), dx * expected / 2, rtol=1e-9)

    # The weights undo unequal constants too: the theorem holds along a ladder.
    log_weight = np.stack(np.broadcast_arrays(*np.ix_(log_g, log_g)), axis=-1) * (1 - beta)
    weight = normalised_weights(log_weight)
    for f in (np.ones_like, lambda v: v, np.square, np.exp):
        h = weight[..., 0] * f(x)[:, None] + weight[..., 1] * f(x)[None, :]
        under_target = fine_share @ (f(fine) * np.exp(log_fine)) / z
        assert (extended * h).sum() / extended.sum() == pytest.approx(under_target, rel=1e-9)


def test_sampled_inverse_temperatures_by_quadrature() -> None:
    """The same with both inverse temperatures integrated over (0, 1): four dimensions."""
    # Wide modes: tempered densities are smooth in x and beta, so few nodes are exact.
    mixture = GaussianMixture(np.array([0.35, 0.65]), np.array([[-0.5], [1.5]]), np.array([0.7, 1]))
    u, share = logit_rule(24)
    v, v_share = logit_rule(7)
    x, beta = into_box(u, *BOX), into_box(v, 0, 1)
    density = stan_density(mixture, 2, None, BOX)
    extended = np.array(
        [[[[density.value([a, b, s, t]) for t in v] for s in v] for b in u] for a in u]
    )
    extended = np.exp(extended) * np.einsum("a,b,s,t->abst", share, share, v_share, v_share)

    fine, fine_share = legendre(300, *BOX)
    fine_beta, fine_beta_share = legendre(60, 0, 1)
    log_fine = log_gamma(mixture, fine[:, None])
    z = fine_share @ np.exp(log_fine)
    c_of_beta = np.exp(np.outer(fine_beta, log_fine)) @ fine_share
    c = fine_beta_share @ c_of_beta
    assert extended.sum() == pytest.approx(z * c, rel=1e-7)

    log_g = log_gamma(mixture, x[:, None])
    tempered = np.exp(np.outer(log_g, beta))  # q(x, beta) C, at the nodes
    dx = share * (BOX[1] - BOX[0]) * np.exp(-np.abs(u)) / (1 + np.exp(-np.abs(u))) ** 2
    db = v_share * beta * (1 - beta)
    # Marginal of one (x, beta): half the target with uniform beta, half the instrumental.
    expected = np.outer(dx, db) * (np.exp(log_g)[:, None] / z + tempered / c) / 2
    total = extended.sum()
    np.testing.assert_allclose(extended.sum(axis=(1, 3)) / total, expected, rtol=1e-7)
    np.testing.assert_allclose(extended.sum(axis=(0, 2)) / total, expected, rtol=1e-7)

    one = (1 - beta)[None, :] * log_g[:, None]  # log weight (x, beta)
    first = one[:, None, :, None] + np.zeros_like(extended)
    second = one[None, :, None, :] + np.zeros_like(extended)
    weight = normalised_weights(np.stack([first, second], axis=-1))
    for f in (lambda w: w, np.square, np.exp):
        h = weight[..., 0] * f(x)[:, None, None, None] + weight[..., 1] * f(x)[:, None, None]
        under_target = fine_share @ (f(fine) * np.exp(log_fine)) / z
        assert (extended * h).sum() / total == pytest.approx(under_target, rel=1e-6)
