"""A fit's tree as a small NetCDF file: writing a coordinate costs as much as writing draws.

``chain`` and ``draw``, which every group of draws shares, are written once, at the root, from
where the groups inherit them; coordinates that only count 0, 1, 2, ... are left out and put back
when the file is read.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import xarray as xr

_SHARED = ("chain", "draw")


def write_tree(tree: xr.DataTree) -> bytes:
    """Return a tree of groups, each with axes of its own, as the bytes of a NetCDF file."""
    shared: dict[str, xr.DataArray] = {}
    groups: dict[str, xr.Dataset] = {}
    for name, node in tree.children.items():
        dataset = node.to_dataset()
        shared |= {axis: dataset.coords[axis] for axis in _SHARED if axis in dataset.coords}
        counting = [str(axis) for axis in dataset.coords if _counts(dataset, str(axis))]
        groups[f"/{name}"] = dataset.drop_vars({*counting, *_SHARED}, errors="ignore")
    packed = xr.DataTree.from_dict({"/": xr.Dataset(coords=shared), **groups})
    packed.attrs = tree.attrs
    # Through memory: HDF5 crashes the interpreter when the disk refuses what it flushes.
    return bytes(packed.to_netcdf(None, engine="h5netcdf"))


def read_tree(path: Path) -> xr.DataTree:
    """Read a file that :func:`write_tree` made, coordinates and all.

    Raises
    ------
    OSError, ValueError, KeyError, RuntimeError
        If the file is not there or not NetCDF.
    """
    with xr.open_datatree(path, engine="h5netcdf") as opened:
        packed = opened.load()
    groups = {}
    for name, node in packed.children.items():
        dataset = node.to_dataset(inherit=False)
        if set(_SHARED) <= set(dataset.dims):
            dataset = dataset.assign_coords(
                {
                    axis: packed.coords[axis] if axis in _SHARED else np.arange(size)
                    for axis, size in dataset.sizes.items()
                    if axis not in dataset.coords
                }
            )
        groups[f"/{name}"] = dataset
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = packed.attrs
    return tree


def read_arrays(path: Path, group: str) -> dict[str, np.ndarray]:
    """Read the arrays of one group of such a file, coordinates and all else left out.

    Axes are in the order in which they were written.

    Raises
    ------
    OSError, ValueError, KeyError, RuntimeError
        If the file or the group is not there, or not NetCDF.
    """
    # Through HDF5 itself: it takes a twentieth of the time that labelling all groups takes.
    with h5py.File(path) as file:
        return {
            name: variable[()]
            for name, variable in file[group].items()
            if not h5py.h5ds.is_scale(variable.id)
        }


def _counts(dataset: xr.Dataset, axis: str) -> bool:
    """Tell whether the coordinate of an axis is 0, 1, 2, ..."""
    return bool(np.array_equal(dataset.coords[axis], np.arange(dataset.coords[axis].size)))
