"""Store a fit's tree in a small NetCDF file, with as few coordinates as possible.

In such a file, writing a coordinate costs as much as writing draws.  So ``chain`` and ``draw``,
which groups of draws share, are written once, at the root, from where the groups inherit them,
unless some groups have more draws than others.  Coordinates that only count 0, 1, 2, ... are left
out and put back when the file is read.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import xarray as xr

_SHARED = ("chain", "draw")

UNREADABLE = (OSError, ValueError, KeyError, RuntimeError, AttributeError, TypeError)
"""What reading raises about a file that is damaged or is no NetCDF file."""


def write_tree(tree: xr.DataTree) -> bytes:
    """Return a tree of groups, each with its own axes, as the bytes of a NetCDF file."""
    shared: dict[str, xr.DataArray] = {}
    groups: dict[str, xr.Dataset] = {}
    datasets = {name: node.to_dataset() for name, node in tree.children.items()}
    alike = [
        axis
        for axis in _SHARED
        if len({each.sizes[axis] for each in datasets.values() if axis in each.sizes}) == 1
    ]
    for name, dataset in datasets.items():
        shared |= {axis: dataset.coords[axis] for axis in alike if axis in dataset.coords}
        counting = {str(axis) for axis in dataset.coords if _counts(dataset, str(axis))}
        own = set(_SHARED) - set(alike)
        groups[f"/{name}"] = dataset.drop_vars({*counting, *alike} - own, errors="ignore")
    packed = xr.DataTree.from_dict({"/": xr.Dataset(coords=shared), **groups})
    packed.attrs = tree.attrs
    # Written to memory first: HDF5 crashes the interpreter if the disk refuses what it flushes.
    return bytes(packed.to_netcdf(None, engine="h5netcdf"))


def read_tree(path: Path) -> xr.DataTree:
    """Read a file that :func:`write_tree` made, and put its coordinates back.

    Raises
    ------
    OSError, ValueError, KeyError, RuntimeError
        If the file does not exist or is not NetCDF.
    """
    # Damage is found here: h5netcdf would print a traceback of its own as it closes such a file.
    with h5py.File(path) as file:
        _read_attributes("/", file)
        file.visititems(_read_attributes)
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


def _read_attributes(_name: str, place: h5py.HLObject) -> None:
    dict(place.attrs)


def root_attribute(path: Path, name: str) -> object:
    """Return an attribute of the root of such a file; None if there is none or no such file."""
    try:
        with h5py.File(path) as file:
            return file.attrs.get(name)
    except (OSError, RuntimeError, ValueError, TypeError):
        return None


def read_arrays(path: Path, group: str) -> dict[str, np.ndarray]:
    """Read only the arrays of one group of such a file, without coordinates or other groups.

    Axes are in the order in which they were written.

    Raises
    ------
    OSError, ValueError, KeyError, RuntimeError
        If the file or the group does not exist, or the file is not NetCDF.
    """
    # Read through HDF5 itself, in a twentieth of the time that labelling all groups takes.
    with h5py.File(path) as file:
        return {
            name: variable[()]
            for name, variable in file[group].items()
            if not h5py.h5ds.is_scale(variable.id)
        }


def _counts(dataset: xr.Dataset, axis: str) -> bool:
    """Whether the coordinate of an axis is 0, 1, 2, ..."""
    return bool(np.array_equal(dataset.coords[axis], np.arange(dataset.coords[axis].size)))
