"""XY model on an L x L lattice: data for ``stan/xy_lattice`` and its truth.

    log density of the angles = J sum over neighbours a, b of cos(theta_a - theta_b),  J = 2.

Each spin is a point of the plane with a standard normal density, of which only the direction
matters.  The normal is normalised over the plane, and its angle is uniform, so Z of the program is
the integral over the angles divided by (2 pi)^(L^2).
"""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import xarray as xr

from harness.folders import shipped
from harness.model import Model, ModeTest, TrueValue, Truth
from harness.model.truth import Expectations
from harness.models.hard.events import one_of

STRENGTH = 2.0
"""J, of each bond."""


def xy_free(side: int = 8) -> Model:
    """Return the lattice with free boundaries.

    Log Z is known for sides of 4, 5, 6 and 8, and for 4 and 6 the expectation ``mean_cos`` of the
    mean of cos(theta_a - theta_b) over all bonds.
    """
    known = {
        4: (53.3876367, 1e-6),
        5: (86.600832, 2e-6),
        6: (127.853045, 2e-6),
        8: (234.48609, 5e-5),
    }
    mean_cos = {4: (0.824083, 1e-6), 6: (0.838033, 1e-6)}
    return _model(f"xy_free_{side}", side, False, known.get(side), mean_cos.get(side))


def xy_torus(side: int = 4) -> Model:
    """Return the lattice whose boundaries are glued together; log Z is known for a side of 4."""
    known = {4: (66.1350765, 1e-6)}
    mean_cos = {4: (0.874001, 1e-6)}
    return _model(f"xy_torus_{side}", side, True, known.get(side), mean_cos.get(side))


def bonds(side: int, *, periodic: bool) -> list[tuple[int, int]]:
    """Return pairs of neighbours; the site in row r and column c has number r * side + c."""
    pairs = []
    for row, column in product(range(side), repeat=2):
        for down, right in ((0, 1), (1, 0)):
            other = row + down, column + right
            if periodic or max(other) < side:
                pairs.append((row * side + column, other[0] % side * side + other[1] % side))
    return pairs


def _model(
    name: str,
    side: int,
    periodic: bool,
    log_integral: tuple[float, float] | None,
    mean_cos: tuple[float, float] | None,
) -> Model:
    pairs = np.array(bonds(side, periodic=periodic))
    count = side * side

    quarter = TrueValue(np.full(4, 0.25), np.zeros(4))
    names = tuple(f"magnetisation in quadrant {n + 1}" for n in range(4))
    truth = Truth(
        "transfer matrix over angle differences in a row; quadrants by symmetry",
        None if log_integral is None else partial(_log_evidence, log_integral, count),
        None if mean_cos is None else partial(_expectations, mean_cos),
        ModeTest(names, _quadrant, quarter, exclusive=True),
    )
    data = {"N": count, "B": len(pairs), "bond": pairs + 1, "J": STRENGTH}
    folder = shipped("stan") / "xy_lattice"
    return Model(name, folder, data, ("x",), 2 * count, own_base="prior", truth=truth)


def _log_evidence(log_integral: tuple[float, float], count: int) -> TrueValue[float]:
    value, error = log_integral
    return TrueValue(value - count * np.log(2 * np.pi), error)


def _expectations(mean_cos: tuple[float, float]) -> Expectations:
    return {"mean_cos": TrueValue(np.array(mean_cos[0]), np.array(mean_cos[1]))}


def _quadrant(draws: xr.Dataset) -> xr.DataArray:
    """Return which quarter of the circle the sum of all spins points to."""
    x = draws["x"]
    spin, axis = (str(dim) for dim in x.dims if dim not in ("chain", "draw"))
    direction = x / (x**2).sum(axis) ** 0.5
    total = direction.sum(spin)
    right, up = (1 * (total.isel({axis: number}) > 0) for number in range(2))
    return one_of(up * (1 - right) + (1 - up) * (2 + right), 4)
