"""Draws of the inverse temperature given x, against quadrature and enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chisquare, expon, kstest

from harness.errors import DataError
from harness.evidence import LogG, draw_inv_temp

SHAPES: dict[str, LogG] = {
    "uniform": ((0.0, 0.0), (1.0, 0.0)),
    "tilted": ((0.0, 2.0), (1.0, -4.0)),
    "knotted": ((0.0, 1.0), (0.2, -0.5), (0.7, 0.4), (1.0, 2.0)),
    "late": ((0.1, 0.3), (0.6, -1.0), (1.0, 0.5)),
    "fine": tuple((k / 40, math.sin(k)) for k in range(41)),
}
DELTAS = (-200.0, -7.5, -1e-3, -1e-9, 0.0, 1e-12, 0.3, 7.5, 200.0)
DRAWS = 4000
ERROR = 1e-3
"""Probability that correct draws fail one of all these tests."""


@pytest.mark.parametrize("shape", SHAPES)
def test_draws_follow_the_conditional(shape: str) -> None:
    log_g = SHAPES[shape]
    knot, value = np.array(log_g).T
    rng = np.random.default_rng(len(shape))
    drawn = draw_inv_temp(np.repeat(DELTAS, DRAWS).reshape(len(DELTAS), DRAWS), log_g, rng)
    # A fine grid that is finest at the ends, where large Delta puts all the mass.
    inner = (1 - np.cos(np.linspace(0, np.pi, 20_001))) / 2
    grid = np.unique(np.concatenate([knot[0] + (1 - knot[0]) * inner, knot]))
    for delta, draws in zip(DELTAS, drawn, strict=True):
        log_density = np.interp(grid, knot, value) - grid * delta
        density = np.exp(log_density - log_density.max())
        mass = np.concatenate([[0], np.cumsum(np.diff(grid) * (density[1:] + density[:-1]) / 2)])
        uniform = np.interp(draws, grid, mass / mass[-1])
        assert kstest(uniform, "uniform").pvalue > ERROR / (len(DELTAS) * len(SHAPES)), delta


@pytest.mark.parametrize("delta", [-4.0, 0.0, 1.3, 30.0])
def test_a_rung_has_its_probability(delta: float) -> None:
    log_g = ((0.0, -1.0), (0.1, 2.0), (0.6, 0.5), (1.0, 3.0))
    drawn = draw_inv_temp(np.full(20_000, delta), log_g, np.random.default_rng(1), ladder=True)
    mass = np.array([math.exp(value - beta * delta) for beta, value in log_g])
    expected = 20_000 * mass / mass.sum()
    count = np.array([np.sum(drawn == beta) for beta, _ in log_g])
    assert count.sum() == 20_000
    common = expected > 5
    observed = np.append(count[common], count[~common].sum())
    known = np.append(expected[common], expected[~common].sum())
    assert chisquare(observed[known > 0], known[known > 0]).pvalue > ERROR / 4


@pytest.mark.parametrize("sign", [1, -1])
def test_extreme_ratios(sign: int) -> None:
    """With |Delta| = 1e5 beta is an exponential at one end, and within [0, 1]."""
    drawn = draw_inv_temp(np.full(5000, sign * 1e5), SHAPES["uniform"], np.random.default_rng(2))
    away = drawn if sign > 0 else 1 - drawn
    assert np.all((drawn >= 0) & (drawn <= 1))
    assert kstest(away * 1e5, expon.cdf).pvalue > ERROR / 2


def test_shape_seed_and_array_knots() -> None:
    delta = np.random.default_rng(3).normal(size=(3, 4))
    one, two = (
        draw_inv_temp(delta, g, np.random.default_rng(4))
        for g in (SHAPES["knotted"], np.array(SHAPES["knotted"]))
    )
    assert one.shape == (3, 4)
    np.testing.assert_array_equal(one, two)


def test_what_is_not_finite_is_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(DataError, match="finite"):
        draw_inv_temp([0.0, np.nan], SHAPES["uniform"], rng)
    with pytest.raises(DataError, match="ascend"):
        draw_inv_temp([0.0], ((0.5, 0.0), (0.2, 0.0)), rng)
