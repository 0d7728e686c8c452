"""How often a pilot's particles move at a rung: until they have left the places where it began."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from harness.arrays import FloatArray, LogDensity
from harness.path.moves import HmcMoves
from harness.path.pilot_result import PilotSettings
from harness.path.slices import slice_along_differences

_CORRELATION = 0.5
"""Correlation with their places at the start of a rung below which particles have moved enough."""
_PATIENCE, _FALLS = 4, 0.02
"""Further moves are worth making if the correlation falls by this much within this many moves."""


def moved(
    moves: HmcMoves,
    log_density: LogDensity,
    points: FloatArray,
    settings: PilotSettings,
    rng: np.random.Generator,
    before_each: Callable[[], None],
    *,
    until: float,
) -> tuple[FloatArray, float]:
    """Move particles as often as the settings ask; return them and the mean acceptance rate.

    No further moves begin after a time, but those that it makes in any case.
    """

    def has_time() -> bool:
        return time.monotonic() < until

    began = points
    rates: list[float] = []
    correlations: list[float] = []
    while len(rates) < settings.moves or (
        len(rates) < settings.most_moves and _still_leaving(correlations) and has_time()
    ):
        before_each()
        made = moves.move(log_density, points, rng)
        points = made.points
        rates.append(made.acceptance)
        correlations.append(_largest_correlation(began, points))
    rate = float(np.mean(rates))
    if settings.most_moves and correlations[-1] > _CORRELATION:
        correlations, guides = [], points
        while (
            len(correlations) < settings.most_moves
            and has_time()
            and (not correlations or _still_leaving(correlations))
        ):
            before_each()
            points = slice_along_differences(log_density, points, guides, settings.populations, rng)
            correlations.append(_largest_correlation(began, points))
    return points, rate


def _still_leaving(correlations: list[float]) -> bool:
    """Whether the correlation with the places at a rung's start is large and still falling."""
    if correlations[-1] <= _CORRELATION:
        return False
    return len(correlations) < _PATIENCE or correlations[-_PATIENCE] - correlations[-1] > _FALLS


def _largest_correlation(began: FloatArray, points: FloatArray) -> float:
    """Return the largest correlation over coordinates between two places of the same particles."""
    one, other = began - began.mean(axis=0), points - points.mean(axis=0)
    scale = np.sqrt(np.square(one).sum(axis=0) * np.square(other).sum(axis=0))
    return float(np.max((one * other).sum(axis=0) / np.where(scale > 0, scale, np.inf)))
