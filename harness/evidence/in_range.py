"""Draws whose squares are beyond the range of floating-point numbers, as a vague prior has them."""

from __future__ import annotations

import numpy as np

from harness.arrays import FloatArray

_LARGE = 1e150
"""Sizes from which on a sum of squares may overflow."""


def in_range(series: FloatArray, axes: int = 2) -> tuple[FloatArray, FloatArray]:
    """Divide draws by their size where their squares would overflow.

    Parameters
    ----------
    series
        Draws, whose first ``axes`` axes are chains, draws and perhaps pseudo-samples.
    axes
        Number of these axes.

    Returns
    -------
    FloatArray, FloatArray
        The draws, and what they were divided by, of the shape of the other axes: 1 where that is
        not needed, or where not all draws are finite.
    """
    size = np.abs(series).max(axis=tuple(range(axes)), initial=0.0)
    divisor = np.where((size > _LARGE) & np.isfinite(size), size, 1.0)
    return (series / divisor if np.any(divisor > 1) else series), divisor


def standard_deviation(series: FloatArray, axes: int = 2) -> FloatArray:
    """Return the standard deviation of draws over their first axes, of any size that is finite."""
    within, divisor = in_range(series, axes)
    deviation: FloatArray = within.std(axis=tuple(range(axes))) * divisor
    return deviation
