"""Events of which a target knows the posterior probability, as arrays over draws."""

from __future__ import annotations

import numpy as np
import xarray as xr


def side_by_side(*events: xr.DataArray) -> xr.DataArray:
    """Return M events, each of shape (chain, draw), as one array of shape (chain, draw, M)."""
    together = xr.concat([event.astype(np.float64) for event in events], dim="event")
    return together.transpose("chain", "draw", "event")


def one_of(index: xr.DataArray, number: int) -> xr.DataArray:
    """Return, for a number from 0 to M - 1 in each draw, which of M events happens.

    Parameters
    ----------
    index
        Which event happens, shape (chain, draw).
    number
        M.

    Returns
    -------
    xarray.DataArray
        1 for the event that happens and 0 for the others, shape (chain, draw, M).
    """
    return side_by_side(*(index == event for event in range(number)))
