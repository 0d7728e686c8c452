"""Estimators that use refused proposals or conditional means are exact; population Monte Carlo."""

from __future__ import annotations

import numpy as np
import pytest
from every_outcome import Matrix, States, mean_of

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.proposals import (
    Chance,
    Population,
    WeightedMean,
    Widths,
    conditional_mean,
    evaluated,
    importance_log_weights,
    metropolis,
    move_population,
    multiple_try,
    recycled,
    recycled_tries,
    start_population,
)
from harness.proposals.chains import Function
from harness.proposals.multiple_try import Weighting

P = np.array([1.0, 2.0, 3.0]) / 6
Q = np.array([[0.1, 0.6, 0.3], [0.5, 0.3, 0.2], [0.3, 0.3, 0.4]])
SYMMETRIC = np.array([[0.2, 0.5, 0.3], [0.5, 0.1, 0.4], [0.3, 0.4, 0.3]])
F = np.array([0.3, -1.0, 2.0])
TRUTH = float(P @ F)


def f(points: FloatArray) -> FloatArray:
    value: FloatArray = F[points[:, 0].astype(int)]
    return value


@pytest.mark.parametrize("matrix", [Q, SYMMETRIC])
def test_waste_recycling_is_exact(matrix: FloatArray) -> None:
    def estimate(points: FloatArray, chance: Chance) -> FloatArray:
        return recycled(
            metropolis(States(P), Matrix(matrix), evaluated(States(P), points), chance), f
        )

    assert abs(mean_of(P, estimate) - TRUTH) < 1e-14


@pytest.mark.parametrize("tries", [1, 2, 3])
@pytest.mark.parametrize(("matrix", "weighting"), [(Q, "I"), (SYMMETRIC, "II")])
def test_waste_recycled_multiple_try_is_exact(
    matrix: FloatArray, weighting: Weighting, tries: int
) -> None:
    def estimate(points: FloatArray, chance: Chance) -> FloatArray:
        step = multiple_try(
            States(P), Matrix(matrix), evaluated(States(P), points), chance,
            tries=tries, weighting=weighting,
        )  # fmt: skip
        return recycled_tries(step, Matrix(matrix), f)

    assert abs(mean_of(P, estimate) - TRUTH) < 1e-14


def test_waste_recycled_multiple_try_with_impossible_states() -> None:
    """A state of probability 0 among the tries changes nothing."""
    target = np.array([0.4, 0.0, 0.6])

    def estimate(points: FloatArray, chance: Chance) -> FloatArray:
        step = multiple_try(
            States(target), Matrix(SYMMETRIC), evaluated(States(target), points), chance, tries=2
        )
        return recycled_tries(step, Matrix(SYMMETRIC), f)

    assert abs(mean_of(target, estimate) - float(target @ F)) < 1e-14


def test_multiple_importance_weights_have_the_right_mean() -> None:
    """E w = 1 and E w f = E_p f with q of full support; the ratio of two sums is not exact."""
    pairs: list[tuple[Function, float]] = [(lambda points: np.ones(len(points)), 1.0), (f, TRUTH)]
    for function, expected in pairs:

        def estimate(
            points: FloatArray, chance: Chance, function: Function = function
        ) -> FloatArray:
            chains = evaluated(States(P), points)
            step = multiple_try(States(P), Matrix(Q), chains, chance, tries=2, weighting="I")
            weight = np.exp(importance_log_weights(Matrix(Q), chains, step.tries))
            values: FloatArray = function(step.tries.points.reshape(-1, 1)).reshape(1, 2)
            mean: FloatArray = (weight * values).mean(axis=1)
            return mean

        assert abs(mean_of(P, estimate) - expected) < 1e-14


def test_conditional_means_are_exact() -> None:
    """Over two coordinates of three states each: the same mean, and no larger variance."""
    rng = np.random.default_rng(1)
    joint = rng.dirichlet(np.ones(9)).reshape(3, 3)

    def density(points: FloatArray) -> FloatArray:
        value: FloatArray = np.log(joint[points[:, 0].astype(int), points[:, 1].astype(int)])
        return value

    def function(points: FloatArray) -> FloatArray:
        value: FloatArray = F[points[:, 0].astype(int)] * (1 + points[:, 1])
        return value

    points = np.array([[i, j] for i in range(3) for j in range(3)], dtype=np.float64)
    weight, plain = joint.ravel(), function(points)
    truth = weight @ plain
    for axis in (0, 1):
        mean = conditional_mean(density, points, axis, [0, 1, 2], function)
        assert abs(weight @ mean - truth) < 1e-14
        assert weight @ (mean - truth) ** 2 <= weight @ (plain - truth) ** 2
        # By hand: it does not depend on the coordinate that is summed over.
        np.testing.assert_allclose(mean.reshape(3, 3).std(axis=axis), 0, atol=1e-15)
    assert np.array_equal(points[:, 0], np.repeat([0, 1, 2], 3))  # left as they were


def test_a_conditional_mean_by_quadrature() -> None:
    """E(x^2 | y) of a bivariate Gaussian with correlation r is r^2 y^2 + 1 - r^2."""
    r, y = 0.6, np.array([-1.0, 0.4])

    def density(points: FloatArray) -> FloatArray:
        x, y = points.T
        value: FloatArray = -(x**2 - 2 * r * x * y + y**2) / (2 * (1 - r**2))
        return value

    node, weight = np.polynomial.legendre.leggauss(60)
    points = np.column_stack([np.zeros(2), y])
    found = conditional_mean(
        density, points, 0, 8 * node, lambda x: x[:, 0] ** 2, log_node_weight=np.log(weight)
    )
    np.testing.assert_allclose(found, r**2 * y**2 + 1 - r**2, rtol=1e-10)
    for wrong in ([], [[1.0]]):
        with pytest.raises(DataError, match="nodes"):
            conditional_mean(density, points, 0, wrong, lambda x: x[:, 0])
    with pytest.raises(DataError, match="2 coordinates"):
        conditional_mean(density, points, 2, [1.0], lambda x: x[:, 0])


def test_weighted_means_of_a_stream() -> None:
    """The same as of all weights at once, whatever their scale; and the largest one's share."""
    rng = np.random.default_rng(2)
    log_weight = rng.normal(0, 3, (4, 2, 5)) + np.array([800, 0, -900, 850])[:, None, None]
    log_weight[0, :, :2] = -np.inf
    values = rng.normal(size=(4, 2, 5))
    mean = WeightedMean(2)
    with pytest.raises(DataError, match="above zero"):
        _ = mean.value
    for one, value in zip(log_weight, values, strict=True):
        mean.add(one, value)
    flat, flat_values = (a.transpose(1, 0, 2).reshape(2, -1) for a in (log_weight, values))
    weight = np.exp(flat - flat.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(mean.value, (weight * flat_values).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(mean.largest_share, weight.max(axis=1), rtol=1e-12)


def normal(x: FloatArray, sd: float) -> FloatArray:
    density: FloatArray = np.prod(np.exp(-0.5 * (x / sd) ** 2) / (sd * np.sqrt(2 * np.pi)), axis=1)
    return density


@pytest.mark.parametrize("combined", [False, True])
@pytest.mark.parametrize("adapted", [False, True])
def test_population_monte_carlo(combined: bool, adapted: bool) -> None:
    """Widths that give the weights a finite variance: they have mean Z = 1, and means are right.

    Ten steps of 2000 particles; errors are those of the sums, the bound is 4.5 of them.
    """
    widths = Widths((1.5, 3.0), adapted=adapted, combined=combined)
    rng = np.random.default_rng(3)
    population = start_population(rng.normal(size=(2000, 2)), widths)
    weights, squares = [], []
    for _ in range(10):
        before = population.probability
        step = move_population(lambda x: np.log(normal(x, 1.5)), widths, population, rng)
        population = step.after
        weight = np.exp(step.log_weight)
        weights.append(weight)
        squares.append(weight * (step.proposed[:, 0] ** 2 - 1.5**2))
        assert np.isclose(population.probability.sum(), 1)
        assert np.array_equal(population.probability, before) != adapted
        known = {tuple(x) for x in step.proposed}
        assert all(tuple(x) in known for x in population.points)
    for series, expected in ((np.concatenate(weights), 1.0), (np.concatenate(squares), 0.0)):
        error = series.std(ddof=1) / np.sqrt(series.size)
        assert abs(series.mean() - expected) < 4.5 * error


def test_weights_of_one_particle() -> None:
    """Against the densities by hand: of the chosen width, or of the mixture."""
    start, probability = np.array([[1.0, -2.0]]), np.array([0.3, 0.7])
    for combined in (False, True):
        widths = Widths((0.5, 2.0), adapted=False, combined=combined)
        step = move_population(
            lambda x: np.zeros(len(x)), widths, Population(start, probability),
            np.random.default_rng(4),
        )  # fmt: skip
        narrow, wide = normal(step.proposed - start, 0.5), normal(step.proposed - start, 2.0)
        q = np.exp(-step.log_weight)
        if combined:
            np.testing.assert_allclose(q, 0.3 * narrow + 0.7 * wide, rtol=1e-12)
        else:
            assert np.isclose(q, narrow)[0] or np.isclose(q, wide)[0]


def test_populations_refuse_what_they_cannot_do() -> None:
    for sd, floor in (((), 0.0), ((1.0, 0.0), 0.0), ((1.0, 2.0), 0.6)):
        with pytest.raises(DataError, match=r"width"):
            Widths(sd, floor=floor)
    widths = Widths((1.0,))
    with pytest.raises(DataError, match="above zero"):
        move_population(
            lambda x: np.full(len(x), -np.inf), widths, start_population(np.zeros((3, 1)), widths),
            np.random.default_rng(5),
        )  # fmt: skip
