"""Densities with known integrals on which estimates of log Z are tested, without constants.

They are the targets of Murray's comparison of nested sampling, annealing and multicanonical
sampling: a Gaussian, a product of Student t distributions, two Gaussians of unequal widths, and
lattices of thousands of narrow Gaussians that deceive what looks at them from afar.

References
----------
Murray, I. (2007). Advances in Markov chain Monte Carlo methods. PhD thesis, University College
London, section 4.8.1.

Neal, R. M. (2001). Annealed importance sampling. Statistics and Computing 11, 125-139 (the two
Gaussians).

Neal, R. M. (1996). Sampling from multimodal distributions using tempered transitions. Statistics
and Computing 6, 353-366 (the lattices).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import xarray as xr

from harness.arrays import FloatArray
from harness.folders import shipped
from harness.model import Model, ModeTest, TrueValue, Truth
from harness.model.truth import without_error

QUADRANTS = ("upper left", "upper right", "lower left", "lower right")
_SIGMA = 0.001
_LATTICE = {
    "half": np.array([5, 5, 22, 22]),
    "spacing": np.array([0.15, 0.0025, 0.0025, 0.15]),
    "centre": np.array([[-15.0, 15.0], [15.0, 15.0], [-15.0, -15.0], [15.0, -15.0]]),
    "sigma": _SIGMA,
}
"""The lattices in the order of :data:`QUADRANTS`."""


def gaussian_kernel(dimension: int = 10, precision: float = 1.0) -> Model:
    """Return exp(-precision |x|^2 / 2), whose integral is (2 pi / precision)^(D / 2)."""
    log_z = 0.5 * dimension * math.log(2 * math.pi / precision)
    return _model(
        f"gaussian_kernel_{dimension}",
        "gaussian_kernel",
        {"D": dimension, "tau": precision},
        dimension,
        log_z,
        partial(_gaussian_draws, dimension, 1 / math.sqrt(precision)),
    )


def student_product(dimension: int = 10, degrees: float = 5.0) -> Model:
    """Return prod_d (1 + x_d^2 / nu)^(-(nu + 1) / 2), independent Student t distributions."""
    log_z = dimension * (
        0.5 * math.log(math.pi * degrees)
        + math.lgamma(degrees / 2)
        - math.lgamma((degrees + 1) / 2)
    )
    return _model(
        f"student_product_{dimension}",
        "student_product",
        {"D": dimension, "nu": degrees},
        dimension,
        log_z,
        partial(_student_draws, dimension, degrees),
    )


def elliptical_student_log_evidence(dimension: int = 10, degrees: float = 5.0) -> float:
    """Return the log integral of (1 + |x|^2 / nu)^(-(nu + D) / 2), the multivariate t instead."""
    return (
        0.5 * dimension * math.log(math.pi * degrees)
        + math.lgamma(degrees / 2)
        - math.lgamma((degrees + dimension) / 2)
    )


def two_widths(dimension: int = 6) -> Model:
    """Return a wide Gaussian about (1, ..., 1) plus a narrow and high one about (-1, ..., -1).

    Their standard deviations are 0.1 and 0.05 and their heights 1 and 128, so that in six
    dimensions the wide one has a third of the mass.
    """
    centre, sd = np.array([1.0, -1.0]), np.array([0.1, 0.05])
    log_height = np.log([1.0, 128.0])
    log_mass = log_height + dimension * np.log(math.sqrt(2 * math.pi) * sd)
    log_z = float(np.logaddexp.reduce(log_mass))
    share = np.exp(log_mass - log_z)
    draw = partial(_two_widths_draws, dimension, centre, sd, share)
    test = ModeTest(("wide", "narrow"), _both_sides, without_error(share), exclusive=True)
    data = {"D": dimension, "centre": centre, "sd": sd, "log_height": log_height}
    return _model(f"two_widths_{dimension}", "two_widths", data, dimension, log_z, draw, test)


def deceptive() -> Model:
    """Return 4,292 Gaussians of width 0.001 on four square lattices, one in each quadrant.

    Those above hold 121 each and those below 2,025, but a coarse lattice lies beside a fine one
    of as many: from afar, the fine ones seem higher.
    """
    half = np.asarray(_LATTICE["half"])
    number = (2 * half + 1) ** 2
    log_z = math.log(number.sum() * 2 * math.pi * _SIGMA**2)
    share = without_error(number / number.sum())
    test = ModeTest(QUADRANTS, _each_quadrant, share, exclusive=True)
    return _model("deceptive", "deceptive", {"G": 4, **_LATTICE}, 2, log_z, _lattice_draws, test)


def quadrants(points: FloatArray) -> FloatArray:
    """Return which of :data:`QUADRANTS` points (..., 2) are in, 0 or 1, shape (..., 4)."""
    right, upper = points[..., 0] > 0, points[..., 1] > 0
    inside = np.stack([~right & upper, right & upper, ~right & ~upper, right & ~upper], axis=-1)
    return inside.astype(np.float64)


def sides(points: FloatArray) -> FloatArray:
    """Return whether the mean of a point's coordinates is positive, and whether it is not.

    Points have shape (..., D), and what is returned (..., 2).
    """
    positive = points.mean(axis=-1) > 0
    return np.stack([positive, ~positive], axis=-1).astype(np.float64)


def _gaussian_draws(dimension: int, sd: float, count: int, rng: np.random.Generator) -> FloatArray:
    return sd * rng.standard_normal((count, dimension))


def _student_draws(
    dimension: int, degrees: float, count: int, rng: np.random.Generator
) -> FloatArray:
    return rng.standard_t(degrees, (count, dimension))


def _two_widths_draws(
    dimension: int,
    centre: FloatArray,
    sd: FloatArray,
    share: FloatArray,
    count: int,
    rng: np.random.Generator,
) -> FloatArray:
    mode = rng.choice(2, size=count, p=share)[:, None]
    return np.asarray(centre[mode] + sd[mode] * rng.standard_normal((count, dimension)))


def _lattice_draws(count: int, rng: np.random.Generator) -> FloatArray:
    half = np.asarray(_LATTICE["half"])
    number = (2 * half + 1) ** 2
    lattice = rng.choice(4, size=count, p=number / number.sum())
    place = rng.integers(-half[lattice], half[lattice] + 1, size=(2, count)).T
    centre = np.asarray(_LATTICE["centre"])[lattice]
    mean = centre + place * np.asarray(_LATTICE["spacing"])[lattice, None]
    return np.asarray(mean + _SIGMA * rng.standard_normal((count, 2)))


def _each_quadrant(draws: xr.Dataset) -> xr.DataArray:
    return xr.DataArray(quadrants(draws["x"].to_numpy()), dims=("chain", "draw", "event"))


def _both_sides(draws: xr.Dataset) -> xr.DataArray:
    return xr.DataArray(sides(draws["x"].to_numpy()), dims=("chain", "draw", "event"))


def _model(
    name: str,
    folder: str,
    data: Mapping[str, object],
    dimension: int,
    log_z: float,
    draw: Callable[[int, np.random.Generator], FloatArray],
    mode_test: ModeTest | None = None,
) -> Model:
    truth = Truth("closed form", partial(TrueValue, log_z, 0.0), None, mode_test, draw)
    return Model(
        name, shipped("stan") / folder, data, ("x",), dimension, own_base="improper", truth=truth
    )


EVIDENCE_TARGETS: Mapping[str, Callable[[], Model]] = {
    "gaussian": gaussian_kernel,
    "student": student_product,
    "two-widths": two_widths,
    "deceptive": deceptive,
}
"""Makes each target, by a short name."""
