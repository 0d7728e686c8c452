"""Conditional densities of the inverse temperature: by quadrature, by hand and by Stan."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import logsumexp
from stan_density import stanli

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogG, inv_temp_log_conditionals, log_path_weight
from harness.folders import shipped

SHAPES: dict[str, LogG] = {
    "uniform": ((0.0, 0.0), (1.0, 0.0)),
    "constant": ((0.0, 3.5), (1.0, 3.5)),
    "tilted": ((0.0, 2.0), (1.0, -4.0)),
    "knotted": ((0.0, 1.0), (0.2, -0.5), (0.7, 0.4), (1.0, 2.0)),
    "fine": tuple((k / 40, math.sin(k)) for k in range(41)),
}
MODERATE = np.array([-30, -7.5, -1, -1e-3, -1e-5, -1e-12, 0, 1e-12, 1e-5, 1e-3, 1, 7.5, 30])
EXTREME = np.array([-1e5, -700, 700, 1e5])


def log_integral(delta: FloatArray, log_g: LogG, inv_temp: float) -> FloatArray:
    """Log of the integral of g(beta) exp(-(beta - inv_temp) Delta), by Gauss-Legendre."""
    nodes, share = np.polynomial.legendre.leggauss(80)
    terms = []
    for (a, low), (b, high) in pairwise(log_g):
        t = (nodes + 1) / 2
        beta, log_value = a + (b - a) * t, low + (high - low) * t
        log_share = np.log((b - a) / 2 * share)
        terms.append(log_value + log_share - (beta - inv_temp) * delta[:, None])
    return np.asarray(logsumexp(np.concatenate(terms, axis=1), axis=1), dtype=np.float64)


@pytest.mark.parametrize("shape", SHAPES)
def test_conditionals_by_quadrature(shape: str) -> None:
    log_g = SHAPES[shape]
    log_w1, log_w0 = inv_temp_log_conditionals(MODERATE, log_g)
    for ours, end, value in ((log_w1, 1.0, log_g[-1][1]), (log_w0, 0.0, log_g[0][1])):
        expected = value - log_integral(MODERATE, log_g, end)
        np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12)
    for place in (-0.5, 0.3, 1.7):
        np.testing.assert_allclose(
            log_path_weight(MODERATE, place, log_g),
            -log_integral(MODERATE, log_g, place),
            rtol=1e-12,
            atol=1e-12,
        )


@pytest.mark.parametrize("ladder", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_conditionals_are_those_of_stan(shape: str, ladder: bool) -> None:
    log_g = SHAPES[shape]
    stan = stanli.Function(
        "continuous_tempering_log_weight",
        stan_code="functions {\n#include tempering.stanfunctions\n}\n",
        include_paths=[str(shipped("stan"))],
    )
    knot, value = np.array(log_g).T
    delta = np.concatenate([MODERATE, EXTREME, np.random.default_rng(1).normal(0, 50, 20)])
    expected = np.array(
        [stan(delta=each, knot=knot, log_g=value, ladder=int(ladder)) for each in delta]
    )
    ours = np.stack(inv_temp_log_conditionals(delta, log_g, ladder=ladder), axis=-1)
    # Where Delta is 1e5, differences of numbers of that size have errors of 1e-11.
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-10)


def by_hand(delta: float) -> tuple[float, float]:
    """Log of Delta / (exp(Delta) - 1) and of Delta / (1 - exp(-Delta)), by exact series."""
    if delta == 0:
        return 0.0, 0.0
    if abs(delta) < 0.1:
        d, term, total = Fraction(delta), Fraction(1), Fraction(0)
        for n in range(1, 30):  # (exp(d) - 1) / d = sum d^(n - 1) / n!
            total += term
            term = term * d / (n + 1)
        log_w1 = -math.log1p(float(total - 1))
    elif delta > 40:
        return math.log(delta) - delta, math.log(delta)
    elif delta < -40:
        return math.log(-delta), math.log(-delta) + delta
    else:
        log_w1 = math.log(delta / math.expm1(delta))
    return log_w1, log_w1 + delta


@pytest.mark.parametrize(
    "delta", [0.0, *(s * v for s in (1, -1) for v in (1e-300, 1e-12, 1e-5, 0.05, 2.0, 700.0, 1e5))]
)
def test_uniform_g_by_hand(delta: float) -> None:
    """Precise in relative terms wherever the logarithm itself is well conditioned."""
    log_w1, log_w0 = (float(w) for w in inv_temp_log_conditionals(delta))
    expected = by_hand(delta)
    assert log_w1 == pytest.approx(expected[0], rel=1e-13, abs=1e-16)
    assert log_w0 == pytest.approx(expected[1], rel=1e-13, abs=1e-16)


def test_the_two_ends_are_symmetric() -> None:
    """Exchanging base and target reverses the path."""
    log_g = SHAPES["knotted"]
    reverse = [(1 - beta, value) for beta, value in log_g[::-1]]
    delta = np.concatenate([MODERATE, EXTREME])
    log_w1, log_w0 = inv_temp_log_conditionals(delta, log_g)
    again_w1, again_w0 = inv_temp_log_conditionals(-delta, reverse)
    np.testing.assert_allclose(log_w1, again_w0, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(log_w0, again_w1, rtol=1e-12, atol=1e-12)


LADDERS: dict[str, LogG] = {
    "two": ((0.0, 0.0), (1.0, 0.0)),
    "uneven": ((0.0, -1.0), (0.1, 2.0), (0.6, 0.5), (1.0, 3.0)),
    "fine": tuple((k / 39, 5 * (k / 39) ** 2) for k in range(40)),
}


@pytest.mark.parametrize("name", LADDERS)
def test_ladder_by_enumeration(name: str) -> None:
    log_g = LADDERS[name]
    log_w1, log_w0 = inv_temp_log_conditionals(MODERATE, log_g, ladder=True)
    for index, delta in enumerate(MODERATE):
        mass = [math.exp(value - beta * delta) for beta, value in log_g]
        assert math.exp(log_w1[index]) == pytest.approx(mass[-1] / sum(mass), rel=1e-12)
        assert math.exp(log_w0[index]) == pytest.approx(mass[0] / sum(mass), rel=1e-12)


@pytest.mark.parametrize("name", LADDERS)
def test_ladder_at_extreme_ratios(name: str) -> None:
    """One end has all the mass, and the other end's share is the ratio of the two."""
    log_g = LADDERS[name]
    log_w1, log_w0 = inv_temp_log_conditionals(EXTREME, log_g, ladder=True)
    ratio = log_g[-1][1] - log_g[0][1] - EXTREME
    np.testing.assert_allclose(log_w1 - log_w0, ratio, rtol=1e-12)
    for index, delta in enumerate(EXTREME):
        nearest = log_w0 if delta > 0 else log_w1
        assert -1e-5 < nearest[index] <= 0


def test_a_fine_ladder_tends_to_the_continuous_path() -> None:
    log_g = [(beta, math.cos(3 * beta)) for beta in np.linspace(0, 1, 2001).tolist()]
    delta = np.array([-20.0, -1.0, 0.0, 3.0, 20.0])
    for ladder, path in zip(
        inv_temp_log_conditionals(delta, log_g, ladder=True),
        inv_temp_log_conditionals(delta, log_g),
        strict=True,
    ):
        # Probabilities of a rung against densities; the ends' rungs count whole, not half.
        np.testing.assert_allclose(ladder + math.log(2000), path, atol=0.02)


def test_shapes_are_kept() -> None:
    for shape in ((), (3,), (2, 5), (2, 5, 3)):
        for ladder in (False, True):
            for log_w in inv_temp_log_conditionals(np.zeros(shape), ladder=ladder):
                assert log_w.shape == shape


@pytest.mark.parametrize(
    ("delta", "log_g", "message"),
    [
        ([0.0, np.nan], ((0, 0), (1, 0)), "Delta"),
        ([-np.inf], ((0, 0), (1, 0)), "Delta"),
        ([0.0], ((0, 0),), "2 knots"),
        ([0.0], (), "2 knots"),
        ([0.0], ((0, 0, 1), (1, 0, 1)), "2 knots"),
        ([0.0], ((0.1, 0), (1, 0)), "from beta = 0 to 1"),
        ([0.0], ((0, 0), (0.9, 0)), "from beta = 0 to 1"),
        ([0.0], ((0, 0), (0, 1), (1, 0)), "ascend"),
        ([0.0], ((0, 0), (1, np.nan)), "finite"),
        ([0.0], ((0, 0), (1, -np.inf)), "finite"),
    ],
)
def test_bad_input_is_refused(delta: npt.ArrayLike, log_g: LogG, message: str) -> None:
    for ladder in (False, True):
        with pytest.raises(DataError, match=message):
            inv_temp_log_conditionals(delta, log_g, ladder=ladder)
