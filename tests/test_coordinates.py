"""Base coordinates: order, logarithms, boxes, and the way to Stan's unconstrained space."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from log_gaussian import log_gaussian
from scipy.integrate import quad
from stan_density import into_box, log_box_jacobian

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.model import Model
from harness.model.coordinates import StanCoordinates, flatten, unflatten


def model(**changes: Any) -> Model:
    settings: dict[str, Any] = {
        "parameters": ("a", "b", "c"),
        "dimension": 9,
        "transforms": {"b": "log"},
        "bounds": {"c": (-1.0, 3.0)},
    }
    return Model("some model", Path(), {}, **{**settings, **changes})


SHAPES = {"a": (2, 3), "b": (), "c": (2,)}


def draws(*leading: int) -> dict[str, FloatArray]:
    rng = np.random.default_rng(sum(leading))
    return {
        "a": rng.normal(size=(*leading, 2, 3)),
        "b": rng.uniform(0.1, 5, size=leading),
        "c": rng.uniform(-1, 3, size=(*leading, 2)),
    }


@pytest.mark.parametrize("leading", [(), (7,), (2, 5)])
def test_coordinates_are_in_stans_column_major_order(leading: tuple[int, ...]) -> None:
    values = draws(*leading)
    points = flatten(model(), {**values, "log_weight": np.zeros(3)}, leading=len(leading))
    assert points.shape == (*leading, 9)
    for index in np.ndindex(*leading):
        expected = [
            *values["a"][index].ravel(order="F"),
            np.log(values["b"][index]),
            *values["c"][index],
        ]
        np.testing.assert_allclose(points[index], expected, rtol=1e-15)
    back = unflatten(model(), points, SHAPES)
    for name, value in values.items():
        np.testing.assert_allclose(back[name], value, rtol=1e-14)


def test_stans_unconstrained_space_differs_in_the_box_alone() -> None:
    rng = np.random.default_rng(5)
    coordinates = StanCoordinates(model(), SHAPES)
    stan = rng.normal(scale=3, size=(6, 9))
    base = coordinates.to_base(stan)
    assert np.array_equal(base[:, :7], stan[:, :7])
    np.testing.assert_allclose(base[:, 7:], into_box(stan[:, 7:], -1, 3), rtol=1e-14)
    np.testing.assert_allclose(coordinates.to_stan(base), stan, rtol=1e-9)
    assert coordinates.inside(base).all()
    far = coordinates.to_base(np.full(9, -800.0))
    assert np.array_equal(far[7:], [-1, -1])
    assert not coordinates.inside(far)
    outside = base.copy()
    outside[0, 8], outside[1, 7], outside[2, 0] = 3.0, -1.5, np.nan
    assert coordinates.inside(outside).tolist() == [False] * 3 + [True] * 3


def test_a_density_is_carried_into_the_box_with_its_gradient() -> None:
    rng = np.random.default_rng(6)
    coordinates = StanCoordinates(model(), SHAPES)
    tilt = rng.normal(size=9)

    def on_box(base: FloatArray) -> FloatArray:  # log density in base coordinates
        return np.asarray(base @ tilt + np.sin(base).sum(axis=-1))

    stan = rng.normal(size=(5, 9))
    base = coordinates.to_base(stan)
    slope = np.ones((5, 9))
    slope[:, 7:] = (base[:, 7:] + 1) * (3 - base[:, 7:]) / 4  # d base / d stan of a scaled logit
    log_jacobian = np.array([log_box_jacobian(row[7:], -1, 3) for row in stan])
    curve = np.zeros((5, 9))
    curve[:, 7:] = 1 - (base[:, 7:] + 1) / 2  # derivative of log slope in stan
    in_stan = (tilt + np.cos(base)) * slope + curve
    value, gradient = coordinates.density_on_base(stan, on_box(base) + log_jacobian, in_stan)
    np.testing.assert_allclose(value, on_box(base), rtol=1e-12)
    np.testing.assert_allclose(gradient, tilt + np.cos(base), rtol=1e-10)


def test_a_density_keeps_its_mass_on_the_way_into_the_box() -> None:
    one = model(parameters=("c",), dimension=1, transforms={}, bounds={"c": (-1.0, 3.0)})
    coordinates = StanCoordinates(one, {"c": ()})

    def density(base: float) -> float:  # of a standard normal on Stan's line
        stan = coordinates.to_stan(np.array([base]))
        value, _ = coordinates.density_on_base(
            stan, np.asarray(-0.5 * stan[0] ** 2 - 0.5 * np.log(2 * np.pi)), -stan
        )
        return float(np.exp(value))

    assert quad(density, -1, 3, epsabs=1e-10)[0] == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize(
    ("values", "leading", "message"),
    [
        ({"b": None}, 1, "parameter b"),
        ({"b": np.ones(3)}, 1, "leading axes"),
        ({"b": np.ones(4)}, 2, "leading axes"),
        ({"b": np.array([1.0, 2.0, 0.0, 1.0])}, 1, "b of some model must be positive"),
        ({"b": np.full(4, np.nan)}, 1, "must be positive"),
        ({"c": np.full((4, 2), 3.5)}, 1, r"c of some model must lie in \[-1.0, 3.0\]"),
        ({"c": np.zeros((4, 3))}, 1, "have 10 coordinates"),
    ],
)
def test_draws_that_do_not_fit_are_refused(
    values: dict[str, Any], leading: int, message: str
) -> None:
    given = {name: value for name, value in {**draws(4), **values}.items() if value is not None}
    with pytest.raises(DataError, match=message):
        flatten(model(), given, leading=leading)


def test_points_and_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="9 coordinates"):
        unflatten(model(), np.zeros((4, 8)), SHAPES)
    with pytest.raises(DataError, match="its parameters have 10 values"):
        unflatten(model(), np.zeros((4, 9)), {**SHAPES, "c": (3,)})
    with pytest.raises(DataError, match="parameter c is missing"):
        StanCoordinates(model(), {"a": (2, 3), "b": ()})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transforms": {"z": "log"}}, "no parameter z"),
        ({"bounds": {"z": (0, 1)}}, "no parameter z"),
        ({"transforms": {"b": "logit"}}, "one of identity, log; got 'logit'"),
        ({"transforms": {"c": "log"}}, "c has bounds"),
        ({"bounds": {"c": (1.0, 1.0)}}, "ascend and be finite"),
        ({"bounds": {"c": (0.0, np.inf)}}, "ascend and be finite"),
        ({"bounds": {"c": (np.nan, 1.0)}}, "ascend and be finite"),
    ],
)
def test_models_that_contradict_themselves_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        model(**changes)


def test_a_model_says_nothing_of_coordinates_unless_it_must() -> None:
    plain = model(transforms={}, bounds={})
    values = draws(4)
    assert np.array_equal(flatten(plain, values, leading=1)[:, 6], values["b"])
    assert log_gaussian()[0].transforms == {"scale": "log"}
