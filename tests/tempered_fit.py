"""A continuously tempered fit without a run: independent draws, weighted exactly."""

from __future__ import annotations

import numpy as np
from log_gaussian import log_gaussian

from harness.fit import Fit, build_fit
from harness.model import Model
from harness.model.coordinates import unflatten
from harness.path import GaussianBase, gaussian_base


def tempered_fit(
    *, inv_temp: float | None = None, extended: bool = True
) -> tuple[Model, Fit, GaussianBase]:
    """Return model, fit and truth; the draws are of a Gaussian wider than the target.

    With draws from r, w_1 = gamma / (zeta r) and w_0 = r / r stand to each other as in eq. 20.
    """
    model, truth = log_gaussian()
    wide = gaussian_base(truth.mean + 0.2, 1.5 * truth.covariance)
    points = wide.sample(np.random.default_rng(21), 4000).reshape(2, 2000, 5)
    log_zeta = truth.log_zeta + 0.8
    log_w1 = truth.log_density(points) + truth.log_zeta - log_zeta - wide.log_density(points)
    path = {
        "inv_temp": np.full((2, 2000), 0.5),
        "delta": -log_w1,  # eq. 17: w_1 / w_0 = exp(-Delta)
        "log_w1": log_w1,
        "log_w0": np.zeros((2, 2000)),
    }
    draws = unflatten(model, points, {"x": (2, 2), "scale": ()})
    fit = build_fit(
        posterior=draws,
        extended={**draws, **path} if extended else None,
        sample_stats={"lp": np.zeros((2, 2000))},
        constant_data=model.data,
        attrs={
            "method": "collapsed_tempering" if extended else "nuts",
            "model": model.name,
            "settings": {"log_zeta": log_zeta, "log_g": [[0, 0], [1, 0]], "inv_temp": inv_temp},
        },
        pseudo_samples=False,
    )
    return model, fit, truth
