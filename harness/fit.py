"""A fit: one ArviZ DataTree with draws of the target, the extended draws and their cost.

Groups: ``posterior`` (unweighted draws of the target, under the model's own parameter names),
``extended`` (raw draws of the extended target: pseudo-samples, inverse temperatures and log
weights; absent when the target itself was sampled), ``sample_stats`` (the sampler's),
``constant_data`` (the model's data) and attributes (method, settings, seeds, versions, cost).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from harness import weights
from harness.errors import DataError, StoreError
from harness.files import write_bytes
from harness.netcdf import read_tree, write_tree
from harness.weights import Estimate, LogEvidence

PSEUDO_SAMPLE = "pseudo_sample"
"""Name of the axis over pseudo-samples in the ``extended`` group."""

_FORMAT = "harness-fit-1"


class Fit:
    """Result of one run of a method on a model.

    Parameters
    ----------
    tree
        DataTree with the groups and attributes described in this module's docstring.
    """

    def __init__(self, tree: xr.DataTree) -> None:
        self.tree = tree

    @property
    def posterior(self) -> xr.Dataset:
        """Unweighted draws of the target, axes (chain, draw, ...)."""
        return self.tree["posterior"].to_dataset()

    @property
    def extended(self) -> xr.Dataset | None:
        """Raw draws of the extended target, or None when the target itself was sampled."""
        return self.tree["extended"].to_dataset() if "extended" in self.tree else None

    @property
    def sample_stats(self) -> xr.Dataset:
        """Statistics of the sampler, axes (chain, draw)."""
        return self.tree["sample_stats"].to_dataset()

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the method, as they were given."""
        settings: dict[str, Any] = json.loads(self.tree.attrs["settings"])
        return settings

    @property
    def gradients(self) -> int:
        """Gradient evaluations of the extended density, over all chains, warm-up included."""
        return int(self._cost("gradients"))

    @property
    def seconds(self) -> float:
        """Seconds that Stan spent, over all chains, warm-up included, compiling not."""
        return self._cost("seconds")

    def _cost(self, kind: str) -> float:
        attrs = self.tree.attrs
        return float(np.sum(attrs[f"{kind}_warmup"]) + np.sum(attrs[f"{kind}_sampling"]))

    def provenance(self) -> dict[str, Any]:
        """Return the attributes as plain values: method, settings, seed, versions, cost."""
        attrs = {
            str(key): value.tolist() if hasattr(value, "tolist") else value
            for key, value in self.tree.attrs.items()
        }
        return {**attrs, "settings": self.settings}

    def thinned(self, most: int) -> Fit:
        """Return the fit with every k-th draw only, so that at most ``most`` remain a chain.

        Estimates from it are less precise than those of the whole fit; its attribute
        ``kept_every`` says so.
        """
        step = -(-self.posterior.sizes["draw"] // most)
        if step <= 1:
            return self
        groups = {
            f"/{name}": node.to_dataset().isel(draw=slice(None, None, step))
            if "draw" in node.sizes
            else node.to_dataset()
            for name, node in self.tree.children.items()
        }
        tree = xr.DataTree.from_dict(groups)
        tree.attrs = {**self.tree.attrs, "kept_every": step}
        return Fit(tree)

    def series(self, f: Callable[[xr.Dataset], xr.DataArray]) -> xr.DataArray:
        """Return the series whose plain average over draws estimates E_target[f].

        For the target's own draws that is f(x_t); for pseudo-extended draws the weighted sum
        over pseudo-samples, h_t = sum_i w_ti f(x_ti) (Nemeth et al. 2019, eq. 3).

        Parameters
        ----------
        f
            Function of the target's parameters, given as a Dataset by name.  It must act on
            each draw (and each pseudo-sample) by itself, keeping their named axes.
        """
        extended = self.extended
        if extended is None:
            return f(self.posterior).transpose("chain", "draw", ...)
        if "log_w1" in extended:
            raise DataError(
                "a continuously tempered fit weighs draws against each other: it has "
                "no series whose plain average is the estimate"
            )
        parameters = extended[list(self.posterior.data_vars)]
        weight = xr.DataArray(
            weights.normalised_weights(extended["log_weight"].transpose(..., PSEUDO_SAMPLE)),
            dims=("chain", "draw", PSEUDO_SAMPLE),
        )
        return (weight * f(parameters)).sum(PSEUDO_SAMPLE).transpose("chain", "draw", ...)

    def expectation(self, f: Callable[[xr.Dataset], xr.DataArray]) -> Estimate:
        """Estimate E_target[f] with its Monte Carlo standard error.

        The plain mean of :meth:`series`, or for a continuously tempered run the mean weighted
        by w_1(x) = p(beta = 1 | x) (Graham and Storkey 2017, eq. 21); for an extended Hamiltonian
        w_1 is 1 on the plateau and 0 off it.

        Parameters
        ----------
        f
            As in :meth:`series`.
        """
        extended = self.extended
        if extended is None or "log_w1" not in extended:
            return weights.expectation(self.series(f).to_numpy())
        values = f(extended[list(self.posterior.data_vars)]).transpose("chain", "draw", ...)
        return weights.weighted_expectation(values.to_numpy(), extended["log_w1"].to_numpy())

    def base_expectation(self, f: Callable[[xr.Dataset], xr.DataArray]) -> Estimate:
        """Estimate E_base[f] from a continuously tempered run (paper, eq. 22).

        Where the base's own moments are known, an estimate that is off is a failed run.

        Raises
        ------
        DataError
            If the fit is not of a continuously tempered run.
        """
        extended = self._tempered()
        values = f(extended[list(self.posterior.data_vars)]).transpose("chain", "draw", ...)
        return weights.weighted_expectation(values.to_numpy(), extended["log_w0"].to_numpy())

    @property
    def log_evidence(self) -> LogEvidence:
        """Estimate of log Z from a continuously tempered run (paper, eq. 20).

        Raises
        ------
        DataError
            If the fit is not of a continuously tempered run.
        """
        extended, settings = self._tempered(), self.settings
        log_g = settings["log_g"]
        return weights.log_evidence(
            extended["log_w1"].to_numpy(),
            extended["log_w0"].to_numpy(),
            log_zeta=settings["log_zeta"],
            log_g_ratio=log_g[-1][1] - log_g[0][1],
        )

    def _tempered(self) -> xr.Dataset:
        extended = self.extended
        # Draws of an extended Hamiltonian have a weight for the target and none for a base.
        if extended is None or "log_w0" not in extended:
            raise DataError(
                f"a {self.tree.attrs['method']} fit was not continuously tempered from a base"
            )
        return extended

    def save(self, path: Path) -> None:
        """Write the fit as NetCDF, whole or not at all.

        Raises
        ------
        StoreError
            If the file cannot be written.
        """
        write_bytes(path, write_tree(self.tree))

    @classmethod
    def load(cls, path: Path) -> Fit:
        """Read a fit that :meth:`save` wrote.

        Raises
        ------
        StoreError
            If there is no such file, or it is damaged or not a fit of ours.
        """
        try:
            tree = read_tree(path)
        except FileNotFoundError:
            raise StoreError(f"there is no fit {path}") from None
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise StoreError(f"{path} is damaged or no NetCDF file ({error})") from error
        if tree.attrs.get("format") != _FORMAT or "posterior" not in tree:
            raise StoreError(f"{path} is a NetCDF file, but not a fit of this program")
        return cls(tree)


def build_fit(
    *,
    posterior: Mapping[str, np.ndarray],
    extended: Mapping[str, np.ndarray] | None,
    sample_stats: Mapping[str, np.ndarray],
    constant_data: Mapping[str, Any],
    attrs: Mapping[str, Any],
    pseudo_samples: bool = True,
) -> Fit:
    """Label arrays as a fit.

    Parameters
    ----------
    posterior
        Arrays (chain, draw, ...) by parameter name.
    extended
        Arrays (chain, draw, ...) by name, with a last axis N if there are pseudo-samples; or
        None.
    sample_stats
        Arrays (chain, draw) by name.
    constant_data
        Data of the model by name.
    attrs
        Strings, numbers and arrays for the root of the tree; ``settings`` may be a dict.
    pseudo_samples
        Whether the last axis of the extended arrays runs over pseudo-samples.
    """
    groups: dict[str, xr.Dataset] = {
        "posterior": _dataset(posterior),
        "sample_stats": _dataset(sample_stats),
        "constant_data": xr.Dataset(
            {
                name: (tuple(f"{name}_dim_{i}" for i in range(np.ndim(value))), np.asarray(value))
                for name, value in constant_data.items()
                if np.size(value)
            }
        ),
    }
    if extended is not None:
        last = PSEUDO_SAMPLE if pseudo_samples else None
        groups["extended"] = _dataset(extended, last=last)
    tree = xr.DataTree.from_dict({f"/{name}": dataset for name, dataset in groups.items()})
    tree.attrs = {
        key: json.dumps(value, sort_keys=True) if isinstance(value, dict) else value
        for key, value in attrs.items()
    } | {"format": _FORMAT}
    return Fit(tree)


def _dataset(arrays: Mapping[str, np.ndarray], *, last: str | None = None) -> xr.Dataset:
    """Name axes chain, draw, then x_dim_0, x_dim_1, ...; and the last one, where it is given."""
    variables = {}
    for name, array in arrays.items():
        inner = array.ndim - 2 - (last is not None)
        dims = ("chain", "draw", *(f"{name}_dim_{i}" for i in range(inner)))
        variables[name] = ((*dims, last) if last else dims, array)
    dataset = xr.Dataset(variables)
    return dataset.assign_coords({dim: np.arange(size) for dim, size in dataset.sizes.items()})
