"""A variable's entries along one axis, whatever axes of its own it has."""

from __future__ import annotations

import xarray as xr

from harness.fit.tempered import PSEUDO_SAMPLE

ENTRY = "flat_entry"
"""Name of that axis."""
_OF_DRAWS = ("chain", "draw", PSEUDO_SAMPLE)


def entries(variable: xr.DataArray) -> xr.DataArray:
    """Return a variable with :data:`ENTRY` as its last axis, in place of all its own.

    The last of them runs fastest.  A number has one entry.

    Parameters
    ----------
    variable
        Draws, with axes (chain, draw) and perhaps one of pseudo-samples, beside its own.
    """
    inner = [axis for axis in variable.dims if axis not in _OF_DRAWS]
    if not inner:
        return variable.expand_dims(ENTRY, axis=-1)
    return variable.stack({ENTRY: inner}, create_index=False).transpose(..., ENTRY)


def number_of_entries(variable: xr.DataArray) -> int:
    """Return how many numbers each draw of a variable has."""
    count = 1
    for axis, size in variable.sizes.items():
        if axis not in _OF_DRAWS:
            count *= size
    return count
