"""A mixture of 40 Gaussians in the plane: data and truth for ``stan/gaussian_mixture_40``.

References
----------
Midgley, L. I., Stimper, V., Simm, G. N. C., Schölkopf, B. and Hernández-Lobato, J. M. (2023). Flow
annealed importance sampling bootstrap. International Conference on Learning Representations.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from harness.arrays import FloatArray
from harness.folders import shipped
from harness.model import Model, ModeTest, Truth
from harness.model.truth import without_error
from harness.models.gaussian_mixture import GaussianMixture


def mixture_40() -> GaussianMixture:
    """Return the mixture: equal weights, unit covariance, means uniform on [-40, 40]^2."""
    path = shipped("data") / "hard" / "gaussian_mixture_40_means.csv"
    mean = np.loadtxt(path, delimiter=",", skiprows=1)
    count = len(mean)
    return GaussianMixture(np.full(count, 1 / count), mean, np.ones(count))


def responsibilities(draws: xr.Dataset) -> xr.DataArray:
    """Return the probability of each component given a draw.

    Some components overlap.  The mean of each probability is nevertheless exactly 1/40.
    """
    mean = mixture_40().mean
    x = draws["x"].to_numpy()
    # Component by component, because there may be many draws.
    log_share = np.stack([-0.5 * np.square(x - each).sum(axis=-1) for each in mean], axis=-1)
    log_share -= log_share.max(axis=-1, keepdims=True)
    share = np.exp(log_share)
    return xr.DataArray(share / share.sum(axis=-1, keepdims=True), dims=("chain", "draw", "event"))


def _draw(count: int, rng: np.random.Generator) -> FloatArray:
    mean = mixture_40().mean
    return np.asarray(mean[rng.integers(len(mean), size=count)] + rng.normal(size=(count, 2)))


def gaussian_mixture_40() -> Model:
    """Return the target; log Z = 0, and it has no prior."""
    mixture = mixture_40()
    count = len(mixture.mean)
    known = mixture.truth
    return Model(
        "gaussian_mixture_40",
        shipped("stan") / "gaussian_mixture_40",
        {"K": count, "mu": mixture.mean},
        ("x",),
        2,
        own_base="improper",
        truth=Truth(
            known.source,
            known.find_log_evidence,
            known.find_expectations,
            ModeTest(
                tuple(f"component {k + 1}" for k in range(count)),
                responsibilities,
                without_error(mixture.weight),
                exclusive=True,
            ),
            _draw,
        ),
    )
