"""Starting values of chains from a pilot's particles."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.errors import DataError
from harness.model import Model
from harness.model.coordinates import unflatten
from harness.path.pilot import Pilot


def starting_values(
    model: Model, scouted: Pilot, *, chains: int, num_pseudo_samples: int | None = None
) -> list[dict[str, Any]]:
    """Return initial values for each chain; no two chains share a particle.

    Inverse temperatures get no initial values: the sampler chooses them.

    Parameters
    ----------
    model
        The model.
    scouted
        A pilot of this model.
    chains
        Number of chains.
    num_pseudo_samples
        N of a pseudo-extended program, whose parameters have a last axis over pseudo-samples;
        None for every other.

    Returns
    -------
    list[dict]
        Values by parameter, nested lists, one dict a chain; what ``inits`` takes.

    Raises
    ------
    DataError
        If the pilot is of another model, has too few particles, or the numbers are not positive.
    """
    each = 1 if num_pseudo_samples is None else num_pseudo_samples
    if chains < 1 or each < 1:
        raise DataError(
            f"starting values need 1 chain and 1 pseudo-sample or more; got {chains} and {each}"
        )
    if scouted.shapes is None or scouted.points.shape[1] != model.dimension:
        raise DataError(f"the pilot is not one of the model {model.name}")
    if chains * each > len(scouted.points):
        raise DataError(
            f"{chains} chains of {each} points need as many particles; the pilot has "
            f"{len(scouted.points)}"
        )
    values = unflatten(model, scouted.points, scouted.shapes)
    starts = []
    for chain in range(chains):
        own = {name: value[chain * each : (chain + 1) * each] for name, value in values.items()}
        starts.append(
            {
                name: value[0].tolist()
                if num_pseudo_samples is None
                else np.moveaxis(value, 0, -1).tolist()
                for name, value in own.items()
            }
        )
    return starts
