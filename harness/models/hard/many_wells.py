"""Pairs of a tilted double well and a Gaussian: data and truth for ``stan/many_wells``.

References
----------
Midgley, L. I., Stimper, V., Simm, G. N. C., Schölkopf, B. and Hernández-Lobato, J. M. (2023). Flow
annealed importance sampling bootstrap. International Conference on Learning Representations.

Blessing, D., Jia, X., Esslinger, J., Vargas, F. and Neumann, G. (2024). Beyond ELBOs: a large-scale
evaluation of variational methods for sampling. International Conference on Machine Learning.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import xarray as xr

from harness.arrays import FloatArray
from harness.folders import shipped
from harness.model import Model, ModeTest, TrueValue, Truth
from harness.model.truth import Expectations

_REACH = 4.0
"""The density of a well is below exp(-150) of its peak beyond this."""
_POINTS = 20_001


def _log_well(a: FloatArray) -> FloatArray:
    return np.asarray(0.5 * a + 6 * a**2 - a**4)


@cache
def _moments(points: int) -> tuple[float, FloatArray]:
    """Return the integral of a well, and E a, E a^2 and P(a > 0), by the trapezoidal rule."""
    a, step = np.linspace(-_REACH, _REACH, points, retstep=True)
    density = np.exp(_log_well(a)) * step
    # The step at 0 is a point of the grid: half of its mass is on either side.
    positive = np.where(a == 0, 0.5, a > 0)
    mass = float(density.sum())
    return mass, np.array([density @ a, density @ a**2, density @ positive]) / mass


def _moment(which: int) -> TrueValue[float]:
    value, coarse = (float(_moments(points)[1][which]) for points in (_POINTS, _POINTS // 2 + 1))
    return TrueValue(value, abs(value - coarse))


def _log_evidence(pairs: int) -> TrueValue[float]:
    fine, coarse = (
        pairs * (np.log(_moments(points)[0]) + 0.5 * np.log(2 * np.pi))
        for points in (_POINTS, _POINTS // 2 + 1)
    )
    return TrueValue(float(fine), abs(float(fine - coarse)))


def _expectations(pairs: int) -> Expectations:
    values = {"a": _moment(0), "a_squared": _moment(1), "b": (0.0, 0.0), "b_squared": (1.0, 0.0)}
    return {
        name: TrueValue(np.full(pairs, value), np.full(pairs, error))
        for name, (value, error) in values.items()
    }


def _draw(pairs: int, count: int, rng: np.random.Generator) -> FloatArray:
    """Draw wells by rejection from two Gaussians near their bottoms."""
    kept = np.empty(0)
    while len(kept) < count * pairs:
        a = rng.choice(_BOTTOMS, size=count * pairs, p=_SHARES)
        a = a + _SD * rng.standard_normal(len(a))
        log_ratio = _log_well(a) - _log_proposal(a)
        kept = np.append(kept, a[np.log(rng.random(len(a))) < log_ratio - _LARGEST])
    return np.hstack([kept[: count * pairs].reshape(count, pairs), rng.normal(size=(count, pairs))])


_BOTTOMS, _SHARES, _SD = np.array([-1.7108, 1.7525]), np.array([0.2, 0.8]), 0.35


def _log_proposal(a: FloatArray) -> FloatArray:
    """Log density of the two Gaussians, but for a constant."""
    distance = (np.asarray(a)[..., None] - _BOTTOMS) / _SD
    return np.asarray(np.logaddexp.reduce(np.log(_SHARES) - 0.5 * distance**2, axis=-1))


def _largest_ratio() -> float:
    """Largest log ratio of a well to the proposal; a margin covers what is between grid points."""
    a = np.linspace(-_REACH, _REACH, _POINTS)
    return float(np.max(_log_well(a) - _log_proposal(a))) + 1e-4


_LARGEST = _largest_ratio()


def right_wells(draws: xr.Dataset) -> xr.DataArray:
    """Return whether each a is in its right well."""
    return xr.DataArray(draws["a"].to_numpy() > 0, dims=("chain", "draw", "event")).astype(float)


def _mode_test(pairs: int) -> ModeTest:
    value, error = _moment(2)
    return ModeTest(
        tuple(f"a[{i + 1}] > 0" for i in range(pairs)),
        right_wells,
        TrueValue(np.full(pairs, value), np.full(pairs, error)),
    )


def many_wells(pairs: int = 16) -> Model:
    """Return the target of 2^P modes: log density 0.5 a + 6 a^2 - a^4 - b^2 / 2 for each pair.

    It is not normalised, and has no prior.  ``a``, ``b`` and their squares are known, and that each
    a is positive with the same probability, .844.
    """
    return Model(
        f"many_wells_{2 * pairs}",
        shipped("stan") / "many_wells",
        {"P": pairs},
        ("a", "b"),
        2 * pairs,
        own_base="improper",
        truth=Truth(
            "a sum over a grid for each coordinate",
            partial(_log_evidence, pairs),
            partial(_expectations, pairs),
            _mode_test(pairs),
            partial(_draw, pairs),
        ),
    )
