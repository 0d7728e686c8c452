"""Multicanonical rows of Table 4.2: weights from nested sampling, and those that are exact."""

from __future__ import annotations

import math

import numpy as np

from harness.samplers.band_weights import BandWeights

_BANDS = 400
_SMALLEST = 1e-4
"""Of the square radii of a target with unit precision; next to no draw lies below."""


def analytic_weights(dimension: int, base_sd: float) -> BandWeights:
    """Return weights with which the energy of exp(-|x|^2 / 2) has an even distribution.

    The density is proportional to R^(1 - D / 2), R = |x|^2, for R below (D + 4 sqrt(2 D)) base_sd^2
    (Murray 2007, eq. 4.39).  Beyond that, where the thesis ends it, it falls like the base.

    Parameters
    ----------
    dimension
        D.
    base_sd
        Standard deviation of the base.
    """
    largest = (dimension + 4 * math.sqrt(2 * dimension)) * base_sd**2
    radius = np.geomspace(largest, _SMALLEST, _BANDS + 1)
    # log L = -R / 2 - log b, and the log density is log b + h.
    log_base = -0.5 * radius / base_sd**2 - dimension * math.log(math.sqrt(2 * math.pi) * base_sd)
    edge = -0.5 * radius - log_base
    at_middle = (radius[1:] + radius[:-1]) / 2  # log L is linear in R
    log_weight = (1 - 0.5 * dimension) * np.log(at_middle) + 0.5 * at_middle / base_sd**2
    share = -np.diff(radius) / (radius[0] - radius[-1])
    return BandWeights(edge, share, log_weight, np.zeros(_BANDS - 1))
