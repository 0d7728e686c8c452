"""Build a fit from arrays: label them, and put several runs together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from harness import evidence
from harness.arrays import FloatArray
from harness.engine.stan_data import numbers_in
from harness.errors import DataError
from harness.evidence import LogEvidence
from harness.fit.fit import FORMAT, Fit
from harness.fit.tempered import PSEUDO_SAMPLE
from harness.fit.weighed_modes import GROUP, WeighedModes
from harness.fit.weighting import (
    LOG_WEIGHT,
    Weighting,
    check_weighting,
    in_extended,
    seen_weighting,
    target_draws,
)


def build_fit(
    *,
    posterior: Mapping[str, np.ndarray],
    extended: Mapping[str, np.ndarray] | None,
    sample_stats: Mapping[str, np.ndarray],
    constant_data: Mapping[str, Any],
    attrs: Mapping[str, Any],
    weighting: Weighting | None = None,
    pseudo_samples: bool = True,
) -> Fit:
    """Label arrays and return them as a fit.

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
        Data of the model by name; entries of tuples become variables of their own.
    attrs
        Strings, numbers and arrays for the root of the tree; ``settings`` may be a dict.
    weighting
        How the raw draws are weighted, which the fit records; if not given, it is recognised from
        the variables of the extended draws.
    pseudo_samples
        Whether the last axis of the extended arrays runs over pseudo-samples.

    Raises
    ------
    DataError
        If the variable that holds the weights is missing.
    """
    if weighting is None:
        weighting = seen_weighting(extended)
    check_weighting(weighting, extended)
    groups: dict[str, xr.Dataset] = {
        "posterior": _dataset(posterior),
        "sample_stats": _dataset(sample_stats),
        "constant_data": xr.Dataset(
            {
                part: (tuple(f"{part}_dim_{i}" for i in range(array.ndim)), array)
                for name, value in constant_data.items()
                for part, array in numbers_in(name, value)
                if array.size
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
    } | {"format": FORMAT, "weighting": weighting}
    return Fit(tree)


def reserved_names(axes: Mapping[str, int]) -> list[str]:
    """Return those names that variables of a fit cannot have, because an axis has that name.

    Parameters
    ----------
    axes
        Number of axes of each variable, besides chain and draw.
    """
    taken = {"chain", "draw", PSEUDO_SAMPLE}
    taken |= {f"{name}_dim_{i}" for name, count in axes.items() for i in range(count)}
    return [name for name in axes if name in taken]


def evidence_attributes(log_evidence: LogEvidence | None) -> dict[str, float]:
    """Return the attributes in which a fit keeps the log Z that a method estimated itself."""
    if log_evidence is None:
        return {}
    return {"log_evidence": log_evidence.value, "log_evidence_mcse": log_evidence.mcse}


def _dataset(arrays: Mapping[str, np.ndarray], *, last: str | None = None) -> xr.Dataset:
    """Name axes chain, draw, then x_dim_0, x_dim_1, ..., and the last one ``last`` if given."""
    variables = {}
    for name, array in arrays.items():
        inner = array.ndim - 2 - (last is not None)
        dims = ("chain", "draw", *(f"{name}_dim_{i}" for i in range(inner)))
        variables[name] = ((*dims, last) if last else dims, array)
    dataset = xr.Dataset(variables)
    return dataset.assign_coords({dim: np.arange(size) for dim, size in dataset.sizes.items()})


def pooled(fits: Sequence[Fit]) -> Fit:
    """Put the chains of several fits of one target together, as chains of a single fit.

    The attributes are the first fit's, with the cost of all chains.

    Parameters
    ----------
    fits
        One or more fits, made by the same method with the same settings.
    """
    groups = {
        f"/{name}": _as_chains([fit.tree[name].to_dataset() for fit in fits])
        if "chain" in node.sizes
        else node.to_dataset()
        for name, node in fits[0].tree.children.items()
    }
    tree = xr.DataTree.from_dict(groups)
    costs = [key for key in fits[0].tree.attrs if str(key).startswith(("gradients_", "seconds_"))]
    tree.attrs = fits[0].tree.attrs | {
        key: np.concatenate([np.atleast_1d(fit.tree.attrs[key]) for fit in fits]) for key in costs
    }
    return Fit(tree)


def continued(rounds: Sequence[Fit], *, seed: int) -> Fit:
    """Put rounds of one run together, each of which goes on from where the last one ended.

    Draws of the target are chosen anew among all raw draws.  The attributes are the first round's,
    with the cost of all, and the settings have the number of draws of each.

    Parameters
    ----------
    rounds
        One or more fits, with the same number of chains, made by the same method along the same
        path; in their posterior they have parameters only.
    seed
        Seed of the choice among weighted draws.
    """
    first = rounds[0]
    if len(rounds) == 1:
        return first
    groups = {
        name: _as_draws([fit.tree[name].to_dataset() for fit in rounds])
        if "draw" in node.sizes
        else node.to_dataset()
        for name, node in first.tree.children.items()
    }
    tree = xr.DataTree.from_dict({f"/{name}": group for name, group in groups.items()})
    costs = [key for key in first.tree.attrs if str(key).startswith(("gradients_", "seconds_"))]
    tree.attrs = first.tree.attrs | {
        key: np.sum([np.asarray(fit.tree.attrs[key]) for fit in rounds], axis=0) for key in costs
    }
    whole = Fit(tree).with_settings(rounds=[int(fit.posterior.sizes["draw"]) for fit in rounds])
    if whole.weighting == "unweighted":
        return whole
    raw, log_weight = whole.raw, whole.log_weight
    last = (PSEUDO_SAMPLE,) if log_weight.ndim == 3 else ()
    draws = {
        str(name): raw[name].transpose("chain", "draw", ..., *last).to_numpy()
        for name in whole.posterior
    }
    chosen = target_draws(draws, log_weight, whole.weighting, np.random.default_rng(seed))
    whole.tree["posterior"] = xr.DataTree(_dataset(chosen))
    return whole


def weigh_modes(
    fit: Fit,
    mode: npt.NDArray[np.intp],
    probability: FloatArray,
    log_error: FloatArray,
    *,
    seed: int,
) -> Fit:
    """Return a fit whose draws are weighted so that each mode has its probability by its mass.

    Draws of the target are chosen anew, among all chains, because in one that has not changed modes
    all draws may have the same weight.

    Parameters
    ----------
    fit
        Draws that are unweighted, or weighted against each other.
    mode
        Mode of each raw draw, from 0, shape (chains, draws).
    probability, log_error
        Probability of each mode, and the standard error of the log of its mass, shape (K,).
    seed
        Seed of the choice among draws.

    Raises
    ------
    DataError
        If the fit has pseudo-samples, or shapes do not match.
    """
    if fit.weighting == "within draws":
        raise DataError("masses of modes cannot weigh pseudo-samples")
    raw = {
        str(name): values.transpose("chain", "draw", ...).to_numpy()
        for name, values in fit.raw.items()
    }
    log_weight = evidence.weigh_strata(fit.log_weight, mode, probability)
    chosen = evidence.resample(log_weight.reshape(1, -1), np.random.default_rng(seed)).ravel()

    posterior = {
        name: each.reshape(mode.size, *each.shape[2:])[chosen].reshape(each.shape)
        for name, each in raw.items()
    }
    tree = fit.tree.copy(deep=False)
    tree["posterior"] = xr.DataTree(_dataset(posterior))
    if fit.extended is None:
        weights = {LOG_WEIGHT["across draws"]: np.zeros(mode.shape)}
        tree["extended"] = xr.DataTree(_dataset(in_extended(raw) | weights))
    modes = WeighedModes(mode, probability, log_error)
    tree[GROUP] = xr.DataTree(modes.dataset())
    tree.attrs = fit.tree.attrs | {"weighting": "across draws"}
    return Fit(tree)


def _as_draws(datasets: list[xr.Dataset]) -> xr.Dataset:
    joined = xr.concat(datasets, dim="draw")
    return joined.assign_coords(draw=np.arange(joined.sizes["draw"]))


def _as_chains(datasets: list[xr.Dataset]) -> xr.Dataset:
    joined = xr.concat(datasets, dim="chain")
    return joined.assign_coords(chain=np.arange(joined.sizes["chain"]))


def with_parameters(fit: Fit, values: Mapping[str, FloatArray], *, seed: int = 0) -> Fit:
    """Return a fit with other raw draws of its parameters, and nothing computed from them.

    Weights stay as they are, and draws of the target are chosen anew by them.

    Parameters
    ----------
    fit
        It stays as it is, without pseudo-samples.
    values
        Arrays (chain, draw, ...) by parameter name.
    seed
        Seed of that choice.
    """
    tree = fit.tree.copy(deep=False)
    tree.attrs = dict(fit.tree.attrs)
    extended = fit.extended
    if extended is not None:
        raw = _dataset(in_extended(values))
        tree["extended"] = xr.DataTree(extended.drop_vars(list(raw)).merge(raw))
    rng = np.random.default_rng(seed)
    chosen = target_draws(values, fit.drawn_log_weight, fit.weighting, rng)
    tree["posterior"] = xr.DataTree(_dataset(chosen))
    return Fit(tree)
