"""Tempered programs of the stamps' mixture against SciPy, in both parametrisations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from path_densities import (
    Ends,
    check_collapsed,
    check_joint,
    check_pseudo_extended,
    collapsed_density,
    joint_density,
    pseudo_density,
    stacked,
)
from scipy.stats import dirichlet, gamma, multivariate_normal, norm

from harness.arrays import FloatArray
from harness.forms.base_mass import measured_base_mass
from harness.model.numpy_density import target_density
from harness.models.stamps import Stamps, from_raw, to_raw
from harness.path import gaussian_base

# Few enough that posterior and prior are both of some size at the same points.
DATA = Stamps(np.array([7.0, 7.4, 8.1, 9.7, 10.0]), np.array([3.0, 1, 4, 1, 2]))
MODELS = {False: DATA.model("small"), True: DATA.model("small, raw", raw=True)}
SIZES = [3, 3, 2, 1]
INSIDE = np.array([7.1, 8.0, 9.8, 3.0, 2.5, 0.9, 0.25, 0.45, 0.7])
BASES = {
    False: gaussian_base(from_raw(INSIDE), np.diag(np.arange(1.0, 10)) + 0.3, log_zeta=-20.5),
    True: gaussian_base(INSIDE, 0.2 * np.eye(9) + 0.1, log_zeta=-20.5),
}
KNOTTED = ((0.0, 1.0), (0.2, -0.5), (0.7, 0.4), (1.0, 2.0))
RAW = pytest.mark.parametrize("raw", [False, True], ids=["unconstrained", "raw"])
PATHS = pytest.mark.parametrize("name", ["prior", "Gaussian, knotted g"])


def path_of(name: str, *, raw: bool) -> dict[str, Any]:
    return {"log_zeta": -19.0} if name == "prior" else {"base": BASES[raw], "log_g": KNOTTED}


def points(count: int, *, raw: bool) -> FloatArray:
    """Points inside the support, in the program's coordinates."""
    near = from_raw(INSIDE) + np.random.default_rng(2).normal(0, 0.3, (count, 9))
    return to_raw(near) if raw else near


def ends_of(name: str, *, raw: bool) -> Ends:
    """Log target and log base, factor by factor; unconstrained with the Jacobians."""
    base = BASES[raw]
    gaussian = multivariate_normal(base.mean, base.covariance)

    def ends(u: FloatArray) -> tuple[float, float]:
        natural = u if raw else to_raw(u)
        mu, lam, rate = natural[:3], natural[3:6], natural[8]
        z = np.append(natural[6:8], 1 - natural[6:8].sum())
        each = (z * norm.pdf(DATA.thickness[:, None], mu, 1 / np.sqrt(lam))).sum(axis=1)
        log_prior = (
            norm.logpdf(mu, DATA.centre, DATA.spread / 2).sum()
            + gamma.logpdf(lam, 2, scale=1 / rate).sum()
            + gamma.logpdf(rate, 0.2, scale=DATA.spread**2 / 10)
            + dirichlet.logpdf(z / z.sum(), np.ones(3))
        )
        if not raw:
            log_prior += np.log(lam).sum() + np.log(rate) + np.log(z).sum()
        log_base = log_prior if name == "prior" else gaussian.logpdf(u)
        return float(DATA.count @ np.log(each) + log_prior), float(log_base)

    return ends


@RAW
@PATHS
@pytest.mark.parametrize("inv_temp", [None, 0.0, 0.35, 1.0])
def test_joint_tempering(raw: bool, name: str, inv_temp: float | None) -> None:
    ends = ends_of(name, raw=raw)
    check_joint(MODELS[raw], ends, path_of(name, raw=raw), inv_temp, points(3, raw=raw))


@RAW
@PATHS
@pytest.mark.parametrize("ladder", [False, True])
def test_collapsed_tempering(raw: bool, name: str, ladder: bool) -> None:
    ends = ends_of(name, raw=raw)
    path = path_of(name, raw=raw)
    check_collapsed(MODELS[raw], ends, path, points(3, raw=raw), ladder=ladder)


@RAW
@PATHS
@pytest.mark.parametrize("ladder", [None, [0.0, 0.8]])
def test_pseudo_extended(raw: bool, name: str, ladder: list[float] | None) -> None:
    ends, path = ends_of(name, raw=raw), path_of(name, raw=raw)
    pairs = points(4, raw=raw).reshape(2, 2, 9)
    check_pseudo_extended(MODELS[raw], ends, path, ladder, pairs, SIZES)


OUTSIDE = [(3, -0.2), (5, 0.0), (6, 0.9), (7, -0.1), (8, -0.1)]
"""A coordinate and its value: negative precision, zero precision, weights, rate."""


@PATHS
def test_outside_of_the_support_no_form_has_a_density(name: str) -> None:
    """At beta = 0 as well: minus infinity, and nowhere 0 times infinity.

    The same point with the other coordinates inside has a density, and one pseudo-sample outside
    is enough.
    """
    model, path = MODELS[True], path_of(name, raw=True)
    densities = [joint_density(model, path, inv_temp) for inv_temp in (0.0, 0.35, 1.0)]
    densities += [collapsed_density(model, path, ladder=ladder) for ladder in (False, True)]
    pseudo = [pseudo_density(model, path, ladder) for ladder in ([0.0, 0.8], [0.0, 0.0])]
    for coordinate, value in OUTSIDE:
        out = INSIDE.copy()
        out[coordinate] = value
        for density in densities:
            assert np.isfinite(density.value(INSIDE))
            assert density.value(out) == -np.inf
        for both in pseudo:
            assert np.isfinite(both.value(stacked(np.array([[INSIDE, INSIDE]]), SIZES)[0]))
            for pair in ([out, INSIDE], [INSIDE, out], [out, out]):
                assert both.value(stacked(np.array([pair]), SIZES)[0]) == -np.inf


def test_the_share_of_a_gaussian_base_inside() -> None:
    """What corrects log Z: the program at beta = 0 over the Gaussian is the indicator.

    The share that the library measures is that of independent draws: 20,000 of them, and the
    library's 4,096, each with a binomial error; 4 of both together.
    """
    model, base = MODELS[True], BASES[True]
    draws = base.sample(np.random.default_rng(5), 20_000)
    z, rest = draws[:, 6:8], draws[:, [3, 4, 5, 6, 7, 8]]
    share = ((rest > 0).all(axis=1) & (z.sum(axis=1) < 1)).mean()
    assert 0.05 < share < 0.95
    found = measured_base_mass(model, base, target_density(model), seed=1).mass
    assert found is not None
    error = np.sqrt((1 - share) / share * (1 / 20_000 + 1 / 4096))
    assert abs(found.value - np.log(share)) < 4 * error
    assert found.mcse == pytest.approx(np.sqrt((1 - share) / share / 4096), rel=0.3)
    at_zero = joint_density(model, {"base": base}, 0.0)
    for draw in draws[:20]:
        inside = bool(np.all(draw[3:] > 0) and draw[6:8].sum() < 1)
        wanted = float(base.log_density(draw)) if inside else -np.inf
        assert at_zero.value(draw) == pytest.approx(wanted, rel=1e-12)
