"""Probabilities of modes by their masses, to compare with those by the draws.

A sampler may have been in every mode and still have stayed there for wrong shares of its draws.
The integral of the density around a peak does not depend on that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from harness.arrays import FloatArray, LogDensity
from harness.evidence import LogEvidence, equal_masses, normalised_weights, strata_errors
from harness.modes.local_mass import local_gaussian, mass_around, reach_of
from harness.seeds import derived_seed

_POINTS = 2000
_COVERED, _FOREIGN = 0.9, 0.02
"""A mode looks like its Gaussian if most of its own draws, and hardly any other ones, are around
its peak, beyond which its mass does not count."""


class ShareByMass(NamedTuple):
    """Probability of a mode by its mass."""

    probability: float
    error: float
    """Standard error of the probability."""
    log_mass: LogEvidence
    """Log of its mass, the integral of the density over it, which depends on no other mode's."""


def shares_by_mass(
    peaks: Mapping[int, FloatArray],
    points: FloatArray,
    labels: npt.NDArray[np.intp],
    weight: FloatArray,
    log_density: LogDensity,
    *,
    scale: FloatArray,
    error_of_sum: Callable[[FloatArray], float],
    families: Iterable[Sequence[int]],
    seed: int,
) -> dict[int, ShareByMass]:
    """Estimate probabilities of modes that draws are in by the integrals around their peaks.

    The integral is that over an ellipsoid around the peak.  The mode's mass is to it as the mode's
    draws are to all draws in the ellipsoid, so it includes tails and leaves out what belongs to
    another mode.  Modes that do not look like Gaussians, or overlap with others, are left out.
    Those that are left share the probability that the draws give them together.

    Parameters
    ----------
    peaks
        Where the density has a maximum in each mode, shape (D,), by number.
    points, labels, weight
        Draws, shape (n, D), the modes that they are in, shape (n,), and their weights, shape (n,).
    log_density
        Log density and gradient at many points.
    scale
        Size of each coordinate, shape (D,).
    error_of_sum
        Returns the standard error of the sum of a number that each draw has, shape (n,).
    families
        Numbers of modes that are copies of each other, and so have equal masses.
    seed
        Seed, from which each mode derives its own, so that errors of masses are independent.

    Returns
    -------
    dict
        By number; empty if fewer than two modes can be weighed.
    """
    reach = reach_of(points.shape[1])
    each_mass: dict[int, LogEvidence] = {}
    for number, peak in peaks.items():
        local = local_gaussian(peak, log_density, scale=scale)
        if local is None:
            continue
        own = labels == number
        near = local.around(points)
        if not _looks_like(near, own, weight):
            continue
        # The same points around each peak would make the same error in each mass.
        own_seed = derived_seed(seed, number)
        mass = mass_around(local, log_density, count=_POINTS, seed=own_seed, within=reach)
        if mass is not None:
            inside = float(weight[near].sum())
            whole = float(weight[own].sum()) / inside
            # Log of the ratio to first order, a sum over draws; it is 0 by itself.
            linear = weight * (own / whole - near) / inside
            each_mass[number] = LogEvidence(
                mass.value + float(np.log(whole)),
                float(np.hypot(mass.mcse, error_of_sum(linear))),
            )
    if len(each_mass) < 2:
        return {}
    log_mass = equal_masses(each_mass, families)
    together = float(weight[np.isin(labels, list(log_mass))].sum() / weight.sum())
    share = normalised_weights(np.array([each.value for each in log_mass.values()]))
    off = strata_errors(share, np.array([each.mcse for each in log_mass.values()]))
    return {
        k: ShareByMass(together * float(one), together * float(its), log_mass[k])
        for k, one, its in zip(log_mass, share, off, strict=True)
    }


def _looks_like(
    near: npt.NDArray[np.bool_], own: npt.NDArray[np.bool_], weight: FloatArray
) -> bool:
    """Whether the Gaussian that fits at a peak covers a mode's draws, and hardly any other ones."""
    inside = weight[own].sum()
    covered, foreign = weight[own & near].sum(), weight[near & ~own].sum()
    return bool(inside > 0 and covered >= _COVERED * inside and foreign <= _FOREIGN * inside)
