"""Pseudo-extended moves: density and weights against quadrature, runs against exact answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.model.python_target import function_target
from harness.models.boltzmann import generate, relax
from harness.models.boltzmann_mean_field import mean_field_base
from harness.path import GaussianBase, gaussian_base
from harness.samplers.kernels import Hmc, Kernel, RandomWalk, Slice
from harness.samplers.pseudo_extended_moves import (
    ExtendedDensity,
    Range,
    pseudo_extended_moves,
    strata,
)

WEIGHT, CENTRE, SD, LOG_Z = np.array([0.7, 0.3]), np.array([-2.0, 1.5]), np.array([0.5, 0.4]), 1.0
BASE = gaussian_base([0.3], [[4.0]], log_zeta=0.4)
MEAN = float(WEIGHT @ CENTRE)
RELAXATION = relax(generate(8, np.random.default_rng(3)))
MODEL = RELAXATION.model("boltzmann-8")
MODEL_BASE = mean_field_base(RELAXATION, np.random.default_rng(0), starts=50)


def log_gamma(x: Any) -> FloatArray:
    height = np.log(WEIGHT) + norm.logpdf(np.asarray(x)[..., None], CENTRE, SD)
    return np.asarray(LOG_Z + logsumexp(height, axis=-1))


def with_gradient(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    height = np.log(WEIGHT) + norm.logpdf(x, CENTRE, SD)
    share = np.exp(height - logsumexp(height, axis=1, keepdims=True))
    return log_gamma(x[:, 0]), (share * (CENTRE - x) / SD**2).sum(axis=1, keepdims=True)


TARGET = function_target("two modes", with_gradient, 1)


def log_end(x: Any, beta: float, base: GaussianBase | None) -> FloatArray:
    """Log gamma_beta, from the definitions."""
    if base is None:
        return np.asarray(beta * log_gamma(x))
    return np.asarray(beta * (log_gamma(x) - base.log_zeta) + (1 - beta) * norm.logpdf(x, 0.3, 2.0))


def mass(limits: Range, base: GaussianBase | None) -> float:
    """C_i: the integral of gamma_beta over x, and over beta where that is not fixed."""
    x, rule = np.linspace(-25, 25, 2001), np.polynomial.legendre.leggauss(30)
    low, high = limits
    node = low + (high - low) * 0.5 * (rule[0] + 1)
    of_beta = np.array([np.trapezoid(np.exp(log_end(x, beta, base)), x) for beta in node])
    # Where beta is fixed, all nodes are the same, and the mean over them is the value.
    return float(0.5 * rule[1] @ of_beta) * (1.0 if low == high else high - low)


def quadrature(ranges: tuple[Range, ...], x_nodes: int, beta_nodes: int) -> Any:
    """Points of the two-pseudo-sample space and log weights of a product rule."""
    grid = np.linspace(-14, 14, x_nodes)
    rules = [(grid, np.full(x_nodes, np.log(grid[1] - grid[0])))] * 2
    node, weight = np.polynomial.legendre.leggauss(beta_nodes)
    place = 0.5 * (node + 1)
    for low, high in ranges:
        if low < high:  # du = d place / (place (1 - place))
            rules.append(
                (np.log(place / (1 - place)), np.log(weight / 2) - np.log(place * (1 - place)))
            )
    axes = np.meshgrid(*(rule[0] for rule in rules), indexing="ij")
    logs = np.meshgrid(*(rule[1] for rule in rules), indexing="ij")
    return np.stack([a.ravel() for a in axes], axis=1), sum(each.ravel() for each in logs)


@pytest.mark.parametrize(
    ("ranges", "base"),
    [
        (((0.2, 0.2), (0.7, 0.7)), None),  # a ladder
        (((0.0, 0.0), (1.0, 1.0)), BASE),
        (strata(2, 0.2), None),
        (strata(2), BASE),
        (((0.1, 0.9), (0.1, 0.9)), BASE),
    ],
)
def test_weights_are_right_whatever_the_ranges(
    ranges: tuple[Range, ...], base: GaussianBase | None
) -> None:
    """E[sum_i w_i x_i] is the target's mean, and E[w_i] is proportional to a_i / C_i."""
    density = ExtendedDensity(with_gradient, 1, ranges, base)
    density.log_a = np.array([0.3, -0.8])
    fixed = ranges[0][0] == ranges[0][1]
    points, log_rule = quadrature(ranges, 281 if fixed else 97, 6)
    log_density = density(points)[0] + log_rule
    share = np.exp(log_density - logsumexp(log_density))
    log_weight = density.weights(points)["log_weight"]
    weight = np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))
    x = density.split(points)[0][..., 0]
    # The rule in x is exact up to rounding, since no mode is narrower than its spacing; with six
    # nodes the one in beta errs by about 1e-5.
    assert share @ (weight * x).sum(axis=1) == pytest.approx(MEAN, abs=1e-4)
    assert share @ (weight * x**2).sum(axis=1) == pytest.approx(
        float(WEIGHT @ (CENTRE**2 + SD**2)), abs=1e-3
    )
    chosen = np.exp(density.log_a) / [mass(each, base) for each in ranges]
    np.testing.assert_allclose(share @ weight, chosen / chosen.sum(), atol=1e-4)


@pytest.mark.parametrize("base", [None, MODEL_BASE])
@pytest.mark.parametrize("ranges", [((0.1, 0.9),) * 3, ((0.3, 0.3), (0.4, 0.8)), ((1.0, 1.0),)])
def test_value_and_gradient(ranges: tuple[Range, ...], base: GaussianBase | None) -> None:
    """Values by equation 8 as a sum of products, gradients by differences."""
    dimension, number = MODEL.dimension, len(ranges)
    density = ExtendedDensity(RELAXATION.log_density_and_gradient, dimension, ranges, base)
    points = np.random.default_rng(1).normal(0, 1.2, (5, density.size))
    value, slope = density(points)
    for point, found in zip(points, value, strict=True):
        x, logits = (
            point[: number * dimension].reshape(number, dimension),
            point[number * dimension :],
        )
        rest, log_pi, beta, jacobian = iter(logits), [], [], 0.0
        for low, high in ranges:
            place = 1 / (1 + np.exp(-next(rest))) if low < high else 0.0
            beta.append(low + (high - low) * place)
            log_pi.append(-np.log(high - low) if low < high else 0.0)
            jacobian += np.log(place * (1 - place)) if low < high else 0.0
        end = RELAXATION.log_density_and_gradient(x)[0]
        log_b = np.zeros(number) if base is None else base.log_density(x)
        end = end - (0.0 if base is None else base.log_zeta)
        log_q = np.array(beta) * end + (1 - np.array(beta)) * log_b
        products = [end[i] + log_pi[i] + log_q.sum() - log_q[i] for i in range(number)]
        assert found == pytest.approx(logsumexp(products) + jacobian, rel=1e-10)
    for k, step in enumerate(1e-5 * np.eye(density.size)):
        difference = (density(points + step)[0] - density(points - step)[0]) / 2e-5
        np.testing.assert_allclose(slope[:, k], difference, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("kernel", "moves", "ranges"),
    [
        (Hmc(10, jitter=0.0), 1, strata(1, 0.1, 1) * 2),
        (RandomWalk(), 10, ((0.1, 0.9),) * 2),
        (Slice(most_widths=4), 1, ((0.1, 1.0),) * 2),
        (Hmc(10), 1, strata(2, 0.1)),
        (Hmc(10), 1, ((0.2, 0.2), (0.8, 0.8))),
    ],
)
def test_moments_by_every_move(kernel: Kernel, moves: int, ranges: tuple[Range, ...]) -> None:
    """Chains are independent: five standard errors of the spread of their means."""
    draws = 40 if isinstance(kernel, Slice) else 120
    fit = pseudo_extended_moves(
        TARGET, ranges=ranges, kernel=kernel, moves=moves, chains=64, draws=draws, warmup=draws,
        step_size=1.0 if isinstance(kernel, Slice) else None, seed=4,
    )  # fmt: skip
    series = fit.series(lambda p: p["x"]).to_numpy()[..., 0]
    mean = series.mean(axis=1)
    assert abs(mean.mean() - MEAN) < 5 * mean.std() / 8 < 1
    assert fit.pseudo_samples == 2
    extended = fit.extended
    assert extended is not None
    beta = extended["inv_temp"].to_numpy()
    for i, (low, high) in enumerate(ranges):
        assert low <= beta[..., i].min() <= beta[..., i].max() <= high
    chosen = np.exp(fit.log_weight - np.logaddexp.reduce(fit.log_weight, axis=2)[..., None])
    # Equal ranges are exchangeable; others have been balanced.
    assert abs(chosen[..., 0].mean() - 0.5) < 0.15


def test_log_z_of_a_relaxation_and_what_it_costs() -> None:
    """Within 4.5 of its errors if all pseudo-samples have the whole range; else it is refused."""
    fit = pseudo_extended_moves(MODEL, MODEL_BASE, chains=20, draws=300, warmup=150, seed=2)
    truth = RELAXATION.exact()
    evidence = fit.log_evidence
    assert abs(evidence.value - truth.log_z) < 4.5 * evidence.mcse < 1
    mean = fit.expectation(lambda p: p["x"])
    assert np.all(np.abs(mean.value - truth.expected_x) < 5 * mean.mcse)
    assert float(np.sum(fit.tree.attrs["gradients_sampling"])) == 20 * (1 + 20 * 450)
    part = pseudo_extended_moves(
        MODEL, MODEL_BASE, ranges=strata(2), chains=2, draws=5, warmup=5, seed=2
    )
    with pytest.raises(DataError, match="a part of the path"):
        _ = part.log_evidence
    again = pseudo_extended_moves(
        MODEL, MODEL_BASE, ranges=strata(2), chains=2, draws=5, warmup=5, seed=2
    )
    np.testing.assert_array_equal(part.posterior["x"], again.posterior["x"])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"chains": 0}, "one chain"),
        ({"moves": 0}, "one chain"),
        ({"ranges": ()}, "pairs"),
        ({"ranges": ((0.5, 0.1),)}, "ascend"),
        ({"ranges": ((0.5, 1.1),)}, "ascend"),
        ({"base": None}, "infinite mass"),
        ({"base": gaussian_base([0.0], [[1.0]])}, "dimension"),
    ],
)
def test_refusals(wrong: dict[str, Any], message: str) -> None:
    settings: dict[str, Any] = {"base": MODEL_BASE, "seed": 1} | wrong
    with pytest.raises(DataError, match=message):
        pseudo_extended_moves(MODEL, **settings)
