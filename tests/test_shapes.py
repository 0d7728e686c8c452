"""Banana and flower: the stated truth against SciPy, closed forms and Cartesian sums."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.models.shapes import Banana, Flower

BANANAS = [Banana(), Banana(v=2.5, b=-0.7), Banana(v=0.6, b=0.02), Banana(v=1e4, b=0.3)]
BANANAS += [Banana(v=3.0, b=0.0, dimension=3)]
# The second has troughs that reach the origin, the last bends inward past it.
FLOWERS = [
    Flower(),
    Flower(r=3.0, A=1.0, w=5, s=0.8),
    Flower(r=4.0, A=0.0, w=1, s=0.5),
    Flower(r=5.0, A=2.0, w=1, s=1.5),
    Flower(r=2.0, A=3.5, w=3, s=0.4),
]
PROBABILITIES = [1e-6, 0.05, 0.5, 0.9, 1 - 1e-6]


def banana_cdf(banana: Banana, value: float) -> float:
    """P(X_2 <= value), over the noise of x_2: E[P(b v (Z^2 - 1) <= value - e)]."""
    bend = banana.b * banana.v

    def below(e: float) -> float:
        ratio = 1 + (value - e) / bend
        inside = 0.0 if ratio <= 0 else float(norm.cdf(np.sqrt(ratio)) - norm.cdf(-np.sqrt(ratio)))
        return float(norm.pdf(e)) * (inside if bend > 0 else 1 - inside)

    kink = min(max(value + bend, -10.0), 10.0)  # where the square root begins
    parts = [(-10.0, kink), (kink, 10.0)]
    return float(sum(quad(below, *part, epsabs=1e-13, limit=200)[0] for part in parts))


@pytest.mark.parametrize("banana", BANANAS[:4], ids=str)
def test_banana_distribution_of_x2(banana: Banana) -> None:
    lowest = -banana.b * banana.v
    spread = np.sqrt(banana.truth.expected("x_squared")[1])
    for value in (lowest, lowest - 2, lowest + 0.5, 0.0, -spread, 0.3 * spread, 2 * spread):
        assert banana.cdf_x2(value) == pytest.approx(banana_cdf(banana, value), rel=0, abs=1e-10)


@pytest.mark.parametrize("banana", BANANAS, ids=str)
def test_banana_quantiles(banana: Banana) -> None:
    for p in PROBABILITIES:
        assert banana.quantile_x1(p) == pytest.approx(norm.ppf(p, 0, np.sqrt(banana.v)), rel=1e-9)
        assert banana.cdf_x2(banana.quantile_x2(p)) == pytest.approx(p, rel=0, abs=1e-9)
    if banana.b == 0:
        assert banana.quantile_x2(0.9) == pytest.approx(norm.ppf(0.9), rel=1e-12)


@pytest.mark.parametrize("banana", BANANAS, ids=str)
def test_banana_moments_and_log_density(banana: Banana) -> None:
    """Gauss-Hermite in (x_1, residual): exact for polynomials, independent of the closed forms."""
    nodes, share = np.polynomial.hermite_e.hermegauss(12)
    share = share / share.sum()
    x1 = np.sqrt(banana.v) * nodes[:, None]
    x2 = nodes + banana.b * (x1**2 - banana.v)
    weight = share[:, None] * share
    first = [np.sum(weight * x1), np.sum(weight * x2)]
    second = [np.sum(weight * x1**2), np.sum(weight * x2**2)]
    scale = np.sqrt(banana.truth.expected("x_squared")[:2])
    np.testing.assert_allclose(first / scale, banana.truth.expected("x")[:2], rtol=0, atol=1e-12)
    np.testing.assert_allclose(second, banana.truth.expected("x_squared")[:2], rtol=1e-11)
    assert np.sum(weight * x1 * x2) / np.prod(scale) == pytest.approx(0, abs=1e-12)
    assert (
        banana.truth.expected("x").shape
        == banana.truth.expected("x_squared").shape
        == (banana.dimension,)
    )

    x = np.random.default_rng(1).normal(0, 2, (4, 3, banana.dimension))
    expected = norm.logpdf(x[..., 0], 0, np.sqrt(banana.v))
    expected += norm.logpdf(x[..., 1], banana.b * (x[..., 0] ** 2 - banana.v), 1)
    expected += norm.logpdf(x[..., 2:]).sum(axis=-1)
    np.testing.assert_allclose(banana.log_density(x), expected, rtol=1e-13)
    assert banana.truth.log_evidence.value == 0


def test_banana_mass_by_a_cartesian_sum() -> None:
    banana = Banana(v=2.5, b=-0.7)
    side1, side2 = np.linspace(-14, 14, 1401), np.linspace(-120, 15, 2701)
    points = np.stack(np.meshgrid(side1, side2, indexing="ij"), axis=-1)
    cell = (side1[1] - side1[0]) * (side2[1] - side2[0])
    density = np.exp(banana.log_density(points)) * cell
    assert density.sum() == pytest.approx(1, abs=1e-9)
    for axis in (0, 1):
        second = np.sum(density * points[..., axis] ** 2)
        assert second == pytest.approx(banana.truth.expected("x_squared")[axis], rel=1e-8)
    below = density.sum(axis=0)[side2 <= 0].sum() - 0.5 * density.sum(axis=0)[side2 == 0].sum()
    assert banana.cdf_x2(0.0) == pytest.approx(below, abs=1e-4)


def radial_integral(
    flower: Flower, angle: FloatArray, power: int, radius: float = np.inf
) -> FloatArray:
    """Integral of rho^power exp(-(rho - m)^2 / (2 s^2)) over [0, radius], by recursion in power."""
    s, m = flower.s, flower.r + flower.A * np.cos(flower.w * angle)
    at_zero = np.exp(-0.5 * (m / s) ** 2)
    at_top = np.zeros_like(m) if np.isinf(radius) else np.exp(-0.5 * ((radius - m) / s) ** 2)
    integral = [s * np.sqrt(2 * np.pi) * (norm.cdf((radius - m) / s) - norm.cdf(-m / s))]
    for k in range(1, power + 1):
        # By parts: m I_{k-1} + s^2 ((k - 1) I_{k-2} + boundary terms).
        term = (at_zero if k == 1 else 0.0) + m * integral[k - 1] / s**2
        if np.isfinite(radius):
            term = term - at_top * radius ** (k - 1)
        if k > 1:
            term = term + (k - 1) * integral[k - 2]
        integral.append(s**2 * term)
    return np.asarray(integral[power], dtype=np.float64)


def over_angles(flower: Flower, power: int, harmonic: Any = np.ones_like, **limits: float) -> float:
    angle = 2 * np.pi * np.arange(4000) / 4000
    return float(
        2 * np.pi * np.mean(radial_integral(flower, angle, power, **limits) * harmonic(angle))
    )


@pytest.mark.parametrize("flower", FLOWERS, ids=str)
def test_flower_evidence_and_moments(flower: Flower) -> None:
    mass = over_angles(flower, 1)
    assert flower.truth.log_evidence.value == pytest.approx(np.log(mass), rel=0, abs=1e-11)
    for axis, f in enumerate((np.cos, np.sin)):
        first = over_angles(flower, 2, f) / mass
        second = over_angles(flower, 3, lambda angle, f=f: f(angle) ** 2) / mass
        assert flower.truth.expected("x")[axis] == pytest.approx(first, abs=1e-10)
        assert flower.truth.expected("x_squared")[axis] == pytest.approx(second, rel=1e-11)
    if flower.w == 1 and flower.A:
        assert flower.truth.expected("x")[0] > 1  # one petal alone pulls the mean towards it


@pytest.mark.parametrize("flower", FLOWERS, ids=str)
def test_flower_radial_distribution(flower: Flower) -> None:
    mass = over_angles(flower, 1)
    for radius in (0.3, flower.r, flower.r + flower.A):
        share = over_angles(flower, 1, radius=radius) / mass
        assert flower.radial_cdf(radius) == pytest.approx(share, abs=1e-10)
    for p in (0.05, 0.5, 0.99):
        assert flower.radial_cdf(flower.radial_quantile(p)) == pytest.approx(p, abs=1e-10)
    median = brentq(lambda q: over_angles(flower, 1, radius=q) / mass - 0.5, 1e-3, 30, xtol=1e-6)
    assert flower.radial_quantile(0.5) == pytest.approx(median, abs=1e-5)


@pytest.mark.parametrize("flower", [FLOWERS[1], FLOWERS[3]], ids=str)
def test_flower_by_a_cartesian_sum(flower: Flower) -> None:
    """Evidence, moments and petals from log_density on a grid, no polar coordinates."""
    side = np.linspace(-20, 20, 1602)  # the origin is no node
    points = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)
    density = np.exp(flower.log_density(points)) * (side[1] - side[0]) ** 2
    mass = density.sum()
    # At the origin the density has a corner: the sum is good to the square of the step there.
    assert np.log(mass) == pytest.approx(flower.truth.log_evidence.value, abs=1e-4)
    for axis in (0, 1):
        second = np.sum(density * points[..., axis] ** 2) / mass
        assert np.sum(density * points[..., axis]) / mass == pytest.approx(
            flower.truth.expected("x")[axis], abs=2e-4
        )
        assert second == pytest.approx(flower.truth.expected("x_squared")[axis], rel=1e-4)
    petal = flower.petal(points)
    share = [density[petal == k].sum() / mass for k in range(flower.w)]
    # Nodes on the side of a sector that is a grid's diagonal or axis count to one side.
    np.testing.assert_allclose(share, flower.truth.expected("petal"), rtol=0, atol=2e-3)
    assert flower.truth.expected("petal").sum() == pytest.approx(1)


def test_petals_are_numbered_by_angle() -> None:
    flower = Flower(w=5)
    for k, offset, radius in product(range(5), (-0.6, 0.0, 0.6), (1.0, 20.0)):
        angle = 2 * np.pi * k / 5 + offset
        point = radius * np.array([np.cos(angle), np.sin(angle)])
        assert flower.petal(point) == k
        # A petal's tip lies on its own axis.
    tips: FloatArray = np.array(
        [[np.cos(2 * np.pi * k / 5), np.sin(2 * np.pi * k / 5)] for k in range(5)]
    )
    np.testing.assert_allclose(flower.log_density(16 * tips), 0, atol=1e-20)
    assert flower.log_density(np.zeros(2)) == pytest.approx(-128)


@pytest.mark.parametrize(
    ("shape", "settings", "message"),
    [
        (Banana, {"v": 0.0}, "variance v must be positive"),
        (Banana, {"v": -1.0}, "variance v must be positive"),
        (Banana, {"v": np.nan}, "variance v must be positive"),
        (Banana, {"v": np.inf}, "variance v must be positive"),
        (Banana, {"b": np.nan}, "bend b must be finite"),
        (Banana, {"dimension": 1}, "2 dimensions or more; got 1"),
        (Flower, {"r": 0.0}, "r must be positive"),
        (Flower, {"r": np.nan}, "r must be positive"),
        (Flower, {"s": -1.0}, "s must be positive"),
        (Flower, {"s": np.inf}, "s must be positive"),
        (Flower, {"A": -0.1}, "amplitude A"),
        (Flower, {"A": np.nan}, "amplitude A"),
        (Flower, {"w": 0}, "1 petal or more"),
        (Flower, {"w": 2.5}, "integer w"),
    ],
)
def test_bad_shapes_are_refused(shape: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        shape(**settings)


@pytest.mark.parametrize("p", [0.0, 1.0, -0.1, np.nan])
def test_quantiles_outside_zero_and_one_are_refused(p: float) -> None:
    for quantile in (Banana().quantile_x1, Banana().quantile_x2, Flower().radial_quantile):
        with pytest.raises(DataError, match="between 0 and 1"):
            quantile(p)


def test_models_carry_their_data() -> None:
    banana, flower = Banana(v=2.0, b=0.5, dimension=4).model(), Flower(w=7).model("seven")
    assert (banana.name, banana.dimension, banana.parameters) == ("banana", 4, ("x",))
    assert dict(banana.data) == {"D": 4, "v": 2.0, "b": 0.5}
    assert (flower.name, flower.dimension) == ("seven", 2)
    assert dict(flower.data) == {"r": 10.0, "A": 6.0, "w": 7, "s": 1.0}
    for model in (banana, flower):
        assert model.program("target").path.is_file()
