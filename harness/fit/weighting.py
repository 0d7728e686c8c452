"""How raw draws are weighted to become draws of the target.

A form determines it, the fit records it, and everything else asks the fit: no other module looks at
names of variables to find out what kind of draws it has.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Literal

import numpy as np

from harness import evidence
from harness.arrays import FloatArray
from harness.errors import DataError

Weighting = Literal["unweighted", "within draws", "across draws"]
"""How raw draws count.

``unweighted``: they are draws of the target.  ``within draws``: the pseudo-samples of each draw are
weighted against each other.  ``across draws``: the draws are weighted against each other.
"""

LOG_WEIGHT: Mapping[Weighting, str] = {"within draws": "log_weight", "across draws": "log_w1"}
"""The variable of the extended draws that holds the log weights."""

WEIGHTS = ("log_weight", "log_w0", "log_w1")
"""Variables of the extended draws that are weights, including those of the base."""

GENERATED = ("inv_temp", "delta", *WEIGHTS)
"""Variables of the extended draws that are not parameters, but have fixed names of their own."""


def seen_weighting(extended: Container[Any] | None) -> Weighting:
    """Return how draws are weighted, as far as the variables of the extended draws show it.

    This is for fits that do not record it: those stored by earlier versions, or built by hand.
    """
    if extended is None:
        return "unweighted"
    # Draws along a path may have both variables; then those across draws count.
    kinds: tuple[Weighting, ...] = ("across draws", "within draws")
    for weighting in kinds:
        if LOG_WEIGHT[weighting] in extended:
            return weighting
    return "unweighted"


def check_weighting(weighting: Weighting, extended: Container[Any] | None) -> None:
    """Raise an error if extended draws lack the variable that holds their weights.

    Raises
    ------
    DataError
        If it is missing.
    """
    needed = LOG_WEIGHT.get(weighting)
    if needed is not None and (extended is None or needed not in extended):
        raise DataError(f"draws that are weighted {weighting} need the variable {needed}")


def target_draws(
    raw: Mapping[str, FloatArray],
    log_weight: FloatArray,
    weighting: Weighting,
    rng: np.random.Generator,
) -> dict[str, FloatArray]:
    """Choose draws of the target among raw draws, with probabilities given by their weights.

    Parameters
    ----------
    raw
        By name, shape (chains, draws, ...), with a last axis over N pseudo-samples if weights are
        within draws.
    log_weight
        Shape (chains, draws, N) for weights within draws, (chains, draws) for those across draws.
    weighting
        How the draws are weighted.  Within draws, one pseudo-sample is chosen in each draw; across
        draws, each chain is resampled on its own.
    rng
        Source of randomness for the choice.

    Returns
    -------
    dict
        By name, shape (chains, draws, ...).
    """
    if weighting == "unweighted":
        return dict(raw)
    if weighting == "within draws":
        index = evidence.draw_index(log_weight, rng)
        return {name: _one_of_each(draws, index) for name, draws in raw.items()}
    kept = evidence.resample(log_weight, rng)
    chain = np.arange(len(kept))[:, None]
    return {name: draws[chain, kept] for name, draws in raw.items()}


def _one_of_each(draws: FloatArray, index: np.ndarray) -> FloatArray:
    """Pick a pseudo-sample of each draw: (chain, draw, ..., N) becomes (chain, draw, ...)."""
    shaped = index.reshape(*index.shape, *(1,) * (draws.ndim - index.ndim))
    chosen: FloatArray = np.take_along_axis(draws, shaped, axis=-1)[..., 0]
    return chosen


def in_extended(parameters: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Name parameters for the group of extended draws, which has fixed names of its own."""
    return {
        f"{name}_parameter" if name in GENERATED else name: draws
        for name, draws in parameters.items()
    }
