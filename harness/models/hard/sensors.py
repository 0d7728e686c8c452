"""Positions of sensors from distances between them: data for ``stan/sensors``.

The distance d of two sensors is observed with probability exp(-d^2 / 2R^2), and then it is
N(d, sigma^2).

References
----------
Ihler, A. T., Fisher, J. W., Moses, R. L. and Willsky, A. S. (2005). Nonparametric belief
propagation for self-localization of sensor networks. IEEE Journal on Selected Areas in
Communications 23(4), 809-819.

Tak, H., Meng, X.-L. and van Dyk, D. A. (2018). A repelling-attracting Metropolis algorithm for
multimodality. Journal of Computational and Graphical Statistics 27(3), 479-490.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from harness.folders import shipped
from harness.model import Model, ModeTest, TrueValue, Truth
from harness.model.truth import Expectations
from harness.models.hard.events import one_of, side_by_side
from harness.models.hard.files import read_json

_Coordinates = tuple[Any, Any]
"""Of a point in the plane: numbers, or arrays of shape (chain, draw)."""


def sensors_8d() -> Model:
    """Return the posterior of 4 sensors, from 7 distances, with a prior N(0, 10^2 I).

    The eight events say on which side of a line sensors 1, 3 and 4 lie.
    """
    names = tuple(f"sides {n >> 2}{n >> 1 & 1}{n & 1}" for n in range(8))
    value = np.array([0.0754, 0.1546, 0.1399, 0.1236, 0.1236, 0.1432, 0.1614, 0.0783])
    test = ModeTest(names, _sides_8d, TrueValue(value, np.full(8, 0.0013)), exclusive=True)
    truth = Truth("importance sampling", partial(TrueValue, -37.928, 0.003), _expectations_8d, test)
    return _model("sensors-8d", "modified_8d", True, truth)


def sensors_16d() -> Model:
    """Return the posterior of 8 sensors, from 18 distances, with a flat prior.

    Z is the integral with respect to Lebesgue measure.  The two events say that sensors 6 and 8 lie
    on the left of lines through sensor 5.
    """
    test = ModeTest(
        ("sensor 6 is left of 5 to 9", "sensor 8 is left of 5 to 11"),
        _sides_16d,
        TrueValue(np.array([0.10, 0.882]), np.array([0.01, 0.004])),
    )
    truth = Truth("importance sampling", partial(TrueValue, -14.80, 0.02), None, test)
    return _model("sensors-16d", "original_16d", False, truth)


def _model(name: str, entry: str, with_prior: bool, truth: Truth) -> Model:
    file = read_json("sensors.json")
    found = file[entry]
    count = len(found["unknown"])
    data = {
        "S": count,
        "A": len(found["anchors"]),
        "known": list(found["anchors"].values()),
        "O": len(found["observed"]),
        "observed": [pair[:2] for pair in found["observed"]],
        "y": [pair[2] for pair in found["observed"]],
        "M": len(found["unobserved"]),
        "missed": found["unobserved"],
        "R": file["R"],
        "sigma": file["sigma"],
    }
    # The program without a prior differs in nothing else.
    folder = "sensors" if with_prior else "sensors_flat"
    return Model(
        name,
        shipped("stan") / folder,
        data,
        ("x",),
        2 * count,
        own_base="prior" if with_prior else "improper",
        truth=truth,
    )


def _expectations_8d() -> Expectations:
    mean = np.array([[0.276, 0.738], [0.534, 0.224], [0.513, 0.269], [0.408, 0.471]])
    return {"x": TrueValue(mean, np.full(mean.shape, 0.002))}


def _sides_8d(draws: xr.Dataset) -> xr.DataArray:
    at = _positions(draws)
    five, six = _known("modified_8d", "5"), _known("modified_8d", "6")
    number = 4 * _left(five, six, at[0]) + 2 * _left(five, six, at[2]) + _left(at[0], at[2], at[3])
    return one_of(number, 8)


def _sides_16d(draws: xr.Dataset) -> xr.DataArray:
    at = _positions(draws)
    return side_by_side(
        _left(at[4], _known("original_16d", "9"), at[5]),
        _left(at[4], _known("original_16d", "11"), at[7]),
    )


def _positions(draws: xr.Dataset) -> list[_Coordinates]:
    """Return the coordinates of each sensor, each of shape (chain, draw)."""
    x = draws["x"]
    sensor, axis = (dim for dim in x.dims if dim not in ("chain", "draw"))
    return [
        (at.isel({axis: 0}), at.isel({axis: 1}))
        for at in (x.isel({sensor: number}) for number in range(x.sizes[sensor]))
    ]


def _known(entry: str, name: str) -> _Coordinates:
    x, y = read_json("sensors.json")[entry]["anchors"][name]
    return x, y


def _left(start: _Coordinates, end: _Coordinates, point: _Coordinates) -> xr.DataArray:
    """Return whether a point lies on the left of the line from start to end."""
    (a, b), (c, d), (x, y) = start, end, point
    side: xr.DataArray = (c - a) * (y - b) - (d - b) * (x - a) > 0
    return side
