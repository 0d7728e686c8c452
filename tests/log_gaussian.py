"""A target that is Gaussian in base coordinates, of known total mass, with a positive parameter."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from harness.model import Model
from harness.path import GaussianBase, gaussian_base

FOLDER = Path(__file__).parent / "fixtures" / "log_gaussian"
LOG_Z = -7.5


def log_gaussian() -> tuple[Model, GaussianBase]:
    """Return the model and its truth: mean, covariance and log Z as log zeta."""
    rng = np.random.default_rng(1)
    mean, root = rng.normal(size=5), rng.normal(size=(5, 5))
    truth = gaussian_base(mean, root @ root.T / 5 + 0.3 * np.eye(5), log_zeta=LOG_Z)
    data = {"mu": truth.mean, "cholesky": truth.cholesky, "log_z": LOG_Z}
    model = Model("log_gaussian", FOLDER, data, ("x", "scale"), 5, transforms={"scale": "log"})
    return model, truth
