"""Starting values for chains, from points such as a pilot's particles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.model import Model
from harness.model.coordinates import unflatten
from harness.path.pilot_result import Pilot


def particles_by_parameter(model: Model, scouted: Pilot) -> dict[str, FloatArray]:
    """Return a pilot's equally weighted particles by parameter, shape (n, ...).

    Raises
    ------
    DataError
        If the pilot was not run on this model.
    """
    if scouted.shapes is None or scouted.points.shape[1] != model.dimension:
        raise DataError(f"the pilot was not run on the model {model.name}")
    return unflatten(model, scouted.points, scouted.shapes)


def starting_values(
    points: Mapping[str, FloatArray], *, chains: int, num_pseudo_samples: int | None = None
) -> list[dict[str, Any]]:
    """Return initial values for each chain; no two chains share a point.

    Inverse temperatures get no initial values: the sampler chooses them.

    Parameters
    ----------
    points
        Points by parameter, shape (n, ...).
    chains
        Number of chains.
    num_pseudo_samples
        N of a pseudo-extended program, whose parameters have a last axis over pseudo-samples;
        None for every other program.

    Returns
    -------
    list[dict]
        Values by parameter, as nested lists, with one dict for each chain; ``inits`` takes them.

    Raises
    ------
    DataError
        If there are too few points, or the numbers are not positive.
    """
    each = 1 if num_pseudo_samples is None else num_pseudo_samples
    if chains < 1 or each < 1:
        raise DataError(
            f"starting values need 1 chain and 1 pseudo-sample or more; got {chains} and {each}"
        )
    count = min(len(value) for value in points.values())
    if chains * each > count:
        raise DataError(
            f"{chains} chains of {each} points need {chains * each} starting points; there are "
            f"{count}"
        )
    starts = []
    for chain in range(chains):
        own = {name: value[chain * each : (chain + 1) * each] for name, value in points.items()}
        starts.append(
            {
                name: value[0].tolist()
                if num_pseudo_samples is None
                else np.moveaxis(value, 0, -1).tolist()
                for name, value in own.items()
            }
        )
    return starts
