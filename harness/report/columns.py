"""The coordinates of a fit's draws as labelled columns, and the choice of those that mix worst."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
import xarray as xr

from harness import evidence
from harness.arrays import FloatArray

# R-hat of many coordinates is only used to choose among them.
_DRAWS_TO_CHOOSE_BY = 500
_FEWEST_FOR_R_HAT = 8


@dataclass(frozen=True)
class Columns:
    """Coordinates with their draws.

    Attributes
    ----------
    names
        Names as Stan writes them, ``x[1, 2]``; if an axis has labels, the label: ``n[AITKIN]``.
    values
        Shape (chains, draws, K).
    total
        Number of coordinates of the whole fit.
    """

    names: tuple[str, ...]
    values: FloatArray
    total: int

    def first(self, most: int) -> Columns:
        """Return the first few columns."""
        return Columns(self.names[:most], self.values[..., :most], self.total)

    def in_order(self, posterior: xr.Dataset) -> Columns:
        """Return the columns in the order of the fit's parameters."""
        place = {name: index for index, name in enumerate(_names(posterior))}
        order = sorted(range(len(self.names)), key=lambda k: place[self.names[k]])
        return Columns(
            tuple(self.names[k] for k in order),
            np.ascontiguousarray(self.values[..., order]),
            self.total,
        )

    def halves(self) -> Columns:
        """Return a single chain split into two halves, so that there are chains to compare."""
        if len(self.values) > 1:
            return self
        half = self.values.shape[1] // 2
        both = np.concatenate([self.values[:, :half], self.values[:, -half:]])
        return Columns(self.names, both, self.total)

    def dataset(self) -> xr.Dataset:
        """Return each column as a variable, which is what ArviZ expects."""
        return xr.Dataset(
            {
                name: (("chain", "draw"), self.values[..., index])
                for index, name in enumerate(self.names)
            }
        )


def worst_columns(posterior: xr.Dataset, most: int, first: Collection[str] = ()) -> Columns:
    """Return the coordinates with the largest R-hat, worst first.

    Parameters
    ----------
    posterior
        Draws, axes (chain, draw, ...).
    most
        Largest number of coordinates.
    first
        Variables whose coordinates come before those of all others, whatever their R-hat: there may
        be thousands of generated quantities, and few parameters.
    """
    own = [name for name in posterior if name in first]
    others = [name for name in posterior if name not in first]
    if not own or not others:
        return _worst_columns(posterior, most)
    head, tail = _worst_columns(posterior[own], most), _worst_columns(posterior[others], most)
    room = most - len(head.names)
    return Columns(
        head.names + tail.names[:room],
        np.concatenate([head.values, tail.values[..., :room]], axis=-1),
        head.total + tail.total,
    )


def _worst_columns(posterior: xr.Dataset, most: int) -> Columns:
    values = np.concatenate(
        [
            variable.transpose("chain", "draw", ...)
            .to_numpy()
            .reshape(posterior.sizes["chain"], posterior.sizes["draw"], -1)
            for variable in posterior.values()
        ],
        axis=-1,
    ).astype(np.float64, copy=False)
    names = _names(posterior)
    order = _worst(values, most)
    return Columns(
        tuple(names[k] for k in order), np.ascontiguousarray(values[..., order]), len(names)
    )


def _worst(values: FloatArray, most: int) -> npt.NDArray[np.intp]:
    """Return the coordinates with the largest R-hat, by some of the draws, worst first.

    R-hat of many coordinates takes long; of those that are far from the worst nothing is needed.
    Those that never move come last.
    """
    if values.shape[1] < _FEWEST_FOR_R_HAT:
        return np.arange(values.shape[-1])[:most]
    step = -(-values.shape[1] // _DRAWS_TO_CHOOSE_BY)
    some = values[:, ::step]
    # In their own order, so that of equal ones the first come first.
    near = np.sort(evidence.least_settled(some, max(2 * most, evidence.LOOKED_AT)))
    r_hat = np.nan_to_num(evidence.r_hat(some[..., near]), nan=-1.0, posinf=np.inf)
    return near[np.argsort(-r_hat, kind="stable")[:most]]


def labelled(posterior: xr.Dataset, labels: Mapping[str, Sequence[str]]) -> xr.Dataset:
    """Label the first axis of parameters, so that columns are named after the labels.

    Parameters
    ----------
    posterior
        Draws, axes (chain, draw, ...).
    labels
        Names of the entries along a parameter's first axis, by the parameter's name.  Labels of a
        parameter that does not exist or has another length are ignored.
    """
    axes = {}
    for name, entries in labels.items():
        inner = _inner_axes(posterior[name]) if name in posterior else []
        if inner and posterior.sizes[inner[0]] == len(entries):
            axes[inner[0]] = list(entries)
    return posterior.assign_coords(axes)


def _inner_axes(variable: xr.DataArray) -> list[Hashable]:
    return [axis for axis in variable.dims if axis not in ("chain", "draw")]


def _names(posterior: xr.Dataset) -> list[str]:
    names = []
    for name, variable in posterior.items():
        entries = [_entries(variable, axis) for axis in _inner_axes(variable)]
        names += [
            f"{name}[{', '.join(index)}]" if index else str(name) for index in product(*entries)
        ]
    return names


def _entries(variable: xr.DataArray, axis: Hashable) -> list[str]:
    """Return names along an axis: its labels if they are words, or Stan's numbers from 1."""
    labels = variable.coords[axis].to_numpy() if axis in variable.coords else np.empty(0)
    if labels.dtype.kind in "UOT":
        return [str(label) for label in labels]
    return [str(number) for number in range(1, variable.sizes[axis] + 1)]
