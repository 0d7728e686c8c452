"""Every program of the banana and the flower against NumPy, value and gradient."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm
from stan_density import StanDensity

from harness.model import Model
from harness.models.shapes import Banana, Flower
from harness.weights import FloatArray

BANANA, WIDE, FLOWER = Banana(v=3.0, b=0.6), Banana(v=2.0, b=-0.4, dimension=4), Flower(w=5)
SHAPES: dict[str, tuple[Model, Callable[[FloatArray], float]]] = {}


def banana_log_gamma(banana: Banana) -> Callable[[FloatArray], float]:
    def log_gamma(x: FloatArray) -> float:
        centre = banana.b * (x[0] ** 2 - banana.v)
        rest = norm.logpdf(x[2:]).sum()
        return float(norm.logpdf(x[0], 0, banana.v**0.5) + norm.logpdf(x[1], centre, 1) + rest)

    return log_gamma


def flower_log_gamma(flower: Flower) -> Callable[[FloatArray], float]:
    def log_gamma(x: FloatArray) -> float:
        # In the complex plane: cos(w angle) is the real part of (x / |x|)^w.
        point = complex(x[0], x[1])
        wave = (point / abs(point)) ** flower.w if point else 1
        return -((abs(point) - flower.r - flower.A * complex(wave).real) ** 2) / (2 * flower.s**2)

    return log_gamma


SHAPES = {
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
    for point in np.array([[0.0, 0.0], [0.0, -0.0], [-0.0, 0.0], [1e-170, -1e-200]]):
        value, slope = density(point)
        assert value == pytest.approx(-0.5 * 16**2)
        assert np.array_equal(slope, np.zeros(2))
    for point in np.array([[1e-150, 0.0], [0.0, -1e-155], [1e-9, 1e-9], [-1e-3, 0.0]]):
        value, slope = density(point)
        assert value == pytest.approx(log_gamma(point), rel=1e-12)
        assert np.all(np.isfinite(slope))
    # Along the axes the density is smooth.
    assert density([0.0, 3.0])[0] == pytest.approx(-0.5 * (3 - 10) ** 2)
    assert density([-3.0, 0.0])[0] == pytest.approx(-0.5 * (3 - 10 + 6) ** 2)
