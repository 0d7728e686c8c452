"""NumPy densities of many points against the Stan programs that they stand for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.model import Model
from harness.model.density import TargetDensity
from harness.model.python_target import Target, numpy_target
from harness.models.boltzmann import BoltzmannMachine, BoltzmannRelaxation, generate, relax
from harness.models.gaussian_mixture import GaussianMixture, kou_mixture

pytest.importorskip(
    "stanli", reason="stanli, which evaluates Stan programs with no compile, is not installed"
)

UNEQUAL = GaussianMixture(
    np.array([0.2, 0.5, 0.3]), np.array([[-2.0], [1.0], [4.0]]), np.array([0.3, 1.1, 0.05])
)


def machine(units: int) -> BoltzmannRelaxation:
    return relax(generate(units, np.random.default_rng(units), bias_sd=0.7))


def same(model: Model, target: Target, points: FloatArray) -> FloatArray:
    """Check values, gradients and all else; return the values."""
    density = TargetDensity(model)
    stan = Target(model.name, model.dimension, density, density.parameters, model.data)
    value, gradient = target.log_density(points)
    expected, slope = stan.log_density(points)
    np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-10)
    scale = 1e-10 * (1 + np.abs(slope).max(axis=1, keepdims=True))
    assert np.all(np.abs(gradient - slope) <= scale)
    assert (target.name, target.dimension) == (stan.name, stan.dimension)
    for name, values in stan.parameters(points).items():
        np.testing.assert_array_equal(target.parameters(points)[name], values)
    assert target.data is model.data
    return value


@pytest.mark.parametrize(
    ("mixture", "lower", "upper"),
    [(kou_mixture("a"), -10.0, 20.0), (kou_mixture("b"), -10.0, 25.0), (UNEQUAL, -20.0, 30.0)],
)
def test_the_mixture_is_its_stan_program(
    mixture: GaussianMixture, lower: float, upper: float
) -> None:
    model = mixture.model("mixture", lower=lower, upper=upper)
    target = numpy_target(model, mixture.log_density_and_gradient)
    rng = np.random.default_rng(1)
    spread = rng.uniform(lower - 5, upper + 5, (300, model.dimension))
    near = mixture.mean + 2 * mixture.sd[:, None] * rng.normal(size=mixture.mean.shape)
    points = np.concatenate([spread, near, np.full((1, model.dimension), lower)])
    value = same(model, target, points)
    inside = np.all((points > lower) & (points < upper), axis=1)
    assert 0 < inside.sum() < len(points)
    np.testing.assert_array_equal(np.isfinite(value), inside)
    assert not np.any(target.log_density(points)[1][~inside])
    np.testing.assert_allclose(value[inside], mixture.log_density(points[inside]), rtol=1e-10)


@pytest.mark.parametrize("units", [3, 10, 28])
def test_the_relaxation_is_its_stan_program(units: int) -> None:
    relaxation = machine(units)
    model = relaxation.model("relaxation")
    target = numpy_target(model, relaxation.log_density_and_gradient)
    rng = np.random.default_rng(units)
    # Near the modes, around zero, and where a hyperbolic cosine overflows.
    points = np.concatenate(
        [scale * rng.normal(size=(40, model.dimension)) for scale in (1e-6, 1.0, 10.0, 1e3)]
    )
    same(model, target, points)


def test_many_units_do_not_overflow() -> None:
    units = 1200
    machine = BoltzmannMachine(np.zeros((units, units)), np.linspace(-1, 1, units))
    relaxation = BoltzmannRelaxation(machine, np.ones(units), np.eye(units))
    value, gradient = relaxation.log_density_and_gradient(np.zeros((1, units)))
    assert value[0] == pytest.approx(np.log(np.cosh(machine.biases)).sum(), rel=1e-12)
    np.testing.assert_allclose(gradient[0], np.tanh(machine.biases), rtol=1e-12)


@pytest.mark.parametrize(("bad", "row"), [(np.nan, 0), (np.inf, 1)], ids=["a value", "a gradient"])
def test_what_is_not_finite_has_no_density(bad: float, row: int) -> None:
    relaxation = machine(3)
    model = relaxation.model("relaxation")

    def faulty(points: FloatArray) -> tuple[FloatArray, FloatArray]:
        value, gradient = relaxation.log_density_and_gradient(points)
        if row == 0:
            value[0] = bad
        else:
            gradient[1, 0] = bad
        return value, gradient

    points = np.random.default_rng(0).normal(size=(3, model.dimension))
    value, gradient = numpy_target(model, faulty).log_density(points)
    assert value[row] == -np.inf
    assert np.isfinite(np.delete(value, row)).all()
    assert not gradient[row].any()


def test_shapes_that_do_not_fit_are_refused() -> None:
    relaxation = machine(3)
    model = relaxation.model("relaxation")
    density: Callable[[FloatArray], tuple[FloatArray, FloatArray]] = (
        relaxation.log_density_and_gradient
    )
    with pytest.raises(DataError, match="dimension 2, but its parameters have 3 values"):
        numpy_target(model, density, shapes={"x": (model.dimension + 1,)})
    assert TargetDensity(model).shapes == {"x": (model.dimension,)}
