"""The modes of a fit whose draws are weighted so that each mode has its probability by its mass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from harness.arrays import FloatArray

GROUP = "weighed_modes"
"""The group of a fit that holds them."""


class WeighedModes(NamedTuple):
    """Which draw is in which mode, and what the modes' probabilities are."""

    mode: npt.NDArray[np.intp]
    """Mode of each raw draw, from 0, shape (chains, draws)."""
    probability: FloatArray
    """Probability of each mode, shape (K,)."""
    log_error: FloatArray
    """Standard error of the log of each mode's mass, shape (K,)."""

    def dataset(self) -> xr.Dataset:
        """Return the group."""
        group = xr.Dataset(
            {
                "mode": (("chain", "draw"), self.mode),
                "probability": ("weighed_mode", self.probability),
                "log_error": ("weighed_mode", self.log_error),
            }
        )
        return group.assign_coords({axis: np.arange(size) for axis, size in group.sizes.items()})


def weighed_modes(tree: xr.DataTree) -> WeighedModes | None:
    """Return what :meth:`WeighedModes.dataset` has written to a fit's tree; None if nothing is."""
    if GROUP not in tree:
        return None
    group = tree[GROUP].to_dataset()
    mode = group["mode"].transpose("chain", "draw").to_numpy().astype(np.intp)
    return WeighedModes(mode, group["probability"].to_numpy(), group["log_error"].to_numpy())
