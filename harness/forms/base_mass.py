"""Measure how much of a Gaussian base a tempered form reaches, from draws of the base."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray
from harness.evidence import LogMass, log_base_mass
from harness.forms.common import variant_data
from harness.forms.continuous_tempering import CollapsedTempering
from harness.model import Model
from harness.model.coordinates import StanCoordinates
from harness.model.density import StanDensity, TargetDensity
from harness.model.numpy_density import NumpyDensity
from harness.path import GaussianBase

_LOOK, _DRAWS = 512, 4096
"""Number of draws of the base at first, and if one of these turns out to be out of reach."""


@dataclass(frozen=True)
class MeasuredMass:
    """A share of a base's mass, and what it cost to measure.

    Attributes
    ----------
    mass
        None if the draws show no loss other than outside the model's bounds; that part is
        known more precisely than draws could tell.
    gradients
        Gradient evaluations of the target.
    seconds
        Wall time.
    """

    mass: LogMass | None
    gradients: int
    seconds: float


def measured_base_mass(
    model: Model,
    base: GaussianBase,
    density: NumpyDensity | TargetDensity,
    *,
    ladder: Mapping[str, Any] | None = None,
    seed: int,
) -> MeasuredMass:
    """Estimate the share of a Gaussian base's mass that a tempered form reaches.

    For inverse temperatures above 0, that is the part where the target's density is positive.  If
    beta is integrated out over a ladder, it also includes points where that density is zero, as
    long as the program does not reject the point and has a gradient there.  A share above 0.99 may
    pass for the whole.

    Parameters
    ----------
    model, base
        The model and the base of its path.
    density
        The model's target.
    ladder
        Data of the path (:func:`harness.forms.continuous_tempering.tempering_data`) for a form
        on a ladder; None for forms whose inverse temperature is above 0.
    seed
        Seed; the draws use a stream of their own.

    Raises
    ------
    DataError
        If none of the draws is reached.
    """
    started = time.perf_counter()
    rng = np.random.default_rng([seed, 6])
    gradients = 0
    for count in (_LOOK, _DRAWS):
        inside, reached = _reached(model, density, ladder, base.sample(rng, count))
        gradients += int(inside.sum())
        if np.array_equal(inside, reached):
            return MeasuredMass(None, gradients, time.perf_counter() - started)
    return MeasuredMass(log_base_mass(reached[None]), gradients, time.perf_counter() - started)


def _reached(
    model: Model,
    density: NumpyDensity | TargetDensity,
    ladder: Mapping[str, Any] | None,
    points: FloatArray,
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return whether points lie within the model's bounds, and whether they are reached."""
    coordinates = StanCoordinates(model, density.shapes)
    inside = coordinates.inside(points)
    reached = np.zeros(len(points), dtype=np.bool_)
    reached[inside] = np.isfinite(density(points[inside])[0])
    lost = inside & ~reached
    if ladder is not None and lost.any():
        data = variant_data(model, CollapsedTempering.name, ladder)
        program = StanDensity(model.program(CollapsedTempering.name), data)
        reached[lost] = has_density(program, coordinates.to_stan(points[lost]))
    return inside, reached


def has_density(program: StanDensity, unconstrained: FloatArray) -> npt.NDArray[np.bool_]:
    """Whether a program's log density and gradient are finite, so that NUTS can go there.

    Parameters
    ----------
    program
        The program with its data.
    unconstrained
        Points on Stan's unconstrained space, shape (n, D).

    Returns
    -------
    NDArray[bool]
        Shape (n,).
    """
    usable = np.zeros(len(unconstrained), dtype=np.bool_)
    for row, point in enumerate(unconstrained):
        try:
            value, gradient = program(point)
        except RuntimeError:  # the program rejects the point
            continue
        usable[row] = np.isfinite(value) and bool(np.all(np.isfinite(gradient)))
    return usable
