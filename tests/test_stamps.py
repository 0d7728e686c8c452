"""The stamps' mixture: densities against Stan and against the equation, symmetry and data."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from scipy.optimize import approx_fprime
from scipy.stats import dirichlet, gamma, norm

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.folders import shipped
from harness.model.density import TargetDensity
from harness.models import stamps as module
from harness.models.stamps import (
    LABEL_ORDERS,
    ORDERS,
    Stamps,
    from_raw,
    load_stamps,
    quantities,
    relabelled,
    stamps,
    to_raw,
)

MODE = np.array([7.17, 7.9, 9.92, 34, 23.5, 0.54, 0.23, 0.34, 0.11])


def points(count: int = 6) -> FloatArray:
    """Points about the posterior's mode, in logarithms and logits."""
    return from_raw(MODE) + np.random.default_rng(1).normal(0, 0.2, (count, 9))


def test_the_shipped_data() -> None:
    data = load_stamps()
    assert data.count.sum() == 486
    assert len(data.thickness) == 62
    assert data.spread == pytest.approx(7.1)
    assert data.centre == pytest.approx(8.605, abs=1e-3)


def test_a_changed_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = shipped("data") / "stamps" / "hidalgo_stamps.csv"
    monkeypatch.setattr(module, "shipped", lambda folder: tmp_path / folder)
    with pytest.raises(DataError, match="cannot read"):
        load_stamps()
    copy = tmp_path / "data" / "stamps" / "hidalgo_stamps.csv"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(original.read_bytes().replace(b"\n", b"\r\n"))
    assert load_stamps().count.sum() == 486
    copy.write_bytes(original.read_bytes().replace(b"0.07,", b"0.17,", 1))
    with pytest.raises(DataError, match="not the file that came with harness"):
        load_stamps()


@pytest.mark.parametrize(
    ("thickness", "count", "components", "message"),
    [
        ([1.0, 2.0], [1.0], 3, "one count for each thickness"),
        ([1.0, np.nan], [1.0, 1.0], 3, "must be finite"),
        ([1.0, 2.0], [1.0, 0.0], 3, "counts 1 or more"),
        ([1.0, 1.0], [1.0, 1.0], 3, "one thickness only"),
        ([1.0, 2.0], [1.0, 1.0], 1, "two components or more; got 1"),
    ],
)
def test_bad_data_are_refused(
    thickness: list[float], count: list[float], components: int, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        Stamps(np.array(thickness), np.array(count), components)


def test_the_density_is_that_of_the_equation() -> None:
    """Every factor by SciPy's densities, constants included."""
    data, raw = load_stamps(), to_raw(points(1)[0])
    mu, lam, rate = raw[:3], raw[3:6], raw[8]
    z = np.append(raw[6:8], 1 - raw[6:8].sum())
    each = (z * norm(mu, 1 / np.sqrt(lam)).pdf(data.thickness[:, None])).sum(axis=1)
    expected = (
        data.count @ np.log(each)
        + norm(data.centre, data.spread / 2).logpdf(mu).sum()
        + gamma(2, scale=1 / rate).logpdf(lam).sum()
        + gamma(0.2, scale=data.spread**2 / 10).logpdf(rate)
        + dirichlet(np.ones(3)).logpdf(z)
    )
    assert data.raw_log_density(raw[None])[0][0] == pytest.approx(expected, rel=1e-12)
    jacobian = np.log(lam).sum() + np.log(rate) + np.log(z).sum()
    assert data.log_density(points(1))[0][0] == pytest.approx(expected + jacobian, rel=1e-12)


@pytest.mark.parametrize("raw", [False, True])
def test_numpy_and_stan_agree(raw: bool) -> None:
    """Log density, constants included, and gradient."""
    data, at = load_stamps(), to_raw(points()) if raw else points()
    density = data.raw_log_density if raw else data.log_density
    ours = density(at)
    theirs = TargetDensity(stamps(raw=raw))(at)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-12)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-9, atol=1e-9)

    def value(x: FloatArray) -> float:
        return float(density(x[None])[0][0])

    slope = approx_fprime(at[0], value, 1e-7)
    # Forward differences of a value near -740: rounding 1e-13 x 740 / 1e-7, and half a step times
    # the curvature, which is below 1e5.
    np.testing.assert_allclose(ours[1][0], slope, atol=2e-2)


@pytest.mark.parametrize(
    ("coordinate", "value"), [(3, -1.0), (5, 0.0), (6, 0.9), (7, -0.1), (8, -0.1)]
)
def test_outside_of_the_support(coordinate: int, value: float) -> None:
    """Both say -inf with a gradient of zero, and leave other points alone."""
    at = to_raw(points(3))
    alone = load_stamps().raw_log_density(at[[0, 2]])
    at[1, coordinate] = value
    for density in (load_stamps().raw_log_density, TargetDensity(stamps(raw=True))):
        log_density, gradient = density(at)
        assert log_density[1] == -np.inf
        assert not gradient[1].any()
        np.testing.assert_allclose(log_density[[0, 2]], alone[0], rtol=1e-12)
    nowhere = np.full((2, 9), -1.0)
    assert np.all(load_stamps().raw_log_density(nowhere)[0] == -np.inf)


def test_far_away_the_density_is_minus_infinity() -> None:
    far = points(2)
    far[0, 3] = 2000
    value, gradient = load_stamps().log_density(far)
    assert value[0] == -np.inf
    assert not gradient[0].any()
    assert np.isfinite(value[1])


def test_coordinates_turn_into_each_other() -> None:
    np.testing.assert_allclose(from_raw(to_raw(points())), points(), rtol=1e-12)


def test_all_orders_of_the_components_are_alike() -> None:
    data, raw = load_stamps(), to_raw(points(4))
    value = data.log_density(from_raw(raw))[0]
    for order in itertools.permutations(range(3)):
        other = relabelled(raw, order)
        np.testing.assert_allclose(data.raw_log_density(other)[0], data.raw_log_density(raw)[0])
        np.testing.assert_allclose(data.log_density(from_raw(other))[0], value)
        np.testing.assert_allclose(quantities(other), quantities(raw))
    np.testing.assert_allclose(quantities(MODE), [0.23, 34, 7.17, 0.11])


def test_exactly_one_order_happens() -> None:
    """The event of an order happens at its own relabelling of ascending means."""
    raw = np.stack([relabelled(MODE, order) for order in ORDERS])
    draws = xr.Dataset({"mu": (("chain", "draw", "mu_dim_0"), raw[None, :, :3])})
    happens = LABEL_ORDERS.happens(draws).to_numpy()[0]
    assert np.all(happens.sum(axis=1) == 1)
    assert np.all(happens.sum(axis=0) == 1)
    first = LABEL_ORDERS.names[int(np.argmax(happens[ORDERS.index((1, 2, 0))]))]
    # Component 3 has the lowest mean, then 1, then 2.
    assert first == "mu 3 < 1 < 2"
    assert LABEL_ORDERS.probabilities.value.sum() == pytest.approx(1)
