"""Some chains of a fit as a fit of their own, with their share of its cost.

Chains that run side by side share the overhead of every step, so an experiment runs the chains of
several replications together and takes them apart afterwards.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xarray as xr

from harness.arrays import FloatArray
from harness.errors import DataError
from harness.evidence import LogEvidence
from harness.fit.build import evidence_attributes
from harness.fit.fit import Fit

_EVIDENCE = ("chain_log_evidence", "chain_log_evidence_mcse")
"""Attributes with the log Z that each chain's own weights estimate, and its error."""


def chain_evidence_attributes(estimates: list[LogEvidence]) -> dict[str, FloatArray]:
    """Return the attributes in which a fit keeps a log Z of each chain, one estimate a chain."""
    values, errors = np.array(estimates, dtype=np.float64).reshape(-1, 2).T
    return dict(zip(_EVIDENCE, (values, errors), strict=True))


def part_of(fit: Fit, index: int, parts: int) -> Fit:
    """Return one of several equal parts of a fit's chains, in their order.

    Parameters
    ----------
    fit
        The fit, whose chains have run independently of each other.
    index
        Which part, from 0.
    parts
        Number of parts; the whole fit is the only part of one.

    Raises
    ------
    DataError
        If there is no such part, the number of chains is not a multiple of the number of parts, or
        for the same reasons as in :func:`chains_of`.
    """
    if parts == 1 and index == 0:
        return fit
    chains = fit.posterior.sizes["chain"]
    if not 0 <= index < parts or chains % parts:
        raise DataError(f"{chains} chains have no part {index} of {parts} equal ones")
    each = chains // parts
    return chains_of(fit, slice(index * each, (index + 1) * each))


def chains_of(fit: Fit, chosen: slice) -> Fit:
    """Return a fit with only some of its chains, as if nothing else had been run.

    Draws, weights and estimates from them are those of these chains alone.  What the run has cost,
    its pilot included, is divided equally among chains.  Attributes of the run as a whole, such as
    step sizes, stay as they are.

    Parameters
    ----------
    fit
        The fit, whose chains have run independently of each other.
    chosen
        Which chains, as a slice without a step.

    Raises
    ------
    DataError
        If no chain is chosen, chains depend on each other, or the method has estimated log Z from
        all chains together and the fit has no estimate of each.
    """
    chains = fit.posterior.sizes["chain"]
    number = len(range(chains)[chosen])
    if not number:
        raise DataError(f"{chosen} holds none of {chains} chains")
    if fit.chains_interact:
        raise DataError(
            f"chains of a {fit.tree.attrs['method']} fit depend on each other: some of them are no "
            "fit of their own"
        )
    groups = {
        f"/{name}": _chosen(node.to_dataset(), chosen, number)
        for name, node in fit.tree.children.items()
    }
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = _attributes(fit, chains, chosen, number)
    return Fit(tree)


def _chosen(group: xr.Dataset, chosen: slice, number: int) -> xr.Dataset:
    if "chain" not in group.sizes:
        return group
    return group.isel(chain=chosen).assign_coords(chain=np.arange(number))


def _attributes(fit: Fit, chains: int, chosen: slice, number: int) -> dict[Any, Any]:
    attrs = dict(fit.tree.attrs)
    for key, value in attrs.items():
        if key == "densities" or str(key).startswith(("gradients_", "seconds_")):
            shares = np.ndim(value) == 1 and np.size(value) == chains
            attrs[key] = value[chosen] if shares else np.sum(value) * number / chains
    settings = fit.settings
    if "chains" in settings:
        attrs["settings"] = json.dumps(settings | {"chains": number}, sort_keys=True)
    if "log_evidence" in attrs:
        if not all(key in attrs for key in _EVIDENCE):
            raise DataError(
                f"{attrs['method']} has estimated log Z from all {chains} chains together, so some "
                "of them have no estimate"
            )
        of_chains = [np.atleast_1d(attrs[key])[chosen] for key in _EVIDENCE]
        attrs.update(zip(_EVIDENCE, of_chains, strict=True))
        attrs.update(evidence_attributes(_of_mean(*of_chains)))
    return attrs


def _of_mean(value: FloatArray, mcse: FloatArray) -> LogEvidence:
    """Log of the mean of independent estimates of Z, from their logarithms and relative errors."""
    share = np.exp(value - value.max())
    total = share.sum()
    return LogEvidence(
        float(value.max() + np.log(total / len(value))),
        float(np.sqrt(np.square(share * mcse).sum()) / total),
    )
